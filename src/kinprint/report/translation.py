"""English texts of a document in other languages.

Reasons, notes and labels stand in documents in English, which older readers expect. What they
read in other languages travels beside them in `translations`; of documents that were made before
there was such a field, sentences of the catalogues are found by their English.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from string import Formatter
from typing import Protocol

from msgspec import UNSET, UnsetType

from kinprint import text
from kinprint.report.schema.common import Translations
from kinprint.text.catalogue import FIRST, template

_REASONS, _NOTES = "reason.", "note."


class Translatable(Protocol):
    """A document that may carry translations."""

    @property
    def translations(self) -> Translations | UnsetType:
        """By language, what English texts read in it."""


class Labelled(Translatable, Protocol):
    """A document whose models may say that they are not what they are called."""

    @property
    def labels(self) -> Sequence[str]:
        """What they say, each after the name of its model."""


class Translator:
    """Puts messages down in English, and keeps what they are in other languages."""

    def __init__(self) -> None:
        self._kept: Translations = {}

    def said(self, given: text.Message | str | None) -> str:
        """The English of a message; what is no message reads alike in every language."""
        match given:
            case text.Message():
                words = given.words()
            case text.Sentence():
                words = given.words
            case _:
                return given or ""
        english = str(words)
        self.keep(english, words)
        return english

    def keep(self, english: str, words: Mapping[str, str]) -> None:
        """Keep what an English text is in other languages."""
        for language, said in words.items():
            if language != FIRST and said != english:
                self._kept.setdefault(language, {})[english] = said

    def words(self, given: text.Words) -> str:
        """The English of a text that is known in all languages."""
        self.keep(str(given), given)
        return str(given)

    def kept_in_all(self, say: Callable[[str], str]) -> str:
        """The English of what can be said in any language."""
        return self.words(text.Words({one: say(one) for one in text.languages()}))

    def all_said(self, given: Iterable[text.Message]) -> list[str]:
        """Several messages in English."""
        return [self.said(one) for one in given]

    @property
    def kept(self) -> Translations | UnsetType:
        """What the document carries; nothing where there is nothing to say."""
        return {language: dict(texts) for language, texts in self._kept.items()} or UNSET


def translated(document: Translatable, english: str, language: str) -> str:
    """An English text of a document in a language; as it is where nobody knows better."""
    if language == FIRST:
        return english
    carried = document.translations
    if carried is not UNSET and english in carried.get(language, {}):
        return carried[language][english]
    return _known_in(english, language)


def warning(document: Labelled, language: str) -> str:
    """What models say they are not, without their names: a picture travels alone, so it goes
    with it."""
    said = (translated(document, label, language) for label in document.labels)
    return "; ".join(dict.fromkeys(one.partition(": ")[2] or one for one in said))


def _known_in(english: str, language: str) -> str:
    """A sentence of the catalogues, alone or after the name of a model, in a language."""
    name, colon, inner = english.partition(": ")
    alone = _sentence_in(english, language)
    if alone is not None:
        return alone
    after = _sentence_in(inner, language)
    return english if after is None else f"{name}{colon}{after}"


def _sentence_in(english: str, language: str) -> str | None:
    """What a sentence of the catalogues is in another language; None where it is none of them."""
    for key, pattern in _sentences():
        found = pattern.fullmatch(english)
        if found is not None:
            return text.say(key, language, **found.groupdict())
    return None


@functools.cache
def _sentences() -> tuple[tuple[str, re.Pattern[str]], ...]:
    """Sentences that documents hold, each with what its English looks like, plain ones first.

    Notes with fields are left out: with little text of their own they could be anything.
    """
    keys = [
        key
        for key in text.known_keys()
        if key.startswith(_REASONS) or (key.startswith(_NOTES) and not text.field_names(key))
    ]
    found = []
    for key in sorted(keys, key=lambda key: len(text.field_names(key))):
        parts = list(Formatter().parse(template(key, FIRST)))
        if any(literal.strip() for literal, _, _, _ in parts):
            pattern = "".join(
                re.escape(literal) + (_shown(field, form or "") if field else "")
                for literal, field, form, _ in parts
            )
            found.append((key, re.compile(pattern, re.DOTALL)))
    return tuple(found)


def _shown(field: str, form: str) -> str:
    """What a field looks like: anything, or one of the words that go with a number."""
    if "|" in form:
        return f"(?:{'|'.join(map(re.escape, form.split('|')))})"
    return f"(?P<{field}>.+)"
