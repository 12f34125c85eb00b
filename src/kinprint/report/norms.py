"""The norm comparison as a document and as a picture."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kinprint.studies.norms import NormComparison

SCHEMA = "kinprint.norms/1"

_RELATED, _STRANGER = "#0b7a75", "#c8553d"


def norm_document(pairs: Sequence[tuple[NormComparison, str, bool]]) -> dict[str, Any]:
    """Norm comparisons of several pairs, each with what is known about it, as plain data."""
    return {
        "schema": SCHEMA,
        "pairs": [
            {
                "a": found.a.name,
                "b": found.b.name,
                "known": known,
                "related": related,
                "labels": found.labels,
                "mean_cosine": _number(found.mean_cosine),
                "mean_pearson": _number(found.mean_pearson),
                "norms": [
                    {
                        "name": row.name,
                        "length": row.length,
                        "cosine": _number(row.cosine),
                        "pearson": _number(row.pearson),
                    }
                    for row in found.rows
                ],
            }
            for found, known, related in pairs
        ],
    }


def draw_norms(document: dict[str, Any], file: Path) -> None:
    """Draw both measures of every norm vector, pair by pair, to a picture file."""
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot as plt

    figure, panels = plt.subplots(1, 2, figsize=(9.6, 4.0), sharey=True, layout="constrained")
    measures = (("cosine", "Raw cosine"), ("pearson", "Pearson correlation"))
    for panel, (key, title) in zip(panels, measures, strict=True):
        for pair in document["pairs"]:
            values = [math.nan if row[key] is None else row[key] for row in pair["norms"]]
            colour = _RELATED if pair["related"] else _STRANGER
            mark, size = ("o", 10) if pair["related"] else ("D", 5)
            label = f"{_short(pair['a'])} and {_short(pair['b'])}: {pair['known']}"
            panel.plot(values, mark, color=colour, markersize=size, alpha=0.8, label=label)
        panel.set_title(title, fontsize=12, loc="left")
        panel.set_xlabel("norm vector")
        panel.set_ylim(-0.35, 1.1)
        panel.axhline(0, color="0.75", linewidth=0.8, zorder=0)
        panel.spines[["top", "right"]].set_visible(False)
    figure.suptitle(
        "Same models, same vectors: raw cosine cannot tell a descendant from a stranger",
        fontsize=12.5,
        x=0.01,
        ha="left",
        weight="bold",
    )
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower left", frameon=False, fontsize=10)
    # Fixed metadata: the same numbers give the same file.
    figure.savefig(file, dpi=150, metadata={"Software": None})
    plt.close(figure)


def _short(name: str) -> str:
    return name.rpartition("/")[2]


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value
