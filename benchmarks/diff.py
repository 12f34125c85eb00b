"""How fast a full diff is, beside a plain loop that reads the same files and subtracts.

    python -m benchmarks.diff [GIGABYTES]

Two checkpoints of bfloat16 numbers are generated, all of which differ. The floor is a loop in
NumPy that reads both files tensor by tensor from the page cache, widens and subtracts. Prints
seconds, the ratio of the speeds, the largest memory of the process, and fails where the diff has
less than 60 % of the loop's speed or takes more than 600 MB.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import ml_dtypes
import numpy as np

_WIDTH, _UNITS, _VOCABULARY = 4096, 11008, 32000
_LEAST, _MOST = 0.6, 600
_BLOCK = 1 << 22


def write_pair(folder: Path, size: int) -> tuple[Path, Path]:
    """Two models of a usual shape, as many layers as `size` bytes allow each."""
    layer: dict[str, tuple[int, ...]] = {
        "self_attn.q_proj": (_WIDTH, _WIDTH),
        "self_attn.k_proj": (_WIDTH // 4, _WIDTH),
        "self_attn.v_proj": (_WIDTH // 4, _WIDTH),
        "self_attn.o_proj": (_WIDTH, _WIDTH),
        "mlp.gate_proj": (_UNITS, _WIDTH),
        "mlp.up_proj": (_UNITS, _WIDTH),
        "mlp.down_proj": (_WIDTH, _UNITS),
        "input_layernorm": (_WIDTH,),
        "post_attention_layernorm": (_WIDTH,),
    }
    each = 2 * sum(int(np.prod(shape)) for shape in layer.values())
    depth = max(1, (size - 4 * _WIDTH * _VOCABULARY) // each)
    shapes: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (_VOCABULARY, _WIDTH)}
    for at in range(depth):
        shapes |= {f"model.layers.{at}.{name}.weight": shape for name, shape in layer.items()}
    shapes |= {"model.norm.weight": (_WIDTH,), "lm_head.weight": (_VOCABULARY, _WIDTH)}
    config = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": _WIDTH,
        "intermediate_size": _UNITS, "num_hidden_layers": depth, "num_attention_heads": 32,
        "num_key_value_heads": 8, "vocab_size": _VOCABULARY, "torch_dtype": "bfloat16",
        "rms_norm_eps": 1e-5, "tie_word_embeddings": False,
    }  # fmt: skip
    draw = np.random.default_rng(0)
    base = (draw.standard_normal(_BLOCK, np.float32) * 0.02).astype(ml_dtypes.bfloat16)
    other = (base.astype(np.float32) * 1.05).astype(ml_dtypes.bfloat16)
    folders = folder / "a", folder / "b"
    for to, block in zip(folders, (base, other), strict=True):
        to.mkdir(parents=True)
        (to / "config.json").write_text(json.dumps(config))
        _write(to / "model.safetensors", shapes, block)
    return folders


def _write(file: Path, shapes: dict[str, tuple[int, ...]], block: np.ndarray) -> None:
    header, end = {}, 0
    for name, shape in shapes.items():
        size = 2 * int(np.prod(shape))
        header[name] = {"dtype": "BF16", "shape": list(shape), "data_offsets": [end, end + size]}
        end += size
    told = json.dumps(header).encode()
    raw = block.tobytes()
    with file.open("wb") as out:
        out.write(len(told).to_bytes(8, "little") + told)
        at = 0
        while at < end:  # an odd step, so that no two tensors begin alike
            step = min(len(raw) - 2 * 1009, end - at)
            start = 2 * ((at // 2 * 7919) % 1009)
            out.write(raw[start : start + step])
            at += step


def plain_loop(a: Path, b: Path) -> float:
    """Seconds that reading, widening and subtracting take, tensor by tensor."""
    started = time.perf_counter()
    with (a / "model.safetensors").open("rb") as one, (b / "model.safetensors").open("rb") as other:
        length = int.from_bytes(one.read(8), "little")
        header = json.loads(one.read(length))
        for entry in header.values():
            start, stop = entry["data_offsets"]
            arrays = []
            for file in (one, other):
                file.seek(8 + length + start)
                raw = np.frombuffer(file.read(stop - start), ml_dtypes.bfloat16)
                arrays.append(raw.astype(np.float32))
            arrays[1] - arrays[0]
    return time.perf_counter() - started


def our_diff(a: Path, b: Path) -> tuple[float, float]:
    """Seconds of the command that people type, and the megabytes that it takes at most."""
    started = time.perf_counter()
    command = [sys.executable, "-m", "kinprint", "diff", str(a), str(b), "--format", "json"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = status
    if status:
        raise SystemExit("the diff failed")
    return time.perf_counter() - started, usage.ru_maxrss / 1024


def main() -> int:
    size = float(sys.argv[1]) if len(sys.argv) > 1 else 8.0
    with tempfile.TemporaryDirectory() as folder:
        # Each in a process of its own: a child's memory counts what its parent had.
        with ProcessPoolExecutor(1, get_context("spawn")) as apart:
            a, b = apart.submit(write_pair, Path(folder), int(size * 1e9)).result()
            apart.submit(plain_loop, a, b).result()  # into the page cache
            floor = min(apart.submit(plain_loop, a, b).result() for _ in range(2))
        seconds, memory = our_diff(a, b)
    ratio = floor / seconds
    print(f"two models of {size:g} GB: plain loop {floor:.1f} s, diff {seconds:.1f} s")
    print(f"speed {ratio:.2f} of the loop's (at least {_LEAST}), memory {memory:.0f} MB ({_MOST})")
    return 0 if ratio >= _LEAST and memory <= _MOST else 1


if __name__ == "__main__":
    raise SystemExit(main())
