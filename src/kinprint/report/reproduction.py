"""A reproduction as a folder: the original files' names, with the published numbers beside.

Everything is written from results and from the table of published numbers; nothing is
computed here but the difference of two numbers that stand side by side.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kinprint.measure.measures import measures
from kinprint.records import Cost, ModelRef
from kinprint.report.document import encode, plain, report_of
from kinprint.report.drawing_pool import draw_all
from kinprint.report.folder import write_file
from kinprint.report.markdown import escaped
from kinprint.report.sheets import sheet
from kinprint.studies.charts import Chart
from kinprint.studies.reproduction import Expected, Reproduction, Section
from kinprint.studies.reproduction.published import Beside
from kinprint.studies.results import Result, Table
from kinprint.studies.running import Task
from kinprint.studies.titles import role_title
from kinprint.text import Words

SEEDS = {
    "derivation": "derivation/RESULTS.md",
    "vs-phi": "vs-phi/RESULTS.md",
    "critique": "critique/results/RESULTS.md",
}
_TITLES = {
    "derivation": Words("The derivation report, done again", "파생 분석 보고서의 재현"),
    "vs-phi": Words("The comparison with Phi, done again", "Phi 비교 분석의 재현"),
    "critique": Words("The critique of the baseline, done again", "기준선 비판 실험의 재현"),
}
_STATUSES = {
    "measured": Words("measured", "측정"),
    "by construction": Words("by construction", "재구성에 쓰인 값"),
    "not determined": Words("not determined by what was published", "발표된 값으로 정해지지 않음"),
    "not in the replica": Words("not in the replica", "복제본에 없음"),
    "not found": Words("not found", "측정값 없음"),
}
_HEAD = (
    Words("number", "항목"),
    Words("found", "측정값"),
    Words("published", "발표값"),
    Words("difference", "차이"),
)
_REPLICA = Words(
    "These are NOT the real models: sparse replicas made from the published figures. Where the "
    "difference reads “by construction”, the number comes back because the replica was made "
    "from it, up to the rounding of what was published. That proves that kinprint computes what "
    "the analyses computed, and nothing about the models. Attention matrices, routers, "
    "embeddings and tokenizers are not in the replicas.",
    "실제 모델이 아닙니다. 발표된 수치로 만든 희소 복제본입니다. 차이 칸에 ‘재구성에 쓰인 값’"
    "이라고 적힌 수는 복제본을 그 수로 만들었기 때문에 다시 나온 것입니다. 이는 kinprint가 원래 "
    "분석과 같은 계산을 한다는 것만 보일 뿐, 모델에 대해서는 아무것도 증명하지 않습니다. 어텐션 "
    "행렬, 라우터, 임베딩, 토크나이저는 복제본에 없습니다.",
)
_NAME = Words("three analyses, done again", "세 분석의 재현")
_A_REPLICA = Words("replica", "복제본")
_MODELS = Words("| model | repository | commit |", "| 모델 | 저장소 | commit |")
_NUMBERS = Words("| published numbers | count |", "| 발표된 수치 | 개수 |")
_ROWS = Words("| status of measured rows | count |", "| 측정한 행의 상태 | 개수 |")
_COSINE = Words(
    "Raw cosines of norm vectors are shown because the analyses argued from them. Beyond the "
    "first layers they are near one for most pairs of models, related or not, and they are no "
    "evidence of derivation.",
    "norm 벡터의 코사인은 원래 분석이 이를 근거로 삼았기에 싣습니다. 처음 몇 레이어를 지나면 "
    "관련이 있든 없든 대부분의 모델 쌍에서 1에 가까우며, 파생의 증거가 되지 않습니다.",
)


@dataclass(frozen=True, slots=True)
class Reproduced:
    """Everything that a reproduction found."""

    what: Reproduction
    tasks: Mapping[str, Task]
    results: Mapping[str, Result]
    numbers: tuple[Beside, ...]
    sources: Mapping[str, ModelRef]
    missing: Mapping[str, str]  # models that could not be opened, with the reason
    replica: bool
    cost: Cost


def write_reproduction(done: Reproduced, folder: Path) -> list[Path]:
    """Write the whole tree; pictures on all cores."""
    written = [
        write_file(folder / "revisions.json", _json(revisions(done.sources, done.replica))),
        write_file(folder / "published.csv", sheet(_table(done.numbers))),
    ]
    for name, result in done.results.items():
        task = done.tasks[name]
        refs = tuple(model.checkpoint.ref for model in task.models)
        raw = encode(report_of(result, task.study, task.request, refs))
        written.append(write_file(folder / "studies" / f"{name}.json", raw))
    charts: list[tuple[Path, Chart, Result]] = []
    for file in done.what.files:
        found = done.results.get(file.step)
        if found is None:
            continue
        chart = next((one for one in found.charts if one.name == file.chart), None)
        if chart is not None:
            charts.append(
                (folder / file.path, chart, replace(found, tables=(), charts=(), facts={}))
            )
        elif file.chart is None:
            written.append(write_file(folder / file.path, _data(file, found)))
    written += draw_all(charts)
    present = {str(path.relative_to(folder)) for path in written}
    for seed, path in SEEDS.items():
        text = "\n".join(_results(done, seed, path, present))
        written.append(write_file(folder / path, text.encode("utf-8")))
    text = "\n".join(_front(done))
    return [*written, write_file(folder / "README.md", text.encode("utf-8"))]


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
    return _json({"labels": list(result.labels), **found} if isinstance(found, Mapping) else found)


def _json(value: object) -> bytes:
    import msgspec

    return msgspec.json.format(msgspec.json.encode(plain(value)), indent=2) + b"\n"


def _table(numbers: Sequence[Beside]) -> Table:
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
    return Table("published", Words("Published numbers", "발표된 수치"), columns, rows)


def _results(done: Reproduced, seed: str, path: str, present: set[str]) -> Iterator[str]:
    """RESULTS.md of one analysis: Korean first, as it was written, then English."""
    known = {one.published.key: one for one in done.numbers if one.published.seed == seed}
    known = {one.published.key: one for one in done.numbers} | known
    for language in ("ko", "en"):
        yield f"# {_say(_TITLES[seed], language)}"
        yield ""
        if done.replica:
            yield f"**{_say(_REPLICA, language)}**\n"
        yield f"{_say(_COSINE, language)}\n"
        for section in done.what.sections:
            if section.seed == seed:
                yield from _section(section, known, language, path, present)


def _section(
    section: Section, known: Mapping[str, Beside], language: str, path: str, present: set[str]
) -> Iterator[str]:
    yield f"## {_say(section.title, language)}"
    yield ""
    if section.text is not None:
        yield f"{_say(section.text, language)}\n"
    rows = [known[key] for key in section.keys if key in known]
    if rows:
        yield "| " + " | ".join(_say(words, language) for words in _HEAD) + " |"
        yield "| --- | ---: | ---: | ---: |"
        yield from (_line(row, language) for row in rows)
        yield ""
    if section.picture is not None:
        drawn = _spoken_path(section.picture, language)
        if drawn in present:
            yield f"![]({os.path.relpath(drawn, Path(path).parent)})\n"


def _line(row: Beside, language: str) -> str:
    said = row.published.text.replace("-", "−")
    found, last = "–", _say(_STATUSES[row.status], language)
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
    role, title = _say(role_title(parts[1]), language), measures()[parts[0]].title[language]
    return f"{escaped(f'{parts[2]} – {parts[3]}')}: {title}, {role}"


def _front(done: Reproduced) -> Iterator[str]:
    """README.md: what this is, what it was made from, and how it went."""
    for language in ("ko", "en"):
        yield f"# {escaped(done.what.name)}: {_say(_NAME, language)}"
        yield ""
        if done.replica:
            yield f"**{_say(_REPLICA, language)}**\n"
        yield f"{_say(_COSINE, language)}\n"
        yield _say(_MODELS, language)
        yield "| --- | --- | --- |"
        for name, ref in done.sources.items():
            state = _say(_A_REPLICA, language) if done.replica else escaped(ref.commit[:12] or "–")
            yield f"| {escaped(name)} | {escaped(ref.name)} | {state} |"
        yield ""
        for name, reason in done.missing.items():
            yield f"- {escaped(name)}: {escaped(reason)}"
        counted = Counter(one.status for one in done.numbers)
        yield _say(_NUMBERS, language)
        yield "| --- | ---: |"
        yield from (f"| {_say(_STATUSES[key], language)} | {n:,} |" for key, n in counted.items())
        yield ""
        rows: Counter[str] = Counter()
        for result in done.results.values():
            rows.update(result.statuses)
        yield _say(_ROWS, language)
        yield "| --- | ---: |"
        yield from (f"| {escaped(key)} | {n:,} |" for key, n in sorted(rows.items()))
        yield ""
        links = ", ".join(f"[{seed}]({path})" for seed, path in SEEDS.items())
        yield f"{links}, [published.csv](published.csv), [revisions.json](revisions.json)\n"


def _spoken_path(path: str, language: str) -> str:
    stem, dot, ending = path.rpartition(".")
    return path if language == "en" else f"{stem}.{language}{dot}{ending}"


def _say(words: Words, language: str) -> str:
    return words[language]
