"""Architectures that other packages add: their words and how they store tensors, as data.

A package writes what it would add to our tables, in the same form, into one TOML text:

    [names.acme]                      # as in names/families.toml
    models = ["acme"]
    words = { "attn.mix" = "qkv" }

    [layout]                          # as in layout/layouts.toml: lists of families, and rules
    experts_in_out = ["acme"]

    [[layout.split]]
    role = "qkv"
    families = ["acme"]
    parts = ["q", "k", "v"]
    repeat = 1

    [symmetries]                      # as under [facts] in symmetries.toml
    half = ["acme"]

An entry point of the group `kinprint.architectures` names the `Architecture` made of it. It speaks
of its own models alone: what kinprint knows of others cannot be changed from outside.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from msgspec import Struct

from kinprint.extensions import ARCHITECTURES, usable
from kinprint.records import Role
from kinprint.tables import read_table
from kinprint.text import Message, message

_SECTIONS = ("names", "layout", "symmetries")


class Architecture(Struct, frozen=True):
    """Tables of one or several related models that are not ours."""

    name: str
    names: Mapping[str, Mapping[str, Any]]
    layout: Mapping[str, Any]
    symmetries: Mapping[str, list[str]]

    @classmethod
    def from_toml(cls, name: str, text: str) -> Architecture:
        """Read and check the tables of an architecture.

        Parameters
        ----------
        name : what it is called in lists of extensions.
        text : the TOML described above.

        Raises
        ------
        ValueError : the text is no TOML, or speaks of roles that there are not or of models that it
            does not name.
        """
        import tomllib

        content = tomllib.loads(text)
        if unknown := set(content) - set(_SECTIONS):
            raise ValueError(f"there are tables {_SECTIONS}, and not {sorted(unknown)}")
        names, layout, symmetries = (content.get(section, {}) for section in _SECTIONS)
        if any("marks" in table for table in names.values()):
            raise ValueError("a family is recognised by its configuration, not by 'marks'")
        for table in names.values():
            for words in (table.get(part, {}) for part in ("words", "top", "starts")):
                for said in words.values():
                    Role(said.partition(":")[0])  # raises for a word that is no role
        known = {model for table in names.values() for model in table.get("models", ())}
        for key, value in (*layout.items(), *symmetries.items()):
            for strange in set(_families(key, value)) - known:
                raise ValueError(f"'{key}' speaks of '{strange}', which is none of its models")
        return cls(name, names, layout, symmetries)

    @property
    def models(self) -> frozenset[str]:
        """Values of `model_type` that it is for."""
        return frozenset(one for table in self.names.values() for one in table.get("models", ()))


def _families(key: str, value: object) -> Iterable[str]:
    """The families that an entry of a table speaks of."""
    if isinstance(value, Mapping):
        return value
    if not isinstance(value, list):
        raise ValueError(f"'{key}' is no list of families")
    rules = [rule for rule in value if isinstance(rule, Mapping)]
    if any(not rule.get("families") for rule in rules):
        raise ValueError(f"a rule under '{key}' does not say for which families it is")
    return [family for rule in rules for family in rule["families"]] if rules else value


@cache
def added_architectures() -> tuple[dict[str, Architecture], tuple[Message, ...]]:
    """Architectures of other packages, and what is wrong with those that cannot be used."""
    found, faults = usable(ARCHITECTURES, Architecture)
    ours = _known_words() if found else frozenset()
    for name, one in tuple(found.items()):
        if taken := (one.models | set(one.names)) & ours:
            fault = message("note.extension.known-model", name=name, model=min(taken))
            del found[name]
            faults = (*faults, fault)
    return found, faults


def _known_words() -> frozenset[str]:
    """Every word in the lists of our tables, families among them."""
    tables = ("names/families.toml", "layout/layouts.toml", "symmetries.toml")
    folder = Path(__file__).parent
    return frozenset(word for file in tables for word in _words(read_table(folder / file)))


def _words(value: object) -> Iterator[str]:
    match value:
        case str():
            yield value
        case Mapping():
            yield from map(str, value)
            yield from (word for inner in value.values() for word in _words(inner))
        case list():
            yield from (word for inner in value for word in _words(inner))


def with_added(own: Mapping[str, Any], section: str) -> dict[str, Any]:
    """One of our tables with what packages add to it; their rules come before ours.

    Theirs name the families that they are for, which ours that fit any family would hide.
    """
    table = dict(own)
    for one in added_architectures()[0].values():
        added: Mapping[str, Any] = getattr(one, section)
        for key, value in added.items():
            if isinstance(value, Mapping):
                table[key] = {**value, **table.get(key, {})}
            else:
                table[key] = [*value, *table.get(key, [])]
    return table
