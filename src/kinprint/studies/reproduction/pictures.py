"""The dispute in four pictures, from published numbers or from those measured now."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

from kinprint import text
from kinprint.records import Mark
from kinprint.studies.charts import Band, Bar, Bars, Chart, Heatmap, Lines, Panels, Series
from kinprint.studies.reproduction.claim_checks import CHANNELS, IN, LAYERS, TENS
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


def _at(measure: str, one: str, other: str, layer: int) -> str:
    """The key of a measure of two models' input norms at the same layer."""
    return f"{measure}/{IN}/{one}[{layer}]/{other}[{layer}]"


def _inside(model: str, pairs: Iterable[tuple[int, int]]) -> list[str]:
    """The keys of cosines of layers of one model."""
    return [f"cosine/{IN}/{model}[{one}]/{model}[{other}]" for one, other in pairs]


def _bar(known: Numbers, label: Words, keys: Sequence[str], kind: str) -> Bar:
    """The mean of some numbers, marked by where they come from."""
    value = fmean(known[key] for key in keys)
    return Bar(label, value, kind=kind, mark=known.mark(keys))


def _lesson(known: Numbers) -> Panels:
    """What each measure says of a pair in question, of controls and of a derived pair."""

    def bars(measure: str, at: int) -> tuple[Bar, ...]:
        pairs = [("solar", "glm", "pair"), ("solar", "phi", "other"), ("glm", "phi", "other")]
        return (
            *(
                _bar(
                    known,
                    _same(f"{NAMES[one]} – {NAMES[other]}"),
                    [_at(measure, one, other, layer) for layer in _DEEP],
                    kind,
                )
                for one, other, kind in pairs
            ),
            Bar(
                text.words("study.dispute.lesson.derived"),
                known.stated["revision/derived"][at],
                kind="related",
                mark=Mark.RECONSTRUCTED,
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

    def series(label: Words, measure: str, kind: str = "pair") -> Series:
        keys = [_at(measure, "solar", "glm", layer) for layer in LAYERS]
        return Series(label, x, tuple(known[key] for key in keys), kind, mark=known.mark(keys))

    cosine = Lines(
        "layers_cosine",
        text.words("study.dispute.layers.cosine"),
        layer,
        text.words("study.common.cosine"),
        (
            series(text.words("study.dispute.layers.shuffled"), "shuffled_cosine", "random"),
            series(_same("Solar – GLM"), "cosine"),
        ),
        y_range=(0.0, 1.02),
    )
    pearson = Lines(
        "layers_pearson",
        text.words("study.dispute.layers.pearson"),
        layer,
        text.words("study.common.pearson"),
        (series(_same("Solar – GLM"), "pearson"),),
        (Band(text.words("study.dispute.layers.chance"), 0.0, -chance, chance),),
        (-0.06, 0.06),
    )
    title, note = (text.words(f"study.dispute.layers.{key}") for key in ("title", "note"))
    return Panels("layers", title, (cosine, pearson), note=note)


def _baselines(known: Numbers) -> Bars:
    """What a difference from 0.98 looks like, by what it is compared with."""
    asked = text.words("study.dispute.baselines.pair")
    bars = [_bar(known, asked, [_at("cosine", "solar", "glm", 10)], "pair")]
    baselines = {
        "layer-zero": [(0, layer) for layer in TENS],
        "equal-distance": [(10, 20), (20, 30)],
    }
    for name, pairs in baselines.items():
        for model in ("solar", "glm"):
            label = text.words(f"study.dispute.baselines.{name}", model=NAMES[model])
            bars.append(_bar(known, label, _inside(model, pairs), "within"))
    for one, other in (("solar", "phi"), ("glm", "phi"), ("solar", "mixtral"), ("glm", "mixtral")):
        label = _same(f"{NAMES[one]} – {NAMES[other]}")
        bars.append(_bar(known, label, [_at("cosine", one, other, 10)], "other"))
    return Bars(
        "baselines",
        text.words("study.dispute.baselines.title"),
        text.words("study.common.cosine"),
        tuple(bars),
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
        mark=Mark.RECONSTRUCTED,
    )
