"""The verbs compare and matrix: rooms put together, from names of models to a verdict.

Reading goes stage by stage. The share of error that each stage may spend is fixed before the
first weight is read, so stopping when the answer is clear costs no validity: with shares w of
the stages, the adjusted p-value is the least of p/w over the stages that were run.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import combinations

from kinprint.comparison.controls import Control, calibrated
from kinprint.comparison.pairs import run_pairs
from kinprint.errors import BadOption, KinprintError
from kinprint.model.opened import Model
from kinprint.nulls.combination import equal_weights
from kinprint.reader.checkpoint import Checkpoint, open_checkpoint
from kinprint.reader.fetch import Fetcher, side_by_side
from kinprint.records import Cost, Evidence, ModelRef, Verdict
from kinprint.studies.lineage.battery import Standing, examine, menu, run_battery
from kinprint.studies.lineage.calibrated import calibrate
from kinprint.studies.lineage.gathering import Gathering
from kinprint.studies.lineage.gathering_levels import LEVELS, level_named
from kinprint.studies.lineage.gathering_opening import understand_subjects
from kinprint.studies.lineage.identity import SAME_FILES, same_files, same_numbers
from kinprint.verdict import decide

ALPHA = 1e-6
_CLEAR = ("identical", "derived")


@dataclass(frozen=True, slots=True)
class Settings:
    """How to compare: how much to read, how sure to be, and what adapters stand on."""

    level: str = "standard"
    alpha: float = ALPHA
    budget: int | None = None
    seed: int = 0
    base: str | None = None

    def __post_init__(self) -> None:
        if self.level not in LEVELS:
            cause = f"choose from {', '.join(LEVELS)}"
            raise BadOption(option="--level", value=self.level, cause=cause)
        if not 0 < self.alpha < 1:
            cause = "a level of error lies between 0 and 1"
            raise BadOption(option="--alpha", value=self.alpha, cause=cause)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two models and what was found about them.

    `stages` says how many sweeps were read of how many; `limit` is what all of them could
    have cost, in bytes. `notes` are remarks on how a model was read, `labels` what models say
    they are not.
    """

    a: ModelRef
    b: ModelRef
    settings: Settings
    verdict: Verdict
    evidence: tuple[Evidence, ...]
    cost: Cost
    stages: tuple[int, int] = (0, 0)
    limit: int = 0
    left_out: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    controls: tuple[Control, ...] = ()


@dataclass(frozen=True, slots=True)
class PairVerdict:
    """One pair of a matrix, by the places of its models."""

    a: int
    b: int
    verdict: Verdict
    evidence: tuple[Evidence, ...]


@dataclass(frozen=True, slots=True)
class Matrix:
    """All pairs of some models, each model read once."""

    models: tuple[ModelRef, ...]
    settings: Settings
    pairs: tuple[PairVerdict, ...]
    cost: Cost
    notes: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Prospect:
    """What a comparison would still cost, and at most; known before a weight is read."""

    models: tuple[ModelRef, ...]
    settings: Settings
    stages: tuple[Cost, ...]
    limit: int
    left_out: tuple[str, ...] = ()

    @property
    def cost(self) -> Cost:
        """All stages together."""
        return sum(self.stages, Cost())


def compare_models(
    a: str, b: str, fetcher: Fetcher, settings: Settings, controls: Sequence[str] = ()
) -> Comparison:
    """Say how two models are related, reading as little as makes it clear.

    `controls` are models known to be unrelated to both and to each other; they calibrate
    what has no exact null and never change what has one.
    """
    checkpoints = _open([a, b, *controls], fetcher, settings)
    refs = [one.ref for one in checkpoints]
    if same_files(*checkpoints[:2]):
        verdict = _identical(settings.alpha)
        return Comparison(refs[0], refs[1], settings, verdict, (SAME_FILES,), fetcher.spent)
    models = _understand(checkpoints, settings)
    gathering = Gathering(models, settings.level, settings.budget)
    shares = equal_weights(1 if controls else gathering.stages)
    evidence: tuple[Evidence, ...] = ()
    verdict = Verdict("untestable", 0.0, settings.alpha)
    found: tuple[Control, ...] = ()
    done = 0
    sides: list[Standing] = []
    for share in shares:
        done = gathering.stages if controls else done + 1
        portraits = gathering.portraits(done - 1)
        before: Sequence[Standing | None] = sides or [None] * len(portraits)
        sides = [examine(one, early) for one, early in zip(portraits, before, strict=True)]
        evidence = run_battery(*sides[:2], seed=settings.seed, level=settings.level)
        evidence += calibrate(portraits[0], portraits[1], evidence)
        if controls:
            found, extra = calibrated(sides, settings.seed, settings.level, evidence)
            evidence += extra
        equal = all(gathering.plan.whole[:2]) and same_numbers(*portraits[:2])
        verdict = _judge(evidence, settings, share, equal)
        if verdict.relation in _CLEAR and "layers-not-read" not in verdict.reasons:
            break
    return Comparison(
        refs[0],
        refs[1],
        settings,
        verdict,
        evidence,
        fetcher.spent,
        (done, gathering.stages),
        gathering.plan.bytes,
        gathering.plan.left_out,
        _notes(gathering, checkpoints),
        _labels(checkpoints),
        found,
    )


def compare_all(
    given: Sequence[str], fetcher: Fetcher, settings: Settings, jobs: int = 1
) -> Matrix:
    """Say how all pairs of models are related; each is read once, pairs in `jobs` processes."""
    if len(given) < 2:
        raise BadOption(option="MODEL", value=" ".join(given), cause="a matrix takes two or more")
    checkpoints = _open(given, fetcher, settings)
    gathering = Gathering(_understand(checkpoints, settings), settings.level, settings.budget)
    portraits = gathering.portraits(gathering.stages - 1)
    pairs = list(combinations(range(len(given)), 2))
    copies = {pair for pair in pairs if same_files(*(checkpoints[at] for at in pair))}
    told = [pair for pair in pairs if pair not in copies]
    found = run_pairs(portraits, told, settings.seed, settings.level, jobs)
    evidence = dict(zip(told, found, strict=True))
    verdicts: list[PairVerdict] = []
    for pair in pairs:
        if pair in copies:
            verdicts.append(PairVerdict(*pair, _identical(settings.alpha), (SAME_FILES,)))
            continue
        equal = all(gathering.plan.whole[at] for at in pair)
        equal = equal and same_numbers(*(portraits[at] for at in pair))
        verdict = _judge(evidence[pair], settings, 1.0, equal)
        verdicts.append(PairVerdict(*pair, verdict, evidence[pair]))
    return Matrix(
        tuple(one.ref for one in checkpoints),
        settings,
        tuple(verdicts),
        fetcher.spent,
        _notes(gathering, checkpoints),
        _labels(checkpoints),
    )


def foresee(given: Sequence[str], fetcher: Fetcher, settings: Settings) -> Prospect:
    """What comparing models would cost; headers are read to know it, and no weight."""
    checkpoints = _open(given, fetcher, settings)
    refs = tuple(one.ref for one in checkpoints)
    if len(given) == 2 and same_files(*checkpoints):
        return Prospect(refs, settings, (), 0)
    gathering = Gathering(_understand(checkpoints, settings), settings.level, settings.budget)
    plan = gathering.plan
    return Prospect(refs, settings, gathering.costs(), plan.bytes, plan.left_out)


def _open(given: Sequence[str], fetcher: Fetcher, settings: Settings) -> list[Checkpoint]:
    indexed = level_named(settings.level).index

    def open_one(name: str) -> Checkpoint:
        with _about(name):
            return open_checkpoint(name, fetcher, indexed=indexed)

    return side_by_side(open_one, given)


def _understand(checkpoints: Sequence[Checkpoint], settings: Settings) -> list[Model]:
    return understand_subjects(checkpoints, level_named(settings.level), settings.base)


@contextmanager
def _about(model: str) -> Iterator[None]:
    """Note on an error which of several models it is about."""
    try:
        yield
    except KinprintError as error:
        error.add_note(model)
        raise


def _judge(evidence: Sequence[Evidence], settings: Settings, share: float, equal: bool) -> Verdict:
    """The verdict when only a share of the error may be spent, with its p-value adjusted."""
    alpha = settings.alpha * share
    found = decide(evidence, menu(settings.level), alpha, identical=equal)
    adjusted = min(0.0, found.log10_p - math.log10(share))
    return replace(found, log10_p=adjusted, alpha=settings.alpha)


def _identical(alpha: float) -> Verdict:
    return Verdict("identical", SAME_FILES.log10_p, alpha, reasons=("same-files",))


def _notes(gathering: Gathering, checkpoints: Sequence[Checkpoint]) -> tuple[str, ...]:
    found = [note for one in gathering.sitters for note in one.notes]
    found += [f"{one.ref.name}: {note}" for one in checkpoints for note in one.notes]
    return tuple(dict.fromkeys(found))


def _labels(checkpoints: Sequence[Checkpoint]) -> tuple[str, ...]:
    found = (f"{one.ref.name}: {text}" for one in checkpoints for text in one.labels)
    return tuple(dict.fromkeys(found))
