"""Are numbers equal, or equal after rounding to the coarser of two grids?

Two copies of one tensor may differ by the format they are stored in: bfloat16 against float32, a
quantised file against the original. Then one holds the numbers of the other rounded to its grid.
Floating-point grids have a step that follows each number; quantised ones a step for a block of
neighbours, which is read off the distinct values that the block holds, or a table of levels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kinprint.measure.equal_rows import Floats, arrangements, some_rows

_FLOAT_FORMATS: tuple[tuple[Any, int], ...] = (
    (ml_dtypes.bfloat16, 16),
    (np.float16, 16),
    (ml_dtypes.float8_e4m3fn, 8),
    (ml_dtypes.float8_e5m2, 8),
)
_FARTHEST = 0.125, 2.0**-10  # by which a cast to any of them may change a number: a share, and more
_TIES = 0.25  # of numbers that rounding twice may put elsewhere: of many a sixteenth, of few more
_COARSEST = 1.0  # more than the square of what two bits miss by; strangers differ by 2
_FEW_BLOCKS = 16  # blocks, or some more, of which some must lie on a grid before all are looked at
_FILLED = 0.15  # of a step: what rounding changes numbers by is 0.29 of it on the average
_FEWEST_ROUNDED = 32  # numbers that rounding changed
_SPREAD = 0.7  # steps that most numbers vary by, so that what rounding changes fills the steps
_TELLING = 4  # blocks
_SPARSE = 4  # every so many of these tell how many different numbers there are
_BLOCK = 32  # neighbours in a row that share a step in most quantised formats
_BLOCKS = (_BLOCK, 16)  # half as many in Q2_K, Q3_K, Q6_K and NVFP4
_BYTE_LEVELS = (127, 128, 126, 125, 124)  # the largest number of a block, in steps
_GROUPS = (32, 64, 128)  # numbers that share a scale of eight bits, or else a whole row
_SIX_BITS = (16, tuple(range(32, 15, -1)))  # numbers that share a scale of six, as in Q6_K
_REPEATED = 0.65  # different values among neighbours on a grid of four bits at most, as a share
_FINER = 1.25  # times as many different numbers are in the finer of two arrays
_AS_LARGE = 0.75  # of the largest numbers of other blocks
_SEEN = 0.75  # a block with more distinct values than this share of its numbers shows no grid
_ON_GRID = 0.02  # how far a number may be off a multiple of its step: what decoding rounds
# Rounding to the nearest level misses by half a step at most, but for numbers that are cut off at
# the last level. A change of a few hundredths misses by more, and so do methods that carry the
# error on to later columns (GPTQ): these are no rounding of the numbers themselves.
_FAR, _NEARLY, _MOST = 0.55, 0.97, 0.99
# Between the first and the last level of a block nothing is cut off: there hardly any number of a
# grid of few levels misses by more than half a step (at most 0.0007 did in what ggml writes, whose
# scales are rounded too). Where weights were changed before by 1 % of their size, 0.004 or more do,
# of four bits and up; with fewer bits it takes more.
_PAST_HALF, _STRAY = 0.52, 0.003
# Scaled floats of eight bits have at most eight mantissas, sixteen where a scale lets them wrap;
# they miss by an eighth of a number at most (two bits of mantissa).
_SCALED, _MANTISSAS, _EIGHTH, _FINE = 128, 18, 0.126, 1 << 16
# Levels that lie unevenly: the normal quantiles of bitsandbytes (QLoRA, arXiv 2305.14314), floats
# of one sign, two exponent bits and one of mantissa (OCP MX, version 1.0), and the levels of
# IQ4_NL and IQ4_XS (ggml), whose scales may be negative.
_NORMAL = (
    -1.0, -0.6961928, -0.5250731, -0.3949175, -0.2844414, -0.1847734, -0.0910500, 0.0,
    0.0795803, 0.1609302, 0.2461123, 0.3379152, 0.4407098, 0.5626170, 0.7229568, 1.0,
)  # fmt: skip
_SMALL_FLOATS = (-6.0, -4.0, -3.0, -2.0, -1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
_FOUR_BITS = (-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113)
_OFF_LEVEL = 0.01  # how far off a level a number may be, as a share of it
_ON_LEVELS = 0.993  # of numbers on the nearest level: where scales are ambiguous 0.9965 were seen
# Whatever its levels are, rounding keeps the order of numbers that share a scale. These many
# neighbours do in every format, and of them so many may be out of order: ties of the scale itself.
_SHARED, _DISORDER = 16, 0.01
_FEW, _CLEARLY = 64, 10  # blocks that are looked at first, and how much more disorder is enough


class _Table(Struct, frozen=True):
    """Levels that lie unevenly, in order.

    `slack` is how far past the half way to the next level a number may lie: scales of normal
    quantiles may have been rounded after the levels were chosen.
    """

    levels: tuple[float, ...]
    slack: float

    def nearest(
        self, blocks: Floats, largest: Floats
    ) -> tuple[Floats, NDArray[np.intp], NDArray[np.float64]]:
        """Of each block the scale that puts it best on levels, these levels, and how far it is off.

        How far is a share of the level. The `largest` number of a block may be any level.
        """
        table = np.array(self.levels, np.float32)
        scales = largest / np.unique(np.abs(table[table != 0]))[::-1]
        if not np.array_equal(table, -table[::-1]):
            scales = np.concatenate([scales, -scales], axis=1)
        halves = self._halves
        levels = [np.searchsorted(halves, blocks / scale[:, None]) for scale in scales.T]
        sizes = np.maximum(np.abs(table), np.abs(table[table != 0]).min())
        offs = [
            (np.abs(blocks / scale[:, None] - table[level]) / sizes[level]).max(axis=1)
            for scale, level in zip(scales.T, levels, strict=True)
        ]
        best, block = np.argmin(offs, axis=0), np.arange(len(blocks))
        return scales[block, best][:, None], np.stack(levels)[best, block], np.min(offs, axis=0)

    def ends(self, levels: NDArray[np.intp]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Between which numbers those that are rounded to some levels lie."""
        bounds = np.concatenate([[-np.inf], self._halves, [np.inf]])
        return bounds[levels] - self.slack, bounds[levels + 1] + self.slack

    @property
    def _halves(self) -> Floats:
        """Half ways between neighbours."""
        table = np.array(self.levels, np.float32)
        return np.asarray((table[1:] + table[:-1]) / 2, np.float32)


_TABLES = (_Table(_NORMAL, 0.02), _Table(_SMALL_FLOATS, 0.01), _Table(_FOUR_BITS, 0.25))


class Equality(Struct, frozen=True):
    """How two arrays of numbers that belong together agree.

    Attributes
    ----------
    equal : whether all numbers are equal.
    bits : where they are only equal after rounding, the bits of a number of the coarser array.
    information : log10 of how many arrangements the numbers have, within the row that has most, if
        they are equal: constants mean nothing, equal arrangements of many numbers are no accident.
    exact : whether no other arrangement would do. A cast to a shorter float has one result; a grid
        whose step was read off the numbers themselves gives them some room.
    """

    equal: bool
    bits: int | None
    information: float
    exact: bool = False

    @property
    def same(self) -> bool:
        """Whether the numbers are equal, if need be after rounding."""
        return self.equal or self.bits is not None


def equality(x: Floats, y: Floats) -> Equality:
    """Compare rows of numbers at equal places."""
    if x.shape != y.shape or not x.size:
        return Equality(False, None, 0.0)
    x, y = (np.atleast_2d(np.asarray(one, np.float32)) for one in (x, y))
    equal = np.array_equal(x, y)
    finite = bool(np.isfinite(x).all() and np.isfinite(y).all())
    bits = place = None
    if not equal and finite:
        bits, place = _coarser(x, y)
    if not equal and bits is None:
        return Equality(False, None, 0.0)
    exact = equal or _cast(*((x, y) if place else (y, x))) is not None
    information = arrangements(x) if equal else min(arrangements(x), arrangements(y))
    return Equality(equal, bits, information, exact)


def coarser(x: Floats, y: Floats) -> int | None:
    """Which of two arrays is the other one rounded: 0 for the first, 1 for the second.

    None where they are equal, or neither is.
    """
    if x.shape != y.shape or not x.size or np.array_equal(x, y):
        return None
    x, y = (np.atleast_2d(np.asarray(one, np.float32)) for one in (x, y))
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        return None
    return _coarser(x, y)[1]


def _coarser(x: Floats, y: Floats) -> tuple[int | None, int | None]:
    """The bits of the array that is the other one rounded, and which of them it is.

    Where each may be the other on a grid it is the one with fewer different numbers: order makes no
    difference.
    """
    ways = (1, x, y), (0, y, x)
    for place, fine, coarse in ways:
        bits = _cast(fine, coarse)
        if bits is not None and _fills(fine, coarse):
            return bits, place
    if not _near(x, y):
        return None, None
    axes = [(some_rows(x), some_rows(y))]
    if len(x) >= _BLOCK:
        axes.append((some_rows(x.T), some_rows(y.T)))
    kept = [_in_order(*axis) for axis in axes]
    found = []
    for place, fine, coarse in ways:
        tables = [
            axis if place else axis[::-1]
            for axis, both in zip(axes, kept, strict=True)
            if both[1 - place]
        ]
        bits = _rounded(fine, coarse, tables)
        if bits is not None and _fills(fine, coarse):
            found.append((bits, place))
    if len(found) < len(ways):
        return found[0] if found else (None, None)
    return found[_distinct(some_rows(x)) < _distinct(some_rows(y))]


def _fills(fine: Floats, coarse: Floats) -> bool:
    """Whether what rounding changed is as large as the steps of the grid, as rounding makes it.

    Numbers that lay on a grid and were moved a little round to it, too, from nearby. Where few
    numbers differ, or most lie within a step or so, nothing contradicts rounding.
    """
    changed = fine != coarse
    if np.count_nonzero(changed) < _FEWEST_ROUNDED:
        return True
    for kind, _ in _FLOAT_FORMATS:
        master = kind is ml_dtypes.bfloat16 and _one_master(fine, coarse)
        if master or _is_cast(fine, coarse, kind):
            digits = int(ml_dtypes.finfo(kind).nmant)  # type: ignore[no-untyped-call]
            steps = np.ldexp(1.0, np.frexp(coarse[changed])[1] - 1 - digits)
            error = float(np.sqrt(np.square((fine[changed] - coarse[changed]) / steps).mean()))
            return error >= _FILLED or _deviation(fine[changed]) < _SPREAD * np.median(steps)
    found = [
        _filled(some_rows(one), some_rows(other))
        for one, other in ((fine, coarse), (fine.T, coarse.T))
        if one.shape[1] >= _BLOCK
    ]
    return min(found, default=1.0) >= _FILLED


def _filled(fine: Floats, coarse: Floats) -> float:
    """The change of those numbers that differ, as a share of the step of their block."""
    x, y = _blocks(fine, _BLOCK), _blocks(coarse, _BLOCK)
    gaps = np.diff(np.sort(y, axis=1), axis=1)
    steps = np.where(gaps > 0, gaps, np.inf).min(axis=1)
    changed = x != y
    good = np.isfinite(steps) & changed.any(axis=1)
    good &= _deviation(x) >= _SPREAD * steps
    if np.count_nonzero(good) < _TELLING:
        return 1.0
    squares = np.square(np.where(changed, x - y, 0.0)).sum(axis=1)[good]
    error = np.sqrt(squares / changed.sum(axis=1)[good])
    return float(np.median(error / steps[good]))


def _deviation(rows: Floats) -> Floats:
    """How far half of the numbers lie from the middle one, along the last axis."""
    middle = np.median(rows, axis=-1, keepdims=True)
    return np.asarray(np.median(np.abs(rows - middle), axis=-1))


def _near(x: Floats, y: Floats) -> bool:
    """Whether numbers differ by no more than the coarsest grid could make them, in some rows."""
    some, other = (some_rows(one).astype(np.float64) for one in (x, y))
    moved, centred = some - other, some - some.mean(axis=1, keepdims=True)
    return bool(np.vdot(moved, moved) <= _COARSEST * np.vdot(centred, centred))


def grid_of_one(x: Floats, y: Floats) -> int | None:
    """The bits of a coarse grid that the numbers of `y` lie on and those of `x` do not.

    Unlike `equality` this does not ask whether one is the other rounded, so it is told where
    numbers were changed before they were rounded too. Neighbours that share a step have few
    different values, zeros left out: of 32 normal numbers a grid of four bits leaves about ten, one
    of eight bits nearly all, and of that nothing is said.
    """
    x, y = (some_rows(np.atleast_2d(np.asarray(one, np.float32))) for one in (x, y))
    for before, after in ((x, y), (x.T, y.T)):
        bits = _few_values(after)
        if bits is not None:
            return bits if _few_values(before) is None else None
    return None


def _few_values(rows: Floats) -> int | None:
    """The bits of the grid that nearly all blocks of some rows lie on; None where they do not."""
    blocks = _blocks(rows, _BLOCK)
    blocks = blocks[np.count_nonzero(blocks, axis=1) >= _BLOCK // 2]
    if len(blocks) < _FEW_BLOCKS:
        return None
    counts = np.count_nonzero(blocks, axis=1)
    ordered = np.sort(blocks, axis=1)
    distinct = 1 + np.count_nonzero(np.diff(ordered, axis=1), axis=1) - (counts < _BLOCK)
    if (distinct <= _REPEATED * counts).mean() < _NEARLY:
        return None
    levels = int(np.quantile(distinct, _NEARLY)) + bool((counts < _BLOCK).any())  # zero is one
    return max(2, math.ceil(math.log2(levels)))


def _cast(fine: Floats, coarse: Floats) -> int | None:
    """The bits of the float format that `coarse` is `fine` in; None if it is in none."""
    share, more = _FARTHEST
    if (np.abs(fine[:1] - coarse[:1]) > share * np.abs(fine[:1]) + more).any():
        return None
    for kind, bits in _FLOAT_FORMATS:
        if _is_cast(fine[:1], coarse[:1], kind) and _is_cast(fine, coarse, kind):
            return bits
    return None


def _rounded(fine: Floats, coarse: Floats, tables: Sequence[tuple[Floats, Floats]]) -> int | None:
    """The bits of the grid that `coarse` is `fine` rounded to; None if it is not.

    Steps are shared along rows as they are stored, which may be columns here: `tables` are some of
    both, where numbers follow each other as before.
    """
    if _one_master(some_rows(fine), some_rows(coarse)) and _one_master(fine, coarse):
        return 16
    for some, other in tables:
        length = other.shape[1]
        if length >= _BLOCK and _distinct(other[::_SPARSE]) == length:
            continue  # a grid makes some numbers of a row one
        if found := _on_byte_grid(some, other) or _on_grid(some, other, *_SIX_BITS, bits=6):
            return found
        finer = _distinct(some) >= _FINER * _distinct(other)
        if not finer:
            continue
        for size in _BLOCKS:
            if found := _on_table(some, other, size) or _on_block_grid(some, other, size):
                return found
        if found := _on_scaled_floats(some, other):
            return found
    return None


def _in_order(x: Floats, y: Floats) -> tuple[bool, bool]:
    """Whether numbers of the second array follow each other as those of the first, and those of
    the first as those of the second: what is only near changes places."""
    in_row = x.shape[1] // _SHARED
    count = len(x) * in_row
    if not count:
        return False, False
    # A few blocks tell what is far from it, which is most of what is asked about.
    few = np.arange(0, count, max(1, count // _FEW))[:, None]
    places = few // in_row, few % in_row * _SHARED + np.arange(_SHARED)
    there, back = _falls(x[places], y[places])
    most = _CLEARLY * _DISORDER
    if min(there, back) > most:
        return False, False
    all_there, all_back = _falls(_blocks(x, _SHARED), _blocks(y, _SHARED))
    return (
        there <= most and all_there <= _DISORDER,
        back <= most and all_back <= _DISORDER,
    )


def _falls(x: Floats, y: Floats) -> tuple[float, float]:
    """The share of neighbours in the order of `x` that fall in `y`, and of those of `y` in `x`."""
    ordered = np.sort(np.stack([x + 1j * y, y + 1j * x]), axis=2).imag
    falls = ordered[..., 1:] < ordered[..., :-1]
    there, back = (np.count_nonzero(one) / one.size for one in falls)
    return there, back


def _one_master(half: Floats, bf16: Floats) -> bool:
    """Whether float16 and bfloat16 may be rounded from one master.

    That lies within half a step of float16, and rounding keeps the order: so do its ends.
    """
    again = _in_bf16(half)
    ties, kept = np.count_nonzero(again != bf16), np.count_nonzero(again == half)
    if ties > _TIES * half.size or kept > 0.5 * half.size:
        return False
    with np.errstate(over="ignore", invalid="ignore"):
        room = np.abs(np.spacing(half.astype(np.float16))).astype(np.float32) * np.float32(0.5)
    return bool(((_in_bf16(half - room) <= bf16) & (bf16 <= _in_bf16(half + room))).all())


def _in_bf16(rows: Floats) -> Floats:
    return np.asarray(rows.astype(ml_dtypes.bfloat16).astype(np.float32))


def _distinct(rows: Floats) -> float:
    """How many different numbers a row holds, on the average."""
    return float(np.mean(1 + np.count_nonzero(np.diff(np.sort(rows, axis=1), axis=1), axis=1)))


def _is_cast(fine: Floats, coarse: Floats, kind: Any) -> bool:
    with np.errstate(over="ignore"):
        return bool(np.array_equal(fine.astype(kind).astype(np.float32), coarse))


def _blocks(rows: Floats, size: int) -> Floats:
    """Neighbours in a row, so many at a time; what is left over at its end is left out."""
    return rows[:, : rows.shape[1] - rows.shape[1] % size].reshape(-1, size)


def _few_blocks(blocks: Floats) -> Floats:
    """Some blocks from everywhere; an odd step, so that they are not all of one column."""
    return blocks[:: len(blocks) // _FEW_BLOCKS | 1]


def _emptied(x: Floats, y: Floats) -> bool:
    """Whether blocks of numbers were set to zero that are no smaller than those of others."""
    before, after = (np.abs(one).max(axis=1, initial=0.0) for one in (x, y))
    kept = after[after > 0]
    if not len(kept):
        return False
    empty = (after == 0) & (before > _AS_LARGE * np.median(kept))
    return bool(empty.mean() > 1 - _MOST)


def _on_block_grid(fine: Floats, coarse: Floats, size: int) -> int | None:
    """The bits of a grid of few levels; its step is told by the distinct values of a block."""
    x, y = _blocks(fine, size), _blocks(coarse, size)
    if not len(y) or _emptied(x, y):
        return None
    ordered = np.sort(y, axis=1)
    gaps = np.diff(ordered, axis=1)
    levels = float(np.median(1 + np.count_nonzero(gaps, axis=1)))
    if not 2 <= levels <= _SEEN * size:  # as many values as numbers: no grid to be seen
        return None
    steps = np.where(gaps > 0, gaps, np.inf).min(axis=1)
    good = np.isfinite(steps)
    error = np.abs(x[good].astype(np.float64) - y[good]) / steps[good, None]
    if not good.any() or np.quantile(error, _NEARLY) > _FAR:
        return None
    inner = (y[good] > ordered[good, :1]) & (y[good] < ordered[good, -1:])
    # Numbers of eight bits were moved by half a step of their own, from where both began.
    half = _PAST_HALF + 0.5 * _own_steps(x[good]) / steps[good]
    if np.count_nonzero((error > half[:, None])[inner]) > _STRAY * np.count_nonzero(inner):
        return None
    spread = (ordered[good, -1] - ordered[good, 0]) / steps[good]
    bits = math.ceil(math.log2(round(float(np.median(spread))) + 1))
    return bits if bits >= 2 else None  # what two levels keep of a number is its sign


def _on_byte_grid(fine: Floats, coarse: Floats) -> int | None:
    """Whether numbers are multiples of 1/127 or so of the largest of their block or row."""
    for size in {*_GROUPS, max(coarse.shape[1], _BLOCK)}:
        if found := _on_grid(fine, coarse, size, _BYTE_LEVELS, bits=8):
            return found
    return None


def _on_grid(fine: Floats, coarse: Floats, size: int, most: Sequence[int], bits: int) -> int | None:
    """Whether numbers of blocks are multiples of a step of which the largest holds so many.

    How many may differ from block to block: half of the blocks must lie on one of the grids.
    """
    y = _blocks(coarse, size)
    few = _multiples(_few_blocks(y))
    likely = [levels for levels in most if _on_steps(few * levels).any()]
    if not likely:  # most tensors lie on no grid
        return None
    x, multiples = _blocks(fine, size), _multiples(y)
    if _emptied(x, y):
        return None
    largest = np.abs(y).max(axis=1, initial=0.0, keepdims=True).astype(np.float64)
    good = largest[:, 0] > 0
    levels = np.zeros(len(multiples))
    for one in likely:
        levels[_on_steps(multiples * one) & (levels == 0)] = one
    found = levels > 0
    if found.mean() < 0.5:
        return None
    error = np.abs(x[good][found] - y[good][found]) * (levels[found, None] / largest[good][found])
    return bits if np.quantile(error, _NEARLY) <= _FAR else None


def byte_steps(rows: Floats) -> NDArray[np.float64]:
    """Steps of rows that are whole multiples of 1/127 or so of the largest number of their block,
    block by block; none where most are not. Of fewer levels the step is a multiple of that."""
    for size in {*_GROUPS, max(rows.shape[1], _BLOCK)}:
        blocks = _blocks(rows, size)
        few = _multiples(_few_blocks(blocks))
        for levels in _BYTE_LEVELS:
            if len(few) and _on_steps(few * levels).mean() > 0.5:
                largest = np.abs(blocks).max(axis=1)
                kept = largest > 0
                whole = np.rint(_multiples(blocks) * levels).astype(np.int64)
                scales = largest[kept].astype(np.float64) / levels
                return np.asarray(np.gcd.reduce(whole, axis=1) * scales)
    return np.zeros(0)


def _own_steps(blocks: Floats) -> NDArray[np.float64]:
    """The step of each block that is whole multiples of 1/127 of its largest number; else zero."""
    largest = np.abs(blocks).max(axis=1).astype(np.float64) / _BYTE_LEVELS[0]
    whole = blocks / np.where(largest > 0, largest, 1.0)[:, None]
    return np.where(_on_steps(whole), largest, 0.0)


def _multiples(blocks: Floats) -> NDArray[np.float64]:
    """Numbers as shares of the largest of their block; blocks of zeros are left out."""
    largest = np.abs(blocks).max(axis=1, initial=0.0, keepdims=True).astype(np.float64)
    good = largest[:, 0] > 0
    return np.asarray(blocks[good] / largest[good])


def _on_steps(steps: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Whether the numbers of a block are whole."""
    return np.asarray(np.abs(steps - np.rint(steps)).max(axis=1) <= _ON_GRID)


def _on_table(fine: Floats, coarse: Floats, size: int) -> int | None:
    """Whether numbers are levels of a table times a scale, each the one that is nearest.

    Larger numbers of the scale's own block may lie beside these: the scale is the one that puts
    all of them on levels.
    """
    x, y = _blocks(fine, size), _blocks(coarse, size)
    largest = np.abs(y).max(axis=1, initial=0.0, keepdims=True)
    emptied, good = _emptied(x, y), largest[:, 0] > 0
    x, y, largest = x[good], y[good], largest[good]
    if not len(y) or emptied:
        return None
    distinct = np.median(1 + np.count_nonzero(np.diff(np.sort(y, axis=1)), axis=1))
    for table in _TABLES:
        if distinct > len(table.levels):
            continue
        if np.quantile(table.nearest(*map(_few_blocks, (y, largest)))[2], 0.25) > _OFF_LEVEL:
            continue  # most tensors lie on no table
        scales, levels, off = table.nearest(y, largest)
        if np.median(off) > _OFF_LEVEL:
            continue
        low, high = table.ends(levels)
        scaled = x / scales
        if ((scaled >= low) & (scaled <= high)).mean() >= _ON_LEVELS:
            return math.ceil(math.log2(len(table.levels)))
    return None


def _on_scaled_floats(fine: Floats, coarse: Floats) -> int | None:
    """Whether numbers are floats of eight bits times a scale: few mantissas, small errors."""
    size = min(_SCALED, coarse.shape[1])
    x, y = _blocks(fine, size), _blocks(coarse, size)
    mantissas = np.sort(np.round(np.abs(np.frexp(y)[0]) * _FINE), axis=1)
    distinct = 1 + np.count_nonzero(np.diff(mantissas, axis=1), axis=1)
    if size < _SCALED // 2 or np.median(distinct) > _MANTISSAS:
        return None
    large = np.abs(y) > np.abs(y).max(axis=1, keepdims=True) / 64
    error = np.abs(x[large].astype(np.float64) - y[large]) / np.abs(y[large])
    return 8 if error.size and error.max() <= _EIGHTH else None
