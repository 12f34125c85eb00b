"""The verbs compare and matrix: rooms put together, from names of models to a verdict.

Reading goes stage by stage. The share of error that each stage may spend is fixed before the
first weight is read, so stopping when the answer is clear costs no validity: with shares w of
the stages, every p/w is valid whichever stage is the last, and that of the last one is told.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from itertools import combinations

from kinprint.errors import BadOption
from kinprint.lineage.about.configuration import side_by_side
from kinprint.lineage.about.description import (
    Background,
    Description,
    backgrounds,
    common_tokens,
    describe,
)
from kinprint.lineage.battery import Pair, Side, examine, face, gather_evidence, menu
from kinprint.lineage.charge import Charge
from kinprint.lineage.controls import Control, calibrated
from kinprint.lineage.families import family_tree, likeness_of
from kinprint.lineage.identity import SAME_FILES, same_files, same_numbers
from kinprint.lineage.many_pairs import run_pairs
from kinprint.lineage.opening import (
    ReadModels,
    open_all,
    open_readable,
    read_readable,
    sampler_of,
    understand,
)
from kinprint.lineage.reading.sampler import Sampler
from kinprint.lineage.results import Comparison, Matrix, PairVerdict, Prospect, Settings
from kinprint.lineage.sharing.map import map_shared, norm_likenesses
from kinprint.lineage.verdict import decide
from kinprint.model.meaning import Model
from kinprint.model.tokens import Vocabulary
from kinprint.nulls.combination import equal_weights
from kinprint.reader.checkpoint import Checkpoint
from kinprint.reader.fetch import Fetcher
from kinprint.records import Evidence, Verdict
from kinprint.workers import calm_algebra

_CLEAR = ("identical", "derived")
_DOUBTS = {"layers-not-read", "learnt-likely"}  # reasons that more reading may settle


def compare_models(
    a: str, b: str, fetcher: Fetcher, settings: Settings, controls: Sequence[str] = ()
) -> Comparison:
    """Say how two models are related, reading as little as makes it clear.

    `controls` are models known to be unrelated to both and to each other; they calibrate
    what has no exact null and never change what has one.
    """
    checkpoints = open_all([a, b, *controls], fetcher, settings)
    pair = checkpoints[:2]
    with backgrounds(pair, settings.budget) as beside:
        if same_files(*pair):
            found = Comparison(
                pair[0].ref,
                pair[1].ref,
                settings,
                _identical(settings.alpha),
                (SAME_FILES,),
                fetcher.spent,
                _charge(settings),
                strangers=tuple(controls),
                labels=_labels(checkpoints),
            )
            return _described(found, pair, (None, None), (None, None), beside)
        models = understand(checkpoints, settings)
        sampler = sampler_of(models, settings)
        with _algebra(settings):
            judged = _in_stages(sampler, settings, bool(controls))
            shared = map_shared(judged.pair, judged.sides[0], judged.evidence, judged.charge)
        found = Comparison(
            pair[0].ref,
            pair[1].ref,
            settings,
            judged.verdict,
            judged.evidence,
            fetcher.spent,
            judged.charge,
            (judged.stages, sampler.stages),
            sampler.plan.bytes,
            sampler.plan.left_out,
            _notes(sampler, checkpoints),
            _labels(checkpoints),
            judged.controls,
            tuple(controls),
            shared=shared,
            norms=norm_likenesses(*judged.sides),
        )
        words = sampler.vocabularies
        return _described(found, pair, models[:2], words[:2], beside)


def compare_all(
    given: Sequence[str], fetcher: Fetcher, settings: Settings, jobs: int = 1
) -> Matrix:
    """Say how all pairs of models are related; each is read once, pairs in `jobs` processes.

    Models that cannot be opened or read are set aside, as long as two remain.
    """
    if len(given) < 2:
        raise BadOption(option="MODEL", value=" ".join(given), cause="a matrix takes two or more")
    opened, unread = open_readable(given, fetcher, settings)
    with backgrounds(opened, settings.budget) as started:
        beside = {id(one): told for one, told in zip(opened, started, strict=True)}
        read = read_readable(opened, settings, unread)
        refs = tuple(one.ref for one in read.checkpoints)
        with _algebra(settings):
            pairs = _judge_pairs(read, settings, jobs)
        likeness = {(one.a, one.b): one.likeness for one in pairs}
        order, tree = family_tree(refs, likeness)
        words = read.sampler.vocabularies
        subjects = tuple(
            describe(one, read.models[at], words[at], beside[id(one)])
            for at, one in enumerate(read.checkpoints)
        )
    return Matrix(
        refs,
        settings,
        pairs,
        fetcher.spent,
        _notes(read.sampler, read.checkpoints),
        _labels(read.checkpoints),
        subjects,
        order,
        tree,
        tuple(sorted(read.unread, key=lambda one: given.index(one.given))),
    )


def foresee(given: Sequence[str], fetcher: Fetcher, settings: Settings) -> Prospect:
    """What comparing models would cost; headers are read to know it, and no weight.

    Cards and commits are read as a comparison does, so that nothing is left that a plan does
    not tell.
    """
    checkpoints = open_all(given, fetcher, settings)
    refs = tuple(one.ref for one in checkpoints)
    with backgrounds(checkpoints, settings.budget) as beside:
        if len(given) == 2 and same_files(*checkpoints):
            found = Prospect(refs, settings, (), 0)
        else:
            sampler = sampler_of(understand(checkpoints, settings), settings)
            plan = sampler.plan
            found = Prospect(refs, settings, sampler.costs(), plan.bytes, plan.left_out)
        for told in beside:
            told.result()
    return found


@dataclass(frozen=True, slots=True)
class _Judged:
    """Where stages have ended: the sides of the pair, and what was found up to there."""

    sides: tuple[Side, Side]
    pair: Pair
    verdict: Verdict
    evidence: tuple[Evidence, ...]
    stages: int
    charge: Charge
    controls: tuple[Control, ...] = ()


def _in_stages(sampler: Sampler, settings: Settings, controlled: bool) -> _Judged:
    """Read and test until the answer is clear; with controls everything is read at once."""
    shares = equal_weights(1 if controlled else sampler.stages)
    sides: list[Side] = []
    judged: _Judged | None = None
    for number, share in enumerate(shares, 1):
        done = sampler.stages if controlled else number
        samples = sampler.samples(done - 1)
        before: Sequence[Side | None] = sides or [None] * len(samples)
        sides = [examine(one, early) for one, early in zip(samples, before, strict=True)]
        pair = face(*sides[:2], seed=settings.seed, level=settings.level)
        evidence = gather_evidence(pair)
        controls: tuple[Control, ...] = ()
        if controlled:
            controls, extra = calibrated(sides, settings.seed, settings.level, evidence)
            evidence += extra
        equal = all(sampler.plan.whole[:2]) and same_numbers(*samples[:2])
        charge = _charge(settings, share)
        verdict = decide(evidence, charge, identical=equal)
        judged = _Judged((sides[0], sides[1]), pair, verdict, evidence, done, charge, controls)
        if verdict.relation in _CLEAR and not _DOUBTS & set(verdict.reasons):
            break
    assert judged is not None
    return judged


def _algebra(settings: Settings) -> AbstractContextManager[None]:
    """How products of matrices use the cores: all of them where the matrices are large."""
    return nullcontext() if settings.level == "deep" else calm_algebra()


def _judge_pairs(read: ReadModels, settings: Settings, jobs: int) -> tuple[PairVerdict, ...]:
    checkpoints, samples = read.checkpoints, read.samples
    pairs = list(combinations(range(len(checkpoints)), 2))
    copies = {pair for pair in pairs if same_files(*(checkpoints[at] for at in pair))}
    told = [pair for pair in pairs if pair not in copies]
    found = run_pairs(samples, told, settings.seed, settings.level, jobs)
    evidence = dict(zip(told, found, strict=True))
    charge = _charge(settings)
    verdicts: list[PairVerdict] = []
    for pair in pairs:
        if pair in copies:
            verdicts.append(PairVerdict(*pair, _identical(settings.alpha), (SAME_FILES,), 1.0))
            continue
        equal = all(read.sampler.plan.whole[at] for at in pair)
        equal = equal and same_numbers(*(samples[at] for at in pair))
        verdict = decide(evidence[pair], charge, identical=equal)
        likeness = likeness_of(verdict, evidence[pair], charge)
        verdicts.append(PairVerdict(*pair, verdict, evidence[pair], likeness))
    return tuple(verdicts)


def _described(
    found: Comparison,
    pair: Sequence[Checkpoint],
    models: Sequence[Model | None],
    words: Sequence[Vocabulary | None],
    beside: Sequence[Future[Background]],
) -> Comparison:
    """The comparison with what both models say about themselves, and what all of it cost."""
    subjects: list[Description] = []
    configs = []
    for checkpoint, model, vocabulary, told in zip(pair, models, words, beside, strict=True):
        subjects.append(describe(checkpoint, model, vocabulary, told))
        metadata = None if model is None else model.metadata
        configs.append((checkpoint.config, metadata))
    return replace(
        found,
        subjects=tuple(subjects),
        configuration=side_by_side(configs[0], configs[1]),
        tokens=common_tokens(*words),
        cost=pair[0].fetcher.spent,
    )


def _charge(settings: Settings, stage: float = 1.0) -> Charge:
    return Charge.for_menu(menu(settings.level), settings.alpha, stage)


def _identical(alpha: float) -> Verdict:
    return Verdict("identical", SAME_FILES.log10_p, alpha, reasons=("same-files",))


def _notes(sampler: Sampler, checkpoints: Sequence[Checkpoint]) -> tuple[str, ...]:
    found = [note for one in sampler.towers for note in one.notes]
    found += [f"{one.ref.name}: {note}" for one in checkpoints for note in one.notes]
    return tuple(dict.fromkeys(found))


def _labels(checkpoints: Sequence[Checkpoint]) -> tuple[str, ...]:
    found = (f"{one.ref.name}: {text}" for one in checkpoints for text in one.labels)
    return tuple(dict.fromkeys(found))
