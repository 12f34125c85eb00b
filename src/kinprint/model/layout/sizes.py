"""Sizes that layouts are made of, looked up in a configuration by the table's names.

Configurations nest their text model, list values by layer and spell the same size in many
ways; a size nobody states is None, and nothing is guessed beyond hidden // heads.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kinprint.model.architectures import with_added
from kinprint.tables import read_table
from kinprint.workers import Once

_NESTED = (
    "text_config", "llm_config", "language_config", "thinker_config", "talker_config", "decoder",
    "llm",
)  # fmt: skip


@Once
def table() -> Mapping[str, Any]:
    """The table of layouts, read once."""
    return with_added(read_table(Path(__file__).with_name("layouts.toml")), "layout")


class Sizes:
    """Sizes of one layer of one model, from its configuration or its GGUF metadata.

    Values are looked up when asked for: most tensors need none.
    """

    def __init__(
        self,
        config: Mapping[str, Any],
        gguf: Mapping[str, object] | None = None,
        layer: int | None = None,
    ) -> None:
        self._levels = tuple(_levels(config))
        self._gguf = gguf or {}
        self._layer = layer or 0
        self._set: dict[str, int] = {}

    @functools.cached_property
    def families(self) -> tuple[str, ...]:
        """Names of the family, the innermost first, each also without its `_text`."""
        names = [level.get("model_type") for level in self._levels]
        names.append(self._gguf.get("general.architecture"))
        found = [name for name in names if isinstance(name, str) and name]
        short = [name.removesuffix("_text") for name in found]
        return tuple(dict.fromkeys([*found, *short]))

    @property
    def rotated(self) -> int | None:
        """Positions of a head that a GGUF file says are rotated."""
        return self.get("rope_dim") if self._gguf else None

    def value(self, key: str) -> Any:
        """What the configuration says under a dotted key, or None.

        The innermost level that has the table of a dotted key decides, though it be silent.
        """
        first, *rest = key.split(".")
        for level in self._levels:
            found: Any = level.get(first)
            if found is None:
                continue
            for word in rest:
                found = found.get(word) if isinstance(found, Mapping) else None
            return self._of_layer(found)
        return None

    def replaced(self, name: str, value: int) -> Sizes:
        """The same sizes with one of them fixed."""
        copy = Sizes({})
        copy._levels, copy._gguf, copy._layer = self._levels, self._gguf, self._layer
        copy._set = {**self._set, name: value}
        return copy

    def get(self, name: str) -> int | None:
        """A size by the table's name; derived where that is no guess."""
        if name in self._set:
            return self._set[name]
        found = self._stated(name)
        if found is None and name == "kv_heads":
            return self.get("heads")
        if found is None and name == "head_dim":
            hidden, heads = self.get("hidden"), self.get("heads")
            return hidden // heads if hidden and heads and hidden % heads == 0 else None
        if found is None and name == "ssm_inner":
            heads, expand = self.product(("ssm_heads", "ssm_head_dim")), self.get("ssm_expand")
            return heads or self.product(("ssm_expand", "hidden")) if heads or expand else None
        if found is None and name == "nope_dim" and self._gguf:
            whole, rope = self.get("head_dim"), self.get("rope_dim")
            return whole - rope if whole and rope else None
        return found

    def product(self, names: Sequence[str]) -> int | None:
        """Product of several sizes, None if one of them is unknown."""
        total = 1
        for name in names:
            size = self.get(name)
            if size is None:
                return None
            total *= size
        return total

    def _stated(self, name: str) -> int | None:
        # a width of heads outside the level that counts them belongs to another tower
        source = self._down_to_heads() if name == "head_dim" else self
        for key in table()["keys"].get(name, ()):
            size = _whole(source.value(key))
            if size is not None:
                return size
        word = table()["gguf_keys"].get(name)
        architecture = self._gguf.get("general.architecture")
        return _whole(self._of_layer(self._gguf.get(f"{architecture}.{word}"))) if word else None

    def _down_to_heads(self) -> Sizes:
        """The same without the levels around the innermost one that counts heads."""
        for depth, level in enumerate(self._levels, start=1):
            if any(level.get(key) is not None for key in table()["keys"]["heads"]):
                copy = Sizes({}, self._gguf, self._layer)
                copy._levels = self._levels[:depth]
                return copy
        return self

    def _of_layer(self, value: Any) -> Any:
        if isinstance(value, list) and value:
            return value[min(self._layer, len(value) - 1)]
        return value


def differ_by_layer(config: Mapping[str, Any], gguf: Mapping[str, object] | None = None) -> bool:
    """Whether a size may be another one in another layer: it is a list of several values."""
    return gguf is not None or _has_lists(config, 8)


def _has_lists(config: Mapping[str, Any], depth: int) -> bool:
    for key, value in config.items():
        if isinstance(value, list) and len(value) > 1 and key in _asked_keys():
            return True
        if isinstance(value, Mapping) and (depth == 0 or _has_lists(value, depth - 1)):
            return True
    return False


@functools.cache
def _asked_keys() -> frozenset[str]:
    """Words of all keys that layouts ask a configuration for."""
    sizes = (key for keys in table()["keys"].values() for key in keys)
    conditions = (key for rule in table()["split"] for key in rule.get("when", {}))
    return frozenset(word for key in (*sizes, *conditions) for word in key.split("."))


def tower_of(config: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """The configuration of the tower that a tensor's name speaks of, with the model's family.

    A tower has heads of its own; where it is not described, only the family is left. Towers of a
    model that only listens and thinks are described with what it thinks with.
    """
    outer = {"model_type": config.get("model_type")}
    levels = _levels(config)[::-1]
    for key, words in table()["towers"].items():
        if not re.search(words, name):
            continue
        for level in levels:
            inner: Any = level
            for word in key.split("."):
                inner = inner.get(word) if isinstance(inner, Mapping) else None
            if isinstance(inner, Mapping):
                return {**outer, "text_config": inner}
    return outer


def _levels(config: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The configuration and its nested text models, the innermost first."""
    levels = [config]
    while True:
        inner = next((levels[0][n] for n in _NESTED if isinstance(levels[0].get(n), Mapping)), None)
        if inner is None or len(levels) > 4:
            return levels
        levels.insert(0, inner)


def _whole(value: object) -> int | None:
    """A size, or None for what cannot be one."""
    fits = isinstance(value, int) and not isinstance(value, bool) and 0 < value < 2**40
    return value if fits and isinstance(value, int) else None
