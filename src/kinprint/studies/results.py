"""What a study gives: tables, facts, charts and words, all of it plain data.

Pictures and documents are drawn from these records alone, so that a result can be redrawn
without reading a weight, and so that every number in a picture stands in the data.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct, field

from kinprint import text
from kinprint.studies.charts import Chart
from kinprint.text import Message, Words

Cell = str | int | float | bool | None
Fact = Cell | list["Fact"] | dict[str, "Fact"]


class RowStatus(StrEnum):
    """Whether a row of a table could be measured, and if not, what stood in the way."""

    OK = "ok"
    MISSING = "missing"
    UNREADABLE = "unreadable"
    NOT_IN_REPLICA = "not_in_replica"
    SHAPE_MISMATCH = "shape_mismatch"
    DTYPE_MISMATCH = "dtype_mismatch"
    UNDEFINED = "undefined"


class Table(Struct, frozen=True):
    """Named columns and rows; `title` is for people, `name` for files.

    A column called `status` has a `RowStatus` for each row, with the reason beside it.
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

    @property
    def gaps(self) -> tuple[Words, ...]:
        """A sentence about rows that could not be measured, or nothing if all could."""
        counted = self.statuses
        rest = {status: count for status, count in counted.items() if status != RowStatus.OK}
        if not rest:
            return ()
        listed = text.joined(
            (
                text.words(
                    "study.common.gap", status=text.message(f"study.status.{status}"), count=count
                )
                for status, count in sorted(rest.items())
            ),
            ", ",
        )
        count, total = sum(rest.values()), sum(counted.values())
        return (text.words("study.common.gaps", count=count, total=total, listed=listed),)


class Output(Struct, frozen=True):
    """What came out of a study.

    `facts` are the few numbers that sum it up, by name. `findings` say in words what came out;
    what a study can and cannot show stands in its entry.
    """

    tables: tuple[Table, ...] = ()
    facts: Mapping[str, Fact] = field(default_factory=dict)
    charts: tuple[Chart, ...] = ()
    findings: tuple[Words, ...] = ()


class Result(Struct, frozen=True):
    """One study, done: its output, with the names of the study and of the models.

    `labels` are what the models say they are not, as replicas do; `lost` are models of which
    nothing could be read, with the reason.
    """

    study: str
    models: tuple[str, ...]
    tables: tuple[Table, ...] = ()
    facts: Mapping[str, Fact] = field(default_factory=dict)
    charts: tuple[Chart, ...] = ()
    findings: tuple[Words, ...] = ()
    labels: tuple[Message, ...] = ()
    lost: Mapping[str, Message] = field(default_factory=dict)

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
