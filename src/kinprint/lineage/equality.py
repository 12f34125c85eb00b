"""Which parts of two models hold the same numbers: at the same places, if need be after rounding.

Equality comes before any test, since it needs no null: a row of distinct numbers has so many
arrangements that two models do not share one by accident.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Container, Iterator, Mapping

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
from kinprint.lineage.reading.sample import Floats, Indices, Sample
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
    both = (a, part), (b, partner)
    sizes = [_sizes(*one, tensor_sizes(*other)) for one, other in (both, both[::-1])]
    found: dict[str, _Agreement] = {}
    silent = 0
    for name, (ours, theirs) in compared(a, b, part, partner, stored=True):
        often = part.component in _OFTEN_COMPUTED
        agreement = _compare(ours, theirs, least, often)
        if agreement is not None:
            if _is_nameless(part, name) and _is_list(ours[1], sizes[0].get(name, 0)):
                agreement = replace(agreement, information=0.0, rows=float(agreement.same))
            elif agreement.same and often and _is_computed(ours[1]):
                agreement = replace(agreement, information=0.0)
            size, most = sorted(some.get(name, 0) for some in sizes)
            telling = not agreement.same or agreement.lost or agreement.information > 0
            silent += 0 if telling else most
            found[name] = replace(agreement, numbers=size if telling else 0)
    names = sizes[0].keys() | sizes[1].keys()
    numbers = sum(max(some.get(name, 0) for some in sizes) for name in names)
    known = sum(sizes[0].get(name, 0) for name in found)
    complete = sizes[0] == sizes[1] and known > _MOST * numbers
    return _Tensors(found, numbers - silent, complete)


def _sizes(sample: Sample, part: Part, others: Container[str]) -> dict[str, int]:
    """How many numbers tensors have, without biases of zeros that are not among `others`."""
    return {
        name: size
        for name, size in tensor_sizes(sample, part).items()
        if name in others or not _is_no_bias(sample, part, name)
    }


def _is_no_bias(sample: Sample, part: Part, name: str) -> bool:
    """Whether a bias was read whole and is zero, which is as good as none."""
    rows = tensors_of(sample, part).get((name, False))
    if rows is None or not name.endswith("bias"):
        return False
    return rows[1].size == tensor_sizes(sample, part).get(name) and not rows[1].any()


def _tables(a: Sample, b: Sample, part: Part, partner: Part, least: float) -> _Tensors:
    """Rows of equal tokens, those that no token names by their numbers, and biases.

    Biases must agree for all to be equal, and link nobody: strangers may have the frequencies of
    one text. A bias of zeros is none.
    """
    ours, theirs = _Table.of(a, part), _Table.of(b, partner)
    at, to = ours.partners(theirs)
    found: dict[str, _Agreement] = {}
    agreement = _compare((at, ours.rows[at]), (at, theirs.rows[to]), least)
    sizes = dict(ours.biases), dict(theirs.biases)
    covered = True
    if agreement is not None:
        whole = ours.whole and theirs.whole
        part_of_both = not whole and ours.size and theirs.size
        read = min(ours.size, theirs.size) if part_of_both else agreement.numbers
        found[_ROWS] = replace(agreement, numbers=read)
        padded = [whole and one.is_padded(done) for one, done in ((ours, at), (theirs, to))]
        covered = all(padded) or not whole
        for one, table, spare in zip(sizes, (ours, theirs), padded, strict=True):
            one[_ROWS] = read if spare else max(table.size, read)
    elif ours.rows.size or theirs.rows.size:
        return _Tensors({}, 0, False)
    for name in ours.read.keys() & theirs.read.keys():
        told = _compare(ours.read[name], theirs.read[name], least)
        if told is not None:
            numbers = min(one.get(name, 0) for one in sizes)
            found[name] = replace(told, information=0.0, rows=float(told.same), numbers=numbers)
    names = sizes[0].keys() | sizes[1].keys()
    total = sum(max(one.get(name, 0) for one in sizes) for name in names)
    return _Tensors(found, total, bool(found) and covered and sizes[0] == sizes[1])


class _Table(Struct, frozen=True):
    """A table of tokens as it was read.

    Attributes
    ----------
    numbers, names, rows : the rows that were read, by their numbers and by what tokens are called;
        0 where no token names a row.
    size : how many numbers the table has; 0 where nobody knows.
    read, biases : what was read of its biases, and how many numbers they have.
    """

    numbers: Indices
    names: Indices
    rows: Floats
    size: int
    read: Mapping[str, Rows]
    biases: Mapping[str, int]

    @classmethod
    def of(cls, sample: Sample, part: Part) -> _Table:
        """The embedding of a model, or its head."""
        embedding = part.component is Component.EMBEDDING
        role, table = (Role.EMBED, sample.embedding) if embedding else (Role.LM_HEAD, sample.head)
        few = sample.few.get((Address(role), False))
        known = [one for one in (None if table is None else (table.ids, table.rows), few) if one]
        numbers, rows = np.empty(0, np.int64), np.empty((0, 0), np.float32)
        if known:
            numbers, first = np.unique(np.concatenate([one[0] for one in known]), return_index=True)
            rows = np.concatenate([one[1] for one in known])[first]
        names = np.zeros(len(numbers), np.int64)
        if table is not None:
            names[np.searchsorted(numbers, table.ids)] = table.names
        read = {key: one for (key, _), one in tensors_of(sample, part).items() if key != role}
        sizes = tensor_sizes(sample, part)
        biases = {
            key.removeprefix(role): size
            for key, size in sizes.items()
            if key != role and not _is_no_bias(sample, part, key)
        }
        told = {key.removeprefix(role): one for key, one in read.items()}
        return cls(numbers, names, rows, sizes.get(role, 0), told, biases)

    @property
    def whole(self) -> bool:
        """Whether all rows were read."""
        return self.rows.size == self.size

    def partners(self, other: _Table) -> tuple[Indices, Indices]:
        """Places of rows that answer to each other: by number where names agree, else by name.

        Where no token is in both, by number alone. One model may name a row that another does not.
        """
        _, at, to = np.intersect1d(self.numbers, other.numbers, return_indices=True)
        if not np.isin(self.names[self.names != 0], other.names).any():
            return at, to
        ours, theirs = self.names[at], other.names[to]
        same = (ours == theirs) | (ours == 0) | (theirs == 0)
        at, to = at[same], to[same]
        left, right = (
            np.setdiff1d(np.flatnonzero(one.names), done) for one, done in ((self, at), (other, to))
        )
        _, x, y = np.intersect1d(self.names[left], other.names[right], return_indices=True)
        return np.concatenate([at, left[x]]), np.concatenate([to, right[y]])

    def is_padded(self, paired: Indices) -> bool:
        """Whether rows without a partner tell nothing: constants, or one row again and again."""
        alone = np.setdiff1d(np.arange(len(self.rows)), paired)
        more = self.rows[alone]
        constant_rows = bool((more == more[:, :1]).all())
        repeated = len(more) > 1 and bool((more == more[:1]).all())
        return constant_rows or (repeated and not self.names[alone].any())


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
