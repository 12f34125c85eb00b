"""The quantised layouts among the traced architectures: every companion finds its weight."""

from __future__ import annotations

from kinprint.model.quantised import logical_weights, needed
from kinprint.records import TensorSpec
from tests.model.architectures import ARCHITECTURES

_TYPES = {
    "int32": "I32", "uint8": "U8", "float16": "F16", "bfloat16": "BF16", "float32": "F32",
    "float8_e4m3fn": "F8_E4M3", "int64": "I64", "bool": "BOOL",
}  # fmt: skip
_QUANTISED = {
    "hub:llama_gptq": ("model.layers.0.mlp.down_proj.weight", (64, 160)),
    "hub:llama_awq": ("model.layers.0.mlp.down_proj.weight", (64, 160)),
    "hub:gpt_oss_mxfp4": ("model.layers.0.mlp.experts.gate_up_proj", (4, 320, 64)),
    "hub:deepseek_v3_fp8_mtp": ("model.layers.0.mlp.down_proj.weight", (64, 160)),
}


def test_every_companion_belongs_to_a_weight() -> None:
    for family, entry in ARCHITECTURES.items():
        specs = {
            t["name"]: TensorSpec(t["name"], _TYPES[t["dtype"]], tuple(t["shape"]), "f", 0, 0)
            for t in entry["tensors"]
        }
        found = logical_weights(specs, entry["config"])
        assert bool(found) == (family in _QUANTISED), family
        held = {spec.name for weight in found.values() for spec in weight.parts.values()}
        companions = {
            t["name"] for t in entry["tensors"] if "quant_" in (t.get("role_detail") or "")
        }
        assert companions <= held
        if found:
            name, shape = _QUANTISED[family]
            assert found[name].shape == shape
            assert needed(found[name], range(4))
