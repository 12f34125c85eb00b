"""Tensor names of adapters taken apart: which module is meant, and which part of an update.

PEFT, MLX, llama.cpp and the trainers of image models name the same two matrices in their own
ways; the table says which words mean what, so that a new spelling is a line there.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from kinprint.tables import read_table

PEFT = "peft"
MLX = "mlx"
GGUF = "gguf"


@functools.cache
def table() -> Mapping[str, Any]:
    """The table of methods and names, read once."""
    return read_table(Path(__file__).with_name("methods.toml"))


class Spelled(Struct, frozen=True):
    """What a tensor's name says.

    `target` is the module that is changed or, where `whole`, the tensor itself. `depth`
    counts the wrappers around it: several parameters of one module are wrapped one inside
    another under the same name. `style` is the library whose orientation the tensor has.
    """

    target: str
    part: str
    style: str = PEFT
    depth: int = 0
    whole: bool = False


def spelled(name: str, names: Iterable[str]) -> Spelled | None:
    """What `name` says among the other `names`; None for tensors that no merge needs."""
    words = table()["names"]
    segments = unwrapped(name).split(".")
    if any(segment in words["ignored"] for segment in segments):
        return None
    depth = segments.count("base_layer")
    segments = [segment for segment in segments if segment not in words["inner"]]
    markers: Mapping[str, str] = table()["markers"]
    place = next((i for i in reversed(range(len(segments))) if segments[i] in markers), None)
    if place is None:
        return _unmarked(segments, names)
    part, before = markers[segments[place]], ".".join(segments[:place])
    last = segments[-1] if place + 1 < len(segments) else ""
    if part == "stored":
        return Spelled(f"{before}.{last}", part, whole=True)
    if part == "b" and last == "bias":
        return Spelled(f"{before}.bias", "added", whole=True)
    if segments[place] not in ("lora_a", "lora_b"):
        return Spelled(before, part, depth=depth)
    if before.endswith(".weight"):
        return Spelled(before, part, GGUF, whole=True)
    return Spelled(before, part, MLX)


def unwrapped(name: str) -> str:
    """A name without what PEFT puts in front of every one."""
    prefixes = table()["names"]["prefixes"]
    while prefix := next((one for one in prefixes if name.startswith(one)), ""):
        name = name.removeprefix(prefix)
    return name


def _unmarked(segments: list[str], names: Iterable[str]) -> Spelled:
    """A magnitude of MLX, a scale of its own, or a tensor in place of the base's."""
    before = ".".join(segments[:-1])
    if segments[-1] == "m" and f"{before}.lora_a" in names:
        return Spelled(before, "magnitude", MLX)
    if segments[-1] == "alpha":
        return Spelled(before, "alpha")
    return Spelled(".".join(segments), "stored", whole=True)


class Names:
    """The base's tensor names, found by what an adapter calls them.

    The same name wins; then names that differ only in what libraries wrap around a model,
    or in underscores for dots.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._exact = frozenset(names)
        self._bare: dict[str, list[str]] = {}
        self._flat: dict[str, list[str]] = {}
        for name in self._exact:
            self._bare.setdefault(_bare(name), []).append(name)
            self._flat.setdefault(name.replace(".", "_"), []).append(name)

    def find(self, name: str) -> tuple[str, ...]:
        """Every tensor of the base that the name may mean."""
        if name in self._exact:
            return (name,)
        found = self._bare.get(_bare(name), [])
        for memory, disk in table()["names"]["renamed"] if not found else ():
            if not found and f".{memory}." in f".{name}.":
                other = f".{name}.".replace(f".{memory}.", f".{disk}.").strip(".")
                found = self._bare.get(_bare(other), [])
        for prefix in table()["names"]["flat"] if not found else ():
            if not found and name.startswith(prefix):
                found = self._flat.get(name.removeprefix(prefix).replace(".", "_"), [])
        return tuple(sorted(found))


def _bare(name: str) -> str:
    wrappers = table()["names"]["wrappers"]
    return ".".join(segment for segment in name.split(".") if segment not in wrappers)
