"""What was said beside what is true, as Markdown and as CSV."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Sequence

from benchmarks.redteam.running import Row
from benchmarks.redteam.truth import Claims, Truth

_HEAD = ("pair", "seed", "reading", "true", "said", "false")


def markdown(rows: Sequence[Row], all_rows: bool = False) -> str:
    """A table; readings of a pair that say the same share a row."""
    lines = ["| pair | reading | true | said | false |", "|---|---|---|---|---|"]
    for group in _grouped(rows):
        first = group[0]
        if first.true and not all_rows:
            continue
        readings = "; ".join(str(row.reading) for row in group)
        cells = (
            first.name if first.seed == 0 else f"{first.name} ({first.seed})",
            readings,
            _truth(first),
            _said(first.claims),
            "; ".join(first.falsehoods[:3]) + (" …" if len(first.falsehoods) > 3 else "") or "—",
        )
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines)


def as_csv(rows: Sequence[Row]) -> str:
    """Every row."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow((*_HEAD, "most alike", "seconds"))
    for row in rows:
        writer.writerow(
            (
                row.name,
                row.seed,
                str(row.reading),
                _truth(row),
                _said(row.claims),
                "; ".join(row.falsehoods),
                _most_alike(row.claims),
                f"{row.seconds:.2f}",
            )
        )
    return text.getvalue()


def tally(rows: Sequence[Row]) -> str:
    """How many readings and how many pairs were told truly."""
    false = {(row.name, row.seed) for row in rows if not row.true}
    pairs = {(row.name, row.seed) for row in rows}
    readings = Counter(row.true for row in rows)
    return (
        f"{len(pairs) - len(false)} of {len(pairs)} pairs told truly in every reading; "
        f"{readings[True]} of {len(rows)} readings true, {readings[False]} false"
    )


def _grouped(rows: Sequence[Row]) -> list[list[Row]]:
    groups: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        key = (row.name, row.seed, row.reading.reach, _said(row.claims), row.falsehoods)
        groups.setdefault(key, []).append(row)
    return list(groups.values())


def _truth(row: Row) -> str:
    truth: Truth = row.case.truth
    relations = " or ".join(sorted(truth.relations(row.reading.reach)))
    facts = "; ".join(
        f"{where} {fact}" for where, fact in truth.seen_from(row.reading.swapped).facts
    )
    return f"{relations} ({facts + '; ' if facts else ''}rest {truth.rest})"


def _most_alike(claims: Claims | None) -> str:
    most = {} if claims is None else claims.most_alike
    return "; ".join(f"{component} {likeness:.2f}" for component, likeness in most.items())


def _said(claims: Claims | None) -> str:
    if claims is None:
        return "—"
    states: dict[str, list[str]] = {}
    for claim in claims.parts:
        place = "" if claim.layer in (None, -1) else f" {claim.layer}"
        name = f"{claim.tower + ' ' if claim.tower else ''}{claim.component}{place}"
        states.setdefault(claim.state, []).append(name)
    parts = "; ".join(f"{state}: {', '.join(names)}" for state, names in states.items())
    p = "" if claims.log10_p is None else f", p 10^{claims.log10_p:.0f}"
    return f"{claims.relation}{p}{' (' + parts + ')' if parts else ''}"
