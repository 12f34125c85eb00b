"""The norm comparison as a document and as a picture."""

from __future__ import annotations

import math
import re
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

    figure, panels = plt.subplots(1, 2, figsize=(9.6, 4.6), sharey=True, layout="constrained")
    measures = (("cosine", "Raw cosine"), ("pearson", "Pearson correlation (centred cosine)"))
    names = [_label(row["name"]) for row in document["pairs"][0]["norms"]]
    for panel, (key, title) in zip(panels, measures, strict=True):
        for pair in document["pairs"]:
            _draw_pair(panel, pair, key)
        panel.set_title(title, fontsize=11.5, loc="left")
        panel.set_xticks(range(len(names)), names, rotation=60, ha="right", fontsize=8.5)
        panel.set_ylim(-0.35, 1.12)
        panel.axhline(0, color="0.75", linewidth=0.8, zorder=0)
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("similarity of the two vectors")
    figure.suptitle(
        "Raw cosine cannot tell a descendant from a stranger",
        fontsize=13,
        x=0.01,
        ha="left",
        weight="bold",
    )
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower left", frameon=False, fontsize=9.5)
    # Fixed metadata: the same numbers give the same file.
    figure.savefig(file, dpi=150, metadata={"Software": None})
    plt.close(figure)


def _draw_pair(panel: Any, pair: dict[str, Any], key: str) -> None:
    """One pair's values, side by side with the other's, and their mean as a line."""
    values = [math.nan if row[key] is None else row[key] for row in pair["norms"]]
    related = pair["related"]
    colour, mark, aside = (_RELATED, "o", -0.16) if related else (_STRANGER, "D", 0.16)
    label = f"{_short(pair['a'])} and {_short(pair['b'])}: {pair['known']}"
    places = [place + aside for place in range(len(values))]
    panel.plot(places, values, mark, color=colour, markersize=5.5, alpha=0.85, label=label)
    mean = pair[f"mean_{key}"]
    if mean is not None:
        panel.axhline(mean, color=colour, linewidth=1, linestyle=":", zorder=0)
        digits, below = (4, 24 if related else 12) if key == "cosine" else (2, 26)
        panel.annotate(
            f"{'descendant' if related else 'stranger'}, mean {mean:.{digits}f}",
            (len(values) - 0.6, mean),
            xytext=(0, -below),
            textcoords="offset points",
            ha="right",
            fontsize=9,
            color=colour,
        )


def _label(name: str) -> str:
    """A short name for a norm vector: its layer and place."""
    layer = re.search(r"\.(\d+)\.", name)
    if layer is None:
        return "final"
    return f"layer {layer[1]} {'post' if 'post' in name else 'in'}"


def _short(name: str) -> str:
    return name.rpartition("/")[2]


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value
