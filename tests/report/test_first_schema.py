"""Documents of schema 1 are still drawn, with what they know and without what they do not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from kinprint.records import Component, Relation
from kinprint.report.exports import OWN, render
from kinprint.report.schema import ComparisonDocument, MatrixDocument, decode, encode
from kinprint.report.views.terminal.comparison import comparison_lines, matrix_lines

FOLDER = Path(__file__).with_name("first")
SCHEMAS = Path(__file__).resolve().parents[2] / "schema"


@pytest.mark.parametrize(("name", "schema"), [("comparison", "compare"), ("matrix", "matrix")])
def test_the_files_are_what_version_one_wrote(name: str, schema: str) -> None:
    found = json.loads((FOLDER / f"{name}.json").read_bytes())
    rules = json.loads((SCHEMAS / f"kinprint.{schema}-1.schema.json").read_bytes())
    Draft202012Validator(rules).validate(found)


def comparison() -> ComparisonDocument:
    found = decode((FOLDER / "comparison.json").read_bytes())
    assert isinstance(found, ComparisonDocument)
    return found


def matrix() -> MatrixDocument:
    found = decode((FOLDER / "matrix.json").read_bytes())
    assert isinstance(found, MatrixDocument)
    return found


def test_a_comparison_keeps_its_relation_and_its_link() -> None:
    given = json.loads((FOLDER / "comparison.json").read_bytes())
    verdict = comparison().verdict
    assert verdict.relation is verdict.kind.relation is Relation.SAME_INIT
    assert verdict.link.log10_p == given["verdict"]["log10_p"]
    assert verdict.coverage.power == given["verdict"]["power"]
    assert len(comparison().evidence) == len(given["evidence"])


def test_what_it_did_not_tell_is_not_told() -> None:
    verdict = comparison().verdict
    assert not verdict.parts and verdict.amount.linked is None and verdict.coverage.read is None
    assert "does not tell" in verdict.statements.what
    assert "earlier version" in verdict.statements.kind
    assert "earlier version" in verdict.statements.coverage
    assert "10^-" in verdict.statements.link
    assert "10^-" not in verdict.summary + verdict.statements.kind + verdict.statements.what


def test_it_is_said_in_other_languages_too() -> None:
    korean = [line.text for line in comparison_lines(comparison(), "ko")]
    assert any("이전 버전" in line for line in korean)
    told = [line.text for line in matrix_lines(matrix(), "ko")]
    assert any("그런 모델이 없습니다" in line for line in told)


def test_pairs_of_a_matrix_keep_their_components() -> None:
    related = [one for one in matrix().pairs if one.relation is Relation.DERIVED]
    assert related and all(one.statements is not None for one in related)
    assert Component.EMBEDDING in related[0].components
    strangers = [one for one in matrix().pairs if one.relation is Relation.NO_EVIDENCE]
    assert all(one.statements is None for one in strangers)


@pytest.mark.parametrize("form", [one.ending for one in OWN])
@pytest.mark.parametrize("name", ["comparison", "matrix"])
def test_every_form_is_drawn_of_it(name: str, form: str) -> None:
    document = comparison() if name == "comparison" else matrix()
    assert render(document, form, "ko")


@pytest.mark.parametrize("document", [comparison(), matrix()], ids=["comparison", "matrix"])
def test_written_again_it_is_a_document_of_today(
    document: ComparisonDocument | MatrixDocument,
) -> None:
    raw = encode(document)
    assert json.loads(raw)["schema"].endswith("/2")
    assert encode(decode(raw)) == raw
