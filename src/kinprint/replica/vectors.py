"""Norm vectors whose means, spreads and correlations are exactly the ones asked for.

Vectors drawn at random would miss the published cosines by the noise of 4,096 values. Here
the sample itself, not the distribution behind it, has the wanted moments. Values have 32 bits:
rounded to bf16, as the models have them, they would miss published correlations by up to a
thousandth.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from kinprint.replica.correlate import Key, Matrix, correlate
from kinprint.replica.figures import Moments, correlations, moments
from kinprint.replica.layout import Layout, Slot, layouts

Vector = NDArray[np.float32]
"""The values of one norm."""

SEED = 20260102
"""Where all randomness starts; the day the critique's results were made."""

BISECTIONS = 30
"""Steps to find the width of a sample; any spread that is left over is scaled away."""

BF16_DIGITS = 8
"""Binary digits of a number in bf16."""


@cache
def family_moments(role: str, hidden: int) -> Mapping[Key, Moments]:
    """Mean and spread of every published norm vector of one role in all models of one width."""
    return {
        (layout.key, layer): known
        for layout in layouts()
        if layout.dims["hidden"] == hidden and layout.parent is None
        for layer, known in moments(layout.key, role).items()
    }


def parent_of(layout: Layout) -> Layout | None:
    """The layout that a derived model shares its norms with."""
    return next((other for other in layouts() if other.key == layout.parent), None)


def written(layout: Layout) -> Iterator[tuple[str, Slot]]:
    """Each tensor of which something was published, with the file it lies in."""
    key = (parent_of(layout) or layout).key
    for path, slot in layout.norms():
        if (key, slot.layer) in family_moments(slot.role, layout.dims["hidden"]):
            yield path, slot


@cache
def family_vectors(role: str, hidden: int) -> Mapping[Key, Vector]:
    """Every published norm vector of one role in all models of one width, made together.

    They have to be made together, because their correlations were published.
    """
    wanted = family_moments(role, hidden)
    # The most lopsided vectors come first: orthogonalising leaves early ones as drawn, and
    # vectors whose spread exceeds their mean stay positive only if nothing is mixed in.
    keys = sorted(wanted, key=lambda key: -wanted[key].variation)
    known = [pair for pair in correlations() if pair.role == role and pair.a in wanted]
    matrix = correlate(sorted(keys), known)
    order = [sorted(keys).index(key) for key in keys]
    shapes = [wanted[key].variation for key in keys]
    unit = standardised(shapes, matrix[np.ix_(order, order)], hidden, f"{role} {hidden}")
    return {
        key: (wanted[key].mean + wanted[key].std * unit[:, i]).astype(np.float32)
        for i, key in enumerate(keys)
    }


def standardised(shapes: Sequence[float], matrix: Matrix, size: int, label: str) -> Matrix:
    """Columns of mean 0 and spread 1 whose sample correlations are exactly `matrix`.

    Column i starts as a log-normal sample with the coefficient of variation `shapes[i]`,
    as positive weights have; Cholesky factors first take away the correlations it came
    with, then put in the wanted ones.
    """
    drawn = generator(label).standard_normal((size, len(shapes)))
    lopsided = np.exp(drawn * _widths(drawn, np.asarray(shapes)))
    lopsided -= lopsided.mean(axis=0)
    lopsided /= lopsided.std(axis=0)
    had = np.linalg.cholesky(lopsided.T @ lopsided / size)
    wanted = np.linalg.cholesky(matrix)
    columns: Matrix = lopsided @ np.linalg.solve(had.T, wanted.T)
    return columns


def _widths(drawn: Matrix, shapes: Matrix) -> Matrix:
    """Widths of log-normal samples whose own coefficients of variation are `shapes`.

    A heavy-tailed sample falls short of its distribution's spread; stretched to the wanted
    one it would turn negative, so the width is found from the sample, by bisection.
    """
    low, high = np.zeros_like(shapes), 2.0 * np.sqrt(np.log1p(np.square(shapes)))
    for _ in range(BISECTIONS):
        middle = (low + high) / 2.0
        sample = np.exp(drawn * middle)
        narrow = sample.std(axis=0) < shapes * sample.mean(axis=0)
        low, high = np.where(narrow, middle, low), np.where(narrow, high, middle)
    return (low + high) / 2.0


def nudged(values: Vector, share: float, label: str) -> Vector:
    """A copy in which the given share of values is moved by one place of bf16, up or down.

    Fine-tuning with a small learning rate does this to bf16 weights: most steps are lost in
    rounding, the rest move a value by one place.
    """
    random = generator(label)
    where = random.permutation(values.size)[: round(share * values.size)]
    sign = np.where(random.integers(0, 2, where.size) == 1, 1.0, -1.0)
    copy = values.copy()
    copy[where] += np.ldexp(sign, np.frexp(values[where])[1] - BF16_DIGITS)
    return copy


def generator(label: str) -> np.random.Generator:
    """Randomness of its own for each label, so that one model never shifts another."""
    digest = hashlib.sha256(label.encode()).digest()
    return np.random.Generator(np.random.PCG64([SEED, int.from_bytes(digest[:8], "little")]))
