"""What `kinprint compare` says of models whose history is known, and nobody set a limit by.

Models of a collection are written as they are published and compared like any others, at the
level that people get; rows say what was said of each pair, `tally` how often.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import kinprint
from benchmarks.calibration.judging import Known
from benchmarks.redteam.truth import claims_of

Row = dict[str, Any]


def verdict(plan: str, known: Known, first: Path, second: Path) -> Row:
    """What is said of one pair, and how alike the most alike part of each kind is."""
    found = claims_of(kinprint.compare(first, second, hashes=False).to_dict())
    alike = found.most_alike
    return {
        "plan": plan, "kind": known.kind, "how": known.how,
        "first": known.first, "second": known.second,
        "relation": found.relation, "log10_p": found.log10_p,
        **{f"most alike {component}": round(most, 3) for component, most in alike.items()},
    }  # fmt: skip


def tally(rows: Iterable[Mapping[str, Any]]) -> str:
    """How often pairs of each kind were told what, as Markdown."""
    counts = Counter((row["kind"], row["how"], row["relation"]) for row in rows)
    lines = ["| pairs | kind | how | said |", "|---|---|---|---|"]
    lines += [
        f"| {count} | {kind} | {how} | {said} |"
        for (kind, how, said), count in sorted(counts.items())
    ]
    return "\n".join(lines)
