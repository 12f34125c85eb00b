"""What a test found, as evidence: one record an entry of the menu, spoken or silent."""

from __future__ import annotations

import math
from collections.abc import Sequence

from kinprint.lineage.tests.menu import MenuEntry
from kinprint.nulls.result import NullResult
from kinprint.records import Evidence


def silent(entry: MenuEntry, status: str, reason: str) -> Evidence:
    """An entry without a p-value: "needs" what was not read, "guarded", or "undefined"."""
    return Evidence(test=entry.name, tier="exact", group=entry.group, status=status, reason=reason)


def spoken(
    entry: MenuEntry,
    result: NullResult,
    *,
    roles: Sequence[str],
    layers: Sequence[int] = (),
    effect: float | None = None,
    learnt: bool = False,
    details: Sequence[tuple[str, float]] = (),
) -> Evidence:
    """The evidence of a null result; a test with nothing to relabel is undefined.

    `effect` replaces the result's own where that is not on the scale of a correlation.
    """
    size = result.effect if effect is None else effect
    if not result.n:
        return silent(entry, "undefined", "nothing that could be relabelled is left")
    if not result.floor:
        return silent(entry, "undefined", "no relabelling would change anything")
    extra = tuple(sorted((name, float(value)) for name, value in result.details.items()))
    return Evidence(
        test=entry.name,
        tier="exact",
        group=entry.group,
        status="ok",
        log10_p=min(0.0, result.log10_p),
        statistic=result.statistic,
        effect=size if math.isfinite(size) else None,
        n=result.n,
        bound=result.bound,
        floor=result.floor,
        null=result.null,
        roles=tuple(roles),
        layers=tuple(sorted(set(layers))),
        learnt=learnt,
        details=(*extra, *details),
    )
