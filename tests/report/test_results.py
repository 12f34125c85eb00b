"""Results as Python users have them: fields, files, tables, pictures, a notebook view."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import msgspec
import pytest
from markupsafe import escape

import kinprint
from kinprint.errors import BadOption, FileMissing, FormatError
from kinprint.records import TAKEN_OVER
from kinprint.report import answer
from kinprint.report.exports import exports
from kinprint.report.results import tables
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
    assert answer.summary(document, document.verdict, language) in html
    for one in answer.statements(document, document.verdict, language):
        assert str(escape(one.says)) in html
    assert ("0.043" in html) == (relation == "no-evidence")
    changed = relation in TAKEN_OVER and relation != "identical"
    assert ("kinprint diff org/one org/two" in html) == changed
    page = exports()[".html"].content(document, language).decode()
    assert (">kinprint diff org/one org/two<" in page) == changed
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
    shown = repr(kinprint.Comparison(comparison("derived", "a\x1b[31m\nb", "org/two")))
    assert "\n" not in shown and "\x1b" not in shown


def test_a_report_from_its_file_its_bytes_or_its_data(tmp_path: Path) -> None:
    result = kinprint.Comparison(comparison())
    (file,) = result.save(tmp_path / "result.json")
    for given in (file, str(file), tmp_path, file.read_bytes(), result.to_dict()):
        found = kinprint.report(given)
        assert found == result
        assert repr(found).startswith("<derived: org/one and org/two share trained weights")
        assert "kinprint-result" in found._repr_html_()
    (page,) = kinprint.report(file).save(tmp_path / "page.html")
    assert page.read_bytes() == result.save(tmp_path / "b.html")[0].read_bytes()
    with pytest.raises(BadOption, match="evidence, layers, norms"):
        result.figure("sample")
    with pytest.raises(FormatError, match="holds a Comparison"):
        kinprint.Matrix.load(file)
    with pytest.raises(FileMissing):
        kinprint.report(tmp_path / "nowhere.json")


def test_a_result_speaks_the_language_that_it_is_asked_in() -> None:
    many = kinprint.Matrix(matrix(), "ko")
    assert "모델 7개" in repr(many) and many.figure().get_figwidth() == 8
    many.language = "en"
    assert repr(many).startswith("<7 models")


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_result_is_a_table_of_either_library(library: str) -> None:
    document = matrix(7)
    frame = kinprint.Matrix(document).to_frame(library=library)
    assert type(frame).__module__.partition(".")[0] == library
    assert frame.shape[0] == len(document.pairs)
    assert list(frame["relation"]) == [pair.relation for pair in document.pairs]
    pair = kinprint.Comparison(comparison())
    assert pair.to_frame("evidence", library=library).shape[0] == len(comparison().evidence)
    parts = pair.to_frame(library=library)
    assert list(parts["state"]) == [one.state for one in pair.parts]


def test_without_a_library_of_tables_the_error_names_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "find_spec", lambda name: None)
    with pytest.raises(kinprint.MissingLibrary, match="pip install pandas"):
        kinprint.Matrix(matrix(7)).to_frame()
    with pytest.raises(BadOption, match="pandas, polars"):
        kinprint.Matrix(matrix(7)).to_frame(library="excel")


def test_a_warning_travels_with_the_view() -> None:
    label = "org/one: NOT the real model: a sparse replica made by kinprint"
    labelled = msgspec.structs.replace(comparison(), labels=[label])
    assert "NOT the real model" in fragment(labelled)
    assert "실제 모델이 아님" in fragment(labelled, "ko")


def test_verbs_give_documented_fields(demo: Path, tmp_path: Path) -> None:
    a, b = (demo / "zoo" / name for name in ("base-a", "a-cpt"))
    found = kinprint.compare(a, b, level=kinprint.Level.QUICK, cache=False)
    assert found.relation is kinprint.Relation.PARTIAL  # norms alone
    assert found.relation == found.to_dict()["verdict"]["relation"] == found.kind.relation
    assert found.asked.level == "quick" and found.alpha == found.link.alpha == 1e-6
    assert found.link.log10_p is not None and found.link.log10_p < -6
    assert 0 < (found.amount.linked or 0) <= 1 and found.coverage.read == found.amount.read
    norms = [one for one in found.parts if one.part.component is kinprint.Component.NORMS]
    assert {one.state for one in norms} == {kinprint.PartState.SHARED}
    unread = {one.component for one in found.coverage.open}
    assert kinprint.Component.ATTENTION in unread
    assert list(found.statements) == ["link", "what", "kind", "amount", "coverage"]
    assert [model.given for model in found.models] == [str(a), str(b)]
    assert found.summary in repr(found)
    with pytest.raises(AttributeError):
        _ = found.nothing  # type: ignore[attr-defined]
    many = kinprint.matrix([a, b], level="quick", cache=False)
    assert many.relations == (kinprint.Relation.PARTIAL,) and len(many.pairs) == 1
    assert many.pair(b, a) is many.pairs[0]
    (file,) = many.save(tmp_path / "m.json")
    told = "<2 models: of 1 pair 1 was found to share weights>"
    assert repr(kinprint.report(file)) == repr(many) == told


def test_a_study_from_python(demo: Path, tmp_path: Path) -> None:
    names = [demo / "zoo" / name for name in ("base-a", "base-b")]
    done = kinprint.study("same-layer", *names, cache=False)
    assert isinstance(done, kinprint.StudyResult) and "same-layer" in repr(done)
    written = done.save(tmp_path / "study")
    again = kinprint.StudyResult.load(tmp_path / "study").save(tmp_path / "again")
    assert [one.name for one in written] == [one.name for one in again]
    for one, other in zip(written, again, strict=True):
        assert one.read_bytes() == other.read_bytes()
    done.figure()
    assert done.to_frame().shape[0] == len(next(iter(done.tables.values())).rows)
    assert "<table>" in done._repr_html_()


def test_a_model_that_cannot_be_opened_is_set_aside(demo: Path, tmp_path: Path) -> None:
    names = [demo / "zoo" / "base-a", tmp_path / "gone", demo / "zoo" / "base-b"]
    done = kinprint.study("same-layer", *names, layers=[3], cache=False)
    assert [one.given for one in done.failures] == [str(tmp_path / "gone")]
    assert done.models == ("base-a", "base-b")
    with pytest.raises(kinprint.BadReference):
        kinprint.study("same-layer", *names[:2], cache=False)
