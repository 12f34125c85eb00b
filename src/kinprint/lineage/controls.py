"""Control models: pairs known to be unrelated, for what symmetry gives no exact null.

A conformal p-value ranks a pair among pairs of strangers. It counts only pairs that share no
model with one another nor with the pair at hand, and it never replaces an exact test.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from msgspec import Struct

from kinprint.lineage.battery import run_battery
from kinprint.lineage.side import Side
from kinprint.lineage.tests.registry import Likeness, LineageTest, register
from kinprint.nulls.conformal import conformal, disjoint_pairs
from kinprint.records import Component, Evidence, Group, Status, Tier

_AMONG_CONTROLS = register(
    LineageTest(
        "Q.controls", Tier.CALIBRATED, Group.NONE, Component.FEED_FORWARD, likeness=Likeness.MATCH
    )
)


class Control(Struct, frozen=True):
    """What the battery finds between one of the two models and a control, for comparison."""

    model: str
    control: str
    evidence: tuple[Evidence, ...]


def match_quality(evidence: Sequence[Evidence]) -> float | None:
    """How well the units of two models can be matched, blind to labels and signs."""
    qualities = (each.alignment_quality for each in evidence)
    return max((value for value in qualities if value is not None), default=None)


def calibrated(
    sides: Sequence[Side], seed: int, level: str, evidence: Sequence[Evidence]
) -> tuple[tuple[Control, ...], tuple[Evidence, ...]]:
    """The battery on controls, and the quality of the pair's alignment ranked among theirs.

    The first two sides are the pair, the others controls.
    """

    def run(model: int, control: int) -> tuple[Evidence, ...]:
        return run_battery(sides[model], sides[control], seed=seed, level=level)

    names = [side.prepared.sample.name for side in sides]
    controls = tuple(
        Control(names[model], names[control], run(model, control))
        for model in (0, 1)
        for control in range(2, len(sides))
    )
    pairs = list(combinations(range(2, len(sides)), 2))
    chosen = [pairs[at] for at in disjoint_pairs(pairs, (0, 1), seed)]
    null = [value for pair in chosen if (value := match_quality(run(*pair))) is not None]
    own = match_quality(evidence)
    if own is None or not null:
        return controls, ()
    result = conformal(own, null)
    return controls, (
        Evidence(
            _AMONG_CONTROLS.name, _AMONG_CONTROLS.tier, _AMONG_CONTROLS.group, Status.OK,
            result.log10_p, own, n=result.n, bound=result.bound, floor=result.floor,
            null=result.null, roles=("gate", "up", "down"),
        ),
    )  # fmt: skip
