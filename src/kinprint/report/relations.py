"""Relations as people see them: one table for all views, the most telling relation first.

Marks are letters for places with little room. Colours never stand alone: those of a terminal are
ones that every terminal has, those of a notebook read on dark and on light.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from kinprint import text
from kinprint.records import Relation


class Sign(Struct, frozen=True):
    """What views know about a relation.

    Attributes
    ----------
    mark : one letter.
    terminal, notebook : its colour there.
    shares_training : whether the two models are said to share trained weights, all or some; of a
        disguised copy that is only very likely.
    does_not_show, could_be_wrong : keys of what to say about its limits.
    """

    mark: str
    terminal: str
    notebook: str
    shares_training: bool
    does_not_show: tuple[str, ...]
    could_be_wrong: tuple[str, ...] = ()


_LINKED = ("direction", "intent", "unread")
_DOUBTS = ("doctored", "indexwise", "structure")

SIGNS: Mapping[Relation, Sign] = {
    Relation.IDENTICAL: Sign(
        "=", "magenta", "#8e5cc0", True, ("direction", "intent")
    ),
    Relation.SAME_WEIGHTS: Sign(
        "W", "magenta", "#8e5cc0", True, _LINKED
    ),
    Relation.DERIVED: Sign(
        "D", "blue", "#1f7fc4", True, _LINKED,
        ("doctored", "indexwise", "undertrained", "structure"),
    ),
    Relation.PARTIAL: Sign("P", "cyan", "#c0558f", True, _LINKED, _DOUBTS),
    Relation.LAUNDERED: Sign("L", "red", "#c23b3b", False, _LINKED, _DOUBTS),
    Relation.SAME_INIT: Sign(
        "S", "yellow", "#a98600", False,
        ("direction", "distillation", "unread"), _DOUBTS,
    ),
    Relation.DEPENDENT: Sign("?", "yellow", "#d9691e", False, _LINKED, _DOUBTS),
    Relation.NO_EVIDENCE: Sign(
        "·", "default", "#7d8793", False,
        ("distillation", "laundering", "unread"),
    ),
    Relation.UNTESTABLE: Sign("x", "yellow", "#7d8793", False, ("unread",)),
}  # fmt: skip

RANK: Mapping[Relation, int] = {relation: at for at, relation in enumerate(SIGNS)}
"""Places of relations in a list, the most telling first."""


def words_for(relation: Relation) -> text.Words:
    """What a relation is called, in a few words."""
    return text.words(f"report.relation.{relation}")
