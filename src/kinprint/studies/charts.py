"""Charts as data: what is to be seen, and none of how it is drawn.

One kind of record for each kind of picture, which its JSON names as `kind`; `report` draws them
in one visual language. A value of None is a gap that is drawn as one. `mark` says where values
come from; where several do, it is that of the least certain.
"""

from __future__ import annotations

from msgspec import Struct

from kinprint.records import Mark
from kinprint.text import Words

Values = tuple[float | None, ...]


class Band(Struct, frozen=True):
    """What is expected under a baseline: its middle and its spread, drawn behind the data."""

    label: Words
    middle: float
    low: float
    high: float


class Series(Struct, frozen=True):
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
    mark: Mark = Mark.MEASURED


class Lines(Struct, frozen=True, tag_field="kind", tag="lines"):
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


class Bar(Struct, frozen=True):
    """One bar, with its spread."""

    label: Words
    value: float | None
    spread: float | None = None
    kind: str = "pair"
    group: str = ""
    mark: Mark = Mark.MEASURED


class Bars(Struct, frozen=True, tag_field="kind", tag="bars"):
    """Values side by side; no spread is drawn beyond `most`, the largest value there can be."""

    name: str
    title: Words
    y_label: Words
    bars: tuple[Bar, ...]
    bands: tuple[Band, ...] = ()
    y_range: tuple[float, float] | None = None
    digits: int = 3
    note: Words | None = None
    most: float | None = None


class Heatmap(Struct, frozen=True, tag_field="kind", tag="heatmap"):
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
    mark: Mark = Mark.MEASURED


class Step(Struct, frozen=True):
    """One line of a presumed transformation: kept, retrained, added, removed or changed."""

    kind: str
    text: Words


class Flow(Struct, frozen=True, tag_field="kind", tag="flow"):
    """What would have been done to one model to become the other, if it were so."""

    name: str
    title: Words
    start: str
    end: str
    steps: tuple[Step, ...]
    note: Words | None = None


class Panels(Struct, frozen=True, tag_field="kind", tag="panels"):
    """Several charts in one picture."""

    name: str
    title: Words
    charts: tuple[Lines | Bars | Heatmap, ...]
    across: int = 2
    note: Words | None = None


Chart = Lines | Bars | Heatmap | Flow | Panels
