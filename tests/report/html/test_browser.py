"""Pages in a real browser: nothing runs, nothing loads, everybody can read and use them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from msgspec import Struct, field

from kinprint.report.schema import ComparisonDocument
from kinprint.report.views.html.pair import pair_page
from tests.report.html.documents import HOSTILE, RELATIONS, comparison, hollow, hostile

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

PHONE, DESK = {"width": 390, "height": 844}, {"width": 1280, "height": 900}
OPEN = "document.querySelectorAll('details').forEach(one => one.open = true)"


class Visit(Struct):
    """A page that was opened, with all it asked for and complained about."""

    page: Page
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def settled(self) -> None:
        """Nothing was asked for but the file, and nothing went wrong."""
        assert [one for one in self.requests if not one.startswith(("file:", "data:"))] == []
        assert len([one for one in self.requests if one.startswith("file:")]) == 1
        assert self.complaints == []


Visitor = Callable[..., Visit]


@pytest.fixture
def visit(browser: Browser, tmp_path: Path) -> Iterator[Visitor]:
    contexts: list[BrowserContext] = []

    def open_page(document: ComparisonDocument, place: str = "", **settings: Any) -> Visit:
        language = settings.pop("language", "en")
        file = tmp_path / f"report-{len(contexts)}.html"
        file.write_text(pair_page(document, language), encoding="utf-8")
        context = browser.new_context(**{"viewport": DESK, **settings})
        contexts.append(context)
        context.set_default_timeout(120_000)
        page = context.new_page()
        found = Visit(page)
        page.on("request", lambda request: found.requests.append(request.url))
        page.on("console", lambda message: found.complaints.append(message.text))
        page.on("pageerror", lambda error: found.complaints.append(str(error)))
        page.goto(file.as_uri() + place)
        return found

    yield open_page
    for context in contexts:
        context.close()


@pytest.mark.parametrize(
    ("language", "scheme", "viewport"),
    [("en", "light", DESK), ("en", "dark", PHONE), ("ko", "light", PHONE), ("ko", "dark", DESK)],
)
def test_pages_are_accessible(visit: Visitor, language: str, scheme: str, viewport: Any) -> None:
    from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]

    document = comparison("derived" if viewport is DESK else "no-evidence", depth=3)
    fewer = [*document.evidence[:7], document.evidence[-1]]  # cards are alike
    document = msgspec.structs.replace(document, evidence=fewer)
    found = visit(document, language=language, color_scheme=scheme, viewport=viewport)
    found.page.evaluate(OPEN)
    found.page.evaluate("document.querySelector('.side.other').remove()")  # seen in its turn
    result = Axe().run(found.page)
    assert result.violations_count == 0, result.generate_report()
    found.settled()


@pytest.mark.parametrize("relation", RELATIONS)
def test_every_relation_fits_a_phone(visit: Visitor, relation: Any) -> None:
    found = visit(comparison(relation), viewport=PHONE)
    wide = "document.documentElement.scrollWidth"
    assert found.page.evaluate(wide) == 390
    found.page.evaluate(OPEN)
    assert found.page.evaluate(wide) == 390
    found.settled()


@pytest.mark.parametrize("at", range(0, len(HOSTILE) - 1, 2))
def test_hostile_documents_run_nothing_and_break_nothing(visit: Visitor, at: int) -> None:
    relation = RELATIONS[at % len(RELATIONS)]
    found = visit(hostile(relation, (HOSTILE[at], HOSTILE[at + 1])), viewport=PHONE)
    page = found.page
    page.locator("td.h5").first.hover()
    page.get_by_role("button", name="likeness").first.click()
    assert page.evaluate("window.hacked") is None
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    assert page.locator("#en h2").count() >= 5
    assert page.locator("img, iframe, object, embed, form").count() == 0
    found.settled()


def test_thousands_of_layers_and_no_number_at_all_are_bearable(visit: Visitor) -> None:
    deep = visit(hostile("derived", (HOSTILE[0], HOSTILE[6]), layers=5000))
    assert deep.page.locator("#en table.heat tbody tr").count() == 128
    deep.settled()
    empty = visit(hollow("untestable"))
    assert empty.page.locator("#en h1").is_visible()
    empty.settled()


def test_the_policy_stops_scripts_that_slip_in(visit: Visitor) -> None:
    found = visit(comparison())
    found.page.evaluate(
        "() => { const s = document.createElement('script'); s.textContent = 'window.hacked = 1';"
        " document.body.append(s); }"
    )
    assert found.page.evaluate("window.hacked") is None
    assert any("Content Security Policy" in one for one in found.complaints)


def test_the_language_switches_and_stays_in_the_address(visit: Visitor) -> None:
    page = visit(comparison()).page
    language = "document.documentElement.lang"
    assert page.evaluate(language) == "en"
    page.get_by_role("link", name="한국어").click()
    page.wait_for_function(f"{language} === 'ko'")
    assert page.url.endswith("#ko")
    assert page.locator("#ko h1").is_visible() and not page.locator("#en h1").is_visible()
    assert "가중치를 공유합니까" in page.title()
    page.get_by_role("link", name="검정별 증거").click()  # a place inside keeps the language
    assert page.locator("#ko-evidence").is_visible()
    page.reload()
    page.wait_for_function(f"{language} === 'ko'")
    page.evaluate("document.getElementById('ko-models').scrollIntoView()")
    page.get_by_role("link", name="English").evaluate("link => link.click()")
    page.wait_for_function(f"{language} === 'en'")
    assert page.url.endswith("#en-models")  # and switching keeps the place


def test_without_scripts_everything_can_be_read(visit: Visitor) -> None:
    page = visit(comparison(), language="ko", java_script_enabled=False).page
    assert page.locator("#ko h1").is_visible() and not page.locator("#en h1").is_visible()
    assert page.locator("#ko table.heat td").first.is_visible()
    page.locator("#ko summary").first.click()
    page.get_by_role("link", name="English").click()
    assert page.locator("#en h1").is_visible() and not page.locator("#ko h1").is_visible()
    assert page.locator("#en button.copy").first.is_hidden()


def test_the_table_of_tests_sorts_from_the_keyboard(visit: Visitor) -> None:
    page = visit(comparison()).page
    table = page.locator("#en table.tests")
    effects = "rows => rows.map(row => row.cells[0].textContent.trim())"
    before = table.locator("tbody tr").evaluate_all(effects)
    assert table.locator("th[aria-sort]").inner_text().startswith("p, corrected")
    button = table.get_by_role("button", name="test")
    button.focus()
    page.keyboard.press("Enter")
    after = table.locator("tbody tr").evaluate_all(effects)
    assert after == sorted(before, key=str.casefold) != before
    assert table.locator('th[aria-sort="ascending"]').inner_text() == "test"
    page.keyboard.press("Enter")
    assert table.locator("tbody tr").evaluate_all(effects) == after[::-1]
    assert table.locator("th[aria-sort]").count() == 1


def test_cells_tell_their_values_to_pointers_and_keys(visit: Visitor) -> None:
    page = visit(comparison()).page
    grid, told = page.locator("#en table.heat"), page.locator("#en-heat-told")
    grid.locator("tbody tr").nth(2).locator("td").nth(3).hover()
    first = told.inner_text()
    assert re.search(r"^1 · \w+ · [−.\d]+ · chance ±0\.016, 64 compared$", first)
    assert grid.locator("td[tabindex='0']").count() == 1
    grid.locator("td[tabindex='0']").focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowRight", "ArrowRight", "ArrowUp"):
        page.keyboard.press(key)
    assert told.inner_text().startswith("0 · ") and told.inner_text() != first
    assert page.evaluate("document.activeElement.cellIndex") == 3


def test_the_first_key_leads_to_the_answer(visit: Visitor) -> None:
    page = visit(comparison()).page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "en-answer"


def test_the_command_is_copied(visit: Visitor) -> None:
    document = comparison()
    page = visit(document, permissions=["clipboard-read", "clipboard-write"]).page
    page.locator("#en button.copy").first.click()
    page.locator("#en-command-said").get_by_text("Copied.").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == document.made.command


def test_no_line_of_a_command_begins_inside_an_option(visit: Visitor) -> None:
    page = visit(comparison("derived"), viewport=PHONE).page
    page.evaluate(OPEN)
    lines = """all => all.map(one => {
        const text = document.createRange();
        text.selectNodeContents(one);
        return [one.textContent, text.getClientRects().length];
    })"""
    for width in range(320, 480, 4):
        page.set_viewport_size({"width": width, "height": 844})
        options = page.locator(".command .option:visible").evaluate_all(lines)
        assert ["-o", 1] in options
        assert {count for _, count in options} == {1}
    # A name may look like an option, and be longer than a line.
    long = "one => one.textContent = '-' + 'my-long-name-'.repeat(9)"
    page.locator(".command .option:visible").first.evaluate(long)
    assert page.evaluate("document.documentElement.scrollWidth") == width


def test_on_paper_every_part_is_there_in_few_pages_with_a_running_head(visit: Visitor) -> None:
    found = visit(comparison(), color_scheme="dark")
    raw = found.page.pdf(prefer_css_page_size=True)
    pages = len(re.findall(rb"/Type\s*/Page\b", raw))
    assert 2 <= pages <= 6
    found.page.emulate_media(media="print")
    closed = (
        "() => [...document.querySelectorAll('#en details > *:not(summary)')]"
        ".filter(one => !one.closest('.unprinted, .experts'))"
        ".filter(one => !one.checkVisibility()).length"
    )
    found.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert found.page.evaluate(closed) == 0
    assert not found.page.locator("#en nav").first.is_visible()
    assert not found.page.locator("#en .experts").is_visible()
    told = found.page.locator("#en").inner_text()
    for title in ("How sure", "What this does not show", "The evidence", "The two models"):
        assert title in told
    shown = "getComputedStyle(document.body).backgroundColor"
    assert found.page.evaluate(shown) == "rgb(255, 255, 255)"
    found.settled()
