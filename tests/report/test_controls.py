"""Models that were given as unrelated: what was found is told, and one that is linked is none."""

from __future__ import annotations

import re
from dataclasses import dataclass

import msgspec
import pytest
from msgspec.structs import replace

from kinprint import text
from kinprint.records import Status
from kinprint.report import controls
from kinprint.report.schema import ComparisonDocument, ControlPart, EvidenceShort
from kinprint.report.views.html.pair import pair_page
from kinprint.report.views.markdown.comparison import page
from kinprint.report.views.terminal.comparison import comparison_lines
from tests.report.html.documents import comparison


@dataclass(frozen=True)
class Shown:
    terminal: str
    markdown: str
    html: str


def with_controls(**log10_p: float | None) -> ComparisonDocument:
    """A comparison with one control; what its best test gives with each of the two models."""
    found = comparison("no-evidence")
    parts = [
        ControlPart(
            model=model.name,
            control="other/stranger-7b",
            evidence=[
                EvidenceShort(
                    test="S1", status=Status.NEEDS if p is None else Status.OK, log10_p=p or 0.0
                )
            ],
        )
        for model, p in zip(found.models, log10_p.values(), strict=True)
    ]
    return msgspec.structs.replace(found, controls=parts)


def shown(document: ComparisonDocument, language: str = "en") -> Shown:
    lines = " ".join(str(line).strip() for line in comparison_lines(document, language))
    plain = re.sub(r"<[^>]*>", "", pair_page(document, language))
    return Shown(lines, page(document, language).replace("\\", ""), plain)


def test_a_control_without_a_link_is_told_and_nobody_is_warned() -> None:
    document = with_controls(a=-0.3, b=-6.5)  # one in three million, once in ten tests: no link
    told = shown(document)
    for said in (told.terminal, told.markdown):
        assert "no link with elder-7b found, no link with younger-7b found." in said
    assert "models that were given as unrelated" in told.html
    assert "nothing to do with each other" not in told.html
    for said in (told.terminal, told.markdown, told.html):
        assert "no control" not in said
    assert controls.warnings(document, "en") == []


@pytest.mark.parametrize("language", text.languages())
def test_a_linked_control_is_no_control(language: str) -> None:
    document = with_controls(a=-300.0, b=-0.1)
    (one,) = controls.findings(document)
    assert one.linked == ("elder-7b",)
    (warning,) = controls.warnings(document, language)
    told = shown(document, language)
    assert warning in told.html and warning in told.markdown
    assert "p ≤ 10^-299" in told.terminal and "p ≤ 10^-299" in told.markdown
    if language == "en":
        assert "LINKED with elder-7b" in told.terminal and "no control" in told.terminal


def test_a_control_is_called_without_the_folders_of_whoever_compared() -> None:
    document = with_controls(a=-300.0, b=-0.1)
    parts = [replace(one, control="/home/somebody/stranger") for one in document.controls]
    told = shown(replace(document, controls=parts), "en")
    for one in (told.html, told.markdown, told.terminal):
        assert "./stranger" in one and "somebody" not in one


def test_what_could_not_be_tested_is_not_called_unlinked() -> None:
    told = shown(with_controls(a=None, b=-0.1))
    assert "nothing to test with elder-7b, no link with younger-7b found." in told.terminal


def test_a_share_that_no_menu_has_breaks_nothing() -> None:
    document = with_controls(a=-300.0, b=-0.1)
    odd = [msgspec.structs.replace(one, share=-1.0) for one in document.evidence]
    (one,) = controls.findings(msgspec.structs.replace(document, evidence=odd))
    assert one.linked == ("elder-7b",)
