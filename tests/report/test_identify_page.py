"""What a model is built on as a page: each parent, who else was asked, and what replicas say."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from kinprint.records import Cost, Level, Precedence, Relation
from kinprint.report.build.common import made_with
from kinprint.report.identifying import linked, summary
from kinprint.report.results.identify import Identification
from kinprint.report.schema import (
    AtlasModel,
    IdentifyDocument,
    LeftOutPart,
    ReadPart,
    RelativePart,
    UnlinkedPart,
)
from kinprint.report.views.html.identify import identify_page
from kinprint.report.views.terminal.identify import identify_lines
from tests.report.html.documents import HOSTILE
from tests.report.html.visiting import on_a_phone

if TYPE_CHECKING:
    from playwright.sync_api import Browser

NAMES = ("asked", "parent", "sister", "child", "stranger")
LABEL = "parent: NOT the real model"


def named(name: str) -> dict[str, Any]:
    return {"given": f"org/{name}", "name": f"org/{name}", "title": name, "kind": "hub"}


def relative(name: str, direction: Precedence = Precedence.UNDECIDED) -> RelativePart:
    told: dict[str, Any] = {"log10_p": -120.5, "likeness": 0.9, "direction": direction}
    return RelativePart(**named(name), relation=Relation.DERIVED, **told)


def document(names: tuple[str, ...] = NAMES) -> IdentifyDocument:
    asked, parent, sister, child, stranger = names
    return IdentifyDocument(
        model=AtlasModel(**named(asked)),
        atlas="./atlas",
        searched=9,
        compared=4,
        family=0.01,
        alpha=1e-6,
        parents=[relative(parent, Precedence.B_FIRST)],
        descendants=[relative(child, Precedence.A_FIRST)],
        relatives=[relative(sister)],
        unlinked=[
            UnlinkedPart(
                **named(stranger), level=Level.STANDARD, relation=Relation.NO_EVIDENCE, effect=0.25
            )
        ],
        left_out=[LeftOutPart(entry="ab" * 32, reason="a fingerprint is broken")],
        labels=[LABEL],
        made=made_with("kinprint identify org/asked --atlas ./atlas"),
        read=ReadPart.of(Cost()),
    )


@pytest.mark.parametrize("at", range(0, len(HOSTILE) - 1, 3))
def test_hostile_names_stay_text(at: int) -> None:
    given = document((HOSTILE[at], HOSTILE[at + 1], *NAMES[2:]))
    page = identify_page(given)
    assert page.count("<script") == 1 and page.count("<style") == 2
    assert all(line.text.isprintable() for line in identify_lines(given, "ko"))


@pytest.mark.parametrize("language", ["en", "ko"])
@pytest.mark.parametrize(
    ("relation", "likeness", "told"),
    [
        (Relation.DERIVED, 0.9999, "0.9999"),
        (Relation.SAME_WEIGHTS, 0.9996, "1.00"),
        (Relation.IDENTICAL, 1.0, "1.00"),
        (Relation.DEPENDENT, -0.001, "0.00"),
    ],
)
def test_a_likeness_of_one_is_kept_for_what_is_equal(
    relation: Relation, likeness: float, told: str, language: str
) -> None:
    near = replace(relative("parent"), relation=relation, likeness=likeness)
    given = replace(document(), parents=[near], descendants=[], relatives=[])
    (row,) = re.findall(r"<tr>.*?</tr>", identify_page(given), re.S)[1:2]
    assert f">{told}<" in row
    word = {"en": "Likeness", "ko": "유사도"}[language]
    assert f"{word} {told}" in " ".join(line.text for line in identify_lines(given, language))


def test_what_replicas_say_stands_below_the_answer() -> None:
    shown = [line.text for line in identify_lines(document(), "en")]
    assert shown[:2] == ["asked is built on parent.", LABEL]


@pytest.mark.parametrize("others", [(), (Relation.DERIVED,)])
def test_a_link_that_leaves_open_what_was_taken_over_makes_no_parent_in_words(
    others: tuple[Relation, ...],
) -> None:
    """A stranger that was renumbered is as dependent."""
    parents = [
        replace(relative(f"parent-{at}", Precedence.B_FIRST), relation=one)
        for at, one in enumerate((*others, Relation.DEPENDENT))
    ]
    said = summary(replace(document(), parents=parents), "en")
    names = ", ".join(one.title for one in parents)
    assert said.startswith(f"asked is linked with {names}, and whether weights were taken over")
    found = list(linked(replace(document(), parents=parents)))
    assert [role for role, _ in found[: len(parents)]] == ["parent"] * len(others) + ["undecided"]
    page = identify_page(replace(document(), parents=parents), "en")
    assert ("likeliest parent" in page) == bool(others)
    assert "likeliest, if weights were taken over" in page


def test_equal_files_have_no_p_value() -> None:
    """Files of zeros are equal, too."""
    same = [replace(relative("parent"), relation=Relation.IDENTICAL)]
    said = "".join(line.text for line in identify_lines(replace(document(), parents=same), "en"))
    assert "this has no p-value" in said and "10^-120" not in said


def test_the_table_has_all_that_are_linked(tmp_path: Path) -> None:
    (file,) = Identification(document()).save(tmp_path / "linked.csv")
    _, *rows = file.read_text().splitlines()
    assert [row.split(",")[:2] for row in rows] == [
        ["parent", "org/parent"],
        ["descendant", "org/child"],
        ["relative", "org/sister"],
    ]


@pytest.mark.parametrize(("language", "scheme"), [("en", "light"), ("ko", "dark")])
def test_the_page_in_a_browser(
    browser: Browser, tmp_path: Path, language: str, scheme: str
) -> None:
    (file,) = Identification(document(), language).save(tmp_path / "page.html")
    with on_a_phone(browser, file, scheme) as page:
        said = page.locator(f"#{language}").inner_text()
    assert all(name in said for name in NAMES) and LABEL in said
    assert "kinprint compare org/asked org/parent" in said
    assert "a fingerprint is broken" in said and "0.25" in said
