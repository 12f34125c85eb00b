"""What a comparison would cost."""

from __future__ import annotations

from msgspec import UNSET, Struct, UnsetType

from kinprint.report.schema.common import Asked, Count, Translations

PLAN_SCHEMA = "kinprint.compare-plan/1"


class StageCost(Struct, frozen=True, kw_only=True):
    """What one stage of reading would cost."""

    bytes: Count
    requests: Count


class PlanDocument(Struct, frozen=True, kw_only=True, tag_field="schema", tag=PLAN_SCHEMA):
    """What a comparison would cost; `spent` is what knowing it took."""

    models: list[str]
    bytes: Count
    requests: Count
    stages: list[StageCost]
    bytes_at_most: Count
    left_out: list[str] = []
    translations: Translations | UnsetType = UNSET
    asked: Asked
    spent: StageCost
