"""How small a relation would have been seen, by the tests that can say so."""

from __future__ import annotations

from collections.abc import Sequence

from kinprint.lineage.charge import Charge
from kinprint.nulls.power import smallest_effect
from kinprint.records import Evidence


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
