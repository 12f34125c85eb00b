"""Whom a model names as its parents, of linked models whose fingerprints are open.

Likeness proposes (`parents.py`), traces of who came first object (`diff/direction.py`): whoever
came later is no parent, and the others are asked again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from msgspec import Struct

from kinprint.atlas.fingerprint import LEVEL, Fingerprint, replay
from kinprint.atlas.parents import Candidate, choose_parents
from kinprint.diff.direction import Direction, direction_of
from kinprint.errors import KinprintError, attempt
from kinprint.lineage.compare import algebra_for
from kinprint.lineage.opening import ReadModels, open_readable, read_readable
from kinprint.lineage.reading.sample import Sample
from kinprint.lineage.results import Settings
from kinprint.mapped import shelf
from kinprint.reader.checkpoint import Checkpoint
from kinprint.reader.fetch import Fetcher
from kinprint.records import TAKEN_OVER, Precedence, Verdict, VerdictReason
from kinprint.source.recorded import RecordedSource

# Reasons for "dependent" under which weights may have been taken over.
_OPEN = frozenset({VerdictReason.NORMS_ARRANGED, VerdictReason.LEARNT_SILENT})


class OpenPrints(Struct, frozen=True):
    """Fingerprints that are read in place of models.

    Attributes
    ----------
    fetcher : opens each by its name.
    read : those that could be read, and those that could not.
    names : of each that could be read, in their order.
    prints : all of them by name.
    """

    fetcher: Fetcher
    read: ReadModels
    names: list[str]
    prints: Mapping[str, Fingerprint]

    @property
    def samples(self) -> dict[str, Sample]:
        """The main tower of each."""
        return dict(zip(self.names, (towers[0] for towers in self.read.samples), strict=True))


class NamedParent(Struct, frozen=True):
    """A parent by its name, which of the two came first (the model is A), and its weight."""

    name: str
    direction: Direction
    weight: float | None = None


class Named(Struct, frozen=True):
    """Parents, the first one first, linked models that would be parents but came later, and those
    that nothing tells from the first parent."""

    parents: tuple[NamedParent, ...] = ()
    later: tuple[NamedParent, ...] = ()
    tied: tuple[NamedParent, ...] = ()


@contextmanager
def opened(prints: Mapping[str, Fingerprint], settings: Settings) -> Iterator[OpenPrints]:
    """Open fingerprints by name and read them; an error where fewer than two can be read."""
    with Fetcher() as fetcher, shelf() as place, algebra_for(LEVEL):
        replay(fetcher, prints.items())
        checkpoints, unread = open_readable(list(prints), fetcher, settings)
        read = read_readable(checkpoints, settings, unread, place)
        yield OpenPrints(fetcher, read, _names(read.checkpoints, prints), prints)


def name_parents(
    own: str, verdicts: Mapping[str, Verdict], prints: OpenPrints, settings: Settings
) -> Named:
    """The parents of a model among linked ones; the model is the first of each verdict."""
    samples = prints.samples
    apart = any(VerdictReason.LEARNT_APART in one.reasons for one in verdicts.values())
    left = {
        name: Candidate(
            verdict, prints.prints[name].towers, samples[name], _may_be_parent(verdict, apart)
        )
        for name, verdict in verdicts.items()
    }
    later: list[NamedParent] = []
    while True:
        names, found = list(left), choose_parents(samples[own], list(left.values()))

        def named(
            number: int, weight: float | None = None, names: list[str] = names
        ) -> NamedParent:
            name = names[number]
            return NamedParent(name, _direction(own, name, prints.fetcher, settings), weight)

        chosen = [named(one.number, one.weight) for one in found]
        tied = [named(number) for one in found for number in one.tied]
        after = [one for one in (*chosen, *tied) if one.direction.answer is Precedence.A_FIRST]
        if not after:
            return Named(tuple(chosen), tuple(later), tuple(tied))
        later += after
        gone = {one.name for one in after}
        left = {name: one for name, one in left.items() if name not in gone}


def _direction(own: str, other: str, fetcher: Fetcher, settings: Settings) -> Direction:
    found = attempt(direction_of, own, other, fetcher, settings)
    return Direction(Precedence.UNDECIDED) if isinstance(found, KinprintError) else found


def _may_be_parent(verdict: Verdict, apart: bool) -> bool:
    """Whether weights were taken over, or may have been: one initialisation makes no parent.

    Where another linked model shows that it learnt `apart`, a link that says no more is as likely
    to be of that kind.
    """
    return verdict.relation in TAKEN_OVER or (not apart and bool(_OPEN & set(verdict.reasons)))


def _names(checkpoints: Sequence[Checkpoint], prints: Mapping[str, Fingerprint]) -> list[str]:
    """The names under which recorded models were opened."""
    by_source = {id(one.sources[0]): name for name, one in prints.items()}
    return [
        by_source[id(one.source.recorded)]
        for one in checkpoints
        if isinstance(one.source, RecordedSource)
    ]
