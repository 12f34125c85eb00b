"""Layers that a child has from its parents as they are: which, from whom, in which order."""

from __future__ import annotations

import contextlib
from collections.abc import Container, Iterator, Mapping, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kinprint.diff.blocks import blocks
from kinprint.diff.merge_tensors import NUMBERS, Tensor, beginning, precision_of
from kinprint.errors import KinprintError
from kinprint.measure.merging import Precision, rounded
from kinprint.model.model import Model
from kinprint.records import Role, bias_of

_FIRST = 1024  # numbers of each tensor by which layers are looked up
_OPENING = (Role.EMBED, Role.POS_EMBED)
_CLOSING = (Role.NORM_FINAL, Role.LM_HEAD)
"""What mergekit takes from the source of the first slice, and from that of the last one."""
_Key = tuple[str, int | None]


class Slice(Struct, frozen=True):
    """Layers of the child in a row that are layers of one source in a row.

    A slice without layers, `last` before `first`, only says whose tensors open or close the child.
    """

    source: int
    first: int
    last: int


def _without_layers(source: int) -> Slice:
    return Slice(source, 0, -1)


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
    """Which layer each layer of the child was taken from; None unless slices give every number.

    What opens the child is all from the source of the first slice, what closes it from that of the
    last. Other tensors outside the layers, of which mergekit does not say, must be in both.
    """
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
    alike = [[place for place, found in known.items() if found == own.get(at)] for at in layers]
    if not all(alike):
        return None
    outside = [tensor for tensor in tensors if not _in_layers(tensor, layers)]
    opening = _whole_sources(child, sources, [one for one in outside if not _is(one, _CLOSING)])
    closing = _whole_sources(child, sources, [one for one in outside if not _is(one, _OPENING)])
    if not opening or not closing:
        return None
    chosen = _longest_runs(
        [sorted(some, key=lambda place: place[0] not in opening) for some in alike]
    )
    slices = list(_slices(chosen))
    if slices[0].source not in opening:
        slices.insert(0, _without_layers(opening[0]))
    if slices[-1].source not in closing:
        slices.append(_without_layers(closing[0]))
    by_layer = dict(zip(layers, chosen, strict=True))
    origins: list[tuple[int, int | None]] = []
    for tensor in tensors:
        layer = tensor.address.layer
        if layer is None or not _in_layers(tensor, layers):
            last = _is(tensor, _CLOSING)
            origins.append((slices[-1 if last else 0].source, layer))
        elif _equal(child, sources, tensor, by_layer[layer]):
            origins.append(by_layer[layer])
        else:
            return None
    return Passed(tuple(slices), tuple(origins))


def may_be_slices(tensors: Sequence[Tensor], sources: Sequence[Sequence[int]]) -> bool:
    """Whether the tensors of each layer have a source in common, of those that each is from, and so
    what opens the child and what closes it: as far as was read, these layers may be slices."""
    common: dict[object, set[int]] = {}
    for tensor, some in zip(tensors, sources, strict=True):
        layer = None if tensor.address.tower else tensor.address.layer
        ends = [one for one in (_OPENING, _CLOSING) if not _is(tensor, one)]
        for key in ends if layer is None else [layer]:
            common[key] = common.get(key, set(some)) & set(some)
    return all(common.values())


def _in_layers(tensor: Tensor, layers: Container[int | None]) -> bool:
    return tensor.address.layer in layers and not tensor.address.tower


def _is(tensor: Tensor, roles: Sequence[Role]) -> bool:
    """Whether a tensor of the text model is of one of the roles, or the bias of one."""
    address = tensor.address
    return not address.tower and address.role in (*roles, *map(bias_of, roles))


def _whole_sources(child: Model, sources: Sequence[Model], tensors: Sequence[Tensor]) -> list[int]:
    """Sources that have all of these tensors of the child, number by number."""
    return [
        at
        for at in range(len(sources))
        if all(_equal(child, sources, one, (at, one.address.layer)) for one in tensors)
    ]


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
