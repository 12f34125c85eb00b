"""All pairs of some models: each model is read once, and no failure takes the others with it.

A model that cannot be opened or read, and a pair whose tests fail, are set aside with the error;
the rest goes on. Pairs are compared side by side in processes where that is quicker, and at length
where something calls for it (`screening.py`).
"""

from __future__ import annotations

import functools
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from itertools import combinations
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from kinprint import text
from kinprint.errors import BadOption, KinprintError, attempt
from kinprint.lineage.about.description import (
    Background,
    Description,
    describe,
    reading_backgrounds,
)
from kinprint.lineage.battery import gather_evidence
from kinprint.lineage.charge import false_links
from kinprint.lineage.compare import algebra_for, charge_of
from kinprint.lineage.families import family_tree, likeness_of
from kinprint.lineage.identity import SAME_FILES, same_files, same_files_verdict
from kinprint.lineage.lone_towers import ModelTowers, lone_towers
from kinprint.lineage.opening import (
    ReadModels,
    labels_of,
    note_about,
    open_readable,
    read_readable,
    reading_notes,
)
from kinprint.lineage.pair import Pair
from kinprint.lineage.parts.findings import Sharing
from kinprint.lineage.parts.survey import find_sharing
from kinprint.lineage.reading.sample import Sample
from kinprint.lineage.results import FailedPair, Matrix, PairVerdict, Settings
from kinprint.lineage.screening import (
    Digest,
    digest,
    have_likes,
    quick_evidence,
    worth_comparing,
)
from kinprint.lineage.side import ChannelFindings, Side
from kinprint.lineage.towers import TowerEvidence, compared_towers, joined_verdict, same_towers
from kinprint.lineage.verdict import decide
from kinprint.mapped import Shared, Shelf, let_go, shelf
from kinprint.model.opening import need_adapter
from kinprint.reader.fetch import Fetcher
from kinprint.records import Evidence, Step, VerdictReason
from kinprint.text import Message
from kinprint.workers import workers

_WORTH_PROCESSES = 12  # pairs from which on starting processes pays
_WORTH_TELLING = 5.0  # seconds after which the pace of comparing is known
_TILE = 16  # models whose pairs are compared one after another
_PREPARED_BYTES = 64_000_000  # of samples whose models stay prepared for all tests

Places = tuple[int, int]
Towers = tuple[Sample, ...]
Meeting = Mapping[Places, tuple[Places, ...]]
"""By pair, the places of the towers that meet."""


class PairEvidence(Struct, frozen=True):
    """What was found, by towers that meet; the main ones come first.

    `screened` says that nothing called for all tests, so that those of norms alone were run.
    """

    towers: tuple[TowerEvidence, ...]
    screened: bool = False


Teller = Callable[[Step, str, int, int], None]
"""Takes a step, how long it will take, and which of how many it is."""


def silent(step: Step, what: str, number: int, count: int) -> None:
    """Nobody shows progress."""


def compare_all(
    given: Sequence[str],
    fetcher: Fetcher,
    settings: Settings,
    jobs: int = 1,
    tell: Teller = silent,
    *,
    screened: bool = True,
) -> Matrix:
    """Say how all pairs of models are related.

    Parameters
    ----------
    given
        The models. Those that cannot be opened or read are set aside, as long as two remain.
    fetcher
        Reads, within its budget.
    settings
        How much to read, how sure to be.
    jobs
        How many processes may compare pairs side by side.
    tell
        Told how many pairs were compared, and how long the others will take.
    screened
        Whether pairs that nothing calls for are spared all tests but those of norms.
    """
    if len(given) < 2:
        cause = text.message("cause.option.two-models")
        raise BadOption(option="models", value=" ".join(given), cause=cause)
    opened, unread = open_readable(given, fetcher, settings)
    with (
        reading_backgrounds(opened, settings.budget, hashes=False) as started,
        shelf() as place,
    ):
        read = read_readable(opened, settings, unread, place)
        if not read.unread:  # one that could not be read may be the adapter
            need_adapter(read.models, settings.base)
        with algebra_for(settings.level):
            places = list(combinations(range(len(read.checkpoints)), 2))
            screened &= len(places) > 1  # of one pair, as compare has it, nothing is spared
            pairs, failed = judge_pairs(read, places, settings, jobs, tell, screened=screened)
        models = tuple(checkpoint.ref for checkpoint in read.checkpoints)
        order, tree = family_tree(
            models,
            {(pair.a, pair.b): pair.likeness for pair in pairs},
            {(pair.a, pair.b) for pair in pairs if pair.verdict.relation.linked},
        )
        background = {id(one): told for one, told in zip(opened, started, strict=True)}
        subjects, notes = _descriptions(read, background)
    return Matrix(
        models,
        settings,
        pairs,
        fetcher.spent,
        (*reading_notes(read.sampler, read.checkpoints), *notes),
        labels_of(read.checkpoints),
        subjects,
        order,
        tree,
        tuple(sorted(read.unread, key=lambda model: given.index(model.given))),
        failed,
        read.sampler.read,
        false_links(settings.alpha, [len(pair.verdict.parts) for pair in pairs]),
    )


def judge_pairs(
    read: ReadModels,
    places: Sequence[Places],
    settings: Settings,
    jobs: int = 1,
    tell: Teller = silent,
    *,
    screened: bool = True,
) -> tuple[tuple[PairVerdict, ...], tuple[FailedPair, ...]]:
    """The verdicts of some pairs, by the places of their models, and the pairs that have none."""
    verdicts: dict[Places, PairVerdict | KinprintError] = {}
    tested: list[Places] = []
    for pair in places:
        equal = attempt(same_files, *(read.checkpoints[at] for at in pair))
        if isinstance(equal, KinprintError):
            verdicts[pair] = equal
        elif equal:
            verdict = same_files_verdict(settings.alpha)
            verdicts[pair] = PairVerdict(*pair, verdict, (SAME_FILES,), 1.0)
        else:
            tested.append(pair)
    meeting = {pair: read.sampler.tower_pairs(*pair) for pair in tested}
    outcomes = run_pairs(read.stored, tested, settings, jobs, meeting, tell, screened=screened)
    for pair, evidence in zip(tested, outcomes, strict=True):
        if isinstance(evidence, KinprintError):
            verdicts[pair] = evidence
        else:
            verdicts[pair] = attempt(_judge, read, pair, evidence, settings)
    ordered = [(pair, verdicts[pair]) for pair in places]
    return (
        tuple(verdict for _, verdict in ordered if isinstance(verdict, PairVerdict)),
        tuple(
            FailedPair(*pair, error) for pair, error in ordered if isinstance(error, KinprintError)
        ),
    )


def _judge(
    read: ReadModels, pair: Places, evidence: PairEvidence, settings: Settings
) -> PairVerdict:
    ours, theirs = (read.samples[at] for at in pair)
    places = read.sampler.tower_pairs(*pair)
    whole = all(read.sampler.whole[at] for at in pair)
    charge = charge_of(settings, 1 / len(places))
    main, *besides = evidence.towers
    labels = [(ours[at].tower, theirs[to].tower) for at, to in places[1:]]
    towers = compared_towers(labels, besides, charge)
    equal = whole and same_towers(ours, theirs) and all(map(read.sampler.covered, pair))
    tests, sharing = main
    decided = decide(tests, charge, sharing, identical=equal)
    known = [ModelTowers(read.samples[at], read.sampler.unclaimed(at)) for at in pair]
    verdict = joined_verdict(decided, sharing, towers, lone_towers(known[0], known[1], places))
    if evidence.screened:
        amount = replace(verdict.amount, read=min(_share_read(ours), _share_read(theirs)))
        # What a test of norms would have seen says nothing of the rest of what was read.
        verdict = replace(verdict, amount=amount, reasons=(VerdictReason.SHORT_LOOK,), power=())
    return PairVerdict(*pair, verdict, tests, likeness_of(verdict), towers)


def _share_read(towers: Towers) -> float:
    """The share of a model's weights that was read."""
    extents = [extent for tower in towers for extent in tower.parts.values()]
    return sum(one.read for one in extents) / max(sum(one.weights for one in extents), 1)


def run_pairs(
    samples: Sequence[Shared],
    pairs: Sequence[Places],
    settings: Settings,
    jobs: int = 1,
    meeting: Meeting | None = None,
    tell: Teller = silent,
    *,
    screened: bool = True,
) -> list[PairEvidence | KinprintError]:
    """The evidence of each pair, or the error that ended its tests.

    Samples, by model those of its towers, are mapped by whoever compares it, and so is what it is
    screened by. If a process dies, what all of them had not finished is done in this one.
    `meeting` are the towers that meet in each pair; the main ones alone where it is None.
    """
    meeting = dict.fromkeys(pairs, ((0, 0),)) if meeting is None else meeting
    battery = _Battery(samples, settings, meeting, screened)
    clock = Clock(len(pairs), tell)
    found: dict[Places, PairEvidence | KinprintError] = {}
    with shelf() as place:
        if jobs > 1 and len(pairs) >= _WORTH_PROCESSES:
            from concurrent.futures.process import BrokenProcessPool

            with suppress(BrokenProcessPool):
                for chunk, outcome in _in_processes(battery, pairs, jobs, place):
                    if isinstance(outcome, KinprintError):
                        found |= dict.fromkeys(chunk, outcome)
                    else:
                        found |= zip(chunk, outcome, strict=True)
                    clock.done(len(chunk))
        rest = [pair for pair in battery.in_order(pairs) if pair not in found]
        if rest and screened:
            battery.know([place.put(battery.look_at(at)) for at in range(len(samples))])
        for pair, evidence in battery.evidence(rest):
            found[pair] = evidence
            clock.done(1)
    return [found[pair] for pair in pairs]


def _in_processes(
    battery: _Battery, pairs: Sequence[Places], jobs: int, place: Shelf
) -> Iterator[tuple[list[Places], list[PairEvidence | KinprintError] | KinprintError]]:
    """Pairs compared side by side, some at a time."""
    ordered = battery.in_order(pairs)
    step = max(min(len(pairs) // (_TILE * jobs), _TILE**2), 1)
    chunks = [ordered[at : at + step] for at in range(0, len(ordered), step)]
    with workers(jobs, _start_process, (place.put(battery),)) as pool:
        models = range(battery.models if battery.screened else 0)
        looks = deque(pool.submit(_look_in_process, at) for at in models)
        known = []
        while looks:  # none is held longer than it takes to put it away
            known.append(place.put(_outcome(looks.popleft())))
        told = place.put(known)
        outcomes = deque(pool.submit(_run_in_process, told, chunk) for chunk in chunks)
        for chunk in chunks:
            yield chunk, _outcome(outcomes.popleft())


def _outcome(future: Future[Any]) -> Any:
    """What a process found, or what went wrong with it; raises where one has died."""
    from concurrent.futures.process import BrokenProcessPool

    error = future.exception()
    if isinstance(error, BrokenProcessPool):
        raise error
    return attempt(future.result)


class Clock:
    """Tells how many pairs were compared, and how long the others will take at that pace."""

    def __init__(self, count: int, tell: Teller) -> None:
        self._count, self._tell, self._done = count, tell, 0
        self._began = time.monotonic()

    def done(self, number: int) -> None:
        """So many more were compared."""
        self._done += number
        taken = time.monotonic() - self._began
        if taken < _WORTH_TELLING:
            return
        left = taken / self._done * (self._count - self._done)
        minutes, seconds = divmod(round(left), 60)
        self._tell(Step.COMPARING, f"{minutes}:{seconds:02}", self._done, self._count)


class _Known(Struct, frozen=True):
    """What is found of a model once, for the short looks at all of its pairs.

    `channels` has what the tests of norms ask of each of its towers.
    """

    digest: Digest
    channels: tuple[ChannelFindings, ...]


class _Battery:
    """Models that are prepared when a pair asks for them, and the tests of pairs of them.

    How many stay prepared depends on their size, so that many models, or large ones, take no more
    memory than few. For a short look none is prepared as a whole again.
    """

    def __init__(
        self, samples: Sequence[Shared], settings: Settings, meeting: Meeting, screened: bool
    ) -> None:
        self._samples, self._settings, self._meeting = samples, settings, meeting
        self.screened = screened
        largest = max(sample.nbytes for sample in samples)
        self._kept = min(max(_PREPARED_BYTES // largest, 2), 2 * _TILE)
        self._looks: Sequence[Shared] = ()
        self._whole = functools.lru_cache(self._kept)(self._prepared)
        self._quick = functools.lru_cache(2 * _TILE)(self._with_channels)
        self._known = functools.lru_cache(2 * _TILE)(self._load_known)

    def __reduce__(self) -> tuple[type[_Battery], tuple[object, ...]]:
        return _Battery, (self._samples, self._settings, self._meeting, self.screened)

    @property
    def models(self) -> int:
        """How many models there are."""
        return len(self._samples)

    def in_order(self, pairs: Sequence[Places]) -> list[Places]:
        """Pairs in squares of models that can stay prepared together."""

        def square(pair: Places) -> tuple[int, ...]:
            return tuple(at // size for size in (_TILE, self._kept // 2) for at in pair)

        return sorted(pairs, key=square)

    def look_at(self, at: int) -> _Known | KinprintError:
        """What short looks at a model's pairs need of it."""

        def found() -> _Known:
            sides = self._whole(at)
            channels = tuple(side.channel_findings for side in sides)
            return _Known(digest(sides[0].prepared), channels)

        known = attempt(found)
        let_go()
        return known

    def know(self, looks: Sequence[Shared]) -> None:
        """Take over where to find what was seen of each model."""
        self._looks = looks

    def evidence(
        self, pairs: Sequence[Places]
    ) -> Iterator[tuple[Places, PairEvidence | KinprintError]]:
        """What the tests give for pairs, by the places of their models, or why they failed."""
        for start in range(0, len(pairs), _TILE**2):
            some = pairs[start : start + _TILE**2]
            likes = functools.cache(functools.partial(self._likes, some))
            for pair in some:
                known = [self._known(at) for at in pair if self.screened]
                lost = [one for one in known if isinstance(one, KinprintError)]
                yield pair, lost[0] if lost else attempt(self._run, pair, likes)

    def _likes(self, pairs: Sequence[Places], other: int) -> frozenset[int]:
        """Models that meet another in some of the pairs, and have likes of some rows there."""
        there = self._known(other)
        places = [at for pair in pairs if other in pair for at in pair if at != other]
        known = {at: one.digest for at in places if isinstance(one := self._known(at), _Known)}
        if not isinstance(there, _Known):
            return frozenset()
        found = have_likes(list(known.values()), there.digest)
        return frozenset(at for at, likes in zip(known, found, strict=True) if likes)

    def _load_known(self, at: int) -> _Known | KinprintError:
        found: _Known | KinprintError = self._looks[at].load()
        return found

    def _run(self, places: Places, likes: Callable[[int], frozenset[int]]) -> PairEvidence:
        towers = self._meeting[places]
        if self.screened and len(towers) == 1 and not self._calls_for_all(places, likes):
            ((at, to),) = towers
            one, other = (self._quick(place) for place in places)
            quick = quick_evidence(self._pair(one[at], other[to]))
            if quick is not None:
                return PairEvidence(((_in_short(quick), Sharing()),), screened=True)
        charge = charge_of(self._settings, 1 / len(towers))
        one, other = (self._whole(place) for place in places)
        found: list[TowerEvidence] = []
        for at, to in towers:
            pair = self._pair(one[at], other[to])
            evidence = gather_evidence(pair)
            sharing = find_sharing(pair, one[at], evidence, charge)
            found.append((_in_short(evidence) if self.screened else evidence, sharing))
        let_go()
        return PairEvidence(tuple(found))

    def _calls_for_all(self, places: Places, likes: Callable[[int], frozenset[int]]) -> bool:
        """Whether the short look at two models calls for all tests."""
        a, b = places
        first, second = (self._known(at) for at in places)
        assert isinstance(first, _Known) and isinstance(second, _Known)
        return worth_comparing(
            first.digest, second.digest, likes=lambda: a in likes(b) or b in likes(a)
        )

    def _pair(self, one: Side, other: Side) -> Pair:
        return Pair(
            one, other, seed=self._settings.seed, level=self._settings.level, pictures=False
        )

    def _with_channels(self, at: int) -> list[Side]:
        let_go()  # digests that were looked at stay mapped, each as long as its model
        known = self._known(at)
        assert isinstance(known, _Known)
        return list(map(Side.with_channels, self._samples[at].load(), known.channels))

    def _prepared(self, at: int) -> list[Side]:
        sides = [Side(sample) for sample in self._samples[at].load()]
        let_go()
        return sides


def _in_short(evidence: Sequence[Evidence]) -> tuple[Evidence, ...]:
    """Evidence without the null it is told beside, which only the page of a pair shows."""
    return tuple(replace(one, null=()) for one in evidence)


_of_this_process: _Battery | None = None


def _start_process(given: Shared) -> None:
    global _of_this_process
    _of_this_process = given.load()


def _look_in_process(at: int) -> _Known | KinprintError:
    assert _of_this_process is not None
    return _of_this_process.look_at(at)


def _run_in_process(known: Shared, pairs: Sequence[Places]) -> list[PairEvidence | KinprintError]:
    assert _of_this_process is not None
    _of_this_process.know(known.load())
    return [found for _, found in _of_this_process.evidence(pairs)]


def _descriptions(
    read: ReadModels, background: Mapping[int, Future[Background]]
) -> tuple[tuple[Description, ...], tuple[Message, ...]]:
    """What each model says about itself, and notes on those of which that cannot be told."""
    descriptions: list[Description] = []
    notes: list[Message] = []
    for checkpoint, model, vocabulary in zip(
        read.checkpoints, read.models, read.sampler.vocabularies, strict=True
    ):
        found = attempt(describe, checkpoint, model, vocabulary, background[id(checkpoint)])
        if isinstance(found, KinprintError):
            notes.append(note_about(checkpoint.ref.name, found.message))
            found = Description()
        descriptions.append(found)
    return tuple(descriptions), tuple(notes)
