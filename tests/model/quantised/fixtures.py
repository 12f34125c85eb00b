"""Reads the fixtures of `data/` as a model would be read: specs, slices, bytes."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct

from kinprint.model.quantised import (
    QuantisedWeight,
    described,
    describing,
    float_rows,
    logical_weights,
    needed,
)
from kinprint.reader.assemble import assemble
from kinprint.reader.decode import Array
from kinprint.reader.dtypes import dtype_named
from kinprint.records import ByteRange, Slice, TensorSpec

DATA = Path(__file__).parent / "data"
CASES = sorted(path.stem for path in DATA.glob("*.safetensors"))


class Stored(Struct, frozen=True):
    """Tensors in memory that are read like those of a file, and counted."""

    raw: bytes
    specs: Mapping[str, TensorSpec]
    config: Mapping[str, Any]

    def read(self, slices: Sequence[Slice]) -> list[Array]:
        return [assemble(part, self._take) for part in slices]

    def _take(self, span: ByteRange) -> bytes:
        return self.raw[span.start : span.stop]

    def weight(self, name: str) -> QuantisedWeight:
        weight = logical_weights(self.specs, self.config)[name]
        first = describing(weight)
        return described(weight, self.read(first)) if first else weight

    def rows(self, weight: QuantisedWeight, rows: range | tuple[int, ...]) -> Array:
        return float_rows(weight, rows, self.read(needed(weight, rows)))


class Fixture(Stored, frozen=True):
    """A weight written by a format's own library, and what that library reads in it."""

    logical: str
    step: int
    expected: Array


def load(case: str) -> Fixture:
    raw = (DATA / f"{case}.safetensors").read_bytes()
    length = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8 : 8 + length])
    said = header.pop("__metadata__")
    specs = {}
    for name, entry in header.items():
        start, stop = entry["data_offsets"]
        shape = tuple(entry["shape"])
        specs[name] = TensorSpec(
            name, entry["dtype"], shape, case, 8 + length + start, stop - start
        )
    wanted = Slice(specs.pop("expected"))
    expected = assemble(wanted, lambda span: raw[span.start : span.stop])
    config = json.loads(said["config"])
    return Fixture(raw, specs, config, said["logical"], int(said["step"]), expected)


def store(arrays: Mapping[str, tuple[str, Array]], config: Mapping[str, Any]) -> Stored:
    """Arrays as a file that holds nothing else; each comes with its type on disk."""
    raw, specs = b"", {}
    for name, (dtype, array) in arrays.items():
        data = np.ascontiguousarray(array).tobytes()
        assert len(data) == dtype_named(dtype, "memory").nbytes(array.size)
        specs[name] = TensorSpec(name, dtype, array.shape, "memory", len(raw), len(data))
        raw += data
    return Stored(raw, specs, config)


def declare(**tensors: tuple[str, tuple[int, ...]]) -> dict[str, TensorSpec]:
    """Specs without bytes: type and shape by name, a double underscore for a dot."""
    specs, offset = {}, 0
    for key, (dtype, shape) in tensors.items():
        name = key.replace("__", ".")
        size = dtype_named(dtype, "memory").nbytes(math.prod(shape))
        specs[name] = TensorSpec(name, dtype, shape, "memory", offset, size)
        offset += size
    return specs
