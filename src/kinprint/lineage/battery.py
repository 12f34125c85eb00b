"""The battery: every test of the menu, run on two samples, and the looks that go with them.

Pure: arrays and a seed in, evidence out. Every test of the level's menu appears, also those
that have no result, with the reason.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from kinprint.lineage.pair import Pair
from kinprint.lineage.reading.sample import Sample
from kinprint.lineage.side import Side
from kinprint.lineage.tests.invariants import invariant_evidence
from kinprint.lineage.tests.learnt import learnt_gains
from kinprint.lineage.tests.menu import menu
from kinprint.lineage.tests.registry import LineageTest, Needs, extension_tests, run_extension
from kinprint.mapped import let_go
from kinprint.records import Evidence, Level


def run_tests(pair: Pair) -> tuple[Evidence, ...]:
    """Run every test of the level's menu on a pair; what was aligned stays with the pair.

    Tests that wait for the alignment of units and heads come last, since that is found in a
    thread of its own meanwhile.
    """
    tests = [entry.test for entry in menu(pair.level)]
    waiting = {Needs.ALIGNMENT}
    if pair.alignment_from(pair.sides[0]).numbered_feed_forwards is None:
        waiting.add(Needs.NUMBERS)
    with ThreadPoolExecutor(1) as pool:
        searching = pool.submit(pair.search)
        by_test = {
            test: _run(pair, test) for test in sorted(tests, key=lambda test: test.needs in waiting)
        }
        searching.result()
    return tuple(by_test[test] for test in tests)


def gather_evidence(pair: Pair) -> tuple[Evidence, ...]:
    """All that is shown of a pair: the tests of the menu, looks, and tests of other packages."""
    evidence = run_tests(pair)
    let_go()
    evidence += (*invariant_evidence(pair), learnt_gains.run(pair, evidence))
    return evidence + tuple(run_extension(pair, test) for test in extension_tests())


def run_battery(
    a: Sample | Side, b: Sample | Side, *, seed: int = 0, level: str = Level.STANDARD
) -> tuple[Evidence, ...]:
    """Run every test of the level's menu on two models.

    The seed only draws the samples of the null that are kept for pictures.
    """
    return run_tests(Pair(a, b, seed=seed, level=level))


def _run(pair: Pair, test: LineageTest) -> Evidence:
    """Run a test, unless it reads channels alone and has compared these before."""
    let_go()
    if not test.channels_only:
        return test.run(pair)
    alignment = pair.alignment(test.group)
    known = alignment.first.channel_evidence.known
    key = alignment.second.channel_evidence, test.name, pair.null_seed
    if key not in known:
        known[key] = test.run(pair)
    return known[key]
