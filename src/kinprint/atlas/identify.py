"""What is a model built on, of all models of an atlas?

Keys put the models of the atlas in an order; the first of them are compared with the model,
fingerprint against fingerprint, by the tests of a matrix. All models of the atlas were candidates,
whether they were compared or not, so every p-value is paid for as many: the chance that a test
links any stranger by accident is at most `FAMILY`.

What fingerprints leave open, whole layers may decide: if asked, some models are read again from
their files. Then every model was looked at twice at most, and every p-value is paid for that.

Which of the linked models are parents is read from likeness (`parents.py`); who came first from the
traces that `diff/direction.py` looks for.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kinprint import text
from kinprint.atlas.encoding import listing_digest
from kinprint.atlas.fingerprint import LEVEL, Fingerprint, folder_of, pinned_name
from kinprint.atlas.naming import name_parents, opened
from kinprint.atlas.parents import likeness_by_parts
from kinprint.atlas.search import Match, search
from kinprint.atlas.standing import standing_of
from kinprint.atlas.store import Atlas, Entry
from kinprint.errors import AtlasError, EntryBroken, KinprintError, attempt
from kinprint.lineage.about.claims import Claim
from kinprint.lineage.compare import compare_models
from kinprint.lineage.matrix import Teller, judge_pairs, silent
from kinprint.lineage.opening import labels_of
from kinprint.lineage.results import PairVerdict, Settings
from kinprint.reader.fetch import Fetcher
from kinprint.records import (
    ALPHA,
    TAKEN_OVER,
    DeclaredState,
    Level,
    ModelRef,
    Precedence,
    Standing,
    Step,
    Verdict,
)
from kinprint.text import Message

FAMILY = 0.01
"""The chance that a test links any stranger of an atlas."""
SHORTLIST = 24
"""How many models are compared, unless somebody asks for more or fewer."""
_QUERY = "query"


class Deep(Struct, frozen=True):
    """How many models to read again from their files, at the deep level, and by whom."""

    count: int
    fetcher: Fetcher
    base: str | None = None


class Relative(Struct, frozen=True):
    """A model of the atlas that is linked with the one asked for.

    Attributes
    ----------
    entry
        The model.
    verdict
        Their relation, as a matrix has it; the model asked for is the first.
    likeness
        Mean correlation of what is linked, times the share of parts that are.
    log10_p
        The p-value of the link, paid for all models of the atlas.
    direction
        Which came first; the model asked for is A.
    weight
        Its share in the mixture of all parents that is nearest to the model; None where numbers
        cannot be set against each other, or there is one parent alone.
    tied
        Whether it could stand in the place of the first parent: nothing tells the two apart.
    """

    entry: Entry
    verdict: Verdict
    likeness: float
    log10_p: float
    direction: Precedence = Precedence.UNDECIDED
    weight: float | None = None
    tied: bool = False


class Identified(Struct, frozen=True):
    """What a model is built on.

    Attributes
    ----------
    model
        The model asked for.
    searched
        How many models of the atlas were candidates.
    alpha
        The error of each comparison.
    parents
        Linked models that together explain it, the first one first.
    descendants
        Linked models of which traces say that they came later.
    relatives
        All other linked models, those first that nothing tells from the first parent, then the
        nearest.
    unlinked
        Models that were compared without finding a link, the most alike key first.
    declared
        Origins that the model declares, and what became of them in the atlas.
    same
        Entries of the very same model, which are no candidates.
    other_seeds
        How many models were read with other seeds, and are no candidates either.
    failed
        Models that could not be compared, and why.
    not_deep
        Models that were to be read again from their files and could not be, and why: what their
        fingerprints say stands.
    broken
        Fingerprints that are damaged.
    read_deep
        Entries whose models were read again from their files, at the deep level.
    labels
        What models that were compared say they are not, as replicas do.
    """

    model: Fingerprint
    searched: int
    alpha: float
    parents: tuple[Relative, ...] = ()
    descendants: tuple[Relative, ...] = ()
    relatives: tuple[Relative, ...] = ()
    unlinked: tuple[tuple[Entry, Verdict], ...] = ()
    declared: tuple[tuple[Claim, DeclaredState], ...] = ()
    same: tuple[Entry, ...] = ()
    other_seeds: int = 0
    failed: tuple[tuple[Entry, KinprintError], ...] = ()
    not_deep: tuple[tuple[Entry, KinprintError], ...] = ()
    broken: tuple[EntryBroken, ...] = ()
    read_deep: frozenset[str] = frozenset()
    labels: tuple[Message, ...] = ()


def identify_model(
    model: Fingerprint,
    atlas: Atlas,
    shortlist: int = SHORTLIST,
    tell: Teller = silent,
    deep: Deep | None = None,
    jobs: int = 1,
) -> Identified:
    """Say which models of an atlas a model is built on.

    Parameters
    ----------
    model
        What was read of it.
    atlas
        Where to look.
    shortlist
        How many models to compare it with.
    tell
        Told how many pairs were compared, and how long the others will take.
    deep
        Which of those about which fingerprints leave something open are read from their files.
    jobs
        How many processes may compare models side by side.
    """
    index, broken = atlas.index()
    files = listing_digest(model.sources[0].files)
    alike = [at for at, known in enumerate(index.column("files")) if known == files]
    same = [at for at in alike if _is_same(index.entry(at), model)]
    one_seed = np.array(index.column("seed"), np.int64) == model.seed
    allowed = one_seed.copy()
    allowed[same] = False
    searched = int(allowed.sum())
    matches, damaged = search(model.towers, atlas, index, shortlist, allowed)
    looks = searched * _looks(deep)
    settings = Settings(LEVEL, alpha_for(looks), seed=model.seed)
    found = Identified(
        model,
        searched,
        settings.alpha,
        same=tuple(map(index.entry, same)),
        other_seeds=int((~one_seed).sum()),
        broken=(*broken, *damaged),
    )
    found = _compared(found, atlas, matches, settings, tell, deep, jobs) if matches else found
    known = [
        ModelRef(*row)
        for row in zip(*(index.column(name) for name in ("given", "kind", "name")), strict=True)
    ]
    return replace(
        found,
        declared=tuple((claim, _state_of(claim.model, found, known)) for claim in model.claims),
    )


def alpha_for(candidates: int) -> float:
    """The error of each comparison, where so many might have been made."""
    return min(ALPHA, FAMILY / max(candidates, 1))


def _compared(
    found: Identified,
    atlas: Atlas,
    matches: Sequence[Match],
    settings: Settings,
    tell: Teller,
    deep: Deep | None,
    jobs: int,
) -> Identified:
    """The same with what comparing the model with some others gives."""
    prints: dict[str, Fingerprint] = {_QUERY: found.model}
    broken = list(found.broken)
    for match in matches:
        try:
            prints[match.entry.id] = atlas.read(match.entry.id)
        except EntryBroken as error:
            broken.append(error)
    found = replace(found, broken=tuple(broken))
    if len(prints) < 2:
        return found
    known = {match.entry.id: match for match in matches}
    with opened(prints, settings) as models:
        read, names = models.read, models.names
        if names[0] != _QUERY:  # what it failed with stands before that of others
            raise read.unread[0].error
        places = [(0, at) for at in range(1, len(names))]
        pairs, failed = judge_pairs(read, places, settings, jobs, tell, screened=False)
        entries = [known[names[pair.b]].entry for pair in pairs]
        deeper = _read_deep(prints, pairs, entries, settings, deep, tell)
        pairs = tuple(
            pair if verdict is None else replace(pair, verdict=verdict)
            for pair, verdict in zip(pairs, deeper.verdicts, strict=True)
        )
        linked = {names[pair.b]: pair for pair in pairs if pair.verdict.relation.linked}
        verdicts = {name: pair.verdict for name, pair in linked.items()}
        named = name_parents(_QUERY, verdicts, models, settings)
    paid_for = found.searched * _looks(deep)
    relatives = {
        name: _relative(known[name].entry, pair, paid_for) for name, pair in linked.items()
    }
    direct = {one.name for one in (*named.parents, *named.later)}
    tied = {one.name for one in named.tied}
    others = [
        replace(one, tied=name in tied) for name, one in relatives.items() if name not in direct
    ]
    return replace(
        found,
        parents=tuple(
            replace(relatives[one.name], direction=one.direction.answer, weight=one.weight)
            for one in named.parents
        ),
        descendants=tuple(
            replace(relatives[one.name], direction=Precedence.A_FIRST) for one in named.later
        ),
        relatives=tuple(sorted(others, key=lambda one: (not one.tied, -one.likeness))),
        unlinked=tuple(
            (known[names[pair.b]].entry, pair.verdict)
            for pair in pairs
            if not pair.verdict.relation.linked
        ),
        failed=tuple(
            [(known[names[one.b]].entry, one.error) for one in failed]
            + [
                (match.entry, one.error)
                for one in read.unread
                for match in matches
                if one.given in (match.entry.id, match.entry.ref.given)
            ]
        ),
        not_deep=deeper.failed,
        read_deep=frozenset(
            entry.id
            for entry, verdict in zip(entries, deeper.verdicts, strict=True)
            if verdict is not None
        ),
        labels=labels_of(read.checkpoints),
    )


class _Deeper(Struct, frozen=True):
    """Of each pair what its files say, None where they were not read; those that cannot be."""

    verdicts: tuple[Verdict | None, ...]
    failed: tuple[tuple[Entry, KinprintError], ...] = ()


def _looks(deep: Deep | None) -> int:
    """How often a model may be looked at, each of which is paid for."""
    return 1 if deep is None else 2


def _read_deep(
    prints: Mapping[str, Fingerprint],
    pairs: Sequence[PairVerdict],
    entries: Sequence[Entry],
    settings: Settings,
    deep: Deep | None,
    tell: Teller,
) -> _Deeper:
    """Compare a model with some others from their files, at the deep level.

    Those come first that are linked and may have been taken over, then the most alike by keys.
    """
    verdicts: dict[int, Verdict] = {}
    failed: list[tuple[Entry, KinprintError]] = []
    if deep is not None:
        left_open = [at for at, one in enumerate(pairs) if one.verdict.relation not in TAKEN_OVER]
        left_open.sort(key=lambda at: not pairs[at].verdict.relation.linked)
        asked = Settings(Level.DEEP, settings.alpha, seed=settings.seed, base=deep.base)
        chosen = left_open[: deep.count]
        for number, at in enumerate(chosen, 1):
            tell(Step.READING, entries[at].ref.name, number, len(chosen))
            other = prints[entries[at].id]
            found = attempt(_from_files, prints[_QUERY], other, deep.fetcher, asked)
            if isinstance(found, KinprintError):
                failed.append((entries[at], found))
            else:
                verdicts[at] = found
    return _Deeper(tuple(verdicts.get(at) for at in range(len(pairs))), tuple(failed))


def _from_files(
    model: Fingerprint, other: Fingerprint, fetcher: Fetcher, settings: Settings
) -> Verdict:
    """The verdict of the files of two models; an error where those of the other are not what its
    fingerprint was made from: they would be another model under its name."""
    source = fetcher.open(pinned_name(other.ref))
    fetcher.register(source)
    if standing_of(other, source, whole=True) is not Standing.RIGHT:
        raise AtlasError(cause=text.message("cause.atlas.other-files"))
    names = pinned_name(model.ref), pinned_name(other.ref)
    return compare_models(*names, fetcher, settings, details=False).verdict


def _relative(entry: Entry, pair: PairVerdict, paid_for: int) -> Relative:
    paid = pair.verdict.log10_p + math.log10(max(paid_for, 1))
    return Relative(entry, pair.verdict, likeness_by_parts(pair.verdict), min(paid, 0.0))


def is_named(claim: str, ref: ModelRef) -> bool:
    """Whether a claim names a model: its repository, or the end of the folder's path."""
    claim, path = claim.rstrip("/"), ref.name.rstrip("/")
    return claim in (path, ref.given) or (ref.kind == "local" and path.endswith(f"/{claim}"))


def may_be_named(claim: str, ref: ModelRef) -> bool:
    """Whether a claim may name a model: it may be the one in a folder of the last name alone.

    That is enough for an agreement where the two are linked, and for nothing else.
    """
    last = [one.rstrip("/").rpartition("/")[2] for one in (claim, ref.name)]
    return is_named(claim, ref) or (ref.kind == "local" and last[0] == last[1])


def _state_of(claim: str, found: Identified, known: Iterable[ModelRef]) -> DeclaredState:
    linked = (*found.parents, *found.descendants, *found.relatives)
    if any(may_be_named(claim, one.entry.ref) for one in linked):
        return DeclaredState.LINKED
    if any(is_named(claim, entry.ref) for entry, _ in found.unlinked):
        return DeclaredState.UNLINKED
    if any(is_named(claim, ref) for ref in known):
        return DeclaredState.NOT_COMPARED
    return DeclaredState.NOT_IN_ATLAS


def _is_same(entry: Entry, model: Fingerprint) -> bool:
    """Whether an entry with the same files is the model asked for, and no copy of it."""
    own, theirs = model.ref, entry.ref
    if (own.kind, own.commit, own.path) != (theirs.kind, theirs.commit, theirs.path):
        return False
    if own.kind == "local":
        return folder_of(own) == folder_of(theirs)
    return own.name == theirs.name
