"""Which models of an atlas come first for a model, by keys alone.

All models are looked at by their first keys, the best of these by their second; models with equal
keys, as copies have, do not take the place of others. What comes out is an order in which to run
tests, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kinprint.atlas.keys import FIRST, SECOND, SKETCHES, Key, TowerKeys, likeness
from kinprint.atlas.store import Atlas, Entry, Index
from kinprint.errors import EntryBroken

_NARROWED = 4  # times as many as are asked for that are looked at by their second keys
# Strangers that learnt the same language have Gram matrices and spectra in common: likenesses up
# to these were seen between strangers of the zoo, and what is beyond counts.
_COMMON = {"gram": 0.8, "spectra": 0.9}


class Match(Struct, frozen=True):
    """A model of an atlas, and how alike its keys are: at most 1, and about 0 of strangers."""

    entry: Entry
    likeness: float
    towers: tuple[TowerKeys, ...]


Ranked = tuple[int, float, tuple[TowerKeys, ...]]
"""A model by its number, how alike its keys are, and these."""
KeysOf = Callable[[int], tuple[TowerKeys, ...]]
"""Gives the keys of a model by its number; raises `EntryBroken`."""


def search(
    towers: Sequence[TowerKeys],
    atlas: Atlas,
    index: Index,
    count: int,
    allowed: NDArray[np.bool_] | None = None,
) -> tuple[list[Match], list[EntryBroken]]:
    """The models most alike by their keys, the most alike first, and those that are broken.

    Parameters
    ----------
    towers : the keys of the model asked for.
    atlas, index : where to look.
    count : how many models are wanted.
    allowed : of each model whether it is a candidate; all are where it is None.
    """
    names = index.column("id")
    found, faults = ranked(towers, index, count, lambda at: atlas.keys(names[at]), allowed)
    return [Match(index.entry(at), alike, theirs) for at, alike, theirs in found], faults


def ranked(
    towers: Sequence[TowerKeys],
    index: Index,
    count: int,
    keys: KeysOf,
    allowed: NDArray[np.bool_] | None = None,
) -> tuple[list[Ranked], list[EntryBroken]]:
    """The same by numbers of models, each with its likeness and keys."""
    faults: list[EntryBroken] = []
    found: list[Ranked] = []
    for number in map(int, nearest(towers, index, _NARROWED * count, allowed)):
        try:
            theirs = keys(number)
        except EntryBroken as error:
            faults.append(error)
        else:
            found.append((number, second_likeness(towers, theirs), theirs))
    found.sort(key=lambda one: -one[1])
    return _without_crowding(found, count), faults


def _without_crowding(found: Sequence[Ranked], count: int) -> list[Ranked]:
    """The first of some models; those that have the keys of an earlier one wait for the others."""
    first: dict[bytes, int] = {}
    for at, (_, _, towers) in enumerate(found):
        first.setdefault(b"".join(key.second.tobytes() for key in towers), at)
    distinct = set(first.values())
    taken = sorted(range(len(found)), key=lambda at: at not in distinct)[:count]
    return [found[at] for at in sorted(taken)]


def nearest(
    towers: Sequence[TowerKeys],
    index: Index,
    count: int,
    allowed: NDArray[np.bool_] | None = None,
) -> NDArray[np.int64]:
    """Numbers of the models with the most alike first keys, the most alike first.

    A model is as alike as the most alike of its towers is to any tower of the one asked for.
    """
    models = np.full(len(index), -np.inf, np.float32)
    for key in towers:
        np.maximum.at(models, index.owners, _scores(key.first, index.keys, FIRST))
    if allowed is not None:
        models[~allowed] = -np.inf
    order = np.argsort(-models, kind="stable")[:count]
    return np.asarray(order[np.isfinite(models[order])], np.int64)


def second_likeness(ours: Sequence[TowerKeys], theirs: Sequence[TowerKeys]) -> float:
    """How alike two models are by their second keys: the most alike of their towers."""
    keys = np.stack([key.second for key in theirs])
    return float(max(_scores(key.second, keys, SECOND).max() for key in ours))


def _scores(query: Key, keys: NDArray[np.int8], lengths: Sequence[int]) -> NDArray[np.float32]:
    """How alike a key is to each of many: the most that any of its sketches says."""
    found = likeness(query, keys, lengths)
    for at, name in enumerate(SKETCHES):
        if name in _COMMON:
            found[:, at] = (found[:, at] - _COMMON[name]) / (1.0 - _COMMON[name])
    return np.asarray(found.max(axis=1), np.float32)
