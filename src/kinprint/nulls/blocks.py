"""Permutations within contiguous blocks, with or without signs: exact Chernoff bounds.

Contiguous blocks of four keep what index may mean on a larger scale (shards, position tables,
quantisation groups) out of the null: only neighbours change places. A block's scores form a
matrix, entry (i, j) for unit i of the one model against unit j of the other; the observed
statistic adds the diagonals.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import permutations
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import ArrayLike, NDArray

from kinprint.nulls.chernoff import each_together, least_exponent, log_cosh, log_mean_exp
from kinprint.nulls.result import (
    LN10,
    Floats,
    Ints,
    NullResult,
    drawn,
    no_evidence,
    portions,
)
from kinprint.records import Sensitivity

BLOCK = 4
# Differences of scores below this part of a block's largest score are rounding, not findings: a
# constant tensor must not speak through the order in which its products were added.
GRAIN = 1e-8


def block_sizes(n: int, m: int = BLOCK) -> Ints:
    """Sizes of the contiguous blocks that n indices fall into; the last one may be smaller."""
    whole, rest = divmod(n, m)
    return np.array([m] * whole + [rest] * (rest > 0), np.int64)


def blocked(rows: NDArray[Any], m: int = BLOCK) -> NDArray[Any]:
    """Rows (n, …) as blocks (B, m, …); a ragged last block is filled up with zeros."""
    missing = -len(rows) % m
    if missing:
        rows = np.concatenate([rows, np.zeros((missing, *rows.shape[1:]), rows.dtype)])
    return rows.reshape(-1, m, *rows.shape[1:])


def block_permutation(
    scores: ArrayLike,
    sizes: ArrayLike | None = None,
    seed: int | None = 0,
    unit: ArrayLike | None = None,
) -> NullResult:
    """Test the diagonals of score matrices (B, m, m) against permutations within blocks.

    S_b(π) = Σ_i A_b[i, π(i)] less its mean over the m! permutations, T = Σ_b S_b(id), and
    p ≤ min over s of exp(Σ_b log mean_π e^{s·S_b(π)} − s·T). Blocks are independent under the
    null, so the mean of e^{sT} is the product. `sizes` says how many indices of each block
    are real; any m will do whose m! permutations can be listed, eight experts say. The effect
    is the mean excess of a diagonal score over the rest of its block. Where no permutation
    changes anything there is no evidence, and the floor is that of an empty test.

    `unit` is what an effect of one adds to a diagonal score, for all blocks or for each. A block of
    r then adds (r − 1)·unit to T, because its mean is taken off, and unit² to the variance: that of
    the number of fixed points of a permutation, which is one.
    """
    table, lengths = _tables(scores, sizes)
    n = int(lengths[lengths > 1].sum())
    if not n:
        return no_evidence("block permutation", n)
    parts = _plain_parts(table, lengths)
    if not any(part.any() for part in parts):
        return no_evidence("block permutation", n)
    observed, variance = float(_observed(parts)[0]), float(_variance(parts)[0])
    return NullResult(
        statistic=observed,
        log10_p=float(_plain_log_p(parts)[0] / LN10),
        bound="block permutation",
        floor=least_block_log10_p(lengths),
        effect=_excess(parts, lengths),
        n=n,
        null=drawn(seed, lambda rng: _sum_of(_draw(part[:, 0], rng) for part in parts)),
        details={"blocks": float(len(lengths)), "spread": math.sqrt(variance)},
        sensitivity=None if unit is None else _sensitivity(variance, lengths, unit, 0.0),
    )


def signed_blocks(
    labelled: ArrayLike,
    signed: ArrayLike,
    sizes: ArrayLike | None = None,
    seed: int | None = 0,
    units: tuple[ArrayLike, ArrayLike] | None = None,
) -> NullResult:
    """Test labels and signs at once: permutations within blocks times a flip for each unit.

    `labelled` (B, m, m) holds scores that no flip touches (gate rows), `signed` those that a
    flip of the unit negates (up rows and down columns together; zeros for `labelled` where
    everything flips). The mean of e^{sS} over the flips turns entry (i, j) into
    e^{s·labelled}·cosh(s·signed), and over permutations the product becomes a permanent
    divided by m!. Signed scores must not be centred over units: a mean is not flip-invariant.

    `units` is what an effect of one adds to a diagonal score of each kind. Labelled scores add to T
    as in `block_permutation`; signed ones add r·unit, because nothing is taken off, and unit² to
    the variance: r scores, each at its place in one of r permutations.
    """
    plain, lengths = _tables(labelled, sizes)
    flips, _ = _tables(signed, sizes)
    if plain.shape != flips.shape:
        raise ValueError(f"scores of shape {plain.shape[1:]} and {flips.shape[1:]} do not pair")
    n = int(lengths.sum())
    if not n:
        return no_evidence("signed blocks", n)
    parts = _signed_parts(plain, flips, lengths)
    if not any(centred.any() or other.any() for centred, other in parts):
        return no_evidence("signed blocks", n)
    observed = sum(float(np.trace(g + u, axis1=-2, axis2=-1).sum()) for g, u in parts)
    return NullResult(
        statistic=observed,
        log10_p=float(_signed_log_p(parts)[0] / LN10),
        bound="signed blocks",
        floor=-(sum(math.lgamma(r + 1) for r in lengths) + n * math.log(2.0)) / LN10,
        effect=observed / n,
        n=n,
        null=drawn(seed, lambda rng: _sum_of(_draw_signed(g[0], u[0], rng) for g, u in parts)),
        details={"blocks": float(len(lengths))},
        sensitivity=None
        if units is None
        else _sensitivity(float(_signed_variance(parts)[0]), lengths, *units),
    )


def block_log10_p(scores: ArrayLike, sizes: ArrayLike | None = None) -> Floats:
    """Bound of `block_permutation` for many problems (R, B, m, m) at once; `sizes` are those of
    the blocks of all problems, or of each (R, B)."""
    table, lengths = _tables(scores, sizes)
    parts = _plain_parts(table, lengths)
    return _plain_log_p(parts) / LN10 if parts else np.zeros(len(table))


def least_block_log10_p(sizes: ArrayLike) -> float:
    """The least that `block_log10_p` can be with blocks of these sizes: one order of all."""
    return -sum(math.lgamma(int(r) + 1) for r in np.asarray(sizes)) / LN10


def signed_log10_p(
    labelled: ArrayLike, signed: ArrayLike, sizes: ArrayLike | None = None
) -> Floats:
    """Bound of `signed_blocks` for many problems (R, B, m, m) at once, as in `block_log10_p`."""
    plain, lengths = _tables(labelled, sizes)
    parts = _signed_parts(plain, _tables(signed, sizes)[0], lengths)
    return _signed_log_p(parts) / LN10 if parts else np.zeros(len(plain))


def each_block_log10_p(problems: Sequence[tuple[Floats, Ints]]) -> list[float]:
    """Bound of `block_permutation` for scores (B, m, m) with sizes, which may differ."""

    def solve(some: list[int]) -> Floats:
        return block_log10_p(*(np.stack([problems[at][kind] for at in some]) for kind in (0, 1)))

    return each_together([table.shape for table, _ in problems], solve)


def each_signed_log10_p(problems: Sequence[tuple[Floats, Floats, Ints]]) -> list[float]:
    """Bound of `signed_blocks` for labelled and signed scores with sizes, which may differ."""

    def solve(some: list[int]) -> Floats:
        return signed_log10_p(
            *(np.stack([problems[at][kind] for at in some]) for kind in (0, 1, 2))
        )

    return each_together([table.shape for table, _, _ in problems], solve)


def _tables(scores: ArrayLike, sizes: ArrayLike | None) -> tuple[Floats, Ints]:
    """Scores as (R, B, m, m), and the sizes of the blocks.

    A score that is no number counts as zero: a rule about the pair alone, so that it moves
    with the labels as the scores do.
    """
    given = np.asarray(scores, np.float64)
    if given.ndim not in (3, 4) or given.shape[-1] != given.shape[-2]:
        raise ValueError(f"block scores have shape (B, m, m), not {given.shape}")
    table = np.where(np.isfinite(given), given, 0.0)
    table = table if table.ndim == 4 else table[None]
    blocks, m = table.shape[1], table.shape[-1]
    lengths = np.full(blocks, m, np.int64) if sizes is None else np.asarray(sizes, np.int64)
    of_all_or_each = lengths.shape in ((blocks,), table.shape[:2])
    if not of_all_or_each or (blocks and (lengths.min() < 1 or lengths.max() > m)):
        raise ValueError(f"sizes must be {blocks} numbers from 1 to {m}")
    return table, lengths


def _by_size(table: Floats, lengths: Ints) -> list[Floats]:
    """Blocks of each size, as (R, blocks, r, r).

    Where a problem has a block of another size than others have there, zeros stand for it: they
    are nothing beside what its blocks of this size say.
    """
    found = []
    for r in _different(lengths):
        here = np.atleast_2d(lengths == r)
        some = here.any(axis=0)
        part = table[:, some, :r, :r]
        found.append(np.where(here[:, some, None, None], part, 0.0) if len(here) > 1 else part)
    return found


def _different(lengths: Ints) -> list[int]:
    """Sizes that blocks have, the smallest first."""
    return np.flatnonzero(np.bincount(lengths.ravel())).tolist()


@cache
def _orders(m: int) -> Ints:
    """All permutations of m things, the identity first."""
    return np.array(list(permutations(range(m))), np.int64)


def _centre(table: Floats) -> Floats:
    """Take off row and column means, which no permutation changes, and what is only rounding."""
    rough = (
        table
        - table.mean(axis=-1, keepdims=True)
        - table.mean(axis=-2, keepdims=True)
        + table.mean(axis=(-2, -1), keepdims=True)
    )
    size = np.abs(table).max(axis=(-2, -1), keepdims=True)
    return np.where(np.abs(rough) > GRAIN * size, rough, 0.0)


class _Halves(Struct, frozen=True):
    """All permutations of m things as two halves, which many of them share.

    `first` and `second` list the halves, (halves, things), and `left` and `right` which of them a
    permutation is made of; the identity comes first.
    """

    first: Ints
    second: Ints
    left: Ints
    right: Ints


@cache
def _halves(m: int) -> _Halves:
    every = [tuple(order) for order in _orders(m).tolist()]
    tables, places = [], []
    for half in (slice(m // 2), slice(m // 2, m)):
        number = {to: at for at, to in enumerate(dict.fromkeys(order[half] for order in every))}
        tables.append(np.array(list(number), np.int64))
        places.append(np.array([number[order[half]] for order in every], np.int64))
    return _Halves(*tables, *places)


def _sums(table: Floats) -> Floats:
    """Σ_i A[i, π(i)] for every π along a new first axis, the identity first."""
    m = table.shape[-1]
    entries = np.ascontiguousarray(np.moveaxis(table, (-2, -1), (0, 1)))
    halves = _halves(m)
    first, second = (
        sum((entries[start + i, to] for i, to in enumerate(part.T)), np.zeros(table.shape[:-2]))
        for start, part in ((0, halves.first), (m // 2, halves.second))
    )
    total: Floats = np.broadcast_to(first, (len(halves.first), *table.shape[:-2]))[halves.left]
    total += second[halves.right]
    return total


def _plain_parts(table: Floats, lengths: Ints) -> list[Floats]:
    """S_b(π) as (permutations, R, blocks), one array for each size of block above one."""
    found = []
    for part in _by_size(table, lengths):
        if part.shape[-1] > 1:
            sums = _sums(_centre(part))
            found.append(sums - sums.mean(axis=0))
    return found


def _variance(parts: list[Floats]) -> Floats:
    return _total(np.square(part).mean(axis=0) for part in parts)


def _plain_log_p(parts: list[Floats]) -> Floats:
    sizes = [np.abs(part).max(axis=0) for part in parts]

    def log_mgf(s: Floats) -> Floats:
        return _total(log_mean_exp(s[:, None] * part) for part in parts)

    return least_exponent(
        log_mgf,
        _observed(parts),
        _variance(parts),
        np.max([size.max(axis=-1, initial=0.0) for size in sizes], axis=0),
        _total(sizes),
    )


def _signed_parts(plain: Floats, flips: Floats, lengths: Ints) -> list[tuple[Floats, Floats]]:
    pairs = zip(_by_size(plain, lengths), _by_size(flips, lengths), strict=True)
    return [(_centre(labelled), signed) for labelled, signed in pairs]


def _signed_variance(parts: list[tuple[Floats, Floats]]) -> Floats:
    return _total(
        np.square(_sums(labelled)).mean(axis=0)
        + np.square(signed).sum(axis=(-2, -1)) / signed.shape[-1]
        for labelled, signed in parts
    )


def _sensitivity(
    variance: float, lengths: Ints, unit: ArrayLike, signed_unit: ArrayLike
) -> Sensitivity:
    """How T grows and its null widens with an effect that adds units to diagonal scores."""
    free = np.where(lengths > 1, lengths - 1, 0)
    labelled = np.where(lengths > 1, np.asarray(unit, np.float64), 0.0)
    signed = np.broadcast_to(np.asarray(signed_unit, np.float64), lengths.shape)
    return Sensitivity(
        deviation=math.sqrt(variance),
        slope=float(free @ labelled + lengths @ signed),
        widening=math.sqrt(float(np.square(labelled).sum() + np.square(signed).sum())),
    )


def _signed_log_p(parts: list[tuple[Floats, Floats]]) -> Floats:
    def log_mgf(s: Floats) -> Floats:
        scale = s[:, None, None, None]
        return _total(
            log_mean_exp(_sums(scale * labelled + log_cosh(scale * signed)))
            for labelled, signed in parts
        )

    both = [np.abs(labelled) + np.abs(signed) for labelled, signed in parts]
    return least_exponent(
        log_mgf,
        _total(np.trace(g + u, axis1=-2, axis2=-1) for g, u in parts),
        _signed_variance(parts),
        np.max([part.max(axis=(-3, -2, -1)) for part in both], axis=0),
        _total(part.max(axis=-1).sum(axis=-1) for part in both),
    )


def _observed(parts: list[Floats]) -> Floats:
    """T of every problem: the identity comes first among the permutations."""
    return _total(part[0] for part in parts)


def _total(pieces: Iterable[Floats]) -> Floats:
    """Sum pieces (R, blocks) over blocks and over the pieces."""
    found: Floats = np.sum([piece.sum(axis=-1) for piece in pieces], axis=0)
    return found


def _sum_of(samples: Iterable[Floats]) -> Floats:
    """Statistics over blocks of all sizes, from those over blocks of each."""
    return np.asarray(np.sum(list(samples), axis=0))


def _draw(sums: Floats, rng: np.random.Generator) -> Floats:
    """Statistics of random permutations, from S_b(π) as (permutations, blocks)."""
    orders, blocks = sums.shape
    every = np.arange(blocks)
    found = [
        sums[rng.integers(orders, size=(some, blocks), dtype=np.uint16), every].sum(axis=1)
        for some in portions(blocks)
    ]
    return np.concatenate(found)


def _draw_signed(plain: Floats, flips: Floats, rng: np.random.Generator) -> Floats:
    blocks, m, _ = plain.shape
    orders = _orders(m)
    sums, every = _sums(plain), np.arange(blocks)
    # Scores of every block and order as one row of units, so that a draw takes whole rows.
    moved = flips[:, np.arange(m), orders]
    found = []
    for some in portions(blocks * m):
        to = rng.integers(len(orders), size=(some, blocks), dtype=np.uint16)
        coins = rng.integers(2, size=(some, blocks, m), dtype=np.int8) * 2 - 1
        signed = np.einsum("dbm,dbm->d", moved[every, to], coins)
        found.append(sums[to, every].sum(axis=1) + signed)
    return np.concatenate(found)


def _excess(parts: list[Floats], lengths: Ints) -> float:
    sizes = [r for r in _different(lengths) if r > 1]
    total = sum(float(part[0].sum()) * r / (r - 1) for part, r in zip(parts, sizes, strict=True))
    return total / int(lengths[lengths > 1].sum())
