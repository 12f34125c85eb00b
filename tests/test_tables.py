"""Tables of rules: what was compiled is what was written, and nothing else is believed."""

from __future__ import annotations

import shutil
import tomllib
from pathlib import Path

import pytest

from kinprint.tables import FOLDER, compile_tables, read_table

SOURCE = '[one]\nwords = ["a", "b"]\nshare = 1.0\nrange = [0, inf]\n'
TABLE = {"one": {"words": ["a", "b"], "share": 1.0, "range": [0, float("inf")]}}


@pytest.fixture
def table(tmp_path: Path) -> Path:
    file = tmp_path / "inner" / "rules.toml"
    file.parent.mkdir()
    file.write_text(SOURCE, encoding="utf-8")
    return file


def test_a_table_is_read_with_and_without_what_it_was_compiled_to(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert read_table(table) == TABLE
    assert compile_tables(tmp_path) == [table.with_name("rules.toml.json")]
    monkeypatch.setattr(tomllib, "loads", None)
    assert read_table(table) == TABLE


def test_a_changed_table_is_read_from_its_source(table: Path, tmp_path: Path) -> None:
    compile_tables(tmp_path)
    table.write_text(SOURCE.replace('"b"', '"c"'), encoding="utf-8")
    assert read_table(table)["one"]["words"] == ["a", "c"]


@pytest.mark.parametrize("damaged", ["", "[1", "null", "[1, 2, 3]", '{"a": 1}', "\ud800"])
def test_what_is_damaged_is_passed_over(table: Path, tmp_path: Path, damaged: str) -> None:
    (compiled,) = compile_tables(tmp_path)
    compiled.write_bytes(damaged.encode("utf-8", "surrogatepass"))
    assert read_table(table) == TABLE


def test_every_table_of_ours_can_be_compiled(tmp_path: Path) -> None:
    for source in FOLDER.rglob("*.toml"):
        file = tmp_path / source.name
        shutil.copy(source, file)
        written = tomllib.loads(source.read_text("utf-8"))
        compile_tables(tmp_path)
        assert repr(read_table(file)) == repr(written), source.name
        file.unlink()
