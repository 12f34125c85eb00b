"""Orthogonal maps between the residual streams of two models, from arrays alone.

A model may be written in another basis. A map is a matrix R with x·R in the other model's
coordinates for a row x of the first; None stands for the identity. Maps are found from embedding
rows of shared tokens, or from Gram matrices where there are none, and refined with units that are
each other's nearest by their gate rows. Nothing here sees an up or down row of a unit beside its
gate row, so that these are left to judge by. Arrays may be NumPy's or CuPy's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from kinprint.device import Array, array_module, computed_on_device, downloaded, uploaded

ROUNDS = 4
"""Rounds of matching and fitting that refine a map."""
PROBES = 64
"""Rows of a layer by which its partner is found."""
STEPS = 10
"""Steps of the iteration that aligns Gram matrices."""
_UNREACHED = 1e-13  # squared singular values below this part of the largest are rounding
_SEARCHES = 2  # rounds that look for the partners of layers; later ones keep them
_SCORES = 4_000_000  # cosines that are held at once
_KEPT = 1e-3  # weight of the last map beside matched rows: it keeps what these do not reach


def unit_rows(rows: Array) -> Array:
    """Rows of length one along the last axis, in single precision; rows without one become zero."""
    xp = array_module(rows)
    x = xp.asarray(rows, xp.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        length = xp.linalg.norm(x, axis=-1, keepdims=True)
        good = xp.isfinite(length) & (length > 0)
        rows = x / xp.where(good, length, 1)
        return rows if good.all() else xp.where(good, rows, xp.float32(0))


@computed_on_device
def polar_factor(table: Array) -> Array:
    """The nearest matrix with orthonormal rows or columns, (MMᵀ)^(−½)·M.

    By the eigenvectors of the smaller Gram matrix, in double precision, which takes little more
    than half of the time of singular values. Directions that M does not reach stay zero.
    """
    xp = array_module(table)
    given = xp.asarray(table, xp.float64)
    tall = given.shape[0] > given.shape[1]
    rows = given.T if tall else given
    squares, basis = xp.linalg.eigh(rows @ rows.T)
    reached = squares > _UNREACHED * squares[-1]
    kept = basis[:, reached]
    factor = (kept / xp.sqrt(squares[reached])) @ (kept.T @ rows)
    return xp.ascontiguousarray(factor.T if tall else factor, xp.float32)


def carried(rows: Array, turn: Array | None) -> Array:
    """Rows of the first model in the other's coordinates."""
    return rows if turn is None else rows @ turn


def token_table(first: Array, second: Array) -> Array:
    """Products of the embeddings of shared tokens, of which a map is the polar factor.

    Token rows have length one, so that frequent tokens do not rule.
    """
    return unit_rows(first).T @ unit_rows(second)


def traceless_gram(rows: Array) -> Array:
    """XᵀX·d/tr − I: traceless, so that a common scale does not count as likeness."""
    xp = array_module(rows)
    table = rows.T @ rows
    width = len(table)
    trace = max(float(xp.trace(table)), 1e-30)
    return table * xp.float32(width / trace) - xp.eye(width, dtype=xp.float32)


def gram_turn(
    first: Sequence[Array],
    second: Sequence[Array],
    *,
    start: Sequence[int] = (),
    directions: int = 0,
    steps: int = STEPS,
) -> Array:
    """The turn between Gram matrices that correspond; its negative fits them as well.

    Eigenbases of sums give a first map up to signs; these are synchronised by the top eigenvector
    of the summed elementwise products, and R ← polar(Σ K₁ R K₂) does the rest.

    Parameters
    ----------
    first, second : traceless Gram matrices of the two models, in corresponding order.
    start : places of those whose sums give the eigenbases; all if empty.
    directions : how many leading directions the first map has, all if 0. Few are safer.
    steps : how often the map is improved.
    """
    xp = array_module(first[0])
    x, y = xp.stack(list(first)), xp.stack(list(second))
    some = list(start) or list(range(len(first)))
    few = directions or min(x.shape[1], y.shape[1])
    ours = xp.linalg.eigh(x[some].sum(axis=0))[1][:, -few:]
    theirs = xp.linalg.eigh(y[some].sum(axis=0))[1][:, -few:]
    both = ((ours.T @ x @ ours) * (theirs.T @ y @ theirs)).sum(axis=0)
    signs = xp.where(xp.linalg.eigh(both)[1][:, -1] < 0, -1, 1)
    turn = ((ours * signs) @ theirs.T).astype(xp.float32)
    for _ in range(steps):
        turn = polar_factor((x @ turn @ y).sum(axis=0))
    return turn


def mutual(scores: Array) -> tuple[Array, Array]:
    """For each row the column of its largest score, and whether that column's largest is the row.

    Rows and columns without a score above zero have no partner.
    """
    xp = array_module(scores)
    best = scores.argmax(axis=1)
    back = scores.argmax(axis=0)
    rows = xp.arange(len(scores))
    return best, (back[best] == rows) & (scores[rows, best] > 0)


def nearest_cosines(
    first: Sequence[Array], second: Sequence[Array], turn: Array | None, probes: int = PROBES
) -> NDArray[np.float64]:
    """How near rows of each layer of one model come to those of each layer of another.

    The mean over some rows, evenly spaced, of the largest cosine: layers of the first model ×
    layers of the second. Rows have length one.
    """
    xp = array_module(first[0])
    table = np.zeros((len(first), len(second)))
    some = [rows[spread(len(rows), probes)] for rows in first]
    ours = uploaded(carried(xp.concatenate(some), turn))  # one long product takes half the time
    ends = np.cumsum([len(rows) for rows in some])[:-1]
    for places in _stacks(len(ours), [len(others) for others in second]):
        theirs = uploaded(xp.concatenate([second[to] for to in places])).T
        run = max(1, _SCORES // theirs.shape[1])
        runs = (ours[start : start + run] @ theirs for start in range(0, len(ours), run))
        best = [downloaded(one.reshape(len(one), len(places), -1).max(axis=2)) for one in runs]
        table[:, places] = [rows.mean(axis=0) for rows in np.split(np.concatenate(best), ends)]
    return table


def spread(n: int, most: int) -> list[int]:
    """At most so many of n places, evenly spaced."""
    if n <= most:
        return list(range(n))
    places: list[int] = np.linspace(0, n - 1, most).round().astype(int).tolist()
    return places


def _stacks(rows: int, sizes: Sequence[int]) -> Iterator[list[int]]:
    """Places of layers with equally many rows, as many together as scores may be held."""
    for size in sorted(set(sizes)):
        places = [at for at, other in enumerate(sizes) if other == size]
        step = max(1, _SCORES // max(rows * size, 1))
        yield from (places[at : at + step] for at in range(0, len(places), step))


def refined(
    first: Sequence[Array],
    second: Sequence[Array],
    turn: Array | None,
    table: Array | None = None,
    rounds: int = ROUNDS,
) -> Array:
    """A map fitted to the rows that the last one made each other's nearest, a few times over.

    Parameters
    ----------
    first, second : gate rows of length one, layer by layer; all or some of a layer's.
    turn : where to begin.
    table : products of embeddings that are fitted along with the rows, if there are any.
    rounds : how often.
    """
    xp = array_module(first[0])
    width = first[0].shape[1], second[0].shape[1]
    current = xp.eye(*width, dtype=xp.float32) if turn is None else turn
    for number in range(rounds):
        if number < _SEARCHES:
            partners = nearest_cosines(first, second, current, PROBES // 2).argmax(axis=1)
        total = current * xp.float32(_KEPT) if table is None else xp.array(table)
        for rows, to in zip(first, partners.tolist(), strict=True):
            best, both = mutual(carried(rows, current) @ second[to].T)
            total = total + rows[both].T @ second[to][best[both]]
        current = polar_factor(total)
    return current
