"""Stated power is real: an effect of the stated size, planted, is seen nine times in ten."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from msgspec.structs import replace

from kinprint.lineage.charge import Charge
from kinprint.lineage.pair import Pair
from kinprint.lineage.power import detectable_effects
from kinprint.lineage.reading.sample import Floats, Sample
from kinprint.lineage.side import Side
from kinprint.lineage.tests.menu import menu
from kinprint.lineage.tests.registry import own_tests
from kinprint.records import Evidence
from tests.lineage.made import each_matrix, keyed, made
from tests.lineage.null_pairs import plain

CHARGE = Charge.for_menu(menu())
DRAWS = 24
# Of that many draws, so many are seen but for a chance of 1 in 500 if each is with 0.9.
SEEN = 17


def model(seed: int) -> Sample:
    """Independent random numbers, with gains that vary a little around one."""
    sample = made(seed, width=128, depth=4, units=96, tokens=200)
    norms = {key: np.asarray(1 + (gain - 1) / 4, np.float32) for key, gain in sample.norms.items()}
    return replace(sample, norms=norms)


def deep(seed: int) -> Sample:
    """Enough rotary planes to speak of."""
    return made(seed, width=128, depth=12, units=8)


def layer_norm(seed: int) -> Sample:
    """Channels without coins."""
    sample = model(seed)
    return keyed(replace(sample, facts=replace(sample.facts, norm="layer")))


def ungated(seed: int) -> Sample:
    """Units without coins."""
    return keyed(plain(model(seed)))


def sampled(seed: int) -> Sample:
    """A quarter of the units were read, and their down rows were not."""
    sample = model(seed)
    units = {
        layer: replace(
            one, index=one.index[:24], up=one.up[:24], gate=one.gate[:24], down=0 * one.down[:24]
        )
        for layer, one in sample.units.items()
        if one.gate is not None
    }
    return keyed(replace(sample, units=units))


def planted(one: Sample, other: Sample, correlation: float) -> Sample:
    """The second model with some of the first in every number, at equal places."""
    givers: list[Floats] = []

    def note(rows: Floats) -> Floats:
        givers.append(rows)
        return rows

    each_matrix(one, note)
    given = iter(givers)

    def mixed(rows: Floats, giver: Floats) -> Floats:
        both = correlation * giver + np.sqrt(1 - correlation**2) * rows
        return np.asarray(both, np.float32)

    norms = {key: 1 + mixed(gain - 1, one.norms[key] - 1) for key, gain in other.norms.items()}
    return each_matrix(replace(other, norms=norms), lambda rows: mixed(rows, next(given)))


def found(name: str, one: Sample | Side, other: Sample) -> Evidence:
    return own_tests()[name].run(Pair(one, other))


def stated(name: str, kind: Callable[[int], Sample], pairs: int = 6) -> list[float]:
    """The effects that strangers of one shape are told would have been seen."""
    told = [found(name, kind(2 * at), kind(2 * at + 1)) for at in range(500, 500 + pairs)]
    return [dict(detectable_effects([one], CHARGE))[name] for one in told]


CASES = [
    (model, "E1.blocks"),
    (deep, "S2.numbered"),
    (sampled, "U1.blocks"),
    *(
        pytest.param(kind, name, marks=pytest.mark.slow)
        for kind, name in (
            *(
                (model, name)
                for name in ("Cm.blocks", "E1.profile", "E3.blocks", "E4.blocks", "U1.blocks")
            ),
            *((layer_norm, name) for name in ("E3.blocks", "Cm.blocks", "U1.blocks")),
            (ungated, "U1.blocks"),
        )
    ),
]


@pytest.mark.parametrize(("kind", "name"), CASES, ids=lambda case: getattr(case, "__name__", case))
def test_what_is_stated_is_seen(kind: Callable[[int], Sample], name: str) -> None:
    effects = stated(name, kind)
    effect = float(np.mean(effects))
    assert max(effects) < 1.3 * min(effects)  # strangers of one shape are told one size

    givers = [Side(kind(2 * at)) for at in range(DRAWS)]  # prepared once for both sizes

    def seen(size: float) -> int:
        return sum(
            found(name, one, planted(one.prepared.stored, kind(2 * at + 1), size)).log10_p
            <= CHARGE.level(name)
            for at, one in enumerate(givers)
        )

    assert seen(effect) >= SEEN
    assert seen(0.6 * effect) < 0.7 * DRAWS


@pytest.mark.parametrize("name", ["S1", "S1.numbered", "S2", "S3", "S4", "U1.fixed", "E6.units"])
def test_what_matches_first_or_counts_states_nothing(name: str) -> None:
    assert found(name, model(0), model(1)).sensitivity is None


def test_units_in_a_basis_that_was_searched_for_state_nothing() -> None:
    other = made(1, width=96, depth=4, units=96, tokens=200)
    assert found("U1.blocks", model(0), other).sensitivity is None
