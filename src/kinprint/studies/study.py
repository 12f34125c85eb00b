"""A study: what it is, what it works on, and how it is carried out.

A study is planned first (`Procedure.needs` names tensors, `documents` small files), then the
numbers of all studies of all models are read in one sweep, then it computes (`Procedure.run`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from kinprint import text
from kinprint.measure.sampling import Rows
from kinprint.model.model import Model
from kinprint.model.places import Address, Place
from kinprint.model.tokens import Vocabulary
from kinprint.reader.origins import Origin
from kinprint.records import History
from kinprint.studies.results import Output, RowStatus
from kinprint.text import Message, Words, message

Floats = NDArray[np.float32]
Document = tuple[int, str]  # which model, and the path of a small file beside its weights
REFERENCE_DEPTH = 46
"""Layers of the shallower of the two models for which the published studies chose layers."""


class Request(Struct, frozen=True):
    """What the user asked for; None means what the study does by itself.

    `rows` is how many rows of a matrix are sampled, None for all of them; `seed` chooses
    which, the same for every model.
    """

    layers: tuple[int, ...] | None = None
    roles: tuple[str, ...] | None = None
    measures: tuple[str, ...] | None = None
    rows: int | None = 16
    seed: int = 0


class TensorRows(Struct, frozen=True):
    """One thing to read: rows of a logical tensor of one of the models.

    `rows` None is the sample that the request asks for, or all of a vector.
    """

    model: int
    address: Address
    rows: tuple[int, ...] | None = None


class ReadTensor(Struct, frozen=True):
    """What was read of a tensor, or why nothing could be."""

    status: RowStatus
    reason: str = ""
    values: Floats | None = None
    place: Place | None = None
    shape: tuple[int, ...] | None = None
    rows: Rows | None = None
    origin: Origin | None = None  # of a replica's tensor

    @property
    def sampled(self) -> bool:
        """Whether only some rows of the tensor were read."""
        whole = self.shape is None or self.rows is None or len(self.rows) == self.shape[0]
        return not whole

    @property
    def name(self) -> str:
        """What the tensor is called where it is stored; empty if there is none."""
        return "" if self.place is None else self.place.weight.name

    @property
    def dtype(self) -> str:
        """The number format it is stored in."""
        return "" if self.place is None else self.place.weight.spec.dtype

    @property
    def file(self) -> str:
        """The weight file it lies in."""
        return "" if self.place is None else self.place.weight.spec.file


class Study(Struct, frozen=True):
    """One named experiment.

    `code` is its place in the original analyses. `title`, `shows` and `cannot` say what it is,
    what it can show and what it cannot. `least` and `most` bound the number of models (`most`
    None: any number). `roles`, `layers` and `measures` are its own, taken where a user asks for
    no others. `vocabulary` and `history` say that tokenizers, or lists of commits, must be read;
    `tensors` that it looks at tensors at all. `procedure` is the code behind it, or where that
    is, as `package.module:NAME`.
    """

    name: str
    code: str
    title: Words
    shows: Words
    cannot: Words
    procedure: str | Procedure
    least: int = 2
    most: int | None = None
    roles: tuple[str, ...] = ()
    layers: tuple[int, ...] = ()
    measures: tuple[str, ...] = ()
    vocabulary: bool = False
    history: bool = False
    tensors: bool = True

    def load(self) -> Procedure:
        """The code behind the study, imported when it is needed."""
        if isinstance(self.procedure, Procedure):
            return self.procedure
        module, _, name = self.procedure.partition(":")
        found = getattr(import_module(module), name)
        assert isinstance(found, Procedure)
        return found


class StudyInput(Struct, frozen=True):
    """What a study works on: models with short names, what was asked, and what was read.

    `vocabularies`, `documents` and `histories` hold tokenizers, small files and lists of commits
    where the study asked for them; a tokenizer that is not there or cannot be read is None.
    """

    study: Study
    models: tuple[Model, ...]
    names: tuple[str, ...]
    request: Request
    vocabularies: tuple[Vocabulary | None, ...] = ()
    tensors: Mapping[TensorRows, ReadTensor] = field(default_factory=dict)
    documents: Mapping[Document, bytes] = field(default_factory=dict)
    histories: tuple[History, ...] = ()

    @property
    def roles(self) -> tuple[str, ...]:
        """Roles to look at: those asked for, else the study's own."""
        return self.study.roles if self.request.roles is None else self.request.roles

    @property
    def measures(self) -> tuple[str, ...]:
        """Measures to take: those asked for, else the study's own."""
        return self.study.measures if self.request.measures is None else self.request.measures

    @property
    def labels(self) -> tuple[Message, ...]:
        """What the models say they are not."""
        found = (
            message("note.about-model", model=model.name, note=label)
            for model in self.models
            for label in model.checkpoint.labels
        )
        return tuple(dict.fromkeys(found))

    def get(self, rows: TensorRows) -> ReadTensor:
        """What was read of a tensor that the study said it needs."""
        return self.tensors[rows]

    def get_own(self, rows: TensorRows) -> ReadTensor:
        """The same, unless it lies beyond the layers that count as the model's own."""
        layer, model = rows.address.layer, self.models[rows.model]
        depth = model.geometry.layers
        if self.request.layers is None and layer is not None and depth and layer >= depth:
            key = "study.reason.beyond-depth"
            beyond = text.sentence(key, model=model.name, depth=depth, layer=layer)
            return ReadTensor(RowStatus.MISSING, beyond)
        return self.get(rows)

    def depth(self, model: int) -> int:
        """How many layers a text stack has: the configuration's word, else its tensors'."""
        opened = self.models[model]
        return opened.geometry.layers or len(opened.layers())

    def fitted_layers(self, *models: int) -> tuple[int, ...]:
        """Layers to look at: those asked for, else the study's own, fitted to the models' depth.

        A study's own layers are taken as they are if each of the models (all, if none are named)
        is deep enough for the last of them. If not, all of them are scaled by the least depth
        over the depth of the published models (46), rounded; a layer other than 0 stays other
        than 0, because the first layer is unlike the rest. Two that fall together count once.
        """
        if self.request.layers is not None:
            return self.request.layers
        own = self.study.layers
        depth = min((self.depth(at) for at in self._which(models)), default=0)
        if not own or depth > max(own):
            return own
        scaled = (
            min(max(round(layer * depth / REFERENCE_DEPTH), 1), depth - 1) for layer in own if layer
        )
        first = (0,) if 0 in own else ()
        return tuple(dict.fromkeys((*first, *(layer for layer in scaled if layer > 0))))

    def own_layers(self, *models: int) -> tuple[int, ...]:
        """Layers to look at: those asked for, else all that any of the models counts as its own.

        Layers that a checkpoint has beyond its configured depth predict further tokens; they
        are no part of the stack that is compared.
        """
        if self.request.layers is not None:
            return self.request.layers
        found = {
            layer
            for at in self._which(models)
            for layer in self.models[at].layers()
            if layer < (self.models[at].geometry.layers or layer + 1)
        }
        return tuple(sorted(found))

    def stored_layers(self) -> tuple[int, ...]:
        """Layers to look at: those asked for, else all that any of the models has."""
        if self.request.layers is not None:
            return self.request.layers
        return tuple(sorted({layer for model in self.models for layer in model.layers()}))

    def _which(self, models: tuple[int, ...]) -> tuple[int, ...]:
        return models or tuple(range(len(self.models)))


class Procedure(Struct, frozen=True):
    """How a study is done: first what it needs, then, with all of it there, what came out.

    `needs` plans and reads nothing; `run` computes and reads nothing. `documents`, where there
    is one, names small files of the repositories that are to be read as well.
    """

    needs: Callable[[StudyInput], list[TensorRows]]
    run: Callable[[StudyInput], Output]
    documents: Callable[[StudyInput], list[Document]] | None = None
