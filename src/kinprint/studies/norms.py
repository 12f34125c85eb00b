"""Norm vectors of two models side by side, by cosine and by Pearson correlation.

This is what the 2026 dispute compared. It is shown because people ask for it; it reaches
no verdict, because a raw cosine near one is what any two models give.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from kinprint.measure.direct import cosine, pearson
from kinprint.model.opened import Model, read_all
from kinprint.model.places import Address, Place
from kinprint.records import ModelRef


@dataclass(frozen=True, slots=True)
class NormRow:
    """One norm vector that both models have, by the name it has in the first."""

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


def norm_places(model: Model) -> dict[Address, Place]:
    """The gains of all norms of the text model, by place rather than by name."""
    return {
        address: place
        for address, place in model.places.items()
        if address.role.startswith("norm") and not address.role.endswith(".bias")
    }


def compare_norms(a: Model, b: Model) -> NormComparison:
    """Compare the norm vectors that two models have in the same place.

    Models of different families call the same norm differently; its place is the same.
    """
    own, other = norm_places(a), norm_places(b)
    shared = [address for address in sorted(own, key=_order) if address in other]
    fitting = [address for address in shared if own[address].shape == other[address].shape]
    values = iter(
        read_all(
            [a.reading(own[address]) for address in fitting]
            + [b.reading(other[address]) for address in fitting]
        )
    )
    first = [next(values) for _ in fitting]
    rows = [
        NormRow(own[address].weight.name, len(one), cosine(one, two), pearson(one, two))
        for address, one, two in zip(fitting, first, values, strict=True)
    ]
    skipped = tuple(own[one].weight.name for one in shared if one not in set(fitting))
    labels = tuple(f"{one.name}: {label}" for one in (a, b) for label in one.checkpoint.labels)
    return NormComparison(a.checkpoint.ref, b.checkpoint.ref, tuple(rows), skipped, labels)


def _order(address: Address) -> tuple[float, str]:
    """Layers from first to last, then what stands after them."""
    return (math.inf if address.layer is None else address.layer), address.role


def _mean(values: Sequence[float]) -> float:
    known = [value for value in values if not math.isnan(value)]
    return math.fsum(known) / len(known) if known else math.nan
