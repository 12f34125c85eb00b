"""Two tensors side by side: whether they can be compared, their measures, and how sure.

Every study that compares goes through here, so that a shape mismatch, a missing layer or a
value that is no number becomes the same kind of row everywhere, and a number from a sample
of rows never stands without its interval.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from kinprint import text
from kinprint.measure.measurement import Measurement, ValueStatus
from kinprint.measure.measures import measure
from kinprint.measure.sampling import sampled_interval
from kinprint.records import Mark
from kinprint.studies.marks import mark_of
from kinprint.studies.results import RowStatus
from kinprint.studies.study import Floats, ReadTensor

SHUFFLED = "shuffled_cosine"
"""What a cosine owes to the values alone, whatever their places."""
Doubles = NDArray[np.float64]
_BY_PRODUCT = frozenset({"cosine", "pearson", SHUFFLED})
_FLAT = 1e-6  # values that differ by no more than this share of the largest count as constant


class TensorComparison(Struct, frozen=True):
    """One pair of tensors: measures by name, or the status and reason why there are none.

    The first measure decides the status: where it has no value, the pair is "undefined". A
    measure without a value is None, and `reason` says why even where others have one.
    `intervals` has 95 % bounds for measures taken from a sample of rows, and nothing for
    tensors that were read whole. `read` of `height` rows were compared. `marks` say where the
    values come from.
    """

    status: RowStatus
    reason: str = ""
    values: Mapping[str, float | None] = field(default_factory=dict)
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    read: int | None = None
    height: int | None = None
    marks: Mapping[str, Mark] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether anything could be measured."""
        return self.status is RowStatus.OK

    @property
    def sample(self) -> str:
        """Rows compared of all rows, as `16/1024`; empty for vectors and failures."""
        return "" if self.read is None else f"{self.read}/{self.height}"

    def value(self, name: str) -> float | None:
        """One measure; None where it has no value or was not asked for."""
        return self.values.get(name)

    @property
    def absent(self) -> bool:
        """Whether a replica lacks a tensor, or nothing published determines the pair."""
        return self.status is RowStatus.NOT_IN_REPLICA

    def mark(self, name: str) -> Mark | None:
        """Where the value of a measure comes from; None where it has none."""
        return None if self.value(name) is None else self.marks.get(name, Mark.MEASURED)

    @property
    def marked(self) -> str:
        """The mark of the values; those of some measures by themselves where they differ."""
        known = {name: mark for name in self.values if (mark := self.mark(name)) is not None}
        usual = next(iter(known.values()), None)
        apart = [f"{name}: {mark}" for name, mark in known.items() if mark is not usual]
        return "; ".join([usual or "", *apart])

    def bounds(self, name: str) -> tuple[float | None, float | None]:
        """Its interval; two Nones where the tensors were read whole."""
        return self.intervals.get(name, (None, None))


def compare(
    a: ReadTensor, b: ReadTensor, names: Iterable[str], *, any_rows: bool = False
) -> TensorComparison:
    """Measure two tensors by the named measures.

    Shapes must agree as a whole, for the same rows were then read of both; `any_rows` is
    for rows that were paired by meaning, such as tokens, and asks for equal widths only.
    """
    failed = [side for side in (a, b) if side.status is not RowStatus.OK]
    # What a model itself does not have says more than what its replica lacks.
    failed.sort(key=lambda side: side.status is RowStatus.NOT_IN_REPLICA)
    apart = a.shape is not None and b.shape is not None and a.shape != b.shape and not any_rows
    if failed and not (apart and all(one.status is RowStatus.NOT_IN_REPLICA for one in failed)):
        reasons = text.joined_sentences(side.reason for side in failed)
        return TensorComparison(failed[0].status, reasons)
    if apart or a.values is None or b.values is None or a.values.shape != b.values.shape:
        shapes = {"a": shape_text(a.shape), "b": shape_text(b.shape)}
        unequal = text.sentence("study.reason.against", **shapes)
        return TensorComparison(RowStatus.SHAPE_MISMATCH, unequal)
    read, height = (None, None) if a.rows is None or a.shape is None else (len(a.rows), a.shape[0])
    values: dict[str, float | None] = {}
    intervals: dict[str, tuple[float, float]] = {}
    causes: dict[str, str] = {}
    marks: dict[str, Mark] = {}
    for name in names:
        mark = mark_of(name, a.origin, b.origin)
        if mark is None:
            values[name], causes[name] = None, text.sentence("study.reason.not-published")
            continue
        marks[name] = mark
        found = measure(name, a.values, b.values)
        values[name] = found.value if found.ok else None
        if not found.ok:
            causes[name] = _reason(found)
        elif a.sampled and read is not None and height is not None:
            bounds = sampled_interval(name, a.values, b.values, found.value, read / height)
            if bounds is not None:
                intervals[name] = bounds
    first = next(iter(values), None)
    status = RowStatus.OK
    if first in causes:
        status = RowStatus.UNDEFINED if first in marks else RowStatus.NOT_IN_REPLICA
    reason = _joined_reasons(causes, len(values))
    return TensorComparison(status, reason, values, intervals, read, height, marks)


def shape_text(shape: Sequence[int] | None) -> str:
    """A shape as published tables write it, `(1024, 4096)`."""
    return "" if shape is None else str(tuple(shape))


def _reason(found: Measurement) -> str:
    if found.status is ValueStatus.UNDEFINED:
        return text.sentence(f"reason.measure.{found.detail}")
    return f"{found.status} {found.detail}".strip()


def _joined_reasons(reasons: Mapping[str, str], measures: int) -> str:
    """One reason if all measures lack a value for it, else each with its measure."""
    if len(reasons) == measures and len(set(reasons.values())) == 1:
        return next(iter(reasons.values()))
    return text.joined_sentences(
        text.joined_sentences((name, reason), ": ") for name, reason in reasons.items()
    )


def compare_all(
    first: Sequence[ReadTensor], second: Sequence[ReadTensor], names: Sequence[str]
) -> list[list[TensorComparison]]:
    """A row for each of the first, a column for each of the second, as `compare` has them.

    Thousands of pairs of vectors that have nothing about them are a few matrix products; what is
    missing, constant or not finite goes one by one, so that it gets the same status as everywhere.
    """
    lefts, rights = [_plain(one) for one in first], [_plain(one) for one in second]
    width = next((vector.size for vector in lefts if vector is not None), 0)
    rows = [i for i, vector in enumerate(lefts) if vector is not None and vector.size == width]
    columns = [j for j, vector in enumerate(rights) if vector is not None and vector.size == width]
    products: dict[str, Doubles] = {}
    if rows and columns and set(names) <= _BY_PRODUCT:
        products = _products(_stack(lefts, rows), _stack(rights, columns))
    row_at = {i: n for n, i in enumerate(rows)} if products else {}
    column_at = {j: n for n, j in enumerate(columns)} if products else {}

    def pair(i: int, j: int) -> TensorComparison:
        if i not in row_at or j not in column_at or first[i].origin or second[j].origin:
            return compare(first[i], second[j], names)
        place = row_at[i], column_at[j]
        values = {name: float(products[name][place]) for name in names}
        return TensorComparison(RowStatus.OK, values=values)

    return [[pair(i, j) for j in range(len(second))] for i in range(len(first))]


def _products(x: Doubles, y: Doubles) -> dict[str, Doubles]:
    """The measures of all rows of x with all rows of y."""
    lengths = np.outer(np.sqrt((x * x).sum(1)), np.sqrt((y * y).sum(1)))
    means = np.outer(x.mean(1), y.mean(1))
    cosine = np.clip(x @ y.T / lengths, -1, 1)
    u, v = x - x.mean(1, keepdims=True), y - y.mean(1, keepdims=True)
    apart = np.outer(np.sqrt((u * u).sum(1)), np.sqrt((v * v).sum(1)))
    return {
        "cosine": cosine,
        "pearson": np.clip(u @ v.T / apart, -1, 1),
        SHUFFLED: x.shape[1] * means / lengths,
    }


def _stack(vectors: Sequence[Floats | None], which: Sequence[int]) -> Doubles:
    chosen = [vectors[at] for at in which]
    return np.stack([vector for vector in chosen if vector is not None]).astype(np.float64)


def _plain(tensor: ReadTensor) -> Floats | None:
    """A vector about which no measure would have anything to say; None for the rest."""
    values = tensor.values
    if tensor.status is not RowStatus.OK or values is None or values.ndim != 1 or values.size < 2:
        return None
    plain = np.isfinite(values).all() and np.ptp(values) > _FLAT * np.abs(values).max()
    return values if plain else None
