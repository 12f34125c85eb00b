"""`python -m benchmarks.pages`: a page of 48 layers with everything on it, drawn and opened.

Sizes and times are what a reader waits for: drawing, and the browser's first paint as its own
Performance API tells it.
"""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

from kinprint.report.views.html.pair import pair_page
from tests.report.html.documents import comparison

RUNS = 5
PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"


def main() -> int:
    document = comparison("derived", 48)
    page = pair_page(document)
    seconds = []
    for _ in range(RUNS):
        started = time.perf_counter()
        pair_page(document)
        seconds.append(time.perf_counter() - started)
    rows = [
        ("size", len(page.encode()) / 1e6, "MB", 1.5),
        ("drawing", statistics.median(seconds), "s", 3.0),
    ]
    chromium = shutil.which("chromium")
    if chromium is not None:
        rows.append(("first paint", _first_paint(page, chromium), "s", 1.0))
    print("a page of 48 layers, both languages\n")
    for what, value, unit, limit in rows:
        good = "ok" if value <= limit else "MISSED"
        print(f"  {what:<12} {value:>8.3f} {unit:<2}  ≤ {limit:g} {unit:<2}  {good}")
    return 0 if all(value <= limit for _, value, _, limit in rows) else 1


def _first_paint(page: str, chromium: str) -> float:
    from playwright.sync_api import sync_playwright

    found = []
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        file = Path(folder) / "report.html"
        file.write_text(page, encoding="utf-8")
        arguments = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        browser = playwright.chromium.launch(executable_path=chromium, args=arguments)
        for _ in range(RUNS):
            tab = browser.new_page()
            tab.goto(file.as_uri())
            tab.wait_for_function(PAINT)
            found.append(float(tab.evaluate(PAINT)) / 1000)
            tab.close()
        browser.close()
    return statistics.median(found)


if __name__ == "__main__":
    sys.exit(main())
