"""Pictures of comparisons: everything inside the frame, nothing lost, nothing invented."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import msgspec
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from kinprint.report.figures.comparison import charts_of, evidence_chart, kinship_chart
from kinprint.report.figures.drawing import Picture, draw
from kinprint.report.matrix import joints, pairs_by_place
from kinprint.report.schema import ComparisonDocument
from kinprint.text import say
from tests.report.kin_documents import RELATIONS, comparison, matrix


def texts(figure: Figure) -> Iterator[Text]:
    figure.canvas.draw()
    for one in figure.findobj(Text):
        assert isinstance(one, Text)
        if one.get_text().strip() and one.get_visible():
            yield one


def assert_inside(figure: Figure) -> None:
    drawn = figure.get_tightbbox()
    width, height = figure.get_size_inches()
    assert drawn.x0 >= -0.01 and drawn.x1 <= width + 0.01
    assert drawn.y0 >= -0.01 and drawn.y1 <= height + 0.01


SIBLINGS = {"laundered", "same-weights", "dependent", "same-init"}
"""Relations whose pictures have the parts of others."""


@pytest.mark.parametrize(
    "relation",
    [pytest.param(one, marks=pytest.mark.slow) if one in SIBLINGS else one for one in RELATIONS],
)
def test_every_picture_of_a_pair_can_be_drawn(relation: str) -> None:
    document = comparison(relation)
    for chart in charts_of(document):
        assert_inside(draw(chart, "ko" if relation == "partial" else "en"))


@pytest.mark.parametrize("count", [2, 7, 60, pytest.param(200, marks=pytest.mark.slow)])
def test_a_matrix_of_any_size_can_be_drawn(count: int) -> None:
    figure = draw(kinship_chart(matrix(count)))
    assert_inside(figure)
    assert figure.get_figheight() < 9
    named = {one.get_text() for one in texts(figure)}
    assert ("model-a-00-7b-chat" in named) == (count < 200)  # too small to read is left out


def test_the_evidence_picture_has_every_test_with_a_null() -> None:
    document = comparison()
    with_null = [one for one in document.evidence if one.null and one.status == "ok"]
    chart = evidence_chart(document)
    assert {row.test for row in chart.rows} == {one.test for one in with_null}
    shown = {one.get_text() for one in texts(draw(chart))}
    assert {one.test for one in with_null} <= shown
    powers = [float(row.p.removeprefix("p ≤ 10^")) for row in chart.rows if "^" in row.p]
    assert all(one <= other for one, other in pairwise(powers)) and powers[0] < -100


def test_what_has_no_p_value_has_a_key_that_says_so() -> None:
    chart = evidence_chart(comparison())
    with_p = tuple(row for row in chart.rows if not row.calibrated)
    assert all(("p" in row.p) != row.calibrated for row in chart.rows)
    key = say("page.mark.calibrated", "en")
    for rows in (chart.rows, with_p):
        shown = {one.get_text() for one in texts(draw(msgspec.structs.replace(chart, rows=rows)))}
        assert (key in shown) == (rows != with_p)


def test_documents_with_little_in_them() -> None:
    document = comparison()
    bare: ComparisonDocument = msgspec.structs.replace(document, evidence=[], shared=None, seeds=[])
    (chart,) = charts_of(bare)
    assert_inside(draw(chart))
    alone: Picture = kinship_chart(msgspec.structs.replace(matrix(1, unread=0), pairs=[], tree=[]))
    assert_inside(draw(alone))


def test_branches_meet_halfway_between_what_they_join() -> None:
    document = matrix(5, family=5)
    found = joints(document.tree, [4, 3, 2, 1, 0])
    assert len(found) == 4
    assert found[0].places == (4.5, 3.5) and found[0].heights == (0.0, 0.0)
    assert found[1].places == (4.0, 2.5) and found[1].heights == (found[0].height, 0.0)


def test_a_model_that_is_given_twice_has_a_row_of_its_own() -> None:
    once = matrix(3)
    twice = msgspec.structs.replace(
        once,
        models=[once.models[0], once.models[0], once.models[1]],
        pairs=[
            msgspec.structs.replace(one, a=once.models[a].given, b=once.models[b].given)
            for one, (a, b) in zip(once.pairs, ((0, 0), (0, 1), (0, 1)), strict=True)
        ],
    )
    assert set(pairs_by_place(twice)) == {(0, 1), (0, 2), (1, 2)}


def test_a_figure_shows_itself_in_a_notebook() -> None:
    figure = draw(evidence_chart(comparison()))
    raw, size = figure._repr_png_()  # type: ignore[attr-defined]
    assert raw.startswith(b"\x89PNG") and size["width"] == 800 < size["height"]
