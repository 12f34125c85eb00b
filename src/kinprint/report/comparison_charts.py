"""Pictures of comparisons, as chart records made from documents alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

from markupsafe import Markup

from kinprint.lineage.tests.menu import menu
from kinprint.report.documents import (
    ComparisonDocument,
    EvidencePart,
    MatrixDocument,
    Merge,
    PairPart,
    SeedMetric,
)
from kinprint.report.figures.drawing import Picture
from kinprint.report.figures.kinship import Joint, Kinship
from kinprint.report.figures.nulls import Null, Nulls
from kinprint.report.relations import SIGNS, p_value
from kinprint.report.web.words import catalogue
from kinprint.studies.charts import Heatmap, Lines, Panels, Series
from kinprint.studies.titles import role_title
from kinprint.text import Words


def charts_of(document: ComparisonDocument | MatrixDocument) -> list[Picture]:
    """All pictures that a document has something for, the telling one first."""
    if isinstance(document, MatrixDocument):
        return [kinship_chart(document)]
    found: list[Picture] = [evidence_chart(document)]
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
            asks(one.test, document.asked.level),
            tuple(value for value in one.null if value is not None),
            one.statistic,
            f"p ≤ {p_value(one.log10_p)}",
            one.tier == "calibrated",
        )
        for one in by_strength(document.evidence)
        if one.null and one.statistic is not None
    )
    a, b = titles(document)
    return Nulls(
        "evidence",
        Words(
            f"{a} and {b}: what chance gives, and this pair",
            f"{a}, {b}: 우연이 내는 값과 이 두 모델",
        ),
        rows,
        Words(
            "Each row has a scale of its own, from the least to the greatest value. p bounds how "
            "often independent models reach the pair's value; the hill is a sample for the eye.",
            "행마다 눈금이 다르며 가장 작은 값에서 가장 큰 값까지입니다. p는 서로 독립인 모델이 이 "
            "값에 이르는 빈도의 상한이고, 회색 언덕은 눈으로 보기 위한 표본입니다.",
        ),
    )  # fmt: skip


def map_chart(document: ComparisonDocument) -> Heatmap:
    """How alike each role is, layer by layer."""
    shared = document.shared
    assert shared is not None
    found = {(cell.role, cell.a, cell.b): cell.likeness for cell in shared.cells}
    inside = sorted(shared.cells, key=lambda cell: cell.a < 0)  # what is outside comes last
    roles = tuple(dict.fromkeys(cell.role for cell in inside))
    places = sorted({(cell.a, cell.b) for cell in inside}, key=lambda at: (at[0] < 0, at))
    a, b = titles(document)
    return Heatmap(
        "layers",
        Words(f"{a} and {b}: where weights are alike", f"{a}, {b}: 가중치가 닮은 곳"),
        roles,
        tuple(_place(*place) for place in places),
        tuple(tuple(found.get((role, *place)) for place in places) for role in roles),
        Words("mean correlation after alignment", "정렬한 뒤의 평균 상관"),
        low=-1.0,
        high=1.0,
        diverging=True,
        column_label=Words("layer (of each, where they differ)", "레이어(다르면 각각)"),
        note=Words(
            "Independent models lie near zero; – is outside the layers. Shown to see where, not to "
            "decide whether.",
            "서로 독립인 모델은 0 근처에 놓입니다. –는 레이어 밖입니다. 판정이 아니라 위치를 보기 "
            "위한 그림입니다.",
        ),
    )  # fmt: skip


def norms_chart(document: ComparisonDocument) -> Panels:
    """Cosine and Pearson correlation of norm vectors, as the disputes of 2026 measured them."""
    a, b = titles(document)
    panels = tuple(
        Lines(
            name,
            words,
            Words(f"layer of {a}", f"{a}의 레이어"),
            words,
            _norm_series(document.seeds, name),
            y_range=(-0.2, 1.05),
        )
        for name, words in (
            ("cosine", Words("Cosine", "코사인")),
            ("pearson", Words("Pearson correlation", "피어슨 상관")),
        )
    )
    return Panels(
        "norms",
        Words(f"{a} and {b}: norm vectors", f"{a}, {b}: norm 벡터"),
        panels,
        note=Words(
            "A cosine near one says nothing here: norm weights are positive and lie close "
            "together, so unrelated models reach it as well. Neither enters the verdict.",
            "여기서 1에 가까운 코사인은 아무것도 뜻하지 않습니다. norm 가중치는 모두 양수이고 서로 "
            "가까워 관계없는 모델끼리도 그렇게 나옵니다. 둘 다 판정에 쓰이지 않습니다.",
        ),
    )


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


def kinship_chart(document: MatrixDocument) -> Kinship:
    """All pairs in the order of the tree."""
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
        Words(
            f"{len(order)} models, every pair compared", f"모델 {len(order)}개, 모든 쌍을 비교함"
        ),
        tuple(document.models[at].title for at in order),
        tuple(values),
        tuple(marks),
        tuple((sign.mark, sign.words) for name, sign in SIGNS.items() if name in seen),
        joints(document.tree, order),
        Words(
            "The tree shows closeness of weights, not history.",
            "나무는 가중치의 가까움을 나타내며 역사를 나타내지 않습니다.",
        ),
    )  # fmt: skip


def titles(document: ComparisonDocument) -> tuple[str, str]:
    """What the two models are called."""
    one, other = document.models[:2]
    return one.title, other.title


def asks(test: str, level: str) -> Words:
    """What a test compares: the menu says it, and the pages' catalogue of what is on no menu."""
    told = {one.name: one.words for one in menu(level)}.get(test)
    if told is not None:
        return told
    found = catalogue().get(f"test.{test}", {"en": "", "ko": ""})
    return Words(Markup(found["en"]).striptags(), Markup(found["ko"]).striptags())


def by_strength(evidence: Sequence[EvidencePart]) -> list[EvidencePart]:
    """Tests that spoke, exact ones first, the smallest p-value first."""
    spoken = [one for one in evidence if one.status == "ok"]
    return sorted(spoken, key=lambda one: (one.tier != "exact", one.log10_p or 0.0))


def ordered(document: MatrixDocument) -> list[int]:
    """Places of the models as the tree orders them; as they were given where there is none."""
    places = range(len(document.models))
    return list(document.order) if sorted(document.order) == list(places) else list(places)


def pairs_by_place(document: MatrixDocument) -> Mapping[tuple[int, int], PairPart]:
    """Pairs by the places of their models, the smaller place first."""
    given = [one.given for one in document.models]
    places = list(combinations(range(len(given)), 2))
    if [(one.a, one.b) for one in document.pairs] == [(given[a], given[b]) for a, b in places]:
        return dict(zip(places, document.pairs, strict=True))  # one may be given twice
    place = {name: at for at, name in enumerate(given)}
    found: dict[tuple[int, int], PairPart] = {}
    for pair in document.pairs:
        if pair.a in place and pair.b in place:
            one, other = sorted((place[pair.a], place[pair.b]))
            found[one, other] = pair
    return found


def joints(tree: Sequence[Merge], order: Sequence[int]) -> tuple[Joint, ...]:
    """The tree as lines to draw, by rows of the matrix."""
    count = len(order)
    rows: dict[int, tuple[float, float]] = {one: (at + 0.5, 0.0) for at, one in enumerate(order)}
    found: list[Joint] = []
    for at, merge in enumerate(tree):
        if merge.one not in rows or merge.other not in rows:  # a document made by hand
            continue
        (one, low), (other, high) = rows[merge.one], rows[merge.other]
        found.append(Joint((one, other), (low, high), merge.height))
        rows[count + at] = ((one + other) / 2, merge.height)
    return tuple(found)


def _place(a: int, b: int) -> str:
    if a < 0:
        return "–"
    return str(a) if a == b else f"{a}/{b}"
