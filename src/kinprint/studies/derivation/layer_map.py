"""Which layer of one model goes with which of another, by norm vectors.

For models of different depth. The best assignment finds similarity in noise too, so it is
made again with the channels of one model shuffled, all layers alike: under independent
training that changes nothing, hence what it gives is chance.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kinprint.measure.matching import Matching, assign
from kinprint.model.places import Address
from kinprint.studies.derivation.pairwise import A, B
from kinprint.studies.study import StudyInput, TensorRows
from kinprint.studies.summary import Spread, spread

SHUFFLES = 20
Scores = NDArray[np.float64]


class LayerMap(Struct, frozen=True):
    """Pairs of layers, the score of each, and what chance gives.

    `scores` has a row for each layer of the first model and a column for each of the second:
    the Pearson correlation of their norm vectors, averaged over roles; NaN where there is
    none. `chance` sums up the mean score of best assignments after shuffling.
    """

    layers_a: tuple[int, ...]
    layers_b: tuple[int, ...]
    scores: Scores
    matching: Matching
    chance: Spread

    @property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """Layers of the first and the second model that go together."""
        return tuple((self.layers_a[i], self.layers_b[j]) for i, j in self.matching.pairs)

    @property
    def kept(self) -> int:
        """How many layers go with that of their own number."""
        return sum(first == second for first, second in self.pairs)


def map_layers(
    inputs: StudyInput, roles: Sequence[str], layers_a: Sequence[int], layers_b: Sequence[int]
) -> LayerMap:
    """Pair layers so that their correlations add up to the most.

    Replicas have none: correlations of different layers of two models were not published.
    """
    sides = [
        (_profiles(inputs, A, role, layers_a), _profiles(inputs, B, role, layers_b))
        for role in roles
    ]
    known = [(x, y) for x, y in sides if x is not None and y is not None and _fits(x, y)]
    first = inputs.get(TensorRows(A, Address(roles[0], layers_a[0]))) if layers_a else None
    if not known or (first is not None and first.origin is not None):
        nothing = np.full((len(layers_a), len(layers_b)), np.nan)
        return LayerMap(
            tuple(layers_a), tuple(layers_b), nothing, Matching((), (), False), Spread(0)
        )
    scores = _scores(known)
    rng = np.random.default_rng(inputs.request.seed)
    chance = []
    for _ in range(SHUFFLES):
        order = rng.permutation(known[0][0].shape[1])
        chance.append(assign(_scores([(x[:, order], y) for x, y in known])).mean)
    return LayerMap(tuple(layers_a), tuple(layers_b), scores, assign(scores), spread(chance))


def _fits(x: Scores, y: Scores) -> bool:
    return len(x[0]) == len(y[0])


def _scores(sides: Sequence[tuple[Scores, Scores]]) -> Scores:
    """Mean over roles of the correlations of every layer with every layer."""
    tables = np.stack([x @ y.T for x, y in sides])
    counted = np.isfinite(tables).sum(axis=0)
    total = np.nansum(tables, axis=0)
    return np.where(counted > 0, total / np.maximum(counted, 1), np.nan)


def _profiles(inputs: StudyInput, model: int, role: str, layers: Sequence[int]) -> Scores | None:
    """Norm vectors of one role, one a row, centred and of length one; NaN for what is missing."""
    found = [inputs.get(TensorRows(model, Address(role, layer))) for layer in layers]
    widths = [one.values.size for one in found if one.values is not None]
    if not widths:
        return None
    rows = np.full((len(layers), max(set(widths), key=widths.count)), np.nan)
    for at, one in enumerate(found):
        if one.values is None or one.values.size != rows.shape[1]:
            continue
        centred = one.values.reshape(-1).astype(np.float64)
        centred -= centred.mean()
        length = float(np.sqrt(centred @ centred))
        rows[at] = centred / length if length > 0 else np.nan
    return rows
