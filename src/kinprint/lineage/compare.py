"""One pair: from the names of two models to a verdict, read in stages.

The share of the error that each stage may spend is fixed before the first weight is read
(`charge.py`), so that stopping when the answer is clear costs no validity: the evidence that
counts is that of the last stage read, and it pays for all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kinprint.algebra import busy_algebra, calm_algebra
from kinprint.errors import BudgetExceeded
from kinprint.lineage.about.configuration import compare_configurations
from kinprint.lineage.about.description import (
    Background,
    common_tokens,
    describe,
    reading_backgrounds,
)
from kinprint.lineage.battery import gather_evidence
from kinprint.lineage.charge import Charge
from kinprint.lineage.identity import SAME_FILES, same_files, same_files_verdict
from kinprint.lineage.kind import only_equal
from kinprint.lineage.lone_towers import ModelTowers, lone_towers
from kinprint.lineage.opening import (
    labels_of,
    open_all,
    opening_notes,
    read_headers,
    reading_notes,
    sampler_of,
)
from kinprint.lineage.pair import Pair
from kinprint.lineage.parts.survey import find_sharing
from kinprint.lineage.reading.levels import level_plan
from kinprint.lineage.reading.sample import Sample
from kinprint.lineage.reading.sampler import Sampler
from kinprint.lineage.results import Comparison, Material, Settings
from kinprint.lineage.side import Side
from kinprint.lineage.stopping import stopped_evidence, stopped_verdict
from kinprint.lineage.tests.menu import menu
from kinprint.lineage.towers import (
    TowerComparison,
    compared_towers,
    joined_verdict,
    same_towers,
)
from kinprint.lineage.verdict import decide
from kinprint.mapped import arrays_on_disk
from kinprint.model.model import Model
from kinprint.model.opening import need_adapter
from kinprint.model.tokens import Vocabulary
from kinprint.nulls.combination import equal_weights
from kinprint.reader.checkpoint import Checkpoint
from kinprint.reader.fetch import Fetcher
from kinprint.records import CLEAR_ANSWERS, Evidence, Level, Relation, Verdict

if TYPE_CHECKING:
    from kinprint.lineage.controls import Control
    from kinprint.lineage.sharing.map import LayerMap, NormLikeness


def compare_models(
    a: str,
    b: str,
    fetcher: Fetcher,
    settings: Settings,
    controls: Sequence[str] = (),
    *,
    hashes: bool = True,
    details: bool = True,
    beside: int = 0,
) -> Comparison:
    """Say how two models are related, reading as little as makes it clear.

    Parameters
    ----------
    a, b
        The models; their order makes no difference to what is found.
    fetcher
        Reads, within its budget.
    settings
        How much to read, how sure to be.
    controls
        Models known to be unrelated to both and to each other. They calibrate what has no exact
        null, and never change what has one.
    hashes
        Whether to hash weight files on this machine meanwhile, unless there is a budget.
    details
        Whether to map where the shared weights are, to compare norms as disputes did, and to draw
        samples of the nulls: what pages and files show, and nothing is decided by.
    beside
        How many other models are read within the same budget.
    """
    checkpoints = open_all([a, b, *controls], fetcher, settings)
    return compare_opened(
        checkpoints, settings, controls, hashes=hashes, details=details, beside=beside
    )


def compare_opened(
    checkpoints: Sequence[Checkpoint],
    settings: Settings,
    controls: Sequence[str] = (),
    *,
    hashes: bool = True,
    details: bool = True,
    beside: int = 0,
) -> Comparison:
    """The same for models that are open: two, then the controls that were given by these names."""
    pair, fetcher = checkpoints[:2], checkpoints[0].fetcher
    with reading_backgrounds(pair, settings.budget, hashes) as started:
        if same_files(*pair):
            identical = Comparison(
                pair[0].ref,
                pair[1].ref,
                settings,
                same_files_verdict(settings.alpha),
                (SAME_FILES,),
                fetcher.spent,
                charge_of(settings),
                strangers=tuple(controls),
                notes=opening_notes(checkpoints),
                labels=labels_of(checkpoints),
            )
            return _described(identical, pair, (None, None), (None, None), started)
        models = read_headers(checkpoints, settings, beside)
        need_adapter(models, settings.base, pair=True)
        sampler = sampler_of(models, settings, beside)
        with algebra_for(settings.level):
            outcome = _read_in_stages(sampler, settings, bool(controls), details)
            if outcome.verdict.relation is Relation.UNTESTABLE:
                from kinprint.lineage.contents import same_contents

                left = _bytes_left(settings, sampler)
                with suppress(BudgetExceeded):  # of a budget that was given
                    same = same_contents(models[0], models[1], settings.alpha, left)
                    outcome = outcome if same is None else replace(outcome, verdict=same)
            shared, norms = _shared(outcome) if details else (None, ())
        comparison = Comparison(
            pair[0].ref,
            pair[1].ref,
            settings,
            outcome.verdict,
            outcome.evidence,
            fetcher.spent,
            outcome.charge,
            (outcome.stages, sampler.stages),
            max(sampler.bytes, fetcher.spent.bytes),
            sampler.left_out,
            reading_notes(sampler, checkpoints),
            labels_of(checkpoints),
            outcome.controls,
            tuple(controls),
            towers=outcome.towers,
            read=sampler.read[:2],
            shared=shared,
            norms=norms,
            material=Material(
                (models[0], models[1]),
                (outcome.sides[0].prepared.stored, outcome.sides[1].prepared.stored),
            ),
        )
        return _described(comparison, pair, models[:2], sampler.vocabularies[:2], started)


def charge_of(settings: Settings, stage: float = 1.0) -> Charge:
    """What tests pay in a comparison at a level, where a stage has this share of the error."""
    return Charge.for_menu(menu(settings.level), settings.alpha, stage)


@contextmanager
def algebra_for(level: Level) -> Iterator[None]:
    """How products of matrices use the cores: all of them where the matrices are large.

    Large ones are on disk as long as nobody looks at them.
    What is too large or no number gives a result that is none, and tests say so.
    """
    with (
        arrays_on_disk(frugal=level is Level.DEEP),
        busy_algebra() if level is Level.DEEP else calm_algebra(),
        np.errstate(over="ignore", invalid="ignore", divide="ignore"),
    ):
        yield


def _bytes_left(settings: Settings, sampler: Sampler) -> int | None:
    """What the budgets of the level and of the user leave, wherever the models lie.

    What was read before costs as much: an answer does not depend on what a cache holds.
    """
    limits = (settings.budget, level_plan(settings.level).budget)
    known = [limit for limit in limits if limit is not None]
    return min(known) - sampler.bytes if known else None


class _Outcome(Struct, frozen=True):
    """What was found when reading ended: after how many stages, of which sides, at what charge."""

    sides: tuple[Side, Side]
    pair: Pair
    verdict: Verdict
    evidence: tuple[Evidence, ...]
    stages: int
    charge: Charge
    controls: tuple[Control, ...] = ()
    towers: tuple[TowerComparison, ...] = ()


def _shared(outcome: _Outcome) -> tuple[LayerMap, tuple[NormLikeness, ...]]:
    """Where weights are shared, and norms as disputes compared them."""
    from kinprint.lineage.sharing.map import map_shared, norm_likenesses

    shared = map_shared(outcome.pair, outcome.sides[0], outcome.evidence, outcome.charge)
    return shared, norm_likenesses(*outcome.sides)


def _read_in_stages(
    sampler: Sampler, settings: Settings, controlled: bool, pictures: bool
) -> _Outcome:
    """Read and test until the answer is clear; with controls everything is read at once."""
    shares = equal_weights(1 if controlled else sampler.stages)
    places = sampler.tower_pairs(0, 1)
    sides: list[list[Side]] = []
    outcome: _Outcome | None = None
    for number, share in enumerate(shares, 1):
        stages = sampler.stages if controlled else number
        samples = sampler.towers(stages - 1)
        sides = _sides(samples, sides)
        charge = charge_of(settings, share / len(places))
        pair, *besides = (
            Pair(
                sides[0][at],
                sides[1][to],
                seed=settings.seed,
                level=settings.level,
                pictures=pictures,
            )
            for at, to in places
        )
        evidence = gather_evidence(pair)
        controls: tuple[Control, ...] = ()
        if controlled:
            from kinprint.lineage.controls import calibrated

            mains = [main for main, *_ in sides]
            controls, ranked = calibrated(mains, settings.seed, settings.level, evidence)
            evidence += ranked
        labels = [(samples[0][at].tower, samples[1][to].tower) for at, to in places[1:]]
        sharing = find_sharing(pair, sides[0][places[0][0]], evidence, charge)
        found = [
            (tests := gather_evidence(one), find_sharing(one, sides[0][at], tests, charge))
            for one, (at, _) in zip(besides, places[1:], strict=True)
        ]
        towers = compared_towers(labels, found, charge)
        covered = all(sampler.whole[:2]) and sampler.covered(0) and sampler.covered(1)
        equal = covered and same_towers(*samples[:2])
        main = decide(evidence, charge, sharing, identical=equal)
        whole = [ModelTowers(samples[at], sampler.unclaimed(at)) for at in (0, 1)]
        lone = lone_towers(whole[0], whole[1], places)
        verdict = joined_verdict(main, sharing, towers, lone)
        outcome = _Outcome(
            (sides[0][0], sides[1][0]), pair, verdict, evidence, stages, charge, controls, towers
        )
        # Where all is equal so far, matrices that were not read yet may still not be.
        undecided = verdict.relation is Relation.DERIVED and only_equal(verdict.parts)
        if verdict.relation in CLEAR_ANSWERS and not undecided:
            break
    assert outcome is not None
    return outcome if outcome.stages == sampler.stages else _stopped(outcome, sampler)


def _stopped(outcome: _Outcome, sampler: Sampler) -> _Outcome:
    """The outcome of reading that ended early: what was not read since says so."""
    unread, stages = sampler.unread(outcome.stages), (outcome.stages, sampler.stages)
    return replace(
        outcome,
        verdict=stopped_verdict(outcome.verdict, unread, stages),
        evidence=stopped_evidence(outcome.evidence, unread, stages),
        towers=tuple(
            replace(
                one,
                verdict=stopped_verdict(one.verdict, unread, stages),
                evidence=stopped_evidence(one.evidence, unread, stages),
            )
            for one in outcome.towers
        ),
    )


def _sides(samples: Sequence[Sequence[Sample]], earlier: list[list[Side]]) -> list[list[Side]]:
    """Towers of all models, with what was found about them when less of them was read."""
    if not earlier:
        return [[Side(sample) for sample in towers] for towers in samples]
    return [list(map(Side, *both)) for both in zip(samples, earlier, strict=True)]


def _described(
    comparison: Comparison,
    pair: Sequence[Checkpoint],
    models: Sequence[Model | None],
    vocabularies: Sequence[Vocabulary | None],
    started: Sequence[Future[Background]],
) -> Comparison:
    """The comparison with what both models say about themselves, and what all of it cost."""
    metadata = [None if model is None else model.metadata for model in models]
    a, b = ((one.config, known) for one, known in zip(pair, metadata, strict=True))
    return replace(
        comparison,
        subjects=tuple(map(describe, pair, models, vocabularies, started)),
        configuration=compare_configurations(a, b),
        tokens=common_tokens(*vocabularies),
        cost=pair[0].fetcher.spent,
    )
