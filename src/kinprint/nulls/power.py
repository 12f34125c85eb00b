"""What a test would have seen: the smallest effect it finds nine times in ten.

"No evidence" means little without it. A test that compares things at equal places says how its
statistic scatters under the null and how it grows with an effect (`Sensitivity`, on its result);
from that follows the effect at any level. It speaks of an effect at the places that the test
compared, and of nothing else. Where things are matched first, a weak trace is lost on wrong
matches, and no sensitivity is stated.

An effect e adds slope·e to T. It also widens the null, since the scores that it raises are among
those that are relabelled: V becomes V + w·e². The Chernoff bounds are close to exp(−T²/2V), so that
T must be k = √(2 ln 1/α) + z deviations large, z the normal quantile of the power:

    slope·e = k·√(V + w·e²)    hence    e = k·√V / √(slope² − k²·w)

What slope and w are, `block_permutation`, `signed_blocks` and `sign_chernoff` say. The bounds are a
little better than exp(−T²/2V) where few things are relabelled, so that the effect is then seen more
often than stated (`tests/nulls/test_power.py`).
"""

from __future__ import annotations

import math
from statistics import NormalDist

from kinprint.nulls.result import LN10
from kinprint.records import Sensitivity

POWER = 0.9


def smallest_effect(sensitivity: Sensitivity, log10_alpha: float) -> float:
    """Smallest effect that a test finds at a level, as often as `POWER` says.

    Parameters
    ----------
    sensitivity : how the statistic scatters and grows.
    log10_alpha : log10 of the level that the p-value must reach, menu and stages paid.

    Returns
    -------
    The effect, on the scale of the test's own; infinite where too little is relabelled for the
    level, or where nothing scatters.
    """
    deviations = math.sqrt(-2.0 * log10_alpha * LN10) + NormalDist().inv_cdf(POWER)
    room = sensitivity.slope**2 - (deviations * sensitivity.widening) ** 2
    if room <= 0 or sensitivity.deviation <= 0:
        return math.inf
    return deviations * sensitivity.deviation / math.sqrt(room)
