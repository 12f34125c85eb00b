"""Charts as data: what is to be seen, and none of how it is drawn.

One kind of record for each kind of picture; `report` draws them in one visual language. A
value of None is a gap that is drawn as one.
"""

from __future__ import annotations

from dataclasses import dataclass

from kinprint.text import Words

Values = tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class Band:
    """What is expected under a baseline: its middle and its spread, drawn behind the data."""

    label: Words
    middle: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Series:
    """A line of values over x, with an interval where one is known.

    `kind` is what the colour means: "pair" (what is asked about), "related" (known to be
    related), "control" (known not to be), "other"
    (given beside it), "within" (a model with itself), "random".
    """

    label: Words
    x: tuple[float, ...]
    y: Values
    kind: str = "pair"
    low: Values = ()
    high: Values = ()


@dataclass(frozen=True, slots=True)
class Lines:
    """Values over layers or another number."""

    name: str
    title: Words
    x_label: Words
    y_label: Words
    series: tuple[Series, ...]
    bands: tuple[Band, ...] = ()
    y_range: tuple[float, float] | None = None
    points: bool = False  # dots alone, where the order along x means nothing
    note: Words | None = None


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar, with its spread."""

    label: Words
    value: float | None
    spread: float | None = None
    kind: str = "pair"
    group: str = ""


@dataclass(frozen=True, slots=True)
class Bars:
    """Values side by side."""

    name: str
    title: Words
    y_label: Words
    bars: tuple[Bar, ...]
    bands: tuple[Band, ...] = ()
    y_range: tuple[float, float] | None = None
    digits: int = 3
    note: Words | None = None


@dataclass(frozen=True, slots=True)
class Heatmap:
    """A matrix of values with its labels; `low` and `high` bound the colours and are shown."""

    name: str
    title: Words
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: tuple[Values, ...]
    measure: Words
    low: float
    high: float
    diverging: bool = False  # zero in the middle, as for correlations
    annotate: bool = True
    row_label: Words | None = None
    column_label: Words | None = None
    note: Words | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """One line of a presumed transformation: kept, retrained, added, removed or changed."""

    kind: str
    text: Words


@dataclass(frozen=True, slots=True)
class Flow:
    """What would have been done to one model to become the other, if it were so."""

    name: str
    title: Words
    start: str
    end: str
    steps: tuple[Step, ...]
    note: Words | None = None


@dataclass(frozen=True, slots=True)
class Panels:
    """Several charts in one picture."""

    name: str
    title: Words
    charts: tuple[Lines | Bars | Heatmap, ...]
    across: int = 2
    note: Words | None = None


Chart = Lines | Bars | Heatmap | Flow | Panels
