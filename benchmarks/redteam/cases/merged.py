"""Averages and merges, updates, pruned and grown models."""

from __future__ import annotations

import numpy as np

from benchmarks.redteam.cases.registry import (
    UNTOLD,
    Pair,
    attention,
    case,
    embedding,
    feed_forward,
    layers,
    norms,
    router,
    true,
)
from benchmarks.redteam.layers import ATTENTION, FEED_FORWARD, LAYER, Q, V, names_of
from benchmarks.redteam.relabelling import Rng
from benchmarks.redteam.surgery import (
    graft,
    graft_layers,
    masked,
    mixed,
    redrawn,
    slerp,
    stirred,
    upcycled,
    with_layers,
    with_some_units,
    with_update,
    without_heads,
)
from benchmarks.redteam.truth import Fact
from benchmarks.redteam.zoo import Zoo

_MIXTURE = true(
    "dependent partial derived",
    "derived dependent partial",
    "derived dependent partial",
    rest=Fact.KIN,
)
_WEAK = true(
    f"dependent partial derived {UNTOLD}",
    f"derived dependent partial {UNTOLD}",
    "derived dependent partial",
    rest=Fact.HIDDEN,
)
_COPY = true("partial derived same-weights", "derived partial", "derived", rest=Fact.KIN)


@case("average-50", _MIXTURE)
def average_50(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """The mean of a model and a stranger."""
    root, stranger = zoo.root(seed), zoo.stranger(seed)
    return root, mixed([(root, 0.5), (stranger, 0.5)])


@case("average-70", _MIXTURE)
def average_70(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Seven parts of a model and three of a stranger."""
    root, stranger = zoo.root(seed), zoo.stranger(seed)
    return root, mixed([(root, 0.7), (stranger, 0.3)])


@case("average-30", _WEAK)
def average_30(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Three parts of a model and seven of a stranger."""
    root, stranger = zoo.root(seed), zoo.stranger(seed)
    return root, mixed([(root, 0.3), (stranger, 0.7)])


@case("average-of-three", _MIXTURE, needs="base-d")
def average_of_three(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """The mean of a model and two strangers: near its gains, and no rounding of them."""
    models = (zoo["base-a"], zoo["base-b"], zoo["base-d"])
    return zoo["base-a"], mixed([(one, 1 / 3) for one in models])


@case(
    "average-5",
    true(
        f"dependent partial derived {UNTOLD}",
        f"derived dependent {UNTOLD}",
        f"derived dependent {UNTOLD}",
        {attention(): Fact.OPEN},
        rest=Fact.HIDDEN,
    ),
)
def average_5(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """One part in twenty of a model, the rest a stranger."""
    root, stranger = zoo.root(seed), zoo.stranger(seed)
    return root, mixed([(root, 0.05), (stranger, 0.95)])


@case("slerp-of-strangers", _MIXTURE)
def slerp_of_strangers(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """The spherical mean of a model and a stranger."""
    root, stranger = zoo.root(seed), zoo.stranger(seed)
    return root, slerp(root, stranger, 0.5)


@case("slerp-of-kin", true("partial derived", "derived", "derived", rest=Fact.KIN))
def slerp_of_kin(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """The spherical mean of a model and its descendant."""
    return zoo["base-a"], slerp(zoo["base-a"], zoo["a-cpt"], 0.5)


@case(
    "task-arithmetic",
    true("partial derived dependent", "derived", "derived", rest=Fact.KIN),
    needs="a-sft",
)
def task_arithmetic(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A model plus half of what each of two descendants learnt."""
    root = zoo["base-a"]
    return root, mixed([(zoo["a-cpt"], 0.5), (zoo["a-sft"], 0.5)])


@case(
    "two-merges-of-one-stranger",
    _MIXTURE,
    needs="base-d",
)
def two_merges(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Two strangers, each averaged with the same third model."""
    third = zoo["base-d"]
    return mixed([(zoo["base-a"], 0.5), (third, 0.5)]), mixed([(zoo["base-b"], 0.5), (third, 0.5)])


@case(
    "low-rank-update",
    true(
        "partial derived same-weights",
        "derived",
        "derived",
        {attention(): Fact.KIN},
        rest=Fact.EQUAL,
    ),
)
def low_rank_update(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A low-rank update merged into q and v."""
    return zoo.root(seed), with_update(zoo.root(seed), rng, 8, (Q, V))


@case(
    "same-update",
    true(
        UNTOLD,
        f"dependent partial {UNTOLD}",
        f"dependent partial {UNTOLD}",
        {attention(): Fact.OPEN},
    ),
)
def same_update(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Two strangers with one and the same low-rank update merged into q and v."""
    root, stranger = zoo.root(seed), zoo.stranger(seed)
    update = with_update(root, rng, 8, (Q, V))
    names = names_of(root, (Q, V), range(6))
    difference = {name: update.tensors[name] - root.tensors[name] for name in names}
    return update, stranger.changed(
        {name: stranger.tensors[name] + difference[name] for name in names}
    )


@case(
    "four-layers-of-six",
    true("partial derived", "derived partial", "derived", {layers(0, 1, 2, 3): Fact.EQUAL}),
)
def four_layers(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A stranger with four of six layers copied: most of the layers' weights."""
    root, stranger = zoo.root(seed), zoo.stranger(seed)
    return root, graft(stranger, root, names_of(root, LAYER, range(4)))


@case(
    "feed-forwards-copied",
    true(UNTOLD, "derived partial", "derived", {feed_forward(): Fact.EQUAL}),
)
def feed_forwards(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A stranger with all feed-forwards copied: nearly three quarters of the layers' weights."""
    root, stranger = zoo.root(seed), zoo.stranger(seed)
    return root, graft(stranger, root, names_of(root, FEED_FORWARD, range(6)))


@case(
    "depth-upscaled",
    true(
        "partial derived same-weights",
        "derived same-weights",
        "derived",
        {norms(): Fact.OPEN},
        rest=Fact.KIN,
    ),
)
def depth_upscaled(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Eight layers of six: the middle ones twice."""
    return zoo.root(seed), with_layers(zoo.root(seed), [0, 1, 2, 3, 2, 3, 4, 5])


@case(
    "depth-pruned",
    true(
        "partial derived same-weights",
        "derived partial same-weights",
        "derived",
        {norms(): Fact.OPEN, layers(2, 3): Fact.OPEN},
        rest=Fact.KIN,
    ),
)
def depth_pruned(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Four layers of six."""
    return zoo.root(seed), with_layers(zoo.root(seed), [0, 1, 4, 5])


@case(
    "depth-pruned-and-tuned",
    true(
        "partial derived dependent",
        "derived partial",
        "derived",
        {norms(2): Fact.OPEN, layers(2, 4): Fact.FOREIGN},
        rest=Fact.KIN,
        swapped={layers(0, 1, 2, 3): Fact.KIN, layers(4, 5): Fact.FOREIGN},
    ),
)
def depth_pruned_and_tuned(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Four layers of six, with noise: gains of neighbouring layers are alike anyway."""
    return zoo.root(seed), stirred(with_layers(zoo.root(seed), [0, 1, 3, 5]), rng, 0.1)


@case(
    "layers-shuffled",
    true(
        f"partial derived {UNTOLD}",
        "derived partial dependent",
        "derived",
        {norms(): Fact.OPEN},
        rest=Fact.KIN,
    ),
)
def layers_shuffled(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """All layers in another order."""
    return zoo.root(seed), with_layers(zoo.root(seed), [3, 0, 5, 1, 4, 2])


@case(
    "one-layer-repeated",
    true(
        f"partial derived dependent {UNTOLD}",
        f"derived partial dependent {UNTOLD}",
        "derived partial dependent",
        {layers(2): Fact.HIDDEN},
        rest=Fact.OPEN,
    ),
)
def one_layer_repeated(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A stranger's embedding over one layer of a model, six times."""
    root, stranger = zoo.root(seed), zoo.stranger(seed)
    return root, graft_layers(stranger, root, dict.fromkeys(range(6), 2))


@case(
    "six-times-one-layer",
    true(
        "partial dependent derived",
        "partial dependent derived",
        "partial derived",
        {layers(2): Fact.EQUAL, layers(0, 1, 3, 4, 5): Fact.FOREIGN},
        rest=Fact.EQUAL,
        swapped={layers(*range(6)): Fact.KIN},
    ),
)
def six_times_one_layer(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A model, and one of its layers six times; gains of neighbouring layers are alike."""
    return zoo.root(seed), with_layers(zoo.root(seed), [2] * 6)


@case(
    "upcycled",
    true(
        "partial derived same-weights",
        "derived partial",
        "derived",
        {
            norms(): Fact.EQUAL,
            attention(): Fact.EQUAL,
            embedding(): Fact.EQUAL,
            feed_forward(): Fact.KIN,
            router(): Fact.OPEN,
        },
    ),
)
def upcycled_in_order(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Four experts of each feed-forward, with noise."""
    return zoo.root(seed), upcycled(zoo.root(seed), rng, 4, 0.1, shuffle=False)


@case(
    "upcycled-shuffled",
    true(
        "partial derived same-weights",
        "derived partial dependent",
        "derived",
        {
            norms(): Fact.EQUAL,
            attention(): Fact.EQUAL,
            embedding(): Fact.EQUAL,
            feed_forward(): Fact.KIN,
            router(): Fact.OPEN,
        },
    ),
)
def upcycled_shuffled(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Four experts of each feed-forward, units of each in an order of its own."""
    return zoo.root(seed), upcycled(zoo.root(seed), rng, 4, 0.05, shuffle=True)


@case(
    "heads-pruned",
    true(
        "partial derived same-weights",
        "derived partial",
        "derived",
        {attention(): Fact.HIDDEN},
        rest=Fact.EQUAL,
    ),
)
def heads_pruned(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Only the second group of heads kept."""
    return zoo.root(seed), without_heads(zoo.root(seed), [1])


@case(
    "units-pruned",
    true(
        "partial derived same-weights",
        "derived partial dependent",
        "derived",
        {feed_forward(): Fact.KIN},
        rest=Fact.EQUAL,
    ),
)
def units_pruned(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """224 of 352 units kept, in their order."""
    return zoo.root(seed), with_some_units(zoo.root(seed), rng, 224)


@case(
    "attention-redrawn",
    true(
        "partial derived same-weights",
        "derived",
        "derived",
        {attention(): Fact.FOREIGN},
        rest=Fact.EQUAL,
    ),
)
def attention_redrawn(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Attention initialised anew, all else kept."""
    root = zoo.root(seed)
    return root, redrawn(root, names_of(root, ATTENTION, range(6)), rng)


@case("pruned-2-4-copy", _COPY)
def pruned_copy(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A model, and itself with half of every matrix set to zero."""
    return zoo.root(seed), masked(zoo.root(seed), None)


@case("fine-tuned", true("partial derived", "derived", "derived", rest=Fact.KIN))
def fine_tuned(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Continued training as long as pre-training."""
    return zoo["base-a"], zoo["a-cpt"]


@case(
    "identical",
    true("identical same-weights partial", "identical same-weights", "identical", rest=Fact.EQUAL),
)
def identical(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """The same model twice."""
    return zoo.root(seed), zoo.root(seed)


@case(
    "one-number-changed",
    true(
        "partial derived same-weights",
        "derived partial same-weights",
        "derived",
        {layers(3): Fact.KIN},
        rest=Fact.EQUAL,
    ),
)
def one_number(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """The same model but for one number of one matrix."""
    root = zoo.root(seed)
    name = "model.layers.3.mlp.down_proj.weight"
    matrix = root.tensors[name].copy()
    matrix[5, 7] = np.float32(0.5)
    return root, root.changed({name: matrix})
