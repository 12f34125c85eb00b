"""Which tensors a model has and in which shard each one lies, expanded from tables.

The tables are data, so that a layout can be checked line by line against a model's own
index without reading code.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import groupby
from math import prod
from pathlib import Path
from typing import Any

from msgspec import Struct

from kinprint import text
from kinprint.errors import BadOption
from kinprint.tables import read_table

ITEM_BYTES = {"BF16": 2, "F32": 4}
"""Bytes of one element in each number format that the layouts use."""

SHARD_NAME = "model-{shard:05}-of-{shards:05}.safetensors"
"""How shards are called on the Hub."""


class Slot(Struct, frozen=True):
    """One tensor of a layout: its name, shape and shard, and its role if it is a norm.

    A norm is written only if something was published of it; all other tensors are holes.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    layer: int | None
    beside: int
    role: str = ""

    @property
    def nbytes(self) -> int:
        """Bytes that the tensor takes on disk."""
        return prod(self.shape) * ITEM_BYTES[self.dtype]


class Copy(Struct, frozen=True):
    """One full set of weights: file names with their tensors, in shard order.

    A repository may hold the same weights twice under other names; only a copy that is
    `indexed` comes with an index file.
    """

    files: Mapping[str, tuple[Slot, ...]]
    indexed: bool


class Layout(Struct, frozen=True):
    """A whole repository as it lies on disk, before any value is written."""

    key: str
    name: str
    certainty: str
    parent: str | None
    config: Mapping[str, Any]
    dims: Mapping[str, int]
    copies: tuple[Copy, ...]

    def norms(self) -> Iterator[tuple[str, Slot]]:
        """Each norm that has a layer, with the file it lies in."""
        for copy in self.copies:
            for path, slots in copy.files.items():
                for slot in slots:
                    if slot.role:
                        yield path, slot


@cache
def _tables() -> tuple[dict[str, Any], dict[str, Any]]:
    folder = Path(__file__).with_name("layouts")
    models = read_table(folder / "models.toml")["model"]
    return {model["name"]: model for model in models}, read_table(folder / "patterns.toml")


def replica_names() -> tuple[str, ...]:
    """Names of all models that a replica can be made of, as the Hub spells them."""
    return tuple(_tables()[0])


def layouts() -> tuple[Layout, ...]:
    """All layouts, in the order of the table."""
    return tuple(layout_of(name) for name in replica_names())


@cache
def layout_of(name: str) -> Layout:
    """The layout of the model called `name`."""
    models, patterns = _tables()
    if name not in models:
        known = ", ".join(models)
        cause = text.message("cause.replica.unknown", known=known)
        raise BadOption(option="name", value=name, cause=cause)
    row = models[name]
    dims: dict[str, int] = row["dims"]
    return Layout(
        key=row["key"],
        name=name,
        certainty=row["certainty"],
        parent=row.get("parent"),
        config=row["config"],
        dims=dims,
        copies=tuple(
            _split(list(_slots(patterns[spec["pattern"]], dims)), spec) for spec in row["files"]
        ),
    )


def _number(value: int | str, dims: Mapping[str, int]) -> int:
    return dims[value] if isinstance(value, str) else value


def _slots(parts: Sequence[Mapping[str, Any]], dims: Mapping[str, int]) -> Iterator[Slot]:
    """All tensors of an architecture, in the order in which its modules register them."""
    for part in parts:
        beside = _number(part.get("beside", 0), dims)
        if "layers" not in part:
            yield from _rows(part["tensors"], dims, None, beside)
            continue
        first, stop = (_number(bound, dims) for bound in part["layers"])
        for layer in range(first, stop):
            yield from _rows(part["tensors"], dims, layer, layer)


def _rows(
    rows: Sequence[Mapping[str, Any]], dims: Mapping[str, int], layer: int | None, beside: int
) -> Iterator[Slot]:
    for by_expert, group in groupby(rows, key=lambda row: "{expert}" in row["name"]):
        block = list(group)
        for expert in range(dims["experts"] if by_expert else 1):
            for row in block:
                yield Slot(
                    name=row["name"].format(layer=layer, expert=expert),
                    shape=tuple(_number(size, dims) for size in row["shape"]),
                    dtype=row.get("dtype", "BF16"),
                    layer=layer,
                    beside=beside,
                    role=row.get("role", ""),
                )


def _split(slots: list[Slot], spec: Mapping[str, Any]) -> Copy:
    """Distribute tensors over files by the rule that the model's table names."""
    if spec["split"] == "none":
        return Copy({spec["path"]: tuple(slots)}, indexed=False)
    if spec["split"] == "layer":
        shards = [[slot for slot in slots if slot.beside == i] for i in range(spec["shards"])]
    else:
        shards = fill_shards(slots, spec["limit"])
    named = {
        SHARD_NAME.format(shard=number, shards=len(shards)): tuple(shard)
        for number, shard in enumerate(shards, 1)
    }
    return Copy(named, indexed=True)


def fill_shards(slots: Sequence[Slot], limit: int) -> list[list[Slot]]:
    """Put tensors into shards in order, opening a new one when `limit` bytes would be passed.

    This is the rule of transformers' `save_pretrained` (`max_shard_size`, decimal units).
    """
    shards: list[list[Slot]] = [[]]
    size = 0
    for slot in slots:
        if shards[-1] and size + slot.nbytes > limit:
            shards.append([])
            size = 0
        shards[-1].append(slot)
        size += slot.nbytes
    return shards
