"""All pairs at once are the pairs one by one."""

from __future__ import annotations

import numpy as np
import pytest

from kinprint.studies.crossing import cross
from kinprint.studies.pairing import compare
from kinprint.studies.scene import MISSING, OK, Taken

MEASURES = ("cosine", "pearson", "shuffled_cosine")


def vectors(seed: int) -> list[Taken]:
    rng = np.random.default_rng(seed)
    made = [rng.normal(1, 0.1, 32).astype(np.float32) for _ in range(4)]
    made[1][3] = np.nan
    made += [
        np.ones(32, np.float32),
        np.zeros(32, np.float32),
        rng.normal(size=31).astype(np.float32),
    ]
    found = [Taken(OK, values=one, shape=one.shape) for one in made]
    return [*found, Taken(MISSING, "nowhere")]


@pytest.mark.parametrize("names", [MEASURES, ("cosine", "mean_abs_diff")])
def test_all_pairs_are_the_pairs_one_by_one(names: tuple[str, ...]) -> None:
    first, second = vectors(1), vectors(2)
    table = cross(first, second, names)
    for i, a in enumerate(first):
        for j, b in enumerate(second):
            alone = compare(a, b, names)
            assert table[i][j].status == alone.status
            assert table[i][j].reason == alone.reason
            for name in names:
                expected = alone.value(name)
                got = table[i][j].value(name)
                assert (got is None) == (expected is None)
                assert got is None or got == pytest.approx(expected, abs=1e-6)
