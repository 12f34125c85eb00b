"""A reproduction as a folder: the original files' names, with the published numbers beside.

Everything is written from results and from the table of published numbers; nothing is
computed here but the difference of two numbers that stand side by side.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kinprint import text
from kinprint.measure.measures import measures
from kinprint.records import Cost, ModelRef
from kinprint.report.build.study import study_document
from kinprint.report.figures.pool import draw_all
from kinprint.report.files import in_language, write_file
from kinprint.report.numbers import NOTHING
from kinprint.report.schema import encode
from kinprint.report.translation import warning
from kinprint.report.views.csv import sheet
from kinprint.report.views.markdown.escape import escaped
from kinprint.studies.charts import Chart
from kinprint.studies.reproduction import Expected, Reproduction, Section
from kinprint.studies.reproduction.published import ComparedNumber
from kinprint.studies.results import Result, Table
from kinprint.studies.running import Task
from kinprint.titles import role_title

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


@dataclass(frozen=True, slots=True)
class Reproduced:
    """Everything that a reproduction found."""

    what: Reproduction
    tasks: Mapping[str, Task]
    results: Mapping[str, Result]
    numbers: tuple[ComparedNumber, ...]
    sources: Mapping[str, ModelRef]
    missing: Mapping[str, str]  # models that could not be opened, with the reason
    replica: bool
    cost: Cost


def write_reproduction(done: Reproduced, folder: Path) -> list[Path]:
    """Write the whole tree; pictures on all cores."""
    written = [
        write_file(folder / "revisions.json", encode(revisions(done.sources, done.replica), 2)),
        write_file(folder / "published.csv", sheet(_table(done.numbers))),
    ]
    warnings: dict[str, Mapping[str, str]] = {}
    for name, result in done.results.items():
        task = done.tasks[name]
        refs = tuple(model.checkpoint.ref for model in task.models)
        document = study_document(result, task.study, task.request, refs)
        written.append(write_file(folder / "studies" / f"{name}.json", encode(document)))
        warnings[name] = {language: warning(document, language) for language in text.languages()}
    charts: list[tuple[Path, Chart, Mapping[str, str]]] = []
    for file in done.what.files:
        found = done.results.get(file.step)
        if found is None:
            continue
        chart = next((one for one in found.charts if one.name == file.chart), None)
        if chart is not None:
            charts.append((folder / file.path, chart, warnings[file.step]))
        elif file.chart is None:
            written.append(write_file(folder / file.path, _data(file, found)))
    written += draw_all(charts)
    present = {str(path.relative_to(folder)) for path in written}
    for seed, path in SEEDS.items():
        page = "\n".join(_results(done, seed, path, present))
        written.append(write_file(folder / path, page.encode("utf-8")))
    front = "\n".join(_front(done))
    return [*written, write_file(folder / "README.md", front.encode("utf-8"))]


def revisions(sources: Mapping[str, ModelRef], replica: bool) -> dict[str, dict[str, str | None]]:
    """What was read, pinned: to be replayed with `--revisions`. Replicas have no commits."""
    return {
        name: {"repository": ref.name, "commit": (not replica and ref.commit) or None}
        for name, ref in sources.items()
    }


def _data(file: Expected, result: Result) -> bytes:
    if file.table is not None:
        return sheet(result.table(file.table))
    found: object = result.facts
    for key in file.facts or ():
        found = found[key] if isinstance(found, Mapping) else None
    if isinstance(found, Mapping):
        found = {"labels": list(result.labels), **found}
    return encode(found, 2)


def _table(numbers: Sequence[ComparedNumber]) -> Table:
    rows = tuple(
        (
            one.published.seed,
            one.published.key,
            one.found,
            one.published.text,
            one.status if one.status == "by construction" else one.difference,
            one.difference,
            one.status,
            one.published.source,
        )
        for one in numbers
    )
    columns = (
        "analysis", "number", "found", "published", "difference", "found_minus_published",
        "status", "source",
    )  # fmt: skip
    return Table("published", text.words("report.table.published"), columns, rows)


def _results(done: Reproduced, seed: str, path: str, present: set[str]) -> Iterator[str]:
    """RESULTS.md of one analysis: Korean first, as it was written, then English."""
    known = {one.published.key: one for one in done.numbers if one.published.seed == seed}
    known = {one.published.key: one for one in done.numbers} | known
    for language in _reading_order():
        yield f"# {text.say(f'report.reproduction.title.{seed}', language)}"
        yield ""
        if done.replica:
            yield f"**{text.say('report.reproduction.warning', language)}**\n"
        yield f"{text.say('report.reproduction.cosine', language)}\n"
        for section in done.what.sections:
            if section.seed == seed:
                yield from _section(section, known, language, path, present)


def _section(
    section: Section,
    known: Mapping[str, ComparedNumber],
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


def _line(row: ComparedNumber, language: str) -> str:
    said = row.published.text.replace("-", "−")
    found, last = NOTHING, _status(row.status, language)
    if row.found is not None and row.difference is not None:
        digits = max(len(row.published.text.partition(".")[2]), 0 if row.found % 1 == 0 else 4)
        found = f"{row.found:,.{digits}f}".replace("-", "−")
        difference = f"{row.difference:+.{digits}f}".replace("-", "−")
        last = difference if row.status == "measured" else f"{last} ({difference})"
    return f"| {_key(row.published.key, language)} | {found} | {said} | {last} |"


def _key(key: str, language: str) -> str:
    """A pair of tensors in words; what sums up keeps its name."""
    parts = key.split("/")
    if len(parts) != 4 or parts[0] not in measures():
        return f"`{key}`"
    role, title = role_title(parts[1])[language], measures()[parts[0]].title[language]
    return f"{escaped(f'{parts[2]} – {parts[3]}')}: {title}, {role}"


def _front(done: Reproduced) -> Iterator[str]:
    """README.md: what this is, what it was made from, and how it went."""
    for language in _reading_order():
        yield f"# {escaped(done.what.name)}: {text.say('report.reproduction.name', language)}"
        yield ""
        if done.replica:
            yield f"**{text.say('report.reproduction.warning', language)}**\n"
        yield f"{text.say('report.reproduction.cosine', language)}\n"
        yield text.say("report.reproduction.models", language)
        yield "| --- | --- | --- |"
        for name, ref in done.sources.items():
            state = (
                text.say("report.reproduction.replica", language)
                if done.replica
                else escaped(ref.commit[:12] or NOTHING)
            )
            yield f"| {escaped(name)} | {escaped(ref.name)} | {state} |"
        yield ""
        for name, reason in done.missing.items():
            yield f"- {escaped(name)}: {escaped(reason)}"
        counted = Counter(one.status for one in done.numbers)
        yield text.say("report.reproduction.numbers", language)
        yield "| --- | ---: |"
        yield from (f"| {_status(key, language)} | {n:,} |" for key, n in counted.items())
        yield ""
        rows: Counter[str] = Counter()
        for result in done.results.values():
            rows.update(result.statuses)
        yield text.say("report.reproduction.rows", language)
        yield "| --- | ---: |"
        yield from (f"| {escaped(key)} | {n:,} |" for key, n in sorted(rows.items()))
        yield ""
        links = ", ".join(f"[{seed}]({path})" for seed, path in SEEDS.items())
        yield f"{links}, [published.csv](published.csv), [revisions.json](revisions.json)\n"


def _spoken_path(path: str, language: str) -> str:
    stem, dot, ending = path.rpartition(".")
    return f"{in_language(stem, language)}{dot}{ending}"


def _reading_order() -> list[str]:
    """All languages, first the one in which the analyses were written."""
    return sorted(text.languages(), key=lambda language: language != _FIRST_READ)


def _status(status: str, language: str) -> str:
    return text.say(f"report.reproduction.status.{status.replace(' ', '-')}", language)
