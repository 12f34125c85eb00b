"""How well the length of a header is guessed from the names that an index promises."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinprint.reader.formats.safetensors import guess_header_bytes

SIZES = {"F32": 4, "BF16": 2, "F16": 2, "F8_E4M3": 1, "U8": 1}
Tensor = tuple[str, str, tuple[int, ...]]


def dense(layers: int, width: int, inner: int, words: int, dtype: str = "BF16") -> Iterator[Tensor]:
    yield "model.embed_tokens.weight", dtype, (words, width)
    for layer in range(layers):
        stem = f"model.layers.{layer}"
        for part in ("q", "k", "v", "o"):
            rows = width if part in "qo" else width // 4
            yield f"{stem}.self_attn.{part}_proj.weight", dtype, (rows, width)
            if part != "o":
                yield f"{stem}.self_attn.{part}_proj.bias", dtype, (rows,)
        yield f"{stem}.mlp.gate_proj.weight", dtype, (inner, width)
        yield f"{stem}.mlp.up_proj.weight", dtype, (inner, width)
        yield f"{stem}.mlp.down_proj.weight", dtype, (width, inner)
        yield f"{stem}.input_layernorm.weight", dtype, (width,)
        yield f"{stem}.post_attention_layernorm.weight", dtype, (width,)
    yield "model.norm.weight", dtype, (width,)
    yield "lm_head.weight", dtype, (words, width)


def experts_in_fp8(layers: int, experts: int, width: int, inner: int) -> Iterator[Tensor]:
    yield "model.embed_tokens.weight", "BF16", (129280, width)
    for layer in range(layers):
        for expert in range(experts):
            stem = f"model.layers.{layer}.mlp.experts.{expert}"
            for part, shape in (
                ("gate_proj", (inner, width)),
                ("up_proj", (inner, width)),
                ("down_proj", (width, inner)),
            ):
                yield f"{stem}.{part}.weight", "F8_E4M3", shape
                scales = (-(-shape[0] // 128), -(-shape[1] // 128))
                yield f"{stem}.{part}.weight_scale_inv", "F32", scales


def fused_experts(layers: int) -> Iterator[Tensor]:
    for layer in range(layers):
        stem = f"model.layers.{layer}.mlp.experts"
        yield f"{stem}.gate_up_proj_blocks", "U8", (32, 5760, 90, 16)
        yield f"{stem}.gate_up_proj_scales", "U8", (32, 5760, 90)
        yield f"{stem}.gate_up_proj_bias", "BF16", (32, 5760)
        yield f"{stem}.down_proj_blocks", "U8", (32, 2880, 90, 16)
        yield f"model.layers.{layer}.self_attn.q_proj.weight", "BF16", (4096, 2880)
        yield f"model.layers.{layer}.self_attn.q_proj.bias", "BF16", (4096,)
        yield f"model.layers.{layer}.self_attn.sinks", "BF16", (64,)


def shards(tensors: Iterator[Tensor], limit: int) -> Iterator[list[Tensor]]:
    shard: list[Tensor] = []
    filled = 0
    for name, dtype, shape in tensors:
        nbytes = SIZES[dtype] * math.prod(shape)
        if shard and filled + nbytes > limit:
            yield shard
            shard, filled = [], 0
        shard.append((name, dtype, shape))
        filled += nbytes
    yield shard


def written(shard: list[Tensor]) -> tuple[int, int]:
    """Length of the header with its length field, and of the whole file."""
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    place = 0
    for name, dtype, shape in shard:
        end = place + SIZES[dtype] * math.prod(shape)
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [place, end]}
        place = end
    length = len(json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode())
    extent = 8 + length + -length % 8
    return extent, extent + place


MODELS = {
    "dense 0.5B": lambda: dense(24, 896, 4864, 151936),
    "dense 8B": lambda: dense(32, 4096, 14336, 128256),
    "dense 70B": lambda: dense(80, 8192, 28672, 128256),
    "dense 405B": lambda: dense(126, 16384, 53248, 128256),
    "dense in single precision": lambda: dense(32, 4096, 14336, 128256, "F32"),
    "experts in fp8": lambda: experts_in_fp8(12, 256, 7168, 2048),
    "fused experts": lambda: fused_experts(36),
}


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("limit", [2 * 10**9, 5 * 10**9, 50 * 10**9])
def test_one_read_brings_the_header_and_little_more(model: str, limit: int) -> None:
    for shard in shards(MODELS[model](), limit):
        extent, size = written(shard)
        names = [name for name, _, _ in shard]
        guess = guess_header_bytes(names, size)
        assert extent <= guess
        assert guess <= 1.12 * extent + 200


def test_without_the_size_the_guess_still_holds() -> None:
    for shard in shards(dense(80, 8192, 28672, 128256), 5 * 10**9):
        extent, _ = written(shard)
        assert extent <= guess_header_bytes(name for name, _, _ in shard) <= 1.2 * extent + 200


NAMES = st.text(
    st.characters(categories=("L", "N", "P", "S"), exclude_characters='"\\'), max_size=40
)


@given(st.lists(NAMES, unique=True, max_size=30))
def test_names_in_any_script_are_counted_in_bytes(names: list[str]) -> None:
    shard: list[Tensor] = [(name, "BF16", (4096, 14336)) for name in names]
    extent, size = written(shard)
    assert extent <= guess_header_bytes(names, size)


def test_no_guess_exceeds_what_the_format_allows() -> None:
    assert guess_header_bytes(["x" * 60_000_000] * 3) == 8 + 100_000_000
    assert guess_header_bytes([]) < 200
