"""Comparisons as tables: every test of a pair, or every pair of a matrix, with every digit."""

from __future__ import annotations

from kinprint.report.comparison_charts import asks
from kinprint.report.documents import ComparisonDocument, MatrixDocument
from kinprint.report.relations import own_p
from kinprint.studies.results import Table
from kinprint.text import Words

_EVIDENCE = (
    "test", "what_en", "what_ko", "tier", "group", "status", "log10_p", "adjusted", "share",
    "statistic", "effect", "n", "bound", "floor", "roles", "layers", "learnt", "reason",
)  # fmt: skip
_PAIRS = (
    "a", "b", "relation", "log10_p", "likeness", "roles", "strongest", "summary_en", "summary_ko"
)  # fmt: skip


def table_of(document: ComparisonDocument | MatrixDocument) -> Table:
    """What the CSV file of a document holds."""
    if isinstance(document, MatrixDocument):
        return _pairs(document)
    return _evidence(document)


def _evidence(document: ComparisonDocument) -> Table:
    told = {one.test: asks(one.test, document.asked.level) for one in document.evidence}
    rows = tuple(
        (
            one.test, told[one.test].en, told[one.test].ko, one.tier,
            one.group, one.status, own_p(one), one.adjusted, one.share, one.statistic,
            one.effect, one.n, one.bound, one.floor, " ".join(one.roles),
            " ".join(map(str, one.layers)), one.learnt, one.reason,
        )
        for one in document.evidence
    )  # fmt: skip
    return Table("evidence", Words("Evidence", "증거"), _EVIDENCE, rows)


def _pairs(document: MatrixDocument) -> Table:
    rows = tuple(
        (
            one.a, one.b, one.relation, one.log10_p, one.likeness, " ".join(one.roles),
            one.strongest, one.summary, one.summary_ko,
        )
        for one in document.pairs
    )  # fmt: skip
    return Table("pairs", Words("Pairs", "쌍"), _PAIRS, rows)
