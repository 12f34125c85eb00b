"""Rows asked for by meaning, read from real files: fused, stacked, quantised, permuted, offset."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.numpy import save_file

from kinprint.errors import BadQuantisation
from kinprint.mirror import MirrorServer
from kinprint.model.model import Model, read_all
from kinprint.model.opening import open_model
from kinprint.model.places import Address
from kinprint.reader.checkpoint import open_checkpoint
from kinprint.reader.fetch import Fetcher
from tests.opened import open_models

PACKED = Path(__file__).parent / "quantised" / "data"
Array = NDArray[Any]


@pytest.fixture
def fetcher() -> Iterator[Fetcher]:
    with Fetcher() as one:
        yield one


def stored(folder: Path, tensors: dict[str, Array], config: dict[str, Any]) -> Path:
    folder.mkdir(exist_ok=True)
    save_file(tensors, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def opened(folder: Path, fetcher: Fetcher) -> Model:
    return open_model(open_checkpoint(str(folder), fetcher))


def rows(model: Model, address: Address, which: tuple[int, ...] | None = None) -> Array:
    (place,) = model.locate([address])
    assert place is not None, f"{address} not among {sorted(map(str, model.places))}"
    (found,) = read_all([model.reading(place, which)])
    return found


def numbers(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


LLAMA = {
    "model_type": "llama", "hidden_size": 8, "num_attention_heads": 4, "num_key_value_heads": 2,
    "num_hidden_layers": 1, "intermediate_size": 12, "vocab_size": 10,
}  # fmt: skip


@pytest.mark.parametrize("case", sorted(path.stem for path in PACKED.glob("*.safetensors")))
def test_every_quantised_format_comes_as_rows(case: str, tmp_path: Path, fetcher: Fetcher) -> None:
    raw = (PACKED / f"{case}.safetensors").read_bytes()
    said = json.loads(raw[8 : 8 + int.from_bytes(raw[:8], "little")])["__metadata__"]
    (tmp_path / "model.safetensors").write_bytes(raw)
    family = "gpt_oss" if "oss" in case else "llama"
    (tmp_path / "config.json").write_text(
        json.dumps({"model_type": family, **json.loads(said["config"])})
    )
    model = opened(tmp_path, fetcher)
    expected = np.asarray(next(iter(read_all([model.reading(_expected(model))]))), np.float32)
    step = int(said["step"])
    if family == "gpt_oss":
        both = expected.reshape(3, 8, 64)
        for expert in range(3):
            assert np.array_equal(rows(model, Address("expert_gate", 0, expert)), both[expert, ::2])
            assert np.array_equal(rows(model, Address("expert_up", 0, expert)), both[expert, 1::2])
        assert np.array_equal(rows(model, Address("expert_up", 0, 1), (3, 0)), both[1, [7, 1]])
        return
    q = Address("q", 0)
    wanted = tuple(range(0, expected.shape[0] * step, step))
    assert np.allclose(rows(model, q, wanted), expected, rtol=2**-8, atol=1e-6)
    assert np.array_equal(rows(model, q, wanted[::-2]), rows(model, q, wanted)[::-2])


def _expected(model: Model) -> Any:
    """The fixture keeps what its library reads in a tensor that no table knows."""
    from kinprint.model.places import Place

    weight = model.weights["expected"]
    assert weight.layout is not None
    return Place(Address("expected"), weight, weight.layout.parts[0].role)


def test_a_quantised_fused_tensor_is_cut_after_it_was_unpacked(
    tmp_path: Path, fetcher: Fetcher
) -> None:
    codes = np.random.default_rng(1).integers(-127, 128, (16, 8)).astype(np.int8)
    scale = numbers(16, 1, seed=2)
    config = {
        **LLAMA, "model_type": "phi3",
        "quantization_config": {"quant_method": "compressed-tensors", "format": "int-quantized"},
    }  # fmt: skip
    name = "model.layers.0.self_attn.qkv_proj.weight"
    folder = stored(tmp_path, {name: codes, f"{name}_scale": scale}, config)
    model = opened(folder, fetcher)
    whole = codes.astype(np.float32) * scale
    assert np.array_equal(rows(model, Address("q", 0)), whole[:8])
    assert np.array_equal(rows(model, Address("k", 0), (3, 1)), whole[[11, 9]])
    assert np.array_equal(rows(model, Address("v", 0)), whole[12:])


@pytest.mark.parametrize("sidecar", ["quantize_config.json", "config.json"])
def test_an_older_tools_file_about_quantisation_is_found(
    sidecar: str, tmp_path: Path, fetcher: Fetcher
) -> None:
    raw = (PACKED / "gptq_v2_4bit.safetensors").read_bytes()
    said = json.loads(raw[8 : 8 + int.from_bytes(raw[:8], "little")])["__metadata__"]
    section = json.loads(said["config"])["quantization_config"]
    (tmp_path / "model.safetensors").write_bytes(raw)
    config = {"model_type": "llama"}
    if sidecar == "config.json":
        config |= {"quantization_config": section}
    else:
        (tmp_path / sidecar).write_text(json.dumps(section))
    (tmp_path / "config.json").write_text(json.dumps(config))
    model = opened(tmp_path, fetcher)
    (expected,) = read_all([model.reading(_expected(model))])
    assert np.allclose(rows(model, Address("q", 0)), expected, rtol=2**-8)


def test_what_cannot_be_unpacked_is_refused_and_the_rest_still_works(
    tmp_path: Path, fetcher: Fetcher
) -> None:
    tensors: dict[str, Array] = {
        "model.layers.0.self_attn.q_proj.qweight": np.zeros((1, 8), np.int32),
        "model.layers.0.self_attn.q_proj.scales": np.ones((1, 8), np.float16),
        "model.layers.0.input_layernorm.weight": numbers(8),
    }
    config = {**LLAMA, "quantization_config": {"quant_method": "exl9"}}
    model = opened(stored(tmp_path, tensors, config), fetcher)
    norm = rows(model, Address("norm_in", 0))
    assert np.array_equal(norm, tensors["model.layers.0.input_layernorm.weight"])
    with pytest.raises(BadQuantisation, match="exl9"):
        rows(model, Address("q", 0))


def test_the_same_address_leads_to_the_same_rows_however_they_are_stored(
    tmp_path: Path, fetcher: Fetcher
) -> None:
    q, k, v = numbers(8, 8), numbers(4, 8, seed=1), numbers(4, 8, seed=2)
    norm = numbers(8, seed=3)
    apart = {
        "model.layers.0.self_attn.q_proj.weight": q,
        "model.layers.0.self_attn.k_proj.weight": k,
        "model.layers.0.self_attn.v_proj.weight": v,
        "model.layers.0.input_layernorm.weight": norm,
    }
    # InternLM2: by KV group, two queries, a key, a value; its norm has another name
    groups = [np.concatenate([q[4 * g : 4 * g + 4], k[2 * g : 2 * g + 2], v[2 * g : 2 * g + 2]])
              for g in range(2)]  # fmt: skip
    fused = {
        "model.layers.0.attention.wqkv.weight": np.concatenate(groups),
        "model.layers.0.attention_norm.weight": norm,
    }
    gemma = {
        **{name: apart[name] for name in list(apart)[:3]},
        "model.layers.0.input_layernorm.weight": norm - 1,
    }
    models = [
        opened(stored(tmp_path / "apart", apart, LLAMA), fetcher),
        opened(stored(tmp_path / "fused", fused, {**LLAMA, "model_type": "internlm2"}), fetcher),
        opened(stored(tmp_path / "gemma", gemma, {**LLAMA, "model_type": "gemma", "head_dim": 2}),
               fetcher),
    ]  # fmt: skip
    for role, truth in (("q", q), ("k", k), ("v", v), ("norm_in", norm)):
        for model in models:
            assert np.allclose(rows(model, Address(role, 0)), truth, atol=1e-6), (role, model)


def test_stacked_experts_are_addressed_one_by_one(tmp_path: Path, fetcher: Fetcher) -> None:
    gate, up, down = numbers(3, 6, 8), numbers(3, 6, 8, seed=1), numbers(3, 8, 6, seed=2)
    tensors = {
        "model.layers.0.mlp.experts.gate_up_proj": np.concatenate([gate, up], 1),
        "model.layers.0.mlp.experts.down_proj": down,
        "model.layers.0.mlp.gate.weight": numbers(3, 8, seed=3),
    }
    config = {**LLAMA, "model_type": "qwen3_moe", "num_experts": 3, "moe_intermediate_size": 6}
    model = opened(stored(tmp_path, tensors, config), fetcher)
    for expert in range(3):
        assert np.array_equal(rows(model, Address("expert_gate", 0, expert)), gate[expert])
        assert np.array_equal(
            rows(model, Address("expert_up", 0, expert), (5, 2)), up[expert, [5, 2]]
        )
        assert np.array_equal(rows(model, Address("expert_down", 0, expert)), down[expert])
    assert sum(address.role == "expert_up" for address in model.places) == 3


def test_further_experts_can_be_left_out_and_nothing_else_changes(
    tmp_path: Path, fetcher: Fetcher
) -> None:
    base = "model.layers.0.mlp."
    tensors = {
        f"{base}experts.{expert}.{part}_proj.weight": numbers(*shape, seed=expert)
        for expert in range(12)
        for part, shape in {"gate": (6, 8), "up": (6, 8), "down": (8, 6)}.items()
    }
    tensors |= {f"{base}gate.weight": numbers(12, 8), "model.norm.weight": numbers(8)}
    config = {**LLAMA, "model_type": "qwen3_moe", "num_experts": 12, "moe_intermediate_size": 6}
    folder = stored(tmp_path, tensors, config)
    whole = opened(folder, fetcher)
    few = open_model(open_checkpoint(str(folder), fetcher), few_experts=True)
    left_out = whole.places.keys() - few.places.keys()
    assert {address.expert for address in left_out} == set(range(2, 12))
    assert few.places == {at: one for at, one in whole.places.items() if at not in left_out}
    assert few.layers() == whole.layers()


def test_only_the_rows_asked_for_are_read_over_the_network(mirror: MirrorServer) -> None:
    with Fetcher() as fetcher:
        models = open_models(("zoo/base-a", "zoo/base-b"), fetcher)
        before = fetcher.spent.bytes
        readings = []
        for model in models:
            (place,) = model.locate([Address("embed")])
            assert place is not None and place.shape == (4096, 128)
            readings.append(model.reading(place, tuple(range(0, 4096, 512))))
        found = list(read_all(readings))
        assert [array.shape for array in found] == [(8, 128), (8, 128)]
        assert all(array.dtype == np.float32 for array in found)
        assert fetcher.spent.bytes - before <= 2 * 4096 * 128 * 2
        whole = fetcher.spent.bytes
        list(read_all(readings))
        assert fetcher.spent.bytes == whole
