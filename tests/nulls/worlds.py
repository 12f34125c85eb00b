"""Independent models to test nulls on: fixed contents, whose labels and signs are drawn anew.

In the hardest of them the two models hold the very same units, so that all features are shared
and nothing but labels and signs tells copies from strangers.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.stats import binom

from kinprint.nulls.blocks import blocked
from kinprint.nulls.preparation import normalise_rows
from kinprint.nulls.result import Floats, Ints

LEVELS = (0.05, 0.01, 1e-3)
KINDS = (
    "gaussian",
    "heavy",
    "shared",
    "same",
    "duplicates",
    "constant",
    "zero",
    "sorted",
    "sparse",
)


def contents(kind: str, n: int, d: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Rows of two models before labels are drawn."""
    a, b = rng.normal(size=(n, d)), rng.normal(size=(n, d))
    if kind == "heavy":
        a, b = rng.standard_cauchy((n, d)) ** 3, rng.standard_cauchy((n, d)) ** 3
    elif kind == "shared":
        feature = rng.normal(size=(n, d))
        a, b = a + 2 * feature + 1, b + 2 * feature + 1
    elif kind == "same":
        a = b.copy()
    elif kind == "duplicates":
        a[1::2] = a[: n - n % 2 : 2] * 3.0
        b[: n // 2] = b[0]
    elif kind == "constant":
        a[:] = 0.1
    elif kind == "zero":
        a[n // 2 :] = 0.0
        b[n // 2 :] = 0.0
    elif kind == "sorted":
        b *= np.arange(1, n + 1)[:, None]
        a *= np.arange(1, n + 1)[:, None]
    elif kind == "sparse":
        a, b = np.where(a > 1.5, a, 0.0), np.where(b > 1.5, b, 0.0)
    return a, b


def table(kind: str, n: int, d: int, rng: np.random.Generator) -> Floats:
    """Scores of all rows of the one with all of the other; raw products where order matters."""
    a, b = contents(kind, n, d, rng)
    if kind not in ("sorted", "heavy"):
        a, b = normalise_rows(a), normalise_rows(b)
    return a @ b.T


def block_products(a: Floats, b: Floats) -> Floats:
    """Score matrices (B, m, m) of inner products of rows (n, d) within each block."""
    products: Floats = blocked(a) @ blocked(b).swapaxes(1, 2)
    return products


def orders(repeats: int, n: int, rng: np.random.Generator) -> Ints:
    """Random labels, one permutation a repeat."""
    return rng.permuted(np.tile(np.arange(n), (repeats, 1)), axis=1)


def cut(scores: Floats, labels: Ints, m: int = 4) -> Floats:
    """Block matrices (R, B, m, m) of relabelled scores, zeros where the last block ends early."""
    n = labels.shape[1]
    full = -(-n // m) * m
    wide = np.zeros((len(scores) + 1, full))
    wide[: len(scores), :n] = scores
    padded = np.full((len(labels), full), len(scores))
    padded[:, :n] = labels
    rows = padded.reshape(len(labels), -1, m, 1)
    return wide[rows, np.arange(full).reshape(1, -1, 1, m)]


def assert_valid(log10_ps: Floats | Sequence[float], levels: Sequence[float] = LEVELS) -> None:
    """P-values reach each level no more often than they may, but for one chance in 1e5."""
    found = np.asarray(log10_ps)
    for level in levels:
        count = int((found <= np.log10(level) + 1e-12).sum())
        most = binom.ppf(1 - 1e-5, len(found), level)
        assert count <= most, f"{count} of {len(found)} p-values at or below {level}"
