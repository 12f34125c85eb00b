"""Results as Python users have them: the record, the document, files, pictures, a notebook view."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import msgspec
import pytest

import kinprint
from kinprint.report.results import Drawing, StudyDrawing
from kinprint.report.schema import encode
from kinprint.report.views.notebook import fragment
from tests.report.kin_documents import HOSTILE, RELATIONS, comparison, matrix

VOID = {"circle", "path", "br"}


class Balance(HTMLParser):
    """What tags there are, and whether each is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.parametrize("language", ["en", "ko"])
@pytest.mark.parametrize("relation", RELATIONS)
def test_the_notebook_view_of_a_pair(relation: str, language: str) -> None:
    document = comparison(relation)
    html = fragment(document, language)
    balance = Balance()
    balance.feed(html)
    assert balance.open == [] and "script" not in balance.seen
    told = document.verdict.summary_ko if language == "ko" else document.verdict.summary
    assert told.partition("(")[0] in html
    assert ("0.043" in html) == (relation == "no-evidence")
    assert html.count("<svg") >= 7
    assert "http" not in html and len(html) < 60_000


def test_styles_stay_inside_and_follow_the_theme() -> None:
    style = re.search(r"<style>(.*?)</style>", fragment(comparison()), re.DOTALL)
    assert style is not None
    for rule in re.sub(r"/\*.*?\*/", "", style[1]).split("}"):
        heads = rule.partition("{")[0].strip()
        assert all(head.strip().startswith(".kinprint-result") for head in heads.split(",") if head)
    assert "background: none" in style[1] and "color: inherit" in style[1]


def test_the_notebook_view_of_many() -> None:
    html = fragment(matrix(7))
    balance = Balance()
    balance.feed(html)
    assert balance.open == [] and html.count('<td class="kp-cell"') == 49
    assert "There is no model." in html  # what could not be read
    assert '<td class="kp-cell"' not in fragment(matrix(60))  # no grid that nobody could read
    assert len(fragment(matrix(200))) < 30_000


def test_hostile_names_are_text_in_a_notebook() -> None:
    html = fragment(comparison("derived", HOSTILE, "org/two"))
    assert "<script" not in html and "&lt;script&gt;" in html and "\u202e" not in html
    shown = repr(Drawing(comparison("derived", "a\x1b[31m\nb", "org/two")))
    assert "\n" not in shown and "\x1b" not in shown


def test_a_report_from_its_file_its_bytes_or_its_document(tmp_path: Path) -> None:
    document = comparison()
    file = tmp_path / "result.json"
    file.write_bytes(encode(document))
    for given in (file, str(file), file.read_bytes(), document):
        found = kinprint.report(given)
        assert repr(found).startswith("<derived: one and two share trained weights")
        assert "kinprint-result" in found._repr_html_()  # type: ignore[union-attr]
    (page,) = kinprint.report(file).save(tmp_path / "page.html")
    assert page.read_bytes() == kinprint.report(document).save(tmp_path / "b.html")[0].read_bytes()
    many = kinprint.report(matrix(), "ko")
    assert "모델 7개" in repr(many) and many.figure().get_figwidth() == 8
    with pytest.raises(ValueError, match="evidence, layers, norms"):
        kinprint.report(document).figure("sample")
    with pytest.raises(TypeError):
        kinprint.report(7)  # type: ignore[arg-type]


def test_a_warning_travels_with_the_view() -> None:
    label = "org/one: NOT the real model: a sparse replica made by kinprint"
    labelled = msgspec.structs.replace(comparison(), labels=[label])
    assert "NOT the real model" in fragment(labelled)
    assert "실제 모델이 아님" in fragment(labelled, "ko")


def test_verbs_give_records_and_documents(demo: Path, tmp_path: Path) -> None:
    a, b = (str(demo / "zoo" / name) for name in ("base-a", "a-cpt"))
    found = kinprint.compare(a, b, level="quick", cache=False)
    assert found.verdict.relation == found.document.verdict.relation == "derived"
    assert found.found.settings.level == found.settings.level == "quick"
    assert found.evidence == found.found.evidence
    with pytest.raises(AttributeError):
        _ = found.nothing
    many = kinprint.matrix([a, b], level="quick", cache=False)
    assert many.pairs[0].verdict.relation == "derived" and len(many.document.pairs) == 1
    (file,) = many.save(tmp_path / "m.json")
    told = "<2 models: 1 of 1 pairs share trained weights>"
    assert repr(kinprint.report(file)) == repr(many) == told


def test_a_study_from_python(demo: Path, tmp_path: Path) -> None:
    names = [str(demo / "zoo" / name) for name in ("base-a", "base-b")]
    done = kinprint.study("same-layer", *names, cache=False)
    assert isinstance(done, StudyDrawing) and "same-layer" in repr(done)
    written = done.save(tmp_path / "study")
    again = kinprint.report(tmp_path / "study" / "result.json").save(tmp_path / "again")
    assert [one.name for one in written] == [one.name for one in again]
    for one, other in zip(written, again, strict=True):
        assert one.read_bytes() == other.read_bytes()
    done.figure()
