"""Documents as files: the ending chooses the form, and the JSON alone gives all of them again."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import msgspec
import pytest

from kinprint.errors import BadOption, FormatError
from kinprint.report import answer
from kinprint.report.exports import OWN, render
from kinprint.report.outputs import decode_result, outputs, write_outputs
from kinprint.report.schema import (
    ComparisonDocument,
    DiffDocument,
    MatrixDocument,
    encode,
    settled,
)
from kinprint.report.views.csv import sheet, tables_of
from kinprint.report.views.markdown.escape import escaped
from tests.report.kin_documents import HOSTILE, RELATIONS, comparison, matrix

DOCUMENTS: dict[str, ComparisonDocument | MatrixDocument] = {
    "comparison": comparison(),
    "strangers": comparison("no-evidence"),
    "matrix": matrix(),
}
STARTS = {".json": b"{", ".html": b"<!doctype", ".png": b"\x89PNG", ".svg": b"<?xml", ".md": b"# "}


@pytest.mark.parametrize(
    ("name", "form"),
    [
        pytest.param(name, form, marks=pytest.mark.slow)
        if name == "strangers" and form in (".png", ".svg")
        else (name, form)
        for name in DOCUMENTS
        for form in (one.ending for one in OWN)
    ],
)
def test_the_json_gives_every_form_again(name: str, form: str, tmp_path: Path) -> None:
    document = settled(DOCUMENTS[name])
    (first,) = write_outputs(document, outputs([tmp_path / f"first{form}"]), "ko")
    (kept,) = write_outputs(document, outputs([tmp_path / "kept.json"]), "ko")
    read = decode_result(kept.read_bytes())
    assert isinstance(read, ComparisonDocument | MatrixDocument | DiffDocument)
    assert first.read_bytes() == render(read, form, "ko")
    assert first.read_bytes().startswith(STARTS.get(form, b""))
    assert not list(tmp_path.glob(".*"))  # nothing half-written is left


@pytest.mark.parametrize("name", ["comparison", "matrix"])
def test_a_folder_takes_all_forms(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "new" / "folder"
    written = write_outputs(settled(DOCUMENTS[name]), outputs([folder]), "en")
    names = {file.name for file in written}
    assert {"result.json", "report.html", "README.md", "README.ko.md"} <= names
    pictures = ("evidence", "layers", "norms") if name == "comparison" else ("matrix",)
    assert {"evidence.csv", "parts.csv"} <= names if name == "comparison" else "pairs.csv" in names
    for picture in pictures:
        ends = (".png", ".svg", ".ko.png", ".ko.svg")
        assert {f"{picture}{end}" for end in ends} <= names
    for page in ("README.md", "README.ko.md"):
        links = re.findall(r"\]\(([^)]+)\)", (folder / page).read_text("utf-8"))
        assert len(links) > 3 and {link for link in links if not (folder / link).is_file()} == set()


def test_endings_are_read_before_anything_is_done(tmp_path: Path) -> None:
    found = outputs([tmp_path / "A.HTML", tmp_path / "plain", f"{tmp_path}/v1.5/", tmp_path])
    assert [one.form and one.form.ending for one in found] == [".html", None, None, None]
    with pytest.raises(BadOption, match=r"report\.docx.*\.html"):
        outputs([tmp_path / "report.docx"])
    (tmp_path / "file").write_text("")
    with pytest.raises(BadOption, match="it is a file; give it one of the endings"):
        outputs([tmp_path / "file"])
    with pytest.raises(BadOption, match="a folder is written; name a folder"):
        outputs([f"{tmp_path}/file/"])
    with pytest.raises(BadOption, match="nothing can be written"):
        outputs([tmp_path / "file" / "report.html"])
    with pytest.raises(BadOption, match="nothing can be written"):
        outputs(["/proc/nowhere/report.html"])
    assert sorted(one.name for one in tmp_path.iterdir()) == ["file"]


def test_nothing_is_written_into_a_model_that_is_read(tmp_path: Path) -> None:
    model, beside = tmp_path / "model", tmp_path / "other.gguf"
    model.mkdir()
    beside.write_bytes(b"GGUF")
    (tmp_path / "link").symlink_to(model)
    read = [str(model), beside.as_uri(), "org/name", "no such name", str(tmp_path / "nowhere")]
    for place in ("model/a.html", "model/", "model/new/", "link/a.html", "other.gguf/a.html"):
        with pytest.raises(BadOption, match="it lies in the model"):
            outputs([f"{tmp_path}/{place}"], models=read)
    assert outputs([tmp_path / "a.html", tmp_path / "models.html"], models=read)
    assert [one.name for one in tmp_path.iterdir() if one.is_file()] == ["other.gguf"]


def test_json_of_others_is_not_replaced(tmp_path: Path) -> None:
    config, empty, ours = (tmp_path / f"{name}.json" for name in ("config", "empty", "ours"))
    config.write_text('{"architectures": ["LlamaForCausalLM"]}')
    empty.write_text("")
    ours.write_bytes(encode(DOCUMENTS["matrix"]))
    with pytest.raises(BadOption, match="holds something else"):
        outputs([config])
    again = tmp_path / "again.json"
    again.write_text(json.dumps(json.loads(ours.read_bytes()), sort_keys=True, indent=1))
    assert len(outputs([empty, ours, again])) == 3
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "result.json").write_text('{"mine": 1}')
    with pytest.raises(BadOption, match="holds other files"):
        outputs([folder])


def test_a_link_to_itself_lies_in_no_model(tmp_path: Path) -> None:
    loop = tmp_path / "loop.json"
    loop.symlink_to(loop)
    assert outputs([loop], models=[str(tmp_path / "model")])


@pytest.mark.parametrize("given", ["-", "-/"])
def test_the_sign_for_a_stream_is_no_folder(given: str) -> None:
    with pytest.raises(BadOption, match="--format json"):
        outputs([given])


def test_nothing_is_written_where_one_form_cannot_be_drawn(tmp_path: Path) -> None:
    """A relation that no page knows fails while drawing, and the JSON is not left alone."""
    document = comparison()
    verdict = msgspec.structs.replace(document.verdict, relation="cousins")
    broken = msgspec.structs.replace(document, verdict=verdict)
    wanted = outputs([tmp_path / "a.json", tmp_path / "a.md"])
    with pytest.raises(KeyError):
        write_outputs(broken, wanted, "en")
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_result_is_refused_with_its_name() -> None:
    for raw in (
        b"",
        b"\xff\xfe",
        b"[1]",
        b"{}",
        b'{"schema": "kinprint.inspect/1"}',
        b"{" * 99_999,
    ):
        with pytest.raises(FormatError, match=r"odd\.json"):
            decode_result(raw, "odd.json")
    whole = encode(comparison())
    for cut in (
        whole[: len(whole) // 2],
        whole.replace(b'"relation": "derived"', b'"relation": 7'),
    ):
        with pytest.raises(FormatError, match=r"odd\.json"):
            decode_result(cut, "odd.json")


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("language", ["en", "ko"])
def test_the_markdown_says_the_answer_and_its_limits(relation: str, language: str) -> None:
    document = comparison(relation)
    page = render(document, ".md", language).decode("utf-8")
    told = [answer.summary(document, document.verdict, language)]
    told += [one.says for one in answer.statements(document, document.verdict, language)]
    for sentence in told:
        assert escaped(sentence) in page
    assert (
        "## 이 결과가 보여 주지 않는 것" if language == "ko" else "## What this does not"
    ) in page
    assert ("0.043" in page) == (relation == "no-evidence")
    assert document.made.command in page


def test_texts_of_strangers_stay_texts() -> None:
    document = comparison("derived", HOSTILE, "org/two")
    page = render(document, ".md").decode("utf-8")
    assert "<script>" not in page and "\u202e" not in page and "[x](javascript" not in page
    many = msgspec.structs.replace(
        matrix(3), models=[*matrix(2).models, document.models[0]], labels=[HOSTILE], notes=[HOSTILE]
    )
    for form in (".md", ".html"):
        text = render(many, form).decode("utf-8")
        assert "<script>alert" not in text and "\u202e" not in text


def test_the_sheet_has_every_digit() -> None:
    document = comparison()
    assert isinstance(document, ComparisonDocument)
    parts = list(csv.DictReader(io.StringIO(render(document, ".csv").decode("utf-8"))))
    assert [row["component"] for row in parts] == [one.component for one in document.verdict.parts]
    assert {row["state"] for row in parts} == {"shared"} and parts[0]["layer"] == ""
    rows = list(csv.DictReader(io.StringIO(sheet(tables_of(document)[1]).decode("utf-8"))))
    assert [row["test"] for row in rows] == [one.test for one in document.evidence]
    for row, one in zip(rows, document.evidence, strict=True):
        assert row["log10_p"] == repr(one.log10_p)
        assert row["effect"] == ("" if one.effect is None else repr(one.effect))
    pairs = list(csv.DictReader(io.StringIO(render(matrix(5), ".csv").decode("utf-8"))))
    assert len(pairs) == 10 and {row["relation"] for row in pairs} >= {"no-evidence"}


def test_tests_that_are_on_no_menu_have_words_as_well() -> None:
    known = msgspec.structs.replace(comparison().evidence[0], test="Q.known", tier="calibrated")
    document = msgspec.structs.replace(comparison(), evidence=[known])
    (row,) = csv.DictReader(io.StringIO(sheet(tables_of(document)[1]).decode("utf-8")))
    assert row["what_en"] and row["what_ko"] and "<" not in row["what_en"]
    assert row["what_ko"] in render(document, ".md", "ko").decode("utf-8")


def test_folders_with_other_files_are_left_alone(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "README.md").write_text("mine", encoding="utf-8")
    with pytest.raises(BadOption, match="other files"):
        outputs([own])
    with pytest.raises(BadOption, match="name a file"):
        outputs([""])
    ours = tmp_path / "ours"
    write_outputs(matrix(3), outputs([f"{ours}/"]), "en")
    assert write_outputs(matrix(3), outputs([ours]), "en")  # again, over its own files


def test_p_values_are_rounded_towards_the_weaker_claim() -> None:
    from kinprint.report.numbers import p_value

    assert p_value(-5085.85) == "10^-5085" and p_value(-7.29) == "10^-7.2"
    assert p_value(-0.3) == "0.51" and p_value(0.0) == "1.00" and p_value(None) == "–"
