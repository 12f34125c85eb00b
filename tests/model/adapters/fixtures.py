"""Reads adapters as a file would be read: specs, slices, bytes; and counts what was read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from msgspec import Struct, field

from kinprint.model.adapters import (
    Matched,
    Update,
    match_updates,
    merged_rows,
    needed,
    parse_adapter,
)
from kinprint.reader.assemble import assemble
from kinprint.reader.decode import Array
from kinprint.records import ByteRange, Slice, TensorSpec

DATA = Path(__file__).parent / "data"
CASES = sorted(path.stem for path in DATA.glob("*.npz"))
_TYPES: dict[str, Any] = {
    "F32": np.float32,
    "F16": np.float16,
    "BF16": ml_dtypes.bfloat16,
    "I8": np.int8,
}


class Stored(Struct, frozen=True):
    """An adapter's tensors in memory, read by slices."""

    config: Mapping[str, Any]
    specs: Mapping[str, TensorSpec]
    raw: bytes
    spans: list[ByteRange] = field(default_factory=list)

    def read(self, slices: Sequence[Slice]) -> list[Array]:
        return [assemble(part, self._take) for part in slices]

    def _take(self, span: ByteRange) -> bytes:
        self.spans.append(span)
        return self.raw[span.start : span.stop]

    def matched(self, base: Mapping[str, tuple[int, ...]], turned: Any = None) -> Matched:
        return match_updates(parse_adapter(self.config, self.specs), base, turned)

    def merged(self, update: Update, rows: range | tuple[int, ...], base: Array | None) -> Array:
        arrays = self.read(needed(update, rows))
        return merged_rows(update, rows, base, arrays)


def stored(config: Mapping[str, Any], arrays: Mapping[str, Array], dtype: str = "F32") -> Stored:
    """Arrays laid out one after another, as in a file."""
    specs: dict[str, TensorSpec] = {}
    raw = b""
    for name, array in arrays.items():
        data = np.ascontiguousarray(array, _TYPES[dtype]).tobytes()
        specs[name] = TensorSpec(
            name, dtype, array.shape, "adapter_model.safetensors", len(raw), len(data)
        )
        raw += data
    return Stored(config, specs, raw)


class Case(Struct, frozen=True):
    """An adapter that PEFT wrote, its base, and what PEFT merged."""

    adapter: Stored
    shapes: Mapping[str, tuple[int, ...]]
    base: Mapping[str, Array]
    merged: Mapping[str, Array]


def case(name: str) -> Case:
    with np.load(DATA / f"{name}.npz") as file:
        arrays = {key: file[key] for key in file.files}
    meta = json.loads(arrays.pop("meta").tobytes())
    groups: dict[str, dict[str, Array]] = {"a": {}, "b": {}, "m": {}}
    for key, array in arrays.items():
        groups[key[0]][key[2:]] = array
    dtype = "BF16" if "torch.bfloat16" in meta["dtypes"] else "F32"
    shapes = {key: tuple(shape) for key, shape in meta["shapes"].items()}
    return Case(stored(meta["config"], groups["a"], dtype), shapes, groups["b"], groups["m"])


def logical(array: Array, update: Update, turned: bool) -> Array:
    """A stored weight as outputs by inputs, which is how rows are asked for."""
    straight = np.swapaxes(array, -1, -2) if turned and array.ndim > 1 else array
    return straight.reshape(update.rows, update.width)
