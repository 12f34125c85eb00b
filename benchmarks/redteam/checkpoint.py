"""A model in memory that an edit may change and that can be written as a real folder."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace
from numpy.typing import NDArray
from safetensors.numpy import load_file

Array = NDArray[Any]
Floats = NDArray[np.float32]

_CODES = {
    "bfloat16": "BF16",
    "float16": "F16",
    "float32": "F32",
    "float64": "F64",
    "complex64": "C64",
    "float8_e4m3fn": "F8_E4M3",
    "int8": "I8",
    "int32": "I32",
    "int64": "I64",
    "uint8": "U8",
    "uint64": "U64",
    "bool": "BOOL",
}


class Checkpoint(Struct, frozen=True):
    """A model: tensors by name, its configuration, and further files.

    Attributes
    ----------
    tensors : by name; those of single precision are written in `dtype`, others as they are.
    config : what config.json says; None for a folder without one.
    files : further files of the folder, such as its tokenizer.
    dtype : the number format that weights are written in.
    shards : how many weight files there are.
    save : writes the folder.
    """

    tensors: Mapping[str, Array]
    config: Mapping[str, Any] | None
    files: Mapping[str, bytes] = field(default_factory=dict)
    dtype: Any = ml_dtypes.bfloat16
    shards: int = 1
    save: Callable[[Checkpoint, Path], None] = field(default=lambda one, to: write_folder(one, to))

    @property
    def geometry(self) -> Mapping[str, Any]:
        """Its configuration, which it must have."""
        assert self.config is not None
        return self.config

    @property
    def depth(self) -> int:
        """Number of layers."""
        return int(self.geometry["num_hidden_layers"])

    @property
    def width(self) -> int:
        """Length of the residual stream."""
        return int(self.geometry["hidden_size"])

    def changed(self, tensors: Mapping[str, Array], **config: object) -> Checkpoint:
        """The same model with some tensors replaced or added, and some settings."""
        settings = None if self.config is None else {**self.config, **config}
        return replace(self, tensors={**self.tensors, **tensors}, config=settings)

    def without(self, names: Iterable[str]) -> Checkpoint:
        """The same model with some tensors left out."""
        gone = set(names)
        kept = {name: one for name, one in self.tensors.items() if name not in gone}
        return replace(self, tensors=kept)

    def rounded(self) -> Checkpoint:
        """The same model with the numbers that its files will hold."""
        return replace(
            self,
            tensors={
                name: one.astype(self.dtype).astype(np.float32) if one.dtype == np.float32 else one
                for name, one in self.tensors.items()
            },
        )

    def write(self, folder: Path) -> Path:
        """Write the folder and return it."""
        folder.mkdir(parents=True, exist_ok=True)
        self.save(self, folder)
        return folder


def load(folder: Path) -> Checkpoint:
    """A model of the zoo with its weights in single precision."""
    tensors: dict[str, Array] = {}
    for path in sorted(folder.glob("*.safetensors")):
        tensors |= {name: one.astype(np.float32) for name, one in load_file(path).items()}
    config = json.loads((folder / "config.json").read_text())
    return Checkpoint(tensors, config, {"tokenizer.json": (folder / "tokenizer.json").read_bytes()})


def write_folder(model: Checkpoint, folder: Path) -> None:
    """Write weights as safetensors, in one file or in several with an index."""
    write_files(model, folder)
    names = list(model.tensors)
    if model.shards == 1:
        write_tensors(folder / "model.safetensors", model, names)
        return
    places: dict[str, str] = {}
    for number in range(model.shards):
        file = f"model-{number + 1:05}-of-{model.shards:05}.safetensors"
        held = names[number :: model.shards]
        write_tensors(folder / file, model, held)
        places |= dict.fromkeys(held, file)
    total = sum(one.size * 2 for one in model.tensors.values())
    index = {"metadata": {"total_size": total}, "weight_map": places}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def write_files(model: Checkpoint, folder: Path) -> None:
    """Write everything but the weights."""
    if model.config is not None:
        (folder / "config.json").write_text(json.dumps(model.config))
    for name, content in model.files.items():
        (folder / name).write_bytes(content)


def write_tensors(path: Path, model: Checkpoint, names: Iterable[str]) -> None:
    """One safetensors file with some of a model's tensors, in the order given."""
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    parts: list[bytes] = []
    offset = 0
    for name in names:
        stored = model.tensors[name]
        if stored.dtype == np.float32:
            stored = stored.astype(model.dtype)
        data = np.ascontiguousarray(stored).tobytes()
        header[name] = {
            "dtype": _CODES[stored.dtype.name],
            "shape": list(stored.shape),
            "data_offsets": [offset, offset + len(data)],
        }
        parts.append(data)
        offset += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + b"".join(parts))
