"""Which parts of two models hold the same numbers: at the same places, if need be after rounding.

Equality comes before any test, since it needs no null: a row of distinct numbers has so many
arrangements that two models do not share one by accident.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from kinprint.lineage.reading.parts import component_of
from kinprint.lineage.reading.sample import Embedding, Floats, Indices, Sample, Units
from kinprint.measure.rounding import Equality, equality
from kinprint.records import Component, Part, Role

INFORMATION = 12.0
"""log10 of the arrangements that equal numbers must have: fewer could be equal by accident."""

Rows = tuple[Indices, Floats]
"""Rows of a tensor, and their numbers in it."""


@dataclass(frozen=True, slots=True)
class EqualNumbers:
    """How the tensors of a part agree.

    Attributes
    ----------
    all : whether all of them hold the same numbers.
    any : whether one of them does.
    share : the share of them that does.
    information : log10 of the arrangements of those numbers, equal as stored, that have most.
    bits : the bits of the coarsest grid that numbers had to be rounded to; None where they are
        equal as stored.
    """

    all: bool
    any: bool
    share: float = 0.0
    information: float = 0.0
    bits: int | None = None


def equal_numbers(a: Sample, b: Sample, part: Part, partner: Part, *, tested: bool) -> EqualNumbers:
    """Compare the numbers that were read of a part with those of its partner.

    Numbers that are only equal after rounding have no null of their own: gains of two strangers
    near one lie within a step of a coarse grid. They count where a test has linked the part.
    """
    ours, theirs = dict(tensors_of(a, part)), dict(tensors_of(b, partner))
    found = [
        compared
        for role in ours.keys() & theirs.keys()
        if (compared := _compare(ours[role], theirs[role])) is not None
    ]
    same = [one for one in found if one.same]
    exact = max((one.information for one in same if one.equal), default=0.0)
    if not tested and exact < INFORMATION:
        return EqualNumbers(False, False)
    informed = max((one.information for one in same), default=0.0) >= INFORMATION
    bits = [one.bits for one in same if one.bits is not None]
    return EqualNumbers(
        all=informed and len(same) == len(found) and ours.keys() == theirs.keys(),
        any=informed,
        share=len(same) / len(found) if informed else 0.0,
        information=exact if exact >= INFORMATION else 0.0,
        bits=min(bits, default=None),
    )


def _compare(ours: Rows, theirs: Rows) -> Equality | None:
    """Rows of equal number; None where there is none, or where they have different lengths."""
    _, left, right = np.intersect1d(ours[0], theirs[0], return_indices=True)
    x, y = ours[1][left], theirs[1][right]
    return equality(x, y) if len(left) and x.shape == y.shape else None


def tensors_of(sample: Sample, part: Part) -> Iterator[tuple[str, Rows]]:
    """The tensors of a part as they were read: role, numbers of rows, rows."""
    layer = -1 if part.layer is None else part.layer
    match part.component:
        case Component.NORMS:
            for stored, suffix in ((sample.norms, ""), (sample.norm_biases, ".bias")):
                for (role, at), vector in stored.items():
                    if at == layer and component_of(role) is Component.NORMS:
                        yield role + suffix, _numbered(vector[None])
        case Component.ATTENTION:
            yield from _attention(sample, layer)
        case Component.FEED_FORWARD if layer in sample.units:
            yield from _units(sample.units[layer])
        case Component.EXPERT if (layer, part.expert) in sample.experts:
            yield from _units(sample.experts[layer, part.expert or 0])
        case Component.ROUTER if layer in sample.routers:
            yield Role.ROUTER, _numbered(sample.routers[layer])
        case Component.EMBEDDING if sample.embedding is not None:
            yield Role.EMBED, _spelt(sample.embedding)
        case Component.HEAD if sample.head is not None:
            yield Role.LM_HEAD, _spelt(sample.head)
        case _:
            return


def _units(units: Units) -> Iterator[tuple[str, Rows]]:
    tensors: Mapping[str, Floats | None] = {
        Role.GATE: units.gate,
        Role.UP: units.up,
        Role.DOWN: units.down if units.down.any() else None,
    }
    for role, rows in tensors.items():
        if rows is not None:
            yield role, (units.index, rows)


def _attention(sample: Sample, layer: int) -> Iterator[tuple[str, Rows]]:
    heads = sample.attention.get(layer)
    if heads is not None:
        for role in (Role.Q, Role.K, Role.V, Role.O):
            rows: Floats | None = getattr(heads, role)
            if rows is not None:
                yield role, _numbered(rows.reshape(-1, rows.shape[-1]))
    for (role_name, at), vector in sample.norms.items():
        if at == layer and component_of(role_name) is Component.ATTENTION:
            yield role_name, _numbered(vector[None])


def _spelt(table: Embedding) -> Rows:
    """Rows known by the spelling of their token: a vocabulary may have been moved."""
    return np.fromiter(map(hash, table.tokens), np.int64), table.rows


def _numbered(rows: Floats) -> Rows:
    return np.arange(len(rows)), rows
