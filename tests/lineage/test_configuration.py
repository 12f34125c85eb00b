"""Configurations side by side: one row a field, whatever each library calls it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

import kinprint
from kinprint.demo import FOLDER
from kinprint.lineage.about.configuration import (
    ConfigurationField,
    as_text,
    compare_configurations,
    fields_of,
    shown_fields,
)


def test_names_of_different_libraries_meet_in_one_row() -> None:
    llama: dict[str, Any] = {
        "architectures": ["LlamaForCausalLM"], "hidden_size": 64, "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0, "torch_dtype": "bfloat16", "tie_word_embeddings": False,
    }  # fmt: skip
    newer = {
        "n_embd": 64, "rope_parameters": {"rope_theta": 10000}, "dtype": "float32",
        "layer_norm_epsilon": 1e-6,
    }  # fmt: skip
    found = {one.name: one for one in compare_configurations((llama, None), (newer, None))}
    assert found["hidden_size"] == ConfigurationField("hidden_size", "64", "64")
    assert found["rope_theta"] == ConfigurationField("rope_theta", "10000", "10000")
    assert found["dtype"] == ConfigurationField("dtype", "bfloat16", "float32")
    assert found["norm_eps"] == ConfigurationField("norm_eps", "1e-05", "1e-06")
    assert found["tie_word_embeddings"] == ConfigurationField("tie_word_embeddings", "false", None)
    assert "num_experts" not in found


def test_a_gguf_header_fills_the_same_rows() -> None:
    header = {
        "general.architecture": "llama", "llama.block_count": 4, "llama.rope.freq_base": 5e5,
        "llama.attention.layer_norm_rms_epsilon": 1e-5,
    }  # fmt: skip
    found = fields_of({}, header)
    assert found["num_hidden_layers"] == "4" and found["rope_theta"] == "500000"
    assert found["norm_eps"] == "1e-05"


def test_a_language_model_inside_another_speaks_for_itself() -> None:
    config = {"hidden_act": "gelu", "text_config": {"hidden_act": "silu", "hidden_size": 8}}
    assert fields_of(config, None)["hidden_act"] == "silu"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (1.0, "1"),
        (1e-5, "1e-05"),
        ("x", "x"),
        ({"b": 1, "a": 2}, '{"a": 2, "b": 1}'),
    ],
)
def test_values_as_text(value: object, text: str) -> None:
    assert as_text(value) == text


def test_values_from_strangers_are_cut() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    assert as_text(deep) == "…" and len(as_text("x" * 10_000)) == 120
    assert as_text(float("inf")) == "Infinity"


def test_rows_have_names_of_their_own() -> None:
    names = [row.name for row in shown_fields()]
    assert len(set(names)) == len(names)
    assert all(bool(row.size) != bool(row.keys) for row in shown_fields())


def test_a_configuration_that_is_missing_is_told(tmp_path: Path) -> None:
    zoo = FOLDER / "zoo"
    shutil.copy(zoo / "base-a" / "model.safetensors", tmp_path)
    (note,) = kinprint.compare(zoo / "a-cpt", tmp_path).to_dict()["notes"]
    assert "there is no configuration (config.json)" in note
    (tmp_path / "config.json").write_text('{"broken": ')
    (note,) = kinprint.compare(zoo / "a-cpt", tmp_path).to_dict()["notes"]
    assert "'config.json' cannot be read as a configuration" in note
    assert "Get a fresh copy; without it less is told" in note
