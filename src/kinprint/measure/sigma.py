"""The arithmetic behind "182 sigma", kept so that it can be shown and answered.

The derivation report took four cosines of norm vectors of one model at different depths
(layer 0 with 10, 20, 30, 40) and four of two models at the same depth, divided the
difference of the means by a pooled deviation and read the result off a normal tail. What is
wrong with it:

* The baseline is no null. Layer 0 differs from all other layers in every model; what
  unrelated models give at the same layer was never asked, and it is about 0.99 as well.
* A difference over the deviation of single values is an effect size (Cohen's d with
  population variances). It has no normal distribution and no p-value.
* Eight numbers cannot show 10^−7190. If all of them were exchangeable, the most extreme
  order has probability 1/70; and they are not even that, since the within-model cosines all
  share layer 0.
* The deviation is that of picking other layers. It says nothing about other models, and only
  many independently trained models could.
"""

from __future__ import annotations

import math

import numpy as np
from msgspec import Struct
from numpy.typing import ArrayLike


class Effect(Struct, frozen=True):
    """The report's numbers, and beside them what as many values could show at best.

    `log10_p` is the one-sided normal tail beyond `sigma`; `least_p` the smallest p-value
    that any exchangeability test of so many values can reach.
    """

    within_mean: float
    cross_mean: float
    difference: float
    sigma: float
    log10_p: float
    least_p: float


def effect_size(within: ArrayLike, cross: ArrayLike) -> Effect:
    """Difference of means over the root of the mean of the two population variances.

    NaN throughout if a side is empty or holds what is no number; without any scatter the
    sigma has no value.
    """
    w, c = (np.asarray(side, np.float64).reshape(-1) for side in (within, cross))
    if not (len(w) and len(c) and np.isfinite(w).all() and np.isfinite(c).all()):
        return Effect(*(math.nan,) * 6)
    means = float(w.mean()), float(c.mean())
    difference = means[1] - means[0]
    pooled = math.sqrt((float(w.var()) + float(c.var())) / 2)
    sigma = difference / pooled if pooled else math.nan
    least = 1 / math.comb(len(w) + len(c), len(c))
    return Effect(*means, difference, sigma, log10_normal_tail(sigma), least)


def log10_normal_tail(sigma: float) -> float:
    """Decimal logarithm of the normal probability beyond `sigma`, which itself would be zero."""
    from scipy.special import log_ndtr

    return float(log_ndtr(-sigma)) / math.log(10)
