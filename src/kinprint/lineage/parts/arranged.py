"""How alike strangers can be made: numbered after the other model, their basis turned."""

from __future__ import annotations

import math
from collections.abc import Callable

from kinprint.lineage.pair import Pair

ARRANGED_NORMS = 0.85
"""What numbering the channels of a stranger anew gives the mean correlation of k gains over d
channels, as a share of √(2 ln d / k), with a margin: 0.79 of it was measured at d = 128, k = 13."""
ARRANGED, TURNED = 1.25, 0.35
"""How alike strangers' feed-forwards can be made. Units assigned so as to be most alike, at widths
64 and 128: 0.87 to 0.90 of the best of n random rows, and `ARRANGED` of it is allowed for. The
residual stream turned as well, in turns with the units, towards all layers of strangers of the same
data: 0.26 at width 64, 0.31 at width 128. Towards one of them, or one expert, far more."""
MIXED = 0.6
"""How alike their attention can be made: values can be mixed freely, which reached 0.57 where heads
have a quarter of the channels, and 0.67 where they have two fifths."""


def arranged_units(pair: Pair) -> Callable[[float], float]:
    """The most that renumbering and turning gives the mean correlation of strangers' units.

    By the number of weights that must agree. The best of n sums of m cosines between random rows of
    d numbers is about √(2 m ln n / d); one turn of the residual stream gives N rows √(d / N) at
    most, of which 8 / 3π is reached where N is large: the sum of the singular values of XᵀY.
    """
    parts = [part for side in pair.sides for part in side.prepared.feed_forwards]
    width = min((part.width for part in parts), default=0)
    units = max((part.total for part in parts), default=0)
    matrices = min((len(part.read) for part in parts), default=0)
    if units < 2 or not matrices:
        return lambda weights: 1.0
    renumbered = ARRANGED * math.sqrt(2.0 * matrices * math.log(units) / width) / matrices

    def most(weights: float) -> float:
        turned = width / math.sqrt(max(weights, 1.0))
        return min(1.0, max(TURNED, renumbered + turned))

    return most


def arranged_values(pair: Pair) -> float:
    """The most that mixing values gives the likeness of strangers' attention.

    The best mixture of h rows of d numbers is like a row of the other model by about √(h / d).
    """
    values = [
        heads.v for side in pair.sides for heads in side.prepared.heads.values()
        if heads.v is not None
    ]  # fmt: skip
    reach = max((one.shape[-2] / one.shape[-1] for one in values), default=1.0)
    return min(1.0, max(MIXED, ARRANGED * math.sqrt(reach)))


def arranged_norms(pair: Pair) -> Callable[[float], float]:
    """The most that numbering channels anew gives the mean correlation of strangers' gains.

    By the number of gains that must agree. A number out of d says log₂ d bits of k gains, which
    leaves d^(−2/k) of their variance or more.
    """
    width = max(pair.sides[0].prepared.width, 2)

    def most(gains: float) -> float:
        vectors = max(gains / width, 1.0)
        likely = ARRANGED_NORMS * math.sqrt(2.0 * math.log(width) / vectors)
        return min(likely, math.sqrt(1.0 - width ** (-2.0 / vectors)))

    return most
