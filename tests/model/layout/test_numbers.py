"""Fused tensors of tiny real models, cut apart, against what the models' own code computed."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from kinprint.model.layout import Layout, cut, layout_of, pattern_of
from kinprint.reader.plan import element_runs, result_shape
from kinprint.records import Slice, TensorSpec

_DATA = Path(__file__).parent / "data"
Array = NDArray[Any]


def spec_of(name: str, array: Array) -> TensorSpec:
    return TensorSpec(name, "F32", array.shape, "f", 0, array.nbytes)


def read(array: Array, part: Slice) -> Array:
    """What the reader gives for a slice, by the planner's own runs."""
    flat = array.reshape(-1)
    runs = [flat[run.start : run.start + run.count] for run in element_runs(part)]
    return np.concatenate(runs).reshape(result_shape(part)) if runs else np.zeros(0)


def take(array: Array, layout: Layout, part: str, name: str = "t", **wanted: Any) -> Array:
    plan = cut(spec_of(name, array), layout, part, **wanted)
    return plan.assemble([read(array, piece) for piece in plan.slices])


class Fixture:
    def __init__(self, case: str) -> None:
        with np.load(_DATA / f"{case}.npz") as file:
            self.arrays: dict[str, Array] = {key: file[key] for key in file.files}
        self.meta: dict[str, Any] = json.loads(self.arrays.pop("meta").tobytes())

    def truth(self, name: str) -> Array:
        return self.arrays[f"t_{name}"]

    def layout(self, key: str, role: str, detail: str = "") -> Layout:
        return layout_of(
            role,
            self.arrays[f"w_{key}"].shape,
            self.meta["config"],
            name=self.meta["names"][key],
            detail=detail,
        )


ATTENTION = {
    "gpt2": "q:16, k:16, v:16",
    "gpt_neox": "4 x (q:4, k:4, v:4)",
    "bloom": "4 x (q:4, k:4, v:4)",
    "falcon_7b": "q:16, k:4, v:4",
    "falcon_40b": "2 x (q:8, k:4, v:4)",
    "falcon_rw": "4 x (q:4, k:4, v:4)",
    "codegen": "4 x (q:4, v:4, k:4)",
    "mpt": "q:16, k:16, v:16",
    "phi3": "q:16, k:8, v:8",
    "persimmon": "4 x (q:4, k:4, v:4)",
    "gpt_bigcode_mqa": "q:16, k:4, v:4",
    "gpt_bigcode_mha": "4 x (q:4, k:4, v:4)",
    "dbrx": "q:16, k:8, v:8",
    "modernbert": "q:16, k:16, v:16",
    "gte": "q:16, k:16, v:16",
    "nomic_bert": "q:16, k:16, v:16",
    "minimax": "4 x (q:4, k:4, v:4)",
    "qwen3_next_qkvz": "2 x (linear_q:3, linear_k:3, linear_v:4, linear_z:4)",
}


@pytest.mark.parametrize("case", ATTENTION)
def test_fused_attention_gives_the_models_own_projections(case: str) -> None:
    fixture = Fixture(case)
    layout = fixture.layout("weight", fixture.meta["role"])
    assert pattern_of(layout) == ATTENTION[case]
    for part in layout.parts:
        rows = take(fixture.arrays["w_weight"], layout, part.role)
        found = fixture.truth("x") @ rows.T
        if "w_bias" in fixture.arrays:
            vector = fixture.layout("bias", "bias", "qkv.bias")
            found = found + take(fixture.arrays["w_bias"], vector, part.role)
        truth = fixture.truth(part.role.removeprefix("linear_"))
        np.testing.assert_allclose(found, truth, atol=2e-4, rtol=1e-4)


def test_an_output_gate_before_queries_keys_and_values() -> None:
    fixture = Fixture("hrm_text")
    layout = fixture.layout("weight", "qkv", "output_gate")
    assert pattern_of(layout) == "output_gate:16, q:16, k:16, v:16"
    for part in "qkv":
        found = fixture.truth("x") @ take(fixture.arrays["w_weight"], layout, part).T
        np.testing.assert_allclose(found, fixture.truth(part), atol=2e-4)


def test_a_tower_has_heads_of_its_own() -> None:
    fixture = Fixture("qwen2_vl_tower")
    layout = fixture.layout("weight", "other", "qkv")
    assert pattern_of(layout) == "q:16, k:16, v:16"
    assert layout.known
    for place, part in enumerate("qkv"):
        found = fixture.truth("x") @ take(fixture.arrays["w_weight"], layout, part).T
        bias = fixture.truth("bias")[16 * place : 16 * place + 16]
        np.testing.assert_allclose(found + bias, fixture.truth(part), atol=2e-4)


STATE_SPACES = {
    "mamba": "ssm_x:12, ssm_z:12",
    "falcon_mamba": "ssm_x:12, ssm_z:12",
    "jamba": "ssm_x:32, ssm_z:32",
    "zamba": "32 x (ssm_x:1, ssm_z:1)",
    "mamba2": "ssm_z:32, ssm_x:32, ssm_B:6, ssm_C:6, ssm_dt:4",
    "granitemoehybrid": "ssm_z:32, ssm_x:32, ssm_B:6, ssm_C:6, ssm_dt:4",
    "nemotron_h": "ssm_z:32, ssm_x:32, ssm_B:6, ssm_C:6, ssm_dt:4",
}


@pytest.mark.parametrize("case", STATE_SPACES)
def test_state_spaces_get_what_their_parts_make(case: str) -> None:
    fixture = Fixture(case)
    layout = fixture.layout("weight", "ssm")
    assert pattern_of(layout) == STATE_SPACES[case]
    assert layout.known
    for part in layout.parts:
        found = fixture.truth("input") @ take(fixture.arrays["w_weight"], layout, part.role).T
        word = part.role.removeprefix("ssm_")
        word = "convolved" if word == "x" and case == "zamba" else word
        truth = fixture.truth(word)
        if word == "z" and case == "zamba":  # noted for the first of its heads
            found = found[:, : truth.shape[1]]
        np.testing.assert_allclose(found, truth, atol=2e-4)


def test_the_inner_projection_of_the_first_mamba() -> None:
    fixture = Fixture("mamba")
    layout = fixture.layout("x_proj", "ssm")
    assert pattern_of(layout) == "ssm_dt:4, ssm_B:3, ssm_C:3"
    for part in "BC":
        found = fixture.truth("inner") @ take(fixture.arrays["w_x_proj"], layout, f"ssm_{part}").T
        np.testing.assert_allclose(found, fixture.truth(part), atol=2e-4)


@pytest.mark.parametrize("case", ["mamba2", "granitemoehybrid", "nemotron_h"])
def test_filters_lie_in_the_order_of_what_they_filter(case: str) -> None:
    layout = Fixture(case).layout("conv", "ssm")
    assert pattern_of(layout) == "ssm_x:32, ssm_B:6, ssm_C:6"


def test_short_convolutions_and_their_gates() -> None:
    fixture = Fixture("lfm2")
    layout = fixture.layout("weight", "ssm")
    assert pattern_of(layout) == "conv_B:16, conv_C:16, conv_x:16"
    first, second, inner = (
        fixture.truth("input") @ take(fixture.arrays["w_weight"], layout, f"conv_{part}").T
        for part in "BCx"
    )
    np.testing.assert_allclose(first * inner, fixture.truth("convolved"), atol=2e-3)
    np.testing.assert_allclose(first * inner * second, fixture.truth("output"), atol=2e-2)


def test_keys_and_values_in_one_tensor() -> None:
    fixture = Fixture("jetmoe_kv")
    layout = fixture.layout("weight", "other", "kv_fused")
    assert pattern_of(layout) == "k:8, v:8"
    for part in "kv":
        found = fixture.truth("x") @ take(fixture.arrays["w_weight"], layout, part).T
        # the model repeats them for each expert of its attention
        np.testing.assert_allclose(found, fixture.truth(part)[:, :8], atol=2e-4)


def test_queries_stored_with_their_output_gate() -> None:
    fixture = Fixture("qwen3_next")
    layout = fixture.layout("weight", "q")
    assert pattern_of(layout) == "4 x (q:4, output_gate:4)"
    x = fixture.truth("x")
    query = x @ take(fixture.arrays["w_weight"], layout, "q").T
    np.testing.assert_allclose(query, fixture.truth("q"), atol=2e-4)
    gate = x @ take(fixture.arrays["w_weight"], layout, "output_gate").T
    value = fixture.truth("value").reshape(-1, 2, 1, 4).repeat(2, axis=2).reshape(-1, 16)
    np.testing.assert_allclose(value / (1 + np.exp(-gate)), fixture.truth("gated"), atol=2e-4)


def test_latent_attention() -> None:
    fixture = Fixture("deepseek_kv_b")
    layout = fixture.layout("weight", "other")
    assert pattern_of(layout) == "4 x (k:4, v:3)"
    x = fixture.truth("x")
    keys = fixture.truth("k").reshape(-1, 4, 6)[:, :, :4].reshape(-1, 16)  # without rotary part
    np.testing.assert_allclose(x @ take(fixture.arrays["w_weight"], layout, "k").T, keys, atol=2e-4)
    np.testing.assert_allclose(
        x @ take(fixture.arrays["w_weight"], layout, "v").T, fixture.truth("v"), atol=2e-4
    )
    fixture = Fixture("deepseek_kv_a")
    layout = fixture.layout("weight", "other")
    assert pattern_of(layout) == "k/v:8, k:2"
    shared = fixture.truth("x") @ take(fixture.arrays["w_weight"], layout, "k").T
    np.testing.assert_allclose(shared, fixture.truth("k").reshape(-1, 4, 6)[:, 1, 4:], atol=2e-4)


def silu(x: Array) -> Array:
    return np.asarray(x / (1 + np.exp(-x)))


GATE_UP = {
    "phi3_mlp": "gate:12, up:12",
    "glm4_mlp": "gate:12, up:12",
    "moshi_mlp": "gate:12, up:12",
    "modernbert_mlp": "gate:12, up:12",
    "moonshine_mlp": "up:12, gate:12",
    "gte_mlp": "up:12, gate:12",
}


@pytest.mark.parametrize("case", GATE_UP)
def test_gate_and_up_in_one_tensor(case: str) -> None:
    fixture = Fixture(case)
    layout = fixture.layout("weight", "gate_up")
    assert pattern_of(layout) == GATE_UP[case]
    assert layout.known
    x = fixture.truth("x")
    gate = x @ take(fixture.arrays["w_weight"], layout, "gate").T
    up = x @ take(fixture.arrays["w_weight"], layout, "up").T
    np.testing.assert_allclose(gate, fixture.truth("gate"), atol=2e-4)
    act = exact_gelu(gate) if case in ("modernbert_mlp", "gte_mlp") else silu(gate)
    np.testing.assert_allclose(act * up, fixture.truth("z"), atol=2e-3, rtol=1e-3)


@pytest.mark.parametrize("case", ["llama4", "granitemoe", "gemma4", "aria"])
def test_stacked_experts(case: str) -> None:
    fixture = Fixture(case)
    first = fixture.layout("first", "expert_gate_up")
    second = fixture.layout("second", "expert_down")
    assert first.experts == second.experts == 4
    x = fixture.truth("x")
    gate = x @ take(fixture.arrays["w_first"], first, "gate", expert=2).T
    np.testing.assert_allclose(gate, fixture.truth("gate"), atol=2e-4)
    up = x @ take(fixture.arrays["w_first"], first, "up", expert=2).T
    act = gelu(gate) if case == "gemma4" else silu(gate)
    down = take(fixture.arrays["w_second"], second, "expert_down", expert=2)
    np.testing.assert_allclose((act * up) @ down.T, fixture.truth("y"), atol=5e-3, rtol=1e-3)


def exact_gelu(x: Array) -> Array:
    return np.asarray([0.5 * z * (1 + math.erf(z / math.sqrt(2))) for z in x.flat]).reshape(x.shape)


def gelu(x: Array) -> Array:
    return np.asarray(0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))))


def test_interleaved_experts_with_biases() -> None:
    fixture = Fixture("gpt_oss")
    first = fixture.layout("first", "expert_gate_up")
    second = fixture.layout("second", "expert_down")
    assert pattern_of(first) == "12 x (gate:1, up:1)"
    x = fixture.truth("x")
    bias = fixture.layout("first_bias", "bias", "expert_gate_up.bias")
    half = {}
    for part in ("gate", "up"):
        half[part] = x @ take(fixture.arrays["w_first"], first, part, expert=2).T
        half[part] = half[part] + take(fixture.arrays["w_first_bias"], bias, part, expert=2)
    gate, up = np.minimum(half["gate"], 7.0), np.clip(half["up"], -7.0, 7.0)
    z = (up + 1) * gate / (1 + np.exp(-1.702 * gate))
    found = z @ take(fixture.arrays["w_second"], second, "expert_down", expert=2).T
    vector = fixture.layout("second_bias", "bias", "expert_down.bias")
    found = found + take(fixture.arrays["w_second_bias"], vector, "expert_down", expert=2)
    np.testing.assert_allclose(found, fixture.truth("y"), atol=5e-3, rtol=1e-3)


def test_experts_one_after_another_in_a_matrix() -> None:
    fixture = Fixture("dbrx_experts")
    x = fixture.truth("x")
    found = {}
    for key, role in (("first", "expert_gate"), ("third", "expert_up"), ("second", "expert_down")):
        layout = fixture.layout(key, role)
        assert layout.flat
        found[role] = take(fixture.arrays[f"w_{key}"], layout, role, expert=2)
    z = silu(x @ found["expert_gate"].T) * (x @ found["expert_up"].T)
    truth = fixture.truth("y").reshape(x.shape)
    np.testing.assert_allclose(z @ found["expert_down"].T, truth, atol=5e-3, rtol=1e-3)


@pytest.mark.parametrize(
    ("family", "name"),
    [("internlm2", ""), ("llama", "decoder.layers.0.self_attention.linear_qkv.weight")],
)
def test_groups_of_internlm2_and_of_megatron(family: str, name: str) -> None:
    """Written from the published code: rows viewed as (groups, q per group + 2, width)."""
    config = {"model_type": family, "hidden_size": 16, "num_attention_heads": 4,
              "num_key_value_heads": 2}  # fmt: skip
    stored = np.random.default_rng(0).normal(size=(32, 16))
    view = stored.reshape(2, 4, 4, 16)
    layout = layout_of("qkv", (32, 16), config, name=name)
    assert layout.known
    np.testing.assert_array_equal(take(stored, layout, "q"), view[:, :2].reshape(16, 16))
    np.testing.assert_array_equal(take(stored, layout, "k"), view[:, 2].reshape(8, 16))
    np.testing.assert_array_equal(take(stored, layout, "v"), view[:, 3].reshape(8, 16))


def test_paired_rows_of_gguf_are_read_in_halves() -> None:
    """The converter views rows as (heads, 2, width / 2) and swaps the last two."""
    rows = np.arange(32.0 * 3).reshape(32, 3)
    stored = rows.reshape(4, 2, 4, 3).swapaxes(1, 2).reshape(32, 3)
    metadata = {"general.architecture": "llama", "llama.embedding_length": 32,
                "llama.attention.head_count": 4, "llama.attention.head_count_kv": 4}  # fmt: skip
    layout = layout_of("q", (32, 3), {}, name="blk.0.attn_q.weight", gguf=metadata)
    assert any(part.paired for part in layout.parts)
    np.testing.assert_array_equal(take(stored, layout, "q"), rows)
    np.testing.assert_array_equal(take(stored, layout, "q", rows=[5, 9, 30]), rows[[5, 9, 30]])
    other = layout_of("q", (32, 3), {}, gguf=metadata | {"general.architecture": "qwen2"})
    assert not any(part.paired for part in other.parts)


@pytest.mark.parametrize("case", ["gpt2", "gpt_neox", "codegen", "falcon_40b", "phi3"])
def test_some_rows_and_columns_are_those_of_the_whole(case: str) -> None:
    fixture = Fixture(case)
    layout = fixture.layout("weight", "qkv")
    stored = fixture.arrays["w_weight"]
    whole = take(stored, layout, "k")
    wanted = [5, 1, 2, 7]
    np.testing.assert_array_equal(take(stored, layout, "k", rows=wanted), whole[wanted])
    found = take(stored, layout, "k", rows=wanted, columns=range(3, 9))
    np.testing.assert_array_equal(found, whole[wanted, 3:9])


def test_only_the_rows_asked_for_are_read() -> None:
    layout = layout_of(
        "qkv", (96, 8), {"model_type": "gpt_neox", "hidden_size": 32, "num_attention_heads": 4}
    )
    tensor = TensorSpec("t", "F32", (96, 8), "f", 0, 96 * 8 * 4)
    (piece,) = cut(tensor, layout, "k", rows=range(8)).slices
    assert piece.rows == range(8, 16)
    assert piece.columns is None
    (piece,) = cut(tensor, layout, "v", rows=[8]).slices
    assert piece.rows == range(40, 41)


def test_block_quantised_experts_keep_their_inner_axes() -> None:
    stored = np.arange(4 * 6 * 2 * 16).reshape(4, 6, 2, 16)
    layout = layout_of(
        "expert_gate_up", stored.shape, {"model_type": "gpt_oss"}, name="a.gate_up_proj_blocks"
    )
    np.testing.assert_array_equal(
        take(stored, layout, "up", expert=3), stored[3, 1::2].reshape(3, 32)
    )
