"""A page on a phone: it fits, complains of nothing, and everybody can read and use it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

PHONE = 390
_WIDE = "document.documentElement.scrollWidth"
_OPEN = "document.querySelectorAll('details').forEach(one => one.open = true)"


@contextmanager
def on_a_phone(browser: Browser, file: Path, scheme: Any) -> Iterator[Page]:
    """A page to look at; held against what every page promises when it is left."""
    from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]

    context = browser.new_context(viewport={"width": PHONE, "height": 844}, color_scheme=scheme)
    context.set_default_timeout(120_000)
    page = context.new_page()
    troubles: list[str] = []
    page.on("console", lambda message: troubles.append(message.text))
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.goto(file.as_uri())
    assert page.evaluate(_WIDE) == PHONE
    yield page
    page.evaluate(_OPEN)
    assert page.evaluate(_WIDE) == PHONE
    page.evaluate("document.querySelector('.side.other').remove()")  # seen in its turn
    result = Axe().run(page)
    assert result.violations_count == 0, result.generate_report()
    assert troubles == []
    context.close()
