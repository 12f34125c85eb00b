"""Reading for studies: tensors of all models in one sweep, tokenizers, commits, small files.

One model that fails does not end a study of many: what it should have given is missing, with the
error as the reason. What concerns all of them, such as a budget that is spent, ends the study.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from kinprint import text
from kinprint.errors import KinprintError, SourceError, attempt
from kinprint.measure.sampling import Rows, sample_rows
from kinprint.model.model import Model, Reading, read_all, vocabulary_files
from kinprint.model.places import Place
from kinprint.model.tokens import Vocabulary
from kinprint.reader.fetch import side_by_side
from kinprint.reader.origins import Origin
from kinprint.records import History
from kinprint.studies.results import RowStatus
from kinprint.studies.study import Document, ReadTensor, Request, TensorRows
from kinprint.titles import tensor_title


class PlannedTensor(Struct, frozen=True):
    """A tensor that can be read: which rows of it, and how."""

    wanted: TensorRows
    rows: Rows | None
    reading: Reading
    origin: Origin | None = None  # of a replica's tensor


class TensorPlan(Struct):
    """Readings, and what is known before the first of them.

    `absent` are tensors that cannot be had; `lost` are models that cannot be read at all.
    """

    readings: list[PlannedTensor]
    absent: dict[TensorRows, ReadTensor]
    lost: dict[int, KinprintError]


class TensorsRead(Struct, frozen=True):
    """What was read, and the models of which nothing could be, with the error."""

    tensors: dict[TensorRows, ReadTensor]
    lost: dict[int, KinprintError]


def plan_tensors(
    models: Sequence[Model], wanted: Iterable[TensorRows], request: Request
) -> TensorPlan:
    """What is wanted of models, before any of it is read."""
    plan = TensorPlan([], {}, {})
    for at, mine in _by_model(list(dict.fromkeys(wanted))).items():
        places = attempt(models[at].locate, [one.address for one in mine])
        if isinstance(places, KinprintError):
            plan.lost[at] = places
            plan.absent |= dict.fromkeys(mine, _failed(places))
            continue
        for one, place in zip(mine, places, strict=True):
            found = _planned(models[at], one, place, request)
            if isinstance(found, PlannedTensor):
                plan.readings.append(found)
            else:
                plan.absent[one] = found
    return plan


def _by_model(wanted: Iterable[TensorRows]) -> dict[int, list[TensorRows]]:
    groups: dict[int, list[TensorRows]] = {}
    for one in wanted:
        groups.setdefault(one.model, []).append(one)
    return groups


def _planned(
    model: Model, wanted: TensorRows, place: Place | None, request: Request
) -> PlannedTensor | ReadTensor:
    if place is None:
        at = wanted.address
        tensor = tensor_title(at.role, at.layer, at.expert, at.tower)
        reason = text.sentence("study.reason.no-tensor", model=model.name, tensor=tensor)
        return ReadTensor(RowStatus.MISSING, reason)
    if model.checkpoint.lacks(place.weight.spec):
        reason = text.sentence("study.reason.not-in-replica", model=model.name)
        return ReadTensor(RowStatus.NOT_IN_REPLICA, reason, place=place, shape=place.shape)
    rows = _rows(wanted, place, request)
    reading = attempt(model.reading, place, rows)
    if isinstance(reading, KinprintError):
        return _failed(reading, place)
    return PlannedTensor(wanted, rows, reading, model.checkpoint.origin_of(place.weight.spec))


def _rows(wanted: TensorRows, place: Place, request: Request) -> Rows | None:
    shape = place.shape
    if wanted.rows is not None:
        return wanted.rows
    if shape is None or len(shape) < 2 or request.rows is None:
        return None
    return sample_rows(shape[0], request.rows, request.seed)


def read_tensors(
    models: Sequence[Model], wanted: Iterable[TensorRows], request: Request
) -> TensorsRead:
    """Read everything that is wanted, of all models in one sweep."""
    plan = plan_tensors(models, wanted, request)
    found = TensorsRead(plan.absent, plan.lost)
    swept = attempt(_read, found, plan.readings)
    if isinstance(swept, KinprintError):
        left = [one for one in plan.readings if one.wanted not in found.tensors]
        for at in dict.fromkeys(one.wanted.model for one in left):
            _read_model(found, at, [one for one in left if one.wanted.model == at])
    return found


def _read(found: TensorsRead, planned: Sequence[PlannedTensor]) -> None:
    arrays = read_all([one.reading for one in planned])
    for one, values in zip(planned, arrays, strict=True):
        place = one.reading.place
        found.tensors[one.wanted] = ReadTensor(
            RowStatus.OK, "", values, place, place.shape, one.rows, one.origin
        )


def _read_model(found: TensorsRead, at: int, planned: Sequence[PlannedTensor]) -> None:
    """Read what the sweep left of one model, to know whose failure broke it.

    Tensors are tried one by one, unless the place where all of them lie cannot be reached.
    """
    outcome = attempt(_read, found, planned)
    if not isinstance(outcome, KinprintError):
        return
    for one in planned:
        if one.wanted in found.tensors:
            continue
        error = outcome if isinstance(outcome, SourceError) else attempt(_read, found, [one])
        if error is not None:
            found.tensors[one.wanted] = _failed(error, one.reading.place)
    if not any(found.tensors[one.wanted].status is RowStatus.OK for one in planned):
        found.lost[at] = outcome


def _failed(error: KinprintError, place: Place | None = None) -> ReadTensor:
    shape = None if place is None else place.shape
    reason = text.Sentence(error.message.words())
    return ReadTensor(RowStatus.UNREADABLE, reason, place=place, shape=shape)


def read_vocabularies(models: Sequence[Model]) -> dict[int, Vocabulary | None]:
    """Tokenizers by the identity of their model; one that is broken is noted and counts as none."""
    # Files come side by side; parsing takes memory, so that is done one after another.
    side_by_side(_fetch_vocabulary, list(models))
    return {id(model): _vocabulary(model) for model in models}


def _fetch_vocabulary(model: Model) -> None:
    model.checkpoint.fetch_files(vocabulary_files(model.checkpoint))


def _vocabulary(model: Model) -> Vocabulary | None:
    found = attempt(model.vocabulary)
    if isinstance(found, SourceError):
        raise found
    if isinstance(found, KinprintError):
        model.checkpoint.notes.append(found.message)
        return None
    return found


def read_histories(models: Sequence[Model]) -> dict[int, History]:
    """Commits by the identity of their model; a host that does not tell them is noted."""
    found = side_by_side(_history, list(models))
    return {id(model): history for model, history in zip(models, found, strict=True)}


def _history(model: Model) -> History:
    source = model.checkpoint.source
    commits = attempt(source.history)
    changes = attempt(source.changes)
    for one in (commits, changes):
        if isinstance(one, KinprintError):
            model.checkpoint.notes.append(one.message)
    return History(
        () if isinstance(commits, KinprintError) else commits,
        {} if isinstance(changes, KinprintError) else changes,
    )


def read_documents(models: Sequence[Model], wanted: Sequence[Document]) -> dict[Document, bytes]:
    """Small files of all models, read side by side."""

    def read(at: int) -> dict[str, bytes]:
        paths = dict.fromkeys(path for model, path in wanted if model == at)
        return models[at].checkpoint.read_files(list(paths))

    which = sorted({model for model, _ in wanted})
    found = zip(which, side_by_side(read, which), strict=True)
    return {(at, path): raw for at, files in found for path, raw in files.items()}
