"""Pages of what changed and of what was merged, in a real browser."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import kinprint
from tests.conftest import DEMO
from tests.report.html.visiting import on_a_phone

if TYPE_CHECKING:
    from playwright.sync_api import Browser

MODELS = DEMO / "zoo"


@pytest.fixture(scope="module")
def results() -> dict[str, kinprint.Diff | kinprint.Unmerged]:
    child, parent, stranger = (MODELS / name for name in ("a-cpt", "base-a", "base-b"))
    return {
        "diff": kinprint.diff(parent, child),
        "unmerge": kinprint.unmerge(child, [parent, stranger]),
    }


@pytest.mark.parametrize("name", ["diff", "unmerge"])
@pytest.mark.parametrize(("language", "scheme"), [("en", "dark"), ("ko", "light")])
def test_pages_fit_and_are_accessible(
    browser: Browser,
    results: dict[str, kinprint.Diff | kinprint.Unmerged],
    tmp_path: Path,
    name: str,
    language: str,
    scheme: str,
) -> None:
    results[name].language = language
    (file,) = results[name].save(tmp_path / "page.html")
    with on_a_phone(browser, file, scheme) as page:
        assert "a-cpt" in page.locator(f"#{language}").inner_text()
