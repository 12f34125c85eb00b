"""The cosine that is left on average when the entries of one of two vectors are shuffled.

It shows what a cosine owes to the two sets of values alone; what stands above it comes from
their places.
"""

from __future__ import annotations

import math

from numpy.typing import ArrayLike

from kinprint.measure import blocks


def shuffled_cosine_mean(a: ArrayLike, b: ArrayLike) -> float:
    """Mean of the cosine over all n! shuffles, n·ā·b̄ / (‖a‖·‖b‖); NaN without a direction.

    Shuffling changes neither length, and Σ a_i b_π(i) has the mean n·ā·b̄ (Hoeffding 1951), which
    is what centring takes off the product.
    """
    raw, centred = blocks.sums(a, b), blocks.sums(a, b, centred=True)
    if raw is None or centred is None or math.isnan(raw.cosine):
        return math.nan
    return blocks.clip((raw.ab - centred.ab) / (math.sqrt(raw.aa) * math.sqrt(raw.bb)))
