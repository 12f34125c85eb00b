"""Candidates for the map between the residual streams of two models.

A model may be written in another basis: channels renamed, flipped, removed or rotated. Each
candidate is a matrix R with x·R in the other model's coordinates for a row x of the first.
None of them looks at units, heads or their signs; which is right, the quality decides.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinprint.studies.lineage.portrait import Floats, Indices
from kinprint.studies.lineage.preparation import SharedTokens, Subject

Doubles = NDArray[np.float64]
FEW_GAINS = 5
"""Fewer norm vectors than this do not tell channels apart."""
ASSIGNED = 2048
"""Up to this width channels are assigned one to one; above, each takes its best."""


@dataclass(frozen=True, slots=True)
class Residual:
    """One candidate: its name and its matrix, or a signed assignment, or neither: the identity.

    `pairs` are channels of the first model, their partners in the other and the signs of the
    pairs; `width` is the other model's.
    """

    name: str
    matrix: Floats | None = None
    pairs: tuple[Indices, Indices, Floats] | None = None
    width: int = 0

    def carry(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Rows of the first model (along the last axis) in the other's coordinates."""
        if self.pairs is not None:
            left, right, signs = self.pairs
            found = np.zeros((*rows.shape[:-1], self.width), rows.dtype)
            found[..., right] = rows[..., left] * signs
            return found
        if self.matrix is None:
            return rows
        if np.iscomplexobj(rows):
            turned: NDArray[Any] = (rows.real @ self.matrix) + 1j * (rows.imag @ self.matrix)
            return turned
        carried: NDArray[Any] = rows @ self.matrix
        return carried


IDENTITY = Residual("identity")


def candidates(first: Subject, second: Subject, shared: SharedTokens) -> Iterator[Residual]:
    """Maps from the first model's channels to the second's, cheap ones only."""
    if first.width == second.width:
        yield IDENTITY
    if len(shared.first) >= max(first.width, second.width):
        table = _rows(shared.first).T @ _rows(shared.second)
        yield Residual("polar factor of embeddings", polar_factor(table))
    if shared.columns is not None:
        one, other = shared.columns
        yield assigned("embedding columns", one @ other.T, signed=True)
    keys = sorted(first.scores.keys() & second.scores.keys())
    if len(keys) >= FEW_GAINS:
        yield assigned("norm gains", gain_table(first, second), signed=False)


def gain_table(first: Subject, second: Subject) -> Doubles:
    """Cosines of channels, each the vector of its gains over all norms that both have."""
    keys = sorted(first.scores.keys() & second.scores.keys())
    sides = []
    for one in (first, second):
        rows = np.stack([one.scores[key] for key in keys], axis=1)
        sides.append(rows / np.maximum(np.sqrt(np.square(rows).sum(axis=1)), 1e-12)[:, None])
    found: Doubles = sides[0] @ sides[1].T
    return found


def assigned(name: str, table: Doubles, signed: bool) -> Residual:
    """Channels paired so that the (absolute) scores are largest."""
    sizes = np.abs(table) if signed else table
    rows, columns = sizes.shape
    if max(rows, columns) <= ASSIGNED:
        from scipy.optimize import linear_sum_assignment

        left, right = linear_sum_assignment(sizes, maximize=True)
    elif rows <= columns:
        left, right = np.arange(rows), sizes.argmax(axis=1)
    else:
        left, right = sizes.argmax(axis=0), np.arange(columns)
    signs = np.sign(table[left, right]) if signed else np.ones(len(left))
    return Residual(name, None, (left, right, signs.astype(np.float32)), columns)


def polar_factor(table: NDArray[np.floating]) -> Floats:
    """The nearest matrix with orthonormal rows or columns."""
    u, _, vt = np.linalg.svd(np.asarray(table, np.float32), full_matrices=False)
    return np.asarray(u @ vt, np.float32)


def _rows(table: Floats) -> Floats:
    """Token rows of length one, so that frequent tokens do not rule."""
    length = np.sqrt(np.square(table).sum(axis=1, keepdims=True))
    return np.asarray(table / np.where(length > 0, length, 1), np.float32)
