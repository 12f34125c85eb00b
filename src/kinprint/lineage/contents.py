"""Tensors whose names nobody knows: are they the same, by shape and content?

Where names say nothing, no test knows what belongs to what. Equal numbers still tell: a few numbers
of every tensor are read, and tensors of one shape that begin alike are the same tensor under
another name. It finds copies and casts, and nothing that was changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from math import prod

import ml_dtypes
import numpy as np

from kinprint.lineage.kind import HALF
from kinprint.measure.rounding import arrangements
from kinprint.reader.checkpoint import Checkpoint
from kinprint.records import Amount, Relation, Slice, TensorSpec, Verdict, VerdictReason

_NUMBERS = 256  # read at the start of every tensor
_FEWEST = 1024  # numbers of a tensor that is worth a look: shorter ones are equal by accident
_INFORMATION = 12.0  # log10 of the arrangements that equal numbers must have

Key = tuple[tuple[int, ...], bytes]
"""A shape, and the first numbers as bfloat16: casts begin alike."""


def same_contents(a: Checkpoint, b: Checkpoint, alpha: float) -> Verdict | None:
    """The verdict on two models by the contents of their tensors; None where none is the same."""
    ours, theirs = _contents(a), _contents(b)
    if not ours or not theirs:
        return None
    left, right = (
        Counter(key for key, _ in ours.values()),
        Counter(key for key, _ in theirs.values()),
    )
    same = left & right
    if not same:
        return None
    whole = left == right
    weights = sum(prod(shape) * count for (shape, _), count in same.items())
    total = max(
        sum(prod(shape) * count for (shape, _), count in each.items()) for each in (left, right)
    )
    information = max(known for key, known in ours.values() if key in same)
    share = weights / total
    relation = Relation.PARTIAL
    if whole:
        relation = Relation.SAME_WEIGHTS
    elif share > HALF:
        relation = Relation.DERIVED
    return Verdict(
        relation,
        -information,
        alpha,
        amount=Amount(linked=share, likeness=1.0, read=_NUMBERS * len(ours) / max(total, 1)),
        reasons=(VerdictReason.SAME_CONTENTS,),
    )


def _contents(model: Checkpoint) -> Mapping[str, tuple[Key, float]]:
    """Every tensor of some length by its shape and first numbers, and how telling these are."""
    specs = [spec for spec in model.tensors().values() if _worth_a_look(spec)]
    slices = [Slice(spec, elements=range(min(_NUMBERS, spec.count))) for spec in specs]
    found: dict[str, tuple[Key, float]] = {}
    for spec, values in zip(specs, model.read(slices), strict=True):
        numbers = np.asarray(values, np.float32)
        known = arrangements(numbers[None])
        if known >= _INFORMATION:
            start = numbers.astype(ml_dtypes.bfloat16).tobytes()
            found[spec.name] = (spec.shape, start), known
    return found


def _worth_a_look(spec: TensorSpec) -> bool:
    return spec.count >= _FEWEST and spec.strides is None
