"""All pairs of an atlas: keys say which are compared, tests which are linked, and all are paid for.

For every model the nearest few by its keys are candidates: always the first, others where their
keys are more alike than those of most strangers; all models of an atlas of few. Candidates are
compared fingerprint against fingerprint, in pieces of work that hold few models at a time and can
be done anywhere that the atlas can be read from. Every pair of the atlas might have been compared,
and is paid for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kinprint.atlas.fingerprint import Fingerprint
from kinprint.atlas.naming import Named, name_parents, opened
from kinprint.atlas.search import ranked
from kinprint.atlas.store import Atlas, Index
from kinprint.errors import EntryBroken, KinprintError
from kinprint.lineage.matrix import judge_pairs
from kinprint.lineage.opening import labels_of
from kinprint.lineage.power import seen_from_everywhere
from kinprint.lineage.results import Settings
from kinprint.records import Verdict
from kinprint.text import Message

if TYPE_CHECKING:
    from scipy.sparse import csr_array

SHORTLIST = 8
"""How many models each is compared with at most, unless somebody asks for more or fewer; others
that are near to it may add themselves."""
LIKELY = 0.2
"""Likeness of keys from which on models are compared that are not the nearest."""
_MODELS, _PAIRS, _ASKED = 48, 24, 12  # of a piece of work
_KEPT = 4096  # models whose keys are kept in memory, 16 kilobytes each

Both = tuple[str, str]
"""Two fingerprints by their digests."""


class Piece(Struct, frozen=True):
    """Pairs that are compared together."""

    pairs: tuple[Both, ...]

    def __str__(self) -> str:
        return " ".join(dict.fromkeys(one[:12] for both in self.pairs for one in both))


class Unlinked(Struct, frozen=True):
    """Two models without a link, and from which correlation on any kind of part would have shown
    one."""

    both: Both
    effect: float | None


class Compared(Struct, frozen=True):
    """What comparing some pairs gave.

    Attributes
    ----------
    linked : the verdicts of linked pairs.
    unlinked : the others.
    failed : pairs that could not be compared, and why.
    broken : by model, why it could not be read.
    labels : what models say they are not, as replicas do.
    """

    linked: Mapping[Both, Verdict]
    unlinked: tuple[Unlinked, ...] = ()
    failed: tuple[tuple[Both, KinprintError], ...] = ()
    broken: tuple[tuple[str, KinprintError], ...] = ()
    labels: tuple[Message, ...] = ()


class Comparing(Struct, frozen=True):
    """Compares the pairs of a piece, of an atlas at a place."""

    place: str
    settings: Settings

    def __call__(self, piece: Piece) -> Compared:
        """Read each model once, and compare."""
        prints, broken = _prints(self.place, (one for both in piece.pairs for one in both))
        wanted = [both for both in piece.pairs if all(one in prints for one in both)]
        if not wanted:
            return Compared({}, broken=broken)
        with opened(prints, self.settings) as models:
            place = {name: at for at, name in enumerate(models.names)}
            lost = [(_name(one.given, prints), one.error) for one in models.read.unread]
            places = [
                (place[one], place[other])
                for one, other in wanted
                if one in place and other in place
            ]
            pairs, failed = judge_pairs(models.read, places, self.settings)
            names, labels = models.names, labels_of(models.read.checkpoints)
        return Compared(
            {
                (names[one.a], names[one.b]): one.verdict
                for one in pairs
                if one.verdict.relation.linked
            },
            tuple(
                Unlinked(
                    (names[one.a], names[one.b]),
                    seen_from_everywhere(one.verdict)[0],
                )
                for one in pairs
                if not one.verdict.relation.linked
            ),
            tuple(((names[one.a], names[one.b]), one.error) for one in failed),
            (*broken, *lost),
            labels,
        )


class Household(Struct, frozen=True):
    """Models that are asked together whom they name; of each the linked ones with their verdicts,
    of which it is the first."""

    models: tuple[tuple[str, Mapping[str, Verdict]], ...]

    def __str__(self) -> str:
        return " ".join(name[:12] for name, _ in self.models)


class Naming(Struct, frozen=True):
    """Asks models whom they name as their parents, of an atlas at a place."""

    place: str
    settings: Settings

    def __call__(self, household: Household) -> dict[str, Named]:
        """Read each model once, and choose."""
        wanted = (one for own, linked in household.models for one in (own, *linked))
        prints, _ = _prints(self.place, wanted)
        with opened(prints, self.settings) as models:
            known = set(models.names)
            return {
                own: name_parents(
                    own,
                    {name: verdict for name, verdict in linked.items() if name in known},
                    models,
                    self.settings,
                )
                for own, linked in household.models
                if own in known
            }


def candidate_pairs(
    atlas: Atlas, index: Index, allowed: NDArray[np.bool_], count: int
) -> tuple[list[tuple[int, int]], list[EntryBroken]]:
    """Pairs that are worth comparing, by the numbers of their models, and what is broken.

    Parameters
    ----------
    atlas, index : all models.
    allowed : of each model whether it takes part.
    count : how many models each is compared with at most, by its own keys.
    """
    names = index.column("id")
    faults: dict[str, EntryBroken] = {}
    allowed = allowed.copy()
    keys = lru_cache(_KEPT)(lambda at: atlas.keys(names[at]))
    few = int(allowed.sum()) <= count + 1
    found: set[tuple[int, int]] = set()
    for at in map(int, np.flatnonzero(allowed)):
        others = allowed.copy()
        others[at] = False
        try:
            near, broken = ranked(keys(at), index, count, keys, others)
        except EntryBroken as error:
            near, broken = [], [error]
        for fault in broken:
            name = str(fault.fields["entry"])
            faults[name] = fault
            allowed[names.index(name)] = False
        found |= {
            (min(at, to), max(at, to))
            for rank, (to, alike, _) in enumerate(near)
            if alike >= LIKELY or rank == 0 or few
        }
    return [both for both in sorted(found) if all(allowed[one] for one in both)], [*faults.values()]


def pieces(pairs: Sequence[tuple[int, int]], names: Sequence[str]) -> Iterator[Piece]:
    """Pairs in pieces of few models each, such that most models are in one piece alone."""
    own: list[tuple[int, int]] = []
    models: set[int] = set()
    for both in _in_order(pairs):
        if own and (len(own) == _PAIRS or len(models | set(both)) > _MODELS):
            yield Piece(tuple((names[one], names[other]) for one, other in own))
            own, models = [], set()
        own.append(both)
        models |= set(both)
    if own:
        yield Piece(tuple((names[one], names[other]) for one, other in own))


def households(linked: Mapping[str, Mapping[str, Verdict]]) -> Iterator[Household]:
    """Models with whom they are linked, in pieces of few models each; `linked` is in order."""
    own: list[tuple[str, Mapping[str, Verdict]]] = []
    models: set[str] = set()
    for name, others in linked.items():
        if own and (len(own) == _ASKED or len(models | {name, *others}) > _MODELS):
            yield Household(tuple(own))
            own, models = [], set()
        own.append((name, others))
        models |= {name, *others}
    if own:
        yield Household(tuple(own))


def groups(pairs: Iterable[tuple[int, int]], count: int) -> list[list[int]]:
    """Numbers below `count` that pairs join, directly or through others; the largest first."""
    from scipy.sparse.csgraph import connected_components

    _, labels = connected_components(_graph(list(pairs), count), directed=False)
    members: dict[int, list[int]] = {}
    for at, label in enumerate(labels.tolist()):
        members.setdefault(label, []).append(at)
    return sorted(members.values(), key=lambda one: (-len(one), one))


def _in_order(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Pairs of one group after those of another; in a large one by squares along the diagonal of
    its matrix, once its models are in an order that keeps them there (Cuthill and McKee 1969)."""
    if not pairs:
        return []
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    count = 1 + max(other for _, other in pairs)
    graph = _graph(pairs, count)
    rank = np.empty(count, np.int64)
    rank[reverse_cuthill_mckee(graph, symmetric_mode=True)] = np.arange(count)
    group = {at: number for number, some in enumerate(groups(pairs, count)) for at in some}

    def place(both: tuple[int, int]) -> tuple[int, ...]:
        squares = sorted(int(rank[one]) // (_MODELS // 2) for one in both)
        return group[both[0]], *squares, *sorted(int(rank[one]) for one in both)

    return sorted(pairs, key=place)


def _graph(pairs: Sequence[tuple[int, int]], count: int) -> csr_array:
    from scipy.sparse import coo_array

    one, other = np.array(pairs, np.int64).reshape(-1, 2).T
    rows, columns = np.concatenate([one, other]), np.concatenate([other, one])
    return coo_array((np.ones(len(rows), np.int8), (rows, columns)), (count, count)).tocsr()


def _prints(
    place: str, names: Iterable[str]
) -> tuple[dict[str, Fingerprint], tuple[tuple[str, KinprintError], ...]]:
    """Fingerprints by their digests, and why some cannot be read."""
    atlas, prints = Atlas(place), dict[str, Fingerprint]()
    broken: list[tuple[str, KinprintError]] = []
    for name in dict.fromkeys(names):
        try:
            prints[name] = atlas.read(name)
        except EntryBroken as error:
            broken.append((name, error))
    return prints, tuple(broken)


def _name(given: str, prints: Mapping[str, Fingerprint]) -> str:
    """The digest of a model that could not be read, called by it or by its own name."""
    return next((name for name, one in prints.items() if given in (name, one.ref.given)), given)
