"""Make the fixtures of MLX adapters: layers of mlx-lm with random numbers, and what they fuse to.

Run with a Python that has mlx and mlx-lm: `python make_mlx_fixtures.py data`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import mlx.core as mx  # type: ignore[import-not-found]
import mlx.nn as nn  # type: ignore[import-not-found]
import numpy as np
from mlx_lm.models.switch_layers import SwitchLinear  # type: ignore[import-not-found]
from mlx_lm.tuner.dora import DoRAEmbedding, DoRALinear  # type: ignore[import-not-found]
from mlx_lm.tuner.lora import (  # type: ignore[import-not-found]
    LoRAEmbedding,
    LoRALinear,
    LoRASwitchLinear,
)

SCALE = 1.75


def made(case: str, out: Path, kind: str, layers: dict[str, tuple[Any, Any]]) -> None:
    """Write one case: the base's weights (b_), the adapter (a_) and the fused weights (m_)."""
    mx.random.seed(5)
    arrays: dict[str, Any] = {}
    shapes: dict[str, list[int]] = {}
    for name, (base, wrapper) in layers.items():
        layer = wrapper.from_base(base, r=3, scale=SCALE)
        parts = ["lora_a", "lora_b", *(["m"] if kind == "dora" else [])]
        for part in parts:
            layer[part] = mx.abs(mx.random.normal(layer[part].shape)) * 0.3 + 0.1
            arrays[f"a_{name}.{part}"] = np.asarray(layer[part])
        arrays[f"b_{name}.weight"] = np.asarray(base.weight)
        arrays[f"m_{name}.weight"] = np.asarray(layer.fuse().weight)
        shapes[f"{name}.weight"] = list(base.weight.shape)
    parameters = {"rank": 3, "scale": SCALE, "dropout": 0.0}
    config = {"model": "some/model", "fine_tune_type": kind, "lora_parameters": parameters}
    meta = {"config": config, "shapes": shapes, "dtypes": ["float32"], "mlx": mx.__version__}
    text = np.frombuffer(json.dumps(meta).encode(), np.uint8)
    np.savez_compressed(out / f"{case}.npz", meta=text, **arrays)
    print(case, {name: array.shape for name, array in arrays.items()})


def main(out: Path) -> None:
    query = "model.layers.0.self_attn.q_proj"
    made("mlx_lora", out, "lora", {
        query: (nn.Linear(8, 12, bias=False), LoRALinear),
        "model.layers.0.self_attn.o_proj": (nn.Linear(8, 8, bias=False), LoRALinear),
        "model.layers.0.mlp.switch_mlp.up_proj": (
            SwitchLinear(8, 6, 4, bias=False), LoRASwitchLinear),
        "model.embed_tokens": (nn.Embedding(24, 8), LoRAEmbedding),
    })  # fmt: skip
    made("mlx_dora", out, "dora", {
        query: (nn.Linear(8, 12, bias=False), DoRALinear),
        "model.embed_tokens": (nn.Embedding(24, 8), DoRAEmbedding),
    })  # fmt: skip


if __name__ == "__main__":
    main(Path(sys.argv[1]))
