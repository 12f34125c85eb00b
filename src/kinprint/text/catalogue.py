"""The catalogues: gettext files, one a language, found by looking into the folder.

Installed packages hold compiled catalogues (`.mo`) alone. In a checkout the sources (`.po`) lie
beside them, and a catalogue that is older than its source is compiled when it is first asked for.
"""

from __future__ import annotations

import functools
import string
from collections.abc import Iterator
from gettext import GNUTranslations
from pathlib import Path

FOLDER = Path(__file__).with_name("catalogues")
FIRST = "en"
"""The language that every sentence has, and that is spoken where nobody asks for another."""


@functools.cache
def languages() -> tuple[str, ...]:
    """Codes of all languages there is a catalogue for, English first."""
    found = {file.stem for file in FOLDER.iterdir() if file.suffix in (".po", ".mo")}
    return FIRST, *sorted(found - {FIRST})


def template(key: str, language: str, count: int | None = None) -> str:
    """A sentence with its fields in braces; in English where a language does not have it."""
    catalogue = _speaking(key, language)
    said = key if count is None else catalogue.ngettext(key, key, count)
    return catalogue.gettext(key) if said == key else said


def plural_form(key: str, language: str, count: int) -> int:
    """Which form of a word goes with a number, by the rule of the language that says a key."""
    return int(_speaking(key, language).plural(count))  # type: ignore[attr-defined]


def _speaking(key: str, language: str) -> GNUTranslations:
    """The catalogue of a language, or the English one, whichever has a sentence first."""
    for code in (language, FIRST):
        if code in languages() and _catalogue(code).gettext(key) != key:
            return _catalogue(code)
    raise KeyError(f"no catalogue has the key {key!r}")


def knows(key: str, language: str = FIRST) -> bool:
    """Whether a language has a sentence of its own for a key."""
    return _catalogue(language).gettext(key) != key


def known_keys(language: str = FIRST) -> Iterator[str]:
    """All keys that a language has a sentence for."""
    known = _catalogue(language)._catalog  # type: ignore[attr-defined]
    for key in dict.fromkeys(key[0] if isinstance(key, tuple) else key for key in known):
        if key:
            yield key


def field_names(key: str, language: str = FIRST) -> frozenset[str]:
    """Names of the fields that a sentence speaks of."""
    parsed = string.Formatter().parse(template(key, language))
    return frozenset(name for _, name, _, _ in parsed if name)


@functools.cache
def _catalogue(language: str) -> GNUTranslations:
    source, compiled = (FOLDER / f"{language}{ending}" for ending in (".po", ".mo"))
    if source.exists() and (
        not compiled.exists() or compiled.stat().st_mtime_ns < source.stat().st_mtime_ns
    ):
        from kinprint.text.compiling import compile_catalogue

        compile_catalogue(source, compiled)
    with compiled.open("rb") as file:
        return GNUTranslations(file)
