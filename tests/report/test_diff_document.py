"""A diff as a document and in all its forms: the same when redrawn, and harmless."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import msgspec
import pytest

import kinprint
from benchmarks.redteam.zoo import DEMO
from kinprint.report.exports import render
from kinprint.report.schema import decode, encode


@pytest.fixture(scope="module")
def found() -> kinprint.Diff:
    return kinprint.diff(DEMO / "base-a", DEMO / "a-cpt")


@pytest.mark.parametrize("form", [".json", ".html", ".md", ".csv", ".svg"])
def test_it_is_drawn_again_the_same(found: kinprint.Diff, form: str) -> None:
    again = decode(encode(found.document))
    assert type(again) is type(found.document)
    assert render(again, form, "ko") == render(found.document, form, "ko")


def test_a_folder_has_all_forms(found: kinprint.Diff, tmp_path: Path) -> None:
    files = {file.name for file in found.save(tmp_path / "out")}
    assert {"result.json", "report.html", "tensors.csv", "operations.csv"} <= files
    assert {"changes.png", "changes.ko.svg", "README.md", "README.ko.md"} <= files
    assert kinprint.Diff.load(tmp_path / "out") == found


def test_every_tensor_is_a_row(found: kinprint.Diff) -> None:
    rows = list(csv.DictReader(io.StringIO(render(found.document, ".csv").decode())))
    assert len(rows) == found.totals.tensors == len(found.tensors)
    assert {row["status"] for row in rows} == {"compared"}


def test_names_from_strangers_stay_text(found: kinprint.Diff) -> None:
    first, *rest = found.document.tensors
    nasty = "<script>alert(1)</script>\x1b[31m"
    odd = msgspec.structs.replace(first, role=nasty, tower=nasty, a=nasty, b=nasty)
    document = msgspec.structs.replace(found.document, tensors=[odd, *rest])
    for form in (".html", ".md"):
        said = render(document, form).decode()
        assert "<script>alert" not in said
        assert "\x1b" not in said


def test_both_languages_say_what_was_done(found: kinprint.Diff) -> None:
    found = kinprint.Diff(found.document, "ko")
    assert found.summary.startswith("base-a에서 a-cpt")
    page = render(found.document, ".html", "ko").decode()
    assert found.summary in page
