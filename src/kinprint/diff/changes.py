"""Tensor by tensor, what changed: blocks are read, summed and forgotten.

Threads share the blocks of all tensors, so that a few large ones keep all cores at work. Sums are
put together in the order of the blocks: the result does not depend on who was first.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from math import prod

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kinprint.algebra import calm_algebra, cores
from kinprint.device import on_card
from kinprint.diff.blocks import NUMBERS, Extent, extents, matrix_shape, stored_block
from kinprint.diff.journal import Journal
from kinprint.diff.pairing import Match, TensorPair
from kinprint.diff.results import Directions, Estimate, Rounding, TensorChange
from kinprint.errors import KinprintError, attempt
from kinprint.lineage.reading.parts import component_of
from kinprint.measure.change import ChangeSums, change_sums
from kinprint.measure.low_rank import rounding_variance, spectrum_of
from kinprint.measure.multiples import row_factors
from kinprint.measure.rounding import coarser, equality, grid_of_one
from kinprint.model.model import Model, wants_of
from kinprint.model.places import Place
from kinprint.reader.decode import Array, as_float32, is_single
from kinprint.reader.fetch import Want, joined_wants
from kinprint.records import SINGLE, Cost, Side, TensorStatus
from kinprint.text import Message, message
from kinprint.workers import Threads

_LOOKED_AT = 1 << 16  # numbers of a tensor that tell whether it was rounded
_SPREAD = 0.01  # of a vector's numbers, in terms of their mean: less may be rounding
_FLOAT = 16  # bits of the shortest float whose roundings are exact for any number
_FACTORS = 64  # of rows and of columns that are kept
_ON_CARD, _SENDING = 1 << 24, 8  # numbers of a block that a graphics card sums, and threads
_TOGETHER = 64 << 20  # bytes that are asked for at once
_AHEAD = 3  # blocks for each thread that are read before they are needed


class _Block(Struct, frozen=True, eq=False):
    """Sums over a block of two tensors; of the first block also what tells of rounding, and factors
    of rows and columns."""

    sums: ChangeSums
    rounding: Rounding | None = None
    grid: int | None = None
    variance: float | None = None
    centred: float | None = None
    factors: tuple[tuple[float, ...], tuple[float, ...]] = ((), ())


def tensor_changes(
    a: Model, b: Model, pairs: Sequence[TensorPair], *, turned: bool = False
) -> Iterator[TensorChange]:
    """What became of each tensor, in the order of the pairs.

    Where the basis of one model was `turned`, none is compared number by number.
    """
    if turned:
        yield from map(_in_other_basis, pairs)
        return
    waiting: deque[tuple[TensorChange, list[Future[_Block | KinprintError]]]] = deque()
    journal = Journal(a, b, pairs)
    ahead = _Ahead(a, b, pairs)
    ahead.expect()

    def finished() -> TensorChange:
        told, futures = waiting.popleft()
        if not futures:
            return told
        change = _told(told, futures)
        journal.add(change)
        return change

    threads = _SENDING if on_card() else cores()
    with calm_algebra():
        pool = Threads(threads, "kinprint-diff")
        try:
            inside = 0
            for at, pair in enumerate(pairs):
                told = described(pair)
                known = journal.get(told)
                if known is None:
                    ahead.fetch(at)
                futures = []
                if known is not None:
                    told = known
                    ahead.handled(pair.size)
                elif told.status is TensorStatus.COMPARED:
                    futures = [
                        pool.submit(attempt, _block, a, b, pair, extent, number == 0, ahead)
                        for number, extent in enumerate(_extents(pair))
                    ]
                    inside += len(futures)
                waiting.append((told, futures))
                while waiting and inside > _AHEAD * threads:
                    inside -= len(waiting[0][1])
                    yield finished()
            while waiting:
                yield finished()
            journal.done()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


class _Ahead:
    """Bytes that are not on this machine, made available some tensors before they are summed; of
    those that are, whoever watches is told how many are done."""

    def __init__(self, a: Model, b: Model, pairs: Sequence[TensorPair]) -> None:
        self._models, self._pairs, self._next = (a, b), pairs, 0
        self._here = all(one.checkpoint.ref.kind == "local" for one in (a, b))

    def expect(self) -> None:
        """Tell how much there is to do."""
        if self._here:
            self._models[0].checkpoint.fetcher.expect(sum(pair.size for pair in self._pairs))

    def handled(self, nbytes: int) -> None:
        """Tell that some of it is done."""
        if self._here:
            self._models[0].checkpoint.fetcher.handled(nbytes)

    def fetch(self, at: int) -> None:
        """Read what the tensor at a place needs, and those after it up to a limit."""
        if self._here or at < self._next:
            return
        self._next = at
        wants: list[Want] = []
        size = 0
        while self._next < len(self._pairs) and size < _TOGETHER:
            some = _wants(*self._models, self._pairs[self._next])
            size += sum(span.size for want in some for span in want.ranges)
            wants += some
            self._next += 1
        self._models[0].checkpoint.fetcher.ensure(joined_wants(wants))


def reading_cost(a: Model, b: Model, pairs: Sequence[TensorPair]) -> Cost:
    """What reading all tensors that can be compared takes."""
    wants = [want for pair in pairs for want in _wants(a, b, pair)]
    plans = a.checkpoint.fetcher.plan(joined_wants(wants))
    return sum((plan.cost for plan in plans), Cost())


def _wants(a: Model, b: Model, pair: TensorPair) -> list[Want]:
    if _status(pair) is not TensorStatus.COMPARED:
        return []
    assert pair.a is not None and pair.b is not None
    return wants_of([a.reading(pair.a), b.reading(pair.b)])


def _extents(pair: TensorPair) -> list[Extent]:
    """Blocks of what corresponds; where rows or columns are picked, all of the tensor is one."""
    assert pair.a is not None and pair.b is not None
    if pair.rows is None and pair.columns is None:
        return extents([pair.a, pair.b], _ON_CARD if on_card() else NUMBERS)
    rows, columns = pair.matched or (0, 0)
    return [Extent(range(rows), range(columns))]


@np.errstate(over="ignore", invalid="ignore")
def _block(
    a: Model, b: Model, pair: TensorPair, extent: Extent, first: bool, ahead: _Ahead
) -> _Block:
    assert pair.a is not None and pair.b is not None and pair.matched is not None
    if pair.rows is None and pair.columns is None:
        x, y = stored_block(a, pair.a, extent), stored_block(b, pair.b, extent)
    else:
        x = _picked(a, pair.a, pair, Match.of_a)
        y = _picked(b, pair.b, pair, Match.of_b)
    x, y = summable(x), summable(y)
    sums = change_sums(x, y, pair.matched, extent.rows.start, extent.columns.start)
    ahead.handled(x.nbytes + y.nbytes)
    if not first or sums.equal == sums.numbers:
        return _Block(sums, variance=rounding_variance(y[:1]) if first else None)
    rows = max(1, _LOOKED_AT // max(len(extent.columns), 1))
    centred = centred_cosine(x, y)
    x, y = x[:rows], y[:rows]
    rounding = rounding_of(pair, x, y)
    grid = grid_beside(x, y, rounding)
    return _Block(sums, rounding, grid, rounding_variance(y), centred, _factors(x, y))


def centred_cosine(x: Array, y: Array) -> float | None:
    """The cosine of two vectors once the mean was taken off both; None of matrices, and where a
    vector is nearly one number: all gains are about one, those of strangers too."""
    if x.shape[1] != 1:
        return None
    both = np.stack([np.asarray(as_float32(one), np.float64).reshape(-1) for one in (x, y)])
    means = both.mean(axis=1, keepdims=True)
    found = both - means
    sizes = np.sqrt(np.square(found).mean(axis=1))
    if not np.isfinite(sizes).all() or (sizes <= _SPREAD * np.abs(means[:, 0])).any():
        return None
    return float((found[0] * found[1]).mean() / (sizes[0] * sizes[1]))


def _factors(x: Array, y: Array) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """What the first rows were multiplied by, and the first columns."""
    before, after = np.asarray(as_float32(x)), np.asarray(as_float32(y))
    found = row_factors(before, after), row_factors(before.T, after.T)
    rows, columns = (tuple(one[:_FACTORS].tolist()) for one in found)
    return rows, columns


def summable(array: Array) -> Array:
    """Numbers of a type that arithmetic knows, and that has all of them."""
    return array if array.dtype.name in _KNOWN else as_float32(array)


_WIDE = ("float64", "int32", "uint32", "int64", "uint64")  # with numbers that float32 has not
_KNOWN = ("bfloat16", "float16", "float32", *_WIDE)


def _picked(
    model: Model, place: Place, pair: TensorPair, picked: Callable[[Match, Array, int], Array]
) -> Array:
    """Rows and columns of a tensor that have partners."""
    height, width = matrix_shape(place.shape or ())
    found = stored_block(model, place, Extent(range(height), range(width)))
    for axis, match in enumerate((pair.rows, pair.columns)):
        if match is not None:
            found = picked(match, found, axis)
    return found


def rounding_of(pair: TensorPair, x: Array, y: Array) -> Rounding | None:
    """Whether one tensor holds the numbers of the other, rounded, as some rows of both tell.

    One number everywhere lies on the grids of all few bits, and is no rounding to any of them.
    """
    assert pair.a is not None and pair.b is not None
    found = equality(as_float32(x), as_float32(y))
    if found.equal and is_single(x) != is_single(y):
        return Rounding(SINGLE, Side.B if is_single(y) else Side.A, exact=True)
    if found.bits is None or (found.bits < _FLOAT and (_is_constant(x) or _is_constant(y))):
        return None
    place = coarser(as_float32(x), as_float32(y))
    if place is None:
        place = int(len(np.unique(y)) <= len(np.unique(x)))
    return Rounding(found.bits, Side.B if place else Side.A, found.exact)


def _is_constant(values: Array) -> bool:
    return bool((values == values.flat[0]).all())


def grid_beside(x: Array, y: Array, rounding: Rounding | None) -> int | None:
    """The bits of a grid that the second tensor lies on and is not the first one rounded to."""
    if rounding is not None or x.shape[1] == 1:
        return None
    return grid_of_one(as_float32(x), as_float32(y))


def _told(told: TensorChange, futures: Sequence[Future[_Block | KinprintError]]) -> TensorChange:
    """The record of a tensor once its blocks are summed."""
    total: ChangeSums | None = None
    begun: _Block | None = None
    for future in futures:
        block = future.result()
        if isinstance(block, KinprintError):
            return replace(told, status=TensorStatus.UNREADABLE, reason=block.message)
        begun = begun or block
        total = block.sums if total is None else total + block.sums
    assert total is not None and begun is not None
    rows, columns = begun.factors
    found = with_sums(told, total, begun.rounding, begun.variance)
    return replace(
        found, grid=begun.grid, centred=begun.centred, row_factors=rows, column_factors=columns
    )


def with_sums(
    told: TensorChange, sums: ChangeSums, rounding: Rounding | None, variance: float | None
) -> TensorChange:
    """A record completed by what the sums over a whole tensor say."""
    found = None if len(told.shape) < 2 else spectrum_of(sums, variance)
    directions = None
    if found is not None:
        directions = Directions(found.effective, found.rank, found.low, found.high, found.whiteness)
    errors = None
    if variance is not None and sums.squares > 0:
        errors = float(np.sqrt(variance * sums.numbers / sums.squares))
    return replace(
        told,
        numbers=sums.numbers,
        read=sums.numbers,
        changed=Estimate(sums.changed),
        relative=Estimate(sums.relative) if sums.broken < sums.numbers else None,
        largest=sums.largest,
        scale=sums.scale,
        cosine=sums.cosine,
        broken=sums.broken,
        zeroed=sums.zeroed / max(sums.numbers, 1),
        filled=sums.filled / max(sums.numbers, 1),
        zeros=sums.zeros / max(sums.numbers, 1),
        rounding=rounding,
        directions=directions,
        left=sums.left,
        uneven=sums.uneven,
        rounding_errors=errors,
    )


def described(pair: TensorPair) -> TensorChange:
    """What is known of a tensor before its numbers are read."""
    address = pair.address
    source = None if pair.a is None else pair.a.address
    shape = (pair.b or pair.a).shape or ()  # type: ignore[union-attr]
    matched = pair.matched
    if matched is not None and (pair.rows is not None or pair.columns is not None):
        shape = matched if len(shape) > 1 else matched[:1]
    status = _status(pair)
    return TensorChange(
        role=address.role,
        tower=address.tower,
        layer=address.layer,
        expert=address.expert,
        from_layer=None if source is None else source.layer,
        from_expert=None if source is None else source.expert,
        component=component_of(address.role),
        a=None if pair.a is None else pair.a.weight.name,
        b=None if pair.b is None else pair.b.weight.name,
        a_format=None if pair.a is None else pair.a.weight.format.name,
        b_format=None if pair.b is None else pair.b.weight.format.name,
        a_bits=None if pair.a is None else pair.a.weight.format.bits,
        b_bits=None if pair.b is None else pair.b.weight.format.bits,
        shape=shape,
        status=status,
        reason=_reason(pair, status),
        numbers=prod(shape),
    )


def _in_other_basis(pair: TensorPair) -> TensorChange:
    told = described(pair)
    if told.status is not TensorStatus.COMPARED:
        return told
    reason = message("diff.reason.other-basis")
    return replace(told, status=TensorStatus.OTHER_BASIS, reason=reason)


def _status(pair: TensorPair) -> TensorStatus:
    if pair.a is None:
        return TensorStatus.ONLY_B
    if pair.b is None:
        return TensorStatus.ONLY_A
    for place in (pair.a, pair.b):
        if place.weight.refusal is not None or place.shape is None or pair.missing:
            return TensorStatus.UNREADABLE
    return TensorStatus.COMPARED if pair.matched is not None else TensorStatus.OTHER_SHAPE


def _reason(pair: TensorPair, status: TensorStatus) -> Message | None:
    if status is TensorStatus.UNREADABLE and pair.missing:
        return message("diff.reason.not-in-replica")
    if status in (TensorStatus.UNREADABLE, TensorStatus.ONLY_A, TensorStatus.ONLY_B):
        places = [place for place in (pair.a, pair.b) if place is not None]
        return next((one.weight.refusal for one in places if one.weight.refusal), None)
    if status is TensorStatus.OTHER_SHAPE:
        assert pair.a is not None and pair.b is not None
        shapes = {"a": list(pair.a.shape or ()), "b": list(pair.b.shape or ())}
        return message("diff.reason.other-shape", **shapes)
    return None
