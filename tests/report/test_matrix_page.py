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
from kinprint.report.matrix import group_says, groups_of, ordered, telling
from kinprint.report.relations import SIGNS, words_for
from kinprint.report.schema import FailedPair, MatrixDocument
from kinprint.report.views.html.matrix import matrix_page
from kinprint.report.views.markdown import comparison as markdown
from kinprint.report.views.notebook import fragment
from kinprint.report.views.terminal.comparison import matrix_lines
from tests.report.kin_documents import HOSTILE, matrix

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page


def side(page: str, language: str) -> str:
    """The part of the page in one language."""
    start = page.index(f'id="{language}" lang')
    end = page.find('id="ko" lang', start + 1)
    return page[start:end] if end > 0 else page[start:]


def cells(page: str, language: str) -> list[list[tuple[str, str]]]:
    """Where every cell leads to and its mark, row by row."""
    table = re.search(r'<table class="heat kin".*?</table>', side(page, language), re.DOTALL)
    assert table is not None
    cell = re.compile(r'<td[^>]*>(?:<a href="#([^"]*)">)?([^<]*)(?:</a>)?</td>')
    rows = re.findall(r"<tr[^>]*>(.*?)</tr>", table[0], re.DOTALL)[1:]
    return [cell.findall(row) for row in rows]


def line(page: str, key: str) -> str:
    """What a cell leads to: a line of a list, or the line that unfolds it."""
    at = page.index(f'id="{key}"')
    start = max(page.rfind("<li", 0, at + 1), page.rfind("<summary>", 0, at))
    return re.sub(r"<[^>]*>", "", page[start : page.index("</", page.index("<span>", start))])


@pytest.mark.parametrize("language", ["en", "ko"])
def test_every_cell_leads_to_its_pair(language: str) -> None:
    document = matrix(9)
    page = matrix_page(document)
    grid = cells(page, language)
    assert [len(row) for row in grid] == [9] * 9
    pairs = iter(document.pairs)
    names = [one.title for one in document.models]
    for one in range(9):
        assert grid[one][one] == ("", "")
        for other in range(one + 1, 9):
            pair = next(pairs)
            assert grid[one][other] == grid[other][one]
            key, mark = grid[one][other]
            assert mark == SIGNS[pair.relation].mark and page.count(f'id="{key}"') == 1
            said = line(page, key)
            assert said.strip().startswith(f"{mark} {names[one]} × {names[other]} ")
            assert words_for(pair.relation)[language] in said
            amount = pair.amount  # the same two numbers as on the page of the pair
            assert ("50 %" in said) == pair.relation.linked == (amount.linked == 0.5)
            shown = "1.00" if pair.relation == "identical" else f"{amount.likeness or 0.0:.2f}"
            assert not pair.relation.linked or shown in said


def test_a_link_without_an_exact_p_value_borrows_none() -> None:
    document = matrix(2, family=2)
    hidden = msgspec.structs.replace(
        document.pairs[0], relation=Relation.LAUNDERED, log10_p=-0.4, likeness=0.0
    )
    document = msgspec.structs.replace(document, pairs=[hidden])
    page = matrix_page(document)
    said = line(page, "en-1-2")
    assert "shown by no exact test" in said and "p " not in said.partition("no exact test")[2]
    assert "1 is very likely a copy, in whole or in part, that no exact test shows." in page
    assert "for which there is no such" in page
    assert "Of 1 pair 0 were found to share weights, in whole or in part." in page


def test_rows_go_group_by_group_in_the_order_of_the_tree() -> None:
    document = matrix(7, family=3)  # 0 to 2, 3 to 5, 6 alone
    order = [6, 4, 0, 3, 2, 5, 1]
    document = msgspec.structs.replace(document, order=order)
    assert ordered(document) == [4, 3, 5, 0, 2, 1, 6]
    page = matrix_page(document)
    heads = re.findall(r'<th scope="row"><i>(\d)</i> ([^<]+)</th>', side(page, "en"))
    assert [int(number) for number, _ in heads] == [1, 2, 3, 4, 5, 6, 7]
    titles = [document.models[at].title for at in ordered(document)]
    assert [name for _, name in heads] == titles
    assert re.findall(r'<abbr title="([^"]+)">', side(page, "en")) == titles


@pytest.mark.parametrize("language", ["en", "ko"])
def test_the_page_says_what_it_must(language: str) -> None:
    document = matrix(9, unread=2)
    text = side(matrix_page(document), language)
    assert ("not history" in text) == (language == "en")
    assert ("역사가 아닙니다" in text) == (language == "ko")
    assert text.count("<svg") > 3 and "<caption" in text
    for pair in telling(document.pairs):
        assert answer.summary(document, pair, language) in text
    for group in groups_of(document):
        assert group_says(document, group, language) in text
    for lost in document.unread:
        assert lost.given in text and answer.error(document, lost, language) in text
    assert document.made.command in re.sub("<[^>]*>", "", text)
    assert text.index(f'id="{language}-groups"') < text.index(f'id="{language}-grid"')


@pytest.mark.parametrize("language", ["en", "ko"])
def test_a_pair_that_failed_is_marked_and_has_its_error(language: str) -> None:
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
    marked = [one for row in grid for one in row if one[1] == "!"]
    assert marked == [(f"{language}-failed", "!")] * 2
    assert error in fragment(document, language)
    assert error in markdown.page(document, language)


def test_groups_hold_together_through_others() -> None:
    document = matrix(10, family=3)
    places = [group.places for group in groups_of(document)]
    assert places == [(0, 1, 2), (3, 4, 5), (6, 7, 8)]
    chained = [
        msgspec.structs.replace(one, relation=Relation.DERIVED)
        if (one.a, one.b) == (document.models[2].given, document.models[9].given)
        else one
        for one in document.pairs
    ]
    joined = msgspec.structs.replace(document, pairs=chained)
    first = groups_of(joined)[0]
    assert first.places == (0, 1, 2, 9)
    said = group_says(joined, first, "en")
    assert said.startswith("4 of 6 pairs are linked:") and "no link was found" in said


def test_one_initialisation_is_a_link_but_no_common_training() -> None:
    document = matrix(2, family=1)
    twins = [msgspec.structs.replace(one, relation=Relation.SAME_INIT) for one in document.pairs]
    document = msgspec.structs.replace(document, pairs=twins)
    assert [group.places for group in groups_of(document)] == [(0, 1)]
    text = side(matrix_page(document), "en")
    assert (
        "Of 1 pair 0 were found to share weights, in whole or in part. 1 more is linked as well"
        in text
    )


def test_a_model_without_a_link_is_never_called_independent() -> None:
    document = matrix(4, family=3)
    untested = msgspec.structs.replace(document.pairs[2], relation=Relation.UNTESTABLE)
    pairs = [*document.pairs[:2], untested, *document.pairs[3:]]
    document = msgspec.structs.replace(document, pairs=pairs)
    name = document.models[3].title
    for said in (
        side(matrix_page(document), "en"),
        markdown.page(document, "en").replace("\\", ""),
        "\n".join(map(str, matrix_lines(document, "en"))),
    ):
        flat = " ".join(said.split())
        assert f"{name} (untested pairs: 1)" in flat
        assert "That does not show that they are independent." in flat


@pytest.mark.parametrize(
    ("alpha", "false_links", "said"),
    [
        (1e-6, None, "among 36 pairs in at most one of 27,000 matrices"),  # 1 in 27,777
        (1e-6, 3.7e-5, "among 36 pairs in at most one of 27,000 matrices"),
        (1e-6, 4.1e-5, "among 36 pairs in at most one of 24,000 matrices"),
        (0.02, 0.72, "chance makes up to 0.8 such claims among 36 pairs on average"),
    ],
)
def test_the_error_of_all_pairs_is_said(alpha: float, false_links: Any, said: str) -> None:
    document = matrix(9)
    asked = msgspec.structs.replace(document.asked, alpha=alpha)
    document = msgspec.structs.replace(document, asked=asked, false_links=false_links)
    assert said in side(matrix_page(document), "en")
    assert said in markdown.page(document, "en")
    assert said in " ".join(" ".join(map(str, matrix_lines(document, "en"))).split())


@pytest.mark.parametrize("family", [5, 60])
def test_sixty_models_fit_a_page_that_can_be_sent(family: int) -> None:
    label = "org-0/model-a-00-7b-chat: synthetic, made for a test"
    page = matrix_page(msgspec.structs.replace(matrix(60, family), labels=[label]))
    assert label in side(page, "en")
    assert len(page.encode()) < 2_000_000
    for key, _ in (one for row in cells(page, "en") for one in row if one[0]):
        assert f'id="{key}"' in page


@pytest.mark.parametrize("count", [60, pytest.param(200, marks=pytest.mark.slow)])
def test_many_models_are_bearable(count: int) -> None:
    many = matrix_page(matrix(count, 8))
    assert len(many.encode()) < 40_000 * count
    assert len(cells(many, "ko")) == count


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
    assert "No link was found between any two" in text
    assert "That does not show that they are independent." in text


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


@pytest.mark.parametrize("count", [9, 60])
def test_a_phone_shows_whole_names(page_of: Any, count: int) -> None:
    page = page_of(matrix(count, 5), viewport={"width": 390, "height": 844})
    cut = "[...document.querySelectorAll('#en table.kin tbody th')].filter(one => {})"
    assert page.evaluate(cut.format("one.scrollWidth > one.clientWidth") + ".length") == 0


@pytest.mark.parametrize(("count", "width"), [(34, 688), (60, 1047)])
def test_the_matrix_fits_its_paper(page_of: Any, count: int, width: int) -> None:
    """Pixels of A4 within its margins, upright and lying down."""
    page = page_of(matrix(count, 5), viewport={"width": width, "height": 700})
    page.emulate_media(media="print")
    wide = "document.querySelector('#en table.kin').getBoundingClientRect().width"
    assert page.evaluate(wide) <= width


@pytest.mark.parametrize("language", ["en", "ko"])
def test_heads_of_columns_are_not_broken_letter_by_letter(page_of: Any, language: str) -> None:
    page = page_of(matrix(4), f"#{language}", viewport={"width": 390, "height": 844})
    heads = f"[...document.querySelectorAll('#{language} .scroll > table:not(.heat) thead th')]"
    heights = page.evaluate(f"{heads}.map(one => one.getBoundingClientRect().height)")
    assert heights and max(heights) < 120


def test_cells_tell_what_they_say_and_lead_to_their_pair(page_of: Any) -> None:
    page = page_of(matrix(9))
    told = page.locator("#en-kin-told")
    cell = page.locator("#en table.kin tbody tr").nth(0).locator("td").nth(1)
    place = "one => one.getBoundingClientRect().top + window.scrollY"
    before = cell.evaluate(place)
    cell.hover()
    assert cell.evaluate(place) == before  # nothing moves under the pointer
    assert "likeness" in told.inner_text() and "model-b-01-13b-chat" in told.inner_text()
    assert (
        page.locator("#en table.kin a[tabindex='0'], #en table.kin td[tabindex='0']").count() == 1
    )
    page.locator("#en table.kin td").first.focus()
    page.keyboard.press("ArrowRight")
    assert "model-b-01" in (page.evaluate("document.activeElement.ariaLabel") or "")
    page.keyboard.press("ArrowDown")
    assert "itself" in told.inner_text()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    page.wait_for_url("**#en-1-2")
    assert page.locator("#en-1-2").is_visible() and not page.locator("#en-1-3").is_visible()


@pytest.mark.parametrize("language", ["en", "ko"])
def test_cells_lead_to_their_pair_without_scripts_too(page_of: Any, language: str) -> None:
    page = page_of(matrix(9), f"#{language}", java_script_enabled=False)
    pair = page.locator(f"#{language}-1-2")
    assert not pair.is_visible()
    page.locator(f"#{language} table.kin a").first.click()
    assert pair.is_visible() and page.url.endswith(f"#{language}-1-2")
    page.locator(f"#{language} table.kin a[href$='-1-9']").first.click()
    assert page.locator(f"#{language}-1-9").is_visible()


def test_paper_has_no_walls_of_sentences(page_of: Any) -> None:
    """Lines of pairs are printed where they are few; what they unfold never is."""
    for document, lines in ((matrix(9), 9), (matrix(60, family=10), 0)):
        page = page_of(document)
        page.emulate_media(media="print")
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        shown = (
            "[...document.querySelectorAll('#en {}')].filter(one => one.checkVisibility()).length"
        )
        assert page.evaluate(shown.format(".pair > summary")) == lines
        assert page.evaluate(shown.format("dl.five")) == 0


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
