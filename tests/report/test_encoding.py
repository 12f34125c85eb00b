"""Documents as files: the same bytes every time, and nothing but documents is read back."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from kinprint.errors import FormatError
from kinprint.records import Component, Level, PartState, Relation
from kinprint.report.schema import (
    AmountPart,
    Asked,
    ComparisonDocument,
    CoveragePart,
    Document,
    KindPart,
    LinkPart,
    Made,
    MapCell,
    MatrixDocument,
    Merge,
    PairPart,
    PartRow,
    PlanDocument,
    PlanPart,
    ReadPart,
    SharedMap,
    StageCost,
    Statements,
    Subject,
    VerdictPart,
    decode,
    encode,
    settled,
)
from kinprint.report.views.terminal.comparison import comparison_lines, matrix_lines, plan_lines
from tests.examples import few_and_many

ASKED = Asked(level=Level.STANDARD, alpha=1e-6)
MADE = Made(kinprint="0", python="3", numpy="2", scipy="1", command="kinprint compare a b")
READ = ReadPart(bytes=1, requests=1, seconds=0.5)


def subject(name: str) -> Subject:
    return Subject(given=name, name=name, title=name, kind="local")


def comparison() -> ComparisonDocument:
    said = Statements(link="l", what="w", kind="k", amount="a", coverage="c")
    part = PartRow(component=Component.NORMS, layer=0, state=PartState.SHARED, likeness=0.5)
    verdict = VerdictPart(
        relation=Relation.DERIVED,
        summary="s",
        statements=said,
        link=LinkPart(log10_p=-9.0, alpha=1e-6),
        parts=[part],
        kind=KindPart(relation=Relation.DERIVED, reasons=["learnt-together"]),
        amount=AmountPart(linked=0.5),
        coverage=CoveragePart(power={"S1": 0.5}),
    )
    cell = MapCell(role="up", a=0, b=1, likeness=0.5, chance=0.1, count=3)
    return ComparisonDocument(
        a="a", b="b", models=[subject("a"), subject("b")], verdict=verdict, evidence=[],
        shared=SharedMap(depths=(1, 2), cells=[cell]), asked=ASKED, plan=PlanPart(), made=MADE,
        read=READ,
    )  # fmt: skip


def matrix() -> MatrixDocument:
    pair = PairPart(
        a="a", b="b", relation=Relation.NO_EVIDENCE, log10_p=-0.5, summary="", amount=AmountPart()
    )
    return MatrixDocument(
        models=[subject("a"), subject("b")], pairs=[pair], order=[1, 0],
        tree=[Merge(one=0, other=1, height=1.0)], asked=ASKED, made=MADE, read=READ,
    )  # fmt: skip


def plan() -> PlanDocument:
    cost = StageCost(bytes=5, requests=1)
    return PlanDocument(
        models=["a"], bytes=5, requests=1, stages=[cost], bytes_at_most=9, asked=ASKED, spent=cost
    )


MADE_UP: dict[str, Callable[[], Document]] = {"compare": comparison, "matrix": matrix, "plan": plan}


@pytest.mark.parametrize("kind", MADE_UP)
def test_a_document_comes_back_as_it_was(kind: str) -> None:
    document = MADE_UP[kind]()
    raw = encode(document)
    assert decode(raw) == document
    assert encode(decode(raw)) == raw
    assert raw.endswith(b"}\n") and b'\n "' in raw


def test_what_could_not_be_read_again_is_not_drawn_either() -> None:
    document = comparison()
    assert settled(document) == document
    three = replace(document, models=[*document.models, subject("c")])
    with pytest.raises(FormatError):
        decode(encode(three))
    with pytest.raises(FormatError):
        settled(three)


def test_names_that_are_no_text_are_written_all_the_same() -> None:
    raw = encode(replace(comparison(), a="half \udc80", labels=["\ud800"]))
    found = decode(raw)
    assert isinstance(found, ComparisonDocument)
    assert found.a == "half \\udc80" and found.labels == ["\\ud800"]


def test_numbers_that_are_none_become_null() -> None:
    document = comparison()
    verdict = replace(document.verdict, link=LinkPart(log10_p=float("-inf"), alpha=1e-6))
    found = json.loads(encode(replace(document, verdict=verdict)))
    assert found["verdict"]["link"]["log10_p"] is None


@pytest.mark.parametrize(
    ("raw", "cause"),
    [
        (b"", "it is not json"),
        (b"not json", "it is not json"),
        (b"\xff\xfe", ""),
        (b"[]", "expected"),
        (b"{}", "what kind of result"),
        (b'{"schema": "kinprint.study/2"}', "kinprint.study/2"),
        (b'{"schema": "kinprint.study/1"}', "missing"),
        (b'{"schema": "kinprint.compare/1"}', "missing"),
        (b'{"schema": "kinprint.compare/2"}', "missing"),
        (b"[" * 100_000, ""),
    ],
)
def test_other_files_are_refused_by_name(raw: bytes, cause: str) -> None:
    with pytest.raises(FormatError) as refused:
        decode(raw, "x.json")
    assert "'x.json' is no result of kinprint" in str(refused.value)
    assert cause in str(refused.value).lower()


def broken(change: Callable[[Any], None], document: Document) -> bytes:
    found = json.loads(encode(document))
    change(found)
    return json.dumps(found).encode()


@pytest.mark.parametrize(
    "change",
    [
        lambda found: found["models"].pop(),
        lambda found: found["asked"].update(level="all"),
        lambda found: found["verdict"].update(relation="copied"),
        lambda found: found["verdict"]["link"].update(log10_p=1e300),
        lambda found: found["read"].update(bytes=10**400),
    ],
)
def test_a_comparison_that_contradicts_itself_is_refused(change: Callable[[Any], None]) -> None:
    with pytest.raises(FormatError):
        decode(broken(change, comparison()))


@pytest.mark.parametrize(
    "change",
    [
        lambda found: found.update(order=[0, 0]),
        lambda found: found.update(tree=[{"one": 0, "other": 0, "height": 1.0}]),
        lambda found: found.update(tree=[{"one": 0, "other": 2, "height": 1.0}]),
        lambda found: found.update(tree=found["tree"] * 2),
    ],
)
def test_a_matrix_whose_tree_is_none_is_refused(change: Callable[[Any], None]) -> None:
    with pytest.raises(FormatError):
        decode(broken(change, matrix()))


LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False)
JSON = st.recursive(
    LEAVES | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    if isinstance(value, dict | list):
        inside = value.items() if isinstance(value, dict) else enumerate(value)
        for key, each in inside:
            found += places(each, (*path, key))
    return found


@few_and_many(100, 300, st.sampled_from(sorted(MADE_UP)), st.data())
def test_whatever_a_file_says_it_is_a_document_or_refused(kind: str, data: st.DataObject) -> None:
    """One place of a good document changed at random: an error, or lines can be drawn of it."""
    found = json.loads(encode(MADE_UP[kind]()))
    *way, last = data.draw(st.sampled_from(places(found)))
    inner = found
    for key in way:
        inner = inner[key]
    inner[last] = data.draw(JSON)
    try:
        document = decode(json.dumps(found).encode())
    except FormatError:
        return
    assert decode(encode(document)) == document
    for language in ("en", "ko"):
        if isinstance(document, ComparisonDocument):
            assert list(comparison_lines(document, language))
        elif isinstance(document, MatrixDocument):
            assert list(matrix_lines(document, language))
        elif isinstance(document, PlanDocument):
            assert list(plan_lines(document, language))


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200))
def test_noise_is_refused(raw: bytes) -> None:
    with pytest.raises(FormatError):
        decode(raw)
