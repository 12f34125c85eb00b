"""A diff as Markdown."""

from __future__ import annotations

from kinprint import text
from kinprint.errors import printable
from kinprint.report import changes
from kinprint.report.schema import DiffDocument
from kinprint.report.translation import translated
from kinprint.report.views.markdown.beyond import beyond_blocks
from kinprint.report.views.markdown.escape import escaped, table
from kinprint.studies.results import Cell

_ROWS = 100  # tensors; the JSON has all


def page(document: DiffDocument, language: str) -> str:
    """The headline, operations, the map, and tensors, those that changed most first."""

    def say(key: str, **fields: object) -> str:
        return text.say(f"diff.{key}", language, **fields)

    a, b = (escaped(one.title) for one in document.models)
    lines = [f"# {say('title', a=a, b=b)}", "", escaped(changes.summary(document, language)), ""]
    lines += [f"> {escaped(translated(document, one, language))}" for one in document.labels]
    lines += [escaped(changes.totals_say(document, language)), ""]
    for words, evidence in changes.evidence_of(document, language):
        lines.append(f"- **{escaped(words)}**: {escaped(evidence)}")
    lines += [f"- {escaped(one)}" for one in changes.map_lines(document, language)]
    lines += ["", escaped(" ".join(changes.came_first(document, language)))]
    columns = [say(f"column.{name}") for name in ("tensor", "relative", "changed", "largest")]
    rows: list[tuple[Cell, ...]] = [
        (
            changes.tensor_name(one, language),
            one.relative.value if one.relative else None,
            one.changed.value if one.changed else None,
            one.largest,
        )
        for one in changes.top_changes(document.tensors)[:_ROWS]
    ]
    if rows:
        lines += ["", f"## {say('largest')}", "", *table(columns, rows, language)]
    rest = changes.not_compared(document, language)
    if rest:
        lines += ["", f"## {say('missing')}", ""]
        lines += [f"- {escaped(name)}: {escaped(why)}" for name, why in rest[:_ROWS]]
    for block in beyond_blocks(document, language):
        lines += ["", *block]
    command = printable(document.made.command, 5000).replace("`", "'")
    lines += ["", f"    {command}", "", escaped(document.made.versions), ""]
    return "\n".join(lines)
