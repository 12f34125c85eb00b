"""Make a pair, compare it in every way asked for, and hold what is said against the truth."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

import kinprint
from benchmarks.redteam.cases import CASES, Case
from benchmarks.redteam.truth import Claims, Reach, Reading, claims_of, falsehoods
from benchmarks.redteam.zoo import Zoo

SMALL, MIDDLE = 900_000, 4_000_000
READINGS = (
    Reading("quick", None, Reach.NORMS),
    Reading("quick", SMALL, Reach.NORMS),
    Reading("standard", SMALL, Reach.SAMPLE),
    Reading("standard", MIDDLE, Reach.SAMPLE),
    Reading("standard", None, Reach.WHOLE),
    Reading("deep", SMALL, Reach.SAMPLE),
    Reading("deep", MIDDLE, Reach.SAMPLE),
    Reading("deep", None, Reach.WHOLE),
)
"""Levels and budgets; small models are read whole where no budget is set."""
SHORT_READINGS = (READINGS[0], READINGS[2], READINGS[4])


class Row(Struct, frozen=True):
    """What was said of a pair in one reading, and what of it is false.

    `claims` is None where the comparison failed; then `falsehoods` say how.
    """

    name: str
    seed: int
    reading: Reading
    claims: Claims | None
    falsehoods: tuple[str, ...]
    seconds: float

    @property
    def case(self) -> Case:
        """The pair that it is about."""
        return CASES[self.name]

    @property
    def true(self) -> bool:
        """Whether nothing false was said."""
        return not self.falsehoods


def readings_of(case: Case, readings: Sequence[Reading], orders: bool) -> Iterator[Reading]:
    """Readings of a case, in both orders if asked for, with what is within reach there."""
    for reading in readings:
        sampled = case.large and reading.level == "standard" and reading.reach is Reach.WHOLE
        one = replace(reading, reach=Reach.SAMPLE) if sampled else reading
        yield one
        if orders:
            yield replace(one, swapped=True)


def run_case(
    case: Case, zoo: Zoo, seed: int, readings: Iterable[Reading], folder: Path | None = None
) -> list[Row]:
    """Compare the pair of a case in several ways; a folder keeps the files."""
    if folder is None:
        with tempfile.TemporaryDirectory() as place:
            return run_case(case, zoo, seed, readings, Path(place))
    first, second = case.pair(zoo, seed)
    paths = first.write(folder / "first"), second.write(folder / "second")
    rows = [_compared(case, seed, reading, paths) for reading in readings]
    return _with_order(rows)


def _compared(case: Case, seed: int, reading: Reading, paths: tuple[Path, Path]) -> Row:
    a, b = reversed(paths) if reading.swapped else paths
    start = time.perf_counter()
    try:
        found = kinprint.compare(a, b, level=reading.level, budget=reading.budget, hashes=False)
        claims = claims_of(found.to_dict())
    except kinprint.KinprintError as error:
        wrong = f"{type(error).__name__}: {error}"
        return Row(case.name, seed, reading, None, (wrong,), time.perf_counter() - start)
    except Exception as error:  # a crash is a row of the table, not its end
        wrong = f"crash: {type(error).__name__}: {error}"
        return Row(case.name, seed, reading, None, (wrong,), time.perf_counter() - start)
    false = tuple(falsehoods(claims, case.truth, reading))
    return Row(case.name, seed, reading, claims, false, time.perf_counter() - start)


def _with_order(rows: Sequence[Row]) -> list[Row]:
    """The same rows, with a remark where the order of the arguments changed the answer."""
    straight = {
        (row.reading.level, row.reading.budget): row for row in rows if not row.reading.swapped
    }
    checked = []
    for row in rows:
        other = straight.get((row.reading.level, row.reading.budget))
        if row.reading.swapped and other is not None and not _agree(row.claims, other.claims):
            row = replace(row, falsehoods=(*row.falsehoods, "another answer when swapped"))
        checked.append(row)
    return checked


def _agree(one: Claims | None, other: Claims | None) -> bool:
    if one is None or other is None:
        return one is other
    if one.relation != other.relation:
        return False
    x, y = one.log10_p or 0.0, other.log10_p or 0.0
    return abs(x - y) <= 1e-6 * max(1.0, abs(x))
