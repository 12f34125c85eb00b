"""The arithmetic behind the 182-sigma claim, for any pair of models.

A baseline of layer 0 against deeper layers of one model is set against two models at the
same layer. Two studies use it: one repeats the claim, the other asks what the same numbers
are for many models.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from kinprint import text
from kinprint.measure.sigma import Effect, effect_size
from kinprint.model.places import Address
from kinprint.records import Mark
from kinprint.studies.comparing import SHUFFLED, TensorComparison
from kinprint.studies.derivation.pairwise import A, B, TensorPair, compare_tensors
from kinprint.studies.kin import kin_of
from kinprint.studies.marks import worst
from kinprint.studies.results import Cell, Fact, RowStatus, Table
from kinprint.studies.study import StudyInput, TensorRows
from kinprint.studies.summary import Spread, spread
from kinprint.text import Words
from kinprint.titles import role_title

BASE = 0  # the layer that the report held against the others
LEVELS = (3, 5)
ModelPairs = Sequence[tuple[int, int]]


class Claim(Struct, frozen=True):
    """The published arithmetic for one pair of models and one role.

    The baseline `within` is the second model's alone, as published; `own` is the first's. What
    lacks one of its layers has no value: it would be the mean of something else. `layers` are
    those that the two were compared at.
    """

    role: str
    a: int
    b: int
    status: RowStatus
    reason: str
    effect: Effect
    own: Spread
    within: Spread
    cross: Spread
    layers: tuple[int, ...]
    mark: Mark = Mark.MEASURED


def is_within(pair: TensorPair) -> bool:
    """Whether both layers are of one model."""
    return pair.first.model == pair.second.model


def is_kin(inputs: StudyInput, claim: Claim) -> bool:
    """Whether the two models of a claim are said to be related."""
    return kin_of(inputs, claim.a, claim.b) is not None


def needed(inputs: StudyInput, pairs: ModelPairs) -> list[TensorRows]:
    """Everything that the claims about these pairs need."""
    return [rows for both in _wanted(inputs, pairs) for rows in both]


def measured(inputs: StudyInput, pairs: ModelPairs) -> list[TensorPair]:
    """Every comparison within and between the models of these pairs."""
    names = measure_names(inputs)
    return [compare_tensors(inputs, *both, names) for both in _wanted(inputs, pairs)]


def measure_names(inputs: StudyInput) -> tuple[str, ...]:
    """Measures to take: the first makes the claim, and what shuffling leaves is always there."""
    return tuple(dict.fromkeys((*inputs.measures, SHUFFLED)))


def _wanted(inputs: StudyInput, pairs: ModelPairs) -> list[tuple[TensorRows, TensorRows]]:
    """Layer 0 of each model with its deeper layers, and both models at the same layers."""
    wanted: dict[tuple[TensorRows, TensorRows], None] = {}
    for a, b in pairs:
        layers = _deep_layers(inputs, a, b)
        for role in inputs.roles:
            for model in (a, b):
                for layer in layers:
                    base, deep = (TensorRows(model, Address(role, at)) for at in (BASE, layer))
                    wanted[base, deep] = None
            for layer in layers:
                address = Address(role, layer)
                wanted[TensorRows(a, address), TensorRows(b, address)] = None
    return list(wanted)


def _deep_layers(inputs: StudyInput, a: int, b: int) -> list[int]:
    """Layers other than the first, for controls those of them that both models have."""
    deep = [layer for layer in inputs.fitted_layers(a, b) if layer != BASE]
    depth = min(inputs.depth(a), inputs.depth(b))
    return [layer for layer in deep if layer < depth or (a, b) == (A, B)] or deep


def claims_about(
    inputs: StudyInput, measured_pairs: Iterable[TensorPair], pairs: ModelPairs
) -> list[Claim]:
    """The published arithmetic for each role and pair."""
    groups: dict[tuple[str, int, int], dict[int | None, TensorComparison]] = {}
    for one in measured_pairs:
        key = one.role, one.first.model, one.second.model
        groups.setdefault(key, {})[one.second.address.layer] = one.comparison

    def claim(role: str, a: int, b: int) -> Claim:
        layers = _deep_layers(inputs, a, b)
        own, within, cross = (
            [groups[role, first, second][layer] for layer in layers]
            for first, second in ((a, a), (b, b), (a, b))
        )
        claim = _claim(inputs.measures[0], role, a, b, own, within, cross)
        return replace(claim, layers=tuple(layers))

    return [claim(role, a, b) for role in inputs.roles for a, b in pairs]


def _claim(
    measure: str,
    role: str,
    a: int,
    b: int,
    own: Sequence[TensorComparison],
    within: Sequence[TensorComparison],
    cross: Sequence[TensorComparison],
) -> Claim:
    """Put the numbers of one pair together as the report did."""
    first, *known = (_whole([one.value(measure) for one in side]) for side in (own, within, cross))
    effect = effect_size(*known)
    broken = next((one for one in (*within, *cross) if one.value(measure) is None), None)
    status, reason = RowStatus.OK, ""
    if broken is not None:
        status = RowStatus.UNDEFINED if broken.ok else broken.status
        reason = broken.reason
    elif math.isnan(effect.sigma):
        status, reason = RowStatus.UNDEFINED, text.sentence("study.reason.no-scatter")
    every = (*own, *within, *cross)
    marks = [mark for one in every if (mark := one.mark(measure)) is not None]
    mark = worst([*marks, Mark.RECONSTRUCTED] if any(one.absent for one in every) else marks)
    inside, baseline, between = (spread(side) for side in (first, *known))
    return Claim(role, a, b, status, reason, effect, inside, baseline, between, (), mark)


def _whole(values: Sequence[float | None]) -> list[float]:
    """All of several values, or none of them."""
    known = [value for value in values if value is not None]
    return known if len(known) == len(values) else []


def claim_table(inputs: StudyInput, claims: Iterable[Claim]) -> Table:
    """Pairs of models with the published arithmetic, one row for each role."""
    columns = (
        "role", "a", "b", "kin", "layers", "status", "within_a", "within_b", "within_b_std",
        "cross", "cross_std", "difference", "sigma", "log10_p", "least_p", "mark", "reason",
    )  # fmt: skip
    rows: list[tuple[Cell, ...]] = []
    for one in claims:
        both = inputs.names[one.a], inputs.names[one.b]
        layers = ", ".join(map(str, one.layers))
        numbers = numbers_of(one)
        mark = one.mark if any(number is not None for number in numbers) else ""
        about = one.role, *both, is_kin(inputs, one), layers, one.status
        rows.append((*about, *numbers, mark, one.reason))
    title = text.words("study.baseline-claim.table.claims")
    return Table("baseline_claim", title, columns, tuple(rows))


def numbers_of(claim: Claim) -> tuple[Cell, ...]:
    """The numbers of a claim in the order of the table; None where there is none."""
    e, within, cross = claim.effect, claim.within, claim.cross
    found = (
        claim.own.mean, within.mean, within.std, cross.mean, cross.std, e.difference, e.sigma,
        e.log10_p, e.least_p,
    )  # fmt: skip
    return tuple(None if one is None or math.isnan(one) else one for one in found)


def claims_by_role(claims: Iterable[Claim]) -> dict[str, list[Claim]]:
    """Claims grouped by role, in their order."""
    groups: dict[str, list[Claim]] = {}
    for claim in claims:
        groups.setdefault(claim.role, []).append(claim)
    return groups


def share_above(claims: Sequence[Claim]) -> dict[str, Fact]:
    """How many of these pairs the method puts above three and five sigma."""
    known = [one.effect.sigma for one in claims if one.status is RowStatus.OK]
    facts: dict[str, Fact] = {"pairs": len(known), "failed": len(claims) - len(known)}
    for level in LEVELS:
        count = sum(sigma > level for sigma in known)
        facts[f"above_{level}_sigma"] = count
        facts[f"share_above_{level}_sigma"] = count / len(known) if known else None
    return facts


def share_words(claims: Sequence[Claim]) -> list[Words]:
    """The same in words, a sentence a role."""
    shares = {role: share_above(mine) for role, mine in claims_by_role(claims).items()}
    return [
        text.words(
            "study.baseline-claim.finding.share",
            role=role_title(role),
            pairs=facts["pairs"],
            three=facts["above_3_sigma"],
            five=facts["above_5_sigma"],
        )
        for role, facts in shares.items()
        if facts["pairs"]
    ]
