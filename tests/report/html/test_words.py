import re

import pytest
from markupsafe import Markup

from kinprint import text
from kinprint.lineage.tests.menu import LEVELS, menu
from kinprint.report.views.html.words import speaker
from kinprint.text.catalogue import template

KEYS = [key for key in text.known_keys() if key.startswith(("page.", "test."))]


@pytest.mark.parametrize("language", text.languages())
def test_markup_in_the_catalogue_is_inline_and_closed(language: str) -> None:
    for key in KEYS:
        tags = re.findall(r"<(/?)(\w+)([^>]*)>", template(key, language))
        assert all(name in {"strong", "em", "sup", "code"} and not rest for _, name, rest in tags)
        opened = [name for slash, name, _ in tags if not slash]
        assert opened == [name for slash, name, _ in tags if slash], key


def test_every_test_of_the_menu_has_a_title_and_a_question() -> None:
    for entry in menu(LEVELS[-1]):
        assert text.knows(f"test.{entry.name}.title")
        assert text.knows(f"test.{entry.test.family}.asks")
        assert text.knows(f"test.{entry.name}.compares")
        assert text.knows(f"page.group.{entry.test.group}")


def test_korean_sentences_are_polite() -> None:
    for key in KEYS:
        told = Markup(template(key, "ko")).striptags()
        assert not told.endswith(".") or re.search(r"(니다|십시오)\.$", told), key


@pytest.mark.parametrize("language", ["en", "ko"])
def test_what_is_filled_in_is_escaped_and_harmless(language: str) -> None:
    say = speaker(language)
    told = say("page.pair.title", a="<b>\u202e", b=Markup("<sup>1</sup>"))
    assert "<b>" not in told and "\u202e" not in told
    assert "&lt;b&gt;" in told and "<sup>1</sup>" in told
    assert say(text.message("page.pair.title", a="<b>\u202e", b=Markup("<sup>1</sup>"))) == told
