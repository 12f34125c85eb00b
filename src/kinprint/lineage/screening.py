"""Which pairs of many are worth all tests: a short look at what every model is reduced to once.

Matching units and looking for a common basis takes most of the time of a comparison, and among many
models most pairs are strangers. A pair is compared at length where one of these says so:

- a row of some tensor is stored in both models, wherever it is;
- rows of equal number are alike, more than neighbours are, or tokens of equal spelling;
- some rows of a tensor have their like in the other model, in any layer and under any number;
- units have their like in the other model by what neither numbering nor a turn of the residual
  stream changes: the angles between their ends, and how these lie to the Gram matrices of all;
- gate rows have their like in the basis that common tokens give.

Other pairs get the quick tests of norms alone. Nothing is at stake but time and power: every test
of the menu has been paid for, whether it is run or not, so that no p-value becomes smaller.

Of the 276 pairs of the zoo all that the whole battery links are looked at.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations_with_replacement

import ml_dtypes
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kinprint.lineage.pair import Pair
from kinprint.lineage.parts.tensors import tensors_of
from kinprint.lineage.preparation import Prepared
from kinprint.lineage.reading.sample import Floats, Sample
from kinprint.lineage.tests.menu import menu
from kinprint.measure.basis import carried, nearest_cosines, polar_factor, spread, unit_rows
from kinprint.measure.equal_rows import hashed
from kinprint.measure.invariants import UnitRows
from kinprint.records import Component, Evidence, Status

LIKE_UNITS = 0.15
"""The share of units of a feed-forward that have one clear like, from which on a pair is compared
at length; strangers of the zoo reach 0.12, descendants in another basis have 0.23 or more."""
LIKE_GATES = 1.8
"""The same for the cosine of nearest gate rows, over that of as many random rows; strangers of the
zoo reach 1.5, descendants have 2.3 or more."""
LIKE_ROWS = 4.0
"""The same for rows of equal number, in standard deviations of their mean."""
LIKE_PROBES = 6.0
"""The same for the most alike of all rows of a role, in deviations of their likeness; the best of
ten thousand strangers lie at about four. `_LIKES` of the rows probed must have it: a stranger's row
may meet one that a few channels rule as well."""
_CLEAR = 0.7  # of the distance to the second nearest: the nearest is the like of a unit
_UNITS, _ROWS, _TOKENS, _PROBES, _LAYERS = 32, 32, 512, 16, 6
_FEW, _TENSORS = 4, 64  # rows that are probed of a tensor, and tensors of a role
_LIKES = 2  # of all rows that are probed of a role
_LIKENESSES = 1 << 20  # numbers that are compared at once
_FAR = 4.0  # robust deviations beyond which a number says no more
_SIGN = -3.0  # log10 p of a quick test that calls for the others
_FEWEST = 64  # units of a feed-forward, so that one of them is no chance


class Digest(Struct, frozen=True):
    """What the screen knows of a model.

    Attributes
    ----------
    stored : rows of all tensors as they would be in bfloat16, hashed, in order.
    labels, rows : rows of length one and which they are: layer, tensor and number.
    probes : of each tensor some rows of length one, by role.
    by_role : all rows of length one, of all tensors of a role.
    tokens : embedding rows of length one by spelling.
    units : of feed-forwards that were read whole, for each unit what no relabelling changes.
    gates : gate rows of these units (up rows where there are none), of length one.
    """

    stored: NDArray[np.uint64]
    labels: tuple[tuple[str, int], ...]
    rows: Floats
    probes: Mapping[str, Floats]
    by_role: Mapping[str, Floats]
    tokens: Mapping[bytes, int]
    embedding: Floats
    units: tuple[Floats, ...]
    gates: tuple[Floats, ...]


def digest(model: Prepared) -> Digest:
    """Reduce a model to what pairs of it are screened by."""
    whole = [
        rows
        for place, rows in model.unit_rows.items()
        if place in model.whole_feed_forwards and rows.count >= _FEWEST
    ]
    chosen = [whole[at] for at in spread(len(whole), 4 * _LAYERS)] if whole else []
    labels, rows = _numbered(model.sample)
    tokens, embedding = _tokens(model)
    by_role = _by_role(model.sample) if chosen else {}  # without units all tests are run
    return Digest(
        _stored(model.sample),
        labels,
        rows,
        {role: _probes(tensors) for role, tensors in by_role.items()},
        {role: np.concatenate(tensors) for role, tensors in by_role.items()},
        tokens,
        embedding,
        tuple(_invariant(units) for units in chosen),
        tuple(units.key for units in chosen),
    )


def worth_comparing(a: Digest, b: Digest, *, likes: Callable[[], bool] | None = None) -> bool:
    """Whether anything calls for all tests; also where too little was read to say.

    What is near to what has a direction: the models are taken in an order of their own. Whoever has
    many pairs to ask about may say in another way whether one of the two `have_likes` in the other.
    """
    if not (a.units and b.units) or np.intersect1d(a.stored, b.stored, True).size:
        return True
    a, b = sorted((a, b), key=lambda one: one.units[0][0].tolist())
    tokens = _common(a, b)
    turn = _turn(*tokens)
    if a.rows.shape[1] == b.rows.shape[1] and max(_deviations(*tokens), _alike(a, b)) >= LIKE_ROWS:
        return True
    if any(have_likes([a], b) + have_likes([b], a)) if likes is None else likes():
        return True
    if turn is not None and (_alike(a, b, turn) >= LIKE_ROWS or _gates(a, b, turn) >= LIKE_GATES):
        return True
    return _like_units(a, b) >= LIKE_UNITS


def quick_evidence(pair: Pair) -> tuple[Evidence, ...] | None:
    """What the tests of norms give; None where one of them calls for the others."""
    tests = [one.test for one in menu(pair.level) if one.test.component is Component.NORMS]
    found = tuple(test.run(pair) for test in tests)
    tested = any(one.status is Status.OK for one in found)
    clear = any(one.status is Status.OK and one.log10_p <= _SIGN for one in found)
    return None if clear or not tested else found


def _stored(sample: Sample) -> NDArray[np.uint64]:
    """Hashes of all rows but constant ones."""
    found = [np.empty(0, np.uint64)]
    for part in sample.parts:
        for _, rows in tensors_of(sample, part).values():
            if rows.ndim == 2 and rows.shape[1] > 1:
                telling = rows[np.ptp(rows, axis=1) > 0]
                found.append(hashed(telling.astype(ml_dtypes.bfloat16).astype(np.float32)))
    return np.unique(np.concatenate(found))


def _by_role(sample: Sample) -> dict[str, list[Floats]]:
    """Rows of length one of every tensor that reads or writes the residual stream, by role."""
    found: dict[str, list[Floats]] = {}
    for part in sample.parts:
        for (name, inputs), (_, rows) in tensors_of(sample, part).items():
            layered = part.layer is not None and rows.ndim == 2 and len(rows) >= _FEW
            if layered and rows.shape[1] == sample.width:
                found.setdefault(f"{name} {inputs}", []).append(unit_rows(rows))
    return found


def _probes(tensors: Sequence[Floats]) -> Floats:
    """Some rows of some tensors, one tensor after another."""
    some = [tensors[at] for at in spread(len(tensors), _TENSORS)]
    return np.concatenate([rows[spread(len(rows), _FEW)] for rows in some])


def have_likes(models: Sequence[Digest], other: Digest) -> list[bool]:
    """Which models have some rows of a role, of those probed, that have their like in another's.

    Either of two may be the other: one may have more rows. Products of few rows wait for memory,
    so that those of several models are made at once, as far as there is room.
    """
    found = [False] * len(models)
    for role, theirs in sorted(other.by_role.items()):
        asked = [
            at
            for at, model in enumerate(models)
            if role in model.probes and model.probes[role].shape[1] == theirs.shape[1]
        ]
        most = max(_LIKENESSES // len(theirs), 1)
        while asked:
            some, rows = asked[:1], len(models[asked[0]].probes[role])
            for at in asked[1:]:
                rows += len(models[at].probes[role])
                if rows > most:
                    break
                some.append(at)
            asked = asked[len(some) :]
            ours = [models[at].probes[role] for at in some]
            likeness = np.abs(np.concatenate(ours) @ theirs.T)
            deviation = np.sqrt(np.einsum("nm,nm->n", likeness, likeness) / len(theirs))
            clear = (deviation > 0) & (likeness.max(axis=1) >= LIKE_PROBES * deviation)
            counts = np.add.reduceat(clear, _starts(ours), dtype=np.int64)
            for at, count in zip(some, counts.tolist(), strict=True):
                found[at] = found[at] or count >= _LIKES
    return found


def _numbered(sample: Sample) -> tuple[tuple[tuple[str, int], ...], Floats]:
    """Some rows of every tensor that reads or writes the residual stream."""
    labels: list[tuple[str, int]] = []
    found: list[Floats] = [np.empty((0, sample.width), np.float32)]
    for part in sample.parts:
        for (name, inputs), (index, rows) in tensors_of(sample, part).items():
            if rows.ndim == 2 and rows.shape[1] == sample.width and len(rows) >= _ROWS:
                few = slice(_ROWS)
                own = f"{part.layer} {part.component} {part.expert} {name} {inputs}"
                labels += [(own, int(number)) for number in index[few]]
                found.append(rows[few] - rows[few].mean(axis=1, keepdims=True))
    return tuple(labels), unit_rows(np.concatenate(found))


def _tokens(model: Prepared) -> tuple[dict[bytes, int], Floats]:
    """Embedding rows of tokens that other models choose too, if they have them."""
    table = model.sample.embedding
    if table is None:
        return {}, np.empty((0, model.width), np.float32)
    chosen = sorted(model.token_rows, key=zlib.crc32)[:_TOKENS]
    rows = table.rows[[model.token_rows[token] for token in chosen]]
    return {token: at for at, token in enumerate(chosen)}, unit_rows(rows)


def _invariant(units: UnitRows) -> Floats:
    """For each unit the cosines of its ends, and x·K·y for the Gram matrices K of all ends.

    Up and down are flipped together, the gate is not: what changes its sign counts by its size.
    """
    ends = [rows for rows in (units.gate, units.up, units.down) if rows is not None]
    flips = len(ends) - 2  # the place of the first end that a flip turns round
    grams = [rows.T @ rows * (rows.shape[1] / len(rows)) for rows in ends]
    found = []
    for x, y in combinations_with_replacement(range(len(ends)), 2):
        values = [] if x == y else [(ends[x] * ends[y]).sum(axis=1)]
        values += [np.einsum("nd,nd->n", ends[x] @ gram, ends[y]) for gram in grams]
        signed = x == y or x >= flips
        found += values if signed else [np.abs(one) for one in values]
    table = np.stack(found, axis=1)
    middle = np.median(table, axis=0)
    deviation = 1.4826 * np.median(np.abs(table - middle), axis=0)
    scaled = (table - middle) / np.where(deviation > 0, deviation, 1.0)
    return np.asarray(np.clip(scaled, -_FAR, _FAR), np.float32)


def _alike(a: Digest, b: Digest, turn: Floats | None = None) -> float:
    """How much rows of equal number are alike, in the basis as it is or in that of the tokens."""
    ours, theirs = a.rows, b.rows
    if a.labels != b.labels:
        places = {label: at for at, label in enumerate(b.labels)}
        both = [(at, places[label]) for at, label in enumerate(a.labels) if label in places]
        ours, theirs = ours[[at for at, _ in both]], theirs[[to for _, to in both]]
    return _deviations(carried(ours, turn), theirs)


def _deviations(x: Floats, y: Floats) -> float:
    """How far the mean cosine of rows lies above that of neighbours, in standard deviations."""
    if len(x) < _ROWS:
        return 0.0
    excess = np.einsum("nd,nd->n", x, y)
    excess[1:] -= np.einsum("nd,nd->n", x[1:], y[:-1])
    excess[:1] -= np.einsum("nd,nd->n", x[:1], y[-1:])
    deviation = float(excess.std())
    return float(excess.mean()) / deviation * math.sqrt(len(x)) if deviation > 0 else 0.0


def _common(a: Digest, b: Digest) -> tuple[Floats, Floats]:
    """Embedding rows of tokens that both have."""
    if a.tokens.keys() == b.tokens.keys():
        return a.embedding, b.embedding
    shared = sorted(a.tokens.keys() & b.tokens.keys())
    ours, theirs = ([model.tokens[token] for token in shared] for model in (a, b))
    return a.embedding[ours], b.embedding[theirs]


def _turn(ours: Floats, theirs: Floats) -> Floats | None:
    """The turn that takes tokens of one model to those of the other; None with too few."""
    if len(ours) < max(ours.shape[1], theirs.shape[1]):
        return None
    return np.asarray(polar_factor(ours.T @ theirs))


def _gates(a: Digest, b: Digest, turn: Floats) -> float:
    """The cosine of gate rows with their nearest in the closest layers, beside random rows."""
    some = [a.gates[at] for at in spread(len(a.gates), _LAYERS)]
    near = nearest_cosines(some, b.gates, turn, _PROBES).max(axis=1)
    width = turn.shape[1]
    by_chance = math.sqrt(1.0 - len(b.gates[0]) ** (-2.0 / max(width - 1, 1)))
    return float(near.max()) / by_chance


def _like_units(a: Digest, b: Digest) -> float:
    """The largest share, over pairs of feed-forwards, of units with one clear like."""
    ours = [units[spread(len(units), _UNITS)] for units in a.units]
    if len({units.shape[1] for units in (*a.units, *b.units)}) > 1:
        return 0.0  # gated units beside plain ones
    few = np.concatenate(ours)
    sizes = np.square(few).sum(axis=1)[:, None]
    clear = np.empty((len(few), len(b.units)), bool)
    for at, theirs in enumerate(b.units):
        distances = few @ (-2.0 * theirs.T)
        distances += sizes
        distances += np.square(theirs).sum(axis=1)
        near = distances.min(axis=1, keepdims=True)
        np.putmask(distances, distances <= near, np.inf)
        clear[:, at] = near[:, 0] < _CLEAR**2 * np.maximum(distances.min(axis=1), 1e-9)
    counts = np.add.reduceat(clear, _starts(ours), axis=0, dtype=np.int64)
    return float((counts / np.array([[len(units)] for units in ours])).max())


def _starts(parts: Sequence[Floats]) -> NDArray[np.int64]:
    return np.cumsum([0, *(len(part) for part in parts[:-1])])
