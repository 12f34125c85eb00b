"""A report as a folder: data, tables, pictures and a page to read, in two languages.

Each file is written beside its place and moved there, so that an interrupted run leaves
the old file or the new one and nothing in between.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from kinprint.records import Cost, ModelRef
from kinprint.report import phrases
from kinprint.report.document import Report, decode, encode, read_report, report_of
from kinprint.report.page import Names, page
from kinprint.report.sheets import sheet
from kinprint.studies.catalogue import Study
from kinprint.studies.results import Result
from kinprint.studies.scene import Request

DATA = "result.json"
LANGUAGES = ("en", "ko")


def write_result(
    result: Result,
    study: Study,
    folder: Path,
    languages: Sequence[str] = LANGUAGES,
    *,
    asked: Request | None = None,
    sources: Sequence[ModelRef] = (),
    cost: Cost | None = None,
) -> list[Path]:
    """Write everything about one result to a folder; the files, the JSON first."""
    return write_report(report_of(result, study, asked, sources, cost), folder, languages)


def redraw(file: Path, folder: Path, languages: Sequence[str] = LANGUAGES) -> list[Path]:
    """Write a report anew from its JSON file: the same files, byte for byte."""
    return write_report(read_report(file), folder, languages)


def write_report(report: Report, folder: Path, languages: Sequence[str] = LANGUAGES) -> list[Path]:
    """Write a report's JSON, and the rest from what the JSON says."""
    from kinprint.report.figures.drawing import FORMATS, pictures

    raw = encode(report)
    report = decode(raw, DATA)
    sheets = _stems(table.name for table in report.result.tables)
    written = [write_file(folder / DATA, raw)]
    written += [
        write_file(folder / f"{sheets[table.name]}.csv", sheet(table))
        for table in report.result.tables
    ]
    stems = _stems(chart.name for chart in report.result.charts)
    for language in languages:
        end = "" if language == "en" else f".{language}"
        for chart in report.result.charts:
            warning = warning_of(report.result, language)
            drawn = pictures(chart, FORMATS, language, warning)
            written += [
                write_file(folder / f"{stems[chart.name]}{end}.{form}", raw)
                for form, raw in zip(FORMATS, drawn, strict=True)
            ]
        names = Names(
            DATA,
            {name: f"{stem}.csv" for name, stem in sheets.items()},
            {name: f"{stem}{end}.png" for name, stem in stems.items()},
        )
        text = page(report, language, names)
        written.append(write_file(folder / f"README{end}.md", text.encode("utf-8")))
    return written


def warning_of(result: Result, language: str) -> str:
    """What the models say they are not: a picture travels alone, so it goes with it."""
    texts = dict.fromkeys(label.partition(": ")[2] or label for label in result.labels)
    if language == "ko":
        return "; ".join(phrases.LABELS_KO.get(text, text) for text in texts)
    return "; ".join(texts)


def write_file(file: Path, raw: bytes) -> Path:
    """Write a file at once or not at all."""
    file.parent.mkdir(parents=True, exist_ok=True)
    beside = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        beside.write_bytes(raw)
        beside.replace(file)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    return file


def _stems(names: Iterable[str]) -> dict[str, str]:
    """File names for names: no way out of the folder, and no two alike."""
    found: dict[str, str] = {}
    for name in names:
        parts = [re.sub(r"[^\w.\-]+", "-", part).strip(".-") for part in name.split("/")]
        stem = "/".join(part[:80] for part in parts if part) or "unnamed"
        taken = {each.casefold() for each in found.values()}
        number, tried = 2, stem
        while tried.casefold() in taken:
            tried, number = f"{stem}-{number}", number + 1
        found[name] = tried
    return found
