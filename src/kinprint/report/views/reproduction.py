"""A reproduction as a folder: the original files' names, with the published numbers beside.

Everything is written from results and from the table of published numbers; nothing is
computed here but the difference of two numbers that stand side by side.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from kinprint import text
from kinprint.measure.measures import measures
from kinprint.report.figures.pool import draw_all
from kinprint.report.files import in_language, write_file
from kinprint.report.numbers import NOTHING
from kinprint.report.schema import NumberPart, ReproductionDocument, StudyDocument, encode
from kinprint.report.translation import warning
from kinprint.report.views.claims import claims_page, origin_of_numbers
from kinprint.report.views.csv import sheet
from kinprint.report.views.markdown.escape import escaped
from kinprint.studies.charts import Chart
from kinprint.studies.reproduction import Expected, Section, reproduction
from kinprint.studies.reproduction.claims import judged_claims
from kinprint.studies.reproduction.published import NumberStatus
from kinprint.studies.results import Table
from kinprint.titles import role_title

DATA, STUDIES, CLAIMS = "reproduction.json", "studies", "CLAIMS.md"
SEEDS = {
    "derivation": "derivation/RESULTS.md",
    "vs-phi": "vs-phi/RESULTS.md",
    "critique": "critique/results/RESULTS.md",
}
_HEAD = (
    "report.reproduction.number",
    "report.reproduction.found",
    "report.reproduction.published",
    "report.reproduction.difference",
)
_FIRST_READ = "ko"  # the language in which the analyses were written


def write_reproduction(
    document: ReproductionDocument, studies: Mapping[str, StudyDocument], folder: Path
) -> list[Path]:
    """Write the whole tree; pictures on all cores."""
    what = reproduction(document.name)
    written = [
        write_file(folder / DATA, encode(document)),
        write_file(folder / "revisions.json", encode(revisions(document), 2)),
        write_file(folder / "published.csv", sheet(published_table(document))),
    ]
    for name, study in studies.items():
        written.append(write_file(folder / STUDIES / f"{name}.json", encode(study)))
    charts: list[tuple[Path, Chart, Mapping[str, str]]] = []
    for file in what.files:
        found = studies.get(file.step)
        if found is None:
            continue
        chart = next((one for one in found.charts if one.name == file.chart), None)
        if chart is not None:
            warnings = {language: warning(found, language) for language in text.languages()}
            charts.append((folder / file.path, chart, warnings))
        elif file.chart is None:
            written.append(write_file(folder / file.path, _data(file, found)))
    written += [path for paths in draw_all(charts) for path in paths]
    present = {str(path.relative_to(folder)) for path in written}
    for seed, path in SEEDS.items():
        page = "\n".join(_results(document, what.sections, seed, path, present))
        written.append(write_file(folder / path, page.encode("utf-8")))
    page = "\n".join(_claims(document))
    written.append(write_file(folder / CLAIMS, page.encode("utf-8")))
    page = "\n".join(_front(document, studies))
    return [*written, write_file(folder / "README.md", page.encode("utf-8"))]


def revisions(document: ReproductionDocument) -> dict[str, dict[str, str | None]]:
    """What was read, pinned, to be read again. Replicas have no commits."""
    return {
        name: {"repository": one.name, "commit": None if document.replica else one.commit}
        for name, one in document.models.items()
    }


def published_table(document: ReproductionDocument) -> Table:
    """Every published number with the one found."""
    rows = tuple(
        (
            one.analysis,
            one.number,
            one.found,
            one.published,
            one.status if one.status is NumberStatus.BY_CONSTRUCTION else one.difference,
            one.difference,
            one.status,
            one.source,
        )
        for one in document.numbers
    )
    columns = (
        "analysis", "number", "found", "published", "difference", "found_minus_published",
        "status", "source",
    )  # fmt: skip
    return Table("published", text.words("report.table.published"), columns, rows)


def _data(file: Expected, study: StudyDocument) -> bytes:
    if file.table is not None:
        return sheet(next(table for table in study.tables if table.name == file.table))
    found: object = study.facts
    for key in file.facts or ():
        found = found[key] if isinstance(found, Mapping) else None
    if isinstance(found, Mapping):
        found = {"labels": list(study.labels), **found}
    return encode(found, 2)


def _results(
    document: ReproductionDocument,
    sections: Sequence[Section],
    seed: str,
    path: str,
    present: set[str],
) -> Iterator[str]:
    """RESULTS.md of one analysis: Korean first, as it was written, then English."""
    known = {one.number: one for one in document.numbers if one.analysis == seed}
    known = {one.number: one for one in document.numbers} | known
    for language in _reading_order():
        yield f"# {text.say(f'report.reproduction.title.{seed}', language)}"
        yield ""
        if document.replica:
            yield f"**{text.say('report.reproduction.warning', language)}**\n"
        yield f"{text.say('report.reproduction.cosine', language)}\n"
        title = text.say("report.claims.title", language)
        link = os.path.relpath(CLAIMS, Path(path).parent)
        yield f"{text.say('report.reproduction.claims', language, title=title, link=link)}\n"
        for section in sections:
            if section.seed == seed:
                yield from _section(section, known, language, path, present)


def _section(
    section: Section,
    known: Mapping[str, NumberPart],
    language: str,
    path: str,
    present: set[str],
) -> Iterator[str]:
    yield f"## {section.title[language]}"
    yield ""
    if section.text is not None:
        yield f"{section.text[language]}\n"
    rows = [known[key] for key in section.keys if key in known]
    if rows:
        yield "| " + " | ".join(text.say(key, language) for key in _HEAD) + " |"
        yield "| --- | ---: | ---: | ---: |"
        yield from (_line(row, language) for row in rows)
        yield ""
    if section.picture is not None:
        drawn = _spoken_path(section.picture, language)
        if drawn in present:
            yield f"![]({os.path.relpath(drawn, Path(path).parent)})\n"


def _line(row: NumberPart, language: str) -> str:
    said = row.published.replace("-", "−")
    found, last = NOTHING, _status(row.status, language)
    if row.found is not None and row.difference is not None:
        digits = max(len(row.published.partition(".")[2]), 0 if row.found % 1 == 0 else 4)
        found = f"{row.found:,.{digits}f}".replace("-", "−")
        difference = f"{row.difference:+.{digits}f}".replace("-", "−")
        last = difference if row.status is NumberStatus.MEASURED else f"{last} ({difference})"
    return f"| {_key(row.number, language)} | {found} | {said} | {last} |"


def _key(key: str, language: str) -> str:
    """A pair of tensors in words; what sums up keeps its name."""
    parts = key.split("/")
    if len(parts) != 4 or parts[0] not in measures():
        return f"`{key}`"
    role, title = role_title(parts[1])[language], measures()[parts[0]].title[language]
    return f"{escaped(f'{parts[2]} – {parts[3]}')}: {title}, {role}"


def measured_numbers(document: ReproductionDocument) -> dict[str, float]:
    """What was measured, by the key of the published number that it stands beside."""
    return {
        one.number: one.found
        for one in document.numbers
        if one.status is NumberStatus.MEASURED and one.found is not None
    }


def _claims(document: ReproductionDocument) -> Iterator[str]:
    """CLAIMS.md: what each side wrote, and what the numbers say of it."""
    judged = judged_claims(measured_numbers(document))
    for language in _reading_order():
        yield f"# {text.say('report.claims.title', language)}\n"
        if document.replica:
            yield f"**{text.say('report.reproduction.warning', language)}**\n"
        yield f"{origin_of_numbers(not document.replica, language)}\n"
        yield f"{text.say('report.claims.basis', language)}\n"
        yield from claims_page(judged, language)


def _front(document: ReproductionDocument, studies: Mapping[str, StudyDocument]) -> Iterator[str]:
    """README.md: what this is, what it was made from, and how it went."""
    for language in _reading_order():
        yield f"# {escaped(document.name)}: {text.say('report.reproduction.name', language)}"
        yield ""
        if document.replica:
            yield f"**{text.say('report.reproduction.warning', language)}**\n"
        yield f"{text.say('report.reproduction.cosine', language)}\n"
        yield text.say("report.reproduction.models", language)
        yield "| --- | --- | --- |"
        for name, one in document.models.items():
            state = (
                text.say("report.reproduction.replica", language)
                if document.replica
                else escaped((one.commit or "")[:12] or NOTHING)
            )
            yield f"| {escaped(name)} | {escaped(one.name)} | {state} |"
        yield ""
        for name, reason in document.missing.items():
            yield f"- {escaped(name)}: {escaped(reason[language])}"
        counted = Counter(one.status for one in document.numbers)
        yield text.say("report.reproduction.numbers", language)
        yield "| --- | ---: |"
        yield from (f"| {_status(key, language)} | {n:,} |" for key, n in counted.items())
        yield ""
        rows: Counter[str] = Counter()
        for study in studies.values():
            rows.update(study.statuses)
        yield text.say("report.reproduction.rows", language)
        yield "| --- | ---: |"
        yield from (f"| {escaped(key)} | {n:,} |" for key, n in sorted(rows.items()))
        yield ""
        links = ", ".join(f"[{seed}]({path})" for seed, path in SEEDS.items())
        links += f", [{text.say('report.claims.title', language)}]({CLAIMS})"
        yield f"{links}, [published.csv](published.csv), [revisions.json](revisions.json)\n"


def _spoken_path(path: str, language: str) -> str:
    stem, dot, ending = path.rpartition(".")
    return f"{in_language(stem, language)}{dot}{ending}"


def _reading_order() -> list[str]:
    """All languages, first the one in which the analyses were written."""
    return sorted(text.languages(), key=lambda language: language != _FIRST_READ)


def _status(status: str, language: str) -> str:
    return text.say(f"report.reproduction.status.{status.replace(' ', '-')}", language)
