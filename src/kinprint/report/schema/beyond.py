"""What two models share beyond a common base."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from kinprint.records import BeyondState, Component, Relation
from kinprint.report.schema.common import Count, Likeness, Share

Which = Literal["a", "b"]
"""One of the two models."""


class BeyondRow(Struct, frozen=True, kw_only=True):
    """What is known about one part of the base that both models may have changed.

    `cosine` is that of the two changes; `b_on_a` is how much of the change of A is in that of B
    (the coefficient of a regression), `a_on_b` the reverse. `in_common` is the share of the numbers
    that both changed which are equal, chance taken off. `overlap` is the share of leading
    directions that changes of low rank have in common, `chance` what random ones would. `sizes` are
    those of the changes as shares of the base.
    """

    tower: str = ""
    component: Component
    layer: Count | None = None
    expert: Count | None = None
    state: BeyondState
    unchanged: list[Which] = []
    bits: Count | None = None
    cosine: Likeness | None = None
    b_on_a: float | None = None
    a_on_b: float | None = None
    in_common: float | None = None
    overlap: float | None = None
    chance: float | None = None
    ranks: tuple[Count, Count] | None = None
    sizes: tuple[float, float] | None = None
    reason: str = ""
    weights: Count = 0
    read: Share = 0.0


class BeyondPart(Struct, frozen=True, kw_only=True):
    """What two models share beyond a base; it is calibrated and has no p-value.

    `given` is the base as it was named, `relations` are those of A and of B to it. `refused` is the
    model that has no change of the base, so that the question has no answer.
    """

    given: str
    name: str
    title: str
    commit: str | None = None
    relations: tuple[Relation, Relation]
    state: BeyondState
    refused: Which | None = None
    summary: str
    parts: list[BeyondRow] = []
