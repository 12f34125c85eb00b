"""Korean has one word for each thing, as the table in CONTRIBUTING.md lists them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROW = re.compile(
    r"^\| [^|]+ \| (?P<used>[^|]*[가-힣][^|]*) \| (?P<rejected>[^|]+) \|$", re.MULTILINE
)
TEXTS = [
    ROOT / "README.ko.md",
    ROOT / "src" / "kinprint" / "text" / "catalogues" / "ko.po",
    *sorted((ROOT / "docs").glob("*.ko.md")),
]


def rejected() -> list[str]:
    rows = ROW.finditer((ROOT / "CONTRIBUTING.md").read_text("utf-8"))
    return [word for row in rows for word in row["rejected"].split(", ")]


PARTICLE = re.compile(
    r"\{(?P<field>[a-z_]+)(?P<form>:[^}]*)?\}['’”]?"
    r"(?P<particle>은|는|이|가|을|를|과|와|로|으로|라고|이라고|라는|이라는|\(으\)로|\(이\)[가-힣]+)(?![가-힣])"
)
UNITS = {"size", "share"}  # these end in a unit


def test_no_particle_follows_what_code_fills_in() -> None:
    catalogue = (ROOT / "src" / "kinprint" / "text" / "catalogues" / "ko.po").read_text("utf-8")
    found = [
        match[0]
        for match in PARTICLE.finditer(catalogue)
        if match["field"] not in UNITS and not (match["form"] or "").endswith("%")
    ]
    assert found == []
    assert not re.findall(r"은\(는\)|이\(가\)|을\(를\)|과\(와\)|와\(과\)|\(으\)로", catalogue)


def test_the_table_is_read() -> None:
    assert {"p-값", "영분포", "회전 기저"} <= set(rejected())


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.name)
def test_no_rejected_term_is_used(path: Path) -> None:
    text = path.read_text("utf-8")
    assert [word for word in rejected() if word in text] == []
