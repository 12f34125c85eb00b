"""A diff as a document and in all its forms: the same when redrawn, and harmless."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

import kinprint
from benchmarks.redteam.zoo import DEMO
from kinprint.diff.pairing import Correspondence
from kinprint.diff.results import Diff, Estimate, TensorChange
from kinprint.lineage.results import Settings
from kinprint.records import Cost, ModelRef, Operation, Relation, TensorStatus
from kinprint.report.build.diff import diff_document
from kinprint.report.exports import render
from kinprint.report.schema import LayerSource, MapPart, decode, encode
from kinprint.report.views.terminal.diff import diff_lines


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
    assert found.summary.startswith("base-a 모델에서 a-cpt 모델로")
    page = render(found.document, ".html", "ko").decode()
    assert found.summary in page


def change(numbers: int, read: int, changed: float, relative: float) -> TensorChange:
    weight = TensorChange(
        "up", "", 0, None, 0, None, None, "a", "b", "F32", "F32", 32, 32, (numbers, 1),
        TensorStatus.COMPARED,
    )  # fmt: skip
    return replace(
        weight, numbers=numbers, read=read, changed=Estimate(changed), relative=Estimate(relative)
    )


def test_a_tensor_counts_by_its_numbers_however_many_were_read() -> None:
    models = [ModelRef(name, "local", name) for name in "ab"]
    tensors = change(9000, 10, 1.0, 0.3), change(1000, 90, 0.0, 0.1)
    found = Diff(
        models[0], models[1], tensors, Relation.DERIVED, (), Correspondence(), True, Cost()
    )
    totals = diff_document(found, Cost(), Settings()).totals
    assert totals.changed == pytest.approx(0.9)
    assert totals.relative == pytest.approx((0.9 * 0.3**2 + 0.1 * 0.1**2) ** 0.5)
    assert (totals.compared_numbers, totals.read) == (10000, 100)


def test_what_was_not_compared_is_said_once() -> None:
    """Of a copy whose basis was turned no tensor is compared, for one reason."""
    found = kinprint.diff(DEMO / "base-a", DEMO / "a-rotated")
    assert [one.kind for one in found.operations] == [Operation.ROTATED]
    said = " ".join(line.text.strip() for line in diff_lines(found.document, "en"))
    assert "None of 57 tensors was compared" in said
    assert " of 0 numbers" not in said
    assert said.count("different bases") == 1
    assert said.count("undoing") == 1
    page = render(found.document, ".html").decode()
    assert page.count("written in different bases") == 1
    without = msgspec.structs.replace(found.document, operations=[])
    shown = kinprint.Diff(without).summary
    assert "0.0%" not in shown and "No tensor of base-a and a-rotated was compared" in shown


def test_a_notebook_shows_which_layer_comes_from_which(found: kinprint.Diff) -> None:
    moved = [LayerSource(layer=0, source=1), LayerSource(layer=1, source=0)]
    document = msgspec.structs.replace(found.document, map=MapPart(layers=moved))
    assert "1→0, 0→1" in kinprint.Diff(document)._repr_html_()
    assert "1→0" not in found._repr_html_()


def test_the_command_can_be_copied_from_markdown(found: kinprint.Diff) -> None:
    made = msgspec.structs.replace(found.document.made, command="kinprint diff a_b c_d")
    document = msgspec.structs.replace(found.document, made=made)
    assert "\n    kinprint diff a_b c_d\n" in render(document, ".md").decode()


@pytest.mark.parametrize("form", [".html", ".md"])
def test_what_is_passed_on_does_not_tell_folders(found: kinprint.Diff, form: str) -> None:
    assert str(DEMO.parent) not in str(render(found.document, form, "en"))
