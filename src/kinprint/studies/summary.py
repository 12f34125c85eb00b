"""Many numbers as a few: their mean and scatter, and how they are written in a sentence."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from msgspec import Struct


class Spread(Struct, frozen=True):
    """Mean, population deviation and range of the values that are there."""

    count: int
    mean: float | None = None
    std: float | None = None
    least: float | None = None
    greatest: float | None = None

    @property
    def deviation(self) -> float | None:
        """The deviation where there is one to speak of: a single value has none."""
        return self.std if self.count > 1 else None


def spread(values: Iterable[float | None]) -> Spread:
    """Sum up what is there; deviations divide by n, as the published ones do."""
    known = np.array([value for value in values if value is not None and math.isfinite(value)])
    if not len(known):
        return Spread(0)
    parts = known.mean(), known.std(), known.min(), known.max()
    return Spread(len(known), *map(float, parts))


def difference(a: float | None, b: float | None) -> float | None:
    """The first less the second, where both are known."""
    return None if a is None or b is None else a - b


def rounded(value: object, digits: int = 3) -> str:
    """A number for a sentence, without a minus before a zero; a dash where there is none."""
    return f"{value:z.{digits}f}" if isinstance(value, int | float) else "–"
