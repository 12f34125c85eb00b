"""How much is read at each level, and in which order: data, known before the first byte."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

LEVELS = ("quick", "standard", "deep")
WIDTH = "width"
RUN = 8
"""Units are read in runs of this many, because a request costs more than a few rows."""


class Step(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One thing to read of every model, if the budget still allows it.

    `layers` is in how many, `rows` how many units of each (0 for all), `count` how many experts
    or groups of heads, `tokens` how many rows of the embedding, `tokenizers` the longest
    tokenizer that may be read to find them. An `extra` is not missed where it does not fit.
    """

    stage: int
    what: str
    layers: int = 0
    rows: int = 0
    count: int = 0
    tokens: int | str = 0
    tokenizers: int = 0
    extra: bool = False


class Level(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A level: bytes for two models together, layers looked into, and steps in order."""

    budget: int
    layers: int
    index: bool
    steps: tuple[Step, ...]

    @property
    def stages(self) -> int:
        """How many sweeps there are at most."""
        return max(step.stage for step in self.steps)


@functools.cache
def level_named(name: str) -> Level:
    """One level by its name."""
    text = Path(__file__).with_name("levels.toml").read_bytes()
    return msgspec.toml.decode(text, type=dict[str, Level])[name]


@dataclass(frozen=True, slots=True)
class Grid:
    """Numbers spread over a range such that fewer of them are always among more of them."""

    size: int

    def first(self, count: int) -> tuple[int, ...]:
        """`count` numbers below `size`, sorted: halves before quarters before eighths."""
        found: dict[int, None] = {}
        for share in _halving():
            if len(found) >= min(count, self.size):
                break
            found[int(share * self.size)] = None
        return tuple(sorted(found))


def spread_layers(depth: int, most: int) -> tuple[int, ...]:
    """At most `most` layers, a power of two apart: models of different depth share them."""
    step = 1
    while -(-depth // step) > most:
        step *= 2
    return tuple(range(0, depth, step))


def sample_units(total: int, rows: int) -> tuple[int, ...]:
    """About `rows` of `total` units in short runs, the same in every model of that total."""
    if rows >= total or total <= RUN:
        return tuple(range(total))
    starts = Grid(total // RUN).first(max(rows // RUN, 1))
    return tuple(start * RUN + at for start in starts for at in range(RUN))


def _halving() -> Iterator[float]:
    """0, 1/2, 1/4, 3/4, 1/8, …: the sequence of van der Corput."""
    number = 0
    while True:
        share, digit, rest = 0.0, 0.5, number
        while rest:
            share += digit * (rest & 1)
            rest >>= 1
            digit /= 2
        yield share
        number += 1
