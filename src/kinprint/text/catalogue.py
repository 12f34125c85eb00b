"""The catalogues: gettext files, one a language, found by looking into the folder.

Installed packages hold compiled catalogues (`.mo`) alone. In a checkout the sources (`.po`) lie
beside them, and a catalogue that is older than its source is compiled when it is first asked for.
"""

from __future__ import annotations

import functools
import string
from bisect import bisect_left
from collections.abc import Callable, Iterator
from gettext import GNUTranslations
from io import BytesIO
from pathlib import Path
from struct import pack, unpack_from

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
    catalogue, forms = _speaking(key, language)
    if len(forms) == 1:
        return forms[0]
    at = catalogue.plural(1 if count is None else count)
    return forms[at if at < len(forms) else 0]


def plural_form(key: str, language: str, count: int) -> int:
    """Which form of a word goes with a number, by the rule of the language that says a key."""
    return _speaking(key, language)[0].plural(count)


@functools.cache
def _speaking(key: str, language: str) -> tuple[_Catalogue, tuple[str, ...]]:
    """The catalogue of a language, or the English one, whichever has a sentence; its forms."""
    for code in (language, FIRST):
        if code in languages() and (forms := _catalogue(code).forms(key)):
            return _catalogue(code), forms
    raise KeyError(f"no catalogue has the key {key!r}")


def knows(key: str, language: str = FIRST) -> bool:
    """Whether a language has a sentence of its own for a key."""
    return bool(_catalogue(language).forms(key))


def known_keys(language: str = FIRST) -> Iterator[str]:
    """All keys that a language has a sentence for."""
    return filter(None, _catalogue(language).keys())


def field_names(key: str, language: str = FIRST) -> frozenset[str]:
    """Names of the fields that a sentence speaks of."""
    parsed = string.Formatter().parse(template(key, language))
    return frozenset(name for _, name, _, _ in parsed if name)


class _Catalogue:
    """A compiled catalogue, whose sentences are decoded when they are asked for.

    gettext decodes thousands at once, of which a command says a few. Keys lie in order in such a
    file, the empty one of its header first, and a key of several forms goes on behind a zero byte.
    """

    def __init__(self, raw: bytes) -> None:
        order = "<" if unpack_from("<I", raw)[0] == GNUTranslations.LE_MAGIC else ">"
        self._raw, self._order, self._place = raw, order, f"{order}2I"
        self._count, self._keys, self._texts = unpack_from(f"{order}3I", raw, 8)

    @functools.cached_property
    def plural(self) -> Callable[[int], int]:
        """Which form goes with a number, read from the header when it is first asked for."""
        header = self._raw[:8] + pack(f"{self._order}I", 1) + self._raw[12:]
        found: Callable[[int], int] = GNUTranslations(BytesIO(header)).plural  # type: ignore[attr-defined]
        return found

    def forms(self, key: str) -> tuple[str, ...]:
        """What is said for a key, one text for each form of a plural; empty if it is unknown."""
        wanted = key.encode()
        at = bisect_left(range(self._count), wanted, key=self._key)
        if at == self._count or self._key(at) != wanted:
            return ()
        return tuple(self._entry(self._texts, at).decode().split("\0"))

    def keys(self) -> Iterator[str]:
        """All keys, in order."""
        return (self._key(at).decode() for at in range(self._count))

    def _key(self, at: int) -> bytes:
        return self._entry(self._keys, at).partition(b"\0")[0]

    def _entry(self, table: int, at: int) -> bytes:
        length, start = unpack_from(self._place, self._raw, table + 8 * at)
        return self._raw[start : start + length]


@functools.cache
def _catalogue(language: str) -> _Catalogue:
    source, compiled = (FOLDER / f"{language}{ending}" for ending in (".po", ".mo"))
    if source.exists() and (
        not compiled.exists() or compiled.stat().st_mtime_ns < source.stat().st_mtime_ns
    ):
        from kinprint.text.compiling import compile_catalogue

        compile_catalogue(source, compiled)
    return _Catalogue(compiled.read_bytes())
