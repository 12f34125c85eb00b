"""How much is read at each level, and in which order: data, known before the first byte.

Which layers, units, heads and tokens are read follows a public rule. Whoever knows it could plant
or spare just these, so that a seed moves all of them; it moves those of every model alike, because
rows are compared by number.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Literal

import msgspec

from kinprint.records import Level
from kinprint.tables import read_table

WIDTH: Literal["width"] = "width"
"""As many tokens as the model has channels, and some more."""
RUN = 16
"""Units are read in runs of this many, because a request costs more than a few rows."""
_FAR = 1024  # units from one run to the next, as long as there are enough of them
_ONE = 8  # the layer that is looked into where one is enough; nearly all models have it


class StepKind(StrEnum):
    """What a step reads."""

    NORMS = "norms"
    UNITS = "units"
    EXPERTS = "experts"
    ROUTERS = "routers"
    ATTENTION = "attention"
    LAYER = "layer"
    EMBEDDING = "embedding"
    KINDS = "kinds"
    REST = "rest"


class Step(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One thing to read of a model, if the budget still allows it.

    Attributes
    ----------
    stage
        The stage that it belongs to, counted from one.
    kind
        What is read.
    layers
        In how many layers.
    rows
        How many units of each feed-forward, 0 for all; or rows of a matrix of each other kind.
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
        Bytes for two models together; None for as many as the steps need, which follows from the
        headers.
    whole
        Of a level without a budget: up to so many bytes a model is read whole, and steps that
        nobody misses are taken.
    layers
        The most layers that are looked into.
    index
        Whether the index of a sharded model is read.
    steps
        What is read, in this order.
    seed
        Moves the places of what is read.
    """

    layers: int
    index: bool
    steps: tuple[Step, ...]
    budget: int | None = None
    whole: int = 0
    seed: int = 0

    @property
    def shift(self) -> int:
        """A number by which places are moved; 0 for the seed 0."""
        if not self.seed:
            return 0
        return int.from_bytes(hashlib.blake2b(b"%d" % self.seed, digest_size=8).digest())

    def limit(self, given: int | None = None) -> int | None:
        """The most bytes of one model, within a limit that was given; None where there is none."""
        own = None if self.budget is None else self.budget // 2
        limits = [limit for limit in (own, given) if limit is not None]
        return min(limits, default=None)

    @property
    def stages(self) -> int:
        """How many stages there are at most."""
        return max(step.stage for step in self.steps)


# Read here, once: msgspec describes a struct when it first decodes one, and two threads that do
# that at the same moment crash the interpreter. Models of a matrix are opened in threads.
_PLANS = msgspec.convert(
    read_table(Path(__file__).with_name("levels.toml")), dict[Level, LevelPlan], str_keys=True
)


def level_plan(level: Level, seed: int = 0) -> LevelPlan:
    """What a level reads, from `levels.toml`, at the places of a seed."""
    return msgspec.structs.replace(_PLANS[level], seed=seed)


def spread_layers(depth: int, most: int, shift: int = 0) -> tuple[int, ...]:
    """At most `most` layers, a power of two apart: models of different depth share them."""
    step = 1
    while -(-depth // step) > most:
        step *= 2
    return tuple(range(shift % step, depth, step))


def choose_layers(fitting: Sequence[int], depth: int, most: int, shift: int = 0) -> tuple[int, ...]:
    """At most `most` of the layers that hold something, by a rule that knows one model alone.

    Several are a power of two apart, or the next ones that fit: models of different depth share
    them. One or two are the same low numbers in all models, because layers that were added or
    removed move those behind them.
    """
    if most < 3:
        moved = shift % _ONE
        return tuple(sorted(sorted(fitting, key=lambda layer: _preference(layer - moved))[:most]))
    step = 1
    while True:
        moved = shift % step
        chosen = {(layer - moved) // step: layer for layer in sorted(fitting, reverse=True)}
        if len(chosen) <= most or step > depth:
            return tuple(sorted(chosen.values()))
        step *= 2


def sample_units(total: int, rows: int, shift: int = 0) -> tuple[int, ...]:
    """About `rows` of `total` units in runs at the same places of all models.

    Runs are far apart, then between those, so that fewer units are always among more and models
    of different totals share most of them. Without a shift the first run serves pruned models:
    where units were removed, the lowest numbers move least.
    """
    if rows >= total or total <= RUN:
        return tuple(range(total))
    runs = max(rows // RUN, 1)
    moved = (shift >> 16) % (_FAR // RUN) * RUN  # other bits than layers are moved by
    starts: dict[int, None] = {}
    step = _FAR
    while len(starts) < runs and step >= RUN:
        places = (start ^ moved for start in range(0, total + _FAR, step))
        starts.update(dict.fromkeys(place for place in places if place + RUN <= total))
        step //= 2
    chosen = sorted(list(starts)[:runs])
    return tuple(start + at for start in chosen for at in range(RUN))


def token_window(count: int, height: int, shift: int = 0) -> range:
    """So many neighbouring rows of a table, of those with low numbers."""
    start = min(shift % (count + 1), max(height - count, 0))
    return range(start, min(start + count, height))


def _preference(layer: int) -> tuple[int, int]:
    """Eight before its multiples before four and its multiples; the first layer is the last."""
    even = min(layer & -layer, _ONE) if layer else 0
    return -even, layer
