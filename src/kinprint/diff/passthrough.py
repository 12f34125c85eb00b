"""Layers that a child has from its parents as they are: which, from whom, in which order."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kinprint.diff.blocks import blocks
from kinprint.diff.merge_tensors import NUMBERS, Tensor, beginning, precision_of
from kinprint.errors import KinprintError
from kinprint.measure.merging import Precision, rounded
from kinprint.model.model import Model

_FIRST = 1024  # numbers of each tensor by which layers are looked up
_Key = tuple[str, int | None]


class Slice(Struct, frozen=True):
    """Layers of the child in a row that are layers of one source in a row."""

    source: int
    first: int
    last: int


class Passed(Struct, frozen=True):
    """A child whose every tensor is one of a source's.

    `slices` are in the order of the child's layers; `origins` has of each tensor the source and
    its layer.
    """

    slices: tuple[Slice, ...]
    origins: tuple[tuple[int, int | None], ...]


def passed_through(
    child: Model, sources: Sequence[Model], tensors: Sequence[Tensor]
) -> Passed | None:
    """Which layer each layer of the child was taken from; None unless every number is equal."""
    layers = child.layers()
    if not layers or any(tensor.precision is None for tensor in tensors):
        return None
    formats = _formats(child)
    own = _beginnings(child, formats)
    known = {
        (at, layer): found
        for at, source in enumerate(sources)
        for layer, found in _beginnings(source, formats).items()
    }
    candidates = [
        [place for place, found in known.items() if found == own.get(layer)] for layer in layers
    ]
    if not all(candidates):
        return None
    chosen = _longest_runs(candidates)
    by_layer = dict(zip(layers, chosen, strict=True))
    first, last = chosen[0][0], chosen[-1][0]
    origins = []
    for tensor in tensors:
        layer = tensor.address.layer
        if layer is not None and layer in by_layer and not tensor.address.tower:
            options: Sequence[tuple[int, int | None]] = [by_layer[layer]]
        else:
            others = (first, last, *range(len(sources)))
            options = [(at, layer) for at in dict.fromkeys(others)]
        origin = next((one for one in options if _equal(child, sources, tensor, one)), None)
        if origin is None:
            return None
        origins.append(origin)
    return Passed(tuple(_slices(chosen)), tuple(origins))


def _formats(child: Model) -> dict[_Key, Precision]:
    """The number formats of the child's tensors, by what each is in its layer."""
    found = {}
    for address, place in child.places.items():
        precision = precision_of(place)
        if address.layer is not None and not address.tower and precision is not None:
            found[address.role, address.expert] = precision
    return found


def _beginnings(model: Model, formats: Mapping[_Key, Precision]) -> dict[int, dict[_Key, bytes]]:
    """The first numbers of the tensors of every layer, in the formats given."""
    found: dict[int, dict[_Key, bytes]] = {}
    for address, place in model.places.items():
        key = (address.role, address.expert)
        if address.layer is None or address.tower or key not in formats:
            continue
        with contextlib.suppress(KinprintError):  # what cannot be read is equal to nothing
            first = rounded(beginning(model, place, _FIRST), formats[key])
            found.setdefault(address.layer, {})[key] = first.tobytes()
    return found


def _longest_runs(candidates: Sequence[Sequence[tuple[int, int]]]) -> list[tuple[int, int]]:
    """One source a layer, so that they change as seldom as possible."""
    chosen: list[tuple[int, int]] = []
    for at, options in enumerate(candidates):
        following = (chosen[-1][0], chosen[-1][1] + 1) if chosen else None
        if following in options:
            assert following is not None
            chosen.append(following)
        else:
            chosen.append(max(options, key=lambda one: _run(candidates, at, one)))
    return chosen


def _run(candidates: Sequence[Sequence[tuple[int, int]]], at: int, start: tuple[int, int]) -> int:
    length = 0
    while (
        at + length < len(candidates) and (start[0], start[1] + length) in candidates[at + length]
    ):
        length += 1
    return length


def _slices(chosen: Sequence[tuple[int, int]]) -> Iterator[Slice]:
    source, first = chosen[0]
    last = first
    for at, layer in chosen[1:]:
        if (at, layer) == (source, last + 1):
            last = layer
            continue
        yield Slice(source, first, last)
        source, first, last = at, layer, layer
    yield Slice(source, first, last)


def _equal(
    child: Model, sources: Sequence[Model], tensor: Tensor, origin: tuple[int, int | None]
) -> bool:
    """Whether a tensor is that of a source's layer, number by number."""
    at, layer = origin
    precision = tensor.precision
    assert precision is not None
    for part in tensor.parts:
        place = sources[at].places.get(replace(part.address, layer=layer))
        if place is None or place.shape != part.shape:
            return False
        for own, other in blocks([(child, part), (sources[at], place)], numbers=NUMBERS):
            if not np.array_equal(own, rounded(other, precision), equal_nan=True):
                return False
    return True
