"""What reading would cost: a comparison, some tensors or headers of a model, a study."""

from __future__ import annotations

from typing import Self

from msgspec import UNSET, Struct, UnsetType

from kinprint.records import Cost
from kinprint.report.schema.common import Asked, Count, Translations

PLAN_SCHEMA = "kinprint.compare-plan/1"
READING_PLAN_SCHEMA, STUDY_PLAN_SCHEMA = "kinprint.plan/1", "kinprint.study-plan/1"


class StageCost(Struct, frozen=True, kw_only=True):
    """What one stage of reading would cost, or what knowing it took."""

    bytes: Count
    requests: Count

    @classmethod
    def of(cls, cost: Cost) -> Self:
        """What a document says of a cost."""
        return cls(bytes=cost.bytes, requests=cost.requests)

    @property
    def cost(self) -> Cost:
        """The same as a record."""
        return Cost(self.bytes, self.requests)


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


class ReadingPlanDocument(
    Struct, frozen=True, kw_only=True, tag_field="schema", tag=READING_PLAN_SCHEMA
):
    """What reading tensors of a model would cost, or its headers.

    `models` are all that are read where it is more than one, `model` first.
    """

    model: str
    models: list[str] | UnsetType = UNSET
    commit: str | None
    what: str
    tensors: Count | None
    bytes: Count
    requests: Count
    at_least: bool = False
    spent: StageCost


class StudyPlanDocument(
    Struct, frozen=True, kw_only=True, tag_field="schema", tag=STUDY_PLAN_SCHEMA
):
    """What a study of some models would cost."""

    study: str
    models: list[str]
    bytes: Count
    requests: Count
    spent: StageCost
