"""`python -m benchmarks.calibration.shipping pairs-*.csv`: the tables of runs made into what ships.

Writes `pairs.csv` beside this file, one row a pair and way of reading, and the invariants' tier's
`invariants.json`: what strangers, pupils, twins and descendants reach by width, and how often the
limits are wrong in the collection that was set aside. Limits are set by hand on the other
collection; this only counts. A run takes the place of earlier rows of its collection, width and
kind of feed-forward; the others stay.
"""

from __future__ import annotations

import csv
import json
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from kinprint.lineage.tests.invariants import LIMITS, Limit, Statistic, statistics
from kinprint.nulls.conformal import disjoint_pairs

HERE = Path(__file__).parent
SHIPPED = HERE.parents[1] / "src" / "kinprint" / "lineage" / "tests" / "invariants.json"
COLUMNS = (
    "collection", "feed_forward", "width", "kind", "how", "roots", "reading", "units",
    "concordance", "concordance_least", "concordance_most", "mutual", "mutual_least", "mutual_most",
    "two_of_three", "two_of_three_least", "two_of_three_most", "span", "span_least", "span_most",
    "nearest", "nearest_least", "nearest_most", "heads", "heads_of", "gains", "effective",
    "carried",
)  # fmt: skip
ABOUT = (
    "What the invariants' tier knows of pairs of models with a known history, by width and by "
    "whether feed-forwards are gated. Made by `python -m benchmarks.calibration` and `python -m "
    "benchmarks.calibration.shipping` from models trained for the purpose; "
    "`benchmarks/calibration/pairs.csv` has every pair. Values are means over layers; `layer` is "
    "the largest (of descendants the least) of a single layer. Strangers and pupils have first "
    "weights of their own, twins share them. `disjoint` counts pairs of strangers of which no two "
    "share a root. The collection that was set aside has another optimiser, schedule, first "
    "weights and texts, and no limit was set by it. Shares of gated models were counted before a "
    "partner counted only once, but for those of width 512; that gives strangers no less."
)
_READINGS = {"tokens": "whole", "some rows": "rows"}
Row = dict[str, str]


def main() -> None:
    runs = [row for path in sys.argv[1:] for row in _run(Path(path))]
    anew = {_family(row) for row in runs}
    with (HERE / "pairs.csv").open(encoding="utf-8", newline="") as file:
        kept = [row for row in csv.DictReader(file) if _family(row) not in anew]
    rows = sorted([*kept, *runs], key=_family)
    with (HERE / "pairs.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    table = {"about": ABOUT, "known": [*_known(rows)], "rate": [*_rates(rows)]}
    SHIPPED.write_text(_lines(table) + "\n", encoding="utf-8")


def _lines(table: object) -> str:
    """JSON with a line for each list of numbers."""
    text = json.dumps(table, indent=1, ensure_ascii=False)
    return re.sub(r"\[[-\d.,\s]+\]", lambda found: re.sub(r"\s+", " ", found[0]), text)


def _family(row: Row) -> tuple[str, str, int]:
    return row["collection"], row["feed_forward"], int(row["width"])


def _run(path: Path) -> Iterable[Row]:
    """Rows of a run's table, of maps by tokens: those by Gram matrices bring strangers less."""
    with path.open(encoding="utf-8", newline="") as file:
        table = list(csv.DictReader(file))
    for row in table:
        if row["reading"] not in _READINGS:
            continue
        row["collection"], _, shape = row["plan"].partition(" ")
        row["feed_forward"], _, size = shape.partition(" ")
        row["width"] = size.partition("x")[0]
        row["roots"] = row["roots"].replace(f"{row['plan']} root ", "")
        if row.get("plane"):
            for end in ("", "_least", "_most"):
                row[f"span{end}"] = max(row[f"span{end}"], row[f"plane{end}"], key=float)
        yield row | {"reading": _READINGS[row["reading"]]}


def _known(rows: Sequence[Row]) -> Iterable[dict[str, object]]:
    groups: dict[tuple[str, int, str], list[Row]] = defaultdict(list)
    for row in rows:
        if row["collection"] == "set":
            groups[row["feed_forward"], int(row["width"]), row["reading"]].append(row)
    for (feed_forward, width, reading), each in sorted(groups.items()):
        strangers = [row for row in each if row["kind"] == "stranger"]
        roots = [_roots(row) for row in strangers]
        yield {
            "feed_forward": feed_forward,
            "width": width,
            "reading": reading,
            "roots": len({root for pair in roots for root in pair}),
            "disjoint": len(disjoint_pairs(roots)),
            **{
                statistic.value: _reached(each, statistic)
                for statistic in statistics(gated=feed_forward == "gated")
            },
        }


def _reached(rows: Sequence[Row], statistic: Statistic) -> dict[str, object]:
    """What pairs of each kind have of a statistic."""
    found: dict[str, object] = {}
    for name, kind in (("strangers", "stranger"), ("taught", "pupil"), ("twins", "twin")):
        some = [row for row in rows if row["kind"] == kind]
        found[name] = sorted((round(float(row[statistic]), 3) for row in some), reverse=True)
        found[f"{name}_layer"] = round(max(_most(row, statistic) for row in some), 3)
    kin = [float(row[statistic]) for row in rows if row["kind"] == "descendant"]
    return found | {"descendants": len(kin), "descendants_least": round(min(kin), 3)}


def _rates(rows: Sequence[Row]) -> Iterable[dict[str, object]]:
    """How often the rule speaks, by collection, kind of feed-forward, reading and kind of pair."""
    counts: dict[tuple[str, ...], list[bool]] = defaultdict(list)
    columns = ("collection", "feed_forward", "reading", "kind")
    for row in rows:
        counts[tuple(row[column] for column in columns)].append(
            any(_reaches(row, statistic, limit) for statistic, limit in LIMITS.items())
        )
    for key, spoke in sorted(counts.items()):
        told = dict(zip(columns, key, strict=True))
        yield told | {"pairs": len(spoke), "spoke": sum(spoke)}


def _reaches(row: Row, statistic: Statistic, limit: Limit) -> bool:
    if statistic not in statistics(gated=row["feed_forward"] == "gated"):
        return False
    return float(row[statistic]) >= limit.mean or _most(row, statistic) >= limit.layer


def _most(row: Row, statistic: Statistic) -> float:
    """The largest share of a layer; of heads, which are few, that of all layers together."""
    return float(row[statistic if statistic is Statistic.HEADS else f"{statistic}_most"])


def _roots(row: Row) -> tuple[str, str]:
    one, other = row["roots"].split(" | ")
    return one, other


if __name__ == "__main__":
    main()
