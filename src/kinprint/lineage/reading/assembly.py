"""From arrays that were read to a sample: heads first, halves first, outputs as rows. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from kinprint.lineage.reading.sample import (
    Attention,
    Embedding,
    Floats,
    Indices,
    Sample,
    Units,
)
from kinprint.lineage.reading.tower import Tower, in_halves
from kinprint.model.places import Address

Key = tuple[Address, bool]
_K = TypeVar("_K")
_V = TypeVar("_V")


@dataclass(frozen=True, slots=True)
class Taken:
    """Rows of one logical tensor that were read, and which they are (None for all)."""

    rows: tuple[int, ...] | None
    values: Floats


def assemble(tower: Tower, taken: Mapping[Key, Taken], embedding: Embedding | None) -> Sample:
    """The sample of a tower from what was read of it."""
    norms: dict[tuple[str, int], Floats] = {}
    biases: dict[tuple[str, int], Floats] = {}
    routers: dict[int, Floats] = {}
    for (address, _), one in taken.items():
        layer = -1 if address.layer is None else address.layer
        if address.role.startswith("norm"):
            known = biases if address.role.endswith(".bias") else norms
            known[address.role.removesuffix(".bias"), layer] = one.values.reshape(-1)
        elif address.role == "router":
            routers[layer] = one.values
    maker = _Maker(tower, taken)
    experts = {(layer, e) for layer, all_of in tower.experts.items() for e in all_of}
    places = tower.places
    return Sample(
        name=tower.name,
        key=_digest(taken, embedding),
        width=tower.width,
        depth=tower.depth,
        facts=in_halves(tower.facts),
        norms=norms,
        norm_biases=biases,
        units=_present({layer: maker.units(layer, None) for layer in range(tower.depth)}),
        attention=_present({layer: maker.attention(layer) for layer in range(tower.depth)}),
        experts=_present({key: maker.units(*key) for key in sorted(experts)}),
        routers=routers,
        embedding=embedding,
        dtypes={address.role: places[address].weight.spec.dtype for address, _ in taken},
        notes=tuple(tower.notes),
    )


class _Maker:
    """Puts together the parts of one feed-forward or one layer's heads."""

    def __init__(self, tower: Tower, taken: Mapping[Key, Taken]) -> None:
        self.tower, self.taken = tower, taken

    def units(self, layer: int, expert: int | None) -> Units | None:
        prefix = self.tower.feed_forward(layer, expert)
        up = self._get(f"{prefix}up", layer, expert) if prefix is not None else None
        if up is None or not self._wide(up.values):
            return None
        total = self.tower.length(self.tower.address(f"{prefix}up", layer, expert))
        index: Indices = np.array(up.rows if up.rows is not None else range(total), np.int64)
        down = self._beside(up, f"{prefix}down", layer, expert, inputs=True)
        gate = self._beside(up, f"{prefix}gate", layer, expert)
        bias = self._beside(up, f"{prefix}up.bias", layer, expert)
        return Units(
            index=index,
            total=total,
            up=up.values,
            # Zeros where it was not read: rows of zeros are no evidence in any test.
            down=down if down is not None and self._wide(down) else np.zeros_like(up.values),
            gate=gate if gate is not None and self._wide(gate) else None,
            bias=None if bias is None else bias.reshape(-1),
        )

    def attention(self, layer: int) -> Attention | None:
        shape = self.tower.heads(layer)
        q, k = self._get("q", layer), self._get("k", layer)
        if shape is None or q is None or k is None:
            return None
        if not (self._wide(q.values) and self._wide(k.values)):
            return None
        facts = self.tower.facts
        turned = facts.rotary or 0 if facts.rope in ("half", "interleaved") else 0
        order = _halves(shape.size, turned) if facts.rope == "interleaved" else None
        v, o = self._get("v", layer), self._get("o", layer, inputs=True)
        fits = shape.values > 0
        return Attention(
            q=_heads(q.values, shape.size, order),
            k=_heads(k.values, shape.size, order),
            v=_heads(v.values, shape.values) if fits and v and self._wide(v.values) else None,
            o=_heads(o.values, shape.values) if fits and o and self._wide(o.values) else None,
            q_bias=self._bias("q.bias", layer, shape.size, order),
            k_bias=self._bias("k.bias", layer, shape.size, order),
            v_bias=self._bias("v.bias", layer, shape.values, None) if fits else None,
            rotated=turned,
        )

    def _wide(self, rows: Floats) -> bool:
        """Whether rows lie in the residual stream: some models work in a narrower one inside."""
        return bool(rows.shape[-1] == self.tower.width)

    def _bias(self, role: str, layer: int, size: int, order: Indices | None) -> Floats | None:
        found = self._get(role, layer)
        return None if found is None else _heads(found.values.reshape(-1), size, order)

    def _get(
        self, role: str, layer: int, expert: int | None = None, *, inputs: bool = False
    ) -> Taken | None:
        return self.taken.get((self.tower.address(role, layer, expert), inputs))

    def _beside(
        self, up: Taken, role: str, layer: int, expert: int | None, *, inputs: bool = False
    ) -> Floats | None:
        """Rows of another matrix for the same units."""
        found = self._get(role, layer, expert, inputs=inputs)
        return found.values if found is not None and found.rows == up.rows else None


def _present(made: Mapping[_K, _V | None]) -> dict[_K, _V]:
    return {key: one for key, one in made.items() if one is not None}


def _heads(rows: Floats, size: int, order: Indices | None = None) -> Floats | None:
    """Rows by heads, those of a head in halves if an order says how; None where none fit."""
    if len(rows) % size:
        return None
    found: Floats = rows.reshape(len(rows) // size, size, *rows.shape[1:])
    return found if order is None else found[:, order]


def _halves(size: int, turned: int) -> Indices:
    """Positions of pairs (2j, 2j + 1) in the order of halves, then those that do not turn."""
    pairs = np.arange(turned)
    return np.concatenate([pairs[::2], pairs[1::2], np.arange(turned, size)])


def _digest(taken: Mapping[Key, Taken], embedding: Embedding | None) -> str:
    found = hashlib.sha256()
    for key in sorted(taken, key=str):
        found.update(f"{key[0]} {key[1]} {taken[key].values.shape}".encode())
        found.update(np.ascontiguousarray(taken[key].values).data)
    if embedding is not None:
        found.update(np.ascontiguousarray(embedding.rows).data)
    return found.hexdigest()
