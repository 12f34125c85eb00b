"""Opening the models of a comparison, and setting aside those of a matrix that cannot be."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from kinprint import text
from kinprint.errors import KinprintError, attempt, naming
from kinprint.lineage.reading.headers import open_with_few_headers
from kinprint.lineage.reading.levels import level_plan
from kinprint.lineage.reading.sample import Sample
from kinprint.lineage.reading.sampler import Sampler
from kinprint.lineage.results import Settings, UnreadModel
from kinprint.mapped import Shared, Shelf
from kinprint.model.model import Model
from kinprint.reader.checkpoint import Checkpoint, open_checkpoint
from kinprint.reader.fetch import Fetcher, side_by_side
from kinprint.text import Message

_Read = tuple[list[Model], Sampler, list[Shared]]


class ReadModels(Struct, frozen=True):
    """Models that could be read, and those that could not.

    `stored` are samples of all towers of each model, where processes find them; `samples` are the
    same in this one, mapped.
    """

    checkpoints: list[Checkpoint]
    models: list[Model]
    sampler: Sampler
    stored: list[Shared]
    samples: list[tuple[Sample, ...]]
    unread: list[UnreadModel]


def open_all(given: Sequence[str], fetcher: Fetcher, settings: Settings) -> list[Checkpoint]:
    """Open models side by side; the error of one that fails says which it is."""
    indexed = level_plan(settings.level).index

    def open_one(name: str) -> Checkpoint:
        with naming(name):
            return open_checkpoint(name, fetcher, indexed=indexed)

    return side_by_side(open_one, given)


def open_readable(
    given: Sequence[str], fetcher: Fetcher, settings: Settings
) -> tuple[list[Checkpoint], list[UnreadModel]]:
    """Open those models that can be opened, side by side, and say why the others cannot."""

    def open_one(name: str) -> Checkpoint | UnreadModel:
        opened = attempt(open_all, [name], fetcher, settings)
        return UnreadModel(name, opened) if isinstance(opened, KinprintError) else opened[0]

    outcomes = side_by_side(open_one, given)
    unread = [outcome for outcome in outcomes if isinstance(outcome, UnreadModel)]
    opened = [outcome for outcome in outcomes if isinstance(outcome, Checkpoint)]
    return _enough(opened, unread), unread


def read_headers(
    checkpoints: Sequence[Checkpoint], settings: Settings, beside: int = 0
) -> list[Model]:
    """Read the headers that the level needs, of all models side by side, as for `sampler_of`."""
    plan = level_plan(settings.level, settings.seed)
    each = _each(settings, len(checkpoints) + beside)
    return open_with_few_headers(checkpoints, plan, settings.base, each)


def sampler_of(models: Sequence[Model], settings: Settings, beside: int = 0) -> Sampler:
    """Plan the reading of models, each within its part of the budget; others are read beside."""
    each = _each(settings, len(models) + beside)
    return Sampler(models, settings.level, each, settings.seed)


def _each(settings: Settings, models: int) -> int | None:
    """The part of the budget that one of so many models has; None where there is none."""
    return None if settings.budget is None else settings.budget // models


def read_readable(
    checkpoints: Sequence[Checkpoint],
    settings: Settings,
    unread: Sequence[UnreadModel],
    place: Shelf,
) -> ReadModels:
    """Read all models to the last stage, without those whose headers or weights cannot be had.

    All are read together; only when that fails is each tried alone, to know which it was. What
    was read is put on a shelf, one model after another.
    """
    kept, lost = list(checkpoints), list(unread)
    while True:
        read = attempt(_read_all, kept, settings, place)
        if not isinstance(read, KinprintError):
            models, sampler, stored = read
            samples = [one.load() for one in stored]
            return ReadModels(kept, models, sampler, stored, samples, lost)
        alone = [(one, attempt(_read_all, [one], settings, place)) for one in kept]
        failed = [
            UnreadModel(checkpoint.ref.given, error)
            for checkpoint, error in alone
            if isinstance(error, KinprintError)
        ]
        if not failed:  # each can be read, and all together cannot
            raise read
        lost += failed
        readable = [one for one, outcome in alone if not isinstance(outcome, KinprintError)]
        kept = _enough(readable, lost)


def reading_notes(sampler: Sampler, checkpoints: Sequence[Checkpoint]) -> tuple[Message, ...]:
    """Remarks on how models were read, each once."""
    notes = list(sampler.notes)
    for place, checkpoint in enumerate(checkpoints):
        if sampler.whole[place] and (outside := sampler.outside(place)):
            note = text.message("note.outside", count=len(outside), tensor=outside[0])
            notes.append(note_about(checkpoint.ref.name, note))
    return tuple(dict.fromkeys((*notes, *opening_notes(checkpoints))))


def opening_notes(checkpoints: Sequence[Checkpoint]) -> tuple[Message, ...]:
    """Remarks on the files of models, each once: faults, and weights that were passed over."""
    notes = []
    for checkpoint in checkpoints:
        about, choice = list(checkpoint.notes), checkpoint.choice
        others = [one.label for one in choice.others if one.folder not in choice.components]
        if others:
            about.append(text.message("note.other-weights", count=len(others), weights=others[0]))
        notes += [note_about(checkpoint.ref.name, note) for note in about]
    return tuple(dict.fromkeys(notes))


def note_about(model: str, note: Message) -> Message:
    """A remark with the name of the model that it is about."""
    return text.message("note.about-model", model=model, note=note)


def labels_of(checkpoints: Sequence[Checkpoint]) -> tuple[Message, ...]:
    """What models are not by themselves, as replicas and adapters, each once."""
    labels = (
        text.message("note.about-model", model=one.ref.name, note=label)
        for one in checkpoints
        for label in one.labels
    )
    return tuple(dict.fromkeys(labels))


def _read_all(checkpoints: Sequence[Checkpoint], settings: Settings, place: Shelf) -> _Read:
    models = read_headers(checkpoints, settings)
    sampler = sampler_of(models, settings)
    return models, sampler, [place.put(towers) for towers in sampler.each_model()]


def _enough(kept: list[Checkpoint], unread: Sequence[UnreadModel]) -> list[Checkpoint]:
    """Models that can be compared; the first failure is raised if they are fewer than two."""
    if len(kept) < 2 and unread:
        with naming(unread[0].given):
            raise unread[0].error
    return kept
