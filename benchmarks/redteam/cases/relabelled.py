"""Copies whose numbers, signs or basis were changed, and strangers made to look like copies."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linear_sum_assignment

from benchmarks.redteam.cases.registry import (
    UNTOLD,
    Pair,
    attention,
    case,
    embedding,
    feed_forward,
    norms,
    true,
)
from benchmarks.redteam.checkpoint import Array
from benchmarks.redteam.layers import (
    ATTENTION,
    DOWN,
    FEED_FORWARD,
    FINAL,
    GATE,
    IN,
    NORMS,
    POST,
    UP,
    at,
    names_of,
)
from benchmarks.redteam.relabelling import (
    Rng,
    arrange,
    arrange_rotated,
    fold_gains,
    launder,
    mix_values,
    number_by_gains,
    orthogonal,
    permute_channels,
    rotate,
    scale_columns,
    shuffle_heads,
    shuffle_units,
    turn_to_layer,
    write_gains,
)
from benchmarks.redteam.surgery import (
    noisy,
    stirred,
    synthetic,
    with_layers,
    with_more_units,
    with_split_units,
    with_swapped_gates,
)
from benchmarks.redteam.truth import Fact
from benchmarks.redteam.zoo import Zoo

_LAUNDERED = true(
    UNTOLD, f"laundered {UNTOLD}", "laundered", {embedding(): Fact.HIDDEN}, rest=Fact.HIDDEN
)
_LAUNDERED_HARD = true(UNTOLD, f"laundered {UNTOLD}", f"laundered {UNTOLD}", rest=Fact.HIDDEN)
_FRAMED = true(
    f"dependent {UNTOLD}", f"dependent {UNTOLD}", f"dependent {UNTOLD}", rest=Fact.ARRANGED
)
_FRAMED_WITH_GAINS = true(
    "partial", "partial", "partial", {norms(): Fact.EQUAL}, rest=Fact.ARRANGED
)


@case(
    "gains-overwritten",
    true(UNTOLD, "derived dependent", "derived", {norms(): Fact.OPEN}, rest=Fact.KIN),
)
def gains_overwritten(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A descendant whose gains were overwritten with a stranger's, its function kept."""
    stranger = zoo["base-b"]
    names = [*names_of(stranger, NORMS, range(6)), FINAL]
    return zoo["base-a"], write_gains(
        zoo["a-cpt"], {name: stranger.tensors[name] for name in names}
    )


@case(
    "gains-donor",
    true("partial", "partial", "partial", {norms(): Fact.EQUAL}),
)
def gains_donor(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """The stranger whose gains the descendant of another model got, and that descendant."""
    stranger = zoo["base-b"]
    names = [*names_of(stranger, NORMS, range(6)), FINAL]
    return stranger, write_gains(zoo["a-cpt"], {name: stranger.tensors[name] for name in names})


@case(
    "function-equal",
    true(
        "partial derived",
        "derived partial dependent",
        "derived",
        {norms(): Fact.EQUAL, embedding(): Fact.EQUAL},
        rest=Fact.KIN,
    ),
)
def function_equal(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Units permuted, flipped and rescaled, planes turned, values mixed; channels as they were."""
    root = zoo.root(seed)
    return root, shuffle_heads(shuffle_units(root, rng), rng)


@case(
    "function-equal-descendant",
    true("partial derived", "derived partial dependent", "derived", rest=Fact.KIN),
)
def function_equal_descendant(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """The same of a model after continued training."""
    return zoo["base-a"], shuffle_heads(shuffle_units(zoo["a-cpt"], rng), rng)


@case(
    "units-permuted",
    true(
        "partial derived",
        "derived partial",
        "derived same-weights",
        {feed_forward(): Fact.KIN},
        rest=Fact.EQUAL,
    ),
)
def units_permuted(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Units of every layer in another order, no sign and no number changed."""
    root = zoo.root(seed)
    return root, shuffle_units(root, rng, flip=False, rescale=False)


@case(
    "channels-permuted",
    true(
        f"derived partial {UNTOLD}",
        f"derived dependent partial {UNTOLD}",
        "derived same-weights",
        {norms(): Fact.HIDDEN, embedding(): Fact.HIDDEN},
        rest=Fact.KIN,
    ),
)
def channels_permuted(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Channels, units and heads renamed after continued training, no sign changed."""
    moved = permute_channels(zoo["a-cpt"], rng.permutation(128), np.ones(128))
    renamed = shuffle_units(moved, rng, flip=False, rescale=False)
    return zoo["base-a"], shuffle_heads(renamed, rng, turn=False, mix=False)


@case(
    "rotated",
    true(
        f"derived dependent {UNTOLD}",
        f"derived dependent laundered {UNTOLD}",
        "derived",
        {feed_forward(): Fact.KIN},
        rest=Fact.HIDDEN,
    ),
)
def rotated(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Norms folded and the residual stream turned; units renamed, their signs as they were."""
    turned = rotate(fold_gains(zoo["a-cpt"]), orthogonal(128, rng))
    return zoo["base-a"], shuffle_units(turned, rng, flip=False)


@case("laundered-copy", _LAUNDERED)
def laundered_copy(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """An exact copy with every symmetry drawn anew, gains folded away."""
    root = zoo.root(seed)
    return root, launder(root, rng)


@case("laundered-descendant", _LAUNDERED)
def laundered_descendant(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A descendant after continued training as long as pre-training, every symmetry redrawn."""
    return zoo["base-a"], launder(zoo["a-cpt"], rng)


@case("laundered-with-gains", _LAUNDERED)
def laundered_with_gains(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """The same with gains that were drawn to look learnt."""
    return zoo["base-a"], launder(zoo["a-cpt"], rng, drawn_gains=True)


@case("laundered-with-dead-units", _LAUNDERED)
def laundered_with_dead_units(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Every symmetry redrawn, and as many dead units as there are live ones."""
    root = zoo.root(seed)
    return root, with_more_units(launder(root, rng), rng, 352, "dead")


@case("laundered-with-cancelling-units", _LAUNDERED)
def laundered_with_cancelling_units(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Every symmetry redrawn, and pairs of units that cancel each other."""
    root = zoo.root(seed)
    return root, with_more_units(launder(root, rng), rng, 176, "cancelling")


@case("laundered-with-split-units", _LAUNDERED)
def laundered_with_split_units(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Every symmetry redrawn, and every unit split into three."""
    root = zoo.root(seed)
    return root, with_split_units(launder(root, rng), rng, 3)


@case("laundered-with-swapped-gates", _LAUNDERED_HARD)
def laundered_with_swapped_gates(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Every symmetry redrawn, and gate and up in each other's place."""
    root = zoo.root(seed)
    return root, with_swapped_gates(launder(root, rng))


@case("laundered-shuffled-layers", _LAUNDERED_HARD)
def laundered_shuffled_layers(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Every symmetry redrawn, and layers in another order."""
    root = zoo.root(seed)
    return root, with_layers(launder(root, rng), [3, 0, 5, 1, 4, 2])


@case(
    "dead-units",
    true(
        "partial derived",
        "derived partial dependent",
        "derived",
        {feed_forward(): Fact.KIN},
        rest=Fact.EQUAL,
    ),
)
def dead_units(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A copy with half as many dead units again, all in a random order."""
    root = zoo.root(seed)
    return root, with_more_units(root, rng, 176, "dead")


@case(
    "split-units",
    true(
        "partial derived",
        "derived partial dependent",
        "derived",
        {feed_forward(): Fact.KIN},
        rest=Fact.EQUAL,
    ),
)
def split_units(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A copy with every unit split into three, all in a random order."""
    root = zoo.root(seed)
    return root, with_split_units(root, rng, 3)


@case(
    "swapped-gates",
    true(
        "partial derived",
        "derived partial dependent",
        "derived partial same-weights",
        {feed_forward(): Fact.HIDDEN},
        rest=Fact.EQUAL,
    ),
)
def swapped_gates(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A copy with gate and up in each other's place."""
    root = zoo.root(seed)
    return root, with_swapped_gates(root)


@case(
    "signs-flipped",
    true(
        "partial derived", "derived", "derived same-weights", {norms(): Fact.EQUAL}, rest=Fact.KIN
    ),
)
def signs_flipped(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Every channel of the residual stream with the other sign."""
    root = zoo.root(seed)
    return root, permute_channels(root, np.arange(root.width), -np.ones(root.width))


@case(
    "signs-flipped-folded",
    true("partial derived untestable", "derived partial dependent", "derived", rest=Fact.KIN),
)
def signs_flipped_folded(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Every channel with the other sign, the gains of norms folded into the matrices."""
    folded = fold_gains(zoo.root(seed))
    return folded, permute_channels(folded, np.arange(folded.width), -np.ones(folded.width))


@case(
    "signs-drawn",
    true(
        "partial derived",
        "derived partial dependent",
        "derived same-weights",
        {norms(): Fact.EQUAL},
        rest=Fact.HIDDEN,
    ),
)
def signs_drawn(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Random signs of channels, and of units."""
    root = zoo.root(seed)
    turned = permute_channels(root, np.arange(root.width), rng.choice([-1.0, 1.0], root.width))
    return root, shuffle_units(turned, rng, permute=False, rescale=False)


_SCALED = true(
    "partial derived", "derived", "derived same-weights", {norms(): Fact.EQUAL}, rest=Fact.KIN
)


@case("scaled", _SCALED)
def scaled(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """The residual stream three times as large, which no norm notices."""
    root = zoo.root(seed)
    written = ("embed_tokens.weight", "o_proj.weight", "down_proj.weight")
    return root, root.changed(
        {name: 3 * one for name, one in root.tensors.items() if name.endswith(written)}
    )


@case("scaled-out-of-sight", _SCALED)
def scaled_out_of_sight(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """All matrices so small that their squares are zero in single precision."""
    root = zoo.root(seed)
    matrices = {name: one for name, one in root.tensors.items() if one.ndim == 2}
    return root, root.changed(
        {name: one.astype(np.float32) * np.float32(1e-30) for name, one in matrices.items()}
    )


@case("scaled-unit-by-unit", _SCALED)
def scaled_units(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Rows of up of every other unit times 1e-30, and what they feed times 1e30."""
    root = zoo.root(seed)
    new: dict[str, Array] = {}
    for name in names_of(root, (UP, DOWN), range(6)):
        new[name] = root.tensors[name].astype(np.float32)
        some = new[name][::2] if new[name].shape[0] > root.width else new[name][:, ::2]
        some *= np.float32(1e-30 if new[name].shape[0] > root.width else 1e30)
    return root, root.changed(new)


@case("framed", _FRAMED)
def framed(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A stranger whose channels, units, heads and planes were renumbered towards a model."""
    root, stranger = zoo.root(seed), zoo.stranger(seed)
    return root, arrange(stranger, root)


@case(
    "framed-with-rows",
    true(
        UNTOLD,
        f"partial dependent {UNTOLD}",
        "partial dependent",
        {feed_forward(): Fact.OPEN},
        rest=Fact.ARRANGED,
    ),
)
def framed_with_rows(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """The same without channels, with one gate row of every layer: 0.05 % of the weights."""
    root, stranger = zoo.root(seed), zoo.stranger(seed)
    framed = arrange(stranger, root, channels=False)
    new: dict[str, Array] = {}
    for name in names_of(root, (GATE,), range(6)):
        new[name] = framed.tensors[name].copy()
        new[name][7] = root.tensors[name][7]
    return root, framed.changed(new)


@case(
    "framed-by-two-norms",
    true(
        "dependent no-evidence untestable",
        "dependent no-evidence untestable",
        "dependent no-evidence",
        {norms(): Fact.ARRANGED},
    ),
)
def framed_by_two_norms(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A stranger whose channels were numbered after the gains of one layer of a model."""
    root, stranger = zoo.root(seed), zoo.stranger(seed)
    ours, theirs = (
        np.stack([np.argsort(np.argsort(one.tensors[at(3, part)])) for part in (IN, POST)])
        for one in (root, stranger)
    )
    distance = np.abs(ours[:, :, None] - theirs[:, None]).astype(np.float64)
    order = linear_sum_assignment(np.square(distance).sum(axis=0))[1]
    return root, permute_channels(stranger, order, np.ones(root.width))


@case("framed-by-gains", _FRAMED)
def framed_by_gains(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A stranger renumbered towards a model, channels after what the norms of both let through."""
    root, stranger = zoo.root(seed), zoo.stranger(seed)
    return root, arrange(number_by_gains(stranger, root), root, channels=False)


@case("framed-with-columns", _FRAMED)
def framed_with_columns(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A renumbered stranger, columns scaled so that its norms let through what a model's do."""
    root, stranger = zoo.root(seed), zoo.stranger(seed)
    return root, scale_columns(arrange(stranger, root), root)


@case("framed-by-one-layer", _FRAMED_WITH_GAINS)
def framed_by_one_layer(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A stranger turned after the gates of one layer alone, given gains, its columns scaled."""
    root, stranger = zoo.root(seed), zoo.stranger(seed)
    return root, turn_to_layer(stranger, root, 3)


@case("framed-with-a-narrow-feed-forward", _FRAMED_WITH_GAINS)
def framed_with_a_narrow_feed_forward(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Random strangers with fewer units than channels, one turned after a whole layer alone."""
    root, stranger = (synthetic(at, 128, 4, 48, 2000, zoo.root(0)) for at in (seed, seed + 1))
    return root, turn_to_layer(stranger, root, 1, FEED_FORWARD)


@case(
    "tuned-with-gains-moved",
    true("partial derived dependent", "derived", "derived", rest=Fact.OPEN),
)
def tuned_with_gains_moved(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Continued training, a little of each gain moved into the columns behind it."""
    tuned = zoo["a-cpt"]
    norms = names_of(tuned, NORMS, range(6))
    moved = {one: tuned.tensors[one] * np.exp(rng.normal(0, 0.05, tuned.width)) for one in norms}
    return zoo["base-a"], write_gains(tuned, {**moved, FINAL: tuned.tensors[FINAL]})


@case("framed-with-large-heads", _FRAMED)
def framed_with_large_heads(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A renumbered stranger with scaled columns, its values mixed, heads of half the channels."""
    heads = {"num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 64}
    root, stranger = (one.changed({}, **heads) for one in (zoo.root(seed), zoo.stranger(seed)))
    framed = arrange(stranger, root)
    for _ in range(3):
        framed = mix_values(scale_columns(framed, root), root)
    return root, framed


@case(
    "tuned-beside-framed-attention",
    true(
        f"partial derived {UNTOLD}",
        "derived",
        "derived",
        {attention(): Fact.ARRANGED},
        rest=Fact.KIN,
    ),
)
def tuned_beside_framed_attention(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A fine-tune whose attention is a stranger's, renumbered."""
    root, stranger = zoo.root(seed), zoo.stranger(seed)
    framed = arrange(stranger, root, channels=False)
    names = names_of(root, ATTENTION, range(6))
    return root, stirred(root, rng, 0.1).changed({name: framed.tensors[name] for name in names})


@case("framed-units", _FRAMED)
def framed_units(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A stranger whose units and heads were renumbered towards a model, channels as they were."""
    root, stranger = zoo.root(seed), zoo.stranger(seed)
    return root, arrange(stranger, root, channels=False)


@case("framed-with-values", _FRAMED)
def framed_with_values(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """The same with value dimensions turned towards the model's."""
    root, stranger = zoo.root(seed), zoo.stranger(seed)
    return root, arrange(stranger, root, mix=True)


@case("framed-by-rotation", _FRAMED_WITH_GAINS)
def framed_by_rotation(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A stranger turned towards a model's embedding, renumbered there, and given its gains."""
    root, stranger = zoo.root(seed), zoo.stranger(seed)
    return root, arrange_rotated(stranger, root)


@case("framed-with-gains", _FRAMED_WITH_GAINS)
def framed_with_gains(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A stranger renumbered towards a model and given its gains, its own function kept."""
    root, stranger = zoo.root(seed), zoo.stranger(seed)
    wanted = {name: root.tensors[name] for name in [*names_of(root, NORMS, range(6)), FINAL]}
    return root, write_gains(arrange(stranger, root), wanted)


_WIDE = true(
    "derived partial",
    "derived partial dependent",
    "derived",
    {norms(): Fact.KIN, embedding(): Fact.KIN, feed_forward(): Fact.KIN, attention(): Fact.HIDDEN},
)


@case("wide-units-permuted", _WIDE, large=True)
def wide_units_permuted(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Random weights of width 768, with noise, units and heads renamed."""
    root = synthetic(seed, 768, 4, 2048, 4096, zoo.root(0))
    tuned = stirred(root, rng, 0.1)
    return root, shuffle_heads(
        shuffle_units(tuned, rng, rescale=False, flip=False), rng, turn=False, mix=False
    )


@case(
    "wide-channels-permuted",
    true(
        f"derived partial dependent {UNTOLD}",
        f"derived partial dependent {UNTOLD}",
        "derived",
        {feed_forward(): Fact.KIN},
        rest=Fact.HIDDEN,
    ),
    large=True,
)
def wide_channels_permuted(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """The same with channels renamed too."""
    root, tuned = wide_units_permuted(zoo, seed, rng)
    return root, permute_channels(tuned, rng.permutation(768), np.ones(768))


@case("wide-laundered", true(UNTOLD, UNTOLD, f"laundered {UNTOLD}", rest=Fact.HIDDEN), large=True)
def wide_laundered(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Random weights of width 768, every symmetry redrawn: the invariants are calibrated on
    trained models, so that silence is true here and \"would have been seen\" is not."""
    root = synthetic(seed, 768, 4, 2048, 4096, zoo.root(0))
    return root, launder(root, rng)


@case("wide-strangers", true(UNTOLD, UNTOLD, "no-evidence"), large=True)
def wide_strangers(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Two models of random weights of width 768."""
    first = synthetic(seed, 768, 4, 2048, 4096, zoo.root(0))
    return first, synthetic(seed + 1000, 768, 4, 2048, 4096, zoo.root(0))


@case(
    "half-renumbered",
    true(
        "partial derived",
        "derived partial dependent",
        "derived",
        {feed_forward(0, 2, 4): Fact.KIN},
        rest=Fact.EQUAL,
    ),
)
def half_renumbered(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A copy with units renamed, flipped and rescaled in every other layer."""
    root = zoo.root(seed)
    return root, shuffle_units(root, rng, layers=[0, 2, 4])


@case(
    "gains-redrawn",
    true(UNTOLD, "derived dependent", "derived", {norms(): Fact.OPEN}, rest=Fact.KIN),
)
def gains_redrawn(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A descendant whose gains were redrawn to look learnt, its function kept."""
    child = zoo["a-cpt"]
    profile = rng.normal(0, 0.15, 128)
    names = [*names_of(child, NORMS, range(6)), FINAL]
    wanted = {name: np.exp(profile + rng.normal(0, 0.1, 128)) for name in names}
    return zoo["base-a"], write_gains(child, wanted)


@case(
    "gains-shuffled",
    true(
        f"partial derived dependent {UNTOLD}",
        "derived dependent partial",
        "derived",
        {norms(): Fact.OPEN},
        rest=Fact.KIN,
    ),
)
def gains_with_noise(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A copy whose gains are another layer's of its own, its function kept."""
    child = zoo["a-cpt"]
    names = [*names_of(child, NORMS, range(6)), FINAL]
    others = [names[(at + 5) % len(names)] for at in range(len(names))]
    wanted = {
        name: noisy(child.tensors[other], rng, 0.5)
        for name, other in zip(names, others, strict=True)
    }
    return zoo["base-a"], write_gains(
        child, {name: np.abs(one) + 0.05 for name, one in wanted.items()}
    )
