"""A correlation matrix for all norm vectors of one role that keeps every published entry.

Published correlations are scattered entries of one large matrix. The rest is filled in
smoothly, and the whole is moved to the nearest matrix that vectors can have at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from kinprint.replica.figures import Correlation

Matrix = NDArray[np.float64]
Key = tuple[str, int]

FADING = 0.035
"""How much two neighbouring layers of one model drift apart where nothing is published."""

EARLY_FADING = 1.2
"""The same for the first two layers, on top: layer 0 resembles no other layer."""

FLOOR = 1e-4
"""Smallest eigenvalue kept, so that the matrix has a Cholesky factor."""

ROUNDS = 150
"""Rounds of alternating projections; always the same number, so that no machine stops early."""

TOLERANCE = 1e-5
"""How far a published entry may be missed after the last round."""


def correlate(keys: Sequence[Key], known: Iterable[Correlation]) -> Matrix:
    """Correlations of all vectors in `keys`, those in `known` as published.

    Models without a known entry correlate with no other and need no correction.
    """
    pairs = list(known)
    matrix, fixed = fill(keys, pairs)
    touched = {model for pair in pairs for model, _ in (pair.a, pair.b)}
    block = np.ix_(*[[i for i, (model, _) in enumerate(keys) if model in touched]] * 2)
    matrix[block] = nearest_correlation(matrix[block], fixed[block])
    return matrix


def fill(keys: Sequence[Key], known: Sequence[Correlation]) -> tuple[Matrix, NDArray[np.bool_]]:
    """A smooth first guess around the known entries, and the mask of those entries.

    Within a model the layers fade apart like a random walk; between two models each pair
    takes after the nearest known pair, faded by the distance to it, and is 0 if none is
    known.
    """
    place = {key: i for i, key in enumerate(keys)}
    models = list(dict.fromkeys(model for model, _ in keys))
    own = {model: np.array([place[key] for key in keys if key[0] == model]) for model in models}
    layers = {model: [layer for name, layer in keys if name == model] for model in models}
    kernel = {model: _kernel(model, max(layers[model]) + 1, known) for model in models}
    guess = np.zeros((len(keys), len(keys)))
    for model in models:
        guess[np.ix_(own[model], own[model])] = kernel[model][np.ix_(layers[model], layers[model])]
    for first in models:
        for second in models:
            pairs = [pair for pair in known if (pair.a[0], pair.b[0]) == (first, second)]
            if first != second and pairs:
                faded = kernel[first][layers[first]], kernel[second][layers[second]]
                block = _take_after(pairs, *faded)
                guess[np.ix_(own[first], own[second])] = block
                guess[np.ix_(own[second], own[first])] = block.T
    fixed = np.eye(len(keys), dtype=bool)
    for pair in known:
        i, j = place[pair.a], place[pair.b]
        guess[i, j] = guess[j, i] = pair.value
        fixed[i, j] = fixed[j, i] = True
    return guess, fixed


def _kernel(model: str, layers: int, known: Sequence[Correlation]) -> Matrix:
    """Correlations of one model's layers, fading with a distance that known pairs stretch."""
    steps = FADING + EARLY_FADING * np.exp(-np.arange(layers) / 2.0)
    within = {
        (pair.a[1], pair.b[1]): pair.value for pair in known if pair.a[0] == pair.b[0] == model
    }
    inner = sorted({layer for pair in within for layer in pair if layer >= 10})
    for a, b in pairwise(inner):
        if within.get((a, b), 0.0) > 0:
            steps[a : layers if b == inner[-1] else b] = -np.log(within[a, b]) / (b - a)
    at = np.concatenate([[0.0], np.cumsum(steps)[:-1]])
    faded: Matrix = np.exp(-np.abs(at[:, None] - at[None, :]))
    return faded


def _take_after(pairs: Sequence[Correlation], first: Matrix, second: Matrix) -> Matrix:
    rows = np.array([pair.a[1] for pair in pairs])
    columns = np.array([pair.b[1] for pair in pairs])
    values = np.array([pair.value for pair in pairs])
    nearness = first[:, None, rows] * second[None, :, columns]
    best = nearness.argmax(axis=2)
    block: Matrix = np.take_along_axis(nearness, best[..., None], axis=2)[..., 0] * values[best]
    return block


def nearest_correlation(start: Matrix, fixed: NDArray[np.bool_]) -> Matrix:
    """The positive definite matrix next to `start` that agrees with it where `fixed`.

    Alternating projections with Dykstra's correction: N. J. Higham, "Computing the nearest
    correlation matrix", IMA J. Numer. Anal. 22 (2002), with more fixed entries than the
    diagonal, as in Higham and Strabić (2016). Fails where the fixed entries contradict one
    another, which would be a mistake in the tables.
    """
    current = definite = start
    correction = np.zeros_like(start)
    for _ in range(ROUNDS if len(start) else 0):
        shifted = current - correction
        values, vectors = np.linalg.eigh(shifted)
        definite = (vectors * np.maximum(values, FLOOR)) @ vectors.T
        correction = definite - shifted
        current = np.where(fixed, start, definite)
    if np.abs(definite - current).max(initial=0.0) > TOLERANCE:
        raise AssertionError("the published correlations contradict one another")
    # Published entries stand exactly; the others left the matrix definite, up to the tolerance.
    return (current + current.T) / 2.0
