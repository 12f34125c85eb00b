"""What pages say: sentences of the catalogues as markup.

The catalogues are ours and may hold inline markup (strong, em, sup, code); whatever is filled in
is escaped and loses its control characters first.
"""

from __future__ import annotations

import functools
from typing import Protocol

from markupsafe import Markup, escape

from kinprint import text
from kinprint.errors import printable

_LONGEST = 600  # characters of one value inside a sentence
NAME = 80
"""Letters of a name in a sentence."""
_SHORT = 24  # letters of a name that is not broken over lines


class Say(Protocol):
    """What says a sentence in one language, by its key or as a message."""

    def __call__(self, said: str | text.Message, /, **fields: object) -> Markup:
        """The sentence with its fields filled in."""


@functools.cache
def speaker(language: str) -> Say:
    """What says a sentence in one language."""

    def say(said: str | text.Message, /, **fields: object) -> Markup:
        message = text.Message(said, fields) if isinstance(said, str) else said
        return Markup("").join(
            _filled_in(message.fields[span.field], span.text) if span.field else Markup(span.text)
            for span in message.spans(language)
        )

    return say


def named(say: Say, prefix: str, name: str) -> Markup | str:
    """A name that comes with the data in the page's words; as it is where there are none."""
    key = prefix + name.lower().replace(" ", "-")
    return say(key) if text.knows(key) else name


def cut(name: str) -> str:
    """As much of a name as a sentence shows."""
    return name if len(name) <= NAME else name[: NAME - 1] + "…"


def kept(name: str) -> Markup:
    """A name in a sentence: read in its own direction, and short ones on one line."""
    shown = printable(cut(name), NAME)
    if len(shown) > _SHORT:
        return Markup("<bdi>{}</bdi>").format(shown)
    return Markup('<bdi class="keep">{}</bdi>').format(shown)


def _filled_in(value: object, shown: str) -> Markup:
    """What stands in a sentence for a field: markup as it is, anything else as text."""
    if isinstance(value, Markup):
        return value
    return escape(printable(shown, _LONGEST) if isinstance(value, str) else shown)
