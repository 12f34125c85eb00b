"""The tensors of a part as they were read: rows of each, and which rows they are.

Tests see heads, units and norms. What they do not see, other tensors and biases, was read in a few
rows: of all of them it can be told whether they are equal.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from msgspec.structs import replace

from kinprint.lineage.reading.parts import component_of
from kinprint.lineage.reading.sample import Floats, Indices, Sample, Units
from kinprint.model.places import Address
from kinprint.records import Component, Part, Role

Rows = tuple[Indices, Floats]
"""Rows of a tensor, and their numbers in it."""
TensorKey = tuple[str, bool]
"""What a tensor is called in its part, and whether its rows are counted along its inputs."""

_NARROW = 16  # shorter rows, as those of a convolution over a few steps, are one row


def tensors_of(sample: Sample, part: Part) -> dict[TensorKey, Rows]:
    """What was read of a part, tensor by tensor."""
    found = dict(_tested(sample, part))
    for name in tensor_sizes(sample, part):
        for inputs in (False, True):
            rows = sample.few.get((Address(name, part.layer, part.expert), inputs))
            if rows is not None and (name, inputs) not in found:
                found[name, inputs] = _long_rows(rows)
    return found


def tensor_sizes(sample: Sample, part: Part) -> Mapping[str, int]:
    """How many numbers each tensor of a part has, read or not."""
    extent = sample.parts.get(replace(part, tower=sample.tower))
    if extent is not None and extent.tensors:
        return extent.tensors
    return {name: rows.size for (name, _), (_, rows) in _tested(sample, part)}


def is_no_bias(sample: Sample, part: Part, name: str) -> bool:
    """Whether a bias was read whole and is zero, which is as good as none."""
    rows = tensors_of(sample, part).get((name, False))
    if rows is None or not name.endswith("bias"):
        return False
    return rows[1].size == tensor_sizes(sample, part).get(name) and not rows[1].any()


def compared(
    a: Sample, b: Sample, part: Part, partner: Part, *, stored: bool = False
) -> Iterator[tuple[str, tuple[Rows, Rows]]]:
    """Tensors of two parts that have the same name, along an axis along which both were read.

    Gains come as they are `stored` if so asked, where both models store them less one: that is what
    a cast rounds.
    """
    ours, theirs = tensors_of(a, part), tensors_of(b, partner)
    if stored:
        first, second = dict(_stored_gains(a, part)), dict(_stored_gains(b, partner))
        ours |= {key: gains for key, gains in first.items() if key in second}
        theirs |= {key: gains for key, gains in second.items() if key in first}
    both = ours, theirs
    whole = tuple(map(_turned, both, (tensor_sizes(a, part), tensor_sizes(b, partner))))
    for name in sorted({name for name, _ in ours} & {name for name, _ in theirs}):
        for first, second in (both, (ours, whole[1]), (whole[0], theirs)):
            keys = [key for key in ((name, True), (name, False)) if key in first and key in second]
            if keys:
                yield name, (first[keys[0]], second[keys[0]])
                break


def at_equal_numbers(ours: Rows, theirs: Rows) -> tuple[Floats, Floats]:
    """Rows that two tensors have under one number, in the order of these."""
    numbers = ours[0]
    if np.array_equal(numbers, theirs[0]) and (numbers[1:] > numbers[:-1]).all():
        return ours[1], theirs[1]
    _, left, right = np.intersect1d(numbers, theirs[0], return_indices=True)
    return ours[1][left], theirs[1][right]


def along_both_axes(sample: Sample, part: Part) -> dict[TensorKey, Rows]:
    """What was read of a part, tensor by tensor; whole tensors along either axis."""
    found = tensors_of(sample, part)
    return {**_turned(found, tensor_sizes(sample, part)), **found}


def _turned(rows: Mapping[TensorKey, Rows], sizes: Mapping[str, int]) -> dict[TensorKey, Rows]:
    """Tensors that were read whole, along their other axis."""
    return {
        (name, not inputs): _numbered(values.T)
        for (name, inputs), (_, values) in rows.items()
        if values.size == sizes.get(name) and len(values) > 1
    }


def _long_rows(rows: Rows) -> Rows:
    index, values = rows
    return rows if values.shape[1] >= _NARROW else (index[:1], values.reshape(1, -1))


def _tested(sample: Sample, part: Part) -> Iterator[tuple[TensorKey, Rows]]:
    """Tensors that tests see."""
    layer = -1 if part.layer is None else part.layer
    match part.component:
        case Component.NORMS:
            for stored, suffix in ((sample.norms, ""), (sample.norm_biases, ".bias")):
                for (role, at), vector in stored.items():
                    if at == layer and component_of(role) is Component.NORMS:
                        yield (role + suffix, False), _numbered(vector[None])
        case Component.ATTENTION:
            yield from _attention(sample, layer)
        case Component.FEED_FORWARD if layer in sample.units:
            yield from _units(sample.units[layer])
        case Component.EXPERT if (layer, part.expert) in sample.experts:
            yield from _units(sample.experts[layer, part.expert or 0])
        case Component.ROUTER if layer in sample.routers:
            yield (Role.ROUTER, False), _numbered(sample.routers[layer])


def _stored_gains(sample: Sample, part: Part) -> Iterator[tuple[TensorKey, Rows]]:
    """Gains of a part that are stored less one, as they are stored."""
    layer = -1 if part.layer is None else part.layer
    for (role, at), vector in sample.stored_gains.items():
        if at == layer and component_of(role) is part.component:
            yield (role, False), _numbered(vector[None])


def _units(units: Units) -> Iterator[tuple[TensorKey, Rows]]:
    tensors: Mapping[TensorKey, Floats | None] = {
        (Role.GATE, False): units.gate,
        (Role.UP, False): units.up,
        (Role.DOWN, True): units.down if units.down.any() else None,
        (f"{Role.UP}.bias", False): None if units.bias is None else units.bias[:, None],
    }
    for key, rows in tensors.items():
        if rows is not None:
            yield key, (units.index, rows)


def _attention(sample: Sample, layer: int) -> Iterator[tuple[TensorKey, Rows]]:
    heads = sample.attention.get(layer)
    if heads is None:
        return
    numbered = {Role.Q: heads.query_heads, Role.K: heads.groups, Role.V: heads.groups}
    for role in (Role.Q, Role.K, Role.V, Role.O):
        rows: Floats | None = getattr(heads, role)
        numbers = numbered.get(role)
        if rows is not None:
            yield (role, role is Role.O), _by_head(rows, numbers)
        bias: Floats | None = getattr(heads, f"{role}_bias", None)
        if bias is not None:
            yield (f"{role}.bias", False), _by_head(bias[..., None], numbers)


def _by_head(rows: Floats, heads: Indices | None) -> Rows:
    """Rows of heads, numbered as in their layer."""
    if heads is None:
        return _numbered(rows.reshape(-1, rows.shape[-1]))
    numbers = heads[:, None] * rows.shape[1] + np.arange(rows.shape[1])
    return numbers.reshape(-1), rows.reshape(-1, rows.shape[-1])


def _numbered(rows: Floats) -> Rows:
    return np.arange(len(rows)), rows
