"""What two models share beyond a base, as Markdown."""

from __future__ import annotations

from collections.abc import Iterator

from kinprint import text
from kinprint.report.beyond import beyond_table
from kinprint.report.schema import ComparisonDocument, DiffDocument
from kinprint.report.translation import translated
from kinprint.report.views.markdown.escape import escaped, table


def beyond_blocks(
    document: ComparisonDocument | DiffDocument, language: str
) -> Iterator[list[str]]:
    """A heading, a sentence and a line a component; nothing where no base was given."""
    part = document.beyond
    if part is None:
        return
    title = text.say("report.beyond.title", language, base=part.title)
    yield [f"## {escaped(title)}"]
    yield [escaped(translated(document, part.summary, language))]
    if rows := beyond_table(part, language):
        columns = (
            "report.beyond.column.component",
            "report.beyond.column.states",
            "report.beyond.column.cosine",
        )
        yield table([text.say(key, language) for key in columns], rows, language)
        yield [text.say("report.beyond.calibrated", language)]
