"""Several p-values into one: menus fixed in advance, independent tests, e-values, spending.

Everything runs in log10, because p-values of 1e-400 are ordinary here. A menu counts all that
could have been run: tests, variants, orientations and escalations, not what was run so far.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from kinprint.nulls.result import LN10


def bonferroni(log10_ps: Sequence[float], menu: int) -> float:
    """Smallest p times the length of the menu: valid under any dependence (union bound).

    `menu` is at least the number of p-values given; tests that could not be run stay on it.
    """
    if menu < len(log10_ps) or menu < 1:
        raise ValueError(f"a menu of {menu} cannot hold {len(log10_ps)} tests")
    return min(0.0, min(log10_ps, default=0.0) + math.log10(menu))


def fisher(log10_ps: Sequence[float]) -> float:
    """Combine independent p-values by their product (Fisher 1932), exactly.

    For L uniform and independent p, x = −Σ ln p has the tail e^{−x} Σ_{j<L} x^j / j!. p-values
    that are larger than uniform only make the tail smaller, so bounds may be combined too.
    """
    if not len(log10_ps):
        return 0.0
    x = -LN10 * math.fsum(log10_ps)
    if x < 0 or max(log10_ps) > 0:
        raise ValueError("p-values lie between zero and one")
    if x == 0:
        return 0.0
    j = np.arange(len(log10_ps))
    logs = j * math.log(x) - np.concatenate([[0.0], np.cumsum(np.log(j[1:]))])
    top = float(logs.max())
    total = top + math.log(float(np.exp(logs - top).sum()))
    return min(0.0, (total - x) / LN10)


def calibrate(log10_p: float, kappa: float = 0.5) -> float:
    """Turn a p-value into an e-value κ·p^(κ−1), in log10 (Vovk and Wang 2021).

    It falls with p and its integral over (0, 1) is one, so its mean under the null is at most
    one, for conservative p-values too.
    """
    if not 0 < kappa < 1:
        raise ValueError(f"kappa lies between zero and one, not at {kappa}")
    return math.log10(kappa) + (kappa - 1.0) * log10_p


def calibrate_mixed(log10_p: float) -> float:
    """The e-value averaged over all κ: (1 − p + p·ln p) / (p·ln² p), in log10.

    No κ need be chosen; with x = −ln p it is (e^x − 1 − x)/x², which tends to one half at p = 1.
    """
    x = -LN10 * log10_p
    if x < 1e-4:
        return math.log10(0.5 + x / 6.0)
    return (x + math.log1p(-(1.0 + x) * math.exp(-x)) - 2.0 * math.log(x)) / LN10


def average(log10_es: Sequence[float], weights: Sequence[float] | None = None) -> float:
    """Weighted mean of e-values, in log10: an e-value under any dependence.

    `weights` are fixed in advance and add up to at most one; without them all count alike.
    """
    if not len(log10_es):
        return 0.0
    shares = np.full(len(log10_es), 1 / len(log10_es)) if weights is None else np.array(weights)
    _check_weights(shares, len(log10_es))
    logs = np.asarray(log10_es, np.float64) * LN10
    top = float(logs.max())
    total = float((shares * np.exp(logs - top)).sum())
    return (top + math.log(total)) / LN10 if total > 0 else -math.inf


def multiply(log10_es: Sequence[float]) -> float:
    """Product of e-values, in log10: only where each is valid given those before it."""
    return math.fsum(log10_es)


def p_of(log10_e: float) -> float:
    """The p-value 1/e that Markov's inequality grants an e-value, in log10."""
    return min(0.0, -log10_e)


def equal_weights(menu: int) -> tuple[float, ...]:
    """The same share for every test of a menu."""
    return (1.0 / menu,) * menu


def falling_weights(menu: int, ratio: float = 0.5) -> tuple[float, ...]:
    """Shares that fall by a ratio: much for what is read first, little for what is costly."""
    total = math.fsum(ratio**i for i in range(menu))
    return tuple(ratio**i / total for i in range(menu))


def sequential(log10_ps: Sequence[float | None], weights: Sequence[float]) -> float:
    """Adjusted p of a menu read one after another, valid whenever reading stops, in log10.

    Test i of the menu may spend the share w_i, Σ w_i ≤ 1, fixed before the first byte. The
    adjusted p is min over the tests run so far of p_i / w_i. If it is at most α at any stopping
    time, some test of the whole menu has p_i ≤ α·w_i; by the union bound that happens with
    probability at most α·Σ w_i ≤ α, whatever made reading stop and however the tests depend on
    each other. None marks a test that was not run; its share is spent all the same.
    """
    _check_weights(np.array(weights), len(log10_ps))
    found = [
        p - math.log10(w)
        for p, w in zip(log10_ps, weights, strict=False)
        if p is not None and w > 0
    ]
    return min(0.0, min(found, default=0.0))


def _check_weights(weights: np.ndarray, tests: int) -> None:
    if len(weights) < tests or weights.min() < 0 or weights.sum() > 1 + 1e-9:
        raise ValueError("weights are fixed for the whole menu and add up to at most one")
