"""The dispute in four pictures, from published numbers or from those measured now."""

from __future__ import annotations

import math
from collections.abc import Mapping
from statistics import fmean

from kinprint import text
from kinprint.studies.charts import Band, Bar, Bars, Chart, Heatmap, Lines, Panels, Series
from kinprint.studies.reproduction.claim_checks import (
    CHANNELS,
    IN,
    LAYERS,
    by_layer,
    from_layer_zero,
    same_layer,
    within_model,
)
from kinprint.studies.reproduction.claims import Numbers, numbers
from kinprint.text import Words

NAMES = {"solar": "Solar", "glm": "GLM", "phi": "Phi", "mixtral": "Mixtral"}
_DEEP = (10, 20, 30)


def dispute_pictures(measured: Mapping[str, float] | None = None) -> tuple[Chart, ...]:
    """The lesson, the two models by layer, the choice of a baseline, the critique's models."""
    known = numbers(measured)
    return _lesson(known), _layers(known), _baselines(known), _heatmap(known)


def _same(label: str) -> Words:
    """A proper name, which is the same in every language."""
    return text.words("study.dispute.name", name=label)


def _lesson(known: Numbers) -> Panels:
    """What each measure says of a pair in question, of controls and of a derived pair."""

    def mean(measure: str, one: str, other: str) -> float:
        return fmean(same_layer(known, measure, IN, one, other, layer) for layer in _DEEP)

    def bars(measure: str, at: int) -> tuple[Bar, ...]:
        pairs = [("solar", "glm", "pair"), ("solar", "phi", "other"), ("glm", "phi", "other")]
        return (
            *(
                Bar(_same(f"{NAMES[one]} – {NAMES[other]}"), mean(measure, one, other), kind=kind)
                for one, other, kind in pairs
            ),
            Bar(
                text.words("study.dispute.lesson.derived"),
                known.stated["revision/derived"][at],
                kind="related",
            ),
        )

    charts = tuple(
        Bars(
            f"lesson_{measure}",
            text.words(f"study.dispute.lesson.{measure}"),
            text.words(f"study.common.{measure}"),
            bars(measure, at),
            y_range=(-0.1, 1.05),
        )
        for at, measure in enumerate(("cosine", "pearson"))
    )
    title, note = (text.words(f"study.dispute.lesson.{key}") for key in ("title", "note"))
    return Panels("lesson", title, charts, note=note)


def _layers(known: Numbers) -> Panels:
    """Raw cosine with its shuffled twin, and Pearson with the band of chance."""
    x = tuple(float(layer) for layer in LAYERS)
    chance = 2 / math.sqrt(CHANNELS - 1)
    layer = text.words("study.common.layer")
    cosine = Lines(
        "layers_cosine",
        text.words("study.dispute.layers.cosine"),
        layer,
        text.words("study.common.cosine"),
        (
            Series(
                text.words("study.dispute.layers.shuffled"),
                x,
                tuple(by_layer(known, "shuffled_cosine", IN)),
                "random",
            ),
            Series(_same("Solar – GLM"), x, tuple(by_layer(known, "cosine", IN))),
        ),
        y_range=(0.0, 1.02),
    )
    pearson = Lines(
        "layers_pearson",
        text.words("study.dispute.layers.pearson"),
        layer,
        text.words("study.common.pearson"),
        (Series(_same("Solar – GLM"), x, tuple(by_layer(known, "pearson", IN))),),
        (Band(text.words("study.dispute.layers.chance"), 0.0, -chance, chance),),
        (-0.06, 0.06),
    )
    title, note = (text.words(f"study.dispute.layers.{key}") for key in ("title", "note"))
    return Panels("layers", title, (cosine, pearson), note=note)


def _baselines(known: Numbers) -> Bars:
    """What a difference from 0.98 looks like, by what it is compared with."""
    inside = [("solar", "within"), ("glm", "within")]
    pair = same_layer(known, "cosine", IN, "solar", "glm", 10)
    controls = [("solar", "phi"), ("glm", "phi"), ("solar", "mixtral"), ("glm", "mixtral")]
    return Bars(
        "baselines",
        text.words("study.dispute.baselines.title"),
        text.words("study.common.cosine"),
        (
            Bar(text.words("study.dispute.baselines.pair"), pair),
            *(
                Bar(
                    text.words("study.dispute.baselines.layer-zero", model=NAMES[model]),
                    fmean(from_layer_zero(known, model)),
                    kind=kind,
                )
                for model, kind in inside
            ),
            *(
                Bar(
                    text.words("study.dispute.baselines.equal-distance", model=NAMES[model]),
                    fmean(
                        within_model(known, "cosine", IN, model, *two)
                        for two in ((10, 20), (20, 30))
                    ),
                    kind=kind,
                )
                for model, kind in inside
            ),
            *(
                Bar(
                    _same(f"{NAMES[one]} – {NAMES[other]}"),
                    same_layer(known, "cosine", IN, one, other, 10),
                    kind="other",
                )
                for one, other in controls
            ),
        ),
        y_range=(0.0, 1.05),
        note=text.words("study.dispute.baselines.note"),
    )


def _heatmap(known: Numbers) -> Heatmap:
    found = known.heatmap
    return Heatmap(
        "models",
        text.words("study.dispute.models.title"),
        found.models,
        found.models,
        found.values,
        text.words("study.common.cosine"),
        0.9,
        1.0,
        note=text.words("study.dispute.models.note"),
    )
