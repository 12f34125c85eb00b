"""Which parts of two models hold the same numbers: at the same places, if need be after rounding.

Equality comes before any test, since it needs no null: a row of distinct numbers has so many
arrangements that two models do not share one by accident.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import ml_dtypes
import numpy as np

from kinprint.lineage.reading.parts import component_of
from kinprint.lineage.reading.sample import Floats, Indices, Sample, Units
from kinprint.measure.computed import computed
from kinprint.measure.rounding import arrangements, constant, equal_rows, equality
from kinprint.records import Component, Part, Role

INFORMATION = 12.0
"""log10 of the arrangements that equal numbers must have: fewer could be equal by accident."""

TABLES = (Component.EMBEDDING, Component.HEAD)
"""Components that are tables with a row for each token."""
_SOME_POSITIONS = slice(8, 16)  # neighbours that tell whether a formula gives them

Rows = tuple[Indices, Floats]
"""Rows of a tensor, and their numbers in it."""


@dataclass(frozen=True, slots=True)
class EqualNumbers:
    """How the tensors of a part agree.

    Attributes
    ----------
    all : whether all of them hold the same numbers.
    any : whether one of them does, or some rows of one.
    share : the share of their numbers that does, rows of others counted by theirs.
    likeness : the same with every tensor counted once: what those rows alone make them alike.
    information : log10 of the arrangements of those numbers, equal as stored or after a cast to a
        shorter float, that have most.
    bits : the bits of the coarsest grid that numbers had to be rounded to; None where they are
        equal as stored.
    kept : whether training would have changed those numbers. Rows of tokens that no text had stay
        as they started, so that equal rows of a table beside others may be first weights.
    consistent : whether nothing contradicts that all are the same: what is constant in one model,
        which tells nothing by itself, is what the numbers of the other round to.
    """

    all: bool
    any: bool
    share: float = 0.0
    likeness: float = 0.0
    information: float = 0.0
    bits: int | None = None
    kept: bool = False
    consistent: bool = False


def equal_numbers(
    a: Sample,
    b: Sample,
    part: Part,
    partner: Part,
    *,
    tested: bool,
    least: float = INFORMATION,
) -> EqualNumbers:
    """Compare the numbers that were read of a part with those of its partner.

    `least` is log10 of the arrangements that equal numbers must have: more than `INFORMATION` where
    several pairs of parts are tried.

    Numbers that are only equal after rounding to a grid have no null of their own: gains of two
    strangers near one lie within a step of a coarse one. They count where a test has linked the
    part. A cast to a shorter float has one result, which is as good as equality.
    """
    table = part.component in TABLES
    found, complete = (_tables if table else _tensors)(a, b, part, partner, least)
    exact = max((one.information for one in found if one.exact), default=0.0)
    bits = min((one.bits for one in found if one.bits is not None), default=None)
    consistent = bool(found) and complete and all(one.same for one in found)
    if not found or (not tested and exact < least):
        return EqualNumbers(False, False, bits=bits, consistent=consistent)
    informed = max((one.information for one in found), default=0.0) >= least
    numbers = sum(one.numbers for one in found)
    share = sum(one.rows * one.numbers for one in found) / numbers if informed else 0.0
    return EqualNumbers(
        all=informed and consistent and not any(one.lost for one in found),
        any=informed,
        share=share,
        likeness=sum(one.rows for one in found) / len(found) if informed else 0.0,
        information=exact if exact >= least else 0.0,
        bits=bits,
        kept=informed and (not table or share == 1.0),
        consistent=consistent,
    )


@dataclass(frozen=True, slots=True)
class _Agreement:
    """How one tensor agrees: whether all of it does, if need be after rounding to so many bits,
    and the share of its rows; whether no other arrangement of the numbers would; how many numbers
    were compared; whether nothing but a constant is left of it after rounding."""

    same: bool
    bits: int | None
    information: float
    exact: bool
    rows: float
    numbers: int
    lost: bool = False


def information_for(pairs: int) -> float:
    """The least information of equal numbers where so many pairs of parts may meet."""
    return INFORMATION + math.log10(max(pairs, 1))


def copies(
    a: Sample, b: Sample, ours: Collection[Part], theirs: Collection[Part]
) -> dict[Part, list[Part]]:
    """Parts of the layers with those of the second model, at any place, that have a row of theirs.

    Rows of one role and number are looked up as bfloat16, in which a cast begins as it was.
    """
    least = information_for(len(ours) * len(theirs))
    places: dict[_Row, list[Part]] = {}
    for part in theirs:
        for row in _telling_rows(b, part, least):
            places.setdefault(row, []).append(part)
    return {
        part: list(
            dict.fromkeys(
                to
                for row in _telling_rows(a, part, least)
                for to in places.get(row, ())
                if to.component is part.component
            )
        )
        for part in ours
    }


_Row = tuple[str, int, bytes]


def _telling_rows(sample: Sample, part: Part, least: float) -> Iterator[_Row]:
    """The first row of each tensor of a part, where its numbers have so many arrangements."""
    for role, (index, rows) in tensors_of(sample, part):
        if len(rows) and arrangements(rows[:1]) >= least:
            yield role, int(index[0]), rows[0].astype(ml_dtypes.bfloat16).tobytes()


def _tensors(
    a: Sample, b: Sample, part: Part, partner: Part, least: float
) -> tuple[list[_Agreement], bool]:
    """Tensors of equal role, and whether both models have the same vectors and gates."""
    ours, theirs = dict(tensors_of(a, part)), dict(tensors_of(b, partner))
    found = [
        _compare(ours[role], theirs[role], least) for role in sorted(ours.keys() & theirs.keys())
    ]
    complete = not any(_lacks(*both) for both in ((ours, theirs), (theirs, ours)))
    complete &= _units_of(a, part) == _units_of(b, partner)
    return [one for one in found if one is not None], complete


def _units_of(sample: Sample, part: Part) -> int:
    """How many units a feed-forward has; none for other parts."""
    layer = -1 if part.layer is None else part.layer
    match part.component:
        case Component.FEED_FORWARD if layer in sample.units:
            return sample.units[layer].total
        case Component.EXPERT if (layer, part.expert) in sample.experts:
            return sample.experts[layer, part.expert or 0].total
    return 0


def _lacks(some: Container[str], other: Iterable[str]) -> bool:
    """Whether a tensor is missing that would have been read: a norm, a gate, or a matrix's bias."""
    return any(
        role not in some
        for role in other
        if role.startswith("norm") or role == Role.GATE
        or (role.endswith(".bias") and role.removesuffix(".bias") in some)
    )  # fmt: skip


def _tables(
    a: Sample, b: Sample, part: Part, partner: Part, least: float
) -> tuple[list[_Agreement], bool]:
    """Rows of equal tokens; of equal numbers where no spelling is known in both models.

    Beside them rows of equal positions, where both models have a table of those.
    """
    for rows_of in (_spelt, _by_number):
        ours, theirs = rows_of(a, part.component), rows_of(b, partner.component)
        found = None if ours is None or theirs is None else _compare(ours, theirs, least)
        if found is not None:
            return [found, *_positions(a, b, part, partner, least)], True
    positions = list(_positions(a, b, part, partner, least))
    return positions, bool(positions)


def _positions(
    a: Sample, b: Sample, part: Part, partner: Part, least: float
) -> Iterator[_Agreement]:
    """How tables of positions agree. Those that are computed are the same in strangers."""
    place = Role.POS_EMBED, -1
    tables = {part.component, partner.component} == {Component.EMBEDDING}
    if tables and place in a.few and place in b.few:
        found = _compare(a.few[place], b.few[place], least)
        if found is not None:
            formula = computed(a.few[place][1][_SOME_POSITIONS])
            yield replace(found, information=0.0) if formula else found


def _compare(ours: Rows, theirs: Rows, least: float) -> _Agreement | None:
    """Rows of equal number; None where there is none, or where they have different lengths."""
    _, left, right = np.intersect1d(ours[0], theirs[0], return_indices=True)
    x, y = ours[1][left], theirs[1][right]
    if not len(left) or x.shape != y.shape:
        return None
    whole = equality(x, y)
    if whole.same:
        lost = not whole.equal and (constant(x) or constant(y))
        share = 0.0 if lost else 1.0
        return _Agreement(True, whole.bits, whole.information, whole.exact, share, x.size, lost)
    share, information = equal_rows(x, y, least)
    return _Agreement(False, None, information, True, share, x.size)


def tensors_of(sample: Sample, part: Part) -> Iterator[tuple[str, Rows]]:
    """The tensors of a part of the layers as they were read: role, numbers of rows, rows."""
    layer = -1 if part.layer is None else part.layer
    match part.component:
        case Component.NORMS:
            for stored, suffix in ((sample.norms, ""), (sample.norm_biases, ".bias")):
                for (role, at), vector in stored.items():
                    if at == layer and component_of(role) is Component.NORMS:
                        yield role + suffix, _numbered(vector[None])
        case Component.ATTENTION:
            yield from _attention(sample, layer)
            yield from _biases(sample, part)
        case Component.FEED_FORWARD if layer in sample.units:
            yield from _units(sample.units[layer])
            yield from _biases(sample, part)
        case Component.EXPERT if (layer, part.expert) in sample.experts:
            yield from _units(sample.experts[layer, part.expert or 0])
        case Component.ROUTER if layer in sample.routers:
            yield Role.ROUTER, _numbered(sample.routers[layer])
        case Component.ROUTER if (Role.ROUTER, layer) in sample.few:
            yield Role.ROUTER, sample.few[Role.ROUTER, layer]
        case _:
            return


def _biases(sample: Sample, part: Part) -> Iterator[tuple[str, Rows]]:
    """Biases of a part that no test looks at."""
    for (role, layer), rows in sample.few.items():
        here = layer == part.layer and component_of(role) is part.component
        if here and role.endswith(".bias"):
            yield role, rows


def _units(units: Units) -> Iterator[tuple[str, Rows]]:
    tensors: Mapping[str, Floats | None] = {
        Role.GATE: units.gate,
        Role.UP: units.up,
        Role.DOWN: units.down if units.down.any() else None,
        f"{Role.UP}.bias": None if units.bias is None else units.bias[:, None],
    }
    for role, rows in tensors.items():
        if rows is not None:
            yield role, (units.index, rows)


def _attention(sample: Sample, layer: int) -> Iterator[tuple[str, Rows]]:
    heads = sample.attention.get(layer)
    if heads is not None:
        numbered = {Role.Q: heads.query_heads, Role.K: heads.groups, Role.V: heads.groups}
        for role in (Role.Q, Role.K, Role.V, Role.O):
            rows: Floats | None = getattr(heads, role)
            numbers = numbered.get(role)
            if rows is not None:
                yield role, _by_head(rows, numbers)
            bias: Floats | None = getattr(heads, f"{role}_bias", None)
            if bias is not None:
                yield f"{role}.bias", _by_head(bias[..., None], numbers)
    elif (Role.V, layer) in sample.few:
        yield Role.V, sample.few[Role.V, layer]
    for (role_name, at), vector in sample.norms.items():
        if at == layer and component_of(role_name) is Component.ATTENTION:
            yield role_name, _numbered(vector[None])


def _by_head(rows: Floats, heads: Indices | None) -> Rows:
    """Rows of heads, numbered as in their layer."""
    if heads is None:
        return _numbered(rows.reshape(-1, rows.shape[-1]))
    numbers = heads[:, None] * rows.shape[1] + np.arange(rows.shape[1])
    return numbers.reshape(-1), rows.reshape(-1, rows.shape[-1])


def _spelt(sample: Sample, component: Component) -> Rows | None:
    """Rows of a table by the spelling of their tokens: a vocabulary may have been moved."""
    table = sample.embedding if component is Component.EMBEDDING else sample.head
    if table is None:
        return None
    return np.fromiter(map(hash, table.tokens), np.int64, len(table.tokens)), table.rows


def _by_number(sample: Sample, component: Component) -> Rows | None:
    """Rows of a table by their numbers."""
    embedding = component is Component.EMBEDDING
    table = sample.embedding if embedding else sample.head
    few = sample.few.get((Role.EMBED if embedding else Role.LM_HEAD, -1))
    known = [one for one in (None if table is None else (table.ids, table.rows), few) if one]
    if not known:
        return None
    numbers, first = np.unique(np.concatenate([one[0] for one in known]), return_index=True)
    return numbers, np.concatenate([one[1] for one in known])[first]


def _numbered(rows: Floats) -> Rows:
    return np.arange(len(rows)), rows
