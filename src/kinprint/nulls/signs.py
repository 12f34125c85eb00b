"""Signs of matched things as fair coins: exact Chernoff bounds, for half and quarter turns.

Labels may have been permuted away; after units are matched again by a score that no flip
changes, each unit of an independent model still carries its own fair coin. The coin belongs to
the model that supplies the symmetry: one value t for each of *its* units, whichever partner it
found. Values of units that are copies of one another share a coin and are summed before.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinprint.nulls.chernoff import each_together, least_exponent, log_cosh
from kinprint.nulls.result import LN10, Floats, NullResult, drawn, no_evidence, portions
from kinprint.records import Sensitivity


def sign_chernoff(values: ArrayLike, seed: int | None = 0, unit: float | None = None) -> NullResult:
    """Test whether matched values lean to the positive side more than fair coins would.

    Given the sizes |t_i|, T = Σ ε_i |t_i| with independent signs, the mean of e^{sT} is
    Π cosh(s·t_i), and p ≤ min over s of exp(Σ log cosh(s·t_i) − s·Σ t_i). Zeros and what is
    no number have no sign: they are dropped, which depends on sizes alone. Equal sizes need
    no care, for nothing is ranked. The effect is the mean value; `agreement` is Σt / Σ|t|. `unit`
    is what an effect of one adds to a value, where nothing was matched to find it.
    """
    t = np.asarray(values, np.float64).reshape(-1)
    t = t[np.isfinite(t) & (t != 0)]
    if not t.size:
        return no_evidence("signs")
    size = np.abs(t)

    def draw(rng: np.random.Generator) -> Floats:
        # A sum of signed sizes is twice the sum of those that are positive, less all of them.
        heads = [rng.integers(2, size=(some, t.size), dtype=np.int8) for some in portions(t.size)]
        return np.asarray(2.0 * np.concatenate([some @ size for some in heads]) - size.sum())

    return NullResult(
        statistic=float(t.sum()),
        log10_p=float(sign_log10_p(t[None])[0]),
        bound="signs",
        floor=-t.size * math.log10(2.0),
        effect=float(t.mean()),
        n=t.size,
        null=drawn(seed, draw),
        details={"agreement": float(t.sum() / size.sum()), "positive": float((t > 0).mean())},
        sensitivity=_sensitivity(float(np.square(t).sum()), t.size, unit),
    )


def sign_log10_p(values: ArrayLike) -> Floats:
    """Bound of `sign_chernoff` for many problems (R, n) at once."""
    given = np.atleast_2d(np.asarray(values, np.float64))
    t = np.where(np.isfinite(given), given, 0.0)
    size = np.abs(t)
    if not t.shape[1]:
        return np.zeros(len(t))
    exponent = least_exponent(
        lambda s: log_cosh(s[:, None] * size).sum(axis=1),
        t.sum(axis=1),
        np.square(t).sum(axis=1),
        size.max(axis=1),
        size.sum(axis=1),
    )
    return exponent / LN10


def each_sign_log10_p(problems: Sequence[Floats]) -> list[float]:
    """Bound of `sign_chernoff` for vectors of values, of any lengths."""
    return _each(sign_log10_p, problems)


def quarter_turns(
    values: NDArray[np.complexfloating] | ArrayLike, seed: int | None = 0, unit: float | None = None
) -> NullResult:
    """Test complex matched values c against turns of each plane by 0, 90, 180 or 270 degrees.

    The statistic is Σ Re c. Its four equally likely values are ±Re c and ±Im c, so the mean of
    e^{sT} is ½(cosh(s·Re c) + cosh(s·Im c)): four elements a plane instead of two. Not for
    planes whose two halves are scaled by different gains, which a quarter turn would swap. `unit`
    is what an effect of one adds to a value's real part, as in `sign_chernoff`.
    """
    c = np.asarray(values, np.complex128).reshape(-1)
    c = c[np.isfinite(c) & (c != 0)]
    if not c.size:
        return no_evidence("quarter turns")

    def draw(rng: np.random.Generator) -> Floats:
        turned, every = np.stack([c.real, -c.imag, -c.real, c.imag]), np.arange(c.size)
        return np.concatenate(
            [
                turned[rng.integers(4, size=(some, c.size), dtype=np.uint8), every].sum(axis=1)
                for some in portions(c.size)
            ]
        )

    return NullResult(
        statistic=float(c.real.sum()),
        log10_p=float(quarter_log10_p(c[None])[0]),
        bound="quarter turns",
        floor=-c.size * math.log10(4.0),
        effect=float(c.real.mean()),
        n=c.size,
        null=drawn(seed, draw),
        details={"agreement": float(c.real.sum() / np.abs(c).sum())},
        sensitivity=_sensitivity(float(np.square(np.abs(c)).sum()) / 2.0, c.size, unit),
    )


def _sensitivity(variance: float, n: int, unit: float | None) -> Sensitivity | None:
    """An effect adds a unit to each of n values, and its square to the variance of each coin."""
    if unit is None:
        return None
    return Sensitivity(math.sqrt(variance), n * unit, math.sqrt(n) * unit)


def quarter_log10_p(values: NDArray[np.complexfloating] | ArrayLike) -> Floats:
    """Bound of `quarter_turns` for many problems (R, n) at once."""
    given = np.atleast_2d(np.asarray(values, np.complex128))
    c = np.where(np.isfinite(given), given, 0.0)
    if not c.shape[1]:
        return np.zeros(len(c))
    re, im = c.real, c.imag

    def log_mgf(s: Floats) -> Floats:
        scale = s[:, None]
        terms = np.logaddexp(log_cosh(scale * re), log_cosh(scale * im)) - math.log(2.0)
        found: Floats = terms.sum(axis=1)
        return found

    size = np.maximum(np.abs(re), np.abs(im))
    exponent = least_exponent(
        log_mgf,
        re.sum(axis=1),
        np.square(np.abs(c)).sum(axis=1) / 2.0,
        size.max(axis=1),
        size.sum(axis=1),
    )
    return exponent / LN10


def each_quarter_log10_p(problems: Sequence[NDArray[np.complexfloating]]) -> list[float]:
    """Bound of `quarter_turns` for vectors of values, of any lengths."""
    return _each(quarter_log10_p, problems)


def _each(bound: Callable[[ArrayLike], Floats], problems: Sequence[NDArray[Any]]) -> list[float]:
    return each_together(
        [one.size for one in problems], lambda some: bound(np.stack([problems[at] for at in some]))
    )
