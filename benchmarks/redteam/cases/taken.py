"""Parts of one model in another that has nothing else of it."""

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
    true,
)
from benchmarks.redteam.layers import (
    ATTENTION,
    DOWN,
    EMBEDDING,
    FEED_FORWARD,
    FINAL,
    GATE,
    IN,
    LAYER,
    NORMS,
    POST,
    O,
    at,
    names_of,
)
from benchmarks.redteam.relabelling import Rng, shuffle_units, write_gains
from benchmarks.redteam.surgery import graft, graft_layers, noisy, redrawn, with_some_channels
from benchmarks.redteam.truth import Fact
from benchmarks.redteam.zoo import Zoo

_NORMS_UNREAD = UNTOLD
_ALL = range(6)


@case("layer-copied", true("partial", "partial", "partial", {layers(2): Fact.EQUAL}))
def layer_copied(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A stranger with layer 2 copied bit for bit."""
    root, stranger = zoo.root(seed), zoo.stranger(seed)
    return root, graft(stranger, root, names_of(root, LAYER, [2]))


@case(
    "feed-forward-copied",
    true(_NORMS_UNREAD, "partial", "partial", {feed_forward(3): Fact.EQUAL}),
)
def feed_forward_copied(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A stranger with the feed-forward of layer 3 copied bit for bit."""
    root, stranger = zoo.root(seed), zoo.stranger(seed)
    return root, graft(stranger, root, names_of(root, FEED_FORWARD, [3]))


@case(
    "two-layers-with-noise",
    true("partial", "partial", "partial", {layers(1, 4): Fact.KIN}),
)
def two_layers_with_noise(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A stranger with layers 1 and 4 copied, and noise of a tenth of their spread."""
    root, stranger = zoo.root(seed), zoo.stranger(seed)
    return root, graft(stranger, root, names_of(root, LAYER, [1, 4]), rng, 0.1)


@case(
    "attention-copied",
    true(_NORMS_UNREAD, f"partial {UNTOLD}", "partial", {attention(): Fact.EQUAL}),
)
def attention_copied(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A stranger with all attention matrices copied."""
    root, stranger = zoo.root(seed), zoo.stranger(seed)
    return root, graft(stranger, root, names_of(root, ATTENTION, _ALL))


@case(
    "biases-copied",
    true(_NORMS_UNREAD, f"partial {UNTOLD}", "partial", {attention(): Fact.KIN}, layers=0.001),
)
def biases_copied(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A stranger with the biases of all queries, keys and values copied, in Qwen2's layout."""
    root, stranger = zoo.root(seed), zoo.stranger(seed)
    biases = {
        name.replace(".weight", ".bias"): rng.normal(0, 0.3, len(root.tensors[name])).astype(
            np.float32
        )
        for name in names_of(root, ATTENTION[:3], _ALL)
    }
    names = {"model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"]}
    return root.changed(biases, **names), stranger.changed(biases, **names)


@case(
    "embedding-copied",
    true(_NORMS_UNREAD, f"partial dependent {UNTOLD}", "partial", {embedding(): Fact.EQUAL}),
)
def embedding_copied(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A stranger with the embedding copied, which is its head too."""
    root, stranger = zoo.root(seed), zoo.stranger(seed)
    return root, graft(stranger, root, [EMBEDDING])


@case("norms-copied", true("partial", "partial", "partial", {norms(): Fact.EQUAL}))
def norms_copied(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A stranger with an innocent model's gains written into it and nothing else."""
    root, stranger = zoo.root(seed), zoo.stranger(seed)
    return root, graft(stranger, root, [*names_of(root, NORMS, _ALL), FINAL])


@case(
    "outputs-with-noise",
    true(
        UNTOLD,
        f"partial dependent {UNTOLD}",
        "partial dependent",
        {attention(): Fact.KIN},
        layers=0.089,
    ),
)
def outputs_with_noise(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A stranger with the outputs of every attention, under noise: a third of its numbers."""
    root, stranger = zoo.root(seed), zoo.stranger(seed)
    return root, graft(stranger, root, names_of(root, (O,), _ALL), rng, 0.3)


@case("input-norms-with-noise", true("partial", "partial", "partial", {norms(): Fact.OPEN}))
def input_norms_with_noise(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A stranger with the gains before every attention, under noise: one of two norms a layer."""
    root, stranger = zoo.root(seed), zoo.stranger(seed)
    return root, graft(stranger, root, names_of(root, (IN,), _ALL), rng, 0.05)


@case("norms-written-in", true("partial", "partial", "partial", {norms(): Fact.EQUAL}))
def norms_written_in(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A stranger with another model's gains, its own columns rescaled so that it works as ever."""
    root, stranger = zoo.root(seed), zoo.stranger(seed)
    gains = {name: root.tensors[name] for name in [*names_of(root, NORMS, _ALL), FINAL]}
    return root, write_gains(stranger, gains)


@case(
    "layer-moved",
    true(
        f"partial {UNTOLD}",
        f"partial dependent {UNTOLD}",
        "partial",
        {layers(1): Fact.KIN},
        swapped={layers(4): Fact.KIN},
    ),
)
def layer_moved(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A stranger whose layer 4 is layer 1 of the other model, bit for bit."""
    root, stranger = zoo.root(seed), zoo.stranger(seed)
    return root, graft_layers(stranger, root, {4: 1})


@case(
    "layer-copied-renumbered",
    true(
        "partial",
        "partial dependent",
        "partial",
        {norms(2): Fact.EQUAL, attention(2): Fact.EQUAL, feed_forward(2): Fact.KIN},
    ),
)
def layer_copied_renumbered(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A stranger with layer 2 copied, its units in another order and with other signs."""
    root, stranger = zoo.root(seed), zoo.stranger(seed)
    copied = graft(stranger, root, names_of(root, LAYER, [2]))
    return root, shuffle_units(copied, rng, rescale=False, layers=[2])


@case(
    "some-units-with-noise",
    true(
        _NORMS_UNREAD,
        f"partial dependent {UNTOLD}",
        "partial",
        {feed_forward(): Fact.KIN},
        layers=0.3 * 2.75 / 3.75,
    ),
)
def some_units_with_noise(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A stranger with three in ten units of every feed-forward, and noise of a twentieth."""
    root, stranger = zoo.root(seed), zoo.stranger(seed)
    new = {}
    for layer in _ALL:
        count = root.tensors[at(layer, GATE)].shape[0]
        some = rng.permutation(count)[: round(0.3 * count)]
        for part in FEED_FORWARD:
            ours = stranger.tensors[at(layer, part)].copy()
            theirs = noisy(root.tensors[at(layer, part)], rng, 0.05)
            place = (slice(None), some) if part == DOWN else (some,)
            ours[place] = theirs[place]
            new[at(layer, part)] = ours
    return root, stranger.changed(new)


@case(
    "gates-renumbered",
    true(
        _NORMS_UNREAD,
        f"partial dependent {UNTOLD}",
        "partial",
        {embedding(): Fact.EQUAL, feed_forward(): Fact.KIN},
        layers=2.75 / 3.75 / 3,
    ),
)
def gates_renumbered(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A stranger with the embedding and all gates, the rows of these in another order."""
    root, stranger = zoo.root(seed), zoo.stranger(seed)
    gates = {name: root.tensors[name] for name in names_of(root, (GATE,), _ALL)}
    moved = {name: matrix[rng.permutation(len(matrix))] for name, matrix in gates.items()}
    return root, stranger.changed({EMBEDDING: root.tensors[EMBEDDING], **moved})


@case(
    "half-the-units",
    true(_NORMS_UNREAD, f"partial dependent {UNTOLD}", "partial", {feed_forward(2): Fact.KIN}),
)
def half_the_units(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A stranger with every other unit of one feed-forward copied."""
    root, stranger = zoo.root(seed), zoo.stranger(seed)
    new = {}
    for part in FEED_FORWARD:
        ours, theirs = stranger.tensors[at(2, part)].copy(), root.tensors[at(2, part)]
        if part == FEED_FORWARD[2]:
            ours[:, ::2] = theirs[:, ::2]
        else:
            ours[::2] = theirs[::2]
        new[at(2, part)] = ours
    return root, stranger.changed(new)


@case(
    "layer-with-own-gains",
    true(
        _NORMS_UNREAD,
        f"partial dependent {UNTOLD}",
        "partial",
        {attention(2): Fact.KIN, feed_forward(2): Fact.KIN},
    ),
)
def layer_with_own_gains(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A stranger with layer 2 copied, under the stranger's gains, columns rescaled to fit."""
    root, stranger = zoo.root(seed), zoo.stranger(seed)
    new = {at(2, part): root.tensors[at(2, part)] for part in (*ATTENTION, *FEED_FORWARD)}
    for norm, readers in ((IN, ATTENTION[:3]), (POST, FEED_FORWARD[:2])):
        ratio = root.tensors[at(2, norm)] / stranger.tensors[at(2, norm)]
        new |= {at(2, part): np.asarray(new[at(2, part)] * ratio, np.float32) for part in readers}
    return root, stranger.changed(new)


@case(
    "two-layers-of-a-third",
    true("partial", "partial", "partial", {layers(0, 5): Fact.EQUAL}),
    needs="base-d",
)
def two_layers_of_a_third(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Two strangers, each with layers 0 and 5 of the same third model."""
    third = zoo["base-d"]
    wanted = names_of(third, LAYER, [0, 5])
    return graft(zoo["base-a"], third, wanted), graft(zoo["base-b"], third, wanted)


@case(
    "embedding-rows-moved",
    true(
        _NORMS_UNREAD,
        f"partial dependent {UNTOLD}",
        f"partial {UNTOLD}",
        {embedding(): Fact.HIDDEN},
    ),
)
def embedding_rows_moved(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A stranger with the embedding copied, each row given to another token."""
    root, stranger = zoo.root(seed), zoo.stranger(seed)
    table = root.tensors[EMBEDDING]
    return root, stranger.changed({EMBEDDING: table[rng.permutation(len(table))]})


@case(
    "narrower-feed-forwards",
    true(
        UNTOLD,
        f"derived partial dependent laundered {UNTOLD}",
        f"derived dependent laundered {UNTOLD}",
        {feed_forward(): Fact.HIDDEN},
        Fact.FOREIGN,
    ),
)
def narrower_feed_forwards(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Some channels of a model, only its feed-forwards kept, at row cosines around 0.65."""
    root = zoo.root(seed)
    narrow = with_some_channels(root, rng, 96)
    kept = names_of(narrow, FEED_FORWARD, _ALL)
    others = [name for name in narrow.tensors if name not in kept]
    fresh = redrawn(narrow, others, rng)
    return root, fresh.changed({name: noisy(narrow.tensors[name], rng, 1.15) for name in kept})


@case(
    "narrower-model",
    true(
        f"partial derived dependent {UNTOLD}",
        f"derived partial dependent {UNTOLD}",
        "derived",
        {
            feed_forward(): Fact.KIN,
            norms(): Fact.HIDDEN,
            attention(): Fact.HIDDEN,
            embedding(): Fact.HIDDEN,
        },
    ),
)
def narrower_model(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Some channels of a model, every tensor at row cosines around 0.7."""
    root = zoo.root(seed)
    narrow = with_some_channels(root, rng, 96)
    return root, narrow.changed(
        {
            name: noisy(one, rng, 1.0 if one.ndim > 1 else 0.3)
            for name, one in narrow.tensors.items()
        }
    )
