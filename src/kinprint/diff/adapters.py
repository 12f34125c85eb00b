"""Merged adapters: updates of a low rank in all matrices, or in those of some roles."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from kinprint.diff.findings import MOST
from kinprint.diff.results import OperationFound, TensorChange
from kinprint.measure.low_rank import HIGHEST
from kinprint.records import Operation
from kinprint.text import message

_FEWEST_ADAPTED = 3  # matrices: editors of single facts change one or two by a low rank


class Adapter(Struct, frozen=True):
    """A merged adapter, and matrices that it was not trained in, though they changed."""

    operation: OperationFound
    others: tuple[TensorChange, ...] = ()


def adapter_in_some(matrices: Sequence[TensorChange]) -> Adapter | None:
    """Updates of one rank in some roles or some layers, where others have none: adapters are put
    on these, and whatever is trained beside them is trained whole."""
    ranks = Counter(rank for rank in map(_rank, matrices) if rank is not None)
    if not ranks:
        return None
    rank, count = ranks.most_common(1)[0]
    if count < _FEWEST_ADAPTED:
        return None
    for key in (lambda one: one.role, lambda one: (one.tower, one.layer)):
        groups = _ranks_by(key, matrices, rank)
        adapted = {at for at, some in groups.items() if some.count(rank) >= MOST * len(some)}
        whole = _without_rank(groups)
        if adapted and adapted | whole == groups.keys():
            of = sum(map(len, groups.values()))
            evidence = message("diff.operation.adapter", rank=rank, count=count, of=of)
            others = tuple(one for one in matrices if key(one) in whole)
            return Adapter(OperationFound(Operation.ADAPTER, evidence, rank=rank), others)
    return None


_Key = Callable[[TensorChange], object]


def _ranks_by(
    key: _Key, matrices: Sequence[TensorChange], rank: int
) -> dict[object, list[int | None]]:
    """Ranks of changes by role or layer, of matrices that are large enough to show one."""
    groups: dict[object, list[int | None]] = {}
    for one in matrices:
        if one.directions is not None and rank <= HIGHEST * min(one.shape):
            groups.setdefault(key(one), []).append(_rank(one))
    return groups


def _rank(one: TensorChange) -> int | None:
    """The rank of a change, where it is clearly lower than rows and columns that changed at all:
    some that were replaced have a rank too, their number."""
    if one.directions is None or one.directions.rank is None or one.changed is None:
        return None
    rank = one.directions.rank
    return rank if rank <= HIGHEST * one.changed.value * min(one.shape) else None


def _without_rank(groups: Mapping[object, Sequence[int | None]]) -> set[object]:
    return {at for at, some in groups.items() if set(some) == {None}}


def adapter_in_all(matrices: Sequence[TensorChange]) -> Adapter | None:
    """Updates of low rank in nearly all matrices that are large enough to show it."""
    spread = [(min(one.shape), _rank(one)) for one in matrices if one.directions is not None]
    ranks = Counter(rank for _, rank in spread if rank is not None)
    if not ranks:
        return None
    rank = ranks.most_common(1)[0][0]
    able = [one for size, one in spread if rank <= HIGHEST * size]
    whole = _without_rank(_ranks_by(lambda one: one.role, matrices, rank))
    others = tuple(one for one in matrices if one.role in whole)
    low = [one for one in able if one is not None]
    if len(low) < MOST * len(able):
        return None
    fields = {"count": len(low), "of": len(able)}
    kind = Operation.ADAPTER if len(able) >= _FEWEST_ADAPTED else Operation.CHANGED
    if low.count(rank) >= MOST * len(able):
        evidence = message("diff.operation.adapter", rank=rank, **fields)
        return Adapter(OperationFound(kind, evidence, rank=rank), others)
    common = {one for one, times in Counter(low).items() if times >= 0.1 * len(low)}
    if sum(one in common for one in low) < MOST * len(able):
        return None
    several = ", ".join(map(str, sorted(common)))
    evidence = message("diff.operation.adapter-ranks", ranks=several, **fields)
    return Adapter(OperationFound(kind, evidence, rank=max(common)), others)
