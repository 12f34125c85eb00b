"""The menu of tests by level, fixed in advance with the share of error that each may spend.

What counts against chance is everything that could have been run, not what happened to find
something; so the shares are data, and a test without a result has spent its own.
"""

from __future__ import annotations

import functools
from pathlib import Path

from msgspec import Struct

from kinprint.lineage.tests.registry import LineageTest, own_tests
from kinprint.records import Level
from kinprint.tables import read_table

LEVELS = tuple(Level)


class MenuEntry(Struct, frozen=True):
    """An exact test and its share of the error; the shares of one level add up to one."""

    test: LineageTest
    share: float

    @property
    def name(self) -> str:
        """The name of the test."""
        return self.test.name


@functools.cache
def menu(level: str = Level.STANDARD) -> tuple[MenuEntry, ...]:
    """The entries of a level, in the order in which they are reported.

    A deep comparison has the entries of a standard one: it reads more and aligns harder, and
    the choice among alignments costs nothing, since it sees neither labels nor signs.
    """
    if level not in LEVELS:
        raise ValueError(f"a level is one of {', '.join(LEVELS)}, not {level!r}")
    table = read_table(Path(__file__).with_name("menu.toml"))
    upto = LEVELS[: LEVELS.index(Level(level)) + 1]
    weights = {name: weight for each in upto for name, weight in table.get(each, {}).items()}
    total = sum(weights.values())
    tests = own_tests()
    return tuple(MenuEntry(tests[name], weight / total) for name, weight in weights.items())
