"""Every tensor of one list with every one of another: thousands of pairs at once.

Pairs of vectors that have nothing about them are a few matrix products; what is missing,
constant or not finite goes one by one, so that it gets the same status as everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kinprint.studies.pairing import Compared, compare
from kinprint.studies.scene import OK, Floats, Taken

Doubles = NDArray[np.float64]
_BY_PRODUCT = frozenset({"cosine", "pearson", "shuffled_cosine"})
_FLAT = 1e-6  # values that differ by no more than this share of the largest count as constant


def cross(
    first: Sequence[Taken], second: Sequence[Taken], names: Sequence[str]
) -> list[list[Compared]]:
    """A row for each of the first, a column for each of the second, as `compare` has them."""
    lefts, rights = [_plain(one) for one in first], [_plain(one) for one in second]
    width = next((one.size for one in lefts if one is not None), 0)
    rows = [i for i, one in enumerate(lefts) if one is not None and one.size == width]
    columns = [j for j, one in enumerate(rights) if one is not None and one.size == width]
    tables: dict[str, Doubles] = {}
    if rows and columns and set(names) <= _BY_PRODUCT:
        tables = _tables(_stack(lefts, rows), _stack(rights, columns))
    row_at = {i: n for n, i in enumerate(rows)} if tables else {}
    column_at = {j: n for n, j in enumerate(columns)} if tables else {}

    def one(i: int, j: int) -> Compared:
        if i not in row_at or j not in column_at:
            return compare(first[i], second[j], names)
        place = row_at[i], column_at[j]
        return Compared(OK, values={name: float(tables[name][place]) for name in names})

    return [[one(i, j) for j in range(len(second))] for i in range(len(first))]


def _tables(x: Doubles, y: Doubles) -> dict[str, Doubles]:
    """The measures of all rows of x with all rows of y."""
    lengths = np.outer(np.sqrt((x * x).sum(1)), np.sqrt((y * y).sum(1)))
    means = np.outer(x.mean(1), y.mean(1))
    cosine = np.clip(x @ y.T / lengths, -1, 1)
    u, v = x - x.mean(1, keepdims=True), y - y.mean(1, keepdims=True)
    apart = np.outer(np.sqrt((u * u).sum(1)), np.sqrt((v * v).sum(1)))
    return {
        "cosine": cosine,
        "pearson": np.clip(u @ v.T / apart, -1, 1),
        "shuffled_cosine": x.shape[1] * means / lengths,
    }


def _stack(vectors: Sequence[Floats | None], which: Sequence[int]) -> Doubles:
    chosen = [vectors[at] for at in which]
    return np.stack([one for one in chosen if one is not None]).astype(np.float64)


def _plain(taken: Taken) -> Floats | None:
    """A vector about which no measure would have anything to say; None for the rest."""
    values = taken.values
    if taken.status != OK or values is None or values.ndim != 1 or values.size < 2:
        return None
    plain = np.isfinite(values).all() and np.ptp(values) > _FLAT * np.abs(values).max()
    return values if plain else None
