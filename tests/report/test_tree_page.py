"""Families of an atlas as people see them: a page, a picture, lines, a graph for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import msgspec
import pytest

from kinprint import text
from kinprint.records import (
    ClaimedEdge,
    Cost,
    DeclaredState,
    DirectionBasis,
    PartState,
    Precedence,
    Relation,
    Trace,
)
from kinprint.report import trees
from kinprint.report.build.common import made_with
from kinprint.report.schema import (
    Claim,
    DeclaredPart,
    LeftOutPart,
    ReadPart,
    TraceRow,
    TreeDocument,
    TreeEdge,
    TreeFailure,
    TreeLink,
    TreeModel,
)
from kinprint.report.views.graphml import graphml
from kinprint.report.views.html.tree import tree_page, tree_svg
from kinprint.report.views.terminal.tree import tree_lines
from tests.report.html.documents import HOSTILE
from tests.report.html.visiting import on_a_phone

if TYPE_CHECKING:
    from playwright.sync_api import Browser

NAMES = (
    "base",
    "tune",
    "tune-of-tune",
    "mixed",
    "other-base",
    "same-start",
    "stranger",
    "pair-a",
    "pair-b",
)
SPACE = "{http://graphml.graphdrawing.org/xmlns}"


def edge(a: int, b: int, basis: DirectionBasis | None = None, **more: Any) -> TreeEdge:
    given = {"relation": Relation.DERIVED, "log10_p": -120.5, "likeness": 0.9, **more}
    return TreeEdge(a=a, b=b, basis=basis, parts={PartState.SHARED: 12}, **given)


def document(names: tuple[str, ...] = NAMES) -> TreeDocument:
    """A base, its tune, a tune of that and a merge with a stranger; and two models alone."""
    claim = Claim(where="README.md: base_model", model=names[0], relation="finetune")
    traces = [
        TraceRow(trace=Trace.DATES, speaks=Precedence.A_FIRST, counted=True, says="one was first")
    ]
    return TreeDocument(
        atlas="./atlas",
        models=[
            TreeModel(
                given=f"org/{name}",
                name=f"org/{name}",
                title=name,
                kind="hub",
                commit="c0ffee",
                architecture="LlamaForCausalLM",
                entry=f"{at:064x}",
                declared=[DeclaredPart(claim=claim, state=DeclaredState.LINKED)] if at == 1 else [],
            )
            for at, name in enumerate(names)
        ],
        families=[[0, 1, 2, 3, 4, 5], [7, 8]],
        edges=[
            edge(0, 1, DirectionBasis.TRACES, traces=traces, declared=ClaimedEdge.AGREED),
            edge(1, 2, DirectionBasis.CENTRAL, votes=(3, 0), likeness=0.8),
            edge(1, 3, DirectionBasis.BETWEEN, weight=0.6, likeness=0.7),
            edge(4, 3, DirectionBasis.BETWEEN, weight=0.4, likeness=0.5),
            edge(7, 8),
        ],
        links=[
            TreeLink(a=0, b=5, relation=Relation.SAME_INIT, log10_p=-40.0, likeness=0.3),
            TreeLink(a=0, b=2, relation=Relation.DERIVED, log10_p=-90.0, likeness=0.75),
        ],
        pairs=36,
        compared=9,
        unlinked=2,
        silent=1,
        effect=0.25,
        family=0.01,
        alpha=1e-6,
        other_seeds=1,
        failed=[TreeFailure(a=6, b=7, reason="out of memory")],
        left_out=[LeftOutPart(entry="ab" * 32, reason="a fingerprint is broken")],
        made=made_with("kinprint atlas tree --atlas ./atlas"),
        read=ReadPart.of(Cost()),
    )


def test_a_likeness_of_one_is_kept_for_what_is_equal() -> None:
    for relation, told in ((Relation.DERIVED, "0.9999"), (Relation.IDENTICAL, "1.00")):
        near = edge(0, 1, relation=relation, likeness=1.0)
        assert trees.line_of(near, "en").endswith(f"likeness {told}")
        assert trees.line_of(near, "ko").endswith(f"유사도 {told}")
        assert any(f"Likeness {told}:" in one for one in trees.edge_says(document(), near, "en"))


def test_lines_read_as_trees() -> None:
    shown = [str(line) for line in tree_lines(document(), "en")]
    assert shown[:16] == [
        "8 of 9 models belong to 2 families (edges: 5, with a",
        "direction: 4).",
        "",
        "  Family 1: 6 models",
        "  base",
        "  └→ tune  (share trained weights, likeness 0.90)",
        "      ├⇢ mixed  (share trained weights, likeness 0.70, weight 0.60),"
        " also from other-base (weight 0.40)",
        "      └⇢ tune-of-tune  (share trained weights, likeness 0.80)",
        "  other-base",
        "  same-start  (with base: linked no more than by a common start, likeness 0.30)",
        "",
        "  Family 2: 2 models",
        "  pair-a",
        "  └? pair-b  (share trained weights, likeness 0.90)",
        "",
        "Without a link: stranger.",
    ]
    said = " ".join(shown)
    assert "Compared: 9 of 36 pairs" in said and "Read with other seeds than 0" in said
    assert "stranger and pair-a were not compared: out of memory" in said
    assert "a fingerprint is broken" in said


@pytest.mark.parametrize("language", ["en", "ko"])
def test_what_is_said_of_an_edge(language: str) -> None:
    given = document()
    told = [" ".join(trees.edge_says(given, one, language)) for one in given.edges]
    assert all("36" in one for one in told)
    assert ("no more" in told[1]) == (language == "en")
    assert "0.60" in told[2] and "mixed" in told[2]


def test_a_merge_names_all_of_its_parents() -> None:
    given = document()
    more = edge(0, 3, DirectionBasis.TRACES, likeness=0.4)
    both = msgspec.structs.replace(given, edges=[*given.edges, more])
    (line,) = (str(one) for one in tree_lines(both, "en") if " mixed " in str(one))
    assert line.endswith("also from other-base (weight 0.40), base")
    (line,) = (str(one) for one in tree_lines(both, "ko") if " mixed " in str(one))
    assert line.endswith("다음 모델에서도 나옴: other-base (가중치 0.40), base")


@pytest.mark.parametrize("language", ["en", "ko"])
def test_every_edge_that_is_counted_is_shown(language: str) -> None:
    """Also one without a direction between two models that hang elsewhere."""
    given = document()
    more = edge(2, 3, likeness=0.3), edge(0, 4, likeness=0.2), edge(1, 4, likeness=0.1)
    both = msgspec.structs.replace(given, edges=[*given.edges, *more])
    rows = [row for family in both.families for row in trees.rows_of(both, family)]
    shown = [one for row in rows for one in (row.edge, *row.others, *row.beside) if one]
    assert sorted(map(id, shown)) == sorted(map(id, both.edges))
    lines = [str(one) for one in tree_lines(both, language)]
    said = text.say("tree.also-with", language, models="mixed")
    assert sum(one.endswith(said) for one in lines) == 1


def test_circles_in_a_document_made_by_hand_end() -> None:
    given = document()
    edges = [edge(0, 1, DirectionBasis.TRACES), edge(1, 0, DirectionBasis.TRACES)]
    circular = TreeDocument(
        **{name: getattr(given, name) for name in given.__struct_fields__} | {"edges": edges}
    )
    assert {row.model for row in trees.rows_of(circular, [2, 3])} == {2, 3}
    assert trees.rows_of(circular, [0, 1]) == []


def test_a_graph_has_directions_where_something_tells_them() -> None:
    graph = ElementTree.fromstring(graphml(document())).find(f"{SPACE}graph")
    assert graph is not None
    assert len(graph.findall(f"{SPACE}node")) == len(NAMES)
    edges = [
        (one.get("source"), one.get("target"), one.get("directed"))
        for one in graph.findall(f"{SPACE}edge")
    ]
    assert edges == [
        ("m0", "m1", "true"), ("m1", "m2", "true"), ("m1", "m3", "true"), ("m4", "m3", "true"),
        ("m7", "m8", "false"), ("m0", "m5", "false"), ("m0", "m2", "false"),
    ]  # fmt: skip
    first = graph.findall(f"{SPACE}edge")[0]
    told = {str(one.get("key")): one.text for one in first.findall(f"{SPACE}data")}
    assert told["edge-relation"] == "derived" and told["edge-basis"] == "traces"


def test_a_picture_stands_alone() -> None:
    drawn = tree_svg(document())
    picture = ElementTree.fromstring(drawn)
    words = [one.text for one in picture.iter() if one.text]
    assert all(name in words for name in NAMES if name != "stranger")
    heads = [one.get("class") for one in picture.iter() if one.tag.endswith("polygon")]
    assert sorted(str(one) for one in heads) == ["point likely"] * 3 + ["point told"]
    assert "http" not in drawn.replace("http://www.w3.org/2000/svg", "")


def test_pairs_that_failed_are_not_called_without_a_link() -> None:
    given = msgspec.structs.replace(document(), families=[], edges=[], links=[])
    assert "that could be compared (pairs: 9 of 36)" in trees.summary(given, "en")
    assert "compared" not in trees.summary(msgspec.structs.replace(given, failed=[]), "en")
    assert "No two of the 9 models" in trees.summary(
        msgspec.structs.replace(given, compared=0), "en"
    )


def test_what_replicas_say_goes_with_every_view() -> None:
    given = msgspec.structs.replace(document(), labels=["base: NOT the real model"])
    assert "base: NOT the real model" in [line.text for line in tree_lines(given, "en")]
    assert "base: NOT the real model" in tree_page(given)
    words = [one.text for one in ElementTree.fromstring(tree_svg(given)).iter()]
    assert "NOT the real model" in words


@pytest.mark.parametrize("at", range(0, len(HOSTILE) - 1, 3))
def test_hostile_names_stay_text(at: int) -> None:
    given = document((HOSTILE[at], HOSTILE[at + 1], *NAMES[2:]))
    ElementTree.fromstring(tree_svg(given))
    ElementTree.fromstring(graphml(given))
    page = tree_page(given)
    assert page.count("<script") == 1 and page.count("<style") == 2
    assert all(line.text.isprintable() for line in tree_lines(given, "ko"))


@pytest.mark.parametrize(("language", "scheme"), [("en", "light"), ("ko", "dark")])
def test_a_click_on_a_model_shows_its_evidence(
    browser: Browser, tmp_path: Path, language: str, scheme: str
) -> None:
    file = tmp_path / "tree.html"
    file.write_text(tree_page(document(), language), encoding="utf-8")
    with on_a_phone(browser, file, scheme) as page:
        about = page.locator(f"#{language}-m3")
        assert not about.locator("h3").first.is_visible()
        page.locator(f"#{language} svg a[href='#{language}-m3']").first.click()
        assert about.locator("h3").first.is_visible()
        assert about.locator("h3").count() == 2  # both parents of the merge
        assert "0.60" in about.inner_text()
