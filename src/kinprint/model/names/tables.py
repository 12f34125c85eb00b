"""The tables of names, read once: which words, zones, towers and endings mean what.

They are TOML so that a new architecture is a line of data; they are read when the first model is
looked at, not at import.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Set
from functools import cache
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from kinprint.model.architectures import with_added
from kinprint.model.geometry import text_parts
from kinprint.records import Role
from kinprint.tables import read_table
from kinprint.workers import Once

GGUF = "gguf"
_ARCHITECTURE = r"(For[A-Z]\w*|LMHead(Model)?|Model|Decoder|Encoder|WithLMHead\w*)$"


class Word(Struct, frozen=True):
    """What a word says: a role and, where the role alone says too little, a detail."""

    role: Role
    detail: str | None = None


class Ending(Struct, frozen=True):
    """What the end of a name says: a bias, a companion such as a scale, or the weight itself.

    `role` is None for the weight itself, whose role is that of the name before.
    """

    role: Role | None = None
    detail: str | None = None


PACKED = Ending(detail="packed")
"""A weight whose numbers are packed several to a word."""


class Condition(Struct, frozen=True):
    """Words that change their meaning in the company of others.

    `has` are parts the block must have; `ended` says whether a final norm must follow the
    stack or must not, which tells blocks that normalise first from those that do so last.
    """

    has: tuple[str, ...]
    ended: bool | None
    then: Mapping[str, Word]


class Family(Struct, frozen=True):
    """What one naming family calls differently from all others."""

    name: str
    words: Mapping[str, Word] = field(default_factory=dict)
    top: Mapping[str, Word] = field(default_factory=dict)
    starts: Mapping[str, Word] = field(default_factory=dict)
    towers: Mapping[str, str] = field(default_factory=dict)
    marks: tuple[frozenset[str], ...] = ()
    halves: frozenset[str] = frozenset()
    stacks: tuple[str, ...] = ()

    def is_marked_by(self, parts: Set[str]) -> bool:
        """Say whether one of the family's sets of marks is among a model's parts."""
        return any(marks <= parts for marks in self.marks)


class Tables(Struct, frozen=True):
    """All tables, turned from lists by meaning into look-ups by word."""

    containers: frozenset[str]
    containers_named: frozenset[str]
    containers_inner: frozenset[str]
    stacks: tuple[str, ...]
    wrapping: frozenset[str]
    state_space_marks: frozenset[str]
    halves: Mapping[str, int]
    zones: Mapping[str, str]
    zone_words: Mapping[str, Mapping[str, Word]]
    inside: tuple[tuple[str, Word], ...]
    block: Mapping[str, Word]
    top: Mapping[str, Word]
    towers: Mapping[str, str]
    tower_parts: tuple[tuple[str, str], ...]
    towers_with_roles: frozenset[str]
    suffixes: Mapping[str, Ending]
    endings: tuple[tuple[str, Ending], ...]
    conditions: tuple[Condition, ...]
    families: Mapping[str, Family]
    models: Mapping[str, str]
    architectures: Mapping[str, Family]

    def family_of(self, config: Mapping[str, Any], gguf: str | None) -> Family | None:
        """The family that a configuration, or a GGUF file's architecture, names."""
        if gguf is not None:
            return self.architectures.get(gguf, self.families[GGUF])
        for name in _declared(config):
            family = self.models.get(name)
            if family is not None:
                return self.families[family]
        return None

    def family_with(self, parts: frozenset[str]) -> Family:
        """The first family whose marks are all among the parts of a model's blocks."""
        for family in self.families.values():
            if family.is_marked_by(parts):
                return family
        return Family("unknown")


@Once
def load_tables() -> Tables:
    """Read the tables; the result is kept, because every model needs all of them."""
    generic = _read("generic.toml")
    plain = with_added(_read("families.toml"), "names")
    gguf = _read("gguf.toml")
    families = {name: _family(name, table) for name, table in plain.items()}
    base = _family(GGUF, gguf["gguf"])
    families[GGUF] = base
    return Tables(
        containers=frozenset(generic["containers"]),
        containers_named=frozenset(generic["containers_named"]),
        containers_inner=frozenset(generic["containers_inner"]),
        stacks=tuple(generic["stacks"]),
        wrapping=frozenset(generic["wrapping"]),
        state_space_marks=frozenset(generic["state_space_marks"]),
        halves={name: half for half, names in enumerate(generic["halves"]) for name in names},
        zones=_turned(generic["zones"]),
        zone_words={
            zone: _words_by_role(generic[zone]) for zone in ("attention", "mixer", "ffn", "router")
        },
        inside=tuple(_words_by_role(generic["inside"]).items()),
        block=_words_by_role(generic["block"]),
        top=_words_by_role(generic["top"]),
        towers=_turned({k: v for k, v in generic["towers"].items() if k != "contains"}),
        tower_parts=tuple(_turned(generic["towers"]["contains"]).items()),
        towers_with_roles=frozenset(generic["towers_with_roles"]["names"]),
        suffixes=_endings(generic["suffixes"]),
        endings=tuple(sorted(_endings(generic["endings"]).items(), key=lambda pair: -len(pair[0]))),
        conditions=tuple(
            Condition(tuple(entry["has"]), entry.get("ended"), _words(entry["then"]))
            for entry in generic["when"]
        ),
        families=families,
        models={model: name for name, table in plain.items() for model in table.get("models", ())},
        architectures={
            name: Family(
                GGUF,
                {**base.words, **_words(table.get("words", {}))},
                {**base.top, **_words(table.get("top", {}))},
                base.starts,
                base.towers,
                stacks=base.stacks,
            )
            for name, table in gguf["arch"].items()
        },
    )


def _declared(config: Mapping[str, Any]) -> Iterable[str]:
    """Spellings of a model's kind in its configuration, the outermost first."""
    for source in text_parts(config):
        if isinstance(kind := source.get("model_type"), str):
            yield kind.lower()
            yield kind.lower().removesuffix("_text")
        named = source.get("architectures")
        for name in named if isinstance(named, list | tuple) else ():
            if isinstance(name, str):
                yield re.sub(_ARCHITECTURE, "", name).lower()


def _read(name: str) -> dict[str, Any]:
    return read_table(Path(__file__).with_name(name))


def _family(name: str, table: Mapping[str, Any]) -> Family:
    return Family(
        name,
        _words(table.get("words", {})),
        _words(table.get("top", {})),
        _words(table.get("starts", {})),
        table.get("towers", {}),
        _marks(table.get("marks", [])),
        frozenset(table.get("halves", ())),
        tuple(table.get("stacks", ())),
    )


def _marks(listed: list[Any]) -> tuple[frozenset[str], ...]:
    """One set of marks, or several."""
    several = [entry for entry in listed if isinstance(entry, list)]
    return tuple(frozenset(entry) for entry in (several or [listed]) if entry)


@cache
def _word(text: str) -> Word:
    role, _, detail = text.partition(":")
    return Word(Role(role), detail or None)


def _words(table: Mapping[str, str]) -> dict[str, Word]:
    return {name: _word(text) for name, text in table.items()}


def _words_by_role(table: Mapping[str, list[str]]) -> dict[str, Word]:
    return {name: word for text, names in table.items() for word in [_word(text)] for name in names}


def _endings(table: Mapping[str, list[str]]) -> dict[str, Ending]:
    found: dict[str, Ending] = {}
    for text, names in table.items():
        role, _, detail = text.partition(":")
        ending = Ending(None if role == "weight" else Role(role), detail or None)
        found.update(dict.fromkeys(names, ending))
    return found


def _turned(table: Mapping[str, list[str]]) -> dict[str, str]:
    return {name: key for key, names in table.items() for name in names}
