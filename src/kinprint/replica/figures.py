"""The published figures that replicas are built from; where nothing was published, nothing is.

Every number keeps the name of the file and field it came from, so that a replica can say
of each of its tensors what it agrees with.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

import numpy as np
from msgspec import Struct


class Moments(Struct, frozen=True):
    """Mean and population standard deviation of one norm vector, and how they are known.

    `status` is "reconstructed" (published or derived from published figures by algebra) or
    "fitted" (chosen so that published cosines or averages of them come out).
    """

    mean: float
    std: float
    status: str
    source: str

    @property
    def variation(self) -> float:
        """Coefficient of variation, which decides how lopsided the values are."""
        return self.std / self.mean


class Correlation(Struct, frozen=True):
    """Pearson correlation of two norm vectors of the same role, and where it was published."""

    role: str
    a: tuple[str, int]
    b: tuple[str, int]
    value: float
    source: str

    @property
    def fitted(self) -> bool:
        """Whether it was chosen to meet a cosine or an average of them, not published itself."""
        return self.source.startswith("fitted")


@cache
def _rows(name: str) -> list[dict[str, str]]:
    text = (files("kinprint.replica") / "published" / name).read_text("utf-8")
    return list(csv.DictReader(text.splitlines()))


@cache
def _moments() -> Mapping[tuple[str, str], Mapping[int, Moments]]:
    table: dict[tuple[str, str], dict[int, Moments]] = {}
    for row in _rows("moments.csv"):
        curve = table.setdefault((row["model"], row["role"]), {})
        curve[int(row["layer"])] = Moments(
            float(row["mean"]), float(row["std"]), row["status"], row["source"]
        )
    return table


@cache
def correlations() -> tuple[Correlation, ...]:
    """All pairs of norm vectors whose correlation is known."""
    return tuple(
        Correlation(
            row["role"],
            (row["model_a"], int(row["layer_a"])),
            (row["model_b"], int(row["layer_b"])),
            float(row["pearson"]),
            row["source"],
        )
        for row in _rows("pearson.csv")
    )


def moments(model: str, role: str) -> Mapping[int, Moments]:
    """Mean and standard deviation by layer, where something was published."""
    return _moments().get((model, role), {})


def changed_share(layer: int) -> float:
    """Share of norm values in which INTELLECT-3 differs from GLM-4.5-Air.

    Published in bands of layers; inside each the share falls along a line in logarithms.
    """
    rows = _rows("changed.csv")
    layers, shares = ([float(row[name]) for row in rows] for name in ("layer", "share"))
    return float(np.exp(np.interp(layer, layers, np.log(shares))))
