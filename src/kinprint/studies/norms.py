"""Norm vectors of two models side by side, by cosine and by Pearson correlation.

This is what the 2026 dispute compared. It is shown because people ask for it; it reaches
no verdict, because a raw cosine near one is what any two models give.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from kinprint.measure.direct import cosine, pearson
from kinprint.reader.checkpoint import Checkpoint, locate_together, read_together
from kinprint.records import ModelRef, Slice

_NORM = re.compile(r"(^|[._])(\w*norm\w*|ln_?\w*)\.weight$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class NormRow:
    """One norm vector that both models have."""

    name: str
    length: int
    cosine: float
    pearson: float


@dataclass(frozen=True, slots=True)
class NormComparison:
    """All common norm vectors of two models."""

    a: ModelRef
    b: ModelRef
    rows: tuple[NormRow, ...]
    skipped: tuple[str, ...]
    labels: tuple[str, ...] = ()

    @property
    def mean_cosine(self) -> float:
        """Mean over the vectors that have one."""
        return _mean([row.cosine for row in self.rows])

    @property
    def mean_pearson(self) -> float:
        """Mean over the vectors that have one."""
        return _mean([row.pearson for row in self.rows])


def norm_names(checkpoint: Checkpoint) -> list[str]:
    """Tensors that are norm weights by their name."""
    return [name for name in checkpoint.names() if _NORM.search(name)]


def compare_norms(a: Checkpoint, b: Checkpoint) -> NormComparison:
    """Compare the norm vectors that two models have under the same name."""
    names_b = set(norm_names(b))
    shared = [name for name in norm_names(a) if name in names_b]
    specs_a, specs_b = locate_together([(a, shared), (b, shared)])
    fitting = [
        name
        for name in shared
        if len(specs_a[name].shape) == 1 and specs_a[name].shape == specs_b[name].shape
    ]
    values_a, values_b = read_together(
        [
            (a, [Slice(specs_a[name]) for name in fitting]),
            (b, [Slice(specs_b[name]) for name in fitting]),
        ]
    )
    rows = [
        NormRow(name, len(one), cosine(one, other), pearson(one, other))
        for name, one, other in zip(fitting, values_a, values_b, strict=True)
    ]
    skipped = tuple(name for name in shared if name not in set(fitting))
    labels = tuple(f"{one.ref.name}: {label}" for one in (a, b) for label in one.labels)
    return NormComparison(a.ref, b.ref, tuple(rows), skipped, labels)


def _mean(values: Sequence[float]) -> float:
    known = [value for value in values if not math.isnan(value)]
    return math.fsum(known) / len(known) if known else math.nan
