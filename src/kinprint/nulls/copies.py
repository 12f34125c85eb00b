"""Copies inside one model, found and tied before any test counts them twice.

Copied layers, replicated heads, identical shards and cloned units share their labels and
coins. Tying them (one label for all copies, scores summed) leaves a subgroup of the
relabellings, and a subgroup is always valid: tying too much costs power alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinprint.measure.ordered import percentile
from kinprint.nulls.blocks import block_log10_p, block_sizes, blocked
from kinprint.nulls.preparation import normalise_rows
from kinprint.nulls.result import Floats, Ints

CHANCE = 1e-3
"""How often a model without copies may have something tied."""
CLONES = 0.7
"""Units with at least this cosine are copies; in small trained models strangers reach 0.6."""
REPEATED, REPEATED_SHARE = 0.3, 0.15
"""Units at one distance are repetitions if this cosine, or four deviations of chance where that is
more, is reached by this share of them beyond what is usual at other distances."""
_ROWS, _PRODUCTS = 512, 1 << 20  # that are looked at together: rows, and products of rows
_SKETCH, _VERIFIED = 64, 1 << 14  # numbers of a sketch, and pairs that are verified at a time
COPIES = 0.5
"""Layers are copies if equal places exceed unequal ones by this cosine, on average."""


def chance_cosine(n: int, d: int, alpha: float = CHANCE) -> float:
    """Cosine that no two of n random directions in d dimensions reach, but with chance alpha.

    A cap of the sphere beyond cosine c holds at most ½(1 − c²)^((d−1)/2) of it (the two agree at
    c = 0 and c = 1, and their difference has one turning point), and n(n−1)/2 pairs may be
    alike or opposite.
    """
    if n < 2 or d < 2:
        return 1.0
    pairs = n * (n - 1) / 2.0
    # sqrt(1 − q) with q = (alpha/pairs)^(2/(d−1)), accurate for large d
    return math.sqrt(-math.expm1(2.0 / (d - 1) * math.log(min(1.0, alpha / pairs))))


def clone_classes(rows: ArrayLike, threshold: float | None = None) -> Ints:
    """Number the classes of units that are copies of one another, up to sign.

    Rows (n, d); two are copies if |cosine| reaches the threshold, by default the larger of
    `CLONES` and what chance reaches, and copies of copies are copies. A class depends on sizes
    of cosines alone, so it moves with labels and ignores flips. Zero rows stand alone.
    """
    return _clones(_unit(rows), threshold)[0]


def clone_pairs(rows: ArrayLike) -> tuple[Ints, Ints]:
    """Places of all rows (n, d) that are copies of one another up to sign, the earlier first.

    For many rows: a sketch of their numbers, evenly spaced, tells which two may be copies, and the
    whole rows whether they are. A sketch of m numbers misses the cosine by about 1/√m.
    """
    x = _unit(rows)
    n, d = x.shape
    least = max(CLONES, chance_cosine(n, d))
    sketch = normalise_rows(x[:, :: max(1, d // _SKETCH)]).astype(np.float32)
    margin = 0.0 if sketch.shape[1] == d else 2.5 / math.sqrt(sketch.shape[1])
    left: list[Ints] = [np.empty(0, np.int64)]
    right: list[Ints] = [np.empty(0, np.int64)]
    for start in range(0, n, _ROWS):
        near = sketch[start : start + _ROWS] @ sketch[start:].T
        found = np.flatnonzero(np.abs(near, out=near).ravel() >= least - margin)
        i, j = np.divmod(found, near.shape[1])
        i, j = i[j > i] + start, j[j > i] + start
        some = [slice(at, at + _VERIFIED) for at in range(0, len(i), _VERIFIED)]
        sizes = [np.abs(np.einsum("id,id->i", x[i[one]], x[j[one]])) for one in some]
        same = np.concatenate(sizes or [np.empty(0, np.float32)]) >= least
        left.append(i[same])
        right.append(j[same])
    return np.concatenate(left), np.concatenate(right)


def copied_units(rows: ArrayLike, threshold: float | None = None) -> Ints:
    """Number the classes of units that are clones or repetitions of one another.

    `threshold` is that of `clone_classes`.
    """
    return copied_directions(_unit(rows), threshold)


def copied_directions(rows: ArrayLike, threshold: float | None = None) -> Ints:
    """`copied_units` of rows of length one or zero, such as columns that were standardised."""
    x = np.asarray(rows, np.float32)
    again = {len(x) // times for times in range(2, 9) if len(x) % times == 0 and len(x) > times}
    lags = [lag for lag in sorted({1, 2, 3, *again}) if 2 * lag <= len(x)]
    classes, cosines = _clones(x, threshold, lags)
    least = max(REPEATED, 4.0 / math.sqrt(x.shape[1])) if x.size else REPEATED
    alike = {lag: one >= least for lag, one in zip(lags, cosines, strict=True)}
    return joined(classes, _repetitions(len(x), alike, again))


def _unit(rows: ArrayLike) -> NDArray[np.float32]:
    return normalise_rows(rows).astype(np.float32)


def _clones(
    x: NDArray[np.float32], threshold: float | None = None, lags: Sequence[int] = ()
) -> tuple[Ints, list[NDArray[np.float32]]]:
    """Classes of clones, and by lag how alike each row and the one so many places on are."""
    n, d = x.shape
    step = min(_ROWS, max(_PRODUCTS // max(n, 1), 1))
    least = max(CLONES, chance_cosine(n, d)) if threshold is None else threshold
    left: list[Ints] = [np.empty(0, np.int64)]
    right: list[Ints] = [np.empty(0, np.int64)]
    cosines: list[list[NDArray[np.float32]]] = [[np.empty(0, np.float32)] for _ in lags]
    for start in range(0, n, step):
        near = x[start : start + step] @ x[start:].T
        found = np.flatnonzero(np.abs(near, out=near).ravel() >= least)  # quicker than in rows
        i, j = np.divmod(found, near.shape[1])
        other = j > i
        left.append(i[other] + start)
        right.append(j[other] + start)
        for known, lag in zip(cosines, lags, strict=True):
            known.append(near[:, lag:].diagonal().copy())
    classes = components(n, np.concatenate(left), np.concatenate(right))
    return classes, [np.concatenate(one) for one in cosines]


def _repetitions(n: int, likes: Mapping[int, NDArray[np.bool_]], again: Set[int]) -> Ints:
    """Classes of units that resemble those a fixed number of places on.

    A network that was widened by repeating its units (side by side, or all of them again) and
    then trained for long has copies that no longer look like such, one by one; but their places
    are a pattern, and two networks widened alike share it. Where many units at one distance are
    alike and few at others, they are tied: all of them where everything was repeated, since
    some copies are not alike any more, and side by side those that are.

    Parameters
    ----------
    n : how many units there are.
    likes : by lag, which units and those so many places on are alike beyond chance.
    again : the lags that repeating all units gives.
    """
    usual = percentile([like.mean() for like in likes.values()], 0.5) if likes else 0.0
    classes = np.arange(n)
    for lag, like in likes.items():
        if like.mean() >= 2 * usual + REPEATED_SHARE:
            at = np.arange(len(like)) if lag in again else np.flatnonzero(like)
            classes = joined(classes, components(n, at, at + lag))
    return classes


def copied_sets(sets: ArrayLike) -> Ints:
    """Number the classes of layers (L, n, d) whose units are copies at equal places.

    Layers of one model have labels of their own, so the block test between two of them has an
    exact null; pairs below `CHANCE` over the number of pairs are tied, and so are pairs whose mean
    cosine at equal places lies above that of all places by `COPIES`, which small sets could
    not show otherwise. Layers that were not tied are tested as they are, so that in all
    P(p ≤ x) ≤ x·(1 + P(tied)): looking first is nearly free.
    """
    given = np.asarray(sets, np.float64)
    layers, n, d = given.shape
    unit = normalise_rows(given.reshape(-1, d)).reshape(layers, n, d)
    i, j = np.triu_indices(layers, 1)
    if not len(i) or not n:
        return np.arange(layers)
    cut = np.stack([blocked(layer) for layer in unit])
    tables = np.stack([cut[p] @ cut[q].swapaxes(1, 2) for p, q in zip(i, j, strict=True)])
    logs = block_log10_p(tables, block_sizes(n))
    mean = unit.mean(axis=1)
    equal = np.array([np.vdot(unit[p], unit[q]) / n for p, q in zip(i, j, strict=True)])
    near = equal - np.einsum("pd,pd->p", mean[i], mean[j]) >= COPIES
    tied = near | (logs <= math.log10(CHANCE / len(i)))
    return components(layers, i[tied], j[tied])


def joined(one: Ints, other: Ints) -> Ints:
    """The finest classes that hold together what either of two gives one class."""
    n = len(one)
    if all(int(classes.max(initial=-1)) + 1 == n for classes in (one, other)):
        return np.arange(n)  # nothing is a copy
    left, right = [], []
    for classes in (one, other):
        _, first, which = np.unique(classes, return_index=True, return_inverse=True)
        left.append(first[which])
        right.append(np.arange(n))
    return components(n, np.concatenate(left), np.concatenate(right))


def sum_over(values: ArrayLike, classes: ArrayLike) -> Floats:
    """Add up the values (first axis) of each class: one coin, or one label, for all copies."""
    given, labels = np.asarray(values, np.float64), np.asarray(classes, np.int64)
    if len(given) != len(labels):
        raise ValueError(f"{len(given)} values and {len(labels)} classes")
    found = np.zeros((int(labels.max(initial=-1)) + 1, *given.shape[1:]))
    first = np.unique(labels, return_index=True)[1]
    found[labels[first]] = given[first]
    rest = np.delete(np.arange(len(labels)), first)  # few: adding one by one takes long
    np.add.at(found, labels[rest], given[rest])
    return found


def components(n: int, left: Ints, right: Ints) -> Ints:
    """Classes of n things of which pairs are tied, numbered in the order of their first members."""
    roots, tied = np.arange(n), left != right
    if not tied.any():
        return roots
    pairs = np.stack([left[tied], right[tied]], axis=1)
    touched = np.zeros(n, bool)
    touched[pairs] = True
    some = np.flatnonzero(touched)
    parent = dict(zip(some.tolist(), some.tolist(), strict=True))

    def root(at: int) -> int:
        while parent[at] != at:
            parent[at] = parent[parent[at]]
            at = parent[at]
        return at

    for i, j in pairs.tolist():
        one, other = sorted((root(i), root(j)))
        parent[other] = one
    roots[some] = [root(at) for at in some.tolist()]
    return np.asarray(np.unique(roots, return_inverse=True)[1], np.int64)
