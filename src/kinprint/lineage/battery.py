"""The battery: every entry of the menu, run on two samples.

Pure: arrays and a seed in, evidence out. Every entry of the level's menu appears, also those
that had to stay silent, with the reason; one look that is no test tells kinds of relation apart.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from kinprint.lineage.pair import Pair
from kinprint.lineage.reading.sample import Sample
from kinprint.lineage.side import Side
from kinprint.lineage.tests import attention, channels, experts, units
from kinprint.lineage.tests.leading import leading
from kinprint.lineage.tests.menu import MenuEntry, menu
from kinprint.records import Evidence

__all__ = ["MenuEntry", "Pair", "Side", "examine", "face", "menu", "run_battery", "run_tests"]

_TESTS: dict[str, Callable[[Pair, MenuEntry], Evidence]] = {
    "E1.blocks": channels.gain_blocks,
    "E1.profile": channels.gain_profile,
    "E1.fixed": channels.gain_fixed_points,
    "E1.order": channels.gain_order,
    "E6.norms": channels.gain_bits,
    "E3.blocks": channels.column_blocks,
    "E3.fixed": channels.column_fixed_points,
    "E3.order": channels.column_order,
    "Cm.blocks": channels.matrix_columns,
    "U1.blocks": units.unit_blocks,
    "U1.fixed": units.unit_fixed_points,
    "U1.aligned": units.unit_fixed_points_aligned,
    "U1.order": units.unit_order,
    "E6.units": units.unit_bits,
    "E4.blocks": attention.value_blocks,
    "E5.blocks": experts.expert_blocks,
    "S1": units.unit_signs,
    "S1.numbered": units.unit_signs_numbered,
    "S2": attention.plane_signs,
    "S2.numbered": attention.plane_signs_numbered,
    "S2.biases": attention.plane_biases,
    "S3": channels.column_signs,
    "S4": attention.value_signs,
}

# Tests that wait for the alignment of units and heads, which is found beside the others.
_LATE = ("U1.aligned", "U1.order", "E4.blocks", "E5.blocks", "S1", "S2", "S4")
_BY_NUMBER = ("U1.blocks", "U1.fixed")  # unless shapes differ, so that there is no number


def examine(sample: Sample, earlier: Side | None = None) -> Side:
    """Prepare a model once for many comparisons: its self-tests and prepared rows are kept.

    `earlier` is the same model when less of it was read; what did not change is not done again.
    """
    return Side(sample, earlier)


def face(a: Sample | Side, b: Sample | Side, *, seed: int = 0, level: str = "standard") -> Pair:
    """Two models side by side, in an order of their own, whichever is named first."""
    sides = [one if isinstance(one, Side) else examine(one) for one in (a, b)]
    sides.sort(key=lambda side: side.rank)
    return Pair(*sides, seed=seed, level=level)


def run_tests(pair: Pair) -> tuple[Evidence, ...]:
    """Run every test of the level's menu on a pair; what was aligned stays with the pair."""
    entries = menu(pair.level)
    late = _LATE if pair.numbered(*pair.sides) is not None else (*_LATE, *_BY_NUMBER)
    with ThreadPoolExecutor(1) as beside:
        alignment = beside.submit(pair.align)
        told = {
            entry.name: _TESTS[entry.name](pair, entry)
            for entry in sorted(entries, key=lambda one: one.name in late)
        }
        alignment.result()
    found = tuple(told[entry.name] for entry in entries)
    return (*found, leading(pair, found))


def run_battery(
    a: Sample | Side, b: Sample | Side, *, seed: int = 0, level: str = "standard"
) -> tuple[Evidence, ...]:
    """Run every test of the level's menu on two models.

    The seed only draws the samples of the null that are kept for pictures.
    """
    return run_tests(face(a, b, seed=seed, level=level))
