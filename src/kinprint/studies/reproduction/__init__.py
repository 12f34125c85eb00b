"""The studies of a public dispute, done again: which models, which studies, which files.

A reproduction is data: the file beside this one names the models, the tasks and the files
that the original analyses left. `published.csv` holds every number that they published,
with its source, and stands beside the number found.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from kinprint import text
from kinprint.errors import BadOption
from kinprint.model.model import Model
from kinprint.studies.registry import study_named
from kinprint.studies.reproduction.published import Summary
from kinprint.studies.running import Task
from kinprint.studies.study import Request
from kinprint.tables import read_table
from kinprint.text import Message, Words

NAMES = ("solar-vs-glm",)
_FIELD = re.compile(r"\{(\w+)\}")


class Step(Struct, frozen=True):
    """One study of some of the models, by the short names of the reproduction.

    `whole` says that matrices are read whole, because the published numbers are of whole ones;
    `needs` are models without which the step is not done.
    """

    name: str
    study: str
    models: tuple[str, ...]
    layers: tuple[int, ...] | None
    roles: tuple[str, ...] | None
    whole: bool = False
    needs: tuple[str, ...] = ()


class Expected(Struct, frozen=True):
    """One file that the reproduction leaves: a chart, a table or facts of a step's result.

    `facts` is the way into the facts, empty for all of them, None where it is no JSON file.
    """

    path: str
    step: str
    chart: str | None = None
    table: str | None = None
    facts: tuple[str, ...] | None = None


class ShownTable(Struct, frozen=True):
    """A table of a step's result that stands in RESULTS.md.

    `columns` are those to show, all if there are none, and `heads` what they are called there;
    `only` the rows to show by their first cell, in this order, all if there are none; `where` a
    column and the value that rows must have in it.
    """

    step: str
    table: str
    columns: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    where: Mapping[str, Any] = field(default_factory=dict)
    heads: Mapping[str, str] = field(default_factory=dict)


class Section(Struct, frozen=True):
    """One part of an analysis: published numbers, pictures, and tables and findings of steps."""

    seed: str
    title: Words
    keys: tuple[str, ...]
    pictures: tuple[str, ...] = ()
    tables: tuple[ShownTable, ...] = ()
    findings: tuple[str, ...] = ()
    text: Words | None = None


class Reproduction(Struct, frozen=True):
    """A dispute as data."""

    name: str
    models: Mapping[str, str]
    replicas: Mapping[str, str]
    steps: tuple[Step, ...]
    files: tuple[Expected, ...]
    numbers: Mapping[str, Summary]  # by key
    sections: tuple[Section, ...]

    def tasks(
        self,
        opened: Mapping[str, Model],
        request: Request,
        missing: Mapping[str, Message] | None = None,
    ) -> dict[str, Task]:
        """Studies to run on the models that could be opened, by the name of the step.

        A step whose study needs more models than there are is left out; one that does without
        some says which of them are `missing` and why.
        """
        found: dict[str, Task] = {}
        for step in self.steps:
            names = tuple(name for name in step.models if name in opened)
            study = study_named(step.study)
            pair = study.most == len(step.models)
            if len(names) < (len(step.models) if pair else study.least):
                continue
            if not set(step.needs) <= set(names):
                continue
            rows = None if step.whole else request.rows
            asked = Request(step.layers, step.roles, None, rows, request.seed)
            models = tuple(opened[name] for name in names)
            notes = tuple(
                text.words("study.common.unavailable", model=name, error=error)
                for name, error in (missing or {}).items()
                if name in step.models
            )
            found[step.name] = Task(study, models, asked, names, notes)
        return found


@cache
def reproduction(name: str) -> Reproduction:
    """The reproduction of that name."""
    if name not in NAMES:
        cause = text.message("cause.reproduction-unknown", names=", ".join(NAMES))
        raise BadOption(option="name", value=name, cause=cause)
    table = read_table(Path(__file__).with_name(f"{name}.toml"))
    return Reproduction(
        name,
        table["models"],
        table["replicas"],
        tuple(_step(entry) for entry in table["task"]),
        tuple(file for entry in table["file"] for file in _files(entry, table["each"])),
        {
            entry["key"].format(**values): _summary(entry, values)
            for entry in table["number"]
            for values in _choices(entry["key"], table["each"])
        },
        tuple(_section(entry, table["each"]) for entry in table["section"]),
    )


def _step(entry: Mapping[str, Any]) -> Step:
    return Step(
        entry["name"],
        entry["study"],
        tuple(entry["models"]),
        tuple(entry["layers"]) if "layers" in entry else None,
        tuple(entry["roles"]) if "roles" in entry else None,
        entry.get("whole", False),
        tuple(entry.get("needs", ())),
    )


def _summary(entry: Mapping[str, Any], values: Mapping[str, str]) -> Summary:
    path = tuple(part.format(**values) for part in entry["path"])
    over = tuple(part.format(**values) for part in entry.get("over", path[:-1]))
    return Summary(entry["task"], path, entry.get("pairs"), over)


def _section(entry: Mapping[str, Any], each: Mapping[str, Sequence[str]]) -> Section:
    keys = (key.format(**values) for key in entry["keys"] for values in _choices(key, each))
    name = f"study.reproduction.{entry['name']}"
    remark = text.words(f"{name}.text") if text.knows(f"{name}.text") else None
    title = text.words(f"{name}.title")
    tables = (
        ShownTable(
            one["task"], one["table"], tuple(one.get("columns", ())), tuple(one.get("only", ())),
            one.get("where", {}), one.get("heads", {}),
        )
        for one in entry.get("tables", ())
    )  # fmt: skip
    pictures, findings = (tuple(entry.get(name, ())) for name in ("pictures", "findings"))
    return Section(entry["seed"], title, tuple(keys), pictures, tuple(tables), findings, remark)


def _files(entry: Mapping[str, Any], each: Mapping[str, Sequence[str]]) -> Iterator[Expected]:
    """One entry for every combination of what its path leaves open."""
    for values in _choices(entry["path"], each):
        chart, table, facts = (entry.get(name) for name in ("chart", "table", "facts"))
        yield Expected(
            entry["path"].format(**values),
            entry["task"],
            None if chart is None else chart.format(**values),
            None if table is None else table.format(**values),
            None if facts is None else tuple(key.format(**values) for key in facts),
        )


def _choices(template: str, each: Mapping[str, Sequence[str]]) -> Iterator[dict[str, str]]:
    """Every way to fill in the fields of a template."""
    fields = list(dict.fromkeys(_FIELD.findall(template)))
    for chosen in itertools.product(*(each[name] for name in fields)):
        yield dict(zip(fields, chosen, strict=True))
