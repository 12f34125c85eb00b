"""How small a relation would have been seen, by the tests that can say so."""

from __future__ import annotations

import math
from collections.abc import Sequence

from kinprint.lineage.charge import Charge
from kinprint.lineage.tests.registry import own_tests
from kinprint.nulls.power import smallest_effect
from kinprint.records import Component, Evidence, Verdict


def detectable_effects(exact: Sequence[Evidence], charge: Charge) -> tuple[tuple[str, float], ...]:
    """The smallest correlation that each test would have found nine times in ten, by its name.

    It is that of things at equal places, in the basis and the numbering in which both models are
    stored. Tests that match things first, or count equal numbers, state none.
    """
    return tuple(
        (one.test, size)
        for one in exact
        if one.sensitivity is not None
        and one.floor <= charge.level(one.test)
        and 0 < (size := smallest_effect(one.sensitivity, charge.level(one.test))) < 1
    )


def seen_from(verdict: Verdict) -> dict[Component, tuple[float, str]]:
    """By kind of part, the correlation from which on it would have been seen, and the test for it.

    It is that of the mean over what was read of such parts.
    """
    least: dict[Component, tuple[float, str]] = {}
    for name, size in verdict.power:
        test = own_tests().get(name)
        if test is not None and test.component is not None and math.isfinite(size):
            least[test.component] = min((size, name), least.get(test.component, (math.inf, "")))
    return least


def seen_from_everywhere(verdict: Verdict) -> tuple[float, str] | tuple[None, None]:
    """The largest of these: from there on any kind of part would have been seen; and its test."""
    return max(seen_from(verdict).values(), default=(None, None))
