"""Matrices of one model in the place of others, such as keys where values were.

Tests compare matrices of one role. What they leave open is no stranger's where its rows are found
under another role.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from kinprint.lineage.part_tensors import TensorKey, tensors_of
from kinprint.lineage.reading.sample import Floats, Sample
from kinprint.records import Part

LIKE = 0.7
"""Correlation from which on rows are alike: a copy with noise of its own size has that. Between
random rows of 64 numbers it is seen once in 10^9."""
_LOOKED_AT = 8  # rows of a tensor
_SMALLEST = 1e-30  # length of a row; shorter ones are like nothing


def in_other_roles(
    a: Sample, b: Sample, ours: Collection[Part], theirs: Collection[Part]
) -> frozenset[Part]:
    """Parts of the first model with a tensor that is like one of another role in the second.

    Half of some rows of it are, in whatever layer, within the same component.
    """
    some = [
        (part, key, _directions(rows[:: max(1, len(rows) // _LOOKED_AT)][:_LOOKED_AT]))
        for part in ours
        for key, (_, rows) in tensors_of(a, part).items()
    ]
    found: set[Part] = set()
    for to in theirs:
        for key, (_, rows) in tensors_of(b, to).items():
            others = [one for one in some if _comparable(one, to, key, rows)]
            if others:
                turned = _directions(rows).T
                found |= {part for part, _, mine in others if _alike(mine, turned)}
    return frozenset(found)


def _comparable(
    one: tuple[Part, TensorKey, Floats], to: Part, key: TensorKey, rows: Floats
) -> bool:
    part, own, mine = one
    return (
        part.component is to.component and own[0] != key[0] and mine.shape[1] == rows.shape[1] > 1
    )


def _directions(rows: Floats) -> Floats:
    """Rows of length one."""
    wide = rows.astype(np.float32, copy=False)
    length = np.linalg.norm(wide, axis=1, keepdims=True)
    unit: Floats = np.nan_to_num(wide / np.maximum(length, _SMALLEST))
    return unit


def _alike(mine: Floats, turned: Floats) -> bool:
    closest = np.abs(mine @ turned).max(axis=1, initial=0.0)
    return bool(np.median(closest) >= LIKE) if len(closest) else False
