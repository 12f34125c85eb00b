"""Effective gains: what a norm lets through, whatever way it is written down.

A gain can be divided by any number if the columns that read it are multiplied by the same, and the
model computes what it did. The gain times the length of those columns cannot be changed that way.
Both start as good as constant over the channels, so what two models share of it was learnt.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kinprint.lineage.alignment.residual import IDENTITY, ResidualMap
from kinprint.lineage.preparation import Prepared
from kinprint.lineage.reading.sample import Floats
from kinprint.nulls.preparation import degenerate, normal_scores
from kinprint.records import Component, Part

FEWEST_ROWS = 32
"""Fewer rows than this do not tell the length of a column."""


def effective_gains(
    model: Prepared, part: Part, residual: ResidualMap = IDENTITY
) -> NDArray[np.float64] | None:
    """Normal scores of the effective gain of each channel, in the basis that a map leads to.

    None where too little was read.
    """
    rows = _reading_rows(model, part)
    if not rows or sum(map(len, rows)) < FEWEST_ROWS:
        return None
    layer = -1 if part.layer is None else part.layer
    attention = part.component is Component.ATTENTION
    gain = model.attention_gain(layer) if attention else model.feed_forward_gain(layer)
    with np.errstate(over="ignore", invalid="ignore"):
        columns = residual.carry(np.concatenate(rows).astype(np.float64) * gain)
        effective = np.sqrt(np.square(columns).mean(axis=0))
    if not np.isfinite(effective).all() or degenerate(effective):
        return None
    return np.asarray(normal_scores(effective))


def gain_likeness(
    first: Prepared,
    second: Prepared,
    part: Part,
    partner: Part,
    residual: ResidualMap = IDENTITY,
) -> float | None:
    """Correlation of the effective gains of two parts over equal channels; None if not known.

    `residual` leads from the channels of the first model to those of the second.
    """
    if first.width != second.width:
        return None
    x, y = effective_gains(first, part, residual), effective_gains(second, partner)
    return None if x is None or y is None else float(np.corrcoef(x, y)[0, 1])


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
