"""How much is read at each level, and in which order: data, known before the first byte."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Literal

import msgspec

from kinprint.records import Level

WIDTH: Literal["width"] = "width"
"""As many tokens as the model has channels, and some more."""
RUN = 8
"""Units are read in runs of this many, because a request costs more than a few rows."""


class StepKind(StrEnum):
    """What a step reads."""

    NORMS = "norms"
    UNITS = "units"
    EXPERTS = "experts"
    ROUTERS = "routers"
    ATTENTION = "attention"
    LAYER = "layer"
    EMBEDDING = "embedding"


class Step(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One thing to read of every model, if the budget still allows it.

    Attributes
    ----------
    stage
        The stage that it belongs to, counted from one.
    kind
        What is read.
    layers
        In how many layers.
    rows
        How many units of each feed-forward; 0 for all.
    count
        How many experts of a layer, or groups of heads.
    tokens
        How many rows of the embedding.
    tokenizers
        The longest tokenizer, in bytes, that may be read to find them.
    extra
        Whether nobody misses it where it does not fit.
    """

    stage: int
    kind: StepKind
    layers: int = 0
    rows: int = 0
    count: int = 0
    tokens: int | Literal["width"] = 0
    tokenizers: int = 0
    extra: bool = False


class LevelPlan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a level reads.

    Attributes
    ----------
    budget
        Bytes for two models together.
    layers
        The most layers that are looked into.
    index
        Whether the index of a sharded model is read.
    steps
        What is read, in this order.
    """

    budget: int
    layers: int
    index: bool
    steps: tuple[Step, ...]

    @property
    def stages(self) -> int:
        """How many stages there are at most."""
        return max(step.stage for step in self.steps)


@functools.cache
def level_plan(level: Level) -> LevelPlan:
    """What a level reads, from `levels.toml`."""
    table = Path(__file__).with_name("levels.toml").read_bytes()
    return msgspec.toml.decode(table, type=dict[Level, LevelPlan])[level]


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
