"""Whole samples of small local models: every norm, unit, head and token, for trying the tests."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from kinprint.lineage.reading.sample import Attention, Embedding, Floats, Sample, Units
from kinprint.model.model import Model
from kinprint.model.places import Address
from kinprint.model.symmetries import facts_of
from kinprint.reader.fetch import Fetcher
from tests.opened import open_models


def samples_of(folder: Path, names: Sequence[str]) -> dict[str, Sample]:
    """Whole samples of the models in a folder, by name."""
    with Fetcher() as fetcher:
        models = open_models([str(folder / name) for name in names], fetcher)
        return {name: sample_of(name, one) for name, one in zip(names, models, strict=True)}


def sample_of(name: str, model: Model) -> Sample:
    """Everything that a sample can hold of one model."""
    depth = len(model.layers())
    width = model.geometry.hidden or 0
    roles = {address.role for address in model.places}
    biased = any(role.startswith("norm") and role.endswith(".bias") for role in roles)
    facts = facts_of(model.config, roles, model.metadata, biased)
    norms: dict[tuple[str, int], Floats] = {}
    norm_biases: dict[tuple[str, int], Floats] = {}
    for address in sorted(model.places, key=str):
        if address.role.startswith("norm"):
            layer = -1 if address.layer is None else address.layer
            known = norm_biases if address.role.endswith(".bias") else norms
            role = address.role.removesuffix(".bias")
            known[role, layer] = _read(model, address).reshape(-1)
    units = {layer: _units(model, layer, None) for layer in range(depth)}
    experts = {
        (one.layer, one.expert): _units(model, one.layer, one.expert)
        for one in model.places
        if one.role == "expert_up" and one.layer is not None and one.expert is not None
    }
    vocabulary = model.vocabulary()
    table = _read(model, Address("embed"))
    assert vocabulary is not None
    known_tokens = [
        (at, token)
        for at, token in enumerate(vocabulary.tokens[: len(table)])
        if token is not None and at not in vocabulary.special
    ]
    ids = np.array([at for at, _ in known_tokens], np.int64)
    embedding = Embedding(tuple(token for _, token in known_tokens), ids, table[ids])
    routers = {
        one.layer: _read(model, one)
        for one in model.places
        if one.role == "router" and one.layer is not None
    }
    return Sample(
        name=name,
        key=hashlib.sha256(table.tobytes() + name.encode()).hexdigest(),
        width=width,
        depth=depth,
        facts=facts,
        norms=norms,
        norm_biases=norm_biases,
        units={layer: one for layer, one in units.items() if one is not None},
        attention={layer: _attention(model, layer) for layer in range(depth)},
        experts={key: one for key, one in experts.items() if one is not None},
        routers=routers,
        embedding=embedding,
    )


def _read(model: Model, address: Address) -> Floats:
    return model.reading(model.places[address]).take()


def _units(model: Model, layer: int, expert: int | None) -> Units | None:
    prefix = "" if expert is None else "expert_"
    up = Address(f"{prefix}up", layer, expert)
    if up not in model.places:
        return None
    gate = Address(f"{prefix}gate", layer, expert)
    rows = _read(model, up)
    return Units(
        index=np.arange(len(rows)),
        total=len(rows),
        up=rows,
        down=np.ascontiguousarray(_read(model, Address(f"{prefix}down", layer, expert)).T),
        gate=_read(model, gate) if gate in model.places else None,
    )


def _attention(model: Model, layer: int) -> Attention:
    q, k, v = (_read(model, Address(role, layer)) for role in "qkv")
    o = np.ascontiguousarray(_read(model, Address("o", layer)).T)
    heads = model.geometry.heads or 1
    groups = model.geometry.kv_heads or heads
    facts = facts_of(model.config, {one.role for one in model.places}, model.metadata)
    return Attention(
        q=q.reshape(heads, -1, q.shape[1]),
        k=k.reshape(groups, -1, k.shape[1]),
        v=v.reshape(groups, -1, v.shape[1]),
        o=o.reshape(heads, -1, o.shape[1]),
        rotated=facts.rotary or 0,
    )
