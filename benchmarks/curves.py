"""`python -m benchmarks.curves`: how the cost of commands grows, each curve in one table.

Widths: `compare` at the standard level, on two models as wide as that; the files are holes but for
random numbers at the places that the command reads, found by reading once. Tensors: `inspect` of a
mixture of experts. Models: `matrix` of small synthetic strangers. The exponent of a row is that of
its growth since the row before: log(cost ratio) / log(size ratio).
"""

from __future__ import annotations

import json
import math
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import ml_dtypes
import numpy as np
from msgspec import Struct

import kinprint
from benchmarks import matrix
from benchmarks.commands import run
from benchmarks.many_tensors import write_model, write_shard

WIDTHS = (1024, 2048, 4096, 8192, 16384)
TENSORS = ((4, 5, 2), (10, 30, 4), (30, 110, 20), (60, 552, 160))  # layers, experts, files
MODELS = (10, 20, 50, 100)
FAR = 1000
"""Models that nobody waited for: what the curve says of them is extrapolated, and labelled so."""
Shapes = dict[str, tuple[int, ...]]
_LAYERS, _WORDS, _HEAD = 16, 32_000, 128


class Point(Struct, frozen=True):
    """What a command cost at one size."""

    size: int
    cpu_seconds: float
    peak_bytes: int


def main(arguments: Sequence[str]) -> int:
    for name in arguments or CURVES:
        title, points = CURVES[name]
        with tempfile.TemporaryDirectory() as folder:
            show(title, list(points(Path(folder))))
    return 0


def show(title: str, points: Sequence[Point]) -> None:
    """Print a curve with the exponents of its steps."""
    print(f"{title:<10}{'cpu s':>10}{'exponent':>10}{'MB':>10}{'exponent':>10}", flush=True)
    for at, point in enumerate(points):
        steps = ["", ""]
        if at:
            last = points[at - 1]
            far = math.log(point.size / last.size)
            ratios = point.cpu_seconds / last.cpu_seconds, point.peak_bytes / last.peak_bytes
            steps = [f"{math.log(ratio) / far:.2f}" for ratio in ratios]
        cells = f"{point.cpu_seconds:.2f}", steps[0], f"{point.peak_bytes / 1e6:.0f}", steps[1]
        print(f"{point.size:<10,}" + "".join(f"{cell:>10}" for cell in cells))
    if title == "models":
        last, before = points[-1], points[-2]
        power = math.log(last.cpu_seconds / before.cpu_seconds) / math.log(last.size / before.size)
        seconds = last.cpu_seconds * (FAR / last.size) ** power
        print(f"{FAR:<10,}{seconds:10.0f}  extrapolated by the last exponent, not measured")
    print()


def by_width(folder: Path) -> Iterator[Point]:
    """The standard level on two strangers of each width."""
    for width in WIDTHS:
        cost = run("", str(folder), "compare", *map(str, wide_pair(folder, width)))
        yield Point(width, cost.cpu_seconds, cost.peak_bytes)


def by_tensors(folder: Path) -> Iterator[Point]:
    """`inspect` of models with many tensors."""
    for layers, experts, shards in TENSORS:
        model = folder / str(experts)
        model.mkdir()
        count = write_model(model, layers, experts, shards)
        cost = run("", str(folder), "inspect", str(model))
        yield Point(count, cost.cpu_seconds, cost.peak_bytes)


def by_models(folder: Path) -> Iterator[Point]:
    """`matrix` of strangers."""
    for count in MODELS:
        cost = matrix.measure(folder, count, matrix.JOBS).cost
        yield Point(count, cost.cpu_seconds, cost.peak_bytes)


def wide_pair(folder: Path, width: int) -> list[Path]:
    """Two strangers of one width, with random numbers wherever `compare` reads."""
    pair = [folder / f"{width}-{name}" for name in "ab"]
    for seed, one in enumerate(pair):
        write_wide(one, width, seed)
    for _ in range(2):  # what is read last may depend on what was there
        read = kinprint.compare(*map(str, pair)).to_dict()["samples"]
        for seed, (one, towers) in enumerate(zip(pair, read, strict=True), len(pair)):
            for tensor in (tensor for tower in towers for tensor in tower["tensors"]):
                fill(one / tensor["file"], _ranges(tensor["ranges"]), seed)
    return pair


def write_wide(folder: Path, width: int, seed: int) -> None:
    """A dense model of one width, as headers over holes, a layer in each file.

    Each file has a few numbers of its own, so that no two are equal.
    """
    folder.mkdir()
    heads = width // _HEAD
    config = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": width,
        "num_hidden_layers": _LAYERS, "num_attention_heads": heads, "head_dim": _HEAD,
        "num_key_value_heads": heads // 4, "intermediate_size": 3 * width, "vocab_size": _WORDS,
        "tie_word_embeddings": False,
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config))
    tables: Shapes = {
        "model.embed_tokens.weight": (_WORDS, width),
        "lm_head.weight": (_WORDS, width),
    }
    files: list[Shapes] = [{**tables, "model.norm.weight": (width,)}]
    for layer in range(_LAYERS):
        block = f"model.layers.{layer}"
        shapes: Shapes = {f"self_attn.{part}_proj": (width, width) for part in "qo"}
        shapes |= {f"self_attn.{part}_proj": (width // 4, width) for part in "kv"}
        shapes |= {f"mlp.{part}_proj": (3 * width, width) for part in ("gate", "up")}
        shapes |= {"mlp.down_proj": (width, 3 * width)}
        norms: Shapes = {f"{part}_layernorm": (width,) for part in ("input", "post_attention")}
        files.append({f"{block}.{name}.weight": one for name, one in {**shapes, **norms}.items()})
    places: dict[str, str] = {}
    for number, shapes in enumerate(files, 1):
        file = f"model-{number:05}-of-{len(files):05}.safetensors"
        write_shard(folder / file, shapes)
        end = (folder / file).stat().st_size
        fill(folder / file, [(end - 2 * width, end)], seed)
        places |= dict.fromkeys(shapes, file)
    index = {"metadata": {}, "weight_map": places}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def fill(file: Path, ranges: Sequence[tuple[int, int]], seed: int) -> None:
    """Put random numbers in bfloat16 into ranges of a file, others in every file."""
    with file.open("r+b") as stream:
        for start, stop in ranges:
            rng = np.random.default_rng((seed, start, *file.name.encode()))
            numbers = rng.normal(0.0, 0.02, (stop - start) // 2).astype(ml_dtypes.bfloat16)
            stream.seek(start)
            stream.write(numbers.tobytes())


def _ranges(told: str) -> list[tuple[int, int]]:
    """Byte ranges as a document writes them, "start-stop start-stop"."""
    return [(int(start), int(stop)) for start, stop in (one.split("-") for one in told.split())]


CURVES: dict[str, tuple[str, Callable[[Path], Iterator[Point]]]] = {
    "width": ("width", by_width),
    "tensors": ("tensors", by_tensors),
    "models": ("models", by_models),
}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
