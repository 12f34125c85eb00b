"""Arrays in blocks of float64, and the sums that every measure is made of.

A whole double copy of a large matrix would cost more memory than the matrix; a block fits
the cache. Values whose squares would leave float64's range are scaled by a power of two.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import ArrayLike, NDArray

Array = NDArray[Any]
Floats = NDArray[np.float64]

BLOCK = 1 << 18
"""Elements a block: two MiB of float64."""

_SAFE = 400
"""Binary exponents up to which squares, and sums of very many of them, stay in range."""

quiet = np.errstate(all="ignore")
"""Casts of signalling NaNs and sums of infinities have defined results here, not warnings."""


class Scan(Struct, frozen=True):
    """What one pass over an array tells; least, greatest and peak are of finite values."""

    size: int
    least: float
    greatest: float
    nan: int
    infinite: int

    @property
    def peak(self) -> float:
        """Largest absolute value."""
        return max(abs(self.least), abs(self.greatest))

    @property
    def finite(self) -> bool:
        """Whether there is neither NaN nor infinity."""
        return not self.nan and not self.infinite

    @property
    def constant(self) -> bool:
        """Whether all values are equal."""
        return self.least == self.greatest


class Sums(Struct, frozen=True):
    """Sums of squares and products of two vectors, about zero or about their means.

    Each vector counts as divided by a power of two, which is one for all but extreme values;
    `exponent_a` is that of the first.
    """

    size: int
    aa: float
    bb: float
    ab: float
    exponent_a: int = 0

    @property
    def cosine(self) -> float:
        """Product over the root of the squares; NaN if one of them is zero."""
        scale = math.sqrt(self.aa) * math.sqrt(self.bb) if self.aa > 0 < self.bb else 0.0
        return clip(self.ab / scale) if scale else math.nan


def flat(a: ArrayLike) -> NDArray[Any]:
    """One axis, the stored type kept."""
    return np.asarray(a).reshape(-1)


def pair(a: ArrayLike, b: ArrayLike) -> tuple[NDArray[Any], NDArray[Any]]:
    """Two vectors of one length; another length is the caller's mistake and raises."""
    x, y = flat(a), flat(b)
    if len(x) != len(y):
        raise ValueError(f"vectors of {len(x)} and {len(y)} numbers cannot be compared")
    return x, y


def matrix(a: ArrayLike) -> NDArray[Any]:
    """Two axes: the last gives the columns, all others the rows; a vector is one row."""
    x = np.asarray(a)
    return x.reshape(math.prod(x.shape[:-1]), x.shape[-1] if x.ndim else 1)


@quiet
def cast(part: NDArray[Any], exponent: int = 0) -> Floats:
    """A block in float64, divided by two to the power `exponent`."""
    block = part.astype(np.float64)
    if abs(exponent) > 1000:
        return np.ldexp(block, -exponent)
    if exponent:
        block *= 2.0**-exponent
    return block


def each(vector: NDArray[Any], exponent: int = 0, block: int = BLOCK) -> Iterator[Floats]:
    """The blocks of a vector, in order."""
    for start in range(0, len(vector), block):
        yield cast(vector[start : start + block], exponent)


def row_blocks(rows: NDArray[Any], block: int = BLOCK) -> Iterator[slice]:
    """Slices of rows that hold about a block of elements each."""
    step = max(1, block // max(1, rows.shape[1]))
    for start in range(0, rows.shape[0], step):
        yield slice(start, min(start + step, rows.shape[0]))


@quiet
def scan(a: ArrayLike, block: int = BLOCK) -> Scan:
    """Extent of the values, and how many are no numbers."""
    vector = flat(a)
    least, greatest, nan, infinite = math.inf, -math.inf, 0, 0
    for part in each(vector, block=block):
        low, high = float(part.min()), float(part.max())
        if not (math.isfinite(low) and math.isfinite(high)):
            nan += int(np.isnan(part).sum())
            infinite += int(np.isinf(part).sum())
            part = part[np.isfinite(part)]
            if not part.size:
                continue
            low, high = float(part.min()), float(part.max())
        least, greatest = min(least, low), max(greatest, high)
    if least > greatest:
        least = greatest = 0.0
    return Scan(len(vector), least, greatest, nan, infinite)


def exponent_of(peak: float) -> int:
    """Power of two to divide by so that squares stay in range; zero for usual values."""
    power = math.frexp(peak)[1] if peak else 0
    return power if abs(power) > _SAFE else 0


@quiet
def mean_of(vector: NDArray[Any], exponent: int = 0, block: int = BLOCK) -> float:
    """Mean of a vector divided by two to the power `exponent`; NaN of nothing."""
    if not len(vector):
        return math.nan
    return math.fsum(float(part.sum()) for part in each(vector, exponent, block)) / len(vector)


@quiet
def sums(a: ArrayLike, b: ArrayLike, centred: bool = False, block: int = BLOCK) -> Sums | None:
    """Sums of squares and products, or None if a value is no finite number.

    Centred sums take a second pass and subtract what the rounded mean left over (Chan,
    Golub and LeVeque 1983), so a small scatter about a large mean is not lost. A constant
    vector has exactly no scatter, whatever rounding says of its mean.
    """
    x, y = pair(a, b)
    scans = scan(x, block), scan(y, block)
    if not all(one.finite for one in scans):
        return None
    ex, ey = (exponent_of(one.peak) for one in scans)
    mean_x = mean_of(x, ex, block) if centred and len(x) else 0.0
    mean_y = mean_of(y, ey, block) if centred and len(y) else 0.0
    parts = []
    for p, q in zip(each(x, ex, block), each(y, ey, block), strict=True):
        if centred:
            p -= mean_x
            q -= mean_y
        left = (float(p.sum()), float(q.sum())) if centred else (0.0, 0.0)
        parts.append((dot(p, p), dot(q, q), dot(p, q), *left))
    xx, yy, xy, left_x, left_y = totals(parts, 5)
    if centred and len(x):
        xx = 0.0 if scans[0].constant else xx - left_x * left_x / len(x)
        yy = 0.0 if scans[1].constant else yy - left_y * left_y / len(x)
        xy -= left_x * left_y / len(x)
    return Sums(len(x), xx, yy, xy, ex)


def dot(p: Floats, q: Floats) -> float:
    """Sum of products on one core: a library's threads cost more than they bring here."""
    return float(np.einsum("i,i->", p, q))


def totals(parts: Iterable[tuple[float, ...]], width: int) -> list[float]:
    """Sums of columns, exact but for one rounding; zeros where there are no parts."""
    columns = list(zip(*parts, strict=True))
    return [math.fsum(column) for column in columns] if columns else [0.0] * width


def unscale(value: float, exponent: int) -> float:
    """Multiply by two to the power `exponent`; beyond float64 is infinity."""
    try:
        return math.ldexp(value, exponent)
    except OverflowError:
        return math.copysign(math.inf, value)


def clip(value: float) -> float:
    """Take off what rounding puts beyond one."""
    return max(-1.0, min(1.0, value))
