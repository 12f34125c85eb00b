"""Pictures of comparisons, as chart records made from documents alone."""

from __future__ import annotations

from collections.abc import Sequence

from kinprint import text
from kinprint.records import Tier
from kinprint.report.evidence import Finding, findings
from kinprint.report.figures.kinship import Kinship
from kinprint.report.figures.nulls import Null, Nulls
from kinprint.report.matrix import joints, ordered, pairs_by_place, tree_order
from kinprint.report.numbers import p_value, reading
from kinprint.report.relations import SIGNS, words_for
from kinprint.report.schema import ComparisonDocument, MatrixDocument, SeedMetric
from kinprint.studies.charts import Heatmap, Lines, Panels, Series
from kinprint.titles import role_title


def charts_of(
    document: ComparisonDocument | MatrixDocument,
) -> list[Nulls | Heatmap | Panels | Kinship]:
    """All pictures that a document has something for, the telling one first."""
    if isinstance(document, MatrixDocument):
        return [kinship_chart(document)]
    found: list[Nulls | Heatmap | Panels | Kinship] = [evidence_chart(document)]
    if document.shared is not None and document.shared.cells:
        found.append(map_chart(document))
    if document.seeds:
        found.append(norms_chart(document))
    return found


def evidence_chart(document: ComparisonDocument) -> Nulls:
    """What chance gives each test, and where the pair stands; the strongest first."""
    rows = tuple(
        Null(
            one.test,
            one.words,
            tuple(value for value in one.part.null if value is not None),
            one.part.statistic,
            _label(one),
            one.part.tier == Tier.CALIBRATED,
        )
        for one in findings(document)
        if one.part.null and one.part.statistic is not None
    )
    a, b = _titles(document)
    return Nulls(
        "evidence",
        text.words("report.picture.evidence", a=a, b=b),
        rows,
        text.words("report.picture.evidence-note"),
    )


def _label(one: Finding) -> str:
    """The p-value of a test; the share itself where it has none."""
    if one.p is None:
        return reading(one.part.statistic or 0.0)
    return f"p ≤ {p_value(one.p)}"


def map_chart(document: ComparisonDocument) -> Heatmap:
    """How alike each role is, layer by layer."""
    shared = document.shared
    assert shared is not None
    found = {(cell.role, cell.a, cell.b): cell.likeness for cell in shared.cells}
    inside = sorted(shared.cells, key=lambda cell: cell.a < 0)  # what is outside comes last
    roles = tuple(dict.fromkeys(cell.role for cell in inside))
    places = sorted({(cell.a, cell.b) for cell in inside}, key=lambda at: (at[0] < 0, at))
    a, b = _titles(document)
    return Heatmap(
        "layers",
        text.words("report.picture.layers", a=a, b=b),
        roles,
        tuple(_place(*place) for place in places),
        tuple(tuple(found.get((role, *place)) for place in places) for role in roles),
        text.words("report.picture.likeness"),
        low=-1.0,
        high=1.0,
        diverging=True,
        column_label=text.words("report.picture.layer-pairs"),
        note=text.words("report.picture.layers-note"),
    )


def norms_chart(document: ComparisonDocument) -> Panels:
    """Cosine and Pearson correlation of norm vectors, as the disputes of 2026 measured them."""
    a, b = _titles(document)
    layer = text.words("report.picture.layer-of", a=a)
    panels = tuple(
        Lines(name, words, layer, words, _norm_series(document.seeds, name), y_range=(-0.2, 1.05))
        for name, words in (
            ("cosine", text.words("report.picture.cosine")),
            ("pearson", text.words("report.picture.pearson")),
        )
    )
    return Panels(
        "norms",
        text.words("report.picture.norms", a=a, b=b),
        panels,
        note=text.words("report.picture.norms-note"),
    )


def kinship_chart(document: MatrixDocument) -> Kinship:
    """All pairs group by group, beside the tree where that has the same order."""
    order = ordered(document)
    pairs = pairs_by_place(document)
    values: list[tuple[float | None, ...]] = []
    marks: list[tuple[str, ...]] = []
    for one in order:
        row = [pairs.get((min(one, other), max(one, other))) for other in order]
        values.append(tuple(None if pair is None else pair.likeness for pair in row))
        marks.append(tuple("" if pair is None else SIGNS[pair.relation].mark for pair in row))
    seen = {pair.relation for pair in document.pairs}
    return Kinship(
        "matrix",
        text.words("report.picture.matrix", number=len(order)),
        tuple(document.models[at].title for at in order),
        tuple(values),
        tuple(marks),
        tuple(
            (sign.mark, words_for(relation)) for relation, sign in SIGNS.items() if relation in seen
        ),
        joints(document.tree, order) if order == tree_order(document) else (),
        text.words("report.picture.matrix-note"),
    )


def _titles(document: ComparisonDocument) -> tuple[str, str]:
    a, b = document.models[:2]
    return a.title, b.title


def _norm_series(seeds: Sequence[SeedMetric], name: str) -> tuple[Series, ...]:
    """One series for each role; what is outside the layers stands after the last of them."""
    after = max(one.a for one in seeds) + 1
    found = []
    for role in dict.fromkeys(one.role for one in seeds):
        rows = sorted((one for one in seeds if one.role == role), key=lambda one: one.a)
        values = tuple(one.cosine if name == "cosine" else one.pearson for one in rows)
        x = tuple(float(one.a if one.a >= 0 else after) for one in rows)
        found.append(Series(role_title(role), x, values))
    return tuple(found)


def _place(a: int, b: int) -> str:
    if a < 0:
        return "–"
    return str(a) if a == b else f"{a}/{b}"
