"""The arithmetic behind the 182-sigma claim, for any pair of models.

A baseline of layer 0 against deeper layers of one model is set against two models at the
same layer. Two studies use it: one repeats the claim, the other asks what the same numbers
are for many models.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kinprint import text
from kinprint.measure.sigma import Effect, effect_size
from kinprint.model.places import Address
from kinprint.studies.catalogue import Study
from kinprint.studies.pairing import (
    UNDEFINED,
    Compared,
    compare,
    default_layers,
    spread,
    wanted_measures,
    wanted_roles,
)
from kinprint.studies.results import Cell, Fact, Table
from kinprint.studies.scene import OK, Item, Scene
from kinprint.studies.titles import role_title
from kinprint.text import Words

BASE = 0  # the layer that the report held against the others
SHUFFLED = "shuffled_cosine"
LEVELS = (3, 5)
Groups = dict[tuple[str, int, int], dict[int | None, Compared]]  # by role, models and layer


@dataclass(frozen=True, slots=True)
class Line:
    """One comparison: a layer of one model against a layer of the same or another."""

    role: str
    first: Item
    second: Item
    found: Compared

    @property
    def within(self) -> bool:
        """Whether both layers are of one model."""
        return self.first.model == self.second.model


@dataclass(frozen=True, slots=True)
class Claim:
    """The published arithmetic for one pair of models and one role.

    The baseline in `effect` is the second model's alone, as published; `own` is the first's.
    """

    role: str
    a: int
    b: int
    status: str
    reason: str
    effect: Effect
    own: float | None


def needed(study: Study, scene: Scene, pairs: Iterable[tuple[int, int]]) -> list[Item]:
    """Everything that the claims about these pairs need."""
    return [item for _, *two in _lines(study, scene, pairs) for item in two]


def measured(study: Study, scene: Scene, pairs: Iterable[tuple[int, int]]) -> list[Line]:
    """Every comparison within and between the models of these pairs."""
    names = measure_names(study, scene)
    return [
        Line(role, first, second, compare(scene.get(first), scene.get(second), names))
        for role, first, second in _lines(study, scene, pairs)
    ]


def measure_names(study: Study, scene: Scene) -> tuple[str, ...]:
    """Measures to take: the first makes the claim, and what shuffling leaves is always there."""
    return tuple(dict.fromkeys((*wanted_measures(scene, study.measures), SHUFFLED)))


def claims_about(
    study: Study, scene: Scene, lines: Iterable[Line], pairs: Sequence[tuple[int, int]]
) -> list[Claim]:
    """The published arithmetic for each role and pair."""
    groups: Groups = {}
    for line in lines:
        key = line.role, line.first.model, line.second.model
        groups.setdefault(key, {})[line.second.address.layer] = line.found
    roles = wanted_roles(scene, study.roles)
    return [_claim(scene, study, groups, role, a, b) for role in roles for a, b in pairs]


def _lines(
    study: Study, scene: Scene, pairs: Iterable[tuple[int, int]]
) -> list[tuple[str, Item, Item]]:
    wanted: dict[tuple[str, Item, Item], None] = {}
    for a, b in pairs:
        layers = [one for one in default_layers(scene, study.layers, a, b) if one != BASE]
        for role in wanted_roles(scene, study.roles):
            for model in (a, b):
                for layer in layers:
                    base, deep = (Item(model, Address(role, one)) for one in (BASE, layer))
                    wanted[role, base, deep] = None
            for layer in layers:
                wanted[role, Item(a, Address(role, layer)), Item(b, Address(role, layer))] = None
    return list(wanted)


def _claim(scene: Scene, study: Study, groups: Groups, role: str, a: int, b: int) -> Claim:
    """Put the numbers of one pair together as the report did."""
    name = wanted_measures(scene, study.measures)[0]
    layers = [one for one in default_layers(scene, study.layers, a, b) if one != BASE]

    def values(first: int, second: int) -> list[Compared]:
        return [groups[role, first, second][layer] for layer in layers]

    sides = values(b, b), values(a, b)
    known = [[v for one in side if (v := one.value(name)) is not None] for side in sides]
    effect = effect_size(*known)
    own = spread(one.value(name) for one in values(a, a)).mean
    broken = [one for side in sides for one in side if one.value(name) is None]
    if broken:
        status = UNDEFINED if broken[0].ok else broken[0].status
        return Claim(role, a, b, status, broken[0].reason, effect, own)
    if math.isnan(effect.sigma):
        return Claim(role, a, b, UNDEFINED, "no scatter, hence no sigma", effect, own)
    return Claim(role, a, b, OK, "", effect, own)


def claim_table(scene: Scene, claims: Iterable[Claim]) -> Table:
    """Pairs of models with the published arithmetic, one row for each role."""
    columns = (
        "role", "a", "b", "status", "within_a", "within_b", "within_b_std", "cross", "cross_std",
        "difference", "sigma", "log10_p", "least_p", "reason",
    )  # fmt: skip
    rows = tuple(
        (
            one.role,
            scene.names[one.a],
            scene.names[one.b],
            one.status,
            *numbers_of(one),
            one.reason,
        )
        for one in claims
    )
    title = text.words("study.baseline-claim.table.claims")
    return Table("baseline_claim", title, columns, rows)


def numbers_of(claim: Claim) -> tuple[Cell, ...]:
    """The numbers of a claim in the order of the table; None where there is none."""
    e = claim.effect
    found = (
        claim.own, e.within_mean, e.within_std, e.cross_mean, e.cross_std, e.difference, e.sigma,
        e.log10_p, e.least_p,
    )  # fmt: skip
    return tuple(None if one is None or math.isnan(one) else one for one in found)


def share_above(claims: Sequence[Claim]) -> dict[str, Fact]:
    """How many of these pairs the method puts above three and five sigma."""
    known = [one.effect.sigma for one in claims if one.status == OK]
    facts: dict[str, Fact] = {"pairs": len(known), "failed": len(claims) - len(known)}
    for level in LEVELS:
        count = sum(sigma > level for sigma in known)
        facts[f"above_{level}_sigma"] = count
        facts[f"share_above_{level}_sigma"] = count / len(known) if known else None
    return facts


def share_words(claims: Sequence[Claim]) -> list[Words]:
    """The same in words, a sentence a role."""
    told = []
    for role in dict.fromkeys(one.role for one in claims):
        facts = share_above([one for one in claims if one.role == role])
        if not facts["pairs"]:
            continue
        title = role_title(role)
        counts = {"three": facts["above_3_sigma"], "five": facts["above_5_sigma"]}
        told.append(
            text.words(
                "study.baseline-claim.finding.share", role=title, pairs=facts["pairs"], **counts
            )
        )
    return told
