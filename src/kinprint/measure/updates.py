"""What two models changed in the same base: sums over the updates U = A - C and V = B - C.

Sums of tensors add up to those of a part. What is equal in both beyond chance is told by the
updates themselves: changes are counted in steps of the format, and those of one model are held
against those of the other at the next place. Zeros of A and B are left out: where they are may be
one mask.
"""

from __future__ import annotations

import math

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kinprint.measure.rounding import byte_steps

Floats = NDArray[np.float32]

ENERGY = 0.95
"""The share of an update's squares that its leading directions hold."""
FAR = 8
"""Steps of its format by which a number has changed by far."""
_FEWEST_FAR = 64
_MOST_DIRECTIONS = 4  # an update with more than one part in so many of all directions has full rank
_FEWEST_ROWS = 8
_MOST_ROWS = 256
_MANTISSAS = ((0xFFFF, 7), (0x1FFF, 10), (0, 23))  # bits that are zero in bfloat16, float16, all
_FEW, _PART = 0.1, 0.25  # of the numbers that differ, and of what was changed
_BLOCK, _LEVELS = 32, 24  # neighbours that share a step, and the most levels that show one


class Updates(Struct, frozen=True):
    """Sums over the places of three tensors at which neither A nor B is zero.

    Attributes
    ----------
    numbers : places that count.
    a, b : sums of squares of U and of V.
    product : sum of their products.
    base : sum of squares of C.
    changed_a, changed_b, changed : places that A changed, that B changed, and that both did.
    far : of the last, those that both changed by `FAR` steps of their format or more; none where
        both lie on a grid so coarse that their changes are a few of its steps.
    equal : of these, those with the same number in both.
    chance : as many as are equal if the changes of B stand one place further on.
    rounding : sum of squares that rounding alone puts into both updates alike.
    grid : sum of squares of what rounding to the grid of C changes.
    """

    numbers: int = 0
    a: float = 0.0
    b: float = 0.0
    product: float = 0.0
    base: float = 0.0
    changed_a: int = 0
    changed_b: int = 0
    changed: int = 0
    far: int = 0
    equal: int = 0
    chance: int = 0
    rounding: float = 0.0
    grid: float = 0.0

    def __add__(self, other: Updates) -> Updates:
        return Updates(
            self.numbers + other.numbers,
            self.a + other.a,
            self.b + other.b,
            self.product + other.product,
            self.base + other.base,
            self.changed_a + other.changed_a,
            self.changed_b + other.changed_b,
            self.changed + other.changed,
            self.far + other.far,
            self.equal + other.equal,
            self.chance + other.chance,
            self.rounding + other.rounding,
            self.grid + other.grid,
        )

    @property
    def cosine(self) -> float | None:
        """Of U and V; None where one of them is nothing."""
        size = math.sqrt(self.a) * math.sqrt(self.b)
        return float(np.clip(self.product / size, -1.0, 1.0)) if size > 0 else None

    @property
    def of_b_on_a(self) -> float | None:
        """How much of U is in V: the coefficient of the regression of V on U."""
        return self.product / self.a if self.a > 0 else None

    @property
    def of_a_on_b(self) -> float | None:
        """How much of V is in U."""
        return self.product / self.b if self.b > 0 else None

    @property
    def apart(self) -> float | None:
        """The size of V - U as a share of the smaller of U and V."""
        smaller = min(self.a, self.b)
        squares = max(self.a + self.b - 2 * self.product, 0.0)
        return math.sqrt(squares / smaller) if smaller > 0 else None

    @property
    def in_common(self) -> float | None:
        """The share of numbers that both changed by far which are equal, chance taken off.

        One where all are, zero where as many are as by chance; None where these are too few. Small
        changes are often equal because both descend one gradient, and coarse grids make others so.
        """
        if self.rounding > 0 or self.far < max(_FEWEST_FAR, self.chance + 1):
            return None
        return (self.equal - self.chance) / (self.far - self.chance)

    @property
    def sizes(self) -> tuple[float, float]:
        """The sizes of U and V as shares of that of C."""
        base = math.sqrt(self.base)
        return (math.sqrt(self.a) / base, math.sqrt(self.b) / base) if base else (0.0, 0.0)

    @property
    def rounded(self) -> float:
        """How much of the smaller update rounding alone may have put into both."""
        smaller = min(self.a, self.b)
        return self.rounding / smaller if smaller > 0 else 0.0

    @property
    def fine(self) -> float:
        """The rounding of C as a share of the smaller update: it is in both if they were tuned
        from what C was before it was rounded."""
        smaller = min(self.a, self.b)
        return self.grid / smaller if smaller > 0 else 0.0


def updates(a: Floats, b: Floats, c: Floats) -> Updates:
    """Sums over three arrays of one shape; places without a finite number are left out."""
    kept = np.isfinite(a) & np.isfinite(b) & np.isfinite(c)
    kept &= ((a != 0) & (b != 0)) | (c == 0)
    x, y, z = (one[kept] for one in (a, b, c))
    u, v = (one.astype(np.float64) - z for one in (x, y))
    ours, theirs = u != 0, v != 0
    both = ours & theirs
    steps = np.exp2(np.frexp(z[both])[1] - 1.0 - max(map(_mantissa, (x, y, z))))
    k, m = (np.rint(one[both] / steps) for one in (u, v))
    far = (np.abs(k) >= FAR) & (np.abs(m) >= FAR)
    if _on_coarse_grid((x - y)[both][far], np.maximum(np.abs(u), np.abs(v))[both][far]):
        far[:] = False
    k, m = (one[far] for one in (k, m))
    errors = [_rounding_error(one) for one in (a, b, c)]
    return Updates(
        numbers=int(kept.sum()),
        a=float(u @ u),
        b=float(v @ v),
        product=float(u @ v),
        base=float(np.square(z, dtype=np.float64).sum()),
        changed_a=int(ours.sum()),
        changed_b=int(theirs.sum()),
        changed=int(both.sum()),
        far=int(far.sum()),
        equal=int((x[both] == y[both])[far].sum()),
        chance=int((k == np.roll(m, 1)).sum()) if len(k) > 1 else 0,
        rounding=_shared_rounding(*errors) * int(kept.sum()),
        grid=errors[2] * int(kept.sum()),
    )


class Overlap(Struct, frozen=True):
    """How much two updates of low rank have their leading directions in common.

    Attributes
    ----------
    share : of the directions of the update that has fewer, how much lies in those of the other.
    chance : what two random subspaces of these ranks have in common on average.
    ranks : how many directions hold `ENERGY` of each.
    """

    share: float
    chance: float
    ranks: tuple[int, int]

    @property
    def beyond(self) -> float:
        """What is in common beyond chance, one where all is."""
        return (self.share - self.chance) / (1.0 - self.chance) if self.chance < 1 else 0.0


def overlap(u: Floats, v: Floats) -> Overlap | None:
    """Compare the leading directions of the rows of two updates; None where one has full rank."""
    if len(u) < _FEWEST_ROWS or not (np.isfinite(u).all() and np.isfinite(v).all()):
        return None
    ours, theirs = leading(u), leading(v)
    if ours is None or theirs is None:
        return None
    ranks = len(ours), len(theirs)
    share = float(np.square(ours @ theirs.T).sum() / min(ranks))
    return Overlap(share, max(ranks) / u.shape[1], ranks)


def leading(update: Floats) -> NDArray[np.float64] | None:
    """Directions that hold `ENERGY` of an update's rows; None if these are too many to tell."""
    rows = update[:: max(1, len(update) // _MOST_ROWS)].astype(np.float64)
    size = float(np.sqrt(np.square(rows).sum()))
    if size == 0:
        return None
    rows /= size
    wide = rows.shape[0] < rows.shape[1]
    squares, vectors = np.linalg.eigh(rows @ rows.T if wide else rows.T @ rows)
    rank = int(np.searchsorted(np.cumsum(squares[::-1]), ENERGY)) + 1
    if rank > len(squares) // _MOST_DIRECTIONS:
        return None
    kept = vectors[:, ::-1][:, :rank]
    return (kept / np.sqrt(squares[::-1][:rank])).T @ rows if wide else kept.T


def _mantissa(values: Floats) -> int:
    """Bits of mantissa of the shortest format that holds the numbers."""
    bits = np.ascontiguousarray(values, np.float32).reshape(-1).view(np.uint32)
    used = int(np.bitwise_or.reduce(bits, initial=0))
    return next(size for zeros, size in _MANTISSAS if not used & zeros)


def _on_coarse_grid(apart: Floats, changes: NDArray[np.float64]) -> bool:
    """Whether numbers that differ do so by no less than a good part of what was changed."""
    differing = apart != 0
    if not differing.any():
        return False
    least = np.quantile(np.abs(apart[differing]), _FEW)
    return bool(least > _PART * np.median(changes[differing]))


def _rounding_error(values: Floats) -> float:
    """The mean square of what rounding to the grid of the numbers changes, as far as it shows.

    Steps are shared along rows as they are stored, which may be columns here.
    """
    rows = np.atleast_2d(values)
    squares = float(np.square(rows, dtype=np.float64).mean()) if rows.size else 0.0
    floats = squares * 4.0 ** -(_mantissa(rows) + 1) / 3.0
    return max([floats, *map(_grid_error, (rows, rows.T))])


def _grid_error(rows: Floats) -> float:
    """The same for a grid whose steps are shared by neighbours in a row; 0 where there is none."""
    some = rows[:: max(1, len(rows) // _MOST_ROWS)]
    width = some.shape[1] - some.shape[1] % _BLOCK
    if not width:
        return 0.0
    steps = byte_steps(some)
    if not len(steps):
        gaps = np.diff(np.sort(some[:, :width].reshape(-1, _BLOCK), axis=1), axis=1)
        if np.median(1 + np.count_nonzero(gaps, axis=1)) > _LEVELS:
            return 0.0
        least = np.where(gaps > 0, gaps, np.inf).min(axis=1)
        steps = least[np.isfinite(least)].astype(np.float64)
    return float(np.square(steps).mean()) / 12.0 if len(steps) else 0.0


def _shared_rounding(a: float, b: float, c: float) -> float:
    """What both updates have of one rounding: that of a base coarser than both, or of the base's
    numbers to the grids of two models that are coarser than it."""
    return c if c > 2 * max(a, b) else min(a, b) if min(a, b) > 2 * c else 0.0
