"""A study's result as a document: plain JSON that holds everything a redrawing needs.

What is drawn and printed is what the JSON says: a result becomes JSON first and is read
back before the first picture, so that redrawing from the file gives the same bytes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

from kinprint.errors import FormatError
from kinprint.records import Cost, ModelRef
from kinprint.studies.catalogue import Study
from kinprint.studies.charts import Bars, Chart, Flow, Heatmap, Lines, Panels
from kinprint.studies.results import Result, Table
from kinprint.studies.scene import Request
from kinprint.text import Words

SCHEMA = "kinprint.study/1"

_KINDS: dict[str, type[Lines | Bars | Heatmap | Flow]] = {
    "lines": Lines,
    "bars": Bars,
    "heatmap": Heatmap,
    "flow": Flow,
}


@dataclass(frozen=True, slots=True)
class StudyWords:
    """What a document keeps of the catalogue's entry."""

    name: str
    code: str
    title: Words
    shows: Words
    cannot: Words


@dataclass(frozen=True, slots=True)
class Report:
    """A result with what it takes to read it: the study's words, what was asked, of whom.

    `cost` is what reading took, the one part that differs from run to run.
    """

    study: StudyWords
    result: Result
    asked: Request | None = None
    sources: tuple[ModelRef, ...] = ()
    cost: Cost | None = None


def report_of(
    result: Result,
    study: Study,
    asked: Request | None = None,
    sources: Sequence[ModelRef] = (),
    cost: Cost | None = None,
) -> Report:
    """A result together with its study's words."""
    words = StudyWords(study.name, study.code, study.title, study.shows, study.cannot)
    return Report(words, result, asked, tuple(sources), cost)


def document(report: Report) -> dict[str, Any]:
    """The report as plain data, the cost of reading last."""
    result = report.result
    return {
        "schema": SCHEMA,
        "study": plain(report.study),
        "models": plain(result.models),
        "labels": plain(result.labels),
        "sources": [
            {"given": one.given, "name": one.name, "kind": one.kind, "commit": one.commit or None}
            for one in report.sources
        ],
        "asked": plain(report.asked),
        "findings": plain(result.findings),
        "facts": plain(result.facts),
        "statuses": plain(result.statuses),
        "tables": plain(result.tables),
        "charts": [_chart(chart) for chart in result.charts],
        "read": None
        if report.cost is None
        else {
            "bytes": report.cost.bytes,
            "requests": report.cost.requests,
            "seconds": round(report.cost.seconds, 3),
        },
    }


def encode(report: Report) -> bytes:
    """The JSON file of a report."""
    import msgspec

    return msgspec.json.format(msgspec.json.encode(document(report)), indent=1) + b"\n"


def decode(raw: bytes, name: str = "result.json") -> Report:
    """A report from its JSON file; an error that names the file where it is none."""
    import msgspec

    try:
        found = msgspec.json.decode(raw)
        if found["schema"] != SCHEMA:
            raise _unreadable(name, f"its schema is '{found['schema']}'")
        return Report(
            study=_convert(found["study"], StudyWords),
            result=Result(
                study=_convert(found["study"]["name"], str),
                models=_convert(found["models"], tuple[str, ...]),
                tables=_convert(found["tables"], tuple[Table, ...]),
                facts=_convert(found["facts"], dict[str, Any]),
                charts=tuple(_read_chart(chart) for chart in found["charts"]),
                findings=_convert(found["findings"], tuple[Words, ...]),
                labels=_convert(found["labels"], tuple[str, ...]),
            ),
            asked=_convert(found["asked"], Request | None),
            sources=tuple(
                ModelRef(one["given"], one["kind"], one["name"], one["commit"] or "")
                for one in found["sources"]
            ),
            cost=_convert(found["read"], Cost | None),
        )
    except (msgspec.MsgspecError, KeyError, TypeError, AttributeError) as error:
        raise _unreadable(name, f"{type(error).__name__} {error}".strip()) from None


def read_report(file: Path) -> Report:
    """A report from the JSON file that `write_result` wrote."""
    return decode(file.read_bytes(), str(file))


def read_result(file: Path) -> Result:
    """The result in a JSON file that `write_result` wrote."""
    return read_report(file).result


def _convert(given: Any, kind: Any) -> Any:
    """Plain data as a record; words are no type that the library knows."""
    import msgspec

    return msgspec.convert(given, kind, dec_hook=_words)


def _words(kind: type, given: Any) -> Any:
    import msgspec

    if kind is not Words:
        raise NotImplementedError(kind)
    return Words(msgspec.convert(given, dict[str, str]))


def _unreadable(name: str, cause: str) -> FormatError:
    return FormatError(cause=f"'{name}' is no result of a study in the form {SCHEMA}: {cause}")


def _chart(chart: Chart) -> dict[str, Any]:
    if isinstance(chart, Panels):
        inner = [_chart(one) for one in chart.charts]
        return {"kind": "panels", **plain(chart), "charts": inner}
    return {"kind": type(chart).__name__.lower(), **plain(chart)}


def _read_chart(found: Mapping[str, Any]) -> Chart:
    if found["kind"] != "panels":
        chart: Chart = _convert(found, _KINDS[found["kind"]])
        return chart
    inner = [_read_chart(one) for one in found["charts"]]
    return Panels(
        name=_convert(found["name"], str),
        title=_convert(found["title"], Words),
        charts=tuple(one for one in inner if isinstance(one, Lines | Bars | Heatmap)),
        across=_convert(found["across"], int),
        note=_convert(found["note"], Words | None),
    )


def plain(value: Any) -> Any:
    """Records as JSON has them: no number that is none, no text that is no text."""
    if isinstance(value, str):  # halves of characters occur in broken tokenizers
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if is_dataclass(value):
        return {one.name: plain(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, Mapping):
        return {plain(str(key)): plain(each) for key, each in value.items()}
    if isinstance(value, Sequence):
        return [plain(each) for each in value]
    return plain(value.item())  # a number of numpy's
