"""Comparisons as documents and lines: every number survives, and every line fits."""

from __future__ import annotations

import json
import math
import re
import shlex
from itertools import product
from typing import Any

import pytest
from msgspec.structs import replace

from kinprint import text
from kinprint.errors import BadOption, RepositoryMissing
from kinprint.lineage.charge import Charge
from kinprint.lineage.controls import Control
from kinprint.lineage.results import (
    Comparison,
    ComparisonPlan,
    Matrix,
    PairVerdict,
    Settings,
    UnreadModel,
)
from kinprint.lineage.tests.menu import menu
from kinprint.records import (
    Component,
    Cost,
    Evidence,
    Group,
    ModelRef,
    Part,
    PartFinding,
    PartState,
    Reason,
    Relation,
    Status,
    Tier,
    Verdict,
)
from kinprint.report import answer
from kinprint.report.build.comparison import comparison_document, matrix_document, plan_document
from kinprint.report.evidence import findings
from kinprint.report.schema import Document, decode, encode
from kinprint.report.statements import headline
from kinprint.report.views.terminal.comparison import comparison_lines, matrix_lines, plan_lines
from kinprint.text.lines import columns_of
from tests.report.kin_documents import RELATIONS, found_verdict

ROUTERS = text.message("note.left-out.routers")
NOTE = text.message(
    "note.about-model",
    model="org/a-model",
    note="rather long words on how one of the models was read, and on what is left",
)
LABEL = text.message("note.about-model", model="org/a-model", note="NOT the real model")
A = ModelRef("org/a-model-with-a-long-name-of-many-words@main", "hub", "org/a-model", "c" * 40)
B = ModelRef("/somewhere/b/", "local", "/somewhere/b")


def evidence() -> tuple[Evidence, ...]:
    """One entry for each of the menu, some spoken, one with numbers that JSON has not."""
    found = []
    for at, entry in enumerate(menu("standard")):
        if at % 3 == 2:
            found.append(entry.test.no_result(Reason.ATTENTION_HEADS))
            continue
        odd = math.nan if at == 0 else 0.5
        found.append(
            Evidence(
                entry.name, Tier.EXACT, entry.test.group, Status.OK, -17.0 * at, odd, odd, 64,
                "signs", -40.0, (0.1, math.inf), ("up",), (0, 3), alignment_quality=odd,
            )
        )  # fmt: skip
    return tuple(found)


def comparison(relation: str) -> Comparison:
    verdict = found_verdict(Relation(relation), -12.5)
    return Comparison(
        A, B, Settings(), verdict, evidence(), Cost(10, 2, 0.5),
        Charge.for_menu(menu("standard")), (1, 2), 99, (ROUTERS,),
        (NOTE,),
        (LABEL,), (Control("org/a-model", "c", evidence()),),
    )  # fmt: skip


def through_json(document: Document) -> Any:
    raw = encode(document)
    assert encode(decode(raw)) == raw
    return json.loads(raw)


def lines_of(found: Comparison, language: str) -> list[str]:
    document = comparison_document(found, found.cost)
    return [line.text for line in comparison_lines(document, language)]


def test_a_comparison_as_a_document() -> None:
    found = through_json(comparison_document(comparison("derived"), Cost(7, 3, 1.25)))
    assert (found["schema"], found["a"], found["b"]) == ("kinprint.compare/2", A.given, B.given)
    assert found["verdict"]["relation"] == "derived"
    assert found["verdict"]["link"] == {"log10_p": -12.5, "alpha": 1e-6}
    assert found["verdict"]["kind"] == {"relation": "derived", "reasons": ["learnt-together"]}
    part = found["verdict"]["parts"][1]
    assert (part["component"], part["layer"], part["state"]) == ("norms", 0, "shared")
    assert part["partner"] == {"component": "norms", "layer": 0, "expert": None, "tower": ""}
    assert found["verdict"]["amount"]["likeness"] == 0.97
    day = found["read"].pop("date")
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", day)
    assert found["read"] == {"bytes": 7, "requests": 3, "seconds": 1.25, "answered": ""}
    assert [one["test"] for one in found["evidence"]] == [one.name for one in menu("standard")]
    first, second = found["evidence"][:2]
    assert first["statistic"] is None and first["effect"] is None
    assert first["details"] == {"quality": None} and first["null"] == [0.1, None]
    assert second["log10_p"] == -17.0 and second["layers"] == [0, 3]
    assert found["controls"][0]["control"] == "c"
    assert found["plan"]["left_out"] == ["routers"]
    assert found["models"][0]["commit"] == "c" * 40 and found["models"][1]["commit"] is None
    assert [one["title"] for one in found["models"]] == ["org/a-model", "b"]
    told = found["made"]["command"]
    assert shlex.split(told) == ["kinprint", "compare", A.given, "./b"]  # no path of a machine


def test_a_command_can_be_typed_again() -> None:
    settings = Settings("deep", 1e-3, 5_000_000, 7, "org/base")
    odd = ModelRef("a folder/it's", "local", "a folder/it's")
    found = replace(comparison("derived"), a=odd, settings=settings, strangers=("org/c d",))
    words = shlex.split(comparison_document(found, Cost()).made.command)
    assert words[-2:] == ["a folder/it's", "./b"]
    told = dict(zip(words[2:-2:2], words[3:-2:2], strict=True))
    assert told == {
        "--level": "deep", "--alpha": "0.001", "--budget": "5000000", "--seed": "7",
        "--base": "org/base", "--control": "org/c d",
    }  # fmt: skip


def test_each_test_pays_for_its_share_of_the_menu() -> None:
    found = comparison_document(comparison("derived"), Cost())
    shares = [one.share for one in found.evidence]
    assert sum(share for share in shares if share) == pytest.approx(1.0)
    for one in found.evidence:
        if one.status != "ok":
            assert one.adjusted is None
            continue
        assert one.share and one.log10_p is not None
        assert one.adjusted == pytest.approx(min(0.0, one.log10_p - math.log10(one.share)))


def test_models_of_one_title_are_told_apart() -> None:
    twins = (ModelRef("x/m", "hub", "x/m"), ModelRef("y/m", "hub", "y/m"))
    found = comparison_document(replace(comparison("derived"), a=twins[0], b=twins[1]), Cost())
    assert [one.title for one in found.models] == ["x/m", "y/m"]


def test_models_that_were_not_read_are_named() -> None:
    lost = UnreadModel("org/gone", RepositoryMissing(name="org/gone", host="hub"))
    document = matrix_document(replace(matrix(3), unread=(lost,)), Cost())
    assert answer.error(document, document.unread[0], "ko") != document.unread[0].error
    assert "org/gone" in document.made.command
    lines = [line.text for line in matrix_lines(document, "ko")]
    assert max(map(columns_of, lines)) <= 60
    assert any("org/gone" in line for line in lines)


@pytest.mark.parametrize("language", ["en", "ko"])
@pytest.mark.parametrize("relation", RELATIONS)
def test_lines_fit_a_terminal(relation: str, language: str) -> None:
    lines = lines_of(comparison(relation), language)
    assert max(map(columns_of, lines)) <= 60
    assert "org/a-model" in lines[0]
    for name in answer.STATEMENTS:
        assert text.say(f"verdict.statement.{name}", language) in lines
    codes = {one.name for one in menu("standard")}
    assert not codes & {word for line in lines for word in line.split()}


@pytest.mark.parametrize("language", ["en", "ko"])
@pytest.mark.parametrize("relation", RELATIONS)
def test_a_p_value_stands_in_the_statement_of_the_link_and_nowhere_else(
    relation: Relation, language: str
) -> None:
    document = comparison_document(comparison(relation), Cost())
    said = {one.name: one.says for one in answer.statements(document, document.verdict, language)}
    others = [answer.summary(document, document.verdict, language)]
    others += [says for name, says in said.items() if name != "link"]
    assert not any(re.search(r"10\^|\bp [≤=]|σ|standard dev|표준 ?편차", one) for one in others)
    tested = relation not in (Relation.IDENTICAL, Relation.UNTESTABLE)
    assert ("p ≤ 10^-12" in said["link"]) == tested


def test_no_evidence_is_not_said_as_independence() -> None:
    verdict = comparison_document(comparison("no-evidence"), Cost()).verdict
    assert "does not show that they are independent" in verdict.summary
    assert "could have been missed" in verdict.statements.coverage
    assert "would have been seen" in verdict.statements.coverage


def test_the_strongest_evidence_comes_first_and_calibrated_last() -> None:
    calibrated = Evidence("Q.controls", Tier.CALIBRATED, Group.NONE, Status.OK, -500.0)
    found = comparison("derived")
    few = (Evidence("S1", Tier.EXACT, Group.UNIT_SIGN, Status.OK, -3.0), calibrated,
           Evidence("S2", Tier.EXACT, Group.PLANE_SIGN, Status.OK, -30.0))  # fmt: skip
    lines = lines_of(replace(found, evidence=few), "en")
    order = [
        line.split()[0] for line in lines if re.match(r"  10\^\S+ +[a-z]", line) and "," not in line
    ]
    assert order == ["10^-30.0", "10^-3.0"]
    document = comparison_document(replace(found, evidence=few), Cost())
    assert [one.test for one in findings(document)] == ["S2", "S1", "Q.controls"]


def matrix(count: int) -> Matrix:
    models = tuple(ModelRef(f"org/model-{at}", "hub", f"org/model-{at}") for at in range(count))
    pairs = tuple(
        PairVerdict(
            a, b, Verdict(Relation.DERIVED if a + b == 1 else Relation.NO_EVIDENCE, -9.0, 1e-6), ()
        )
        for a in range(count)
        for b in range(a + 1, count)
    )
    return Matrix(models, Settings(), pairs, Cost(1, 1, 1.0))


def test_a_matrix_as_a_document() -> None:
    found = through_json(matrix_document(matrix(3), Cost(4, 5, 6.0)))
    assert found["schema"] == "kinprint.matrix/2"
    first = found["pairs"][0]
    assert (first["a"], first["b"]) == ("org/model-0", "org/model-1")
    assert (first["relation"], first["log10_p"]) == ("derived", -9.0)
    assert found["read"]["requests"] == 5 and len(found["pairs"]) == 3


@pytest.mark.parametrize(("count", "grid"), [(3, True), (18, True), (39, True), (45, False)])
def test_a_group_has_a_grid_where_it_fits_and_names_its_models(count: int, grid: bool) -> None:
    found = matrix(count)
    derived = Verdict(Relation.DERIVED, -9.0, 1e-6)
    pairs = tuple(replace(one, verdict=derived) for one in found.pairs)
    document = matrix_document(replace(found, pairs=pairs), Cost())
    lines = [line.text for line in matrix_lines(document, "en")]
    assert max(map(columns_of, lines)) <= 60
    assert any("D\N{NO-BREAK SPACE}derived" in line for line in lines) == grid
    assert sum("derived  " in line for line in lines) == (len(pairs) if count == 3 else 0)
    assert all(one.title in " ".join(lines) for one in document.models)


def test_a_matrix_of_many_models_fits_a_terminal() -> None:
    lines = [line.text for line in matrix_lines(matrix_document(matrix(40), Cost()), "en")]
    said = " ".join(" ".join(lines).split())
    assert max(map(columns_of, lines)) <= 60
    assert "2 of 40 models are linked, in one group. For 38 models no link was found." in said
    assert "Of 780 pairs 1 was found to share weights, in whole or in part." in said
    assert sum("derived  " in line for line in lines) == 1


def test_linked_relations_fit_their_column_in_every_language() -> None:
    for language, relation in product(text.languages(), Relation):
        found = matrix(3)
        verdict = Verdict(relation, -9.0, 1e-6)
        pairs = (replace(found.pairs[0], verdict=verdict), *found.pairs[1:])
        document = matrix_document(replace(found, pairs=pairs), Cost())
        lines = [line.text for line in matrix_lines(document, language)]
        assert max(map(columns_of, lines)) <= 60
        word = text.say(f"report.terminal.relation.{relation}", language)
        assert columns_of(word) <= 12 and (word in " ".join(lines)) == relation.linked


def test_a_plan_says_what_each_stage_costs() -> None:
    found = ComparisonPlan((A, B), Settings(), (Cost(1000, 2), Cost(5000, 3)), 9000, (ROUTERS,))
    planned = plan_document(found, Cost(100, 4))
    document = through_json(planned)
    assert (document["bytes"], document["requests"]) == (6000, 5)
    assert document["stages"] == [{"bytes": 1000, "requests": 2}, {"bytes": 5000, "requests": 3}]
    assert document["spent"] == {"bytes": 100, "requests": 4}
    lines = [line.text for line in plan_lines(planned, "en")]
    assert lines[0] == "stage 1: 1 kB over the network, 2 requests" and "routers" in lines[-1]


def test_settings_that_make_no_sense_are_refused() -> None:
    with pytest.raises(BadOption):
        Settings(alpha=0.0)
    with pytest.raises(BadOption):
        Settings(level="all")


def test_a_headline_names_parts_and_never_everything() -> None:
    def part(component: Component, layer: int, state: PartState) -> PartFinding:
        return PartFinding(Part(component, layer), Part(component, layer), state, 1.0)

    norms = [part(Component.NORMS, at, PartState.EQUAL) for at in range(3)]
    unread = [part(Component.ATTENTION, at, PartState.NOT_READ) for at in range(3)]
    verdict = replace(comparison("partial").verdict, parts=(*norms, *unread))
    assert "as trained: norms. One" in headline(verdict, ("a", "b"))["en"]
    some = replace(verdict, parts=(norms[2], part(Component.NORMS, 0, PartState.NO_TRACE)))
    assert "as trained: norms of layer 2. One" in headline(some, ("a", "b"))["en"]
