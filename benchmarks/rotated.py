"""A residual rotation planted into a large layout: the child is its parent in another basis.

Norms are folded into the matrices that read the stream, and the stream is turned by a random
orthogonal matrix, which changes no output. Rows may have been trained on besides. Both models
have one and the same tokenizer; only what a comparison reads is written.
"""

from __future__ import annotations

import json
import math
from pathlib import Path

import ml_dtypes
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kinprint.lineage.opening import open_all, read_headers
from kinprint.lineage.reading.sampler import Sampler
from kinprint.lineage.results import Settings
from kinprint.reader.fetch import Fetcher
from kinprint.reader.plan import slice_bytes
from kinprint.records import Slice, TensorSpec
from kinprint.replica.vectors import generator

Matrix = NDArray[np.float32]
TOKENS = 8192
EMBEDDING = "model.embed_tokens.weight"
_GAIN_SPREAD, _MATRIX = 0.2, 0.02


class Rotation(Struct, frozen=True):
    """A planted rotation: cosine of rows after it, and the relations that are right."""

    name: str
    rows: float
    expected: tuple[str, ...]


ROTATIONS = (
    Rotation("rotated, norms folded", 1.0, ("derived",)),
    Rotation("rotated, cosine 0.70", 0.7, ("derived", "dependent")),
    Rotation("rotated, unrelated", 0.0, ("no-evidence",)),
)


def plant_rotation(parent: Path, child: Path, rotation: Rotation, level: str) -> None:
    """Write what a comparison at this level will read of both models."""
    words = {f"word{number}": number for number in range(TOKENS)}
    told = {"model": {"type": "WordLevel", "vocab": words, "unk_token": "word0"}}
    for place in (parent, child):
        (place / "tokenizer.json").write_text(json.dumps(told))
    with Fetcher() as fetcher:
        settings = Settings(level)
        models = read_headers(open_all([str(parent), str(child)], fetcher, settings), settings)
        sampler = Sampler(models, settings.level)
    lines = _lines(sampler)
    width = models[0].geometry.hidden or 0
    turn = _orthogonal(width, f"turn {rotation.name}")
    gains = {
        name: 1 + _GAIN_SPREAD * _numbers(f"parent {name}", 1, width)[0]
        for name, (spec, _) in lines.items()
        if spec.shape == (width,)
    }
    for name, (spec, rows) in lines.items():
        if name in gains:
            _write(parent / spec.file, spec, [0], gains[name][None])
            _write(child / spec.file, spec, [0], np.ones((1, width), np.float32))
            continue
        own = _MATRIX * _numbers(f"parent {name}", len(rows), spec.shape[-1])
        folded = own * gains.get(_norm_before(name), 1.0) if spec.shape[-1] == width else own
        noise = _numbers(f"{rotation.name} {name}", *own.shape) * float(folded.std())
        kept = rotation.rows * folded + math.sqrt(1 - rotation.rows**2) * noise
        other = np.asarray(kept @ turn if spec.shape[-1] == width else kept, np.float32)
        _write(parent / spec.file, spec, rows, own)
        _write(child / spec.file, spec, rows, other)


def _lines(sampler: Sampler) -> dict[str, tuple[TensorSpec, list[int]]]:
    """Every tensor that will be read of the first model, and which of its rows; tokens as well."""
    reader = sampler.readers[0]
    tower = reader.tower
    slices: list[Slice] = [
        one
        for stage in reader.plan.stages
        for part in stage.pieces
        for reading in tower.readings(part)
        for one in reading.slices
    ]
    found: dict[str, tuple[TensorSpec, set[int]]] = {}
    for one in slices:
        spec = one.tensor
        length = spec.nbytes // spec.count * spec.shape[-1]
        known = found.setdefault(spec.name, (spec, set()))[1]
        for span in slice_bytes(one):
            first = (span.start - spec.offset) // length
            known.update(range(first, first + -(-span.size // length)))
    embedding = tower.model.weights[EMBEDDING].spec
    found[EMBEDDING] = embedding, set(range(TOKENS))
    return {name: (spec, sorted(rows)) for name, (spec, rows) in found.items()}


def _norm_before(name: str) -> str:
    """The norm whose output a matrix of a layer reads; empty for the embedding."""
    layer, _, part = name.partition(".self_attn.")
    if part:
        return f"{layer}.input_layernorm.weight"
    layer, _, part = name.partition(".mlp.")
    return f"{layer}.post_attention_layernorm.weight" if part else ""


def _numbers(seed: str, rows: int, width: int) -> Matrix:
    return generator(seed).standard_normal((rows, width), dtype=np.float32)


def _orthogonal(width: int, seed: str) -> Matrix:
    factor, upper = np.linalg.qr(_numbers(seed, width, width))
    return np.asarray(factor * np.sign(np.diag(upper)), np.float32)


def _write(path: Path, spec: TensorSpec, rows: list[int], values: Matrix) -> None:
    raw = values.astype(np.float32 if spec.dtype == "F32" else ml_dtypes.bfloat16)
    with path.open("r+b") as file:
        for row, line in zip(rows, raw, strict=True):
            file.seek(spec.offset + row * line.nbytes)
            file.write(line.tobytes())
