"""Numbers that tell nothing: constants, and tables that a formula gives."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import scipy.linalg

from benchmarks.redteam.cases.registry import (
    SAME,
    STRANGERS,
    UNTOLD,
    Pair,
    attention,
    case,
    norms,
    true,
)
from benchmarks.redteam.checkpoint import Array, Checkpoint
from benchmarks.redteam.layers import (
    ATTENTION,
    EMBEDDING,
    FEED_FORWARD,
    FINAL,
    NORMS,
    O,
    names_of,
)
from benchmarks.redteam.relabelling import Rng, fold_gains, permute_channels
from benchmarks.redteam.storage import cast, renamed
from benchmarks.redteam.truth import Fact
from benchmarks.redteam.zoo import Zoo

_FP8 = ml_dtypes.float8_e4m3fn
_ALL = range(6)


def _narrow(model: Checkpoint, names: list[str]) -> Checkpoint:
    """Gains within a few hundredths of one, which are one in fp8."""
    new: dict[str, Array] = {}
    for name in names:
        gains = model.tensors[name]
        spread = 0.01 * (gains - gains.mean()) / gains.std()
        new[name] = np.clip(1 + spread, 0.98, 1.04).astype(np.float32)
    return model.changed(new).rounded()


def _gains(model: Checkpoint) -> list[str]:
    return [*names_of(model, NORMS, _ALL), FINAL]


@case(
    "cast-narrow-gains-to-fp8",
    true("same-weights untestable", "same-weights", "same-weights", {norms(): Fact.OPEN},
         Fact.ROUNDED),
)  # fmt: skip
def cast_narrow_gains(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A model with gains near one, and all of it in e4m3, where every gain is one."""
    model = _narrow(zoo.root(seed), _gains(zoo.root(seed)))
    return model, cast(model, _FP8)


@case("cast-folded", true(f"{SAME} partial untestable", SAME, SAME, {norms(): Fact.OPEN},
                          Fact.ROUNDED))  # fmt: skip
def cast_folded(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A model whose gains were folded away, and a copy of it in half precision."""
    model = fold_gains(zoo.root(seed)).rounded()
    return model, cast(model, np.float16)


@case("strangers-narrow-gains-in-fp8", true(UNTOLD, UNTOLD, UNTOLD))
def strangers_in_fp8(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Two strangers with gains near one, the second in e4m3."""
    first, second = (_narrow(one, _gains(one)) for one in (zoo.root(seed), zoo.stranger(seed)))
    return first, cast(second, _FP8)


def _sines(rows: int, width: int) -> Array:
    """Positions as sines and cosines, the halves of a row one after the other."""
    angles = np.arange(rows)[:, None] / 10000 ** (np.arange(width // 2) / (width // 2 - 1))
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=1).astype(np.float32)


def _with_computed(model: Checkpoint, known: bool) -> Checkpoint:
    """Tables that a formula gives, among tensors whose names nobody knows."""
    frequency, time = np.arange(80)[:, None], np.arange(400)
    window = np.hanning(400) * np.cos(2 * np.pi * frequency * time / 400)
    tables = {
        "places": _sines(1500, 256),
        "turns": np.cos(np.arange(512)[:, None] / 500000 ** (np.arange(64) / 64)),
        "windows": window,
        "cosines": np.cos(np.pi / 400 * (time + 0.5) * frequency),
        "decay": np.tile(np.log(np.arange(1, 33)), (256, 1)),
        "slopes": 2.0 ** (-np.arange(1, 129) / 16) * np.arange(64)[:, None],
    }
    stored = {f"net.{name}": one.astype(np.float32) for name, one in tables.items()}
    return renamed(model, known).changed(stored)


@case("strangers-computed-tables", true(UNTOLD, UNTOLD, UNTOLD))
def strangers_computed(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Two strangers under unknown names with the same tables of sines, windows and slopes."""
    return _with_computed(zoo.root(seed), False), _with_computed(zoo.stranger(seed), False)


@case(
    "renamed-with-computed-tables",
    true(f"{SAME} untestable", f"{SAME} untestable", SAME, rest=Fact.OPEN),
)
def renamed_computed(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A model, and the same tensors under other unknown names, with such tables in both."""
    return _with_computed(zoo.root(seed), False), _with_computed(zoo.root(seed), True)


@case("strangers-gains-of-a-formula", STRANGERS)
def strangers_ramps(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Two strangers whose gains were set to ramps and waves, the same in both."""

    def ramped(model: Checkpoint) -> Checkpoint:
        places = np.linspace(0, 1, model.width)
        waves = {
            name: np.asarray(1 + places / 2 if number % 2 else 1.5 + np.sin(number * places * 9))
            for number, name in enumerate(_gains(model))
        }
        return model.changed({name: one.astype(np.float32) for name, one in waves.items()})

    return ramped(zoo.root(seed)), ramped(zoo.stranger(seed))


def _with_outputs(model: Checkpoint, matrix: Array) -> Checkpoint:
    """The output matrices of attention, all of them one that was computed."""
    names = names_of(model, (O,), _ALL)
    return model.changed(dict.fromkeys(names, matrix.astype(np.float32)))


def _signs(width: int) -> Array:
    """Hadamard's matrix, at a size that outputs of attention have."""
    return np.asarray(0.05 * scipy.linalg.hadamard(width) / np.sqrt(width))


def _cosines(width: int) -> Array:
    """The cosine transform."""
    angles = np.pi / width * (np.arange(width) + 0.5) * np.arange(width)[:, None]
    return np.asarray(0.3 * np.sqrt(2 / width) * np.cos(angles))


@case("strangers-hadamard-outputs", STRANGERS)
def strangers_hadamard(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Two strangers whose outputs of attention are Hadamard's matrix."""
    first, second = zoo.root(seed), zoo.stranger(seed)
    return _with_outputs(first, _signs(128)), _with_outputs(second, _signs(128))


@case("strangers-cosine-outputs", STRANGERS)
def strangers_cosines(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Two strangers whose outputs of attention are the cosine transform."""
    first, second = zoo.root(seed), zoo.stranger(seed)
    return _with_outputs(first, _cosines(128)), _with_outputs(second, _cosines(128))


@case(
    "outputs-of-other-formulas",
    true("partial", "derived same-weights", "derived", {attention(): Fact.KIN}, Fact.EQUAL),
)
def other_formulas(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """One model with Hadamard's matrix for outputs of attention here and cosines there."""
    model = zoo.root(seed)
    return _with_outputs(model, _signs(128)), _with_outputs(model, _cosines(128))


def _began_as_identity(model: Checkpoint, size: float) -> Checkpoint:
    """The matrices of all layers with a padded identity of so many deviations in them."""
    names = names_of(model, (*ATTENTION, *FEED_FORWARD), _ALL)
    tensors = {name: model.tensors[name] for name in names}
    return model.changed(
        {
            name: (one + size * one.std() * np.eye(*one.shape)).astype(np.float32)
            for name, one in tensors.items()
        }
    )


def _with_embedding(model: Checkpoint, table: Array) -> Checkpoint:
    """A table added to the embedding, at the size that its numbers have."""
    own = model.tensors[EMBEDDING]
    return model.changed({EMBEDDING: (own + own.std() * table).astype(np.float32)})


@case("strangers-began-as-the-identity", STRANGERS)
def strangers_identity(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Two strangers whose matrices all began as a padded identity."""
    first, second = zoo.root(seed), zoo.stranger(seed)
    return _began_as_identity(first, 4.0), _began_as_identity(second, 4.0)


@case("strangers-began-near-the-identity", STRANGERS)
def strangers_near_identity(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """The same, with an identity that is hardly larger than what was learnt."""
    first, second = zoo.root(seed), zoo.stranger(seed)
    return _began_as_identity(first, 1.5), _began_as_identity(second, 1.5)


@case("strangers-positions-in-the-embedding", STRANGERS)
def strangers_positions(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Two strangers with one table of sines over numbers of tokens added to the embedding."""
    tokens, width = zoo.root(seed).tensors[EMBEDDING].shape
    angles = np.arange(tokens)[:, None] / 10_000 ** (np.arange(width // 2) * 2 / width)
    table = np.concatenate([np.sin(angles), np.cos(angles)], axis=1)
    return _with_embedding(zoo.root(seed), table), _with_embedding(zoo.stranger(seed), table)


@case("strangers-wave-in-the-embedding", STRANGERS)
def strangers_wave(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Two strangers with one wave over the channels in every token, as strong as chance made it."""
    tokens, width = zoo.root(seed).tensors[EMBEDDING].shape
    table = rng.normal(size=(tokens, 1)) * np.sin(0.37 * np.arange(width))
    return _with_embedding(zoo.root(seed), table), _with_embedding(zoo.stranger(seed), table)


@case("strangers-channels-sorted-by-mean", STRANGERS)
def strangers_sorted(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Two strangers whose channels were sorted by the mean of their embedding columns."""

    def in_order(model: Checkpoint) -> Checkpoint:
        order = np.argsort(model.tensors[EMBEDDING].mean(axis=0))
        return permute_channels(model, order, np.ones(model.width, np.float32))

    return in_order(zoo.root(seed)), in_order(zoo.stranger(seed))
