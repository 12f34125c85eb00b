"""The example on the page about merges runs, and prints what the page shows."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.mark.parametrize("page", ["merges.md", "merges.ko.md"])
def test_the_example_prints_what_the_page_shows(page: str, tmp_path: Path) -> None:
    said = (DOCS / page).read_text("utf-8")
    (code,) = re.findall(r"^```python\n(.*?)^```$", said, re.MULTILINE | re.DOTALL)
    (shown,) = re.findall(r"^```text\n(.*?)^```$", said, re.MULTILINE | re.DOTALL)
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout == shown
