"""Dimensions from configurations as they are found in the field."""

from __future__ import annotations

import pytest

from kinprint.model.geometry import Geometry, geometry_of, unusable_sizes
from kinprint.model.inspection import group_tensors
from kinprint.model.roles import assign_roles
from kinprint.model.tensor_map import map_tensors
from kinprint.records import TensorSpec


def test_a_llama() -> None:
    found = geometry_of(
        {
            "model_type": "llama",
            "architectures": ["LlamaForCausalLM"],
            "num_hidden_layers": 32,
            "hidden_size": 4096,
            "num_attention_heads": 32,
            "num_key_value_heads": 8,
            "intermediate_size": 14336,
            "vocab_size": 128256,
            "tie_word_embeddings": False,
        }
    )
    assert (found.layers, found.hidden, found.heads, found.kv_heads) == (32, 4096, 32, 8)
    assert (found.family, found.architecture, found.tied) == ("llama", "LlamaForCausalLM", False)


def test_a_gpt2_names_things_its_own_way() -> None:
    found = geometry_of({"model_type": "gpt2", "n_layer": 12, "n_embd": 768, "n_head": 12})
    assert (found.layers, found.hidden, found.heads) == (12, 768, 12)


def test_a_multimodal_model_speaks_of_its_text_part() -> None:
    found = geometry_of(
        {
            "model_type": "gemma3",
            "text_config": {"num_hidden_layers": 34, "hidden_size": 2560},
            "vision_config": {"num_hidden_layers": 27, "hidden_size": 1152},
        }
    )
    assert (found.family, found.layers, found.hidden) == ("gemma3", 34, 2560)


def test_the_text_part_may_lie_deep() -> None:
    text = {"embed_dim": 64, "layers": 3, "attention_heads": 4}
    found = geometry_of({"thinker_config": {"text_config": text, "vision_config": {"dim": 9}}})
    assert (found.hidden, found.layers, found.heads) == (64, 3, 4)


def test_a_part_that_contains_itself_ends() -> None:
    config: dict[str, object] = {"hidden_size": 8}
    config["text_config"] = config
    assert geometry_of(config).hidden == 8


def test_a_model_that_only_talks_is_described_as_what_talks() -> None:
    talker = {"hidden_size": 64, "code_predictor_config": {"hidden_size": 32}}
    assert geometry_of({"talker_config": talker}).hidden == 64
    thinker = {"text_config": {"hidden_size": 96}}
    assert geometry_of({"talker_config": talker, "thinker_config": thinker}).hidden == 96


@pytest.mark.parametrize(
    ("config", "hidden", "feed_forward"),
    [
        ({"dim": 64, "hidden_dim": 160}, 64, 160),
        ({"hidden_dim": 64}, 64, None),
        ({"hidden_dim": 64, "ffn_dim": 160}, 64, 160),
    ],
)
def test_one_name_gives_one_size(
    config: dict[str, int], hidden: int, feed_forward: int | None
) -> None:
    found = geometry_of(config)
    assert (found.hidden, found.feed_forward) == (hidden, feed_forward)


def test_gguf_metadata() -> None:
    found = geometry_of(
        {},
        {
            "general.architecture": "qwen3moe",
            "qwen3moe.block_count": 48,
            "qwen3moe.embedding_length": 2048,
            "qwen3moe.expert_count": 128,
            "tokenizer.ggml.tokens": ["a", "b", "c"],
        },
    )
    assert (found.family, found.layers, found.experts) == ("qwen3moe", 48, 128)
    assert found.vocabulary == 3


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"hidden_size": "4096", "num_hidden_layers": None, "architectures": "Llama"},
        {"hidden_size": [1, 2], "model_type": 7, "architectures": [], "text_config": None},
        {"num_attention_heads": True, "hidden_size": -3, "vocab_size": 10**400},
    ],
)
def test_nothing_is_guessed_from_nonsense(config: dict[str, object]) -> None:
    assert geometry_of(config) == Geometry()


def test_what_can_be_no_size_is_named() -> None:
    told: dict[str, object] = {"hidden_size": "4096", "head_dim": 2.5, "vocab_size": -3}
    usual: dict[str, object] = {
        "num_experts": 0, "n_inner": -1, "num_key_value_heads": None, "intermediate_size": [8, 16],
        "num_attention_heads": 32.0,
    }  # fmt: skip
    nested = {"text_config": {**told, **usual}, "num_hidden_layers": float("nan")}
    assert unusable_sizes(nested) == {
        "hidden_size": "'4096'", "head_dim": "2.5", "vocab_size": "-3", "num_hidden_layers": "nan",
    }  # fmt: skip
    warnings = assign_roles(
        [TensorSpec("a", "F32", (2, 2), "a.safetensors", 0, 16)], nested
    ).warnings
    said = [one.say("en") for one in warnings if one.key == "note.no-size"]
    assert any("hidden_size as '4096'" in one for one in said)
    assert len(said) == 4


def test_names_are_folded_by_layer_and_expert() -> None:
    specs = [
        TensorSpec(
            f"model.layers.{layer}.mlp.experts.{expert}.up_proj.weight", "F32", (2, 2), "f", 0, 16
        )
        for layer in range(3)
        for expert in range(4)
    ]
    specs.append(TensorSpec("lm_head.weight", "F32", (2, 2), "f", 0, 16))
    groups = group_tensors(map_tensors(specs, {}, "safetensors"))
    assert [(group.pattern, group.role, group.count) for group in groups] == [
        ("model.layers.*.mlp.experts.*.up_proj.weight", "expert_up", 12),
        ("lm_head.weight", "lm_head", 1),
    ]
