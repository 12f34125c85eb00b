"""The notebook in the documentation runs, and the outputs kept in it are what it gives today."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import REPOSITORY

NOTEBOOK = REPOSITORY / "docs" / "notebooks" / "first-comparison.ipynb"
# A process of its own: the kernel's client brings an event loop and warnings that are not ours.
_RUN = """
import runpy, sys
from pathlib import Path
execute = runpy.run_path(sys.argv[1])["execute"]
print(execute(Path(sys.argv[2]), Path(sys.argv[3])))
"""


def telling(notebook: Any) -> list[list[str]]:
    """What the outputs of each cell say, without pictures and without what reading took."""
    found: list[list[str]] = []
    for cell in notebook["cells"]:
        texts: list[str] = []
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            html = "".join(data.get("text/html", ""))
            texts += re.findall(r'<p class="kp-says">(.*?)</p>', html)
            texts += re.findall(r"<td>(10\^-\d+|0\.\d\d|1\.00)</td>", html)
            plain = "".join(data.get("text/plain", output.get("text", "")))
            texts.append(re.sub(r" at 0x[0-9a-f]+", "", plain))
            texts += sorted(data)
        found.append(texts)
    return found


def test_the_notebook_is_current(tmp_path: Path) -> None:
    kept = json.loads(NOTEBOOK.read_text("utf-8"))
    place = tmp_path / "anywhere"  # outside of a clone, too; running it writes its files there
    place.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", _RUN, str(NOTEBOOK.with_name("execute.py")), str(NOTEBOOK), place],
        env=os.environ | {"HF_HOME": str(tmp_path / "hf"), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert telling(json.loads(done.stdout)) == telling(kept)
    assert (place / "out" / "notebook" / "report.html").is_file()


@pytest.mark.parametrize(
    "word", [r"/home/", r"/root", r"/work", r"/tmp", r"[A-Z]:\\\\", "Traceback"]
)
def test_the_notebook_names_no_machine(word: str) -> None:
    text = re.sub(r'"image/png": "[^"]*"', "", NOTEBOOK.read_text("utf-8"))
    assert re.search(word, text) is None


def test_the_notebook_shows_what_it_promises() -> None:
    kept = json.loads(NOTEBOOK.read_text("utf-8"))
    outputs = [one for cell in kept["cells"] for one in cell.get("outputs", ())]
    html = "".join("".join(one.get("data", {}).get("text/html", "")) for one in outputs)
    assert "share trained weights" in html
    assert "No evidence was found that base-a and base-b" in html
    assert sum("image/png" in one.get("data", {}) for one in outputs) == 3
    assert NOTEBOOK.stat().st_size < 1_000_000
