"""Where a number of a study comes from: measured, reconstructed, invented, or not to be had.

Replicas hold vectors whose moments and correlations agree with published figures. A measure of
two of them is worth something only where those figures determine it; where none does, it has no
value, because nobody could tell it from one that means something.
"""

from __future__ import annotations

from collections.abc import Iterable

from kinprint.reader.origins import UNKNOWN, Origin
from kinprint.records import Mark

# What follows from each vector by itself, from the correlation, and from both and the scale.
_BY_ITSELF = frozenset({"shuffled_cosine", "variation_difference"})
_CORRELATIONS = frozenset({"pearson", "centred_cosine"})
_DISTANCES = frozenset({"l2", "relative_l2", "relative_rmse", "cosine_about_one"})
_ORDER = (Mark.MEASURED, Mark.RECONSTRUCTED, Mark.INVENTED)


def mark_of(measure: str, a: Origin | None, b: Origin | None) -> Mark | None:
    """The mark of a measure of two tensors; None where nothing published supports it."""
    if a is None and b is None:
        return Mark.MEASURED
    if a is None or b is None:
        return None
    if UNKNOWN in (a, b):
        return Mark.INVENTED
    if a == b or measure in _BY_ITSELF:
        return Mark.RECONSTRUCTED
    if measure == "cosine":
        return Mark.RECONSTRUCTED if a.compares(b) else None
    if not a.correlates(b):
        return None
    if measure in _CORRELATIONS:
        return Mark.RECONSTRUCTED
    scaled = "fitted" not in (a.values, b.values)
    if measure in _DISTANCES:
        return Mark.RECONSTRUCTED if scaled else None
    return Mark.INVENTED if scaled else None


def worst(marks: Iterable[Mark]) -> Mark:
    """The mark of what was made of several numbers: that of the least certain."""
    return max(marks, key=_ORDER.index, default=Mark.MEASURED)
