"""The two thin matrices of a low-rank update, whichever way round they are stored.

Libraries store the rank first or last and stack experts in three ways; here every factor is
a matrix of its own rows by rank, of which only the rows that are wanted are read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from msgspec import Struct

from kinprint.model.quantised.weight import Floats, Rows, row_slices
from kinprint.reader.decode import Array, as_float32
from kinprint.records import Slice, TensorSpec

RANK_FIRST = "rank_first"  # [experts · rank, size]
RANK_LAST = "rank_last"  # [experts · size, rank]
RANK_MIXED = "rank_mixed"  # [size, rank · experts], the experts fastest

# Columns closer than this are read through: they share a sector of any disk or packet.
_NEAR = 32


class Factor(Struct, frozen=True):
    """One thin matrix: `size` rows of `rank` numbers, for each of `experts`."""

    spec: TensorSpec
    order: str
    rank: int
    size: int
    experts: int = 1

    def slices(self, rows: Rows, expert: int = 0) -> tuple[Slice, ...]:
        """What has to be read for some rows of one expert."""
        if self.order == RANK_LAST:
            first = expert * self.size
            if isinstance(rows, range):
                moved: Rows = range(first + rows.start, first + rows.stop, rows.step)
            else:
                moved = tuple(first + row for row in rows)
            return row_slices(self.spec, self.rank, moved)
        if self.order == RANK_MIXED:
            return row_slices(self.spec, self.rank * self.experts, rows)
        lines = range(expert * self.rank, (expert + 1) * self.rank)
        if self._in_columns and len(rows) < self.size:
            runs = _near(sorted(set(rows)))
            return tuple(Slice(self.spec, rows=lines, columns=run) for run in runs)
        return row_slices(self.spec, self.size, lines)

    def matrix(self, rows: Rows, arrays: Sequence[Array], expert: int = 0) -> Floats:
        """Those rows by rank, from the arrays of `slices`."""
        flat = [as_float32(array, self.spec.file) for array in arrays]
        if self.order == RANK_LAST:
            return np.concatenate([part.reshape(-1, self.rank) for part in flat])
        if self.order == RANK_MIXED:
            joined = np.concatenate([part.reshape(-1, self.rank, self.experts) for part in flat])
            return joined[:, :, expert]
        if self._in_columns and len(rows) < self.size:
            runs = _near(sorted(set(rows)))
            place = {column: i for i, column in enumerate(c for run in runs for c in run)}
            joined = np.concatenate([part.reshape(self.rank, -1) for part in flat], axis=1)
            return joined[:, [place[row] for row in rows]].T
        joined = np.concatenate([part.reshape(-1) for part in flat]).reshape(self.rank, self.size)
        return joined.T[np.asarray(rows, np.int64)]

    @property
    def _in_columns(self) -> bool:
        """Whether a row of this factor is a column of the tensor, and can be read alone."""
        return self.spec.shape[-1] == self.size


def _near(columns: list[int]) -> tuple[range, ...]:
    return tuple(_gathered(columns))


def _gathered(columns: list[int]) -> Iterator[range]:
    """Ranges that cover sorted columns, joined where they lie close together."""
    run: range | None = None
    for column in columns:
        if run is None or column - run.stop >= _NEAR:
            if run is not None:
                yield run
            run = range(column, column + 1)
        else:
            run = range(run.start, column + 1)
    if run is not None:
        yield run
