import re
from pathlib import Path
from string import Formatter

import pytest
from markupsafe import Markup

from kinprint.lineage.tests.menu import LEVELS, menu
from kinprint.report.web import frame
from kinprint.report.web.words import catalogue, speaker

WEB = Path(frame.__file__).parent
SOURCES = [*WEB.glob("*.py"), *(WEB / "assets").glob("*.j2")]


def fields(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name is not None}


def test_both_languages_say_everything_with_the_same_fields() -> None:
    for key, texts in catalogue().items():
        assert set(texts) == {"en", "ko"}, key
        assert fields(texts["en"]) == fields(texts["ko"]), key
        assert all(text.strip() == text and text for text in texts.values()), key


def test_markup_in_the_catalogue_is_inline_and_closed() -> None:
    for key, texts in catalogue().items():
        for text in texts.values():
            tags = re.findall(r"<(/?)(\w+)([^>]*)>", text)
            assert all(
                name in {"strong", "em", "sup", "code"} and not rest for _, name, rest in tags
            )
            opened = [name for slash, name, _ in tags if not slash]
            assert opened == [name for slash, name, _ in tags if slash], key


def test_whatever_is_said_is_in_the_catalogue() -> None:
    said = {
        key
        for file in SOURCES
        for key in re.findall(r'say\(\s*"([^"{}]+)"', file.read_text(encoding="utf-8"))
    }
    assert said and said <= set(catalogue())


def test_every_test_of_the_menu_has_a_title_and_a_question() -> None:
    for entry in menu(LEVELS[-1]):
        assert f"test.{entry.name}" in catalogue()
        assert f"asks.{entry.test.family}" in catalogue()
        assert f"group.{entry.test.group}" in catalogue()


def test_korean_sentences_are_polite() -> None:
    for key, texts in catalogue().items():
        told = Markup(texts["ko"]).striptags()
        assert not told.endswith(".") or re.search(r"(니다|십시오)\.$", told), key


@pytest.mark.parametrize("language", ["en", "ko"])
def test_what_is_filled_in_is_escaped_and_harmless(language: str) -> None:
    told = speaker(language)("pair.title", a="<b>\u202e", b=Markup("<sup>1</sup>"))
    assert "<b>" not in told and "\u202e" not in told
    assert "&lt;b&gt;" in told and "<sup>1</sup>" in told
