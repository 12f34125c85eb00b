"""Matrices of one model in the place of others, such as keys where values were.

Tests compare matrices of one role. What they leave open is no stranger's where its rows are found
under another role.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from kinprint.lineage.parts.tensors import TensorKey, tensors_of
from kinprint.lineage.reading.sample import Floats, Sample
from kinprint.records import Part

LIKE = 0.7
"""Correlation from which on rows are alike: a copy with noise of its own size has that. Between
random rows of 64 numbers it is seen once in 10^9."""
_NARROWEST = 32  # numbers of a row, below which rows of strangers are alike by chance
_LOOKED_AT = 8  # rows of a tensor
_SMALLEST = 1e-30  # length of a row; shorter ones are like nothing


def in_other_roles(
    a: Sample, b: Sample, ours: Collection[Part], theirs: Collection[Part]
) -> frozenset[Part]:
    """Parts of the first model with a tensor that is like one of another role in the second.

    Half of some rows of it are, in whatever layer, within the same component. Vectors and narrow
    tensors take no part: gains and time constants of strangers are alike.
    """
    some = [
        (part, key, _directions(rows[:: max(1, len(rows) // _LOOKED_AT)][:_LOOKED_AT]))
        for part in ours
        for key, (_, rows) in tensors_of(a, part).items()
        if _is_matrix(rows)
    ]
    found: set[Part] = set()
    for to in theirs:
        for key, (_, rows) in tensors_of(b, to).items():
            matrix = _is_matrix(rows)
            others = [one for one in some if matrix and _comparable(one, to, key, rows)]
            if others:
                turned = _directions(rows).T
                found |= {part for part, _, mine in others if _alike(mine, turned)}
    return frozenset(found)


def _comparable(
    one: tuple[Part, TensorKey, Floats], to: Part, key: TensorKey, rows: Floats
) -> bool:
    part, own, mine = one
    return part.component is to.component and own[0] != key[0] and mine.shape[1] == rows.shape[1]


def _is_matrix(rows: Floats) -> bool:
    """Whether there are several rows, each long enough to be known again."""
    return len(rows) > 1 and rows.shape[1] >= _NARROWEST


def _directions(rows: Floats) -> Floats:
    """Rows of length one, without their mean, which says nothing of where they are from."""
    wide = rows.astype(np.float32, copy=False)
    wide = wide - wide.mean(axis=1, keepdims=True)
    length = np.linalg.norm(wide, axis=1, keepdims=True)
    unit: Floats = np.nan_to_num(wide / np.maximum(length, _SMALLEST))
    return unit


def _alike(mine: Floats, turned: Floats) -> bool:
    closest = np.abs(mine @ turned).max(axis=1, initial=0.0)
    return bool(np.median(closest) >= LIKE) if len(closest) else False
