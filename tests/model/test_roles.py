"""Roles: what configuration and shapes decide, companions, towers, warnings, work."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors import safe_open

from kinprint.model.roles import RoleMap, TensorRole, assign_roles
from kinprint.records import Role, TensorSpec
from tests.conftest import DEMO, ZOO
from tests.work import at_most

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
        Role.BIAS, layer=3, detail="q", of=f"{BLOCK}self_attn.q_proj.weight"
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
        Role.OTHER, layer=3, detail=detail, of=f"{base}.{weight}"
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
        Role.OTHER, layer=3, detail="lora_a", of="base_model.model.model.layers.3.self_attn.q_proj"
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


@pytest.mark.parametrize(("rows", "role"), [(160, "up"), (320, "gate_up")])
def test_layers_whose_other_matrices_lie_in_a_missing_file_do_not_count_twice(
    rows: int, role: str
) -> None:
    ups = [f"model.layers.{at}.mlp.dense_h_to_4h.weight" for at in range(4)]
    downs = [f"model.layers.{at}.mlp.dense_4h_to_h.weight" for at in (0, 5)]
    found = roles(*(spec(name, rows, 64) for name in ups), *(spec(one, 64, 160) for one in downs))
    assert {found.roles[name].role for name in ups} == {role}


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
    assert beside.roles[vision] == TensorRole(Role.OTHER, layer=2, detail="q", tower="vision")
    alone = roles(spec(vision, 8, 8))
    assert alone.roles[vision] == TensorRole(Role.Q, layer=2, tower="vision")


def test_unknown_names_are_folded_into_one_warning() -> None:
    found = roles(*(spec(f"model.layers.{n}.strange.thing", 8) for n in range(9)))
    (warning,) = found.warnings
    assert str(warning) == "unknown name model.layers.*.strange.thing (9 tensors)"
    assert {role.role for role in found.roles.values()} == {"other"}
    assert found.family == "unknown"


def test_a_shape_against_the_configuration_is_reported_and_not_corrected() -> None:
    name = f"{BLOCK}self_attn.q_proj.weight"
    found = roles(spec(name, 48, 48), hidden_size=64)
    assert found.roles[name].role == "q"
    (warning,) = found.warnings
    assert str(warning) == (
        "shape [48, 48] of model.layers.*.self_attn.q_proj.weight contradicts the "
        "configuration, which asks for an axis of 64"
    )


def test_a_missing_head_is_tied_or_reported() -> None:
    embed = spec("model.embed_tokens.weight", 512, 64)
    assert roles(embed, tie_word_embeddings=True).tied is True
    assert roles(embed, spec("lm_head.weight", 512, 64)).tied is False
    wrapped = {"tie_word_embeddings": False, "hidden_size": 64}
    assert roles(embed, tie_word_embeddings=True, text_config=wrapped).tied is True
    sides = [
        spec(f"model.{side}.layers.0.self_attn.q_proj.weight", 64, 64)
        for side in ("encoder", "decoder")
    ]
    shared = spec("model.encoder.embed_tokens.weight", 512, 64)
    assert roles(shared, *sides, tie_word_embeddings=True).tied is True
    odd = roles(embed, tie_word_embeddings=False, architectures=["LlamaForCausalLM"])
    assert odd.tied is None
    assert len(odd.warnings) == 1


def test_projections_of_an_adaptive_norm_are_no_feed_forward() -> None:
    names = [f"{BLOCK}ada_rms_norm.linear{one}.weight" for one in (1, 2)]
    found = roles(*(spec(name, 64, 64) for name in names), hidden_size=64, intermediate_size=160)
    assert [found.roles[name].role for name in names] == ["other", "other"]
    assert found.warnings == ()


@pytest.mark.parametrize("merger", ["merger.mlp.0", "deepstack_merger_list.1.linear_fc1"])
def test_a_merger_inside_a_vision_tower_is_the_projector(merger: str) -> None:
    names = [f"model.visual.{merger}.weight", "model.visual.blocks.1.attn.proj.weight"]
    text = spec("model.language_model.layers.3.self_attn.q_proj.weight", 8, 8)
    found = roles(*(spec(name, 8, 8) for name in names), text, model_type="qwen3_vl")
    assert [found.roles[name].tower for name in names] == ["projector", "vision"]


def test_a_matrix_that_is_called_a_norm_modulates_one() -> None:
    block = "transformer_blocks.0."
    names = [f"{block}attn_norm.linear.weight", f"{block}attn_norm.linear.bias"]
    found = roles(spec(names[0], 48, 8), spec(names[1], 48), spec(f"{block}attn.to_q.weight", 8, 8))
    assert found.roles[names[0]].detail == "modulation"
    assert found.roles[names[1]] == TensorRole(Role.BIAS, layer=0, detail="modulation", of=names[0])


def test_what_listens_thinks_and_talks_are_towers() -> None:
    places = {
        "thinker.model": None, "thinker.audio_tower": "audio", "thinker.visual": "vision",
        "talker.model": "talker", "talker.code_predictor.model": "talker.code_predictor",
        "code2wav.pre_transformer": "code2wav", "speaker_encoder": "speaker_encoder",
    }  # fmt: skip
    specs = [
        spec(f"{place}.layers.{layer}.{part}.weight", 8 * (9 - at), 8)
        for at, place in enumerate(places)
        for layer in range(2)
        for part in ("self_attn.q_proj", "mlp.up_proj", "mlp.down_proj")
    ]
    heads = ["talker.codec_head.weight", "talker.code_predictor.lm_head.0.weight"]
    found = roles(*specs, *(spec(head, 64, 8) for head in heads), model_type="qwen3_omni_moe")
    assert {one.name: found.roles[one.name].tower for one in specs} == {
        one.name: tower for one in specs for place, tower in places.items()
        if one.name.startswith(f"{place}.layers")
    }  # fmt: skip
    assert [found.roles[head].tower for head in heads] == ["talker", "talker.code_predictor"]
    assert {found.roles[head].detail for head in heads} == {"lm_head"}
    assert found.warnings == ()
    alone = roles(*(one for one in specs if one.name.startswith("talker.")))
    assert {str(one.role) for one in alone.roles.values()} == {"q", "up", "down"}


def test_the_prediction_layer_of_its_own_tower_is_kept_apart() -> None:
    name = "mtp.layers.0.self_attn.q_proj.weight"
    found = roles(spec(name, 8, 8), spec(f"{BLOCK}self_attn.q_proj.weight", 8, 8))
    assert found.roles[name] == TensorRole(Role.Q, layer=0, tower="mtp")


def test_the_work_grows_with_the_number_of_tensors_and_no_faster() -> None:
    parts = ("gate_proj", "up_proj", "down_proj")
    specs = [
        spec(f"model.layers.{layer}.mlp.experts.{expert}.{part}.weight", 48, 64)
        for layer in range(52) for expert in range(128) for part in parts
    ]  # fmt: skip
    assign_roles(specs[:10], {})
    with at_most(40 * len(specs)):
        found = assign_roles(specs, {"model_type": "qwen3_moe", "num_experts": 128})
    assert found.roles["model.layers.51.mlp.experts.127.up_proj.weight"] == TensorRole(
        Role.EXPERT_UP, layer=51, expert=127
    )


_SEGMENTS = (
    "model", "layers", "0", "1", "²", "٣", "9" * 5000, "experts", "expert_3", "self_attn", "q_proj",
    "mlp", "gate", "lora_A", "weight", "bias", "scale", "blk", "attn_q", "A_log", "norm", "encoder",
    "decoder", "visual", "*", "#", "@", "İ", "",
)  # fmt: skip
_SETTINGS = (
    "hidden_size", "model_type", "architectures", "text_config", "vision_config", "num_experts",
    "ffn_config", "num_hidden_layers", "vocab_size", "intermediate_size", "num_attention_heads",
    "tie_word_embeddings", "num_nextn_predict_layers",
)  # fmt: skip
_names = st.lists(st.one_of(st.sampled_from(_SEGMENTS), st.text(max_size=4)), max_size=7)
_shapes = st.lists(st.one_of(st.integers(0, 70), st.just(2**40)), max_size=4).map(tuple)
_odd = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 80), st.floats(), st.text(max_size=5),
    st.lists(st.integers(0, 9), max_size=2), st.dictionaries(st.text(max_size=3), st.integers()),
)  # fmt: skip
_keys = st.one_of(st.sampled_from(_SETTINGS), st.text(max_size=4))
_configs = st.dictionaries(_keys, st.one_of(_odd, st.dictionaries(_keys, _odd, max_size=4)))
_metadata = st.dictionaries(
    st.sampled_from(("general.architecture", "llama.block_count", "tokenizer.ggml.tokens")), _odd
)


@given(st.dictionaries(_names.map(".".join), _shapes, max_size=8), _configs, _metadata)
def test_nothing_is_too_strange(
    shapes: dict[str, tuple[int, ...]], config: dict[str, object], metadata: dict[str, object]
) -> None:
    specs = [spec(name, *shape) for name, shape in shapes.items()]
    assert set(assign_roles(specs, config, metadata).roles) == set(shapes)


def test_a_star_in_a_name_is_no_number() -> None:
    found = roles(spec("model.layers.*.self_attn.q_proj.weight", 8, 8))
    assert [role.layer for role in found.roles.values()] == [None]


def test_an_adapter_without_a_base_has_none() -> None:
    assert roles(spec("lora_A.weight", 4, 8)).roles["lora_A.weight"].of == ""


def test_a_stack_of_another_width_is_not_the_text_model() -> None:
    text, strange = f"{BLOCK}self_attn.q_proj.weight", "ears.blocks.0.attn.qkv.weight"
    beside = "ears.ln_post.weight"
    specs = [spec(text, 64, 64), spec(strange, 96, 32), spec(beside, 32)]
    specs += [spec("ears.blocks.0.norm1.weight", 32), spec("ears.blocks.0.mlp.fc1.weight", 128, 32)]
    part = {"model_type": "ears", "hidden_size": 32}
    several = roles(*specs, text_config={"hidden_size": 64}, ears_config=part)
    assert several.roles[text] == TensorRole(Role.Q, layer=3)
    assert several.roles[strange] == TensorRole(Role.OTHER, layer=0, detail="qkv", tower="side")
    assert several.roles[beside].tower == "side"
    assert several.warnings == ()
    single = roles(*specs, hidden_size=64)
    assert single.roles[strange] == TensorRole(Role.QKV, layer=0)
    assert any("[96, 32]" in str(line) for line in single.warnings)


def test_a_norm_where_no_stack_ends_is_not_the_last_one() -> None:
    last, other = "model.norm.weight", "model.pooling.norm.weight"
    block = spec(f"{BLOCK}self_attn.q_proj.weight", 8, 8)
    found = roles(spec(last, 8), spec(other, 8), block)
    assert [found.roles[name].role for name in (last, other)] == ["norm_final", "norm_other"]


@pytest.mark.parametrize("zoo", [DEMO / "zoo", pytest.param(ZOO, marks=pytest.mark.zoo)])
def test_trained_models_are_fully_assigned(zoo: Path) -> None:
    for folder in sorted(path for path in zoo.iterdir() if path.is_dir()):
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
        ("mlp.up_proj.weight", (150, 64), "a feed-forward width of 160"),
    ],
)
def test_every_kind_of_contradiction(name: str, shape: tuple[int, ...], wanted: str) -> None:
    experts = spec(f"{BLOCK}mlp.experts.0.up_proj.weight", 16, 64)
    found = roles(
        spec(f"{BLOCK}{name}", *shape), experts, hidden_size=64, num_attention_heads=8,
        num_key_value_heads=2, num_experts=4, intermediate_size=160,
    )  # fmt: skip
    assert len(found.warnings) == 1
    assert str(found.warnings[0]).endswith(f"asks for {wanted}")


@pytest.mark.parametrize("width", [160, 320, 80, 256])
def test_what_a_feed_forward_width_may_be(width: int) -> None:
    """The setting, its double or half (fused or counted so), or four times the stream."""
    up = spec(f"{BLOCK}mlp.up_proj.weight", width, 64)
    assert roles(up, hidden_size=64, intermediate_size=160).warnings == ()
    assert roles(up, hidden_size=64).warnings == ()


def test_a_table_of_tokens_may_be_padded_but_not_cut() -> None:
    embed = "model.embed_tokens.weight"
    wanted = "which asks for 512 tokens"
    assert roles(spec(embed, 520, 64), hidden_size=64, vocab_size=512).warnings == ()
    (warning,) = roles(spec(embed, 500, 64), hidden_size=64, vocab_size=512).warnings
    assert str(warning).endswith(wanted)


@pytest.mark.parametrize(("rows", "tokens"), [(50304, 50257), (32768, 32000), (151936, 151665)])
def test_a_table_of_tokens_may_be_padded_to_a_multiple(rows: int, tokens: int) -> None:
    embed = spec("model.embed_tokens.weight", rows, 64)
    assert roles(embed, hidden_size=64, vocab_size=tokens).warnings == ()


@pytest.mark.parametrize("tokens", [7, 1000, 2048])
def test_a_table_of_far_more_rows_than_tokens_is_told(tokens: int) -> None:
    embed = spec("model.embed_tokens.weight", 4096, 64)
    (warning,) = roles(embed, hidden_size=64, vocab_size=tokens).warnings
    assert str(warning).endswith(f"which asks for {tokens} tokens")


def layers(count: int, *more: TensorSpec, **config: object) -> tuple[str, ...]:
    blocks = (spec(f"model.layers.{n}.self_attn.q_proj.weight", 64, 64) for n in range(count))
    found = roles(spec("model.embed_tokens.weight", 8, 64), *blocks, *more, **config)
    return tuple(map(str, found.warnings))


def test_the_number_of_layers_is_counted() -> None:
    assert layers(4, num_hidden_layers=4) == ()
    for count in (3, 5):
        line = f"{count} layers contradict the configuration, which asks for 4"
        assert layers(count, num_hidden_layers=4) == (line,)


def test_layers_that_predict_further_tokens_are_counted_apart() -> None:
    further = spec("model.layers.4.eh_proj.weight", 64, 128)
    assert layers(5, further, num_hidden_layers=4) == ()
    assert layers(5, num_hidden_layers=4, num_nextn_predict_layers=1) == ()
    assert layers(1, num_hidden_layers=12) == ()  # one set of weights for all layers


def test_a_layer_with_two_attentions_counts_as_two() -> None:
    blocks = [
        spec(f"model.layers.{layer}.{part}.{half}.{name}.weight", 64, 64)
        for layer in range(3)
        for half in range(2)
        for part, name in (("self_attn", "o_proj"), ("mlps", "gate_proj"))
    ]
    experts = [spec(f"model.layers.{at}.mlp.experts.1.up_proj.weight", 32, 64) for at in range(3)]
    embed = spec("model.embed_tokens.weight", 8, 64)
    config = {"model_type": "longcat_flash", "hidden_size": 64, "num_layers": 3}
    found = roles(embed, *blocks, *experts, **config)
    assert found.warnings == ()
    places = {(role.role, role.layer, role.expert) for role in found.roles.values()}
    assert places == {
        ("embed", None, None),
        *((role, layer, None) for role in ("o", "gate") for layer in range(6)),
        *(("expert_up", layer, 1) for layer in (0, 2, 4)),
    }


@pytest.mark.parametrize(
    ("first", "second", "up", "down"),
    [
        ("feed_forward1", "feed_forward2", "linear1", "linear2"),
        ("ffn1", "ffn2", "intermediate_dense", "output_dense"),
        ("ff1", "ff2", "up_proj", "down_proj"),
        ("ffw_layer_start", "ffw_layer_end", "ffw_layer_1", "ffw_layer_2"),
        ("feed_forward_macaron", "feed_forward", "w_1", "w_2"),
    ],
)
def test_a_conformer_has_two_feed_forwards_in_a_layer(
    first: str, second: str, up: str, down: str
) -> None:
    specs = [
        spec(f"encoder.layers.{layer}.{part}.weight", 64, 64)
        for layer in range(3)
        for part in (
            "self_attn.linear_q",
            *(f"{ff}.{m}" for ff in (first, second) for m in (up, down)),
        )
    ]
    found = roles(*specs, hidden_size=64, num_hidden_layers=3)
    assert found.warnings == ()
    places = {(role.role, role.layer) for role in found.roles.values()}
    assert places == {
        *(("q", layer) for layer in (0, 2, 4)),
        *((role, layer) for role in ("up", "down") for layer in range(6)),
    }


def test_attention_over_convolutions_has_its_projections() -> None:
    block = "vision_tower.timm_model.blocks.3.1.attn."
    text = spec(f"{BLOCK}self_attn.q_proj.weight", 8, 8)
    names = [f"{block}{part}.proj.weight" for part in ("query", "key", "value", "output")]
    found = roles(*(spec(name, 8, 8, 1, 1) for name in names), text)
    assert [found.roles[name].detail for name in names] == ["q", "k", "v", "o"]


def test_one_feed_forward_makes_no_halves() -> None:
    names = [f"encoder.layers.{layer}.ff2.up_proj.weight" for layer in range(3)]
    found = roles(*(spec(name, 64, 64) for name in names))
    assert [found.roles[name].layer for name in names] == [0, 1, 2]
    plain = [
        f"encoder.layers.{layer}.{name}.weight" for layer in range(3) for name in ("ff1", "ff2")
    ]
    found = roles(*(spec(name, 64, 64) for name in plain))
    assert {found.roles[name].layer for name in plain} == {0, 1, 2}


def test_stacks_of_a_unet_are_towers_of_their_own() -> None:
    names = ("down_blocks.0.attentions.1", "down_blocks.1.attentions.0", "mid_block.attentions.0")
    tensors = [
        spec(f"{name}.transformer_blocks.{layer}.attn1.to_q.weight", 64, 64)
        for name in names
        for layer in range(2)
    ]
    found = roles(*tensors, spec("down_blocks.0.downsamplers.0.conv.weight", 64, 64, 3, 3))
    queries = {(one.tower, one.layer) for one in found.roles.values() if one.role == "q"}
    assert queries == {(name, layer) for name in names for layer in range(2)}
