"""Runs the notebooks in this folder and keeps their outputs: `python docs/notebooks/execute.py`.

A test runs them as well and compares what they say, so that no output here grows old.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat
from nbclient import NotebookClient

HERE = Path(__file__).resolve().parent


def execute(notebook: Path, folder: Path) -> str:
    """The notebook with its outputs, run in a folder; without times, which differ every time."""
    found = nbformat.read(notebook, as_version=4)
    where = {"metadata": {"path": str(folder)}}
    client = NotebookClient(
        found, timeout=120, kernel_name="python3", resources=where, record_timing=False
    )
    client.execute()
    found.metadata["language_info"] = {"name": "python"}
    return str(nbformat.writes(found)).rstrip("\n") + "\n"


if __name__ == "__main__":
    for one in sorted(HERE.glob("*.ipynb")):
        with TemporaryDirectory() as place:  # what it writes is no part of the documentation
            one.write_text(execute(one, Path(place)), encoding="utf-8")
