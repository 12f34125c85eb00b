"""Opening the models of a comparison, and setting aside those of a matrix that cannot be."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from kinprint.errors import BadReference, FormatError, KinprintError, SourceError
from kinprint.lineage.about.description import card_bytes
from kinprint.lineage.reading.headers import open_layers_of
from kinprint.lineage.reading.levels import level_named
from kinprint.lineage.reading.sample import Sample
from kinprint.lineage.reading.sampler import Sampler
from kinprint.lineage.results import Settings, Unread
from kinprint.model.opened import Model
from kinprint.reader.checkpoint import Checkpoint, open_checkpoint
from kinprint.reader.fetch import Fetcher, side_by_side

_T = TypeVar("_T")
_Read = tuple[list[Model], Sampler, list[Sample]]
# What one model may do to a matrix without ending it; budgets and full disks concern all.
_ITS_OWN = (SourceError, FormatError, BadReference)


@dataclass(frozen=True, slots=True)
class ReadModels:
    """Models that could be read, with all that was read of them, and those that could not."""

    checkpoints: list[Checkpoint]
    models: list[Model]
    sampler: Sampler
    samples: list[Sample]
    unread: list[Unread]


def open_all(given: Sequence[str], fetcher: Fetcher, settings: Settings) -> list[Checkpoint]:
    """Open models side by side; the error of one that fails says which it is."""
    indexed = level_named(settings.level).index

    def open_one(name: str) -> Checkpoint:
        with about(name):
            return open_checkpoint(name, fetcher, indexed=indexed)

    return side_by_side(open_one, given)


def open_readable(
    given: Sequence[str], fetcher: Fetcher, settings: Settings
) -> tuple[list[Checkpoint], list[Unread]]:
    """Open those models that can be opened, side by side."""

    def open_one(name: str) -> Checkpoint | Unread:
        found = attempt(lambda: open_all([name], fetcher, settings))
        return Unread(name, found) if isinstance(found, KinprintError) else found[0]

    found = side_by_side(open_one, given)
    unread = [one for one in found if isinstance(one, Unread)]
    return enough([one for one in found if isinstance(one, Checkpoint)], unread), unread


def understand(checkpoints: Sequence[Checkpoint], settings: Settings) -> list[Model]:
    """Read the headers that the level needs, of all models side by side."""
    return open_layers_of(checkpoints, level_named(settings.level), settings.base)


def sampler_of(models: Sequence[Model], settings: Settings) -> Sampler:
    """Plan the reading of models; what their cards cost is taken off beforehand."""
    budget = settings.budget
    cards = card_bytes([one.checkpoint for one in models])
    if cards:
        level = level_named(settings.level).budget * len(models) // 2
        budget = max((level if budget is None else min(budget, level)) - cards, 0)
    return Sampler(models, settings.level, budget)


def read_readable(
    checkpoints: Sequence[Checkpoint], settings: Settings, unread: Sequence[Unread]
) -> ReadModels:
    """Read all models to the last stage, without those whose headers or weights cannot be had.

    All are read together; only when that fails is each tried alone, to know which it was.
    """
    kept, lost = list(checkpoints), list(unread)
    while True:
        found = _read_all(kept, settings)
        if not isinstance(found, KinprintError):
            models, sampler, samples = found
            return ReadModels(kept, models, sampler, samples, lost)
        alone = [(one, _read_all([one], settings)) for one in kept]
        failed = [
            Unread(one.ref.given, error) for one, error in alone if isinstance(error, KinprintError)
        ]
        if not failed:  # each can be read, and all together cannot
            raise found
        lost += failed
        kept = enough([one for one, each in alone if not isinstance(each, KinprintError)], lost)


def _read_all(some: Sequence[Checkpoint], settings: Settings) -> _Read | KinprintError:
    def read() -> _Read:
        models = understand(some, settings)
        sampler = sampler_of(models, settings)
        return models, sampler, sampler.samples(sampler.stages - 1)

    return attempt(read)


def enough(kept: list[Checkpoint], unread: Sequence[Unread]) -> list[Checkpoint]:
    """Models that can be compared; the first failure is raised if they are fewer than two."""
    if len(kept) < 2 and unread:
        with about(unread[0].given):
            raise unread[0].error
    return kept


def attempt(action: Callable[[], _T]) -> _T | KinprintError:
    """What an action gives, or the error that one model has brought about."""
    try:
        return action()
    except _ITS_OWN as error:
        return error


@contextmanager
def about(model: str) -> Iterator[None]:
    """Note on an error which of several models it is about."""
    try:
        yield
    except KinprintError as error:
        if not getattr(error, "__notes__", ()):
            error.add_note(model)
        raise
