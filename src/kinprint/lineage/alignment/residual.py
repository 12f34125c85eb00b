"""Candidates for the map between the residual streams of two models.

A model may be written in another basis: channels renamed, flipped, removed or rotated. Each
candidate is a matrix R with x·R in the other model's coordinates for a row x of the first.
None of them looks at units, heads or their signs; which is right, the quality decides.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from functools import cached_property
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kinprint.lineage.preparation import (
    NormKey,
    Prepared,
    SharedTokens,
    shared_outputs,
    shared_tokens,
)
from kinprint.lineage.reading.sample import Floats, Indices
from kinprint.measure.basis import polar_factor, token_table
from kinprint.nulls.fixed_points import Neighbours, nearest_rows
from kinprint.nulls.preparation import normalise_rows

Doubles = NDArray[np.float64]
FEW_GAINS = 5
"""Fewer norm vectors than this do not tell channels apart."""


class MapSource(StrEnum):
    """What a residual map was made of."""

    IDENTITY = "identity"
    NEGATIVE = "negative of the identity"
    TOKENS = "polar factor of embeddings"
    COLUMNS = "embedding columns"
    GAINS = "norm gains"
    GRAM = "Gram matrices"
    UNITS = "matched units"


class ResidualMap(Struct, frozen=True, eq=False):
    """One candidate: its source and its matrix, or a signed assignment, or neither: the identity.

    `pairs` are channels of the first model, their partners in the other and the signs of the
    pairs; `width` is the other model's.
    """

    source: MapSource
    matrix: Floats | None = None
    pairs: tuple[Indices, Indices, Floats] | None = None
    width: int = 0

    @property
    def sign(self) -> float:
        """What all channels are multiplied by where they keep their places, as in the identity.

        Zero where they do not. Several candidates may be one map.
        """
        if self.pairs is None:
            return float(self.matrix is None)
        left, right, signs = self.pairs
        kept = len(left) == self.width > 0 and np.array_equal(left, right)
        return float(signs[0]) if kept and (signs == signs[0]).all() else 0.0

    def carry(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Rows of the first model (along the last axis) in the other's coordinates."""
        if self.pairs is not None:
            left, right, signs = self.pairs
            placed = np.zeros((*rows.shape[:-1], self.width), rows.dtype)
            placed[..., right] = rows[..., left] * signs
            return placed
        if self.matrix is None:
            return rows
        if np.iscomplexobj(rows):
            turned: NDArray[Any] = (rows.real @ self.matrix) + 1j * (rows.imag @ self.matrix)
            return turned
        carried: NDArray[Any] = rows @ self.matrix
        return carried


IDENTITY = ResidualMap(MapSource.IDENTITY)


class Channels:
    """Channels of two models side by side, and which of them are nearest to each other.

    Several tests and the residual maps ask for the same; it is found when first asked for.
    """

    def __init__(self, first: Prepared, second: Prepared) -> None:
        self.first, self.second = first, second

    @cached_property
    def shared(self) -> SharedTokens:
        """Embeddings over the tokens that both models have."""
        return shared_tokens(self.first, self.second)

    @cached_property
    def outputs(self) -> SharedTokens:
        """Output heads over the same tokens; a tied embedding is one."""
        return shared_outputs(self.first, self.second)

    @cached_property
    def norms(self) -> tuple[NormKey, ...]:
        """The norms that vary in both models."""
        return tuple(sorted(self.first.scores.by_norm.keys() & self.second.scores.by_norm.keys()))

    @cached_property
    def gain_rows(self) -> tuple[Doubles, Doubles] | None:
        """Each channel as the vector of its gains, of length one; None with too few norms."""
        if len(self.norms) < FEW_GAINS:
            return None
        first, second = (
            normalise_rows(np.stack([model.scores.by_norm[key] for key in self.norms], axis=1))
            for model in (self.first, self.second)
        )
        return first, second

    @cached_property
    def near_gains(self) -> Neighbours:
        """Channels whose gains are nearest over all norms, found once for stages of equal gains."""
        first, second = self.first.scores, self.second.scores
        if first.nearest is None or first.nearest[0] is not second:
            assert self.gain_rows is not None
            first.nearest = second, nearest_rows(*self.gain_rows)
        return first.nearest[1]

    @cached_property
    def near_columns(self) -> Neighbours:
        """Channels whose embedding columns are nearest, whatever their signs."""
        assert self.shared.columns is not None
        return nearest_rows(*self.shared.columns, flips=True)


def candidates(channels: Channels) -> Iterator[ResidualMap]:
    """Maps from the first model's channels to the second's, cheap ones only."""
    first, second, shared = channels.first, channels.second, channels.shared
    if first.width == second.width:
        yield IDENTITY
        every = np.arange(first.width)
        signs = -np.ones(first.width, np.float32)
        yield ResidualMap(MapSource.NEGATIVE, None, (every, every, signs), first.width)
    if len(shared.first) >= max(first.width, second.width):
        table = token_table(shared.first, shared.second)
        yield ResidualMap(MapSource.TOKENS, polar_factor(table))
    if shared.columns is not None:
        yield best_channels(MapSource.COLUMNS, channels.near_columns, signed=True)
    if channels.gain_rows is not None:
        yield best_channels(MapSource.GAINS, channels.near_gains, signed=False)


def best_channels(source: MapSource, near: Neighbours, signed: bool) -> ResidualMap:
    """Channels of the narrower model, each with its best partner; of rivals the better stays."""
    forward = len(near.there.at) <= len(near.back.at)
    best = near.there if forward else near.back
    order = np.argsort(-(np.abs(best.score) if signed else best.score), kind="stable")
    kept = order[np.unique(best.at[order], return_index=True)[1]]
    left, right = (kept, best.at[kept]) if forward else (best.at[kept], kept)
    signs = np.sign(best.score[kept]) if signed else np.ones(len(kept))
    return ResidualMap(source, None, (left, right, signs.astype(np.float32)), len(near.back.at))
