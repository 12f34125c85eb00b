"""What matrices of one model have from a start that is no chance, found in that model alone.

Weights may start from something public in place of chance: the identity (ZerO, IDInit, residual
starts), Hadamard's matrices, cosines, one table for all layers. Strangers that did so have it in
common, at equal places and with equal signs, and no relabelling of theirs is as likely as what is
seen. Diagonals are taken out of a matrix, and the rest of it is left to be compared. Whatever else
there is stands in every layer at the same places, whereas chance numbers the units of each layer
anew: a matrix whose rows of equal number are alike from layer to layer says nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import zip_longest
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from kinprint.lineage.reading.sample import Attention, Floats, Indices, Sample, Units
from kinprint.measure.diagonals import (
    DEVIATIONS,
    FEWEST_COLUMNS,
    diagonals,
    lean,
    without_diagonal,
)
from kinprint.nulls.signs import sign_log10_p

_UNITS, _HEADS = ("gate", "up", "down"), ("q", "k", "v", "o")
_KINDS = _UNITS, ("q", "k"), ("v", "o"), ("router",)
_ALONE = 0.5  # more deviations that a single matrix needs than those of all layers together
_STRIDES = (1, 2)  # layers apart: one that was copied is like its copy, and not like all others
_LEVEL = 1e-2  # of each of these, and both must be reached
_PLACES = 64  # matrices of a role that are held against each other
_FEWEST_PAIRS, _NUMBERS = 128, 1 << 16  # pairs of rows and numbers of a matrix that are
_USUAL = 1.0  # deviations that chance gives, where other matrices were found
_TINY = 1e-30
_DOUBTED = 2.0  # deviations below which no p-value is asked for


class _Matrix(Struct, frozen=True):
    """Rows of one matrix with their numbers among so many; None where that is not known."""

    rows: Floats
    numbers: Indices
    total: int | None

    @property
    def width(self) -> int:
        return int(self.rows.shape[1])


Place = tuple[int, int]  # layer, expert
Coins = NDArray[np.float64]
Matrices = dict[str, dict[Place, _Matrix]]


def without_common_starts(sample: Sample) -> Sample:
    """The sample without diagonals, and with zeros for matrices that are alike in all layers."""
    matrices = _matrices(sample)
    changed: dict[tuple[str, Place], Floats] = {}
    for role, parts in matrices.items():
        for place, rows in _without_diagonals(parts):
            changed[role, place] = rows
            parts[place] = replace(parts[place], rows=rows)
    for role in _repeated_roles(matrices, sample):
        for place, part in matrices[role].items():
            changed[role, place] = np.zeros_like(part.rows)
    return _with(sample, changed) if changed else sample


def _matrices(sample: Sample) -> Matrices:
    """All matrices by role and place."""
    found: Matrices = {}

    def add(role: str, place: Place, rows: Floats, numbers: Indices, total: int | None) -> None:
        if rows.size and rows.any():
            found.setdefault(role, {})[place] = _Matrix(rows, numbers, total)

    units = {(layer, -1): part for layer, part in sample.units.items()} | dict(sample.experts)
    for place, part in sorted(units.items()):
        for role in _UNITS:
            rows = getattr(part, role)
            if rows is not None:
                add(role, place, rows, part.index, part.total)
    for layer, heads in sorted(sample.attention.items()):
        for role in _HEADS:
            rows = getattr(heads, role)
            if rows is not None:
                numbers, total = _numbers_of_heads(heads, role, sample.facts.rope)
                add(role, (layer, -1), rows.reshape(-1, rows.shape[-1]), numbers, total)
    for layer, router in sorted(sample.routers.items()):
        add("router", (layer, -1), router, np.arange(len(router)), len(router))
    table = sample.embedding
    if table is not None:
        add("embed", (-1, -1), table.rows, table.ids, None)
    return found


def _numbers_of_heads(part: Attention, role: str, rope: str | None) -> tuple[Indices, int | None]:
    """The numbers of a head's rows as they are stored, and of how many if all were read."""
    rows = getattr(part, role)
    heads = part.query_heads if role in ("q", "o") else part.groups
    within = np.arange(rows.shape[1])
    if rope == "interleaved" and role in ("q", "k"):
        half = part.rotated // 2
        within[:half], within[half : 2 * half] = 2 * within[:half], 2 * within[:half] + 1
    starts = (np.arange(len(rows)) if heads is None else heads) * rows.shape[1]
    total = rows.shape[0] * rows.shape[1] if heads is None else None
    return (starts[:, None] + within).reshape(-1), total


def _without_diagonals(parts: Mapping[Place, _Matrix]) -> Iterator[tuple[Place, Floats]]:
    """Matrices of one role that lean to a diagonal, each or all together, without it."""
    for places in _of_equal_rows(parts):
        one = parts[places[0]]
        if one.width < FEWEST_COLUMNS:
            continue
        columns = diagonals(one.numbers, one.total, one.width)
        leans = _leaning([parts[place].rows for place in places], columns)
        if leans.any():  # rows that share a direction have large columns, which are no diagonal
            rest = [parts[place].rows for place in places]
            leans &= _leaning([rows - rows.mean(axis=0) for rows in rest], columns)
        either = leans[:, 0] | leans[:, 1]
        for place, which in zip(places, either, strict=True):
            rows = parts[place].rows
            for at in np.flatnonzero(which).tolist():
                rows = without_diagonal(rows, one.numbers, one.total, at)
            if which.any():
                yield place, rows


def _leaning(matrices: Sequence[Floats], columns: Indices) -> NDArray[np.bool_]:
    """Which matrices lean to which diagonals, with their sign or without it."""
    found = lean(matrices, columns)
    together = np.abs(found.sum(axis=0)) / math.sqrt(len(matrices))
    return np.asarray((together > DEVIATIONS) | (np.abs(found) > DEVIATIONS + _ALONE))


def _of_equal_rows(parts: Mapping[Place, _Matrix]) -> list[list[Place]]:
    """Places of the matrices with rows of the same numbers, together."""
    found: dict[tuple[Any, ...], list[Place]] = {}
    for place, part in parts.items():
        key = part.total, part.width, part.numbers.tobytes()
        found.setdefault(key, []).append(place)
    return list(found.values())


def _repeated_roles(matrices: Matrices, sample: Sample) -> set[str]:
    """Roles whose matrices are alike at equal places from layer to layer.

    Each role is asked, all of a kind, and all kinds. Matrices of a kind share labels or coins, so
    that what their rows have in common is added up. Where one role is found, or all together are,
    the others need not be as clear.
    """
    alone: dict[str, list[Coins]] = {}
    kinds: list[list[Coins]] = []
    found = set[str]()
    units, values = sample.facts.odd_up is True, sample.facts.plain_values is True
    flips = {"up": units, "down": units, "v": values, "o": values}
    everywhere = {
        role: min((part.numbers for part in parts.values()), key=len)
        for role, parts in matrices.items()
    }
    for roles in _KINDS:
        ready = {
            role: {
                place: _coined(
                    role,
                    part,
                    sample.attention.get(place[0]),
                    flips.get(role, False),
                    everywhere[role],
                )
                for place, part in sorted(matrices[role].items())[:_PLACES]
            }
            for role in roles
            if role in matrices
        }
        products = cache(partial(_products, ready))
        alone |= {role: _apart([role], ready, products) for role in ready}
        kinds.append(_apart([*ready], ready, products) if ready else [])
        if _beyond_chance(kinds[-1]):
            found |= {role for role in ready if _leans(alone[role])}
    found |= {role for role, distances in alone.items() if _beyond_chance(distances)}
    every = [np.concatenate(some) for some in zip_longest(*kinds, fillvalue=np.empty(0))]
    if found or _beyond_chance(every):
        found |= {role for role, distances in alone.items() if _leans(distances)}
    return found


def _beyond_chance(distances: Sequence[Coins]) -> bool:
    """Whether rows are alike at every distance of layers, more than coins would make them."""
    some = [coins for coins in distances if coins.any()]
    return bool(some) and all(
        _deviations(coins) >= _DOUBTED and float(sign_log10_p(coins[None])[0]) <= math.log10(_LEVEL)
        for coins in some
    )


def _leans(distances: Sequence[Coins]) -> bool:
    """Whether rows are alike more than usual, if need be by chance."""
    return bool(distances) and _deviations(np.concatenate(distances)) >= _USUAL


def _deviations(coins: Coins) -> float:
    return float(coins.sum()) / max(math.sqrt(float(np.square(coins).sum())), _TINY)


class _Coined(Struct, frozen=True):
    """Rows that a relabelling negates: their lengths, their names, and which coin they have.

    Differences of two neighbouring rows, which change places; their sums, where rows may flip;
    or rows of q and k, whose planes turn over.
    """

    rows: Floats
    lengths: Floats
    names: Indices
    coins: Indices


Ready = Mapping[str, Mapping[Place, _Coined]]


def _coined(
    role: str, part: _Matrix, heads: Attention | None, flips: bool, everywhere: Indices
) -> _Coined:
    """The rows of a matrix that have coins. `heads` is the attention that it belongs to.

    Of many rows those are taken whose numbers were read in all layers.

    Exchanging two rows, or flipping both, negates their difference; flipping both negates their sum
    too, so that the two are coins of their own. Sums lose their mean, since rows that lean to
    one side would do so in every layer.
    """
    rows, names, coins = part.rows, part.numbers, part.numbers // 2
    if role in _HEADS:
        assert heads is not None
        coins = _coins_of_heads(role, heads)
    if role not in ("q", "k"):
        first = np.flatnonzero((names[:-1] % 2 == 0) & (names[1:] == names[:-1] + 1))
        most = max(_FEWEST_PAIRS, _NUMBERS // part.width)
        if len(first) > most:
            first = first[np.isin(names[first], everywhere)]
        first = first[:: max(1, len(first) // most)]
        names, coins = names[first], 2 * coins[first]
        one, other = rows[first], rows[first + 1]
        rows = one - other
        if flips and len(first) > 1:
            sums = one + other
            rows = np.concatenate([rows, sums - sums.mean(axis=0)])
            names, coins = (np.concatenate([which, which + 1]) for which in (names, coins))
    lengths = np.sqrt(np.einsum("nd,nd->n", rows, rows))
    return _Coined(rows, lengths, names, coins)


def _coins_of_heads(role: str, heads: Attention) -> Indices:
    """Which coin each row of a role has: planes and values of a group have one for all its heads.

    Where groups are not known, all heads are one.
    """
    shape = getattr(heads, role).shape
    others = heads.k if role in ("q", "k") else heads.v
    groups = 1 if others is None or shape[0] % len(others) else len(others)
    within = np.arange(shape[1]) // 2
    if role in ("q", "k"):
        half = heads.rotated // 2
        within = np.arange(shape[1])
        within[half : 2 * half] -= half
    group = np.arange(shape[0]) * groups // shape[0]
    return np.asarray((group[:, None] * shape[1] + within).reshape(-1))


def _apart(
    roles: Sequence[str], ready: Ready, products: Callable[[str, Place, Place], Coins]
) -> list[Coins]:
    """How alike rows of some roles are in layers at each distance, one number a coin.

    Layers of one distance form chains, in which each has coins of its own: those of one relative to
    those of the next are independent of all others.
    """
    chains = _chains([ready[role] for role in roles])
    found = []
    for stride in _STRIDES:
        coins = [
            _added([products(role, one, other) for role in roles])
            for chain in chains
            for one, other in zip(chain, chain[stride:], strict=False)
        ]
        found.append(np.concatenate(coins or [np.empty(0)]))
    return found


def _chains(roles: Sequence[Mapping[Place, _Coined]]) -> list[list[Place]]:
    """Places that all roles have, layer by layer, for each expert."""
    common = sorted(set.intersection(*(set(layers) for layers in roles)))
    experts = sorted({expert for _, expert in common})
    return [[place for place in common if place[1] == expert] for expert in experts]


def _products(ready: Ready, role: str, at: Place, to: Place) -> Coins:
    """Cosines of rows of equal name in two layers, added up by coin."""
    one, other = ready[role][at], ready[role][to]
    if one.rows.shape[1] != other.rows.shape[1]:
        return np.empty(0)
    x, y, coins = one.rows, other.rows, one.coins
    if np.array_equal(one.names, other.names):
        lengths = one.lengths * other.lengths
    else:
        _, ours, theirs = np.intersect1d(one.names, other.names, return_indices=True)
        x, y, coins = x[ours], y[theirs], coins[ours]
        lengths = one.lengths[ours] * other.lengths[theirs]
    cosines = np.einsum("nd,nd->n", x, y) / np.where(lengths > _TINY, lengths, np.inf)
    summed = np.bincount(coins, np.where(np.isfinite(cosines), cosines, 0.0))
    return np.asarray(summed, np.float64)


def _added(roles: Sequence[Coins]) -> Coins:
    """The sum over roles, coin by coin; some roles have fewer."""
    total = np.zeros(max(map(len, roles)))
    for coins in roles:
        total[: len(coins)] += coins
    return total


def _with(sample: Sample, changed: Mapping[tuple[str, Place], Floats]) -> Sample:
    """The sample with other numbers in some of its matrices."""

    def new(one: Units | Attention, place: Place, roles: Sequence[str]) -> dict[str, Any]:
        return {
            role: changed[role, place].reshape(getattr(one, role).shape)
            for role in roles
            if (role, place) in changed
        }

    embedding = sample.embedding
    if embedding is not None and ("embed", (-1, -1)) in changed:
        embedding = replace(embedding, rows=changed["embed", (-1, -1)])
    return replace(
        sample,
        units={at: replace(one, **new(one, (at, -1), _UNITS)) for at, one in sample.units.items()},
        experts={at: replace(one, **new(one, at, _UNITS)) for at, one in sample.experts.items()},
        attention={
            at: replace(one, **new(one, (at, -1), _HEADS)) for at, one in sample.attention.items()
        },
        routers={
            at: changed.get(("router", (at, -1)), rows) for at, rows in sample.routers.items()
        },
        embedding=embedding,
    )
