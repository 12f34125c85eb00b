"""Stored tensors of a child beside those of the models it may be merged from, in blocks.

Merging tools treat a stored tensor as a whole: limits of trimming, angles and scales are its own.
So the unit here is what the child stores under one name, with all that is fused in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kinprint import text
from kinprint.diff.blocks import blocks, extents, matrix_shape, reading_of, stored_block
from kinprint.measure.merging import Precision
from kinprint.model.model import Floats, Model, Rows, wants_of
from kinprint.model.places import Address, Place
from kinprint.reader.decode import Array, as_float32, widen
from kinprint.reader.fetch import Want
from kinprint.records import MergeStatus

NUMBERS = 1 << 19
"""Numbers of one tensor in a block, about; every source has a block beside it."""
_PRECISIONS = {"F32": Precision.FLOAT32, "BF16": Precision.BFLOAT16, "F16": Precision.FLOAT16}


class Tensor(Struct, frozen=True):
    """A stored tensor of the child and what the sources have in its place.

    Attributes
    ----------
    name, address : what it is called, and what it is (of the first of its parts).
    parts : its own places; in `counterparts` those of each source, None where it has no such tensor
        of that shape.
    status, reason : what keeps it, or a source, from being measured.
    rows : of each part, those that are read; none named where all are.
    """

    name: str
    address: Address
    parts: tuple[Place, ...]
    counterparts: tuple[tuple[Place, ...] | None, ...]
    status: MergeStatus
    reason: text.Message | None
    rows: tuple[Rows, ...] = ()

    @property
    def numbers(self) -> int:
        """How many numbers it holds."""
        return sum(prod(part.shape or (0,)) for part in self.parts)

    @property
    def read(self) -> int:
        """How many of them are read."""
        if not self.rows:
            return self.numbers
        shapes = (matrix_shape(part.shape or (0,)) for part in self.parts)
        return sum(len(rows) * width for rows, (_, width) in zip(self.rows, shapes, strict=True))

    @property
    def precision(self) -> Precision | None:
        """The number format that it is stored in; None for one that merges are not written in."""
        return precision_of(self.parts[0])

    @property
    def available(self) -> tuple[int, ...]:
        """The sources that have it."""
        return tuple(at for at, one in enumerate(self.counterparts) if one is not None)

    def only(self, kept: Sequence[int]) -> Tensor:
        """The same with some of the sources."""
        found = tuple(self.counterparts[at] for at in kept)
        if self.status is MergeStatus.PARTLY and all(one is not None for one in found):
            return replace(self, counterparts=found, status=MergeStatus.MEASURED, reason=None)
        return replace(self, counterparts=found)


def precision_of(place: Place) -> Precision | None:
    """The number format of a stored tensor, if merges are written in it."""
    quantised = place.weight.quantised is not None
    return None if quantised else _PRECISIONS.get(place.weight.spec.dtype)


def tensors_of(child: Model, sources: Sequence[Model], titles: Sequence[str]) -> list[Tensor]:
    """The child's stored tensors, each with its counterparts."""
    stored: dict[str, list[Place]] = {}
    for place in child.places.values():
        stored.setdefault(place.weight.name, []).append(place)
    return [_tensor(name, places, sources, titles) for name, places in stored.items()]


def _tensor(
    name: str, parts: Sequence[Place], sources: Sequence[Model], titles: Sequence[str]
) -> Tensor:
    found: list[tuple[Place, ...] | None] = []
    missing, other = [], []
    for source, title in zip(sources, titles, strict=True):
        places = [source.places.get(part.address) for part in parts]
        known = tuple(place for place in places if place is not None)
        fits = [place.shape for place in known] == [part.shape for part in parts]
        found.append(known if fits and known else None)
        if len(known) < len(parts):
            missing.append(title)
        elif not fits:
            other.append(f"{title} ({_shape(known)})")
    refusals = [part.weight.refusal for part in parts if part.weight.refusal]
    status, reason = MergeStatus.MEASURED, None
    if refusals or any(part.shape is None for part in parts):
        status, reason = MergeStatus.UNREADABLE, refusals[0] if refusals else None
    elif other:
        reason = text.message("unmerge.reason.shape", models=", ".join(other), shape=_shape(parts))
        status = MergeStatus.OTHER_SHAPE
    elif missing:
        reason = text.message("unmerge.reason.missing", models=", ".join(missing))
        status = MergeStatus.MISSING
    if status in (MergeStatus.OTHER_SHAPE, MergeStatus.MISSING) and any(found):
        status = MergeStatus.PARTLY
    return Tensor(name, parts[0].address, tuple(parts), tuple(found), status, reason)


def _shape(places: Sequence[Place]) -> str:
    return " + ".join("×".join(map(str, place.shape or ())) for place in places)


def tensor_blocks(
    child: Model, sources: Sequence[Model], tensor: Tensor, columns: Sequence[int]
) -> Iterator[tuple[Floats, list[Floats]]]:
    """Numbers of a tensor, flat, and of some sources at the same places, block by block."""
    for own, others in stored_blocks(child, sources, tensor, columns):
        yield as_float32(own), [as_float32(one) for one in others]


def stored_blocks(
    child: Model, sources: Sequence[Model], tensor: Tensor, columns: Sequence[int]
) -> Iterator[tuple[Array, list[Array]]]:
    """The same with all digits that numbers are stored with: single precision makes some equal."""
    for at, part in enumerate(tensor.parts):
        together = [(child, part)]
        for column in columns:
            places = tensor.counterparts[column]
            assert places is not None
            together.append((sources[column], places[at]))
        if tensor.rows:
            readings = (model.reading(place, tensor.rows[at]) for model, place in together)
            own, *others = (np.ravel(widen(one.take_stored())) for one in readings)
            yield own, others
            continue
        for extent in extents([place for _, place in together], NUMBERS):
            own, *others = (np.ravel(widen(stored_block(*one, extent))) for one in together)
            yield own, others


def wants(child: Model, sources: Sequence[Model], tensors: Sequence[Tensor]) -> list[Want]:
    """All bytes that the tensors need."""
    readings = []
    for tensor in tensors:
        if tensor.status in (MergeStatus.UNREADABLE, MergeStatus.NOT_READ) or not tensor.available:
            continue
        stored = [(child, tensor.parts)]
        stored += [(sources[at], tensor.counterparts[at] or ()) for at in tensor.available]
        for model, places in stored:
            for at, place in enumerate(places):
                if tensor.rows:
                    readings.append(model.reading(place, tensor.rows[at]))
                    continue
                (whole,) = extents([place], max(1, prod(place.shape or (1,))))
                readings.append(reading_of(model, place, whole))
    return wants_of(readings)


def beginning(model: Model, place: Place, numbers: int) -> Floats:
    """The first numbers of a tensor, flat."""
    (first, *_) = next(iter(blocks([(model, place)], numbers=numbers)))
    return np.asarray(first.ravel()[:numbers])
