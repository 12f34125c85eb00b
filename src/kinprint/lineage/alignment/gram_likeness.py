"""Aligned Gram similarity: how alike two models are where neither labels nor signs are left.

The Gram matrix of the rows that read or write the residual stream knows neither the order nor
the signs of units. Carried by the residual map that matches best, it is compared with that of
the layer that corresponds. Independent models have similar spectra, and a map that was fitted
to Gram matrices lays these over each other: the value means something only beside strangers.
"""

from __future__ import annotations

import numpy as np

from kinprint.lineage.alignment.units import Aligned, spread
from kinprint.lineage.preparation import Forward, Prepared
from kinprint.lineage.reading.sample import Floats

GRAM_WIDTH = 256
"""Up to this width Gram matrices are compared; no known strangers are wider."""
_PARTS = 4  # feed-forwards that are looked at
_ROLES = ("gate", "up", "down")


def gram_likeness(first: Prepared, second: Prepared, aligned: Aligned) -> float:
    """The mean cosine of traceless Gram matrices of feed-forwards that correspond; NaN if none."""
    known = [at for at, to in enumerate(aligned.partners) if to >= 0]
    found: list[float] = []
    for at in (known[place] for place in spread(len(known), _PARTS)):
        one, other = first.forwards[at], second.forwards[aligned.partners[at]]
        for role in _ROLES:
            mine, theirs = _rows(one, role), _rows(other, role)
            if mine is not None and theirs is not None:
                found.append(_likeness(_gram(aligned.residual.carry(mine)), _gram(theirs)))
    return float(np.mean(found)) if found else float("nan")


def _rows(one: Forward, role: str) -> Floats | None:
    rows: Floats | None = getattr(one, role)
    return rows


def _gram(rows: Floats) -> Floats:
    """XᵀX·d/tr − I: traceless, so that a common scale does not count as likeness."""
    table: Floats = rows.T @ rows
    width = len(table)
    trace = max(float(np.trace(table)), 1e-30)
    return table * np.float32(width / trace) - np.eye(width, dtype=np.float32)


def _likeness(one: Floats, other: Floats) -> float:
    size = float(np.linalg.norm(one) * np.linalg.norm(other))
    return float((one * other).sum()) / size if size > 0 else 0.0
