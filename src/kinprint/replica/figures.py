"""The published figures the replicas are built from, and the curves that join them.

Every number keeps the name of the file and field it came from, so that a replica can say
of each of its tensors what is known and what is made up.
"""

from __future__ import annotations

import csv
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np


@dataclass(frozen=True, slots=True)
class Moments:
    """Mean and population standard deviation of one norm vector, and how they are known.

    `status` is "reconstructed" (published or derived from published figures by algebra),
    "fitted" (chosen so that a published average over pairs comes out) or "invented".
    """

    mean: float
    std: float
    status: str
    source: str

    @property
    def variation(self) -> float:
        """Coefficient of variation, which decides how lopsided the values are."""
        return self.std / self.mean


@dataclass(frozen=True, slots=True)
class Correlation:
    """Pearson correlation of two norm vectors of the same role, and where it was published."""

    role: str
    a: tuple[str, int]
    b: tuple[str, int]
    value: float
    source: str

    @property
    def fitted(self) -> bool:
        """Whether it was chosen to meet an average over pairs, not published itself."""
        return self.source.startswith("fitted")


def _rows(name: str) -> list[dict[str, str]]:
    text = (files("kinprint.replica") / "published" / name).read_text("utf-8")
    return list(csv.DictReader(text.splitlines()))


@cache
def _invented() -> dict[str, Any]:
    return tomllib.loads((files("kinprint.replica") / "invented.toml").read_text("utf-8"))


@cache
def _anchors() -> Mapping[tuple[str, str], Mapping[int, Moments]]:
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


def moments(model: str, role: str, layers: int) -> tuple[Moments, ...]:
    """Mean and standard deviation for each of a model's layers.

    Layers without a published figure lie on a line, in logarithms, between their
    neighbours; beyond the last point the curve is flat.
    """
    anchors = _anchors().get((model, role), {})
    points = {
        int(layer): (mean, variation) for layer, mean, variation in _invented()[model][role]
    } | {layer: (known.mean, known.variation) for layer, known in anchors.items()}
    at = sorted(points)
    curves = np.log([points[layer] for layer in at]).T
    mean, variation = (np.exp(np.interp(np.arange(layers), at, curve)) for curve in curves)
    made_up = "nothing was published; drawn between neighbouring layers or made up"
    return tuple(
        anchors[layer]
        if layer in anchors
        else Moments(float(mean[layer]), float(mean[layer] * variation[layer]), "invented", made_up)
        for layer in range(layers)
    )


def changed_share(model: str, layer: int) -> tuple[float, str]:
    """Share of norm values in which a derived model differs from its parent, and its status.

    Only the two ends were published; between them the share falls along a line in
    logarithms.
    """
    (early, high), (deep, low) = _invented()[model]["changed"]
    share = float(np.exp(np.interp(layer, [early, deep], np.log([high, low]))))
    return share, "invented" if early < layer < deep else "reconstructed"
