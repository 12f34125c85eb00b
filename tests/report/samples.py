"""Charts and results at the edges: long names, gaps, one of everything, hostile text."""

from __future__ import annotations

import math

import numpy as np

from kinprint.studies.charts import (
    Band,
    Bar,
    Bars,
    Chart,
    Flow,
    Heatmap,
    Lines,
    Panels,
    Series,
    Step,
)
from kinprint.studies.results import Result, Table
from kinprint.studies.study import Study
from kinprint.text import Words, message

HOSTILE = "evil|name`<script>alert(1)</script>*_[x](http://a.b)$x$\x1b[31m\u202e中文\ud800"
LONG = "an-organisation/An-Extremely-Long-Model-Name-Which-Never-Ends-Instruct-2507-FP8-dynamic"


def words(text: str) -> Words:
    return Words({"en": text, "ko": f"한국어 {text}"})


BAND = Band(words("baseline"), 0.377, 0.30, 0.45)


def lines(count: int = 3, layers: int = 46) -> Lines:
    chance = np.random.default_rng(0)
    kinds = ("pair", "control", "related", "within", "random", "unheard of")
    series = []
    for at in range(count):
        y = [float(value) for value in chance.normal(0.9, 0.05, layers)]
        gaps = tuple(None if place in (3, 17) else value for place, value in enumerate(y))
        low, high = tuple(v - 0.02 for v in y), tuple(v + 0.02 for v in y)
        x = tuple(float(place) for place in range(layers))
        series.append(Series(words(f"_{at} {LONG}"), x, gaps, kinds[at % 6], low, high))
    return Lines(
        "lines", words("By layer"), words("layer"), words("cosine"), tuple(series), (BAND, BAND)
    )


def bars(low: float | None = None) -> Bars:
    found = tuple(
        Bar(words(f"{LONG} {at}"), value, 0.01, kind, group)
        for at, (value, kind, group) in enumerate(
            [(0.95, "pair", "first"), (-0.2, "control", "first"), (None, "within", "second")]
        )
    )
    if low is not None:
        found = found[:1]
    wanted = None if low is None else (low, 1.0)
    return Bars("bars", words("Bars"), words("Pearson"), found, (BAND,) * (low is None), wanted)


def heatmap(size: int = 11, *, diverging: bool = False) -> Heatmap:
    chance = np.random.default_rng(1)
    names = tuple(LONG if at == 1 else f"model-{at}" for at in range(size))
    values = tuple(
        tuple(None if 2 in (row, column) else float(value) for column, value in enumerate(line))
        for row, line in enumerate(chance.uniform(-0.5 if diverging else 0.9, 1, (size, size)))
    )
    low = -1.0 if diverging else 0.9
    return Heatmap(
        f"heat{size}", words("Map"), names, names, values, words("cosine"), low, 1.0, diverging,
        row_label=words("of A"), column_label=words("of B"), note=words("a note"),
    )  # fmt: skip


def flow() -> Flow:
    kinds = ("kept", "retrained", "added", "removed", "changed", "unheard of")
    steps = tuple(Step(kind, words(f"{kind}: " + "many words " * 20)) for kind in kinds)
    return Flow("flow", words("Presumed"), HOSTILE, LONG, steps, words("no finding"))


def panels() -> Panels:
    return Panels("parts/panels", words("All"), (lines(2, 6), bars(), bars(0.9), heatmap(4)))


def charts() -> list[Chart]:
    nothing = Series(words("a"), (0.0, 1.0), (None, None))
    one = Series(words("a"), (3.0,), (-0.5,), "pair", (-0.6,), (-0.4,))
    axes = words("layer"), words("cosine")
    return [
        lines(),
        lines(20),
        Lines("none", words("None"), *axes, (nothing,)),
        Lines("one", words("One"), *axes, (one,), points=True),
        Lines("empty", words("Empty"), *axes, ()),
        bars(),
        bars(0.9),
        Bars("no-bars", words("None"), words("cosine"), ()),
        heatmap(1),
        heatmap(),
        heatmap(48, diverging=True),
        Heatmap("flat", words("Flat"), ("a",), ("b",), ((None,),), words("l2"), 0.0, 0.0),
        flow(),
        panels(),
    ]


def study() -> Study:
    return Study(
        "sample", "S1", words("A | sample"), words("This."), words("That."), "none:NONE", least=1,
        roles=("norm_in",), measures=("cosine",),
    )  # fmt: skip


def result() -> Result:
    rows = tuple((at, HOSTILE, at / 7, "8/64", "ok", "") for at in range(20))
    odd = (20, "=1+1", math.nan, None, "undefined", 'a "quote", and\na line')
    columns = ("layer", "model", "cosine", "sample", "status", "reason")
    return Result(
        "sample",
        ("base-a", HOSTILE),
        (Table("main/pairs", words("Pairs"), columns, (*rows, odd)),),
        {"mean": 0.25, "none": math.inf, "inner": {"deep": np.float64(2.5), "list": [1, 2]}},
        (lines(2, 5), heatmap(3), panels()),
        (words(f"{HOSTILE} came out."),),
        (message("note.about-model", model="replica", note="these values are invented"),),
    )
