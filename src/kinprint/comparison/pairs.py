"""The battery over many pairs, side by side in processes where that is quicker."""

from __future__ import annotations

from collections.abc import Sequence

from kinprint.records import Evidence
from kinprint.studies.lineage.battery import Standing, examine, run_battery
from kinprint.studies.lineage.calibrated import calibrate
from kinprint.studies.lineage.portrait import Portrait
from kinprint.studies.workers import workers

_WORTH = 12  # pairs from which on starting processes pays

_Task = tuple[int, int, int, str]
_SIDES: list[Standing] = []


def run_pairs(
    portraits: Sequence[Portrait],
    pairs: Sequence[tuple[int, int]],
    seed: int,
    level: str,
    jobs: int = 1,
) -> list[tuple[Evidence, ...]]:
    """The evidence of each pair; every model is prepared once in each process."""
    tasks = [(one, other, seed, level) for one, other in pairs]
    if jobs < 2 or len(pairs) < _WORTH:
        _prepare(portraits)
        try:
            return [_run(task) for task in tasks]
        finally:
            _SIDES.clear()
    with workers(jobs, _prepare, (list(portraits),)) as pool:
        return list(pool.map(_run, tasks, chunksize=max(len(tasks) // (8 * jobs), 1)))


def _prepare(portraits: Sequence[Portrait]) -> None:
    _SIDES[:] = [examine(one) for one in portraits]


def _run(task: _Task) -> tuple[Evidence, ...]:
    one, other, seed, level = task
    evidence = run_battery(_SIDES[one], _SIDES[other], seed=seed, level=level)
    first, second = (_SIDES[at].subject.portrait for at in (one, other))
    return evidence + calibrate(first, second, evidence)
