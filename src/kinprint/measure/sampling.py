"""Intervals for statistics that were computed from a sample of rows.

Sixteen rows cost little to read, but then say how far the whole may lie from them. All
intervals assume that rows were drawn at random without replacement; `population` is how
many there are in the whole, and None means very many.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from kinprint.measure import blocks
from kinprint.measure.blocks import Floats


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate and the bounds that cover the whole's value with probability `level`.

    NaN bounds mean that the sample says nothing about its own error.
    """

    value: float
    low: float
    high: float
    level: float
    rows: int
    population: int | None
    method: str


def student_interval(
    values: ArrayLike, population: int | None = None, level: float = 0.95
) -> Interval:
    """Mean ± t·s/√n·√(1 − n/N), with Student's t for n − 1 degrees of freedom.

    The last root corrects for a finite whole (Cochran 1977, section 2.8). Nearly right for
    row cosines, which are bounded and rarely skewed: simulated coverage at 0.95 was 0.94 to
    0.96 from eight rows on. `bounded_interval` needs no such luck.
    """
    known = _known(values)
    mean = float(known.mean()) if len(known) else math.nan
    error = float(known.std(ddof=1)) / math.sqrt(len(known)) if len(known) > 1 else math.nan
    reach = _student(level, len(known)) * error * _correction(len(known), population)
    return Interval(mean, mean - reach, mean + reach, level, len(known), population, "student")


def bounded_interval(
    values: ArrayLike,
    population: int | None = None,
    level: float = 0.95,
    bounds: tuple[float, float] = (-1.0, 1.0),
) -> Interval:
    """Mean with bounds that hold for any values within `bounds`, whatever their distribution.

    The tighter of two, each allowed half of the error. Hoeffding-Serfling (Serfling 1974):
    (b−a)·√(ρ·ln(2/δ)/(2n)) with ρ = 1 − (n−1)/N. Empirical Bernstein-Serfling (Bardenet and
    Maillard 2015, theorem 4): σ·√(2ρ·ln(10/δ)/n) + κ(b−a)·ln(10/δ)/n with the sample's σ,
    κ = 7/3 + 3/√2, and beyond half of the whole ρ = (1 − n/N)(1 + 1/n). Certain, hence wide:
    ±0.4 for 64 rows, and it takes several hundred before the second is the tighter one.
    """
    known = _known(values)
    n, (low, high) = len(known), bounds
    if not n:
        return Interval(math.nan, math.nan, math.nan, level, 0, population, "serfling")
    mean, whole = float(known.mean()), math.inf if population is None else max(population, n)
    half = (1 - level) / 2
    rho = 1 - (n - 1) / whole
    plain = (high - low) * math.sqrt(rho * math.log(2 / half) / (2 * n))
    log = math.log(10 / half)
    finer = rho if n <= whole / 2 else (1 - n / whole) * (1 + 1 / n)
    bernstein = float(known.std()) * math.sqrt(2 * finer * log / n)
    bernstein += (7 / 3 + 3 / math.sqrt(2)) * (high - low) * log / n
    reach = min(plain, bernstein) if n < whole else 0.0
    lowest, highest = max(low, mean - reach), min(high, mean + reach)
    return Interval(mean, lowest, highest, level, n, population, "serfling")


def cosine_interval(
    a: ArrayLike, b: ArrayLike, population: int | None = None, level: float = 0.95
) -> Interval:
    """Cosine of two whole matrices from the same sampled rows of both.

    The cosine is a ratio of sums over rows, so its error comes from leaving out each row in
    turn (jackknife; Efron and Stein 1981), on Fisher's scale artanh so that the bounds stay
    within ±1, with Student's t for n − 1 degrees of freedom and the finite correction.
    Simulated coverage at 0.95: 0.94 to 0.96 for rows of like length; 0.89 to 0.93 when the
    logarithms of the lengths scatter by 0.5, and 0.84 to 0.88 when by 1, for then a few long
    rows decide and the sample may miss them.
    """
    xx, yy, xy = _row_sums(a, b)
    n = len(xx)
    value = _ratio(xx.sum(), yy.sum(), xy.sum()) if n else math.nan
    if n < 2 or math.isnan(value):
        return Interval(value, math.nan, math.nan, level, n, population, "jackknife")
    left_out = _fisher(xx.sum() - xx, yy.sum() - yy, xy.sum() - xy)
    error = math.sqrt((n - 1) / n * float(((left_out - left_out.mean()) ** 2).sum()))
    reach = _student(level, n) * error * _correction(n, population)
    centre = float(_fisher(xx.sum(), yy.sum(), xy.sum()))
    bounds = math.tanh(centre - reach), math.tanh(centre + reach)
    return Interval(value, *bounds, level, n, population, "jackknife")


@blocks.quiet
def _row_sums(a: ArrayLike, b: ArrayLike) -> tuple[Floats, Floats, Floats]:
    x, y = blocks.matrix(a), blocks.matrix(b)
    if x.shape != y.shape:
        raise ValueError(f"matrices of shape {x.shape} and {y.shape} have no rows in common")
    powers = [blocks.exponent_of(blocks.scan(m).peak) for m in (x, y)]
    found = np.empty((3, x.shape[0]))
    for part in blocks.row_blocks(x):
        p, q = (blocks.cast(m[part], power) for m, power in zip((x, y), powers, strict=True))
        for line, (one, other) in zip(found, ((p, p), (q, q), (p, q)), strict=True):
            line[part] = np.einsum("ij,ij->i", one, other)
    return found[0], found[1], found[2]


def _ratio(xx: float, yy: float, xy: float) -> float:
    return blocks.Sums(0, float(xx), float(yy), float(xy)).cosine if math.isfinite(xy) else math.nan


@blocks.quiet
def _fisher(xx: ArrayLike, yy: ArrayLike, xy: ArrayLike) -> Floats:
    """Fisher's z; equal matrices would be infinite and stop just short of it."""
    cosines = np.asarray(xy) / np.sqrt(np.asarray(xx)) / np.sqrt(np.asarray(yy))
    found: Floats = np.arctanh(np.clip(cosines, -1 + 1e-15, 1 - 1e-15))
    return found


def _known(values: ArrayLike) -> Floats:
    given = np.asarray(values, np.float64).reshape(-1)
    return given[np.isfinite(given)]


def _correction(n: int, population: int | None) -> float:
    return 1.0 if population is None else math.sqrt(max(0.0, 1 - n / max(population, 1)))


def _student(level: float, n: int) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(n - 1, 0.5 + level / 2)) if n > 1 else math.nan
