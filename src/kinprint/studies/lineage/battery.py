"""The battery: every entry of the menu, run on two portraits.

Pure: arrays and a seed in, evidence out. Every entry of the level's menu appears, also those
that had to stay silent, with the reason; one look that is no test tells kinds of relation apart.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from kinprint.records import Evidence
from kinprint.studies.lineage import attention_tests, channel_tests, expert_tests, unit_tests
from kinprint.studies.lineage.leading import leading
from kinprint.studies.lineage.menu import MenuEntry, menu
from kinprint.studies.lineage.pair import Pair
from kinprint.studies.lineage.portrait import Portrait
from kinprint.studies.lineage.standing import Standing

__all__ = ["MenuEntry", "Pair", "Standing", "examine", "face", "menu", "run_battery", "run_tests"]

_TESTS: dict[str, Callable[[Pair, MenuEntry], Evidence]] = {
    "E1.blocks": channel_tests.gain_blocks,
    "E1.profile": channel_tests.gain_profile,
    "E1.fixed": channel_tests.gain_fixed_points,
    "E1.order": channel_tests.gain_order,
    "E6.norms": channel_tests.gain_bits,
    "E3.blocks": channel_tests.column_blocks,
    "E3.fixed": channel_tests.column_fixed_points,
    "E3.order": channel_tests.column_order,
    "Cm.blocks": channel_tests.matrix_columns,
    "U1.blocks": unit_tests.unit_blocks,
    "U1.fixed": unit_tests.unit_fixed_points,
    "U1.aligned": unit_tests.unit_fixed_points_aligned,
    "U1.order": unit_tests.unit_order,
    "E6.units": unit_tests.unit_bits,
    "E4.blocks": attention_tests.value_blocks,
    "E5.blocks": expert_tests.expert_blocks,
    "S1": unit_tests.unit_signs,
    "S1.numbered": unit_tests.unit_signs_numbered,
    "S2": attention_tests.plane_signs,
    "S2.numbered": attention_tests.plane_signs_numbered,
    "S2.biases": attention_tests.plane_biases,
    "S3": channel_tests.column_signs,
    "S4": attention_tests.value_signs,
}

# Tests that wait for the alignment of units and heads, which is found beside the others.
_LATE = ("U1.aligned", "U1.order", "E4.blocks", "E5.blocks", "S1", "S2", "S4")
_BY_NUMBER = ("U1.blocks", "U1.fixed")  # unless shapes differ, so that there is no number


def examine(portrait: Portrait, earlier: Standing | None = None) -> Standing:
    """Prepare a model once for many comparisons: its self-tests and prepared rows are kept.

    `earlier` is the same model when less of it was read; what did not change is not done again.
    """
    return Standing(portrait, earlier)


def face(
    a: Portrait | Standing, b: Portrait | Standing, *, seed: int = 0, level: str = "standard"
) -> Pair:
    """Two models side by side, in an order of their own, whichever is named first."""
    sides = [one if isinstance(one, Standing) else examine(one) for one in (a, b)]
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
    a: Portrait | Standing, b: Portrait | Standing, *, seed: int = 0, level: str = "standard"
) -> tuple[Evidence, ...]:
    """Run every test of the level's menu on two models.

    The seed only draws the samples of the null that are kept for pictures.
    """
    return run_tests(face(a, b, seed=seed, level=level))
