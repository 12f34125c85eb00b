"""Which parts of two models hold the same numbers: at the same places, if need be after rounding.

Equality comes before any test, since it needs no null: a row of distinct numbers has so many
arrangements that two models do not share one by accident.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Container, Iterator, Mapping
from itertools import permutations

import ml_dtypes
import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from kinprint.lineage.parts.agreement import (
    Agreement,
    Agreements,
    as_vector,
    both_sizes,
    compare_rows,
    is_computed,
)
from kinprint.lineage.parts.equal_tables import compare_tables
from kinprint.lineage.parts.tensors import (
    TensorKey,
    compared,
    is_no_bias,
    tensor_sizes,
    tensors_of,
)
from kinprint.lineage.reading.parts import TABLES
from kinprint.lineage.reading.sample import Floats, Sample
from kinprint.measure.equal_rows import arrangements
from kinprint.records import Component, Part, Role

INFORMATION = 12.0
"""log10 of the arrangements that equal numbers must have: fewer could be equal by accident."""

_MOST = 0.5  # of the numbers of a part: so many lie in tensors that were compared
_OFTEN_COMPUTED = (Component.MIXER, Component.OTHER)
_NAMELESS = f".{Role.OTHER}:"  # before what tensors without a role are called by


class EqualNumbers(Struct, frozen=True):
    """How the tensors of a part agree.

    Attributes
    ----------
    all : whether all of them hold the same numbers.
    any : whether one of them does, or some rows of one.
    share : the share of their numbers that does, rows of others counted by theirs, if the smaller
        of two tensors is the whole.
    least : the same if the larger one is.
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
    least: float = 0.0
    alike: Mapping[str, float] = field(default_factory=dict)
    information: float = 0.0
    bits: int | None = None
    kept: bool = False
    spared: bool = False
    consistent: bool = False


def compare_numbers(
    a: Sample, b: Sample, part: Part, partner: Part, least: float
) -> ComparedNumbers:
    """Compare the numbers that were read of a part with those of its partner.

    `least` is log10 of the arrangements that equal numbers must have: more than `INFORMATION` where
    several pairs of parts are tried.
    """
    table = part.component in TABLES
    found = (compare_tables if table else _tensors)(a, b, part, partner, least)
    return ComparedNumbers(found, table, least)


class ComparedNumbers(Struct, frozen=True):
    """How two parts agree, tensor by tensor, before it is known whether a test has linked them."""

    of_part: Agreements
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
        share, least_share = self.of_part.shares if informed else (0.0, 0.0)
        alike = {name: one.alike for name, one in self.of_part.tensors.items()}
        spared = any(one.spared for one in found)
        return EqualNumbers(
            all=informed and consistent and not any(one.lost for one in found),
            any=informed,
            share=share,
            least=least_share,
            alike=alike if informed else {},
            information=exact if exact >= least else 0.0,
            bits=bits,
            kept=informed and (not self.table or least_share == 1.0) and not spared,
            spared=informed and not self.table and spared,
            consistent=consistent,
        )


def information_for(pairs: int) -> float:
    """The least information of equal numbers where so many pairs of parts may meet."""
    return INFORMATION + math.log10(max(pairs, 1))


def copies(
    a: Sample, b: Sample, ours: Collection[Part], theirs: Collection[Part]
) -> dict[Part, list[Part]]:
    """Parts of the layers with those of the second model, at any place, that have a row of theirs.

    Rows of one role and number are looked up as bfloat16, in which a cast begins as it was. So are
    tables of tokens in each other's place, where both models have an embedding and a head.
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
    tables = [part for part in ours if part.component in TABLES and part in theirs]
    for part, other in permutations(tables, 2):
        if compare_numbers(a, b, part, other, least).told(tested=False).any:
            found[part].append(other)
    return found


_Row = tuple[TensorKey, int, bytes]


def _first_rows(sample: Sample, part: Part) -> Iterator[tuple[_Row, Floats]]:
    """The first row of each tensor of a part as it would be in bfloat16, and its numbers."""
    for key, (index, stored) in tensors_of(sample, part).items():
        rows = as_vector(stored)
        if len(rows):
            cast = rows[:1].astype(ml_dtypes.bfloat16)
            yield (key, int(index[0]), cast.tobytes()), cast.astype(np.float32)


def _tensors(a: Sample, b: Sample, part: Part, partner: Part, least: float) -> Agreements:
    """Tensors of equal name; what has no like in the other model, or was not read, counts too."""
    both = (a, part), (b, partner)
    sizes = [_sizes(*one, tensor_sizes(*other)) for one, other in (both, both[::-1])]
    found: dict[str, Agreement] = {}
    numbers = both_sizes(*sizes)
    telling = dict(numbers)
    for name, (ours, theirs) in compared(a, b, part, partner, stored=True):
        often = part.component in _OFTEN_COMPUTED
        agreement = compare_rows(ours, theirs, least, often)
        if agreement is not None:
            if _is_nameless(part, name) and _is_list(ours[1], sizes[0].get(name, 0)):
                agreement = replace(agreement, information=0.0, rows=float(agreement.same))
            elif agreement.same and often and is_computed(ours[1]):
                agreement = replace(agreement, information=0.0)
            if agreement.same and not agreement.lost and not agreement.information > 0:
                telling.pop(name, None)
            if a.rounded.get((part, name)) != b.rounded.get((partner, name)):
                agreement = agreement.as_read()
            found[name] = replace(agreement, numbers=min(telling.get(name, (0,))))
    known = sum(sizes[0].get(name, 0) for name in found)
    complete = sizes[0] == sizes[1] and known >= _MOST * sum(map(max, numbers.values()))
    return Agreements(found, tuple(telling.values()), complete)


def _sizes(sample: Sample, part: Part, others: Container[str]) -> dict[str, int]:
    """How many numbers tensors have, without biases of zeros that are not among `others`."""
    return {
        name: size
        for name, size in tensor_sizes(sample, part).items()
        if name in others or not is_no_bias(sample, part, name)
    }


def _is_nameless(part: Part, tensor: str) -> bool:
    """Whether nobody knows what a tensor is."""
    return part.component is Component.OTHER and _NAMELESS in f".{tensor}"


def _is_list(rows: Floats, numbers: int) -> bool:
    """Whether a tensor is one row of numbers.

    Strangers store statistics of the same data, or a filter from the same book.
    """
    return rows.size == numbers and len(as_vector(rows)) == 1
