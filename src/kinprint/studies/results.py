"""What a study gives: tables, facts, charts and words, all of it plain data.

Pictures and documents are drawn from these records alone, so that a result can be redrawn
without reading a weight, and so that every number in a picture stands in the data.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from kinprint.studies.charts import Chart
from kinprint.text import Words

Cell = str | int | float | bool | None
Fact = Cell | list["Fact"] | dict[str, "Fact"]


@dataclass(frozen=True, slots=True)
class Table:
    """Named columns and rows; `title` is for people, `name` for files.

    A column called `status` says of each row whether it could be measured: "ok", or a word
    such as "missing", "shape_mismatch", "unreadable", "undefined", with the reason beside it.
    """

    name: str
    title: Words
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    def column(self, name: str) -> tuple[Cell, ...]:
        """One column, top to bottom."""
        at = self.columns.index(name)
        return tuple(row[at] for row in self.rows)

    @property
    def statuses(self) -> dict[str, int]:
        """How many rows have which status; empty for a table without."""
        return dict(Counter(map(str, self.column("status")))) if "status" in self.columns else {}


@dataclass(frozen=True, slots=True)
class Result:
    """One study, done.

    `facts` are the few numbers that sum it up, by name. `findings` say in words what came
    out; what the study can and cannot show stands in the catalogue. `labels` are what the
    models say they are not, as replicas do.
    """

    study: str
    models: tuple[str, ...]
    tables: tuple[Table, ...] = ()
    facts: Mapping[str, Fact] = field(default_factory=dict)
    charts: tuple[Chart, ...] = ()
    findings: tuple[Words, ...] = ()
    labels: tuple[str, ...] = ()

    def table(self, name: str) -> Table:
        """The table of that name."""
        return next(table for table in self.tables if table.name == name)

    @property
    def statuses(self) -> dict[str, int]:
        """How many rows of all tables have which status."""
        total: Counter[str] = Counter()
        for table in self.tables:
            total.update(table.statuses)
        return dict(total)
