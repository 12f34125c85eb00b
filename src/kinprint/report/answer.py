"""The answer as a document has it, in any language: the headline, five statements, its limits.

The sentences were put down when the document was made (`statements.py`); nothing is computed here.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from msgspec import Struct

from kinprint import text
from kinprint.records import TAKEN_OVER, Relation
from kinprint.report.relations import SIGNS
from kinprint.report.schema import (
    ComparisonDocument,
    FailedPair,
    MatrixDocument,
    PairPart,
    Unread,
    VerdictPart,
)
from kinprint.report.translation import Translatable, translated
from kinprint.titles import public_name

STATEMENTS = ("link", "what", "kind", "amount", "coverage")
"""The five statements, in the order in which they are read."""


class Statement(Struct, frozen=True):
    """One of the five statements: which it is, its heading, and what it says."""

    name: str
    title: str
    says: str


def summary(document: Translatable, part: VerdictPart | PairPart, language: str) -> str:
    """The headline."""
    return translated(document, part.summary, language)


def statements(
    document: ComparisonDocument | MatrixDocument, part: VerdictPart | PairPart, language: str
) -> list[Statement]:
    """The five statements; none for a pair of a matrix that has none."""
    said = part.statements
    if said is None:
        return []
    return [
        Statement(
            name,
            text.say(f"verdict.statement.{name}", language),
            translated(document, getattr(said, name), language),
        )
        for name in STATEMENTS
        if getattr(said, name)
    ]


def not_shown(relations: Iterable[Relation], language: str) -> list[str]:
    """What these relations do not show, each limit once."""
    keys = dict.fromkeys(key for one in relations for key in SIGNS[one].does_not_show)
    return [text.say(f"verdict.limit.{key}", language) for key in keys]


def ways_to_be_wrong(part: VerdictPart, language: str) -> list[str]:
    """What could make the relation false although every number is right."""
    doubts = SIGNS[part.relation].could_be_wrong
    return [text.say(f"verdict.wrong.{key}", language) for key in doubts]


def part_name(part: str, language: str) -> str:
    """What a part of a model is called; other words stay as they are."""
    key = f"verdict.part.{part}"
    return text.say(key, language) if text.knows(key) else part


def part_names(parts: Iterable[str], language: str) -> str:
    """Parts of a model in a row."""
    return ", ".join(part_name(part, language) for part in parts)


def error(document: Translatable, lost: Unread | FailedPair, language: str) -> str:
    """Why a model could not be read or a pair not be compared, as a document has it."""
    return translated(document, lost.error, language)


def diff_command(document: ComparisonDocument) -> str | None:
    """The command that says what changed; None where nothing says that weights were taken over, or
    that any changed."""
    relation = document.verdict.relation
    if relation not in TAKEN_OVER or relation is Relation.IDENTICAL:
        return None
    titles = {one.given: one.title for one in document.models}
    names = [public_name(one, titles.get(one, "")) for one in (document.a, document.b)]
    base = [] if document.asked.base is None else ["--base", public_name(document.asked.base)]
    guard = ["--"] if any(name.startswith("-") for name in names) else []
    return shlex.join(["kinprint", "diff", *base, *guard, *names])
