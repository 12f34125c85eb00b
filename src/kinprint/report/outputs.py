"""Where documents go: a file's ending chooses its form, a folder takes them all.

What was asked for is checked before anything is read, everything is drawn before anything is
written, and each file appears at once or not at all.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from kinprint.errors import BadOption, FormatError
from kinprint.report import phrases
from kinprint.report.document import SCHEMA as STUDY_SCHEMA
from kinprint.report.document import Report
from kinprint.report.document import decode as decode_study
from kinprint.report.documents import ComparisonDocument, MatrixDocument, PlanDocument
from kinprint.report.encoding import decode, encode
from kinprint.report.folder import DATA, LANGUAGES, write_file, write_report

Drawn = ComparisonDocument | MatrixDocument
FORMS = (".json", ".html", ".md", ".csv", ".png", ".svg")
_PAGE = "report.html"


@dataclass(frozen=True, slots=True)
class Output:
    """One place to write to; `form` is a file's ending, or nothing for a folder."""

    path: Path
    form: str = ""


def outputs(given: Iterable[str | Path], option: str = "-o") -> tuple[Output, ...]:
    """What was asked for, refused here if it could not be written later."""
    found: dict[Path, Output] = {}
    for text in given:
        if not str(text):
            raise BadOption(option=option, value="''", cause="name a file or a folder")
        path = Path(text)
        folder = path.is_dir() or str(text).endswith(("/", os.sep)) or not path.suffix
        form = "" if folder else path.suffix.lower()
        if form and form not in FORMS:
            listed = ", ".join(FORMS)
            cause = f"end it in {listed}, or in / for a folder with all of them"
            raise BadOption(option=option, value=str(text), cause=cause)
        _check_place(path, bool(form), option)
        found[path] = Output(path, form)
    return tuple(found.values())


def write_outputs(document: Drawn | Report, wanted: Sequence[Output], language: str) -> list[Path]:
    """Draw all that was asked for, then write it; the files written."""
    if isinstance(document, Report):
        return _write_study(document, wanted)
    ready = [
        (file, raw)
        for one in wanted
        for file, raw in (
            ((one.path, render(document, one.form, language)),)
            if one.form
            else _folder(document, one.path)
        )
    ]
    return [write_file(file, raw) for file, raw in ready]


def render(document: Drawn, form: str, language: str = "en") -> bytes:
    """A document in the form that a file's ending names; pages of the web have both languages."""
    match form:
        case ".json":
            return encode(document)
        case ".html":
            return _web_page(document, language).encode("utf-8")
        case ".md":
            from kinprint.report.comparison_page import page

            return page(document, language).encode("utf-8")
        case ".csv":
            from kinprint.report.comparison_sheets import table_of
            from kinprint.report.sheets import sheet

            return sheet(table_of(document))
    from kinprint.report.comparison_charts import charts_of
    from kinprint.report.figures.drawing import pictures

    chart = charts_of(document)[0]
    return pictures(chart, (form.removeprefix("."),), language, warning_of(document, language))[0]


def decode_result(raw: bytes, name: str = DATA) -> Drawn | Report:
    """What a JSON file of kinprint holds; an error that names the file where it is none."""
    if _schema(raw) == STUDY_SCHEMA:
        return decode_study(raw, name)
    found = decode(raw, name)
    if isinstance(found, PlanDocument):
        raise FormatError(cause=f"'{name}' is a plan: nothing was compared, so nothing is drawn")
    return found


def settled(document: Drawn) -> Drawn:
    """A document as it comes back from its file, so that it is drawn now as it will be then."""
    found = decode(encode(document))
    assert not isinstance(found, PlanDocument)
    return found


def warning_of(document: Drawn, language: str) -> str:
    """What models say they are not; a picture travels alone, so it goes with it."""
    texts = dict.fromkeys(label.partition(": ")[2] or label for label in document.labels)
    if language == "ko":
        return "; ".join(phrases.LABELS_KO.get(text, text) for text in texts)
    return "; ".join(texts)


class _Named(msgspec.Struct):
    schema: str = ""


def _schema(raw: bytes) -> str:
    try:
        return msgspec.json.decode(raw, type=_Named).schema
    except (ValueError, RecursionError):
        return ""  # the form that is expected most says what is wrong


def _web_page(document: Drawn, language: str) -> str:
    if isinstance(document, MatrixDocument):
        from kinprint.report.web.matrix import matrix_page

        return matrix_page(document, language)
    from kinprint.report.web.pair import pair_page

    return pair_page(document, language)


def _folder(document: Drawn, folder: Path) -> Iterator[tuple[Path, bytes]]:
    """All forms of a document, the JSON first."""
    from kinprint.report.comparison_charts import charts_of
    from kinprint.report.comparison_page import Beside, page
    from kinprint.report.comparison_sheets import table_of
    from kinprint.report.figures.drawing import FORMATS, pictures
    from kinprint.report.sheets import sheet

    yield folder / DATA, encode(document)
    yield folder / _PAGE, render(document, ".html")
    rows = table_of(document)
    yield folder / f"{rows.name}.csv", sheet(rows)
    charts = charts_of(document)
    for language in LANGUAGES:
        end = "" if language == "en" else f".{language}"
        for chart in charts:
            drawn = pictures(chart, FORMATS, language, warning_of(document, language))
            for form, raw in zip(FORMATS, drawn, strict=True):
                yield folder / f"{chart.name}{end}.{form}", raw
        shown = tuple((f"{chart.name}{end}.png", chart.title) for chart in charts)
        beside = Beside(DATA, f"{rows.name}.csv", _PAGE, shown)
        yield folder / f"README{end}.md", page(document, language, beside).encode("utf-8")


def _write_study(report: Report, wanted: Sequence[Output]) -> list[Path]:
    for one in wanted:
        if one.form:
            cause = "the result of a study becomes a folder: give one, ending in /"
            raise BadOption(option="-o", value=str(one.path), cause=cause)
    return [file for one in wanted for file in write_report(report, one.path)]


def _check_place(path: Path, is_file: bool, option: str) -> None:
    """Refuse a place where nothing can be written; trying it is the only sure way to know."""
    if not is_file and path.exists() and not path.is_dir():
        cause = f"it is a file; give it one of the endings {', '.join(FORMS)}"
        raise BadOption(option=option, value=str(path), cause=cause)
    if not is_file and path.is_dir() and any(path.iterdir()) and not (path / DATA).is_file():
        cause = "the folder holds other files, which could be overwritten; name a new one"
        raise BadOption(option=option, value=str(path), cause=cause)
    folder = path.parent if is_file else path
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        cause = f"nothing can be written to {folder} ({error.strerror or error})"
        raise BadOption(option=option, value=str(path), cause=cause) from None
