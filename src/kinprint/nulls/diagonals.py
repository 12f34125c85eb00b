"""Diagonals: what matrices that began as the identity, or near it, have in common.

Such a start is public, and strangers that had it keep it: row i leans to column i, or to the column
that a padded, repeated, spread or reversed identity gives it. Few numbers of a matrix lie there,
and they are found by their mean alone, however small each is against the others.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kinprint.nulls.blocks import BLOCK

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]

FEWEST_COLUMNS, FEWEST_ROWS = 32, 8
"""Smaller matrices are not looked at."""
_REPEATS = 8  # of an identity side by side that are looked for
_ROWS = 128  # rows that tell
_LEAST = np.float32(1e-30)
_ASIDE = np.array([0, 5, 11, 18, 29])  # columns from a diagonal to those that it is held against
_CONTROLLED = 1 + 1 / (len(_ASIDE) - 1)  # what these add to the variance
_FAR = 3.0  # deviations beyond which a number counts no more
DEVIATIONS = 5.0
"""From which on a diagonal is no chance."""


def diagonals(numbers: Ints, total: int | None, width: int) -> Ints:
    """Columns (rows, diagonals) that diagonals give to rows of these numbers among so many.

    Where there are fewer rows than columns, diagonals stand side by side, or each row has several
    neighbouring columns; where there are more, several rows have a column. Either may begin at the
    last row or column, where the larger number is no multiple of the other. `total` is None where
    it is not known, and more than the columns then.

    Examples
    --------
    >>> diagonals(np.array([0, 1, 7]), 8, 8).tolist()
    [[0, 7], [1, 6], [7, 0]]
    >>> diagonals(np.array([0, 5]), 8, 4).tolist()
    [[0, 3, 0], [1, 2, 2]]
    """
    least = width if total is None else min(total, width)
    within, found = numbers % least, []
    for start in range(0, min(width // least, _REPEATS) * least, least):
        found += [start + within, start + least - 1 - within]
    if total is not None and max(total, width) % least:  # written from the last row or column on
        if total > width:
            found += [(numbers - total) % least, (total - 1 - numbers) % least]
        else:
            found += [width - least + within, width - 1 - within]
    if total is not None and total != width:
        first = -(-numbers * width // total) if total < width else numbers * width // total
        found += [first + one for one in range(min(max(width // total, 1), _REPEATS))]
    return np.minimum(np.stack(found, axis=1), width - 1)


def lean(matrices: Sequence[Floats], columns: Ints) -> NDArray[np.float64]:
    """How far matrices lean to diagonals, in deviations of chance, with their sign and without it.

    Matrices of one shape; the answer is (matrices, 2, diagonals). Numbers on a diagonal are held
    against those a few columns aside.
    """
    height, width = matrices[0].shape
    some = np.linspace(0, height - 1, min(height, _ROWS)).astype(np.int64)
    places = (columns[some].T[:, None] + _ASIDE[:, None]) % width + some * width
    cells = np.stack([rows.reshape(-1).take(places) for rows in matrices])
    cells[~np.isfinite(cells)] = 0
    size = np.sqrt(np.square(cells[:, :, 1:]).mean(axis=(2, 3), keepdims=True))
    cells = np.clip(cells / np.maximum(size, _LEAST), -_FAR, _FAR)
    both = np.stack([cells, np.abs(cells)], axis=1)
    means = both.mean(axis=4)
    squares = np.square(both[:, :, :, 1:]).mean(axis=(3, 4))
    middle = means[..., 1:].mean(axis=3)
    chance = np.sqrt(np.maximum(squares - np.square(middle), 0.0) * _CONTROLLED / len(some))
    found = (means[..., 0] - middle) / np.maximum(chance, _LEAST)
    # Nothing beside a diagonal: such rows hold one value, and say nothing anyway.
    return np.asarray(np.where(size[:, None, :, 0, 0] > _LEAST, found, 0.0), np.float64)


def without_diagonal(rows: Floats, numbers: Ints, total: int | None, which: int) -> Floats:
    """Rows with zeros in place of a diagonal, as `diagonals` counts.

    Blocks of four neighbouring rows and columns lose all that is in them: neighbours that change
    places have then lost the same columns.
    """
    width = rows.shape[1]
    start = numbers - numbers % BLOCK
    members = (start[:, None] + np.arange(BLOCK)).reshape(-1)
    if total is not None:
        members = np.minimum(members, total - 1)
    columns = diagonals(members, total, width)[:, which].reshape(len(rows), BLOCK)
    first = columns - columns % BLOCK
    cells = np.minimum((first[:, :, None] + np.arange(BLOCK)).reshape(len(rows), -1), width - 1)
    left = np.array(rows)
    left[np.arange(len(rows))[:, None], cells] = 0
    return left


def without_means(rows: Floats) -> Floats:
    """Rows less the mean of each column, over numbers that are finite."""
    finite = np.isfinite(rows)
    total = np.where(finite, rows, 0).sum(axis=0, dtype=np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(rows - total / np.maximum(finite.sum(axis=0), 1), np.float32)
