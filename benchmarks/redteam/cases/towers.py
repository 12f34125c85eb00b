"""Models of several towers of which one is shared."""

from __future__ import annotations

from benchmarks.redteam.cases.registry import (
    STRANGERS,
    UNTOLD,
    Pair,
    case,
    embedding,
    norms,
    other,
    projector,
    tower,
    true,
)
from benchmarks.redteam.relabelling import Rng
from benchmarks.redteam.towers import encoder_alone, llava, qwen_vl, t5, unrelated, vision_tower
from benchmarks.redteam.truth import Fact
from benchmarks.redteam.zoo import Zoo

_SHARED = true(
    "partial derived",
    "partial derived",
    "partial derived",
    {
        norms(-1, tower="vision"): Fact.OPEN,  # the layouts have other norms outside the layers
        other(-1, tower="vision"): Fact.OPEN,  # and other tables
        tower("vision"): Fact.EQUAL,
        embedding(tower="vision"): Fact.OPEN,
    },
)


@case("vision-tower-shared", _SHARED)
def vision_shared(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Two LLaVA-like models with one vision tower over unrelated language models."""
    vision = vision_tower(zoo, seed)
    return llava(zoo.root(seed), vision, 1), llava(zoo.stranger(seed), vision, 2)


@case("vision-tower-shared-other-layout", _SHARED)
def vision_shared_other_layout(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A LLaVA-like and a Qwen-VL-like model with one vision tower, q, k and v fused in one."""
    vision = vision_tower(zoo, seed)
    return llava(zoo.root(seed), vision, 1), qwen_vl(zoo.stranger(seed), vision, 2)


@case(
    "vision-towers-apart",
    true(
        "partial derived same-weights",
        "derived partial",
        "derived partial",
        {tower("vision"): Fact.FOREIGN, tower(""): Fact.EQUAL, embedding(tower=""): Fact.EQUAL},
    ),
)
def vision_apart(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Two LLaVA-like models with one language model under unrelated vision towers."""
    first, second = vision_tower(zoo, seed), vision_tower(zoo, seed + 50, made=True)
    return llava(zoo.root(seed), first, 1), llava(zoo.root(seed), second, 2)


@case(
    "projector-copied",
    true(f"partial {UNTOLD}", "dependent", "dependent", {projector(): Fact.EQUAL}),
)
def projector_copied(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Two LLaVA-like models that share nothing but a projector, whose numbers are as drawn."""
    first, second = vision_tower(zoo, seed), vision_tower(zoo, seed + 50, made=True)
    return llava(zoo.root(seed), first, 1), llava(zoo.stranger(seed), second, 1)


@case(
    "merger-copied", true(f"partial {UNTOLD}", "dependent", "dependent", {projector(): Fact.EQUAL})
)
def merger_copied(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Two Qwen-VL-like models that share a merger as drawn, named inside the vision tower."""
    first, second = vision_tower(zoo, seed), vision_tower(zoo, seed + 50, made=True)
    return qwen_vl(zoo.root(seed), first, 1), qwen_vl(zoo.stranger(seed), second, 1)


@case(
    "projector-replaced",
    true(
        "partial derived same-weights",
        "derived",
        "derived",
        {projector(): Fact.FOREIGN},
        rest=Fact.EQUAL,
    ),
)
def projector_replaced(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A LLaVA-like model, and the same with another projector."""
    vision = vision_tower(zoo, seed)
    return llava(zoo.root(seed), vision, 1), llava(zoo.root(seed), vision, 2)


@case("multimodal-strangers", STRANGERS)
def multimodal_strangers(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Two LLaVA-like models that share nothing."""
    first, second = vision_tower(zoo, seed), vision_tower(zoo, seed + 50, made=True)
    return llava(zoo.root(seed), first, 1), llava(zoo.stranger(seed), second, 2)


@case(
    "encoder-of-a-multimodal-model",
    true(
        "partial derived same-weights",
        "partial derived same-weights",
        "partial derived same-weights",
        {tower("vision"): Fact.EQUAL, embedding(tower="vision"): Fact.OPEN},
    ),
)
def encoder_of(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A bare vision encoder against a multimodal model that has it."""
    vision = vision_tower(zoo, seed)
    return encoder_alone(vision), llava(zoo.root(seed), vision, 1)


@case("encoder-of-another-model", true(UNTOLD, UNTOLD, UNTOLD))
def encoder_of_another(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A bare vision encoder against a multimodal model with another one."""
    first, second = vision_tower(zoo, seed), vision_tower(zoo, seed + 50, made=True)
    return encoder_alone(first), llava(zoo.root(seed), second, 1)


@case(
    "language-model-of-a-multimodal-model",
    true(
        "partial derived same-weights",
        "partial derived same-weights",
        "partial derived same-weights",
        {tower(""): Fact.EQUAL, embedding(tower=""): Fact.EQUAL},
    ),
)
def language_model_of(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A text model against a multimodal model that was made of it."""
    return zoo.root(seed), llava(zoo.root(seed), vision_tower(zoo, seed), 1)


@case(
    "encoder-shared",
    true(
        "partial derived",
        "partial derived",
        "partial derived",
        {tower("encoder"): Fact.EQUAL, embedding(tower="encoder"): Fact.OPEN},
    ),
)
def encoder_shared(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Two T5-like models with one encoder under unrelated decoders."""
    root, stranger = zoo.root(seed), zoo.stranger(seed)
    return t5(root, stranger, 1, seed), t5(root, unrelated(zoo, seed), 2, seed)


@case(
    "decoder-shared",
    true(
        "partial derived",
        "partial derived",
        "partial derived",
        {
            tower("encoder"): Fact.FOREIGN,
            tower("decoder"): Fact.EQUAL,
            embedding(): Fact.EQUAL,
        },
    ),
)
def decoder_shared(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Two T5-like models with one decoder over unrelated encoders."""
    root, stranger = zoo.root(seed), zoo.stranger(seed)
    return t5(stranger, root, 1, seed), t5(unrelated(zoo, seed), root, 1, seed + 50)


@case("encoder-decoder-strangers", STRANGERS)
def encoder_decoder_strangers(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Two T5-like models that share nothing."""
    root, stranger = zoo.root(seed), zoo.stranger(seed)
    first, second = unrelated(zoo, seed), unrelated(zoo, seed + 1)
    return t5(root, first, 1, seed), t5(stranger, second, 2, seed + 50)
