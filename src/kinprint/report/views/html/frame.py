"""The frame of every page: one environment for templates, one policy, all languages in one file.

A page carries its style and its script and names them by hash in a Content-Security-Policy, so
that nothing else can run or load, whatever names and notes from strangers say. All languages
are there; the one asked for shows, the others are a link away, with or without scripts.
"""

from __future__ import annotations

import base64
import functools
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape
from msgspec import Struct

from kinprint.errors import printable
from kinprint.report.numbers import NOTHING
from kinprint.report.views.html.words import speaker
from kinprint.text import languages

LONGEST = 600  # characters of any one text that is not ours
_COMMAND = 50_000  # of a command, which is of no use when it is cut
_ASSETS = Path(__file__).with_name("assets")


class Side(Struct, frozen=True):
    """A page in one language: its title, its inside, what its language is called."""

    lang: str
    title: str
    body: Markup
    name: str


def render(template: str, language: str, **values: object) -> Markup:
    """The inside of a page in one language; templates get `say`, `lang` and the values."""
    say = speaker(language)
    found = _environment().get_template(template).render(lang=language, say=say, **values)
    return Markup(found)


def assemble(
    titles: Mapping[str, str],
    bodies: Mapping[str, Markup],
    language: str,
    running: str = "",
    more: str = "",
) -> str:
    """A whole page from its title and inside in each language.

    `language` shows first, English where there is no such language. `running` heads every sheet
    of paper. `more` is a style of this page alone.
    """
    sides = [
        Side(one, titles[one], bodies[one], str(speaker(one)("page.frame.language")))
        for one in languages()
    ]
    style, script, paper = asset("page.css") + more, asset("page.js"), _running_head(running)
    return (
        _environment()
        .get_template("frame.html.j2")
        .render(
            sides=sides,
            asked=next((side for side in sides if side.lang == language), sides[0]),
            skip={one: speaker(one)("page.frame.skip") for one in languages()},
            switch={one: speaker(one)("page.frame.switch") for one in languages()},
            policy=policy((style, paper), script),
            style=Markup(style),
            paper=Markup(paper),
            script=Markup(script),
        )
    )


def _running_head(told: str) -> str:
    """A style that prints a text at the head of every sheet, each letter of it by its number."""
    letters = "".join(f"\\{ord(letter):x} " for letter in printable(told, LONGEST))
    return f'@page {{ @top-left {{ content: "{letters}"; }} }}'


def policy(styles: Sequence[str], script: str) -> str:
    """What the page may do: nothing but apply these styles and run this script."""
    return "; ".join(
        (
            "default-src 'none'",
            "style-src " + " ".join(f"'{_digest(style)}'" for style in styles),
            f"script-src '{_digest(script)}'",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )


def _digest(text: str) -> str:
    raw = hashlib.sha256(text.encode("utf-8")).digest()
    return "sha256-" + base64.b64encode(raw).decode("ascii")


@functools.cache
def asset(name: str) -> str:
    """A style or script that lies beside the templates."""
    return (_ASSETS / name).read_text(encoding="utf-8")


@functools.cache
def _environment() -> Environment:
    """Templates that escape everything and stumble over what is missing."""
    return Environment(
        loader=FileSystemLoader(_ASSETS),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_harmless,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )


def whole(text: str) -> Markup:
    """A command as it may be printed, not cut as other texts are."""
    return escape(printable(text, _COMMAND))


def _harmless(value: object) -> object:
    """A value as it may be printed: what is no markup of ours loses control characters."""
    if isinstance(value, Markup) or hasattr(value, "__html__"):
        return value
    return NOTHING if value is None else printable(str(value), LONGEST)
