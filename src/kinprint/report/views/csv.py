"""Tables as CSV files (RFC 4180): every row, every digit.

Text that a spreadsheet would take for a formula gets an apostrophe in front, because names
and tokens come from strangers, and control characters are written as Python writes them; the
JSON beside has both as they are.
"""

from __future__ import annotations

import csv
import re
from io import StringIO

from kinprint import text
from kinprint.report.answer import summary
from kinprint.report.evidence import compared, own_p
from kinprint.report.schema import (
    ComparisonDocument,
    DiffDocument,
    EstimatePart,
    EvidencePart,
    MatrixDocument,
    PartRow,
)
from kinprint.studies.results import Cell, Table

# A terminal obeys some of them, and a spreadsheet shows none; line ends and tabs are quoted.
_CONTROL = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_EVIDENCE = (
    "tier", "group", "status", "log10_p", "adjusted", "share", "statistic", "effect", "n", "bound",
    "floor", "roles", "layers", "learnt", "reason",
)  # fmt: skip
_PARTS = (
    "tower", "component", "layer", "expert", "state", "likeness", "log10_p", "learnt", "bits",
    "partner_tower", "partner_component", "partner_layer", "partner_expert", "weights", "read",
    "needs", "tests", "reason",
)  # fmt: skip
_TENSORS = (
    "tower", "role", "layer", "expert", "from_layer", "from_expert", "component", "a", "b",
    "a_format", "b_format", "shape", "status", "numbers", "read", "changed", "changed_low",
    "changed_high", "relative", "relative_low", "relative_high", "largest", "scale", "cosine",
    "broken", "zeroed", "rounded_to_bits", "rank", "effective_rank", "whiteness", "reason",
)  # fmt: skip
_OPERATIONS = ("operation", "evidence", "components", "format", "bits", "rank", "hub")
_PAIRS = ("a", "b", "relation", "log10_p", "linked", "likeness", "components", "strongest")


def sheet(table: Table) -> bytes:
    """A table as the bytes of a CSV file."""
    stream = StringIO()
    writer = csv.writer(stream, lineterminator="\r\n")
    writer.writerow([_cell(name) for name in table.columns])
    writer.writerows([_cell(value) for value in row] for row in table.rows)
    return stream.getvalue().encode("utf-8")


def tables_of(
    document: ComparisonDocument | MatrixDocument | DiffDocument,
) -> tuple[Table, ...]:
    """Tables of a document, that of its CSV file first: parts and tests, or pairs."""
    languages = text.languages()
    if isinstance(document, MatrixDocument):
        pairs = tuple(
            (
                one.a, one.b, one.relation, one.log10_p, one.amount.linked, one.likeness,
                " ".join(one.components), one.strongest,
                *(summary(document, one, language) for language in languages),
            )
            for one in document.pairs
        )  # fmt: skip
        told = (f"summary_{language}" for language in languages)
        return (Table("pairs", text.words("report.table.pairs"), (*_PAIRS, *told), pairs),)
    if isinstance(document, DiffDocument):
        return _of_diff(document)
    parts = tuple(_part_row(one) for one in document.verdict.parts)
    columns = ("test", *(f"what_{language}" for language in languages), *_EVIDENCE)
    rows = tuple(_evidence_row(one) for one in document.evidence)
    return (
        Table("parts", text.words("report.table.parts"), _PARTS, parts),
        Table("evidence", text.words("report.table.evidence"), columns, rows),
    )


def _of_diff(document: DiffDocument) -> tuple[Table, ...]:
    tensors = tuple(
        (
            one.tower, one.role, one.layer, one.expert, one.from_layer, one.from_expert,
            one.component, one.a, one.b, one.a_format, one.b_format,
            " × ".join(map(str, one.shape)), one.status, one.numbers, one.read,
            *_estimate(one.changed), *_estimate(one.relative), one.largest, one.scale, one.cosine,
            one.broken, one.zeroed, one.rounding.bits if one.rounding else None,
            one.directions.rank if one.directions else None,
            one.directions.effective if one.directions else None,
            one.directions.whiteness if one.directions else None, one.reason,
        )
        for one in document.tensors
    )  # fmt: skip
    operations = tuple(
        (
            one.kind, one.evidence, " ".join(one.components), one.format, one.bits, one.rank,
            one.hub,
        )
        for one in document.operations
    )  # fmt: skip
    return (
        Table("tensors", text.words("diff.table.tensors"), _TENSORS, tensors),
        Table("operations", text.words("diff.table.operations"), _OPERATIONS, operations),
    )


def _estimate(one: EstimatePart | None) -> tuple[Cell, Cell, Cell]:
    return (None, None, None) if one is None else (one.value, one.low, one.high)


def _part_row(one: PartRow) -> tuple[Cell, ...]:
    partner = one.partner
    there: tuple[Cell, ...] = (
        (None,) * 4
        if partner is None
        else (partner.tower, partner.component, partner.layer, partner.expert)
    )
    return (
        one.tower, one.component, one.layer, one.expert, one.state, one.likeness, one.log10_p,
        one.learnt, one.bits, *there, one.weights, one.read, one.needs, " ".join(one.tests),
        one.reason,
    )  # fmt: skip


def _evidence_row(one: EvidencePart) -> tuple[Cell, ...]:
    what = compared(one.test)
    told = (what[language] for language in text.languages())
    return (
        one.test, *told, one.tier, one.group, one.status, own_p(one),
        one.adjusted, one.share, one.statistic, one.effect, one.n, one.bound, one.floor,
        " ".join(one.roles), " ".join(map(str, one.layers)), one.learnt, one.reason,
    )  # fmt: skip


def _cell(value: Cell) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case float():
            return repr(value)
        case str():
            shown = _CONTROL.sub(_escaped, value)
            return f"'{shown}" if shown.startswith(_FORMULA) and not _is_number(shown) else shown
    return str(value)


def _escaped(found: re.Match[str]) -> str:
    return repr(found[0])[1:-1]


def _is_number(given: str) -> bool:
    try:
        float(given)
    except ValueError:
        return False
    return True
