"""Documents: the JSON holds everything, files come out the same, text stays text."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest

from kinprint.errors import FormatError
from kinprint.records import Cost, ModelRef
from kinprint.report.build.study import study_document
from kinprint.report.outputs import Output, decode_result, write_outputs
from kinprint.report.schema import (
    IdentifyDocument,
    StudyDocument,
    TreeDocument,
    UnmergeDocument,
    encode,
    settled,
)
from kinprint.report.views.csv import sheet
from kinprint.report.views.markdown.escape import escaped
from kinprint.report.views.terminal.study import study_lines
from kinprint.studies.results import Result, Table
from kinprint.studies.study import Request
from kinprint.text.lines import columns_of
from tests.report import samples

REF = ModelRef("base-a", "hub", "zoo/base-a", "c0ffee" * 6)
ASKED = Request(layers=(1, 2), rows=8)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("made")
    cost = Cost(10, 2, 0.5)
    document = study_document(samples.result(), samples.study(), ASKED, [REF], cost)
    written = write_outputs(settled(document), [Output(target)], "en")
    assert sorted(written) == sorted(path for path in target.rglob("*") if path.is_file())
    return target


def redraw(folder: Path, target: Path) -> None:
    document = decode_result((folder / "result.json").read_bytes())
    assert not isinstance(document, IdentifyDocument | TreeDocument | UnmergeDocument)
    write_outputs(document, [Output(target)], "en")


def test_the_folder_has_everything(folder: Path) -> None:
    names = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    pictures = {
        f"{stem}{end}"
        for stem in ("lines", "heat3", "parts/panels")
        for end in (".png", ".svg", ".ko.png", ".ko.svg")
    }
    assert names == {"result.json", "main/pairs.csv", "README.md", "README.ko.md"} | pictures


def test_pictures_of_replicas_say_so(folder: Path) -> None:
    svg = (folder / "heat3.svg").read_text("utf-8")
    assert "<!-- these values are invented -->" in svg


def test_redrawing_gives_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    redraw(folder, tmp_path)
    for made in folder.rglob("*"):
        if made.is_file():
            assert (tmp_path / made.relative_to(folder)).read_bytes() == made.read_bytes(), made


def test_the_json_is_versioned_and_has_no_nan(folder: Path) -> None:
    def refuse(word: str) -> None:
        raise AssertionError(word)

    found = json.loads((folder / "result.json").read_text("utf-8"), parse_constant=refuse)
    assert found["schema"] == "kinprint.study/1"
    assert found["facts"] == {"mean": 0.25, "none": None, "inner": {"deep": 2.5, "list": [1, 2]}}
    assert found["statuses"] == {"ok": 20, "undefined": 1}
    assert found["tables"][0]["rows"][20][2] is None
    assert found["sources"][0]["commit"] == REF.commit
    assert list(found)[-1] == "read"


def test_a_result_comes_back_whole(folder: Path) -> None:
    back, given = decode_result((folder / "result.json").read_bytes()), samples.result()
    assert isinstance(back, StudyDocument)
    assert back.charts[0] == given.charts[0]
    assert back.charts[2] == samples.panels()
    assert back.findings[0]["ko"].startswith("한국어 evil|name`")
    assert back.tables[0].rows[:3] == tuple(
        (row[0], str(row[1]).replace("\ud800", "\\ud800"), *row[2:])
        for row in given.tables[0].rows[:3]
    )
    assert settled(back) == back and encode(back) == (folder / "result.json").read_bytes()


@pytest.mark.parametrize(
    "raw", [b"", b"[]", b"{}", b'{"schema": "kinprint.study/2"}', b'{"schema": "kinprint.study/1"}']
)
def test_other_files_are_refused_with_a_sentence(raw: bytes, tmp_path: Path) -> None:
    file = tmp_path / "result.json"
    file.write_bytes(raw)
    with pytest.raises(FormatError, match=r"result\.json"):
        decode_result(file.read_bytes())


def test_sheets_keep_every_digit_and_start_no_formula(folder: Path) -> None:
    raw = (folder / "main/pairs.csv").read_bytes()
    assert raw.count(b"\r\n") == 22
    rows = list(csv.reader(raw.decode("utf-8").splitlines(keepends=True)))
    assert rows[0] == ["layer", "model", "cosine", "sample", "status", "reason"]
    assert float(rows[2][2]) == 1 / 7
    assert rows[21] == ["20", "'=1+1", "", "", "undefined", 'a "quote", and\na line']
    plain = Table("t", samples.words("t"), ("a", "b"), ((True, "-0.5"), (-1.5, "@x")))
    assert sheet(plain) == b"a,b\r\ntrue,-0.5\r\n-1.5,'@x\r\n"


def test_control_characters_are_written_out() -> None:
    odd = "\x1b[2Jno\x00 \x9b1m \u202eleft \udc80 é 한 \n"
    table = Table("t", samples.words("t"), ("a",), ((odd,),))
    assert sheet(table).decode("utf-8").partition("\r\n")[2] == (
        '"\\x1b[2Jno\\x00 \\x9b1m \\u202eleft \\udc80 é 한 \n"\r\n'
    )


@pytest.mark.parametrize("name", ["README.md", "README.ko.md"])
def test_the_page_says_what_it_must(folder: Path, name: str) -> None:
    text = (folder / name).read_text("utf-8")
    korean = name == "README.ko.md"
    before = text[: text.index("## ")]
    assert "**replica: these values are invented**" in before
    assert "c0ffeec0ffee" in before
    for heading in (
        ("보여 주는 것", "보여 줄 수 없는 것", "결과", "상태별 행 수")
        if korean
        else ("What it shows", "What it cannot show", "Findings", "Rows by status")
    ):
        assert f"## {heading}\n" in text
    assert ("최대 8개" if korean else "at most 8 rows") in text
    assert ("21행 가운데 12행" if korean else "12 of 21 rows") in text
    assert "| undefined | 1 |" in text
    for target in re.findall(r"\]\(([^)]+)\)", text):
        if "a.b" not in target:  # the hostile one, which is no link
            assert (folder / target).is_file(), target
    assert ("lines.ko.png" in text) == korean


def test_strangers_write_no_markdown(folder: Path) -> None:
    text = (folder / "README.md").read_text("utf-8")
    assert "<script" not in text.replace("\\<script", "")
    assert "http://" not in text
    assert "\x1b" not in text and "\u202e" not in text
    for line in text.splitlines():
        if line.startswith("| 3 |"):
            assert len(re.findall(r"(?<!\\)\|", line)) == 7
    assert escaped("# head") == "\\# head"
    assert escaped("1. list") == "1\\. list"
    assert escaped("a\n\nb") == "a b"


def test_an_interrupted_write_leaves_what_was_there(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "result.json").write_bytes(b"old")

    def fail(self: Path, target: Path) -> None:
        raise OSError("no")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="no"):
        redraw(folder, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["result.json"]
    assert (tmp_path / "result.json").read_bytes() == b"old"


def test_names_lead_nowhere_else(tmp_path: Path) -> None:
    tables = tuple(
        Table(name, samples.words("t"), ("a",), ((1,),)) for name in ("../../up", "x y", "x-y", "")
    )
    inside = tmp_path / "inside"
    document = study_document(Result("sample", (), tables), samples.study())
    write_outputs(document, [Output(inside)], "en")
    assert {path.name for path in tmp_path.rglob("*.csv")} == {
        "up.csv", "x-y.csv", "x-y-2.csv", "unnamed.csv",
    }  # fmt: skip
    assert [path.name for path in tmp_path.iterdir()] == ["inside"]


@pytest.mark.parametrize("language", ["en", "ko"])
def test_a_terminal_of_eighty_columns_is_wide_enough(language: str) -> None:
    document = settled(study_document(samples.result(), samples.study(), ASKED))
    shown = [line.text for line in study_lines(document, language)]
    assert max(columns_of(line) for line in shown) <= 80
    text = "\n".join(shown)
    assert "replica: these values are invented" in text
    assert "undefined 1" in text
    assert "\x1b" not in text
    assert "0.1429" in text
