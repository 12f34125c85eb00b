"""Which parts of two models hold the same numbers: at the same places, if need be after rounding.

Equality comes before any test, since it needs no null: a row of distinct numbers has so many
arrangements that two models do not share one by accident.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping

import ml_dtypes
import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace
from numpy.typing import NDArray

from kinprint.lineage.part_tensors import (
    Rows,
    TensorKey,
    at_equal_numbers,
    compared,
    tensor_sizes,
    tensors_of,
)
from kinprint.lineage.reading.parts import TABLES
from kinprint.lineage.reading.sample import Floats, Sample
from kinprint.measure.computed import computed, tabulated
from kinprint.measure.courses import on_course
from kinprint.measure.rounding import (
    arrangements,
    constant,
    equal_places,
    equal_rows,
    equality,
    found_in,
)
from kinprint.model.places import Address
from kinprint.records import Component, Part, Role

INFORMATION = 12.0
"""log10 of the arrangements that equal numbers must have: fewer could be equal by accident."""

_RUN, _LOOKED_AT = 8, 32  # rows and columns that tell a computed table
_MOST = 0.5  # of the numbers of a part: so many lie in tensors that were compared
_ROWS = "rows"  # of a table of tokens, whatever it is called
_UNNAMED = "rows of no token"
_OFTEN_COMPUTED = (Component.MIXER, Component.OTHER)
_NAMELESS = f".{Role.OTHER}:"  # before what tensors without a role are called by
_LOG = 16.0  # no logarithm of a rate is larger


class EqualNumbers(Struct, frozen=True):
    """How the tensors of a part agree.

    Attributes
    ----------
    all : whether all of them hold the same numbers.
    any : whether one of them does, or some rows of one.
    share : the share of their numbers that does, rows of others counted by theirs.
    alike : by tensor, how alike its equal rows or numbers alone make it.
    information : log10 of the arrangements of those numbers, equal as stored or after a cast to a
        shorter float, that have most.
    bits : the bits of the coarsest grid that numbers had to be rounded to; None where they are
        equal as stored.
    kept : whether training would have changed those numbers. Rows of tokens that no text had stay
        as they started, so that equal rows of a table beside others may be first weights.
    spared : whether single numbers of rows are equal. Training changes all, but hardly trained
        models of one initialisation may have some in common in a short format.
    consistent : whether nothing contradicts that all are the same: what is constant in one model,
        which tells nothing by itself, is what the numbers of the other round to.
    """

    all: bool
    any: bool
    share: float = 0.0
    alike: Mapping[str, float] = field(default_factory=dict)
    information: float = 0.0
    bits: int | None = None
    kept: bool = False
    spared: bool = False
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
    """How the numbers that were read of a part and of its partner agree, seen once."""
    return compare_numbers(a, b, part, partner, least).told(tested)


def compare_numbers(
    a: Sample, b: Sample, part: Part, partner: Part, least: float
) -> ComparedNumbers:
    """Compare the numbers that were read of a part with those of its partner.

    `least` is log10 of the arrangements that equal numbers must have: more than `INFORMATION` where
    several pairs of parts are tried.
    """
    table = part.component in TABLES
    found = (_tables if table else _tensors)(a, b, part, partner, least)
    return ComparedNumbers(found, table, least)


class ComparedNumbers(Struct, frozen=True):
    """How two parts agree, tensor by tensor, before it is known whether a test has linked them."""

    of_part: _Tensors
    table: bool
    least: float

    def told(self, tested: bool) -> EqualNumbers:
        """How they agree.

        Numbers that are only equal after rounding to a grid have no null of their own: gains of two
        strangers near one lie within a step of a coarse one. They count where a test has linked the
        part. A cast to a shorter float has one result, which is as good as equality.
        """
        found, least = self.of_part.tensors.values(), self.least
        exact = max((one.information for one in found if one.exact), default=0.0)
        bits = min((one.bits for one in found if one.bits is not None), default=None)
        consistent = bool(found) and self.of_part.complete and all(one.same for one in found)
        if not found or (not tested and exact < least):
            return EqualNumbers(False, False, bits=bits, consistent=consistent)
        informed = max((one.information for one in found), default=0.0) >= least
        share = self.of_part.share if informed else 0.0
        alike = {name: one.alike for name, one in self.of_part.tensors.items()}
        spared = any(one.spared for one in found)
        return EqualNumbers(
            all=informed and consistent and not any(one.lost for one in found),
            any=informed,
            share=share,
            alike=alike if informed else {},
            information=exact if exact >= least else 0.0,
            bits=bits,
            kept=informed and (not self.table or share == 1.0) and not spared,
            spared=informed and not self.table and spared,
            consistent=consistent,
        )


class _Agreement(Struct, frozen=True):
    """How one tensor agrees: whether all of it does, if need be after rounding to so many bits,
    and the share of its rows, or of its numbers other than zero where single ones were spared;
    whether no other arrangement of the numbers would; how many numbers these rows stand for; how
    alike equal numbers make the whole; whether nothing but a constant is left of it after rounding.
    """

    same: bool
    bits: int | None
    information: float
    exact: bool
    rows: float
    numbers: int
    alike: float
    lost: bool = False
    spared: bool = False


def information_for(pairs: int) -> float:
    """The least information of equal numbers where so many pairs of parts may meet."""
    return INFORMATION + math.log10(max(pairs, 1))


class _Tensors(Struct, frozen=True):
    """How the tensors of two parts agree, how many numbers either part has, and whether they have
    the same tensors and most of them were compared: a small budget leaves some unread in one model.
    Tensors that tell nothing, such as constants, count nowhere."""

    tensors: Mapping[str, _Agreement]
    numbers: int
    complete: bool

    @property
    def share(self) -> float:
        """The share of the numbers that agrees."""
        return sum(one.rows * one.numbers for one in self.tensors.values()) / max(self.numbers, 1)


def copies(
    a: Sample, b: Sample, ours: Collection[Part], theirs: Collection[Part]
) -> dict[Part, list[Part]]:
    """Parts of the layers with those of the second model, at any place, that have a row of theirs.

    Rows of one role and number are looked up as bfloat16, in which a cast begins as it was.
    """
    least = information_for(len(ours) * len(theirs))
    places: dict[_Row, list[Part]] = {}
    for part in theirs:
        for row, _ in _first_rows(b, part):
            places.setdefault(row, []).append(part)
    found = {}
    for part in ours:
        known = [
            [to for to in places.get(row, ()) if to.component is part.component]
            for row, values in _first_rows(a, part)
            if row in places and arrangements(values) >= least
        ]
        found[part] = list(dict.fromkeys(to for some in known for to in some))
    return found


_Row = tuple[TensorKey, int, bytes]


def _first_rows(sample: Sample, part: Part) -> Iterator[tuple[_Row, Floats]]:
    """The first row of each tensor of a part as it would be in bfloat16, and its numbers."""
    for key, (index, stored) in tensors_of(sample, part).items():
        rows = _as_vector(stored)
        if len(rows):
            cast = rows[:1].astype(ml_dtypes.bfloat16)
            yield (key, int(index[0]), cast.tobytes()), cast.astype(np.float32)


def _tensors(a: Sample, b: Sample, part: Part, partner: Part, least: float) -> _Tensors:
    """Tensors of equal name; what has no like in the other model, or was not read, counts too."""
    sizes = tensor_sizes(a, part), tensor_sizes(b, partner)
    found: dict[str, _Agreement] = {}
    silent = 0
    for name, (ours, theirs) in compared(a, b, part, partner, stored=True):
        often = part.component in _OFTEN_COMPUTED
        agreement = _compare(ours, theirs, least, often)
        if agreement is not None:
            if _is_nameless(part, name) and _is_list(ours[1], sizes[0][name]):
                agreement = replace(agreement, information=0.0, rows=float(agreement.same))
            elif agreement.same and often and _is_computed(ours[1]):
                agreement = replace(agreement, information=0.0)
            size, most = sorted(some[name] for some in sizes)
            telling = not agreement.same or agreement.lost or agreement.information > 0
            silent += 0 if telling else most
            found[name] = replace(agreement, numbers=size if telling else 0)
    names = sizes[0].keys() | sizes[1].keys()
    numbers = sum(max(some.get(name, 0) for some in sizes) for name in names)
    known = sum(sizes[0].get(name, 0) for name in found)
    complete = sizes[0] == sizes[1] and known > _MOST * numbers
    return _Tensors(found, numbers - silent, complete)


def _tables(a: Sample, b: Sample, part: Part, partner: Part, least: float) -> _Tensors:
    """Rows of equal tokens; of equal numbers where no spelling is known in both models.

    Rows that only the longer table has count too, unless they are padding. Biases must agree for
    all to be equal, and link nobody: strangers may have the frequencies of one text.
    """
    found: dict[str, _Agreement] = {}
    for rows_of in (_spelt, _by_number):
        x, y = rows_of(a, part.component), rows_of(b, partner.component)
        agreement = None if x is None or y is None else _compare(x, y, least)
        if agreement is not None:
            found[_ROWS] = agreement
            break
    else:
        return _Tensors({}, 0, False)
    (ours, sizes), (theirs, others) = (
        _of_table(*one, found[_ROWS].numbers) for one in ((a, part), (b, partner))
    )
    for name in (ours.keys() & theirs.keys()) - {_ROWS}:
        agreement = _compare(ours[name], theirs[name], least)
        if agreement is not None:
            found[name] = replace(agreement, information=0.0, rows=float(agreement.same))
    shorter, longer = sorted((sizes[_ROWS], others[_ROWS]))
    long = (a, part) if sizes[_ROWS] == longer else (b, partner)
    if shorter < longer and _is_padded(*long, shorter, longer):
        sizes[_ROWS] = others[_ROWS] = shorter
    silent = _unnamed(a, part.component), _unnamed(b, partner.component)
    agreement = _compare(*silent, least)
    if agreement is not None:
        found[_UNNAMED] = replace(agreement, information=0.0)
        for one in (sizes, others):
            one[_UNNAMED] = agreement.numbers
            one[_ROWS] -= agreement.numbers
    told = {
        name: replace(one, numbers=min(sizes[name], others[name])) for name, one in found.items()
    }
    names = sizes.keys() | others.keys()
    numbers = sum(max(one.get(name, 0) for one in (sizes, others)) for name in names)
    return _Tensors(told, numbers, sizes == others)


def _of_table(sample: Sample, part: Part, numbers: int) -> tuple[dict[str, Rows], dict[str, int]]:
    """What was read of a table and of its biases, and how many numbers they have.

    A head may be the embedding of the other model: both go by one name. Where nobody knows how
    long the table is, it has the `numbers` that were compared.
    """
    name = Role.EMBED if part.component is Component.EMBEDDING else Role.LM_HEAD
    read = {key: rows for (key, _), rows in tensors_of(sample, part).items()}
    sizes = tensor_sizes(sample, part)
    return (
        {_ROWS + key.removeprefix(name): rows for key, rows in read.items()},
        {_ROWS: numbers} | {_ROWS + key.removeprefix(name): size for key, size in sizes.items()},
    )


def _is_padded(sample: Sample, part: Part, shorter: int, longer: int) -> bool:
    """Whether the rows of a table beyond a shorter one were all read, and tell nothing."""
    rows = _by_number(sample, part.component)
    if rows is None or not rows[1].size:
        return False
    more = rows[1][rows[0] >= shorter // rows[1].shape[1]]
    alike = (more == more[:1]).all() or (more == more[:, :1]).all()
    return bool(alike) and more.size == longer - shorter


def _is_nameless(part: Part, tensor: str) -> bool:
    """Whether nobody knows what a tensor is."""
    return part.component is Component.OTHER and _NAMELESS in f".{tensor}"


def _is_list(rows: Floats, numbers: int) -> bool:
    """Whether a tensor is one row of numbers.

    Strangers store statistics of the same data, or a filter from the same book.
    """
    return rows.size == numbers and len(_as_vector(rows)) == 1


def _is_computed(rows: Floats) -> bool:
    """Whether neighbouring rows somewhere in a table are what a formula gives.

    The first may be that of a token that stands before all positions. State spaces decay at rates
    whose logarithms are stored.
    """
    starts = {0, 1, len(rows) // 2}
    some = (rows[start : start + _RUN, :_LOOKED_AT] for start in sorted(starts))
    if any(computed(one) or computed(np.exp(np.minimum(one, _LOG))) for one in some):
        return True
    rows = _as_vector(rows)
    return tabulated(rows) or (len(rows) == 1 and on_course(rows, np.ones(rows.shape, np.bool_)))


def _compare(ours: Rows, theirs: Rows, least: float, often: bool = False) -> _Agreement | None:
    """Rows of equal number; None where there is none, or where they have different lengths.

    Where a formula may have given what is equal, it counts for nothing. `often` says that the part
    is one whose tensors are often computed.
    """
    x, y = map(_as_vector, at_equal_numbers(ours, theirs))
    if not x.size or x.shape != y.shape:
        return None
    whole = equality(x, y)
    if whole.same:
        lost = not whole.equal and (constant(x) or constant(y))
        share = 0.0 if lost else 1.0
        told = whole.bits, whole.information, whole.exact
        return _Agreement(True, *told, share, x.size, alike=share, lost=lost)
    rows, of_row = equal_rows(x, y, least)
    if rows and often and _is_computed(x[found_in(x, y)]):
        rows, of_row = 0.0, 0.0
    share, of_all, information = equal_places(x, y)
    if information >= least and _may_be_computed(x, (x == y) & (x != 0), often):
        information = 0.0
    if information < least or share <= rows:
        return _Agreement(False, None, of_row, True, rows, x.size, alike=rows)
    return _Agreement(False, None, information, True, share, x.size, alike=of_all, spared=True)


def _may_be_computed(rows: Floats, equal: NDArray[np.bool_], often: bool) -> bool:
    """Whether a formula may have given the numbers of a table that are equal in another one."""
    return on_course(rows, equal) or (often and tabulated(rows[equal][None]))


def _as_vector(rows: Floats) -> Floats:
    """Rows of one number each, as those of a bias, as one row: alone they tell nothing."""
    return rows.T if rows.shape[1] == 1 else rows


def _spelt(sample: Sample, component: Component) -> Rows | None:
    """Rows of a table by the spelling of their tokens: a vocabulary may have been moved."""
    table = sample.embedding if component is Component.EMBEDDING else sample.head
    return None if table is None else (table.names, table.rows)


def _unnamed(sample: Sample, component: Component) -> Rows:
    """Rows of a table that no token names, by their numbers."""
    rows = _by_number(sample, component)
    table = sample.embedding if component is Component.EMBEDDING else sample.head
    if rows is None or table is None:
        return np.empty(0, np.int64), np.empty((0, 0), np.float32)
    silent = ~np.isin(rows[0], table.ids)
    return rows[0][silent], rows[1][silent]


def _by_number(sample: Sample, component: Component) -> Rows | None:
    """Rows of a table by their numbers."""
    embedding = component is Component.EMBEDDING
    table = sample.embedding if embedding else sample.head
    few = sample.few.get((Address(Role.EMBED if embedding else Role.LM_HEAD), False))
    known = [one for one in (None if table is None else (table.ids, table.rows), few) if one]
    if not known:
        return None
    numbers, first = np.unique(np.concatenate([one[0] for one in known]), return_index=True)
    return numbers, np.concatenate([one[1] for one in known])[first]
