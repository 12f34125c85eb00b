"""`python -m benchmarks.calibration.shipping pairs-*.csv`: the tables of runs made into what ships.

Writes `pairs.csv` beside this file, one row a pair and way of reading, and the invariants' tier's
`invariants.toml`: what strangers, pupils, twins and descendants reach by width, and how often the
limits are wrong in the collection that was set aside. Limits are set by hand on the other
collection; this only counts.
"""

from __future__ import annotations

import csv
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from kinprint.lineage.tests.invariants import LIMITS, Limit, Statistic
from kinprint.nulls.conformal import disjoint_pairs

HERE = Path(__file__).parent
SHIPPED = HERE.parents[1] / "src" / "kinprint" / "lineage" / "tests" / "invariants.toml"
COLUMNS = (
    "collection", "width", "kind", "how", "roots", "reading", "units", "concordance",
    "concordance_least", "concordance_most", "mutual", "mutual_least", "mutual_most",
    "two_of_three", "two_of_three_least", "two_of_three_most", "span", "span_least", "span_most",
    "heads", "heads_of", "gains", "effective", "carried",
)  # fmt: skip
HEAD = """\
# What the invariants' tier knows of pairs of models with a known history, by width.
#
# Made by `python -m benchmarks.calibration` and `python -m benchmarks.calibration.shipping` from
# models trained for the purpose; `benchmarks/calibration/pairs.csv` has every pair. Values are
# means over layers; `layer` is the largest (of descendants the least) of a single layer. Strangers
# and pupils have first weights of their own, twins share them. `disjoint` counts pairs of strangers
# of which no two share a root. The collection that was set aside has another optimiser, schedule,
# first weights and texts, and no limit was set by it.
# Shares were counted before a partner counted only once, which gives strangers no more than this.
"""
_READINGS = {"tokens": "whole", "some rows": "rows"}
Row = dict[str, str]


def main() -> None:
    rows = list(_rows(sys.argv[1:]))
    with (HERE / "pairs.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    SHIPPED.write_text("\n".join(_toml(rows)) + "\n", encoding="utf-8")


def _rows(paths: Iterable[str]) -> Iterable[Row]:
    """Rows of all tables, of maps by tokens: those by Gram matrices bring strangers less."""
    for path in paths:
        with Path(path).open(encoding="utf-8", newline="") as file:
            table = list(csv.DictReader(file))
        planes = {(row["first"], row["second"], _READINGS.get(row["reading"])): row
                  for row in table if row.get("plane")}  # fmt: skip
        for row in table:
            if row["reading"] not in _READINGS:
                continue
            reading = _READINGS[row["reading"]]
            row["collection"], _, shape = row["plan"].partition(" ")
            row["width"] = shape.split()[1].partition("x")[0]
            row["roots"] = row["roots"].replace(f"{row['plan']} root ", "")
            for name in ("heads_least", "heads_most"):
                row[name] = row["heads"]
            plane = planes.get((row["first"], row["second"], reading))
            if plane is not None:
                for end in ("", "_least", "_most"):
                    row[f"span{end}"] = max(row[f"span{end}"], plane[f"plane{end}"], key=float)
            yield row | {"reading": reading}


def _toml(rows: Sequence[Row]) -> Iterable[str]:
    yield HEAD
    groups: dict[tuple[int, str], list[Row]] = defaultdict(list)
    for row in rows:
        if row["collection"] == "set":
            groups[int(row["width"]), row["reading"]].append(row)
    for (width, reading), each in sorted(groups.items()):
        strangers = [row for row in each if row["kind"] == "stranger"]
        roots = [_roots(row) for row in strangers]
        yield "[[known]]"
        yield f'width = {width}\nreading = "{reading}"'
        yield f"roots = {len({root for pair in roots for root in pair})}"
        yield f"disjoint = {len(disjoint_pairs(roots))}"
        for statistic in Statistic:
            yield f"[known.{statistic}]"
            for name, kind in (("strangers", "stranger"), ("taught", "pupil"), ("twins", "twin")):
                some = [row for row in each if row["kind"] == kind]
                values = sorted((float(row[statistic]) for row in some), reverse=True)
                yield f"{name} = [{', '.join(f'{value:.3f}' for value in values)}]"
                most = max(float(row[f"{statistic}_most"]) for row in some)
                yield f"{name}_layer = {most:.3f}"
            kin = [row for row in each if row["kind"] == "descendant"]
            least = min(float(row[statistic]) for row in kin)
            yield f"descendants = {len(kin)}\ndescendants_least = {least:.3f}"
        yield ""
    yield from _rates(rows)


def _rates(rows: Sequence[Row]) -> Iterable[str]:
    """How often the rule speaks, by collection, reading and kind."""
    counts: dict[tuple[str, str, str], list[bool]] = defaultdict(list)
    for row in rows:
        counts[row["collection"], row["reading"], row["kind"]].append(
            any(_reaches(row, statistic, limit) for statistic, limit in LIMITS.items())
        )
    for (collection, reading, kind), spoke in sorted(counts.items()):
        yield "[[rate]]"
        yield f'collection = "{collection}"\nreading = "{reading}"\nkind = "{kind}"'
        yield f"pairs = {len(spoke)}\nspoke = {sum(spoke)}\n"


def _reaches(row: Row, statistic: Statistic, limit: Limit) -> bool:
    mean, layer = float(row[statistic]), float(row[f"{statistic}_most"])
    return mean >= limit.mean or layer >= limit.layer


def _roots(row: Row) -> tuple[str, str]:
    one, other = row["roots"].split(" | ")
    return one, other


if __name__ == "__main__":
    main()
