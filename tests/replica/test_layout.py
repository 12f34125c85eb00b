from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinprint.errors import BadOption
from kinprint.replica import replica_names
from kinprint.replica.layout import Slot, fill_shards, layout_of

SOLAR = "upstage/Solar-Open-100B"
GLM = "zai-org/GLM-4.5-Air"

# Shards of each copy as in the table of layouts, and bytes of the first copy.
SIZES = {
    SOLAR: ([42], 205_303_611_392),
    GLM: ([47], 220_937_661_440),
    "PrimeIntellect/INTELLECT-3": ([47], 220_937_661_440),
    "microsoft/Phi-3.5-MoE-instruct": ([17], 83_746_306_688),
    "mistralai/Mixtral-8x7B-Instruct-v0.1": ([19], 93_405_585_408),
    "mistralai/Mixtral-8x22B": ([59], 281_260_142_592),
    "mistralai/Mistral-7B-Instruct-v0.3": ([3, 1], 14_496_047_104),
    "01-ai/Yi-1.5-6B-Chat": ([3], 12_122_071_040),
    "01-ai/Yi-1.5-9B-Chat": ([4], 17_658_814_464),
    "internlm/internlm2-chat-7b": ([8], 15_475_417_088),
    "Qwen/Qwen1.5-7B-Chat": ([4], 15_442_649_088),
}


def shard_of(name: str) -> dict[str, str]:
    return {s.name: p for p, slots in layout_of(name).copies[0].files.items() for s in slots}


def shapes(name: str) -> dict[str, tuple[int, ...]]:
    layout = layout_of(name)
    return {s.name: s.shape for c in layout.copies for slots in c.files.values() for s in slots}


def test_names_are_those_of_the_table() -> None:
    assert replica_names() == tuple(SIZES)


@pytest.mark.parametrize("name", SIZES)
def test_number_of_shards_and_bytes(name: str) -> None:
    layout = layout_of(name)
    shards, size = SIZES[name]
    assert [len(copy.files) for copy in layout.copies] == shards
    for copy in layout.copies:
        assert sum(slot.nbytes for slots in copy.files.values() for slot in slots) == size


def test_every_published_shard_of_solar_and_glm(
    rows: Callable[[str], list[dict[str, str]]],
) -> None:
    published = rows("shards.csv")
    assert len(published) == 137
    solar, glm = shard_of(SOLAR), shard_of(GLM)
    for row in published:
        assert solar[row["key_solar"]] == row["shard_solar"], row["key_solar"]
        assert glm[row["key_glm"]] == row["shard_glm"], row["key_glm"]


def test_names_are_unique_within_a_model() -> None:
    for name in SIZES:
        layout = layout_of(name)
        names = [s.name for c in layout.copies for slots in c.files.values() for s in slots]
        assert len(set(names)) == len(names)


def test_what_sets_solar_and_glm_apart() -> None:
    solar, glm = shapes(SOLAR), shapes(GLM)
    assert solar["model.layers.0.self_attn.q_proj.weight"] == (8192, 4096)
    assert glm["model.layers.0.self_attn.q_proj.weight"] == (12288, 4096)
    assert solar["model.layers.0.mlp.experts.127.down_proj.weight"] == (4096, 1280)
    assert glm["model.layers.0.mlp.gate_proj.weight"] == (10944, 4096)
    assert glm["model.layers.1.mlp.experts.127.down_proj.weight"] == (4096, 1408)
    assert "model.layers.0.mlp.gate.weight" in solar
    assert "model.layers.0.mlp.gate.weight" not in glm
    assert "model.layers.3.self_attn.q_proj.bias" in glm
    assert "model.layers.3.self_attn.q_proj.bias" not in solar
    assert not any("q_norm" in name for name in solar | glm)


def test_prediction_layer_of_glm_is_the_last_shard() -> None:
    shard = shard_of(GLM)
    assert shapes(GLM)["model.layers.46.eh_proj.weight"] == (4096, 8192)
    for part in ("eh_proj", "enorm", "hnorm", "shared_head.norm", "shared_head.head"):
        assert shard[f"model.layers.46.{part}.weight"] == "model-00047-of-00047.safetensors"
    assert shard["lm_head.weight"] == "model-00046-of-00047.safetensors"
    assert shard["model.embed_tokens.weight"] == "model-00001-of-00047.safetensors"


def test_router_bias_is_single_precision() -> None:
    slots = [s for part in layout_of(SOLAR).copies[0].files.values() for s in part]
    wide = [slot for slot in slots if slot.dtype == "F32"]
    assert len(wide) == 48
    assert all(slot.name.endswith("e_score_correction_bias") for slot in wide)


def test_second_copy_of_mistral_has_other_names_and_the_same_norms() -> None:
    first, second = layout_of("mistralai/Mistral-7B-Instruct-v0.3").copies
    assert list(second.files) == ["consolidated.safetensors"]
    assert first.indexed
    assert not second.indexed
    by_role = [
        {(s.role, s.layer): s.shape for part in copy.files.values() for s in part if s.role}
        for copy in (first, second)
    ]
    assert by_role[0] == by_role[1]


def test_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(BadOption, match="Solar-Open-100B"):
        layout_of("upstage/Solar")


@given(st.lists(st.integers(1, 60), min_size=1, max_size=40), st.integers(20, 200))
def test_shards_keep_the_order_and_the_limit(lengths: list[int], limit: int) -> None:
    slots = [Slot(f"t{i}", (n,), "BF16", None, 0) for i, n in enumerate(lengths)]
    shards = fill_shards(slots, limit)
    assert [slot for shard in shards for slot in shard] == slots
    for shard, following in zip(shards, [*shards[1:], None], strict=True):
        size = sum(slot.nbytes for slot in shard)
        assert size <= limit or len(shard) == 1
        if following is not None:
            assert size + following[0].nbytes > limit
