"""Pairs of the zoo as they were trained, and twins that are drawn as if they had been."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from benchmarks.redteam.cases.registry import (
    STRANGERS,
    UNTOLD,
    Pair,
    attention,
    case,
    embedding,
    norms,
    true,
)
from benchmarks.redteam.checkpoint import Checkpoint
from benchmarks.redteam.layers import ATTENTION, EMBEDDING, FEED_FORWARD, K, Q, names_of
from benchmarks.redteam.relabelling import Rng, fold_gains, launder, orthogonal, rotate
from benchmarks.redteam.surgery import redrawn
from benchmarks.redteam.truth import Fact
from benchmarks.redteam.zoo import Zoo


@case(
    "same-initialisation",
    true(
        f"same-init dependent {UNTOLD}",
        "same-init dependent",
        "same-init dependent",
        {norms(): Fact.OPEN},
        rest=Fact.INITIAL,
    ),
    needs="tie-a",
)
def same_initialisation(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """One initialisation, trained apart on other data."""
    return zoo["base-a"], zoo["tie-a"]


@case(
    "first-weights-with-gains",
    true(
        "partial",
        "partial",
        "partial",
        {norms(): Fact.EQUAL, embedding(): Fact.EQUAL},
        rest=Fact.INITIAL,
    ),
)
def first_weights_with_gains(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A model that kept much of its first weights, and these with its gains and its embedding.

    The first weights are drawn and added to a trained model's.
    """
    root = zoo.root(seed)
    first = {
        name: rng.normal(0, 0.02, root.tensors[name].shape).astype(np.float32)
        for name in names_of(root, (*ATTENTION, *FEED_FORWARD), range(root.depth))
    }
    trained = root.changed({name: root.tensors[name] + one for name, one in first.items()})
    return trained, trained.changed(first)


_TWINS = true(
    f"same-init dependent {UNTOLD}",
    "same-init dependent",
    "same-init dependent",
    {norms(): Fact.OPEN},
    rest=Fact.INITIAL,
)


def _twins(
    like: Checkpoint, rng: Rng, drift: float, gains: float, unseen: float = 0.0, common: float = 0.0
) -> Pair:
    """Two models that started alike and went apart, in all but some rows of the embedding.

    `common` is the correlation of what their gains learnt.
    """
    spread = 0.02
    alike = {name: rng.normal(size=one.shape) for name, one in like.tensors.items()}
    start = {name: rng.normal(0, spread, one.shape) for name, one in like.tensors.items()}

    def trained() -> Checkpoint:
        new = {}
        for name, first in start.items():
            if first.ndim == 1:
                own = rng.normal(size=first.shape)
                learnt = np.sqrt(common) * alike[name] + np.sqrt(1 - common) * own
                new[name] = 1 + gains * learnt
                continue
            new[name] = first + rng.normal(0, drift * spread, first.shape)
            if name == EMBEDDING and unseen:
                kept = round(unseen * len(first))
                new[name][-kept:] = first[-kept:]
        return like.changed({name: one.astype(np.float32) for name, one in new.items()})

    return trained(), trained()


@case("twins-hardly-trained", _TWINS)
def twins_hardly_trained(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """One initialisation, trained apart for so short a time that matrices agree by 0.96."""
    return _twins(zoo.root(seed), rng, 0.2, 0.05)


@case("twins-on-the-same-data", _TWINS)
def twins_on_the_same_data(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """The same, with gains that agree by 0.3."""
    return _twins(zoo.root(seed), rng, 0.1, 0.05, common=0.3)


@case(
    "twins-hardly-trained-with-gains",
    true(
        "partial dependent",
        "partial dependent",
        "partial dependent",
        {norms(): Fact.KIN, embedding(): Fact.OPEN},
        rest=Fact.INITIAL,
    ),
)
def twins_hardly_trained_with_gains(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Such twins, the gains of one written into the other, with a little noise."""
    first, second = _twins(zoo.root(seed), rng, 0.2, 0.05)
    names = [name for name, one in first.tensors.items() if one.ndim == 1]
    gains = {
        name: first.tensors[name] * np.exp(rng.normal(0, 0.01, first.width)).astype(np.float32)
        for name in names
    }
    return first, second.changed(gains)


_TWINS_WITHOUT_GAINS = true(
    UNTOLD,
    f"same-init dependent {UNTOLD}",
    "same-init dependent",
    {norms(): Fact.OPEN, embedding(): Fact.OPEN},
    rest=Fact.INITIAL,
)


@case("twins-folded", _TWINS_WITHOUT_GAINS)
def twins_folded(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """The same trained apart, the gains of one folded away."""
    first, second = _twins(zoo.root(seed), rng, 0.1, 0.05)
    return first, fold_gains(second)


@case("twins-turned", _TWINS_WITHOUT_GAINS)
def twins_turned(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """The same, one folded and its residual stream turned."""
    first, second = _twins(zoo.root(seed), rng, 0.3, 0.05)
    return first, rotate(fold_gains(second), orthogonal(second.width, rng))


@case("twins-with-unseen-tokens", _TWINS)
def twins_with_unseen_tokens(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """One initialisation, trained apart; six in ten tokens were in no text of either."""
    return _twins(zoo.root(seed), rng, 1.0, 0.1, unseen=0.6)


def _frozen(model: Checkpoint, names: Iterable[str]) -> Checkpoint:
    """Some matrices as one public seed draws them."""
    rng = np.random.default_rng(0)
    shapes = {name: model.tensors[name].shape for name in sorted(names)}
    return model.changed(
        {name: rng.normal(0, 0.05, shape).astype(np.float32) for name, shape in shapes.items()}
    )


@case(
    "strangers-one-frozen-draw",
    true(UNTOLD, f"dependent {UNTOLD}", "dependent", {attention(): Fact.INITIAL}),
)
def one_frozen_draw(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Two strangers whose queries and keys are random numbers of one seed, never trained."""
    first, second = zoo.root(seed), zoo.stranger(seed)
    names = names_of(first, (Q, K), range(6))
    return _frozen(first, names), _frozen(second, names)


@case("same-initialisation-laundered", true(UNTOLD, UNTOLD, UNTOLD, rest=Fact.OPEN), needs="tie-a")
def same_initialisation_laundered(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """One initialisation, trained apart, and every symmetry redrawn: not a laundered copy."""
    return zoo["base-a"], launder(zoo["tie-a"], rng)


@case("distilled", STRANGERS, needs="a-distilled")
def distilled(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A student of a model's outputs, from weights of its own."""
    return zoo["base-a"], zoo["a-distilled"]


@case("distilled-laundered", true(UNTOLD, UNTOLD, UNTOLD), needs="a-distilled")
def distilled_laundered(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A student with every symmetry redrawn."""
    return zoo["base-a"], launder(zoo["a-distilled"], rng)


@case(
    "norms-kept",
    true(
        "partial dependent",
        "partial dependent",
        "partial dependent",
        {norms(): Fact.KIN},
        Fact.FOREIGN,
    ),
    needs="a-normsonly",
)
def norms_kept(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Only the norms kept, everything else trained anew as long as pre-training."""
    return zoo["base-a"], zoo["a-normsonly"]


@case(
    "attention-trained-anew",
    true("partial derived", "derived", "derived", {attention(): Fact.OPEN}, rest=Fact.KIN),
    needs="a-reattn",
)
def attention_trained_anew(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Attention initialised and trained anew."""
    return zoo["base-a"], zoo["a-reattn"]


@case(
    "vocabulary-replaced",
    true("partial derived", "derived", "derived", {embedding(): Fact.OPEN}, rest=Fact.KIN),
    needs="a-newvocab",
)
def vocabulary_replaced(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Another tokenizer and an embedding trained anew."""
    return zoo["base-a"], zoo["a-newvocab"]


@case(
    "narrower-and-trained",
    true(
        f"partial derived dependent {UNTOLD}",
        f"derived partial dependent {UNTOLD}",
        "derived",
        rest=Fact.HIDDEN,
    ),
    needs="a-hidprune",
)
def narrower_and_trained(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Width 128 cut to 96 and trained on."""
    return zoo["base-a"], zoo["a-hidprune"]


@case(
    "narrower-without-embedding",
    true(
        f"partial derived dependent {UNTOLD}",
        f"derived partial dependent laundered {UNTOLD}",
        f"derived partial dependent laundered {UNTOLD}",
        {embedding(): Fact.FOREIGN},
        rest=Fact.HIDDEN,
    ),
    needs="a-hidprune",
)
def narrower_without_embedding(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """The same with a fresh embedding: nothing tells which channel is which."""
    return zoo["base-a"], redrawn(zoo["a-hidprune"], [EMBEDDING], rng)


@case(
    "permuted-and-trained",
    true(
        f"partial derived dependent {UNTOLD}",
        f"derived partial dependent {UNTOLD}",
        "derived",
        rest=Fact.HIDDEN,
    ),
    needs="a-permuted",
)
def permuted(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A fine-tune with channels, units and heads renamed."""
    return zoo["base-a"], zoo["a-permuted"]


@case(
    "upcycled-and-trained",
    true("partial derived", "derived partial", "derived", rest=Fact.HIDDEN),
    needs="a-upcycled",
)
def upcycled_and_trained(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Four experts with noise, trained on."""
    return zoo["base-a"], zoo["a-upcycled"]


@case(
    "siblings-laundered",
    true(UNTOLD, f"laundered {UNTOLD}", "laundered", rest=Fact.HIDDEN),
    needs="a-sft",
)
def siblings_laundered(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Two descendants of one model, every symmetry of the second redrawn."""
    return zoo["a-sft"], launder(zoo["a-cpt"], rng)


@case("other-architectures", true(UNTOLD, UNTOLD, UNTOLD), needs="neox-j moe-k")
def other_architectures(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Two strangers of different architectures."""
    return zoo["neox-j"], zoo["moe-k"]
