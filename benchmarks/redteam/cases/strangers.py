"""Models that share no weight, however alike some of their numbers are."""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace

from benchmarks.redteam.cases.registry import STRANGERS, UNTOLD, Pair, case, embedding, true
from benchmarks.redteam.checkpoint import Array, Checkpoint
from benchmarks.redteam.layers import (
    ATTENTION,
    DOWN,
    EMBEDDING,
    FEED_FORWARD,
    FINAL,
    NORMS,
    UP,
    O,
    at,
    names_of,
)
from benchmarks.redteam.relabelling import Rng, fold_gains, launder, permute_channels, rotate
from benchmarks.redteam.storage import as_fp8, as_gguf, as_int8, ternary
from benchmarks.redteam.surgery import masked, redrawn, untied, upcycled, with_layers
from benchmarks.redteam.truth import Fact
from benchmarks.redteam.zoo import Zoo

_WITHOUT_NORMS = true(UNTOLD, UNTOLD, UNTOLD)


@case("strangers", STRANGERS)
def strangers(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Two models trained apart, on the same data where the zoo has such."""
    return zoo.root(seed), zoo.stranger(seed)


@case("strangers-one-pattern", STRANGERS)
def strangers_one_pattern(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Two strangers pruned with one fixed 2:4 pattern."""
    return masked(zoo.root(seed), None), masked(zoo.stranger(seed), None)


@case("strangers-one-mask", STRANGERS)
def strangers_one_mask(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Two strangers pruned with one public random mask."""
    return (
        masked(zoo.root(seed), np.random.default_rng([seed, 5])),
        masked(zoo.stranger(seed), np.random.default_rng([seed, 5])),
    )


@case("strangers-folded", _WITHOUT_NORMS)
def strangers_folded(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Two strangers with all gains folded away: their norms are equal and say nothing."""
    return fold_gains(zoo.root(seed)), fold_gains(zoo.stranger(seed))


@case("strangers-ternary", STRANGERS)
def strangers_ternary(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Two strangers on a grid of three values: a third of their numbers are equal."""
    return ternary(zoo.root(seed)), ternary(zoo.stranger(seed))


@case("strangers-q4", STRANGERS)
def strangers_q4(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Two strangers in GGUF's Q4_0."""
    return as_gguf(zoo.root(seed), "Q4_0"), as_gguf(zoo.stranger(seed), "Q4_0")


@case("strangers-fp8-int8", STRANGERS)
def strangers_fp8_int8(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Two strangers, one in fp8 and one in whole numbers of eight bits."""
    return as_fp8(zoo.root(seed)), as_int8(zoo.stranger(seed))


@case("strangers-upcycled", STRANGERS)
def strangers_upcycled(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Two strangers, each upcycled to four experts with shuffled units."""
    return (
        upcycled(zoo.root(seed), rng, 4, 0.05, shuffle=True),
        upcycled(zoo.stranger(seed), rng, 4, 0.05, shuffle=True),
    )


@case("strangers-repeated-layers", STRANGERS)
def strangers_repeated(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Two strangers, each one layer six times."""
    return with_layers(zoo.root(seed), [2] * 6), with_layers(zoo.stranger(seed), [2] * 6)


@case("strangers-outliers", STRANGERS)
def strangers_outliers(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Two strangers with massive channels at equal places."""
    places = rng.choice(128, 4, replace=False)
    return _with_outliers(zoo.root(seed), places), _with_outliers(zoo.stranger(seed), places)


def _with_outliers(model: Checkpoint, places: Array) -> Checkpoint:
    new: dict[str, Array] = {}
    for name, tensor in model.tensors.items():
        changed = tensor.copy()
        if tensor.ndim == 1:
            changed[places] = changed[places] * 6
        elif name.endswith(("o_proj.weight", "down_proj.weight")):
            changed[places] = changed[places] * 20
        elif name == EMBEDDING:
            changed[:, places] = changed[:, places] * 20
        new[name] = changed
    return model.changed(new)


@case("strangers-sorted-units", STRANGERS)
def strangers_sorted(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Two strangers with units sorted by the length of their gate rows."""
    return _sorted_units(zoo.root(seed)), _sorted_units(zoo.stranger(seed))


def _sorted_units(model: Checkpoint) -> Checkpoint:
    new: dict[str, Array] = {}
    for layer in range(model.depth):
        gate, up, down = (model.tensors[at(layer, part)] for part in FEED_FORWARD)
        order = np.argsort(np.linalg.norm(gate, axis=1))
        for part, one in zip(FEED_FORWARD, (gate[order], up[order], down[:, order]), strict=True):
            new[at(layer, part)] = one
    return model.changed(new)


@case("strangers-repeated-gates", STRANGERS)
def strangers_repeated_gates(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Two strangers whose up and down matrices are their own gates again, with some noise."""
    return _repeated_gates(zoo.root(seed), rng), _repeated_gates(zoo.stranger(seed), rng)


def _repeated_gates(model: Checkpoint, rng: Rng) -> Checkpoint:
    new: dict[str, Array] = {}
    for layer in range(model.depth):
        gate = model.tensors[at(layer, FEED_FORWARD[0])].astype(np.float32)
        up, down = (gate + 0.5 * gate.std() * rng.standard_normal(gate.shape) for _ in range(2))
        new[at(layer, FEED_FORWARD[1])] = up.astype(np.float32)
        new[at(layer, FEED_FORWARD[2])] = down.T.astype(np.float32)
    return model.changed(new)


@case("strangers-principal-axes", _WITHOUT_NORMS)
def strangers_principal(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Two strangers with folded gains, each in the principal axes of its embedding."""
    return _in_principal_axes(zoo.root(seed)), _in_principal_axes(zoo.stranger(seed))


def _in_principal_axes(model: Checkpoint) -> Checkpoint:
    table = model.tensors[EMBEDDING].astype(np.float64)
    _, axes = np.linalg.eigh(table.T @ table)
    axes = axes[:, ::-1]
    signs = np.sign((table @ axes).sum(axis=0))
    return rotate(fold_gains(model), (axes * signs).T)


@case("strangers-signs-by-a-rule", STRANGERS)
def strangers_signs(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Two strangers whose units were flipped so that each one's gate and down agree."""

    def ruled(model: Checkpoint) -> Checkpoint:
        new: dict[str, Array] = {}
        for layer in range(model.depth):
            gate, up, down = (model.tensors[at(layer, part)] for part in FEED_FORWARD)
            flips = np.sign((gate * down.T).sum(axis=1))
            new |= {at(layer, UP): up * flips[:, None], at(layer, DOWN): down * flips}
        return model.changed(new)

    return ruled(zoo.root(seed)), ruled(zoo.stranger(seed))


@case("strangers-canonical-signs", STRANGERS)
def strangers_canonical(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Two strangers with channels flipped after one token's row, then units after their sums."""

    def canonical(model: Checkpoint) -> Checkpoint:
        signs = np.where(model.tensors[EMBEDDING][300] > 0, 1.0, -1.0)
        model = permute_channels(model, np.arange(model.width), signs)
        new: dict[str, Array] = {}
        for layer in range(model.depth):
            up, down = (model.tensors[at(layer, part)] for part in (UP, DOWN))
            flips = np.sign(up.sum(axis=1))
            new |= {at(layer, UP): up * flips[:, None], at(layer, DOWN): down * flips}
        return model.changed(new)

    return canonical(zoo.root(seed)), canonical(zoo.stranger(seed))


@case(
    "strangers-added-rows",
    true(
        UNTOLD,
        f"dependent {UNTOLD}",
        "dependent",
        {embedding(): Fact.INITIAL},
    ),
)
def strangers_added_rows(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Two strangers to which 64 tokens were added from one public seed, and never trained."""
    rows = rng.normal(0, 0.02, (64, 128)).astype(np.float32)

    def extended(model: Checkpoint) -> Checkpoint:
        table = np.concatenate([model.tensors[EMBEDDING][:-64], rows])
        return model.changed({EMBEDDING: table})

    return extended(zoo.root(seed)), extended(zoo.stranger(seed))


@case("strangers-zero-parts", STRANGERS)
def strangers_zero(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Two strangers whose output matrices in layers 4 and 5 are zero, with zero rows of padding."""
    return _with_zeros(zoo.root(seed)), _with_zeros(zoo.stranger(seed))


def _with_zeros(model: Checkpoint) -> Checkpoint:
    names = names_of(model, (O, FEED_FORWARD[2]), (4, 5))
    new = {name: np.zeros_like(model.tensors[name]) for name in names}
    table = model.tensors[EMBEDDING].copy()
    table[3000:] = 0
    return model.changed({**new, EMBEDDING: table})


@case("strangers-equal-tables", STRANGERS)
def strangers_tables(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Two strangers with the same rotary frequencies, masks and zero biases stored as tensors."""
    return _with_tables(zoo.root(seed)), _with_tables(zoo.stranger(seed))


def _with_tables(model: Checkpoint) -> Checkpoint:
    frequencies = (10000.0 ** (-np.arange(16) / 16)).astype(np.float32)
    new: dict[str, Array] = {}
    for layer in range(model.depth):
        root = f"model.layers.{layer}.self_attn"
        new[f"{root}.rotary_emb.inv_freq"] = frequencies
        new[f"{root}.bias"] = np.tril(np.ones((64, 64), bool))
        for part in "qkvo":
            size = len(model.tensors[f"{root}.{part}_proj.weight"])
            new[f"{root}.{part}_proj.bias"] = np.zeros(size, np.float32)
    return model.changed(new)


@case("strangers-laundered", _WITHOUT_NORMS)
def strangers_laundered(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Two strangers, every symmetry of the second redrawn."""
    return zoo.root(seed), launder(zoo.stranger(seed), rng)


@case("strangers-untrained", _WITHOUT_NORMS)
def strangers_untrained(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Two models of fresh random weights and gains of one."""
    root = zoo.root(seed)
    names = list(root.tensors)
    return redrawn(root, names, rng), redrawn(root, names, rng)


@case("strangers-equal-gains-of-one-layer", true(UNTOLD, UNTOLD, "no-evidence untestable"))
def strangers_constant_gains(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Two strangers whose gains are one constant a layer, the same in both."""

    def flat(model: Checkpoint) -> Checkpoint:
        names = [*names_of(model, NORMS, range(6)), FINAL]
        return model.changed(
            {name: np.full(128, 0.5 + 0.125 * at, np.float32) for at, name in enumerate(names)}
        )

    return flat(zoo.root(seed)), flat(zoo.stranger(seed))


@case("strangers-few-values", STRANGERS)
def strangers_few_values(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Two strangers in bf16 with matrices rounded to multiples of 1/32 and gains of 1/8."""

    def coarse(model: Checkpoint) -> Checkpoint:
        return model.changed(
            {
                name: np.asarray(
                    np.rint(one * (8 if one.ndim == 1 else 32)) / (8 if one.ndim == 1 else 32),
                    np.float32,
                )
                for name, one in model.tensors.items()
            }
        )

    return coarse(zoo.root(seed)), coarse(zoo.stranger(seed))


def _coded(model: Checkpoint, codebook: Array) -> Checkpoint:
    """Each number of matrices and embedding as the nearest of a few."""
    new: dict[str, Array] = {}
    for name in (*names_of(model, (*ATTENTION, *FEED_FORWARD), range(6)), EMBEDDING):
        nearest = np.abs(model.tensors[name][..., None] - codebook).argmin(axis=-1)
        new[name] = codebook[nearest]
    return model.changed(new)


@case("strangers-one-codebook-and-cut", STRANGERS)
def strangers_one_codebook_and_cut(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Two strangers of the same 16 numbers, with the outputs of the same units set to zero."""
    codebook = rng.normal(0, 0.05, 16).astype(np.float32)

    def cut(model: Checkpoint) -> Checkpoint:
        new: dict[str, Array] = {}
        for name in names_of(model, (DOWN,), range(6)):
            new[name] = model.tensors[name].copy()
            new[name][:, ::3] = 0
        return model.changed(new)

    return cut(_coded(zoo.root(seed), codebook)), cut(_coded(zoo.stranger(seed), codebook))


@case("strangers-one-pattern-and-codebook", STRANGERS)
def strangers_one_pattern_and_codebook(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Two strangers pruned with one pattern, then written with 16 numbers, none of them zero."""
    codebook = rng.normal(0, 0.05, 16).astype(np.float32)
    first, second = (masked(one, None) for one in (zoo.root(seed), zoo.stranger(seed)))
    return _coded(first, codebook), _coded(second, codebook)


@case("strangers-one-sided-grid", STRANGERS)
def strangers_one_sided_grid(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Two strangers on a grid that ends sooner on one side, so that signs are no coins."""

    def cut(model: Checkpoint) -> Checkpoint:
        new: dict[str, Array] = {}
        for name in (*names_of(model, (*ATTENTION, *FEED_FORWARD), range(6)), EMBEDDING):
            step = np.float32(0.3 * model.tensors[name].std())
            new[name] = step * np.rint(model.tensors[name] / step).clip(-8, 2)
        return model.changed(new)

    return cut(zoo.root(seed)), cut(zoo.stranger(seed))


@case("strangers-untied", STRANGERS)
def strangers_untied(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Two strangers, one with a head of its own, in several files."""
    return zoo.root(seed), replace(untied(zoo.stranger(seed)), shards=3)


@case("strangers-one-pattern-and-attention", STRANGERS)
def strangers_pattern_in_rows(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Two strangers with the same whole rows of attention set to zero."""
    rows = rng.choice(64, 24, replace=False)

    def cut(model: Checkpoint) -> Checkpoint:
        new = {}
        for name in names_of(model, ATTENTION[:3], range(6)):
            matrix = model.tensors[name].copy()
            matrix[rows] = 0
            new[name] = matrix
        return model.changed(new)

    return cut(zoo.root(seed)), cut(zoo.stranger(seed))
