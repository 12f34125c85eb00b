"""The battery over many pairs, side by side in processes where that is quicker."""

from __future__ import annotations

from collections.abc import Sequence

from kinprint.lineage.battery import Side, examine, face, gather_evidence
from kinprint.lineage.reading.sample import Sample
from kinprint.records import Evidence
from kinprint.workers import workers

_WORTH = 12  # pairs from which on starting processes pays

_Task = tuple[int, int, int, str]
_SIDES: list[Side] = []


def run_pairs(
    samples: Sequence[Sample],
    pairs: Sequence[tuple[int, int]],
    seed: int,
    level: str,
    jobs: int = 1,
) -> list[tuple[Evidence, ...]]:
    """The evidence of each pair; every model is prepared once in each process."""
    tasks = [(one, other, seed, level) for one, other in pairs]
    if jobs < 2 or len(pairs) < _WORTH:
        _prepare(samples)
        try:
            return [_run(task) for task in tasks]
        finally:
            _SIDES.clear()
    with workers(jobs, _prepare, (list(samples),)) as pool:
        return list(pool.map(_run, tasks, chunksize=max(len(tasks) // (8 * jobs), 1)))


def _prepare(samples: Sequence[Sample]) -> None:
    _SIDES[:] = [examine(one) for one in samples]


def _run(task: _Task) -> tuple[Evidence, ...]:
    one, other, seed, level = task
    return gather_evidence(face(_SIDES[one], _SIDES[other], seed=seed, level=level))
