"""A reproduction as a folder: the original files' names, with the published numbers beside.

Everything is written from results and from the table of published numbers; nothing is
computed here but the difference of two numbers that stand side by side.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from kinprint import text
from kinprint.measure.measures import measures
from kinprint.records import NumberStatus, Progress, Step
from kinprint.report.costs import size_in_words
from kinprint.report.figures.pool import draw_all
from kinprint.report.files import in_language, write_file
from kinprint.report.numbers import NOTHING
from kinprint.report.schema import NumberPart, ReproductionDocument, StudyDocument, encode
from kinprint.report.study import in_language as in_one_language
from kinprint.report.translation import warning
from kinprint.report.views.claims import claims_page, origin_of_numbers
from kinprint.report.views.csv import sheet
from kinprint.report.views.markdown.escape import cell, escaped
from kinprint.studies.charts import Chart
from kinprint.studies.reproduction import Expected, Section, ShownTable, reproduction
from kinprint.studies.reproduction.claims import judged_claims
from kinprint.studies.results import Cell, Table
from kinprint.text.catalogue import FIRST
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
    "report.reproduction.mark",
)
_KINDS = {"moe-moe": "MoE-MoE", "moe-dense": "MoE-dense", "dense-dense": "dense-dense"}
_IN_WORDS = {
    "mark": "report.mark.short.", "status": "study.status.", "kin": "report.value.",
    "change": "report.value.", "group": "report.value.", "measure": "report.value.",
}  # fmt: skip
_FIRST_READ = "ko"  # the language in which the analyses were written


def write_reproduction(
    document: ReproductionDocument,
    studies: Mapping[str, StudyDocument],
    folder: Path,
    progress: Callable[[Progress], None] | None = None,
    language: str = FIRST,
) -> list[Path]:
    """Write the whole tree; pictures on all cores. Pages that speak of all of it begin in a
    language, those of an analysis in the one in which it was written."""
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
        elif file.chart is None and (data := _data(file, found)) is not None:
            written.append(write_file(folder / file.path, data))
    for at, paths in enumerate(draw_all(charts)):
        written += paths
        if progress is not None:
            drawn = Progress("step", step=Step.DRAWING, number=at + 1, count=len(charts))
            progress(drawn)
    present = {str(path.relative_to(folder)) for path in written}
    for seed, path in SEEDS.items():
        page = "\n".join(_results(document, studies, seed, path, present))
        written.append(write_file(folder / path, page.encode("utf-8")))
    page = "\n".join(_claims(document, language))
    written.append(write_file(folder / CLAIMS, page.encode("utf-8")))
    page = "\n".join(_front(document, studies, language))
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
            one.mark,
            *(one.interval or (None, None)),
            *_pairs(one),
            one.source,
        )
        for one in document.numbers
    )
    columns = (
        "analysis", "number", "found", "published", "difference", "found_minus_published",
        "status", "mark", "low", "high", "pairs", "published_pairs", "published_same_pairs",
        "source",
    )  # fmt: skip
    return Table("published", text.words("report.table.published"), columns, rows)


def _pairs(one: NumberPart) -> tuple[Cell, Cell, Cell]:
    """How many pairs an average is over, how many the published one, and that of the same."""
    if one.pairs is None:
        return None, None, None
    return len(one.pairs.names), one.pairs.published, one.pairs.same


def _data(file: Expected, study: StudyDocument) -> bytes | None:
    """A table or facts of a study as a file; None for facts of a model that is missing."""
    if file.table is not None:
        return sheet(next(one for one in study.tables if one.name == file.table))
    found: object = study.facts
    for key in file.facts or ():
        if not isinstance(found, Mapping) or key not in found:
            return None
        found = found[key]
    if isinstance(found, Mapping):
        found = {"labels": list(study.labels), **found}
    return encode(found, 2)


def _results(
    document: ReproductionDocument,
    studies: Mapping[str, StudyDocument],
    seed: str,
    path: str,
    present: set[str],
) -> Iterator[str]:
    """RESULTS.md of one analysis: Korean first, as it was written, then English."""
    # Where a number was published twice: by this analysis rather, and with the most digits.
    by_rank = sorted(document.numbers, key=lambda one: (one.analysis == seed, len(one.published)))
    known = {one.number: one for one in by_rank}
    for language in _reading_order(_FIRST_READ):
        yield f"# {text.say(f'report.reproduction.title.{seed}', language)}"
        yield ""
        if document.replica:
            yield f"**{text.say('report.reproduction.warning', language)}**\n"
        yield from _absent(document, language)
        yield f"{text.say('report.reproduction.cosine', language)}\n"
        title = text.say("report.claims.title", language)
        link = os.path.relpath(CLAIMS, Path(path).parent)
        yield f"{text.say('report.reproduction.claims', language, title=title, link=link)}\n"
        for section in reproduction(document.name).sections:
            if section.seed == seed:
                yield from _section(section, known, studies, language, path, present)
                yield from _not_done(section, document, studies, language)
        yield from _how(document, language)


def _how(document: ReproductionDocument, language: str) -> Iterator[str]:
    """How the numbers of a page came about."""
    read = document.read
    fields = {
        "size": size_in_words(read.bytes), "requests": read.requests, "date": read.date,
    }  # fmt: skip
    yield f"## {text.say('report.reproduction.how.title', language)}\n"
    key = "replica" if document.replica else "hub"
    yield f"- {text.say(f'report.reproduction.how.{key}', language, **fields)}"
    yield f"- {text.say('report.reproduction.how.arithmetic', language)}\n"


def _absent(document: ReproductionDocument, language: str) -> Iterator[str]:
    """Models that could not be had, and that averages are over the others."""
    for name, reason in document.missing.items():
        fields = {"model": name, "error": reason[language]}
        yield f"**{escaped(text.say('study.common.unavailable', language, **fields))}**\n"


def _section(
    section: Section,
    known: Mapping[str, NumberPart],
    studies: Mapping[str, StudyDocument],
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
        yield "| --- | ---: | ---: | --- | --- |"
        yield from (_line(row, language) for row in rows)
        yield ""
    for shown in section.tables:
        if shown.step in studies:
            yield from _table(studies[shown.step], shown, language)
    for step in section.findings:
        if step in studies:
            yield from (f"- {escaped(one[language])}" for one in studies[step].findings)
            yield ""
    for picture in section.pictures:
        drawn = _spoken_path(picture, language)
        if drawn in present:
            yield f"![]({os.path.relpath(drawn, Path(path).parent)})\n"


def _not_done(
    section: Section,
    document: ReproductionDocument,
    studies: Mapping[str, StudyDocument],
    language: str,
) -> Iterator[str]:
    """A sentence where a section has nothing, because a model is missing that its steps need."""
    what = reproduction(document.name)
    drawn = {file.step for file in what.files if file.path in section.pictures}
    summed = {what.numbers[key].step for key in section.keys if key in what.numbers}
    steps = drawn | summed | {one.step for one in section.tables} | set(section.findings)
    if not steps or steps & studies.keys():
        return
    asked = {name for step in what.steps if step.name in steps for name in step.models}
    absent = ", ".join(name for name in document.missing if name in asked)
    if absent:
        yield f"{escaped(text.say('report.reproduction.not-done', language, models=absent))}\n"


def _table(study: StudyDocument, shown: ShownTable, language: str) -> Iterator[str]:
    """A table of a study, with the columns and rows that are to be shown."""
    found = next((one for one in study.tables if one.name == shown.table), None)
    if found is None:
        return
    spoken = in_one_language(study, found, language)
    columns = [one for one in shown.columns or spoken.columns if one in spoken.columns]
    at = [spoken.columns.index(one) for one in columns]
    where = {spoken.columns.index(one): value for one, value in shown.where.items()}
    rows = [
        tuple(row[one] for one in at)
        for row in spoken.rows
        if (not shown.only or row[0] in shown.only)
        and all(row[one] == value for one, value in where.items())
    ]
    if shown.only:
        rows.sort(key=lambda row: shown.only.index(str(row[0])))
    yield f"**{escaped(found.title[language])}**\n"
    if not rows:
        yield f"{text.say('report.study.empty', language)}\n"
        return
    yield _joined(escaped(shown.heads.get(name) or _head(name, language)) for name in columns)
    yield _joined("---" for _ in columns)
    yield from (
        _joined(_value(name, one, language) for name, one in zip(columns, row, strict=True))
        for row in rows
    )
    yield ""


def _head(column: str, language: str) -> str:
    """What a column is called on a page."""
    key = f"report.column.{column}"
    return text.say(key, language) if text.knows(key) else column


def _value(column: str, value: Cell, language: str) -> str:
    """A cell in words; sentences whole, for this is where they are read."""
    if not isinstance(value, str):
        return cell(value, language)
    if column == "role":
        return escaped(role_title(value)[language])
    key = f"{_IN_WORDS[column]}{value}" if column in _IN_WORDS else None
    return escaped(text.say(key, language) if key and text.knows(key) else value)


def _joined(parts: Iterable[str]) -> str:
    return f"| {' | '.join(parts)} |"


def _line(row: NumberPart, language: str) -> str:
    said = row.published.replace("-", "−")
    found, last = NOTHING, _status(row.status, language)
    if row.found is not None:
        digits = max(len(row.published.partition(".")[2]), 0 if row.found % 1 == 0 else 4)
        found = f"{row.found:,.{digits}f}".replace("-", "−")
        if row.interval is not None:
            low, high = (f"{end:.{digits}f}".replace("-", "−") for end in row.interval)
            found += f" [{low}, {high}]"
        if row.status is NumberStatus.OTHER_PAIRS:
            last = _other_pairs(row, language)
        elif row.difference is not None:
            printed = len(row.published.partition(".")[2])  # more would be told by rounding
            difference = f"{row.difference:+z.{printed}f}".replace("-", "−")
            last = difference if row.status is NumberStatus.MEASURED else f"{last} ({difference})"
    mark = "" if row.mark is None else text.say(f"report.mark.short.{row.mark}", language)
    return f"| {number_title(row.number, language)} | {found} | {said} | {last} | {mark} |"


def _other_pairs(row: NumberPart, language: str) -> str:
    """What an average that is over fewer pairs than the published one may be compared with."""
    assert row.pairs is not None
    pairs, count = row.pairs, len(row.pairs.names)
    names = ", ".join(name.replace("/", " – ") for name in pairs.names)
    over = {"published": pairs.published, "count": count, "names": escaped(names)}
    told = text.say("report.reproduction.other-pairs", language, **over)
    if row.number.endswith("/count"):
        return told
    if pairs.same is None:
        same = text.say("report.reproduction.same-unknown", language, count=count)
    else:
        number = f"{pairs.same:.{pairs.digits}f}"
        same = text.say("report.reproduction.same-pairs", language, count=count, same=number)
    return f"{told}; {same}"


def number_title(key: str, language: str) -> str:
    """What a published number is, in words."""
    parts = key.split("/")
    if len(parts) == 4 and parts[0] in measures():
        role, title = role_title(parts[1])[language], measures()[parts[0]].title[language]
        return escaped(f"{parts[2]} – {parts[3]}: {title}, {role}")
    if len(parts) == 3 and parts[0] in ("mean", "std"):
        role = role_title(parts[1])[language]
        return escaped(text.say(f"report.number.{parts[0]}", language, place=parts[2], role=role))
    return escaped(_summary_title(parts, language))


def _summary_title(parts: Sequence[str], language: str) -> str:
    """What sums up, by its own sentence or by that of its group with the last part filled in."""
    whole = f"report.number.{'.'.join(parts)}"
    if text.knows(whole):
        return text.say(whole, language)
    last = parts[-1]
    if parts[0] == "tensor-types":
        return text.say("report.number.tensor-types", language, role=role_title(last)[language])
    if parts[0] == "metrics":
        measure = measures()[parts[2]].title[language]
        return text.say(f"report.number.metrics.random.{last}", language, measure=measure)
    if parts[0] == "architectures":
        group = text.say(f"study.architectures.group.{_KINDS[parts[1]]}", language)
        return text.say(f"report.number.architectures.{last}", language, group=group)
    return text.say(f"report.number.{'.'.join(parts[:-1])}.each", language, which=last)


def measured_numbers(document: ReproductionDocument) -> dict[str, float]:
    """What was measured, by the key of the published number that it stands beside."""
    return {
        one.number: one.found
        for one in document.numbers
        if one.status is NumberStatus.MEASURED and one.found is not None
    }


def _claims(document: ReproductionDocument, first: str) -> Iterator[str]:
    """CLAIMS.md: what each side wrote, and what the numbers say of it."""
    judged = judged_claims(measured_numbers(document))
    for language in _reading_order(first):
        yield f"# {text.say('report.claims.title', language)}\n"
        if document.replica:
            yield f"**{text.say('report.reproduction.warning', language)}**\n"
        yield f"{origin_of_numbers(not document.replica, language)}\n"
        yield f"{text.say('report.claims.basis', language)}\n"
        yield from claims_page(judged, language)


def _front(
    document: ReproductionDocument, studies: Mapping[str, StudyDocument], first: str
) -> Iterator[str]:
    """README.md: what this is, what it was made from, and how it went."""
    for language in _reading_order(first):
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
        yield from _absent(document, language)
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
        yield from (
            f"| {_value('status', key, language)} | {n:,} |" for key, n in sorted(rows.items())
        )
        yield ""
        links = ", ".join(f"[{seed}]({path})" for seed, path in SEEDS.items())
        links += f", [{text.say('report.claims.title', language)}]({CLAIMS})"
        yield f"{links}, [published.csv](published.csv), [revisions.json](revisions.json)\n"


def _spoken_path(path: str, language: str) -> str:
    stem, dot, ending = path.rpartition(".")
    return f"{in_language(stem, language)}{dot}{ending}"


def _reading_order(first: str) -> list[str]:
    """All languages, one of them first."""
    return sorted(text.languages(), key=lambda language: language != first)


def _status(status: str, language: str) -> str:
    return text.say(f"report.reproduction.status.{status.replace(' ', '-')}", language)
