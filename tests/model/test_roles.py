"""Roles: what configuration and shapes decide, companions, towers, warnings, speed."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors import safe_open

from kinprint.model.roles import RoleMap, TensorRole, assign_roles
from kinprint.records import TensorSpec

_ZOO = Path(__file__).resolve().parents[2].parent / "shared" / "zoo"
BLOCK = "model.layers.3."


def spec(name: str, *shape: int, dtype: str = "BF16") -> TensorSpec:
    return TensorSpec(name, dtype, shape, "f", 0, 0)


def roles(*specs: TensorSpec, **config: object) -> RoleMap:
    return assign_roles(specs, config)


def test_a_bias_names_its_weight_and_that_weights_role() -> None:
    found = roles(
        spec(f"{BLOCK}self_attn.q_proj.weight", 8, 8), spec(f"{BLOCK}self_attn.q_proj.bias", 8)
    )
    assert found.roles[f"{BLOCK}self_attn.q_proj.bias"] == TensorRole(
        "bias", layer=3, detail="q", of=f"{BLOCK}self_attn.q_proj.weight"
    )


@pytest.mark.parametrize(
    ("ending", "detail"),
    [
        ("scales", "scales"), ("qzeros", "zeros"), ("g_idx", "g_idx"),
        ("weight_scale_inv", "scales"), ("weight_scale", "scales"),
        ("weight_zero_point", "zeros"), ("weight_shape", "shape"), ("input_scale", "input_scale"),
        ("weight.absmax", "absmax"), ("weight.nested_absmax", "absmax"),
        ("weight.quant_map", "quant_map"), ("weight.quant_state.bitsandbytes__nf4", "quant_state"),
        ("SCB", "scb"), ("weight_scale_2", "global_scale"), ("biases", "biases"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("weight", ["weight", "qweight", "weight_packed"])
def test_quantisation_companions_know_their_weight(ending: str, detail: str, weight: str) -> None:
    base = f"{BLOCK}mlp.down_proj"
    found = roles(spec(f"{base}.{weight}", 8, 8), spec(f"{base}.{ending}", 8, 1))
    assert found.roles[f"{base}.{weight}"].role == "down"
    assert found.roles[f"{base}.{ending}"] == TensorRole(
        "other", layer=3, detail=detail, of=f"{base}.{weight}"
    )
    assert found.warnings == ()


def test_blocks_are_the_weight_and_scales_its_companion() -> None:
    base = f"{BLOCK}mlp.experts.gate_up_proj"
    found = roles(
        spec(f"{base}_blocks", 4, 320, 2, 16, dtype="U8"), spec(f"{base}_scales", 4, 320, 2),
        spec(f"{base}_bias", 4, 320), model_type="gpt_oss",
    )  # fmt: skip
    assert found.roles[f"{base}_blocks"].role == "expert_gate_up"
    assert found.roles[f"{base}_blocks"].stacked == 4
    assert found.roles[f"{base}_scales"].of == f"{base}_blocks"
    assert found.roles[f"{base}_bias"].of == f"{base}_blocks"


def test_an_adapter_belongs_to_its_base() -> None:
    name = "base_model.model.model.layers.3.self_attn.q_proj.lora_A.default.weight"
    found = roles(spec(name, 4, 8))
    assert found.roles[name] == TensorRole(
        "other", layer=3, detail="lora_a", of="base_model.model.model.layers.3.self_attn.q_proj"
    )


def test_a_wrapped_weight_keeps_its_role() -> None:
    for prefix in ("_orig_mod.", "module.", "base_model.model."):
        for ending in (".weight", ".base_layer.weight"):
            name = f"{prefix}model.layers.3.self_attn.k_proj{ending}"
            assert roles(spec(name, 8, 8)).roles[name].role == "k"


def test_gate_is_a_router_only_where_there_are_experts() -> None:
    gate = f"{BLOCK}mlp.gate.weight"
    sparse = roles(spec(gate, 4, 64), spec(f"{BLOCK}mlp.experts.0.up_proj.weight", 16, 64))
    dense = roles(spec(gate, 160, 64), spec(f"{BLOCK}mlp.up.weight", 160, 64))
    configured = roles(spec(gate, 4, 64), num_experts=4)
    assert sparse.roles[gate].role == configured.roles[gate].role == "router"
    assert dense.roles[gate].role == "gate"


def test_twice_as_wide_is_fused() -> None:
    up, down = f"{BLOCK}mlp.dense_h_to_4h.weight", f"{BLOCK}mlp.dense_4h_to_h.weight"
    assert roles(spec(up, 320, 64), spec(down, 64, 160)).roles[up].role == "gate_up"
    assert roles(spec(up, 160, 64), spec(down, 64, 160)).roles[up].role == "up"


def test_encoder_and_decoder_are_told_apart() -> None:
    names = [f"{s}.block.0.layer.0.SelfAttention.q.weight" for s in ("encoder", "decoder")]
    found = roles(*(spec(name, 8, 8) for name in names), model_type="t5")
    assert [found.roles[name].tower for name in names] == ["encoder", "decoder"]
    assert [found.roles[name].role for name in names] == ["q", "q"]
    alone = roles(spec("bert.encoder.layer.0.attention.self.query.weight", 8, 8))
    assert [role.tower for role in alone.roles.values()] == [None]


def test_a_tower_beside_the_text_model_is_other_but_says_what_it_holds() -> None:
    vision = "vision_tower.encoder.layers.2.self_attn.q_proj.weight"
    beside = roles(spec(vision, 8, 8), spec(f"{BLOCK}self_attn.q_proj.weight", 8, 8))
    assert beside.roles[vision] == TensorRole("other", layer=2, detail="q", tower="vision")
    alone = roles(spec(vision, 8, 8))
    assert alone.roles[vision] == TensorRole("q", layer=2, tower="vision")


def test_unknown_names_are_folded_into_one_warning() -> None:
    found = roles(*(spec(f"model.layers.{n}.strange.thing", 8) for n in range(9)))
    assert found.warnings == ("unknown name model.layers.*.strange.thing (9 tensors)",)
    assert {role.role for role in found.roles.values()} == {"other"}
    assert found.family == "unknown"


def test_a_shape_against_the_configuration_is_reported_and_not_corrected() -> None:
    name = f"{BLOCK}self_attn.q_proj.weight"
    found = roles(spec(name, 48, 48), hidden_size=64)
    assert found.roles[name].role == "q"
    assert found.warnings == (
        "shape [48, 48] of model.layers.*.self_attn.q_proj.weight contradicts the "
        "configuration, which asks for an axis of 64",
    )


def test_a_missing_head_is_tied_or_reported() -> None:
    embed = spec("model.embed_tokens.weight", 512, 64)
    assert roles(embed, tie_word_embeddings=True).tied is True
    assert roles(embed, spec("lm_head.weight", 512, 64)).tied is False
    odd = roles(embed, tie_word_embeddings=False, architectures=["LlamaForCausalLM"])
    assert odd.tied is None
    assert len(odd.warnings) == 1


def test_the_prediction_layer_of_its_own_tower_is_kept_apart() -> None:
    name = "mtp.layers.0.self_attn.q_proj.weight"
    found = roles(spec(name, 8, 8), spec(f"{BLOCK}self_attn.q_proj.weight", 8, 8))
    assert found.roles[name] == TensorRole("q", layer=0, tower="mtp")


def test_twenty_thousand_tensors_take_less_than_half_a_second() -> None:
    parts = ("gate_proj", "up_proj", "down_proj")
    specs = [
        spec(f"model.layers.{layer}.mlp.experts.{expert}.{part}.weight", 48, 64)
        for layer in range(52) for expert in range(128) for part in parts
    ]  # fmt: skip
    assign_roles(specs[:10], {})
    start = time.process_time()
    found = assign_roles(specs, {"model_type": "qwen3_moe", "num_experts": 128})
    assert time.process_time() - start < 0.5
    assert found.roles["model.layers.51.mlp.experts.127.up_proj.weight"] == TensorRole(
        "expert_up", layer=51, expert=127
    )


@given(st.lists(st.text(alphabet="abq_.0w", max_size=12), max_size=6, unique=True))
def test_no_name_is_too_strange(names: list[str]) -> None:
    found = assign_roles([spec(name, 2, 2) for name in names], {})
    assert set(found.roles) == set(names)


@pytest.mark.skipif(not _ZOO.exists(), reason="the zoo does not lie beside the checkout")
def test_the_zoo_is_fully_assigned() -> None:
    for folder in sorted(path for path in _ZOO.iterdir() if path.is_dir()):
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        specs = []
        for file in sorted(folder.glob("*.safetensors")):
            with safe_open(file, framework="numpy") as weights:
                for name in weights.keys():  # noqa: SIM118
                    specs.append(spec(name, *weights.get_slice(name).get_shape()))  # noqa: PERF401
        assert specs, folder.name
        found = assign_roles(specs, config)
        assert found.warnings == (), folder.name
        assert "other" not in {role.role for role in found.roles.values()}, folder.name


@pytest.mark.parametrize(
    ("name", "shape", "wanted"),
    [
        ("self_attn.q_proj.weight", (60, 64), "8 heads"),
        ("self_attn.k_proj.weight", (15, 64), "2 heads"),
        ("mlp.gate.weight", (3, 64), "4 experts"),
        ("input_layernorm.weight", (65,), "64 numbers"),
    ],
)
def test_every_kind_of_contradiction(name: str, shape: tuple[int, ...], wanted: str) -> None:
    experts = spec(f"{BLOCK}mlp.experts.0.up_proj.weight", 16, 64)
    found = roles(
        spec(f"{BLOCK}{name}", *shape), experts, hidden_size=64, num_attention_heads=8,
        num_key_value_heads=2, num_experts=4,
    )  # fmt: skip
    assert len(found.warnings) == 1
    assert found.warnings[0].endswith(f"asks for {wanted}")
