"""P-values by drawing relabellings: slow, coarse and beyond doubt, the check of every bound."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from kinprint.nulls.result import Floats, NullResult, no_evidence


def drawn_log10_p(observed: float, draws: ArrayLike) -> float:
    """Log10 of (1 + #{draw ≥ observed}) / (draws + 1).

    The observed labelling is one more draw under the null, so the rank of the observed value
    among all of them is uniform; ties, and draws short of it by rounding only, count against
    the finding.
    """
    null = np.asarray(draws, np.float64).reshape(-1)
    slack = 1e-9 * max(abs(observed), float(np.abs(null).max(initial=0.0)))
    return math.log10((1 + int((null >= observed - slack).sum())) / (null.size + 1))


def check(result: NullResult) -> float:
    """Log10 p of a result by the sample of its own null: no bound should lie below by luck.

    Where this p is not at its smallest, a valid bound lies above the true p that it estimates.
    """
    return drawn_log10_p(result.statistic, result.null)


def global_permutation(tables: Sequence[ArrayLike], draws: int = 999, seed: int = 0) -> NullResult:
    """Test the diagonals of square score tables against permutations of all their rows.

    One table a layer, each with its own permutation. It needs labels that are exchangeable
    over the whole range, which blocks do not; the smallest p is 1/(draws + 1).
    """
    kept = [_finite(table) for table in tables if np.asarray(table).size]
    n = sum(len(table) for table in kept)
    if not n:
        return no_evidence("Monte Carlo")
    rng = np.random.default_rng(seed)
    observed = float(sum(np.trace(table) for table in kept))
    null = np.zeros(draws)
    for table in kept:
        rows = np.arange(len(table))
        orders = rng.permuted(np.tile(rows, (draws, 1)), axis=1)
        null += table[rows[None, :], orders].sum(axis=1)
    chance = sum(float(table.mean()) * len(table) for table in kept)
    return NullResult(
        statistic=observed,
        log10_p=drawn_log10_p(observed, null),
        bound="Monte Carlo",
        floor=-math.log10(draws + 1),
        effect=(observed - chance) / n,
        n=n,
        null=tuple(null.tolist()),
        details={"draws": float(draws)},
    )


def _finite(table: ArrayLike) -> Floats:
    given = np.asarray(table, np.float64)
    if given.ndim != 2 or given.shape[0] != given.shape[1]:
        raise ValueError(f"a score table is square, not {given.shape}")
    return np.where(np.isfinite(given), given, 0.0)


def deviations(statistic: float | None, null: Sequence[float]) -> float | None:
    """How many standard deviations of a null's sample a statistic lies above its mean.

    For pictures only: nulls here are bounded and skewed, so that no normal tail applies.
    """
    known = [value for value in null if math.isfinite(value)]
    if statistic is None or not math.isfinite(statistic) or len(known) < 2:
        return None
    spread = float(np.std(known, ddof=1))
    return (statistic - float(np.mean(known))) / spread if spread > 0 else None
