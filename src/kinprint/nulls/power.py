"""What a test would have seen: the smallest effect it finds nine times in ten.

"No evidence" means little without it. Effects are in the units of the scores: with one matrix
and normalised rows the excess is the row cosine, and chance scatters scores by 1/√d; with
products of standardised gains summed over L layers, the excess divided by L is a correlation.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from kinprint.nulls.blocks import BLOCK, block_log10_p, block_sizes
from kinprint.nulls.fixed_points import fixed_point_log10_p
from kinprint.nulls.result import LN10, Floats
from kinprint.nulls.signs import sign_log10_p

POWER = 0.9
_REPEATS = 200
# Above this many things the sums are Gaussian enough for a formula, as long as the level is far
# from the floor; below, and near the floor, the test itself is run on drawn scores.
_MANY = 256
_NEAR_FLOOR = 8.0


def smallest_effect(
    log10_ps: Callable[[float], Floats],
    log10_alpha: float,
    power: float = POWER,
    least: float = 0.0,
    greatest: float = 1.0,
) -> float:
    """Smallest effect whose simulated p-values reach the level with the power asked for.

    `log10_ps(effect)` gives the p-values of many simulated tests with the same random numbers
    at every call, so that bisection sees a smooth function; it ends within two per cent.
    Infinite if even `greatest` fails; `least` is where the search begins.
    """

    def found(effect: float) -> bool:
        return float(np.mean(log10_ps(effect) <= log10_alpha)) >= power

    if not found(greatest):
        return math.inf
    low, high = least, greatest
    while high - low > 0.02 * high:
        middle = (low + high) / 2.0
        low, high = (low, middle) if found(middle) else (middle, high)
    return high


def score_spread(scores: ArrayLike) -> float:
    """Standard deviation of a score by chance, from block matrices (B, m, m).

    What rows and columns have in common is taken off, with the degrees of freedom it costs.
    """
    table = np.asarray(scores, np.float64)
    m = table.shape[-1]
    rest = (
        table
        - table.mean(axis=-1, keepdims=True)
        - table.mean(axis=-2, keepdims=True)
        + table.mean(axis=(-2, -1), keepdims=True)
    )
    return math.sqrt(float(np.square(rest).sum()) / max(1, table.shape[0] * (m - 1) ** 2))


def detectable_by_blocks(
    n: int, spread: float, log10_alpha: float, power: float = POWER, seed: int = 0
) -> float:
    """Smallest mean excess of same-index scores that block permutation of n units would find.

    T has mean n·excess·(m−1)/m and variance V = n·spread²·(m−1)/m, and the bound is close to
    exp(−T²/2V), so √(2 ln 1/α) + z deviations are needed, z the quantile of the power:
    excess = spread·√(m / (m−1) / n)·(√(2 ln 1/α) + z). Near the floor, simulated instead.
    """
    sizes = block_sizes(n)
    need, floor = -log10_alpha, sum(math.lgamma(r + 1) for r in sizes) / LN10
    if floor < need or spread <= 0:
        return math.inf
    guess = spread * math.sqrt(BLOCK / (BLOCK - 1) / n) * _deviations(need, power)
    if n > _MANY and floor > _NEAR_FLOOR * need:
        return guess
    noise = np.random.default_rng(seed).normal(size=(_REPEATS, len(sizes), BLOCK, BLOCK))
    effect = smallest_effect(
        lambda excess: block_log10_p(noise + excess * np.eye(BLOCK), sizes),
        log10_alpha,
        power,
        0.5 * guess / spread,
        8.0 * guess / spread,
    )
    return spread * effect


def detectable_by_signs(
    n: int, spread: float, log10_alpha: float, power: float = POWER, seed: int = 0
) -> float:
    """Smallest mean of n matched signed values, scattered by `spread`, that signs would show.

    The bound is close to exp(−(Σt)²/2Σt²), so n·x²/(1 + x²) with x = mean/spread must reach
    (√(2 ln 1/α) + z)². Few values, or a level near the floor, are simulated.
    """
    need, floor = -log10_alpha, n * math.log10(2.0)
    if floor < need or spread <= 0:
        return math.inf
    share = _deviations(need, power) ** 2 / n
    if n > _MANY and floor > _NEAR_FLOOR * need:
        return spread * math.sqrt(share / (1.0 - share))
    noise = np.random.default_rng(seed).normal(size=(_REPEATS, n))
    effect = smallest_effect(
        lambda mean: sign_log10_p(noise + mean), log10_alpha, power, math.sqrt(share) / 2.0, 16.0
    )
    return spread * effect


def detectable_by_fixed_points(
    rows: int, layers: int, spread: float, log10_alpha: float, power: float = POWER
) -> float:
    """Smallest excess of a true pair's score that mutual nearest neighbours would show.

    A true pair with excess x (in units of the spread) is mutual if its score exceeds the 2(r−1)
    others in its row and column: q(x) = ∫ φ(z − x)·Φ(z)^{2(r−1)} dz. The number of fixed pairs
    is then about binomial(rows·layers, q), and enough of them are needed for the bound at its
    greatest rate, one a layer.
    """
    from scipy.special import bdtrc, log_ndtr

    total, shapes = rows * layers, [(rows, rows)] * layers
    needed = next(
        (k for k in range(1, total + 1) if fixed_point_log10_p(k, shapes) <= log10_alpha), 0
    )
    if not needed or spread <= 0:
        return math.inf
    low, high = 0.0, 64.0
    while high - low > 1e-3:
        x = (low + high) / 2.0
        z = np.linspace(x - 8.0, x + 8.0, 801)
        chance = np.trapezoid(np.exp(2 * (rows - 1) * log_ndtr(z) - np.square(z - x) / 2.0), z)
        enough = (
            bdtrc(needed - 1, total, min(1.0, float(chance) / math.sqrt(2.0 * math.pi))) >= power
        )
        low, high = (low, x) if enough else (x, high)
    return spread * high


def _deviations(digits: float, power: float) -> float:
    from scipy.special import ndtri

    return math.sqrt(2.0 * digits * LN10) + float(ndtri(power))
