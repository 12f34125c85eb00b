"""What pages say, from one catalogue in English and Korean.

The catalogue is ours and may hold inline markup; whatever is filled in is escaped and loses its
control characters first.
"""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path

from markupsafe import Markup

from kinprint.errors import printable

Say = Callable[..., Markup]
_LONGEST = 600  # characters of one value inside a sentence


@functools.cache
def catalogue() -> Mapping[str, Mapping[str, str]]:
    """Every text by its key ("section.name"), in each language."""
    raw = tomllib.loads(Path(__file__).with_name("words.toml").read_text(encoding="utf-8"))
    return {
        f"{section}.{name}": texts
        for section, group in raw.items()
        for name, texts in group.items()
    }


@functools.cache
def speaker(language: str) -> Say:
    """What says a key in one language, with values filled in."""
    table = catalogue()

    def say(key: str, **values: object) -> Markup:
        template = Markup(table[key][language])
        return template.format(**{name: _plain(value) for name, value in values.items()})

    return say


def knows(key: str) -> bool:
    """Whether the catalogue has a key."""
    return key in catalogue()


def told(say: Say, section: str, name: str) -> Markup | str:
    """A name that comes with the data in the page's words; as it is where there are none."""
    key = f"{section}.{name}"
    return say(key) if knows(key) else name


def _plain(value: object) -> object:
    return printable(value, _LONGEST) if isinstance(value, str) and _is_text(value) else value


def _is_text(value: str) -> bool:
    return not isinstance(value, Markup)
