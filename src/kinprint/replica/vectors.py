"""Norm vectors whose means, spreads and correlations are exactly the ones asked for.

Vectors drawn at random would miss the published cosines by the noise of 4,096 values. Here
the sample itself, not the distribution behind it, has the wanted moments; only rounding to
bf16 moves them afterwards.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from kinprint.replica.correlate import Key, Matrix, correlate
from kinprint.replica.figures import Moments, correlations, moments
from kinprint.replica.layout import Layout, Slot, layouts

Bits = NDArray[np.uint16]
"""Values in bf16, seen as their bits: numpy has no such type of its own."""

SEED = 20260102
"""Where all randomness starts; the day the critique's results were made."""

TURNS = 400
"""Most values of a vector that are rounded the other way."""

BISECTIONS = 30
"""Steps to find the width of a sample; its error then lies far below the rounding to bf16."""


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
def family_vectors(role: str, hidden: int) -> Mapping[Key, Bits]:
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
    linked: dict[Key, dict[Key, float]] = {key: {} for key in keys}
    for pair in known:
        linked[pair.a][pair.b] = linked[pair.b][pair.a] = pair.value
    done: dict[Key, Bits] = {}
    for i, key in enumerate(keys):
        own = wanted[key]
        partners = [
            (wanted[other], r, done[other]) for other, r in linked[key].items() if other in done
        ]
        done[key] = rounded_to_keep(own, unit[:, i], partners)
    return done


def rounded_to_keep(
    own: Moments, unit: Matrix, partners: Sequence[tuple[Moments, float, Bits]]
) -> Bits:
    """Values in bf16 that keep their moments and their correlations with vectors already rounded.

    Rounding each value to the nearest moves a correlation by up to a thousandth. Here values
    between two neighbours of the format are turned to the other one, always that which brings the
    wanted sums nearest, until they agree or no turn helps.
    """
    exact, size = own.mean + own.std * unit, len(unit)
    bits = to_bits(exact)
    values = from_bits(bits)
    step = np.where((exact > values) == (values >= 0), 1, -1)
    turned = (bits.astype(np.int32) + step).astype(np.uint16)
    others = from_bits(turned)
    lines, goals = [np.ones(size)], [size * own.mean]
    for beside, r, known in partners:
        lines.append((from_bits(known) - beside.mean) / beside.std)
        goals.append(size * r * own.std)
    spread = [(side - own.mean) ** 2 / (2 * own.std) for side in (values, others)]
    sums = np.stack(lines)
    change = np.vstack([sums * (others - values), spread[1] - spread[0]])
    missing = np.append(goals - sums @ values, size * own.std / 2 - spread[0].sum())
    for _ in range(TURNS):
        left = ((missing[:, None] - change) ** 2).sum(axis=0)
        best = int(left.argmin())
        if left[best] >= missing @ missing:
            break
        missing -= change[:, best]
        bits[best], turned[best] = turned[best], bits[best]
        change[:, best] *= -1
    return bits


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


def nudged(values: Bits, share: float, label: str) -> Bits:
    """A copy in which the given share of values is the next larger or smaller number.

    Fine-tuning with a small learning rate does this to bf16 weights: most steps are lost in
    rounding, the rest move a value by one place.
    """
    random = generator(label)
    where = random.permutation(values.size)[: round(share * values.size)]
    step = np.where(random.integers(0, 2, where.size) == 1, 1, -1)
    step[values[where] & 0x7FFF == 0] = 1
    copy = values.copy()
    copy[where] = (values[where].astype(np.int32) + step).astype(np.uint16)
    return copy


def generator(label: str) -> np.random.Generator:
    """Randomness of its own for each label, so that one model never shifts another."""
    digest = hashlib.sha256(label.encode()).digest()
    return np.random.Generator(np.random.PCG64([SEED, int.from_bytes(digest[:8], "little")]))


def to_bits(values: Matrix) -> Bits:
    """Round to bf16."""
    return values.astype(np.float32).astype(ml_dtypes.bfloat16).view(np.uint16)


def from_bits(bits: Bits) -> Matrix:
    """The numbers that bf16 bits stand for."""
    values: Matrix = bits.view(ml_dtypes.bfloat16).astype(np.float64)
    return values
