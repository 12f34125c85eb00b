"""Results without a page of their own as a notebook shows them: a title, sentences, a table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from markupsafe import Markup, escape

from kinprint import text
from kinprint.errors import printable
from kinprint.report.numbers import cell_words
from kinprint.studies.results import Table

_ROWS = 20


def fragment(title: str, sentences: Iterable[str], table: Table | None, language: str) -> str:
    """HTML that can stand anywhere in a page; all text is escaped."""
    parts = [Markup("<p><strong>{}</strong></p>").format(_shown(title))]
    parts += [Markup("<p>{}</p>").format(_shown(one)) for one in sentences]
    if table is not None:
        parts.append(_table(table, language))
        more = len(table.rows) - _ROWS
        if more > 0:
            said = text.say("report.more-rows", language, count=more)
            parts.append(Markup("<p>{}</p>").format(said))
    inside = Markup("").join(parts)
    return str(Markup('<div class="kinprint-result" lang="{}">{}</div>').format(language, inside))


def tree(title: str, branches: Iterable[tuple[str, Sequence[str]]], language: str) -> str:
    """A foldable tree: one branch a name, one leaf a line."""
    parts = []
    for name, leaves in branches:
        items = Markup("").join(
            Markup("<li><code>{}</code></li>").format(_shown(one)) for one in leaves
        )
        parts.append(
            Markup("<details><summary>{} ({})</summary><ul>{}</ul></details>").format(
                _shown(name), len(leaves), items
            )
        )
    return str(
        Markup('<div class="kinprint-result" lang="{}"><p><strong>{}</strong></p>{}</div>').format(
            language, _shown(title), Markup("").join(parts)
        )
    )


def _table(table: Table, language: str) -> Markup:
    head = Markup("").join(Markup("<th>{}</th>").format(_shown(name)) for name in table.columns)
    rows = Markup("").join(
        Markup("<tr>{}</tr>").format(
            Markup("").join(
                Markup("<td>{}</td>").format(_shown(cell_words(one, language))) for one in row
            )
        )
        for row in table.rows[:_ROWS]
    )
    return Markup("<table><thead><tr>{}</tr></thead><tbody>{}</tbody></table>").format(head, rows)


def _shown(given: str) -> Markup:
    return escape(printable(given, 2000))
