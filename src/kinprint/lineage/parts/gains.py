"""Effective gains: what a norm lets through, whatever way it is written down.

A gain can be divided by any number if the columns that read it are multiplied by the same, and the
model computes what it did. The gain times the length of those columns cannot be changed that way.
Gains start as a constant. The lengths of columns scatter a little from the start, the more so the
fewer rows there are, and models with one initialisation have that in common. It is taken off, so
that what is left was learnt. Gains of one model may be written into another, but for the lengths of
the columns behind them, which tell by themselves where they vary enough.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kinprint.lineage.alignment.residual import IDENTITY, ResidualMap
from kinprint.lineage.preparation import Prepared
from kinprint.lineage.reading.sample import Floats
from kinprint.measure.ordered import percentile
from kinprint.nulls.preparation import degenerate, normal_scores
from kinprint.records import Component, Part

FEWEST_ROWS = 32
"""Fewer rows than this do not tell the length of a column."""
LEARNT = 0.25
"""The least share of the scatter of effective gains that was learnt: below it they say nothing."""
_SURELY = 3.0  # standard errors of a variance: narrow models do not tell a small share from none
_OUTLYING = 3.0  # standard deviations, told by the quartiles, beyond which channels count as at it
_NORMAL_QUARTILES = 1.349  # how far apart they are, in standard deviations


class EffectiveGains(Struct, frozen=True):
    """Normal scores of the effective gain of each channel, and what of their variance is chance.

    The mean square of a column of n independent numbers has a relative variance of 2/n, its
    logarithm's half of 1/(2n). Rows of unequal length count as fewer.
    """

    scores: NDArray[np.float64]
    chance: float

    @property
    def learnt(self) -> float:
        """What of it is not."""
        return 1.0 - self.chance


def effective_gains(
    model: Prepared, part: Part, residual: ResidualMap = IDENTITY, *, stored: bool = True
) -> EffectiveGains | None:
    """The effective gains of a part, in the basis that a map leads to; None if too few rows.

    Without the gains that are `stored` they are the lengths of columns alone.
    """
    rows = _reading_rows(model, part)
    if not rows or sum(map(len, rows)) < FEWEST_ROWS:
        return None
    gain = _stored_gain(model, part) if stored else np.float32(1)
    with np.errstate(over="ignore", invalid="ignore"):
        columns = np.concatenate(rows, dtype=np.float64)
        columns *= gain
        columns = residual.carry(columns)
        effective = np.sqrt(np.einsum("nd,nd->d", columns, columns) / len(columns))
    scores = np.asarray(normal_scores(effective))
    if not scores.any():
        return None
    lengths = np.vecdot(columns, columns)
    rows_counted = lengths.sum() ** 2 / np.square(lengths).sum()
    logarithms = np.log(effective[effective > 0])
    low, middle, high = (percentile(logarithms, share) for share in (0.25, 0.5, 0.75))
    most = _OUTLYING * (high - low) / _NORMAL_QUARTILES
    variance = float(np.clip(logarithms, middle - most, middle + most).var())
    chance = 1.0 if variance <= 0 else min(1.0, 1.0 / (2.0 * rows_counted * variance))
    return EffectiveGains(scores, chance)


def gain_likeness(
    first: Prepared,
    second: Prepared,
    part: Part,
    partner: Part,
    likeness: float,
    residual: ResidualMap = IDENTITY,
    *,
    stored: bool = True,
) -> float | None:
    """Correlation of what two parts learnt of their effective gains; None if not known.

    Numbers that correlate by r have squares that correlate by r², and so do the lengths that chance
    gave their columns.

    Parameters
    ----------
    first, second : the models.
    part, partner : the parts.
    likeness : the correlation r of their matrices.
    residual : leads from the channels of the first model to those of the second.
    stored : whether gains as stored count, or the columns behind them alone.
    """
    if first.width != second.width:
        return None
    x = effective_gains(first, part, residual, stored=stored)
    y = effective_gains(second, partner, stored=stored)
    if x is None or y is None:
        return None
    learnt = float(np.sqrt(x.learnt * y.learnt))
    least = max(LEARNT, _SURELY * np.sqrt(2.0 / first.width))
    if learnt < least:
        # Of matrices that were taken over, columns of both are as chance made them, or of neither.
        return 0.0 if not stored and max(x.learnt, y.learnt) >= 2.0 * least else None
    by_chance = likeness**2 * float(np.sqrt(x.chance * y.chance))
    found = _correlation(x.scores, y.scores)
    return float(np.clip((found - by_chance) / learnt, -1.0, 1.0))


def column_likeness(
    first: Prepared, second: Prepared, part: Part, partner: Part, likeness: float, least: float
) -> float | None:
    """The same of the columns alone, where gains as stored agree by `least`, so that those of one
    model may have been written into the other; None where they do not, or columns do not tell."""
    if first.width != second.width:
        return None
    gains = _stored_gain(first, part), _stored_gain(second, partner)
    if any(map(degenerate, gains)):
        return None
    ours, theirs = (np.asarray(normal_scores(one)) for one in gains)
    if _correlation(ours, theirs) < least:
        return None
    return gain_likeness(first, second, part, partner, likeness, stored=False)


def _correlation(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    """Of normal scores, which have no mean."""
    return float(x @ y / np.sqrt((x @ x) * (y @ y)))


def _stored_gain(model: Prepared, part: Part) -> Floats:
    layer = -1 if part.layer is None else part.layer
    if part.component is Component.ATTENTION:
        return model.attention_gain(layer)
    return model.feed_forward_gain(layer)


def _reading_rows(model: Prepared, part: Part) -> list[Floats]:
    """Rows of the matrices that read the residual stream behind a norm."""
    sample, layer = model.sample, -1 if part.layer is None else part.layer
    if part.component is Component.ATTENTION:
        heads = sample.attention.get(layer)
        tensors = () if heads is None else (heads.q, heads.k, heads.v)
        return [rows.reshape(-1, rows.shape[-1]) for rows in tensors if rows is not None]
    if part.component is Component.EXPERT:
        units = sample.experts.get((layer, -1 if part.expert is None else part.expert))
    else:
        units = sample.units.get(layer)
    if units is None:
        return []
    return [rows for rows in (units.gate, units.up) if rows is not None]
