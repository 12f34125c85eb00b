"""The page of many models: a real table, both languages, a size that can be sent by mail."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from kinprint.records import Relation
from kinprint.report import answer
from kinprint.report.matrix import groups_of, linked_pairs
from kinprint.report.relations import SIGNS, words_for
from kinprint.report.schema import FailedPair, MatrixDocument
from kinprint.report.views.html.matrix import matrix_page
from kinprint.report.views.markdown import comparison as markdown
from kinprint.report.views.notebook import fragment
from tests.report.kin_documents import HOSTILE, matrix

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page


def side(page: str, language: str) -> str:
    """The part of the page in one language."""
    start = page.index(f'id="{language}" lang')
    end = page.find('id="ko" lang', start + 1)
    return page[start:end] if end > 0 else page[start:]


def cells(page: str, language: str) -> list[list[tuple[str, str]]]:
    """Mark and words of every cell, row by row."""
    table = re.search(r'<table class="heat kin".*?</table>', side(page, language), re.DOTALL)
    assert table is not None
    return [
        re.findall(r'<td(?: class="[^"]*")?(?: data-more="([^"]*)")?>([^<]*)</td>', row)
        for row in re.findall(r"<tr>(.*?)</tr>", table[0], re.DOTALL)[1:]
    ]


@pytest.mark.parametrize("language", ["en", "ko"])
def test_every_pair_has_a_cell_on_both_sides(language: str) -> None:
    document = matrix(9)
    grid = cells(matrix_page(document), language)
    assert [len(row) for row in grid] == [9] * 9
    pairs = iter(document.pairs)
    for one in range(9):
        assert grid[one][one][1] == ""
        for other in range(one + 1, 9):
            pair = next(pairs)
            word = words_for(pair.relation)
            for told, mark in (grid[one][other], grid[other][one]):
                assert mark == SIGNS[pair.relation].mark
                assert (word[language]) in told
                if pair.relation not in ("no-evidence", "untestable"):
                    assert f"{pair.likeness:.2f}" in told


def test_rows_follow_the_tree() -> None:
    document = msgspec.structs.replace(matrix(5), order=[4, 2, 0, 1, 3])
    page = matrix_page(document)
    heads = re.findall(r'<th scope="row"><i>(\d)</i> ([^<]+)</th>', side(page, "en"))
    assert [int(number) for number, _ in heads] == [1, 2, 3, 4, 5]
    titles = [document.models[at].title for at in (4, 2, 0, 1, 3)]
    assert [name for _, name in heads] == titles
    columns = re.findall(r'<abbr title="([^"]+)">', side(page, "en"))
    assert columns == titles


@pytest.mark.parametrize("language", ["en", "ko"])
def test_the_page_says_what_it_must(language: str) -> None:
    document = matrix(9, unread=2)
    text = side(matrix_page(document), language)
    assert ("not history" in text) == (language == "en")
    assert ("역사가 아닙니다" in text) == (language == "ko")
    assert text.count("<svg") > 3 and "<caption" in text
    for pair in linked_pairs(document):
        assert answer.summary(document, pair, language) in text
    for lost in document.unread:
        assert lost.given in text and answer.error(document, lost, language) in text
    assert document.made.command in text


@pytest.mark.parametrize("language", ["en", "ko"])
def test_a_pair_that_failed_has_an_empty_cell_and_its_error(language: str) -> None:
    whole = matrix(4)
    lost = whole.pairs[0]
    failed = FailedPair(a=lost.a, b=lost.b, error="no luck")
    document = msgspec.structs.replace(
        whole, pairs=whole.pairs[1:], failed=[failed], translations={"ko": {"no luck": "운이 없음"}}
    )
    error = answer.error(document, failed, language)
    page = matrix_page(document)
    assert error in side(page, language) and error not in side(matrix_page(whole), language)
    grid = cells(page, language)
    assert [len(row) for row in grid] == [4] * 4
    assert sum(mark != "" for row in grid for _, mark in row) == 2 * len(document.pairs)
    assert error in fragment(document, language)
    assert error in markdown.page(document, language)


def test_groups_hold_together_through_others() -> None:
    document = matrix(10, family=3)
    assert groups_of(document) == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]
    chained = [
        msgspec.structs.replace(one, relation=Relation.DERIVED)
        if (one.a, one.b) == (document.models[2].given, document.models[9].given)
        else one
        for one in document.pairs
    ]
    joined = groups_of(msgspec.structs.replace(document, pairs=chained))
    assert joined[0] == [0, 1, 2, 9]


def test_one_initialisation_makes_no_group() -> None:
    document = matrix(2, family=1)
    twins = [msgspec.structs.replace(one, relation=Relation.SAME_INIT) for one in document.pairs]
    document = msgspec.structs.replace(document, pairs=twins)
    assert groups_of(document) == []
    text = side(matrix_page(document), "en")
    assert "0 of 1 pairs share trained weights." in text and "1 more are not independent" in text


def test_sizes() -> None:
    sixty = matrix_page(matrix(60, 5))
    assert len(sixty.encode()) < 1_500_000
    many = matrix_page(matrix(200, 8))
    assert len(many.encode()) < 8_000_000
    assert len(cells(many, "ko")) == 200


def test_replicas_are_labelled_in_both_languages() -> None:
    label = "org/one: NOT the real model: a sparse replica made by kinprint"
    page = matrix_page(msgspec.structs.replace(matrix(3), labels=[label]))
    assert label in side(page, "en") and "org/one: 실제 모델이 아님" in side(page, "ko")


@pytest.mark.parametrize("count", [0, 1, 2])
def test_few_models_and_nothing_found(count: int) -> None:
    document = matrix(2, family=1, unread=0)
    small = msgspec.structs.replace(
        document, models=document.models[:count], pairs=document.pairs[: count - 1 if count else 0],
        order=[], tree=[],
    )  # fmt: skip
    text = side(matrix_page(small), "en")
    assert "No evidence that any two" in text and "not proof of independence" in text


def test_linked_pairs_beyond_the_page_are_counted() -> None:
    text = side(matrix_page(matrix(40, family=40)), "en")
    assert "280 more linked pairs" in text


@pytest.fixture
def page_of(browser: Browser, tmp_path: Path) -> Iterator[Any]:
    contexts: list[BrowserContext] = []

    def open_page(document: MatrixDocument, place: str = "", **settings: Any) -> Page:
        file = tmp_path / f"matrix-{len(contexts)}.html"
        file.write_text(matrix_page(document), encoding="utf-8")
        context = browser.new_context(**settings)
        context.set_default_timeout(120_000)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: pytest.fail(message.text))
        page.on("pageerror", lambda error: pytest.fail(str(error)))
        page.goto(file.as_uri() + place)
        return page

    yield open_page
    for context in contexts:
        context.close()


@pytest.mark.parametrize(("language", "scheme"), [("en", "light"), ("ko", "dark")])
def test_the_page_is_accessible(page_of: Any, language: str, scheme: str) -> None:
    from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]

    page = page_of(matrix(9), f"#{language}", color_scheme=scheme)
    result = Axe().run(page)
    assert result.violations_count == 0, result.generate_report()


@pytest.mark.parametrize("count", [9, 60])
def test_a_phone_scrolls_inside_the_table(page_of: Any, count: int) -> None:
    page = page_of(matrix(count, 5), viewport={"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    box = page.locator("#en-grid .scroll")
    inside = box.evaluate("one => one.scrollWidth - one.clientWidth")
    assert (inside > 0) == (count == 60)


@pytest.mark.parametrize("language", ["en", "ko"])
def test_heads_of_columns_are_not_broken_letter_by_letter(page_of: Any, language: str) -> None:
    page = page_of(matrix(4), f"#{language}", viewport={"width": 390, "height": 844})
    heads = f"[...document.querySelectorAll('#{language} .scroll > table:not(.heat) thead th')]"
    heights = page.evaluate(f"{heads}.map(one => one.getBoundingClientRect().height)")
    assert heights and max(heights) < 120


def test_cells_tell_what_they_say(page_of: Any) -> None:
    page = page_of(matrix(9))
    told = page.locator("#en-kin-told")
    cell = page.locator("#en table.kin tbody tr").nth(0).locator("td").nth(1)
    place = "one => one.getBoundingClientRect().top + window.scrollY"
    before = cell.evaluate(place)
    cell.hover()
    assert cell.evaluate(place) == before  # nothing moves under the pointer
    assert "likeness" in told.inner_text() and "model-b-01-13b-chat" in told.inner_text()
    page.locator("#en table.kin td").first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    assert "itself" in told.inner_text()


def test_hostile_names_run_nothing(page_of: Any) -> None:
    document = matrix(4)
    names = [HOSTILE, '"><img src=x onerror=alert(1)>', "</style><script>1</script>", "\x1b[31m'"]
    models = [
        msgspec.structs.replace(one, title=name, given=name, name=name)
        for one, name in zip(document.models, names, strict=True)
    ]
    pairs = [
        msgspec.structs.replace(one, a=models[a].given, b=models[b].given, summary=names[1])
        for one, (a, b) in zip(
            document.pairs, ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)), strict=True
        )
    ]
    page = page_of(msgspec.structs.replace(document, models=models, pairs=pairs, notes=names))
    assert page.locator("img").count() == 0 and page.locator("script").count() == 1
    assert page.locator("#en table.kin td").count() == 16
