"""What a study works on: opened models, what was asked, and numbers taken in one sweep."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from kinprint.errors import FormatError
from kinprint.model.model import Model, Reading, read_all
from kinprint.model.places import Address, Place
from kinprint.model.tokens import Vocabulary
from kinprint.records import Commit
from kinprint.studies.sampling import Rows, sample_rows

Floats = NDArray[np.float32]
Document = tuple[int, str]  # which model, and the path of a small file beside its weights
OK, MISSING, UNREADABLE, MISMATCH = "ok", "missing", "unreadable", "shape_mismatch"


@dataclass(frozen=True, slots=True)
class Request:
    """What the user asked for; None means what the study does by itself.

    `rows` is how many rows of a matrix are sampled, None for all of them; `seed` chooses
    which, the same for every model.
    """

    layers: tuple[int, ...] | None = None
    roles: tuple[str, ...] | None = None
    measures: tuple[str, ...] | None = None
    rows: int | None = 16
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Item:
    """One thing to read: rows of a logical tensor of one of the models.

    `rows` None is the sample that the request asks for, or all of a vector.
    """

    model: int
    address: Address
    rows: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Taken:
    """What was read for an item, or why nothing could be."""

    status: str
    reason: str = ""
    values: Floats | None = None
    place: Place | None = None
    shape: tuple[int, ...] | None = None
    rows: Rows | None = None

    @property
    def sampled(self) -> bool:
        """Whether only some rows of the tensor were read."""
        whole = self.shape is None or self.rows is None or len(self.rows) == self.shape[0]
        return not whole


@dataclass(frozen=True, slots=True)
class Scene:
    """Models with short names, what was asked about them, and what studies need of them.

    `vocabularies` and `documents` hold tokenizers and small files where a study asked for
    them; a tokenizer that is not there or cannot be read is None.
    """

    models: tuple[Model, ...]
    names: tuple[str, ...]
    request: Request
    vocabularies: tuple[Vocabulary | None, ...] = ()
    taken: Mapping[Item, Taken] = field(default_factory=dict)
    documents: Mapping[Document, bytes] = field(default_factory=dict)
    histories: tuple[tuple[Commit, ...], ...] = ()

    def get(self, item: Item) -> Taken:
        """What was taken for an item that the study said it needs."""
        return self.taken[item]

    def layers(self, *models: int) -> tuple[int, ...]:
        """Layers to look at: those asked for, or all that any of these models has."""
        if self.request.layers is not None:
            return self.request.layers
        which = models or range(len(self.models))
        return tuple(sorted({layer for at in which for layer in self.models[at].layers()}))

    @property
    def labels(self) -> tuple[str, ...]:
        """What the models say they are not."""
        found = (f"{one.name}: {text}" for one in self.models for text in one.checkpoint.labels)
        return tuple(dict.fromkeys(found))


def take(models: Sequence[Model], items: Iterable[Item], request: Request) -> dict[Item, Taken]:
    """Read everything that items ask for, of all models in one sweep."""
    found, planned = plan(models, items, request)
    arrays = read_all([each.reading for each in planned])
    for each, values in zip(planned, arrays, strict=True):
        place = each.reading.place
        found[each.item] = Taken(OK, "", values, place, place.shape, each.rows)
    return found


@dataclass(frozen=True, slots=True)
class Planned:
    """An item that can be read: which rows of it, and how."""

    item: Item
    rows: Rows | None
    reading: Reading


def plan(
    models: Sequence[Model], items: Iterable[Item], request: Request
) -> tuple[dict[Item, Taken], list[Planned]]:
    """What items ask for, before any of it is read: those that cannot be had, and readings."""
    wanted = list(dict.fromkeys(items))
    places = _locate(models, wanted)
    found: dict[Item, Taken] = {}
    planned: list[Planned] = []
    for item in wanted:
        place = places[item]
        if place is None:
            found[item] = Taken(MISSING, f"{models[item.model].name} has no {item.address}")
            continue
        rows = _rows(item, place, request)
        try:
            reading = models[item.model].reading(place, rows)
        except FormatError as error:
            found[item] = Taken(UNREADABLE, str(error), place=place, shape=place.shape)
            continue
        planned.append(Planned(item, rows, reading))
    return found, planned


def _locate(models: Sequence[Model], items: Sequence[Item]) -> dict[Item, Place | None]:
    places: dict[Item, Place | None] = {}
    for at, model in enumerate(models):
        mine = [item for item in items if item.model == at]
        found = model.locate([item.address for item in mine])
        places.update(zip(mine, found, strict=True))
    return places


def _rows(item: Item, place: Place, request: Request) -> Rows | None:
    shape = place.shape
    if item.rows is not None:
        return item.rows
    if shape is None or len(shape) < 2 or request.rows is None:
        return None
    return sample_rows(shape[0], request.rows, request.seed)
