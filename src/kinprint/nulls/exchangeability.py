"""Does an index carry meaning inside one model? Self-tests before its labels are called random.

Sorted units, position tables, shards and canonical bases give an index a meaning of its own; two
such models agree without being related. Each test asks one model alone, has an exact null
(its labels are exchangeable) and a stated level: that often a good model loses a test for nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import StrEnum
from functools import lru_cache

import numpy as np
from msgspec import Struct
from numpy.typing import ArrayLike, NDArray

from kinprint.nulls.blocks import block_log10_p
from kinprint.nulls.monte_carlo import drawn_log10_p
from kinprint.nulls.preparation import (
    average_ranks,
    degenerate,
    normal_scores,
    normalise_rows,
)
from kinprint.nulls.result import Floats, portions

LEVEL = 1e-3
_FEW = 32  # units whose signs may be drawn again by chance
_FIRST = 32  # draws of signs after which it may be plain that they are fair
_MIXTURES = 48  # rows that many tokens are added up to
_SCALED_BY = 32  # draws that tell how far a statistic scatters
_AT_ONCE = 32  # orders of a table whose spectra are in memory together: some 20 MB
_BAND = 4  # frequencies in the lowest band, each next one twice as wide


class Doubt(StrEnum):
    """Why labels or signs may not be called exchangeable."""

    NONE = ""
    SORTED = "sorted"
    PERIODIC = "periodic"
    ALONG_INDEX = "along the index"
    UNFAIR = "signs are not fair"
    UNCORRELATED = "uncorrelated axes"
    TOO_SHORT = "too short"
    TOO_LITTLE = "too little to judge"
    NOT_FINITE = "not finite"
    CONSTANT = "constant"
    MOSTLY_ONE_VALUE = "mostly one value"


class SelfTest(Struct, frozen=True):
    """What one self-test found: whether labels may be called exchangeable, and why not.

    `effect` is a correlation between −1 and 1; `where` a lag where there is one, else zero.
    """

    name: str
    exchangeable: bool
    log10_p: float
    effect: float
    reason: Doubt = Doubt.NONE
    where: int = 0


def trend(values: ArrayLike, level: float = LEVEL) -> SelfTest:
    """Ask whether values (norms of units, say) rise or fall with their index.

    The effect is Spearman's correlation. Its p-value is exact at any size: indices i, i + q,
    i + 2q and i + 3q, a quarter apart, form blocks of four whose permutations are part of the
    group, and the block bound is taken for a rise and for a fall, the smaller one twice. A
    correlation within two deviations of none is not looked into: its p-value is given as one.
    """
    x = np.asarray(values, np.float64).reshape(-1)
    reason = degenerate(x, 1.0)
    if reason:
        return SelfTest("trend", False, 0.0, 0.0, Doubt(reason))
    ranks = average_ranks(x)
    index = np.arange(x.size) - (x.size - 1) / 2.0
    centred = ranks - ranks.mean()
    rho = float(centred @ index / math.sqrt((centred @ centred) * (index @ index)))
    quarter = x.size // 4
    if not quarter or abs(rho) * math.sqrt(x.size - 1) < 2.0:
        return SelfTest("trend", True, 0.0, rho)
    rows = centred[: 4 * quarter].reshape(4, quarter).T
    places = index[: 4 * quarter].reshape(4, quarter).T
    tables = rows[:, :, None] * places[:, None, :]
    both = block_log10_p(np.stack([tables, -tables]))
    return _judge("trend", min(0.0, float(both.min()) + math.log10(2.0)), rho, level, Doubt.SORTED)


def lags(
    values: ArrayLike, draws: int = 999, seed: int = 0, level: float = LEVEL, shared: bool = False
) -> SelfTest:
    """Ask whether values resemble themselves a fixed distance away: shards, tables, periods.

    The statistic is the largest |autocorrelation| of normal scores over all lags up to half the
    length, averaged over the rows of (L, n) before the largest is taken. It is compared with
    random permutations, one for every row or, if `shared` (channels), one for all rows. With
    999 draws the smallest p is the default level.

    Drawing ends where so many draws reach the statistic that no further ones could bring p down to
    the level. The p of those that were made is one still: it is at most t only where, at the first
    such end that allows a p of t, the rank of the statistic among the draws is at most t of them.
    """
    x = np.atleast_2d(np.asarray(values, np.float64))
    reasons = [degenerate(row) for row in x]
    if any(reasons):
        return SelfTest("lags", False, 0.0, 0.0, Doubt(next(filter(None, reasons))))
    if x.shape[1] < 4:
        return SelfTest("lags", True, 0.0, 0.0)
    scores = normal_scores(x)
    scores /= np.sqrt(np.square(scores).sum(axis=1, keepdims=True))
    found = _autocorrelation(scores)
    at = int(np.abs(found).argmax())
    rng = np.random.default_rng(seed)
    null, p = np.empty(0), 0.0
    for some in portions(x.size, draws):
        if shared:
            orders = rng.permuted(np.tile(np.arange(x.shape[1]), (some, 1)), axis=1)
            drawn = scores[:, orders].swapaxes(0, 1)
        else:
            drawn = rng.permuted(np.tile(scores, (some, 1, 1)), axis=2)
        null = np.concatenate([null, np.abs(_autocorrelation(drawn)).max(axis=1)])
        p = drawn_log10_p(float(np.abs(found[at])), null)
        if not _fails(p + math.log10((len(null) + 1) / (draws + 1)), level):
            break  # even if no further draw reaches it
    return _judge("lags", p, float(found[at]), level, Doubt.PERIODIC, at + 1)


def balance(
    rows: ArrayLike, draws: int | None = None, seed: int = 0, level: float = LEVEL, most: int = 512
) -> SelfTest:
    """Ask whether the signs of units are fair coins: do rows lean to one side together?

    A flip negates a unit's row (up row and down column side by side). If signs are arbitrary,
    the length of the sum of all rows is as after random flips; a common direction, from a
    start with a mean of its own or a feed-forward that is not odd, makes it longer. Tie clones
    first. The effect is the mean cosine of two different units; `most` evenly spaced ones are
    taken. There are as many `draws` as p needs to reach the level; where the first few show that no
    further ones could bring it there, no further ones are drawn, as in `lags`.
    """
    draws = round(1 / level) - 1 if draws is None else draws
    given = np.asarray(rows)
    some = np.linspace(0, len(given) - 1, min(most, len(given))).astype(np.int64)
    x = normalise_rows(given[some])
    x = x[x.any(axis=1)]
    n = len(x)
    if n < 4:
        return SelfTest("balance", False, 0.0, 0.0, Doubt.TOO_SHORT)
    observed = float(np.square(x.sum(axis=0)).sum())
    # Squared lengths of sums are quadratic forms of the coins: rows are long, units are few.
    # Of few units some draw is likely to be the very signs at hand: rounding must not part them.
    products = x @ x.T if n <= _FEW else (x @ x.T).astype(np.float32)
    p = 0.0
    for number in (min(_FIRST, draws), draws):
        coins = _coins(number, n, seed)
        null = np.einsum("dn,dn->d", coins @ products, coins, dtype=np.float64)
        p = drawn_log10_p(observed, null)
        if not _fails(p + math.log10((number + 1) / (draws + 1)), level):
            break
    effect = (observed - n) / (n * (n - 1))
    return _judge("balance", p, effect, level, Doubt.UNFAIR)


def skewness(rows: ArrayLike) -> Floats:
    """Skewness of each row, zero of what is constant or not finite: a flip changes its sign.

    Where signs are arbitrary these are coins. A grid that ends sooner on one side skews all rows
    to the other, and rows of two such models that agree are more alike than rows that oppose.

    Examples
    --------
    >>> skewness([[0.0, 0.0, 3.0], [0.0, 0.0, -3.0], [1.0, 1.0, 1.0]]).round(2).tolist()
    [0.71, -0.71, 0.0]
    """
    x = np.asarray(rows, np.float64)
    with np.errstate(all="ignore"):
        x = x - x.mean(axis=1, keepdims=True)
        squares = np.square(x)
        variance = squares.mean(axis=1)
        third = np.einsum("nd,nd->n", squares, x) / (x.shape[1] * variance**1.5)
    known: Floats = np.where(np.isfinite(third), third, 0.0)
    return known


def canonical_axes(table: ArrayLike, level: float = LEVEL) -> SelfTest:
    """Ask whether columns (tokens, channels) are principal axes: sorted, or uncorrelated.

    Rotation onto principal axes sorts channels and fixes their signs, so two independent models
    agree. Columns that are sorted by size are caught by `trend`; else the mean squared
    correlation of two columns over N tokens is compared with the 1/N that even independent
    columns would have. Trained embeddings lie above it, principal axes far below.
    """
    x = np.asarray(table, np.float64)
    tokens, channels = x.shape
    if tokens < 4 or channels < 4 or not np.isfinite(x).all():
        return SelfTest("canonical axes", False, 0.0, 0.0, Doubt.TOO_LITTLE)
    sorted_by_size = trend(np.square(x).mean(axis=0), level)
    if sorted_by_size.reason is Doubt.SORTED:
        return SelfTest(
            "canonical axes", False, sorted_by_size.log10_p, sorted_by_size.effect, Doubt.SORTED
        )
    mean = x.mean(axis=0)
    x = x - mean
    centred = x.T @ x
    raw = centred + tokens * np.outer(mean, mean)
    ratio = min(_off_diagonal(raw), _off_diagonal(centred)) * tokens
    if ratio < 0.5:
        return SelfTest("canonical axes", False, 0.0, ratio, Doubt.UNCORRELATED)
    return SelfTest("canonical axes", True, sorted_by_size.log10_p, sorted_by_size.effect)


def along_index(
    profiles: Sequence[ArrayLike], draws: int = 999, seed: int = 0, level: float = LEVEL
) -> SelfTest:
    """Ask whether profiles of labels (channels, say) follow a course along the index.

    Labels in random order have, on average, the same power at every frequency of the index. What is
    sorted, turns with the index or is smooth along it has more at some. Of each table of profiles
    (rows, n) the largest power of a single frequency is taken, in one row and in all, and that of
    the lowest or highest 2, 4, 8, … of them. The statistic is the largest of these, in deviations
    that `_SCALED_BY` random orders tell, and is compared with further ones. One order is drawn for
    all rows, and drawing ends as in `lags`. The effect is the largest share of the power of a row
    that one frequency has.
    """
    tables = [_without_mean(np.atleast_2d(np.asarray(table, np.float64))) for table in profiles]
    tables = [table for table in tables if table.any()]
    n = tables[0].shape[1] if tables else 0
    if n < 4 or not all(np.isfinite(table).all() for table in tables):
        return SelfTest("along index", True, 0.0, 0.0)
    rng = np.random.default_rng(seed)

    def drawn(some: int) -> Floats:
        return _courses(tables, rng.permuted(np.tile(np.arange(n), (some, 1)), axis=1))

    scale = drawn(_SCALED_BY)
    middle, spread = scale.mean(axis=0), np.maximum(scale.std(axis=0), 1e-12)
    found = _courses(tables, np.arange(n)[None])[0]
    observed = float(((found - middle) / spread).max())
    null, p, some = np.empty(0), 0.0, 4
    while len(null) < draws:
        some = min(2 * some, _AT_ONCE, draws - len(null))
        null = np.concatenate([null, ((drawn(some) - middle) / spread).max(axis=1)])
        p = drawn_log10_p(observed, null)
        if not _fails(p + math.log10((len(null) + 1) / (draws + 1)), level):
            break  # even if no further draw reaches it
    effect = math.exp(float(found[::3].max())) / (n // 2)
    return _judge("along index", p, min(effect, 1.0), level, Doubt.ALONG_INDEX)


def column_profiles(table: ArrayLike, seed: int = 0) -> tuple[Floats, Floats, Floats]:
    """What columns of a table (tokens in order, channels) are like, as rows over the channels.

    Sums of tokens with random signs, which show what all tokens do along the channels; and what
    each column does along the tokens: where its power lies, by octaves, and at which place it is
    largest beyond what is usual there, times how far. Formulas of a token's number and the
    channel's, such as position tables, show in these. Each column is treated by itself or with all
    others alike, so this commutes with permutations of the columns.
    """
    x = np.array(np.asarray(table).T, np.float64, order="C")  # one contiguous row a channel
    x -= x.mean(axis=1, keepdims=True)
    x /= np.maximum(np.sqrt(np.einsum("ct,ct->c", x, x)), 1e-300)[:, None]
    mixtures = min(_MIXTURES, x.shape[1])
    tokens = x.shape[1] // mixtures * mixtures
    signs = np.random.default_rng(seed).integers(2, size=tokens) * 2.0 - 1.0
    sums = (x[:, :tokens] * signs).reshape(len(x), mixtures, -1).sum(axis=2).T
    power = np.square(np.abs(np.fft.rfft(x.astype(np.float32), axis=1)[:, 1:]), dtype=np.float64).T
    power /= np.maximum(power.mean(axis=1, keepdims=True), 1e-300)
    octaves, start, width = [], 0, _BAND
    while start < len(power):
        octaves.append(power[start : start + width].mean(axis=0))
        start, width = start + width, 2 * width
    shares = np.log(np.maximum(octaves, 1e-300))
    ranks = average_ranks(power.argmax(axis=0))
    height = np.log(np.maximum(power.max(axis=0), 1e-300))
    places = (ranks - ranks.mean()) * (height - height.min())
    return _evened(_without_mean(sums)), shares - shares.mean(axis=0), places[None]


@lru_cache(maxsize=4)
def _coins(draws: int, n: int, seed: int) -> NDArray[np.float32]:
    """Fair coins, the same for the same question: several self-tests of a model share them.

    Fewer draws are the first of more.
    """
    drawn = np.random.default_rng(seed).integers(2, size=(draws, n))
    found = np.asarray(drawn * 2 - 1, np.float32)
    found.flags.writeable = False
    return found


def _judge(
    name: str, log10_p: float, effect: float, level: float, reason: Doubt, where: int = 0
) -> SelfTest:
    fails = _fails(log10_p, level)
    return SelfTest(name, not fails, log10_p, effect, reason if fails else Doubt.NONE, where)


def _fails(log10_p: float, level: float) -> bool:
    return log10_p <= math.log10(level) + 1e-12


def _autocorrelation(rows: Floats) -> Floats:
    """Mean circular autocorrelation of rows at lags 1 to n/2; circular, so all lags count alike.

    Rows (…, L, n) are averaged over L.
    """
    n = rows.shape[-1]
    power = np.square(np.abs(np.fft.rfft(rows, axis=-1))).mean(axis=-2)
    found: Floats = np.fft.irfft(power, n)[..., 1 : n // 2 + 1]
    return found


def _without_mean(rows: Floats) -> Floats:
    centred: Floats = rows - rows.mean(axis=1, keepdims=True)
    return centred


def _evened(rows: Floats) -> Floats:
    """Rows turned to their principal axes, each of which has the root of its length.

    A few directions have most of the length of an embedding, and would hide what others do.
    """
    squares, axes = np.linalg.eigh(rows @ rows.T)
    squares = np.maximum(squares, 1e-12 * max(float(squares[-1]), 1e-300))
    evened: Floats = (axes * squares**-0.25).T @ rows
    return evened


def _courses(tables: Sequence[Floats], orders: NDArray[np.int64]) -> Floats:
    """For some orders of the labels, by table: largest power of a row, of all, and in a band.

    As logarithms, since powers have long tails; those of bands times the root of their width.
    """
    found = []
    for table in tables:
        single = np.square(np.abs(np.fft.rfft(table[:, orders], axis=2)[..., 1:]))
        power = single.sum(axis=0)
        power /= np.maximum(power.mean(axis=1, keepdims=True), 1e-300)
        rows = (single.max(axis=2) / np.maximum(single.mean(axis=2), 1e-300)).max(axis=0)
        widths = 2 ** np.arange(1, max(2, power.shape[1].bit_length() - 1))
        ends = np.stack([power.cumsum(axis=1), power[:, ::-1].cumsum(axis=1)])[..., widths - 1]
        bands = np.log(np.maximum(ends / widths, 1e-300)) * np.sqrt(widths)
        found += [np.log(rows), np.log(power.max(axis=1)), bands.max(axis=(0, 2))]
    return np.stack(found, axis=1)


def _off_diagonal(products: Floats) -> float:
    """Mean squared cosine of two different columns, from the inner products of all."""
    size = np.sqrt(np.maximum(products.diagonal(), 1e-300))
    squares = np.square(products / size / size[:, None])
    return float(squares.sum() - squares.trace()) / float(len(squares) * (len(squares) - 1))
