"""A thing to say: its key and its fields, said in one language, in pieces, or in all of them."""

from __future__ import annotations

import string
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, Self

from kinprint.text.catalogue import FIRST, languages, plural_form, template

_FORMATTER = string.Formatter()
_BEYOND = 1000  # times: of larger shares that alone is said


class Words(Mapping[str, str]):
    """The same text in every language, as data: `words["ko"]`.

    It travels with numbers into files, so that a page can be drawn again in any language.
    """

    __slots__ = ("_texts",)

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = dict(texts)

    def __getitem__(self, language: str) -> str:
        return self._texts[language if language in self._texts else FIRST]

    def __contains__(self, language: object) -> bool:
        return language in self._texts

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)

    def __hash__(self) -> int:
        return hash(tuple(self._texts.items()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Words) and self._texts == other._texts

    def __repr__(self) -> str:
        return f"Words({self._texts!r})"

    def __str__(self) -> str:
        return self[FIRST]


class Sentence(str):
    """English text that knows what it is in other languages.

    For tables, whose cells are plain text to whoever computes with them.
    """

    __slots__ = ("words",)
    words: Words

    def __new__(cls, words: Words) -> Self:
        """The English of the words, which stay beside it."""
        found = super().__new__(cls, words[FIRST])
        found.words = words
        return found

    def __reduce__(self) -> tuple[type[Self], tuple[Words]]:
        return type(self), (self.words,)


class Span(NamedTuple):
    """A piece of a sentence: text of the catalogue, or what was filled in for `field`."""

    text: str
    field: str = ""


class Message:
    """A sentence that is not said yet: whoever shows it chooses the language."""

    __slots__ = ("fields", "key")

    def __init__(self, key: str, fields: Mapping[str, object]) -> None:
        self.key = key
        self.fields = dict(fields)

    def say(self, language: str = FIRST) -> str:
        """The sentence in a language."""
        return "".join(span.text for span in self.spans(language))

    def spans(self, language: str = FIRST) -> tuple[Span, ...]:
        """The sentence in pieces, so that a view can set off what was filled in."""
        count = self.fields.get("count")
        found: list[Span] = []
        text = template(self.key, language, count if isinstance(count, int) else None)
        for literal, field, form, conversion in _FORMATTER.parse(text):
            if literal:
                found.append(Span(literal))
            if field is not None and "|" in (form or ""):
                number = _FORMATTER.get_field(field, (), self.fields)[0]
                found.append(Span(_chosen(form or "", self.key, language, number)))
            elif field is not None:
                value = _said(_FORMATTER.get_field(field, (), self.fields)[0], language)
                shown = _shown(_FORMATTER.convert_field(value, conversion), form or "")
                found.append(Span(shown, field))
        return tuple(found)

    def words(self) -> Words:
        """The sentence in all languages."""
        return Words({language: self.say(language) for language in languages()})

    def __str__(self) -> str:
        return self.say()

    def __repr__(self) -> str:
        return f"Message({self.key!r}, {self.fields!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Message) and (self.key, self.fields) == (other.key, other.fields)

    def __hash__(self) -> int:
        return hash(self.key)  # fields may be of any kind, and few messages differ by them alone


def message(key: str, /, **fields: object) -> Message:
    """A sentence to be said later."""
    return Message(key, fields)


def say(key: str, language: str, /, **fields: object) -> str:
    """A sentence in a language."""
    return Message(key, fields).say(language)


def spans(key: str, language: str, /, **fields: object) -> tuple[Span, ...]:
    """A sentence in a language, in pieces."""
    return Message(key, fields).spans(language)


def words(key: str, /, **fields: object) -> Words:
    """A sentence in all languages."""
    return Message(key, fields).words()


def plain(name: object) -> Words:
    """A name or a number, which is the same in every language."""
    return Words(dict.fromkeys(languages(), str(name)))


def joined(parts: Iterable[Words], between: str = " ") -> Words:
    """Texts one after another, in every language."""
    given = list(parts)
    return Words(
        {language: between.join(part[language] for part in given) for language in languages()}
    )


def sentence(key: str, /, **fields: object) -> Sentence:
    """A sentence for a cell of a table."""
    return Sentence(words(key, **fields))


def joined_sentences(parts: Iterable[str], between: str = "; ") -> Sentence:
    """Texts of cells one after another, each said once."""
    given = dict.fromkeys(parts)
    return Sentence(
        joined((one.words if isinstance(one, Sentence) else plain(one) for one in given), between)
    )


def _chosen(forms: str, key: str, language: str, number: object) -> str:
    """The one of some forms that goes with a number: `{tensors:tensor|tensors}`.

    A sentence may count several things, and gettext lets one number decide; so its rule is asked
    for each of them.
    """
    several = forms.split("|")
    count = number if isinstance(number, int) else 1 if str(number) == "1" else 2
    return several[min(plural_form(key, language, count), len(several) - 1)]


def in_percent(share: float, decimals: int = 0) -> str:
    """A share in per cent; 0 and 100 are said of nothing and of all alone, and no digits of what is
    beyond all measure."""
    if share in (0, 1):
        return f"{100 * share:.0f} %"
    if share > _BEYOND:
        return f"> {100 * _BEYOND:,} %"
    step, shown = 10.0**-decimals, f"{100 * share:z.{decimals}f}"
    if 0 < share < 1 and float(shown) == 0:
        return f"< {step:.{decimals}f} %"
    if 0 < share < 1 and float(shown) == 100:
        return f"> {100 - step:.{decimals}f} %"
    return f"{shown} %"


def _shown(value: object, form: str) -> str:
    """A value in the form that a sentence asks for: `.1%` is per cent with one decimal."""
    if form.endswith("%") and isinstance(value, (int, float)):
        return in_percent(value, int(form[1:-1] or 0))
    return format(value, form)


def _said(value: object, language: str) -> object:
    match value:
        case Message():
            return value.say(language)
        case Words():
            return value[language]
        case Sentence():
            return value.words[language]
    return value
