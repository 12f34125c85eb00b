"""The battery: every entry of the menu, run on two samples.

Pure: arrays and a seed in, evidence out. Every entry of the level's menu appears, also those
that had to stay silent, with the reason; one look that is no test tells kinds of relation apart.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from kinprint.lineage.pair import Pair
from kinprint.lineage.reading.sample import Sample
from kinprint.lineage.side import Side
from kinprint.lineage.tests.calibrated import LOOKS
from kinprint.lineage.tests.leading import leading_directions
from kinprint.lineage.tests.menu import MenuEntry, menu
from kinprint.lineage.tests.registry import Needs, extension_tests, run_extension
from kinprint.records import Evidence

__all__ = [
    "MenuEntry",
    "Pair",
    "Side",
    "examine",
    "face",
    "gather_evidence",
    "menu",
    "run_battery",
    "run_tests",
]


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
    """Run every test of the level's menu on a pair; what was aligned stays with the pair.

    Tests that wait for the alignment of units and heads come last, since that is found in a
    thread of its own meanwhile.
    """
    tests = [entry.test for entry in menu(pair.level)]
    waiting = {Needs.ALIGNMENT}
    if pair.numbered(*pair.sides) is None:
        waiting.add(Needs.NUMBERS)
    with ThreadPoolExecutor(1) as beside:
        alignment = beside.submit(pair.align)
        by_test = {
            test: test.run(pair) for test in sorted(tests, key=lambda test: test.needs in waiting)
        }
        alignment.result()
    evidence = tuple(by_test[test] for test in tests)
    return (*evidence, leading_directions.run(pair, evidence))


def gather_evidence(pair: Pair) -> tuple[Evidence, ...]:
    """All that is shown of a pair: the tests of the menu, looks, and tests of other packages."""
    evidence = run_tests(pair)
    evidence += tuple(look.run(pair, evidence) for look in LOOKS)
    return evidence + tuple(run_extension(pair, test) for test in extension_tests())


def run_battery(
    a: Sample | Side, b: Sample | Side, *, seed: int = 0, level: str = "standard"
) -> tuple[Evidence, ...]:
    """Run every test of the level's menu on two models.

    The seed only draws the samples of the null that are kept for pictures.
    """
    return run_tests(face(a, b, seed=seed, level=level))
