"""Pairs that were thought up against the rules: equality, parts, towers, the invariants."""

from __future__ import annotations

import json
from pathlib import Path

import ml_dtypes
import numpy as np
from msgspec.structs import replace

from benchmarks.redteam.cases.registry import (
    SAME,
    STRANGERS,
    UNTOLD,
    Pair,
    attention,
    case,
    embedding,
    feed_forward,
    head,
    layers,
    norms,
    other,
    router,
    tower,
    true,
)
from benchmarks.redteam.checkpoint import Array, Checkpoint, write_tensors
from benchmarks.redteam.layers import (
    ATTENTION,
    EMBEDDING,
    FEED_FORWARD,
    FINAL,
    GATE,
    HEAD,
    IN,
    LAYER,
    K,
    V,
    at,
    names_of,
)
from benchmarks.redteam.relabelling import (
    Rng,
    arrange,
    fold_gains,
    launder,
    orthogonal,
    rotate,
    shuffle_units,
)
from benchmarks.redteam.storage import as_gguf, cast
from benchmarks.redteam.surgery import (
    graft,
    graft_layers,
    noisy,
    redrawn,
    untied,
    upcycled,
    with_layers,
)
from benchmarks.redteam.towers import encoder_alone, t5, vision_tower
from benchmarks.redteam.truth import Fact
from benchmarks.redteam.zoo import Zoo
from kinprint.lineage.reading.levels import sample_units


@case(
    "embedding-replaced",
    true(
        "partial derived same-weights",
        "derived partial",
        "derived",
        {embedding(): Fact.FOREIGN},
        rest=Fact.EQUAL,
    ),
)
def embedding_replaced(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A copy with a stranger's embedding: all layers are equal, and it is not the same model."""
    root, stranger = zoo.root(seed), zoo.stranger(seed)
    return root, graft(root, stranger, [EMBEDDING])


@case(
    "last-layer-replaced",
    true(
        "partial derived",
        "derived partial",
        "derived",
        {layers(5): Fact.FOREIGN},
        rest=Fact.EQUAL,
    ),
)
def last_layer_replaced(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A copy whose last layer is a stranger's."""
    root, stranger = zoo.root(seed), zoo.stranger(seed)
    return root, graft(root, stranger, names_of(root, LAYER, [5]))


@case(
    "final-norm-copied",
    true("partial", "partial", "partial", {norms(-1): Fact.EQUAL}),
)
def final_norm_copied(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A stranger with nothing but the last norm copied."""
    root, stranger = zoo.root(seed), zoo.stranger(seed)
    return root, graft(stranger, root, [FINAL])


@case(
    "gates-copied",
    true(UNTOLD, "partial", "partial", {feed_forward(): Fact.KIN}),
)
def gates_copied(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A stranger with all gate matrices copied, up and down its own."""
    root, stranger = zoo.root(seed), zoo.stranger(seed)
    return root, graft(stranger, root, names_of(root, (GATE,), range(6)))


@case(
    "gates-copied-renumbered",
    true(
        UNTOLD,
        f"partial dependent {UNTOLD}",
        "partial",
        {feed_forward(): Fact.KIN, embedding(): Fact.EQUAL},
    ),
)
def gates_copied_renumbered(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A stranger with the embedding, and with all gate matrices in another order of units."""
    root, stranger = zoo.root(seed), zoo.stranger(seed)
    names = names_of(root, (GATE,), range(6))
    gates = {name: rng.permutation(root.tensors[name]) for name in names}
    return root, graft(stranger, root, [EMBEDDING]).changed(gates)


@case(
    "gates-copied-laundered",
    true(
        UNTOLD,
        f"laundered {UNTOLD}",
        f"laundered dependent {UNTOLD}",
        {embedding(): Fact.HIDDEN, feed_forward(): Fact.HIDDEN},
    ),
)
def gates_copied_laundered(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A stranger with a model's embedding and gates, every symmetry redrawn."""
    root, stranger = zoo.root(seed), zoo.stranger(seed)
    mixed = graft(stranger, root, [*names_of(root, (GATE,), range(6)), EMBEDDING])
    return root, launder(mixed, rng)


@case(
    "embedding-copied-laundered",
    true(UNTOLD, UNTOLD, f"dependent partial {UNTOLD}", {embedding(): Fact.HIDDEN}),
)
def embedding_copied_laundered(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A stranger over a model's embedding, every symmetry redrawn: its layers are its own."""
    root, stranger = zoo.root(seed), zoo.stranger(seed)
    return root, launder(graft(stranger, root, [EMBEDDING]), rng)


@case(
    "embedding-copied-framed",
    true(
        f"dependent {UNTOLD}",
        f"partial dependent {UNTOLD}",
        "partial",
        {embedding(): Fact.EQUAL},
        rest=Fact.ARRANGED,
    ),
)
def embedding_copied_framed(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A stranger with a model's embedding and its own layers renumbered towards the model's."""
    root, stranger = zoo.root(seed), zoo.stranger(seed)
    return root, arrange(graft(stranger, root, [EMBEDDING]), root, channels=False)


@case(
    "one-layer-laundered",
    true(
        UNTOLD,
        UNTOLD,
        f"laundered partial dependent {UNTOLD}",
        {attention(2): Fact.HIDDEN, feed_forward(2): Fact.HIDDEN, norms(2): Fact.OPEN},
    ),
)
def one_layer_laundered(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A stranger with layer 2 of a model whose units, signs, planes and values were redrawn."""
    root, stranger = zoo.root(seed), zoo.stranger(seed)
    turned = launder(root, rng)
    return root, graft(stranger, turned, names_of(root, (*ATTENTION, *FEED_FORWARD), [2]))


@case(
    "laundered-with-a-raw-layer",
    true(
        f"partial dependent laundered {UNTOLD}",
        f"partial dependent laundered {UNTOLD}",
        "laundered partial derived",
        {feed_forward(2): Fact.EQUAL, norms(): Fact.OPEN},
        rest=Fact.HIDDEN,
    ),
)
def laundered_with_a_raw_layer(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A laundered copy into which one feed-forward was put back as it was, as a decoy."""
    root = zoo.root(seed)
    return root, graft(launder(root, rng), root, names_of(root, FEED_FORWARD, [2]))


@case(
    "laundered-with-a-raw-embedding",
    true(
        f"partial dependent laundered {UNTOLD}",
        f"partial dependent laundered {UNTOLD}",
        "laundered partial derived",
        {head(): Fact.HIDDEN, embedding(): Fact.EQUAL, norms(): Fact.OPEN},
        rest=Fact.HIDDEN,
    ),
)
def laundered_with_a_raw_embedding(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A laundered copy that kept its embedding: a projection behind it may turn the stream."""
    root = zoo.root(seed)
    return root, graft(launder(root, rng), root, [EMBEDDING])


@case(
    "attention-turned-beside-a-raw-embedding",
    true(
        UNTOLD,
        f"partial dependent {UNTOLD}",
        "partial",
        {embedding(): Fact.EQUAL, attention(): Fact.HIDDEN, norms(): Fact.OPEN},
    ),
)
def attention_turned(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A stranger with an embedding copied, and all attention copied into another basis."""
    root = zoo.root(seed)
    turned = names_of(root, (*ATTENTION, IN), range(root.depth))
    stranger = graft(zoo.stranger(seed), root, [EMBEDDING])
    return root, graft(stranger, launder(root, rng), turned)


@case(
    "keys-as-values",
    true(
        "derived partial same-weights dependent",
        "derived partial same-weights",
        "derived",
        {attention(): Fact.HIDDEN},
        rest=Fact.EQUAL,
    ),
)
def keys_as_values(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A model with a stranger's queries and outputs, and keys and values in each other's place."""
    root, stranger = zoo.root(seed), zoo.stranger(seed)
    new = {name: stranger.tensors[name] for name in names_of(root, ATTENTION, range(6))}
    for layer in range(6):
        for part, source in ((K, V), (V, K)):
            new[at(layer, part)] = noisy(root.tensors[at(layer, source)], rng, 0.1)
    return root, root.changed(new)


@case(
    "head-copied",
    true(UNTOLD, f"partial dependent {UNTOLD}", "partial", {embedding(): Fact.HIDDEN}),
)
def head_copied(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A stranger with a head of its own that is the other model's embedding."""
    root, stranger = zoo.root(seed), zoo.stranger(seed)
    return root, untied(stranger).changed({HEAD: root.tensors[EMBEDDING]})


@case(
    "tables-crossed",
    true(UNTOLD, f"partial dependent {UNTOLD}", "partial", {embedding(): Fact.HIDDEN}),
)
def tables_crossed(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A stranger whose head is the other model's embedding, where both have heads of their own."""
    root, stranger = (
        redrawn(untied(one), [HEAD], rng) for one in (zoo.root(seed), zoo.stranger(seed))
    )
    return root, stranger.changed({HEAD: root.tensors[EMBEDDING]})


@case(
    "complementary-halves",
    true(
        f"dependent {UNTOLD}",
        f"dependent {UNTOLD}",
        f"dependent {UNTOLD}",
        {embedding(): Fact.FOREIGN},
        rest=Fact.ARRANGED,
    ),
)
def complementary_halves(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Half of one model and half of another each, no layer in both: one stream, no weight."""
    root, stranger = zoo.root(seed), zoo.stranger(seed)
    upper = {layer: layer for layer in (3, 4, 5)}
    return graft_layers(root, stranger, upper), graft_layers(stranger, root, upper)


@case(
    "interleaved-layers",
    true("partial derived", "derived partial", "derived partial", {layers(0, 2, 4): Fact.EQUAL}),
)
def interleaved_layers(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A stranger with every other layer copied."""
    root, stranger = zoo.root(seed), zoo.stranger(seed)
    return root, graft_layers(stranger, root, {layer: layer for layer in (0, 2, 4)})


@case(
    "scattered-numbers",
    true(
        UNTOLD,
        f"partial dependent {UNTOLD}",
        "partial dependent",
        {attention(): Fact.OPEN, norms(): Fact.FOREIGN, embedding(): Fact.FOREIGN},
        rest=Fact.HIDDEN,
    ),
)
def scattered_numbers(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A stranger with one number in twenty copied, anywhere in the matrices of its layers."""
    root, stranger = zoo.root(seed), zoo.stranger(seed)
    new: dict[str, Array] = {}
    for name in names_of(root, (*ATTENTION, *FEED_FORWARD), range(6)):
        taken = rng.random(root.tensors[name].shape) < 0.05
        new[name] = np.where(taken, root.tensors[name], stranger.tensors[name])
    return root, stranger.changed(new)


@case(
    "drowned-in-noise",
    true(
        f"derived partial dependent {UNTOLD}",
        "derived dependent",
        "derived dependent",
        rest=Fact.HIDDEN,
    ),
)
def drowned_in_noise(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A copy under noise three times as large as its weights."""
    root = zoo.root(seed)
    return root, root.changed(
        {name: noisy(one, rng, 3.0 if one.ndim > 1 else 1.0) for name, one in root.tensors.items()}
    )


@case(
    "sample-avoided",
    true(
        UNTOLD,
        f"derived partial dependent {UNTOLD}",
        "derived",
        {feed_forward(): Fact.KIN, norms(): Fact.FOREIGN, embedding(): Fact.FOREIGN},
    ),
)
def sample_avoided(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A stranger with all feed-forward units copied but those that a sample is known to read."""
    root, stranger = zoo.root(seed), zoo.stranger(seed)
    new: dict[str, Array] = {}
    seen = list(sample_units(352, 64))
    for name in names_of(root, FEED_FORWARD, range(6)):
        taken = root.tensors[name].copy()
        if name.endswith("down_proj.weight"):
            taken[:, seen] = stranger.tensors[name][:, seen]
        else:
            taken[seen] = stranger.tensors[name][seen]
        new[name] = taken
    return root, stranger.changed(new)


@case(
    "sample-planted",
    true(
        UNTOLD,
        "partial dependent derived",  # with the words that rows speak for parts, and the seed
        "partial",
        {feed_forward(): Fact.KIN},
    ),
)
def sample_planted(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A stranger with only those feed-forward units copied that a sample is known to read."""
    root, stranger = zoo.root(seed), zoo.stranger(seed)
    new: dict[str, Array] = {}
    seen = list(sample_units(352, 16))
    for name in names_of(root, FEED_FORWARD, range(6)):
        taken = stranger.tensors[name].copy()
        if name.endswith("down_proj.weight"):
            taken[:, seen] = root.tensors[name][:, seen]
        else:
            taken[seen] = root.tensors[name][seen]
        new[name] = taken
    return root, stranger.changed(new)


@case("sparse-delta", true("partial derived", "derived", "derived", rest=Fact.KIN))
def sparse_delta(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A tenth of what a descendant learnt, ten times as strong, on its parent."""
    root, child = zoo["base-a"], zoo["a-cpt"]
    new: dict[str, Array] = {}
    for name, old in root.tensors.items():
        kept = rng.random(old.shape) < 0.1
        new[name] = np.asarray(
            old + np.where(kept, 10, 0) * (child.tensors[name] - old) * 0.5, np.float32
        )
    return root, root.changed(new)


@case("cast-mixed", true(f"{SAME} partial", SAME, SAME, rest=Fact.ROUNDED))
def cast_mixed(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """The same model with odd layers in half precision."""
    root = zoo.root(seed)
    odd = names_of(root, LAYER, (1, 3, 5))
    return root, root.changed({name: root.tensors[name].astype(np.float16) for name in odd})


@case("kin-in-q4", true("partial derived", "derived", "derived", rest=Fact.KIN))
def kin_in_q4(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A model and its descendant, both in GGUF's Q4_0: not the same weights."""
    return as_gguf(zoo["base-a"], "Q4_0"), as_gguf(zoo["a-cpt"], "Q4_0")


@case(
    "expert-copied",
    true(
        UNTOLD,
        f"partial dependent {UNTOLD}",
        "partial",
        {feed_forward(3): Fact.KIN, router(): Fact.OPEN},
    ),
)
def expert_copied(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Two strangers of four experts; one expert of layer 3 of the one is in the other."""
    first = upcycled(zoo.root(seed), rng, 4, 0.3, shuffle=True)
    second = upcycled(zoo.stranger(seed), rng, 4, 0.3, shuffle=True)
    place = "model.layers.3.block_sparse_moe.experts"
    return first, second.changed(
        {
            f"{place}.2.{name}.weight": first.tensors[f"{place}.1.{name}.weight"]
            for name in ("w1", "w2", "w3")
        }
    )


@case(
    "experts-renumbered",
    true(
        "partial derived same-weights",
        "derived partial dependent",
        "derived same-weights",
        {feed_forward(): Fact.KIN, router(): Fact.HIDDEN},
        rest=Fact.EQUAL,
    ),
    needs="moe-k",
)
def experts_renumbered(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A mixture of experts with its experts in another order."""
    root = zoo["moe-k"]
    new: dict[str, Array] = {}
    for layer in range(6):
        place = f"model.layers.{layer}.block_sparse_moe"
        order = rng.permutation(4)
        new[f"{place}.gate.weight"] = root.tensors[f"{place}.gate.weight"][order]
        for to, of in enumerate(order):
            for name in ("w1", "w2", "w3"):
                new[f"{place}.experts.{to}.{name}.weight"] = root.tensors[
                    f"{place}.experts.{of}.{name}.weight"
                ]
    return root, root.changed(new)


@case(
    "experts-exchanged",
    true(
        "partial derived same-weights",
        "derived partial same-weights",
        "derived",
        {feed_forward(): Fact.KIN, router(): Fact.EQUAL},
        rest=Fact.EQUAL,
    ),
    needs="moe-k",
)
def experts_exchanged(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A mixture of experts with two of each layer in each other's place, routers as they were."""
    root = zoo["moe-k"]
    new: dict[str, Array] = {}
    for layer in range(6):
        place = f"model.layers.{layer}.block_sparse_moe.experts"
        for to, of in ((0, 3), (3, 0)):
            for name in ("w1", "w2", "w3"):
                new[f"{place}.{to}.{name}.weight"] = root.tensors[f"{place}.{of}.{name}.weight"]
    return root, root.changed(new)


@case(
    "text-model-as-encoder",
    true(
        "partial derived",
        "partial derived",
        "partial derived",
        {attention(): Fact.HIDDEN, embedding(): Fact.FOREIGN, tower(""): Fact.EQUAL},
        swapped={
            attention(tower="encoder"): Fact.HIDDEN,
            other(tower="encoder"): Fact.OPEN,
            tower("encoder"): Fact.EQUAL,
            embedding(tower="encoder"): Fact.OPEN,
        },
    ),
)
def text_model_as_encoder(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A text model against a T5-like model whose encoder has its norms and feed-forwards."""
    root, stranger = zoo.root(seed), zoo.stranger(seed)
    return root, t5(root, stranger, 2, seed)


@case(
    "draft-of-one-layer",
    true(
        "partial derived",
        "partial derived",
        "partial derived",
        {layers(5): Fact.KIN, embedding(): Fact.EQUAL},
        swapped={layers(0): Fact.KIN, embedding(): Fact.EQUAL},
        rest=Fact.OPEN,
    ),
)
def draft_of_one_layer(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A model against a draft made of its embedding and its last layer."""
    root = zoo.root(seed)
    return root, with_layers(root, [5])


@case(
    "text-encoder-of-two-pipelines",
    true(
        "partial derived",
        "partial derived",
        "partial derived",
        {tower("text_encoder"): Fact.EQUAL},
        rest=Fact.OPEN,
    ),
)
def two_pipelines(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Two diffusers folders with one text encoder and unrelated transformers."""
    text = zoo.root(seed)
    return _pipeline(text, vision_tower(zoo, seed)), _pipeline(
        text, vision_tower(zoo, seed + 50, made=True)
    )


def _pipeline(text: Checkpoint, vision: dict[str, Array]) -> Checkpoint:
    def save(model: Checkpoint, folder: Path) -> None:
        index = {
            "_class_name": "StableDiffusion3Pipeline",
            "_diffusers_version": "0.30.0",
            "text_encoder": ["transformers", "LlamaModel"],
            "transformer": ["diffusers", "SD3Transformer2DModel"],
        }
        (folder / "model_index.json").write_text(json.dumps(index))
        other = encoder_alone(vision)
        for name, file, part in (
            ("text_encoder", "model", model),
            ("transformer", "diffusion_pytorch_model", other),
        ):
            place = folder / name
            place.mkdir(exist_ok=True)
            write_tensors(place / f"{file}.safetensors", part, part.tensors)
            (place / "config.json").write_text(json.dumps(part.config))

    return replace(text, save=save)


@case("strangers-state-space", true(UNTOLD, UNTOLD, UNTOLD))
def strangers_state_space(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Two state-space models of random weights: their decay rates start at the same table."""
    return _state_space(seed, 0.05), _state_space(seed + 100, 0.05)


@case(
    "state-space-fine-tuned",
    true(
        f"partial derived dependent {UNTOLD}",
        f"derived partial dependent {UNTOLD}",
        f"derived partial dependent {UNTOLD}",
        rest=Fact.HIDDEN,
    ),
)
def state_space_tuned(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A state-space model and itself with a little noise."""
    root = _state_space(seed, 0.05)
    return root, root.changed({name: noisy(one, rng, 0.05) for name, one in root.tensors.items()})


def _state_space(seed: int, spread: float) -> Checkpoint:
    """A small Mamba of random weights; `A_log` and `D` start as every Mamba's do."""
    rng = np.random.default_rng([seed, 90])
    width, inner, states, rank, depth, tokens = 128, 256, 16, 8, 6, 2048

    def draw(*shape: int) -> Array:
        return np.asarray(rng.normal(0, spread, shape), np.float32)

    tensors: dict[str, Array] = {
        "backbone.embeddings.weight": draw(tokens, width),
        "backbone.norm_f.weight": 1 + draw(width),
    }
    for layer in range(depth):
        root = f"backbone.layers.{layer}"
        table = np.log(np.tile(np.arange(1, states + 1, dtype=np.float32), (inner, 1)))
        tensors |= {
            f"{root}.norm.weight": 1 + draw(width),
            f"{root}.mixer.A_log": table + 0.01 * draw(inner, states),
            f"{root}.mixer.D": np.ones(inner, np.float32),
            f"{root}.mixer.conv1d.weight": draw(inner, 1, 4),
            f"{root}.mixer.conv1d.bias": draw(inner),
            f"{root}.mixer.in_proj.weight": draw(2 * inner, width),
            f"{root}.mixer.x_proj.weight": draw(rank + 2 * states, inner),
            f"{root}.mixer.dt_proj.weight": draw(inner, rank),
            f"{root}.mixer.dt_proj.bias": draw(inner) - 4,
            f"{root}.mixer.out_proj.weight": draw(width, inner),
        }
    config = {
        "model_type": "mamba",
        "architectures": ["MambaForCausalLM"],
        "hidden_size": width,
        "intermediate_size": inner,
        "state_size": states,
        "conv_kernel": 4,
        "expand": 2,
        "time_step_rank": rank,
        "num_hidden_layers": depth,
        "vocab_size": tokens,
        "tie_word_embeddings": True,
        "torch_dtype": "bfloat16",
    }
    words = {f"word{number}": number for number in range(tokens)}
    told = {"model": {"type": "WordLevel", "vocab": words, "unk_token": "word0"}}
    return Checkpoint(tensors, config, {"tokenizer.json": json.dumps(told).encode()})


@case("strangers-one-position-table", STRANGERS)
def strangers_positions(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Two strangers that store the same sinusoidal table of positions."""
    angles = np.arange(512)[:, None] / 10000 ** (np.arange(64)[None] / 64)
    table = np.concatenate([np.sin(angles), np.cos(angles)], axis=1).astype(np.float32)
    name = "model.embed_positions.weight"
    return zoo.root(seed).changed({name: table}), zoo.stranger(seed).changed({name: table})


@case("strangers-turned-together", true(UNTOLD, UNTOLD, UNTOLD))
def strangers_turned_together(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Two strangers with folded gains, turned by one and the same matrix, as QuaRot does."""
    turn = orthogonal(128, rng)
    return rotate(fold_gains(zoo.root(seed)), turn), rotate(fold_gains(zoo.stranger(seed)), turn)


@case(
    "strangers-random-frozen-embedding",
    true(
        UNTOLD,
        f"dependent {UNTOLD}",
        "dependent",
        {embedding(): Fact.EQUAL},
    ),
)
def strangers_frozen_embedding(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Two strangers over one embedding of random numbers that nobody trained."""
    root, stranger = zoo.root(seed), zoo.stranger(seed)
    fresh = redrawn(root, [EMBEDDING], rng)
    return fresh, graft(stranger, fresh, [EMBEDDING])


@case("strangers-few-tokens", STRANGERS)
def strangers_few_tokens(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Two strangers whose rows of rare tokens are one mean row, over and over."""

    def padded(model: Checkpoint) -> Checkpoint:
        table = model.tensors[EMBEDDING].copy()
        table[1024:] = table.mean(axis=0)
        return model.changed({EMBEDDING: table})

    return padded(zoo.root(seed)), padded(zoo.stranger(seed))


@case("strangers-cloned-units", STRANGERS)
def strangers_cloned_units(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Two strangers grown from half as many units, each unit there twice at shuffled places."""

    def grown(model: Checkpoint) -> Checkpoint:
        new: dict[str, Array] = {}
        for layer in range(6):
            gate, up, down = (
                model.tensors[at(layer, part)][: 176 if part != FEED_FORWARD[2] else None]
                for part in FEED_FORWARD
            )
            down = down[:, :176] / 2
            new[at(layer, FEED_FORWARD[0])] = np.concatenate([gate, gate])
            new[at(layer, FEED_FORWARD[1])] = np.concatenate([up, up])
            new[at(layer, FEED_FORWARD[2])] = np.concatenate([down, down], axis=1)
        return shuffle_units(model.changed(new), rng, flip=False, rescale=False)

    return grown(zoo.root(seed)), grown(zoo.stranger(seed))


@case("strangers-all-in-fp8", STRANGERS)
def strangers_all_in_fp8(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Two strangers, the second cast to e4m3 as a whole: gains near one have steps of an eighth."""
    return zoo.root(seed), cast(zoo.stranger(seed), ml_dtypes.float8_e4m3fn)


@case(
    "cast-all-to-fp8",
    true("same-weights partial", "same-weights", "same-weights", rest=Fact.ROUNDED),
)
def cast_all_to_fp8(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A model, and all of it in e4m3, gains and embedding too."""
    return zoo.root(seed), cast(zoo.root(seed), ml_dtypes.float8_e4m3fn)


@case(
    "strangers-in-narrow-gains",
    true(UNTOLD, UNTOLD, "no-evidence untestable"),
)
def strangers_narrow_gains(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Two strangers whose gains hardly moved from one, stored in bf16: five values or so."""

    def narrow(model: Checkpoint) -> Checkpoint:
        return model.changed(
            {
                name: np.asarray(1 + 0.05 * (one - one.mean()), np.float32)
                for name, one in model.tensors.items()
                if one.ndim == 1
            }
        )

    return narrow(zoo.root(seed)), narrow(zoo.stranger(seed))
