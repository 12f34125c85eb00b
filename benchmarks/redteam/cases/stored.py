"""The same weights in other formats, under other names, in other files."""

from __future__ import annotations

import ml_dtypes
import numpy as np
from msgspec.structs import replace

from benchmarks.redteam.cases.registry import (
    SAME,
    UNTOLD,
    Pair,
    case,
    embedding,
    feed_forward,
    other,
    true,
)
from benchmarks.redteam.checkpoint import Array
from benchmarks.redteam.layers import DOWN, EMBEDDING, Q, V, at, names_of
from benchmarks.redteam.packed import as_awq, as_fp8_tensor, as_gptq, as_mxfp4, as_nf4
from benchmarks.redteam.relabelling import Rng
from benchmarks.redteam.storage import (
    as_fp8,
    as_gguf,
    as_int8,
    cast,
    fused,
    in_prefix,
    interleaved,
    renamed,
    unrounded,
)
from benchmarks.redteam.surgery import untied, with_tokens
from benchmarks.redteam.truth import Fact
from benchmarks.redteam.zoo import Zoo

_EQUAL = true(f"{SAME} partial", SAME, SAME, rest=Fact.EQUAL)
_ROUNDED = true("same-weights identical partial", "same-weights", "same-weights", rest=Fact.ROUNDED)
# Formats of other size: of a small budget some matrices are read in one of the two only.
_EQUAL_WIDE, _ROUNDED_WIDE = (
    replace(one, sample=one.sample | {"derived"}) for one in (_EQUAL, _ROUNDED)
)


@case("cast-fp32", _EQUAL_WIDE)
def cast_fp32(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A model in bf16, and its numbers in single precision."""
    return zoo.root(seed), cast(zoo.root(seed), np.float32)


@case("cast-fp16", true(f"{SAME} partial", SAME, SAME, rest=Fact.ROUNDED))
def cast_fp16(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A model in bf16, and its numbers in half precision."""
    return zoo.root(seed), cast(zoo.root(seed), np.float16)


@case("cast-from-master", _ROUNDED_WIDE)
def cast_from_master(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A master in single precision, and what it rounds to in bf16."""
    return unrounded(zoo.root(seed), rng), zoo.root(seed)


@case("cast-master-fp16-bf16", _ROUNDED)
def cast_both(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """One master rounded to half precision here and to bf16 there."""
    master = unrounded(zoo.root(seed), rng)
    return cast(master, np.float16), cast(master, ml_dtypes.bfloat16)


@case("cast-fp8", _ROUNDED)
def cast_fp8(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A model, and its matrices in fp8 with a scale for each block."""
    return zoo.root(seed), as_fp8(zoo.root(seed))


@case("cast-int8", _ROUNDED)
def cast_int8(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A model, and its matrices in eight whole bits with a scale for each row."""
    return zoo.root(seed), as_int8(zoo.root(seed))


@case(
    "whole-numbers-without-scales",
    true("partial dependent same-weights", "derived partial dependent", "derived", rest=Fact.KIN),
)
def without_scales(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A model, and all its matrices in eight whole bits, with scales that are stored nowhere."""
    model = zoo.root(seed)
    codes = {
        name: np.rint(127 * matrix / np.abs(matrix).max(axis=1, keepdims=True)).astype(np.int8)
        for name, matrix in model.tensors.items()
        if matrix.ndim == 2
    }
    return model, model.changed(codes)


@case("cast-gguf-q8", _ROUNDED)
def cast_gguf_q8(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A model, and a GGUF file of it in Q8_0."""
    return zoo.root(seed), as_gguf(zoo.root(seed), "Q8_0")


@case("cast-gguf-q4", _ROUNDED)
def cast_gguf_q4(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A model, and a GGUF file of it in Q4_0."""
    return zoo.root(seed), as_gguf(zoo.root(seed), "Q4_0")


@case("cast-gguf-q5", _ROUNDED)
def cast_gguf_q5(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A GGUF file in bf16, and one in Q5_1."""
    return as_gguf(zoo.root(seed), "BF16"), as_gguf(zoo.root(seed), "Q5_1")


@case("cast-gguf-two", _ROUNDED)
def cast_gguf_two(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A GGUF file in Q8_0, and one in Q4_1: neither is the original."""
    return as_gguf(zoo.root(seed), "Q8_0"), as_gguf(zoo.root(seed), "Q4_1")


@case("cast-fp8-tensor", _ROUNDED)
def cast_fp8_tensor(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A model, and its matrices in fp8 with one scale each."""
    return zoo.root(seed), as_fp8_tensor(zoo.root(seed))


@case("cast-gptq", _ROUNDED)
def cast_gptq(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A model, and its matrices in four bits as GPTQ packs them."""
    return zoo.root(seed), as_gptq(zoo.root(seed))


@case("cast-awq", _ROUNDED_WIDE)
def cast_awq(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A model, and its matrices in four bits as AWQ packs them."""
    return zoo.root(seed), as_awq(zoo.root(seed))


@case("cast-nf4", _ROUNDED)
def cast_nf4(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A model, and its matrices in the four bits of bitsandbytes."""
    return zoo.root(seed), as_nf4(zoo.root(seed))


@case("cast-mxfp4", _ROUNDED)
def cast_mxfp4(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A model, and its matrices in floats of four bits."""
    return zoo.root(seed), as_mxfp4(zoo.root(seed))


@case(
    "cast-of-a-descendant",
    true("partial derived dependent", "derived partial", "derived", rest=Fact.KIN),
)
def cast_of_a_descendant(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A model, and a descendant of it in fp8: not the same weights.

    Its longer header leaves less of a small budget for norms: too few to say what kind.
    """
    return zoo["base-a"], as_fp8(zoo["a-cpt"])


@case(
    "renamed",
    true(f"{SAME} partial untestable", f"{SAME} untestable derived", SAME, rest=Fact.EQUAL),
)
def renamed_known(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """The same tensors under names that no architecture has."""
    return zoo.root(seed), renamed(zoo.root(seed), known=True)


@case(
    "renamed-to-numbers",
    true(f"{SAME} partial untestable", f"{SAME} untestable derived", SAME, rest=Fact.EQUAL),
)
def renamed_to_numbers(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """The same tensors, each called by a number."""
    return zoo.root(seed), renamed(zoo.root(seed), known=False)


@case(
    "renamed-cast",
    true(f"{SAME} partial untestable", f"{SAME} untestable", SAME, rest=Fact.ROUNDED),
)
def renamed_cast(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A master in single precision, and its bf16 rounding with each tensor called by a number."""
    return unrounded(zoo.root(seed), rng), renamed(zoo.root(seed), known=False)


@case("renamed-both", true(f"{SAME} untestable", f"{SAME} untestable", SAME, rest=Fact.OPEN))
def renamed_both(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """The same tensors under two sets of names that no architecture has."""
    return renamed(zoo.root(seed), known=True), renamed(zoo.root(seed), known=False)


@case(
    "renamed-one-changed",
    true(
        "derived untestable",
        "derived untestable",
        "derived",
        {feed_forward(3): Fact.KIN},
        rest=Fact.EQUAL,
    ),
)
def renamed_one_changed(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """The same tensors under other names, one of them a stranger's from its middle on."""
    root, name = zoo.root(seed), at(3, DOWN)
    matrix = root.tensors[name].copy()
    matrix[len(matrix) // 2 :] = zoo.stranger(seed).tensors[name][len(matrix) // 2 :]
    return root, renamed(root.changed({name: matrix}), known=False)


@case("renamed-strangers", true(UNTOLD, UNTOLD, UNTOLD))
def renamed_strangers(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Two strangers, the second with names that no architecture has."""
    return zoo.root(seed), renamed(zoo.stranger(seed), known=True)


@case("other-prefix", _EQUAL)
def other_prefix(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """The same tensors one level up in the names."""
    return zoo.root(seed), in_prefix(zoo.root(seed), "")


@case("language-model-prefix", _EQUAL)
def language_model_prefix(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """The same tensors where a multimodal model has its language model."""
    return zoo.root(seed), in_prefix(zoo.root(seed), "model.language_model.")


@case("other-shards", _EQUAL)
def other_shards(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """The same tensors in five files and another order."""
    return zoo.root(seed), replace(zoo.root(seed), shards=5)


@case("fused", _EQUAL)
def fused_tensors(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """The same numbers with q, k, v and gate, up in one tensor each."""
    return zoo.root(seed), fused(zoo.root(seed))


@case("interleaved-rotary", _EQUAL)
def interleaved_rotary(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """The same numbers as Llama was first published: other names, rows of q and k in turn."""
    return zoo.root(seed), interleaved(zoo.root(seed))


@case("untied-head", _EQUAL)
def untied_head(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """The embedding written a second time as the head."""
    return zoo.root(seed), untied(zoo.root(seed))


@case(
    "rows-moved",
    true(
        f"{SAME} partial derived",
        f"{SAME} derived partial",
        f"{SAME} derived",
        {embedding(): Fact.KIN},
        rest=Fact.EQUAL,
    ),
)
def rows_moved(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """The same model with its tokens in another order, embedding and tokenizer alike."""
    root = zoo.root(seed)
    order = rng.permutation(int(root.geometry["vocab_size"])).tolist()
    return root, with_tokens(root, order, {})


@case(
    "vocabulary-extended",
    true(
        "partial derived same-weights",
        "derived same-weights partial",
        "derived same-weights",
        {embedding(): Fact.KIN},
        rest=Fact.EQUAL,
    ),
)
def vocabulary_extended(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """The same model with 256 more tokens and the old ones moved behind each other."""
    root = zoo.root(seed)
    size = int(root.geometry["vocab_size"])
    order = [*range(100, size), *range(100)]
    return root, with_tokens(root, order, {size + one: f"extra{one}" for one in range(256)})


@case(
    "vocabulary-cut",
    true("partial derived", "partial derived", "derived", {embedding(): Fact.KIN}, Fact.EQUAL),
)
def vocabulary_cut(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """The same model with the first ten rows of its embedding, and no tokenizer."""
    root = zoo.root(seed)
    table = root.tensors[EMBEDDING][:10]
    return root, replace(root.changed({EMBEDDING: table}, vocab_size=10), files={})


@case(
    "update-stored-beside",
    true("partial", "derived", "derived", {other(): Fact.OPEN}, Fact.EQUAL),
)
def update_stored_beside(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """The same model with a low-rank update that was not merged, in one file with it."""
    root = zoo.root(seed)
    new: dict[str, Array] = {}
    for name in names_of(root, (Q, V), range(root.depth)):
        for part, shape in (("A", (8, root.width)), ("B", (len(root.tensors[name]), 8))):
            update = rng.normal(0, 0.05, shape).astype(np.float32)
            new[name.replace(".weight", f".lora_{part}.default.weight")] = update
    return root, root.changed(new)


@case("vocabulary-padded", _EQUAL_WIDE)
def vocabulary_padded(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """The same model with rows of zeros after the last token, as training in parts wants them."""
    root = zoo.root(seed)
    table = np.pad(root.tensors[EMBEDDING], ((0, 128), (0, 0)))
    return root, root.changed({EMBEDDING: table}, vocab_size=len(table))


@case("no-tokenizer", _EQUAL_WIDE)
def no_tokenizer(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """The same weights without a tokenizer, in single precision."""
    return zoo.root(seed), replace(cast(zoo.root(seed), np.float32), files={})


@case(
    "no-configuration",
    true(f"{SAME} partial untestable", f"{SAME} untestable derived", SAME, rest=Fact.EQUAL),
)
def no_configuration(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """The same weights in single precision, without a configuration or a tokenizer."""
    return zoo.root(seed), replace(cast(zoo.root(seed), np.float32), files={}, config=None)
