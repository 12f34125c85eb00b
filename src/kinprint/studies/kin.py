"""Which of the models of a study are known, or believed, to be related.

An average over models that share nothing must not contain those that do. What is known is a
table; nothing here is decided from weights.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from msgspec import Struct

from kinprint import text
from kinprint.studies.study import StudyInput
from kinprint.tables import read_table
from kinprint.text import Words


class Kin(Struct, frozen=True):
    """Two families of names, and whether the card of one says that it comes from the other."""

    key: str
    names: tuple[str, str]
    declared: bool

    def joins(self, first: str, second: str) -> bool:
        """Whether two models of these names are such a pair."""
        one, other = self.names
        return _begins(first, one, second, other) or _begins(first, other, second, one)


def _begins(first: str, one: str, second: str, other: str) -> bool:
    return first.startswith(one) and second.startswith(other)


@cache
def _table() -> tuple[Kin, ...]:
    table = read_table(Path(__file__).with_name("kin.toml"))
    return tuple(
        Kin(entry["key"], tuple(entry["names"]), entry["declared"]) for entry in table["kin"]
    )


def kin_of(inputs: StudyInput, a: int, b: int) -> Kin | None:
    """What is said of the kinship of two of the models; None where nothing is."""
    first, second = (inputs.models[at].name.rstrip("/").rpartition("/")[2] for at in (a, b))
    return next((kin for kin in _table() if kin.joins(first, second)), None)


def kin_words(inputs: StudyInput) -> tuple[Words, ...]:
    """A sentence on each pair of the models that is likely kin, with who says so."""
    found = []
    for a in range(len(inputs.models)):
        for b in range(a + 1, len(inputs.models)):
            kin = kin_of(inputs, a, b)
            if kin is not None:
                names = {"a": inputs.names[a], "b": inputs.names[b]}
                found.append(text.words(f"study.kin.{kin.key}", **names))
    return tuple(found)
