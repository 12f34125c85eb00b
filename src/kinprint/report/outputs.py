"""Where documents go: a file's ending chooses its form, a folder takes them all.

What was asked for is checked before anything is read, everything is drawn before anything is
written, and each file appears at once or not at all.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from kinprint import text
from kinprint.errors import BadOption, BadReference, FormatError, system_cause
from kinprint.reader.folders import holds_weights
from kinprint.report.exports import Export, export_for, exports, render
from kinprint.report.files import DATA, in_language, readme, stems, write_file
from kinprint.report.schema import (
    ComparisonDocument,
    DiffDocument,
    IdentifyDocument,
    InspectionDocument,
    MatrixDocument,
    PlanDocument,
    ReadingPlanDocument,
    ReproductionDocument,
    StudyDocument,
    StudyPlanDocument,
    TreeDocument,
    UnmergeDocument,
    decode,
    encode,
)
from kinprint.report.translation import warning
from kinprint.source.reference import parse_reference

Drawn = ComparisonDocument | MatrixDocument | StudyDocument | DiffDocument
_PAGE = "report.html"
_OURS = re.compile(rb'\s*\{\s*"schema":\s*"kinprint\.')  # how each of our JSON files begins


class _Named(Struct, frozen=True):
    """What a JSON file calls itself."""

    schema: str


class Output(Struct, frozen=True):
    """One place to write to; a folder where no form was asked for."""

    path: Path
    form: Export | None = None


def outputs(
    given: Iterable[str | Path],
    option: str = "paths",
    data: str = DATA,
    models: Iterable[str] = (),
) -> tuple[Output, ...]:
    """What was asked for, refused here if it could not be written later.

    A folder that is there already must hold the file `data`, as one that was written before.
    Nothing is written into one of the `models` that are read.
    """
    found: dict[Path, Output] = {}
    kept = _local_models(models)
    for one in given:
        path = _named(one, option)
        slash = str(one).endswith(("/", os.sep))
        folder = path.is_dir() or slash or not path.suffix
        form = None if folder else export_for(path.name)
        if not folder and form is None:
            cause = text.message("cause.unknown-ending", endings=_endings())
            raise BadOption(option=option, value=str(one), cause=cause)
        if folder and path.exists() and not path.is_dir():
            named = text.message("cause.is-a-file", endings=_endings())
            cause = text.message("cause.file-not-folder") if slash else named
            raise BadOption(option=option, value=str(path), cause=cause)
        _check_models(path, kept, option)
        _check_place(path, not folder, option, data)
        found[path] = Output(path, form)
    return tuple(found.values())


def json_alone(wanted: Sequence[Output]) -> None:
    """Refuse all that is no JSON file, for results that have no other form."""
    for one in wanted:
        if one.form is None or one.form.ending != ".json":
            cause = text.message("cause.output.json-alone")
            raise BadOption(option="paths", value=str(one.path), cause=cause)


def write_outputs(document: Drawn, wanted: Sequence[Output], language: str) -> list[Path]:
    """Draw all that was asked for, then write it; the files written."""
    ready = [(file, raw) for one in wanted for file, raw in _contents(document, one, language)]
    return [write_file(file, raw) for file, raw in ready]


def decode_result(
    raw: bytes, name: str = DATA
) -> Drawn | UnmergeDocument | IdentifyDocument | TreeDocument:
    """What a JSON file of kinprint holds that can be drawn; an error that names the file."""
    found = decode(raw, name)
    if isinstance(found, PlanDocument | ReadingPlanDocument | StudyPlanDocument):
        raise FormatError(cause=text.message("cause.a-plan", file=name))
    if isinstance(found, ReproductionDocument):
        raise FormatError(cause=text.message("cause.a-reproduction", file=name))
    if isinstance(found, InspectionDocument):
        raise FormatError(cause=text.message("cause.an-inspection", file=name))
    return found


def _contents(document: Drawn, wanted: Output, language: str) -> Iterator[tuple[Path, bytes]]:
    if isinstance(document, StudyDocument):
        if wanted.form is not None:
            cause = text.message("cause.study-needs-folder")
            raise BadOption(option="paths", value=str(wanted.path), cause=cause)
        yield from _study_folder(document, wanted.path)
    elif wanted.form is not None:
        yield wanted.path, render(document, wanted.form.ending, language)
    elif isinstance(document, DiffDocument):
        yield from _diff_folder(document, wanted.path)
    else:
        yield from _comparison_folder(document, wanted.path)


def _comparison_folder(
    document: ComparisonDocument | MatrixDocument, folder: Path
) -> Iterator[tuple[Path, bytes]]:
    from kinprint.report.figures.comparison import charts_of
    from kinprint.report.figures.drawing import FORMATS, pictures
    from kinprint.report.views.csv import sheet, tables_of
    from kinprint.report.views.markdown.comparison import Beside, page

    yield folder / DATA, encode(document)
    yield folder / _PAGE, exports()[".html"].content(document, text.languages()[0])
    tables = tables_of(document)
    for table in tables:
        yield folder / f"{table.name}.csv", sheet(table)
    charts = charts_of(document)
    for language in text.languages():
        drawn = [
            pictures(chart, FORMATS, language, warning(document, language)) for chart in charts
        ]
        names = [in_language(chart.name, language) for chart in charts]
        for name, forms in zip(names, drawn, strict=True):
            for form, raw in zip(FORMATS, forms, strict=True):
                yield folder / f"{name}.{form}", raw
        shown = tuple(
            (f"{name}.png", chart.title) for name, chart in zip(names, charts, strict=True)
        )
        beside = Beside(DATA, tuple(f"{table.name}.csv" for table in tables), _PAGE, shown)
        told = page(document, language, beside)
        yield folder / readme(language), told.encode("utf-8")


def _diff_folder(document: DiffDocument, folder: Path) -> Iterator[tuple[Path, bytes]]:
    from kinprint.report.figures.changes import charts_of
    from kinprint.report.figures.drawing import FORMATS, pictures
    from kinprint.report.views.csv import sheet, tables_of
    from kinprint.report.views.markdown.diff import page

    yield folder / DATA, encode(document)
    yield folder / _PAGE, render(document, ".html", text.languages()[0])
    for table in tables_of(document):
        yield folder / f"{table.name}.csv", sheet(table)
    for language in text.languages():
        for chart in charts_of(document):
            drawn = pictures(chart, FORMATS, language, warning(document, language))
            for form, raw in zip(FORMATS, drawn, strict=True):
                yield folder / f"{in_language(chart.name, language)}.{form}", raw
        yield folder / readme(language), page(document, language).encode("utf-8")


def _study_folder(document: StudyDocument, folder: Path) -> Iterator[tuple[Path, bytes]]:
    from kinprint.report.figures.drawing import FORMATS, pictures
    from kinprint.report.views.csv import sheet
    from kinprint.report.views.markdown.study import Names, page

    sheets = stems(table.name for table in document.tables)
    charts = stems(chart.name for chart in document.charts)
    yield folder / DATA, encode(document)
    for table in document.tables:
        yield folder / f"{sheets[table.name]}.csv", sheet(table)
    for language in text.languages():
        names = {name: in_language(stem, language) for name, stem in charts.items()}
        for chart in document.charts:
            drawn = pictures(chart, FORMATS, language, warning(document, language))
            for form, raw in zip(FORMATS, drawn, strict=True):
                yield folder / f"{names[chart.name]}.{form}", raw
        links = Names(
            DATA,
            {name: f"{stem}.csv" for name, stem in sheets.items()},
            {name: f"{stem}.png" for name, stem in names.items()},
        )
        told = page(document, language, links)
        yield folder / readme(language), told.encode("utf-8")


def files_ending_in(
    endings: Sequence[str],
    paths: Iterable[str | os.PathLike[str]],
    refusal: str,
    models: Iterable[str] = (),
) -> list[Path]:
    """Files that were asked for, refused here if their endings are others, with the message that
    `refusal` names, if they could not be written later, or if they lie in one of the `models`."""
    files = []
    kept = _local_models(models)
    for one in paths:
        file = _named(os.fspath(one), "paths")
        if file.suffix.lower() not in endings or file.is_dir():
            cause = text.message(refusal, endings=", ".join(endings))
            raise BadOption(option="paths", value=os.fspath(one), cause=cause)
        _check_models(file, kept, "paths")
        _check_place(file, True, "paths", DATA)
        files.append(file)
    return files


def check_folder(path: Path, option: str) -> None:
    """Refuse a folder to write several files into that is none, or that holds a model."""
    if _named(path, option).is_dir() and holds_weights(path):
        raise BadOption(option=option, value=str(path), cause=text.message("cause.holds-a-model"))


def _local_models(given: Iterable[str]) -> list[Path]:
    """The folders and files on this machine among models; names of none are told elsewhere."""
    found = []
    for one in given:
        try:
            reference = parse_reference(one)
        except BadReference:
            continue
        if reference.kind == "local":
            found.append(Path(reference.place).resolve())
    return found


def _named(given: str | Path, option: str) -> Path:
    """A path that was given; none at all, and the sign for a stream, are refused."""
    if not str(given):
        raise BadOption(option=option, value="''", cause=text.message("cause.no-path"))
    if str(given).rstrip("/") == "-":
        raise BadOption(option=option, value="-", cause=text.message("cause.no-stream"))
    return Path(given)


def _check_models(path: Path, models: Sequence[Path], option: str) -> None:
    """Refuse a place in a model that is read, also where a link leads there."""
    for place in (Path(os.path.realpath(path.parent)) / path.name, Path(os.path.realpath(path))):
        for model in models:
            if place.is_relative_to(model):
                cause = text.message("cause.in-a-model", model=model)
                raise BadOption(option=option, value=str(path), cause=cause)


def _endings() -> str:
    return ", ".join(exports())


def _check_place(path: Path, is_file: bool, option: str, data: str) -> None:
    """Refuse a place where nothing can be written; trying it is the only sure way to know."""
    if is_file and path.suffix.lower() == ".json" and not _is_ours(path):
        raise BadOption(option=option, value=str(path), cause=text.message("cause.file-not-ours"))
    written = (path / data).is_file() and _is_ours(path / data)
    if not is_file and path.is_dir() and any(path.iterdir()) and not written:
        cause = text.message("cause.folder-not-ours")
        raise BadOption(option=option, value=str(path), cause=cause)
    folder = path.parent if is_file else path
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        cause = text.message("cause.cannot-write", folder=folder, cause=system_cause(error))
        raise BadOption(option=option, value=str(path), cause=cause) from None


def _is_ours(file: Path) -> bool:
    """Whether a JSON file may be written anew: it is not there, empty, or one of kinprint."""
    if not file.is_file():
        return True
    with file.open("rb") as opened:
        start = opened.read(100)
    if not start.strip() or _OURS.match(start):
        return True
    try:
        found = msgspec.json.decode(file.read_bytes(), type=_Named)
    except (OSError, msgspec.MsgspecError):
        return False
    return found.schema.startswith("kinprint.")
