"""The menu of tests by level, fixed in advance with the share of error that each may spend.

What counts against chance is everything that could have been run, not what happened to find
something; so the shares are data, and an entry that stays silent has spent its own.
"""

from __future__ import annotations

import functools
import tomllib
from dataclasses import dataclass
from pathlib import Path

from kinprint.text import Words

LEVELS = ("quick", "standard", "deep")


@dataclass(frozen=True, slots=True)
class MenuEntry:
    """One test of the menu: its name, the symmetry it compares with, its share of the error.

    `family` is the test of which it is a variant. Shares of one level add up to one.
    """

    name: str
    family: str
    group: str
    share: float
    words: Words


@functools.cache
def menu(level: str = "standard") -> tuple[MenuEntry, ...]:
    """The entries of a level, in the order in which they are reported.

    A deep comparison has the entries of a standard one: it reads more and aligns harder, and
    the choice among alignments costs nothing, since it sees neither labels nor signs.
    """
    if level not in LEVELS:
        raise ValueError(f"a level is one of {', '.join(LEVELS)}, not {level!r}")
    table = tomllib.loads(Path(__file__).with_name("menu.toml").read_text(encoding="utf-8"))
    rows = [row for row in table["entry"] if LEVELS.index(row["from"]) <= LEVELS.index(level)]
    total = sum(row["weight"] for row in rows)
    return tuple(
        MenuEntry(
            row["name"], row["family"], row["group"], row["weight"] / total, Words(row["words"])
        )
        for row in rows
    )
