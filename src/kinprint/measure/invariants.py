"""What no relabelling, flip, turn or rotation of a model can change, compared between two models.

Units are matched by one end and judged by what the match did not see: nearest by gate rows, then
up rows and down columns. Heads are matched by their query-key products and judged by their
value-output products. Permuting units, flipping or rescaling them, turning rotary planes, mixing
value dimensions or rotating the residual stream together with the map changes none of it. Strangers
agree too, to an extent that only other strangers can tell: nothing here is a p-value.

Rows are units (or rows of heads) × residual width, inputs already times the gains of the norm that
feeds them, down and output matrices transposed. All of a layer of the second model must be there;
of the first some rows are enough. Arrays may be NumPy's or CuPy's; results are plain numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np
from msgspec import Struct

from kinprint.device import Array, array_module, downloaded, uploaded
from kinprint.measure.basis import (
    PROBES,
    carried,
    mutual,
    nearest_cosines,
    spread,
    unit_rows,
)
from kinprint.measure.ordered import distinct

_COLUMNS = 1e-6  # a share of a row's length below which nothing but rounding is left


class Share(Struct, frozen=True):
    """How many of how many."""

    count: int
    of: int

    @property
    def value(self) -> float:
        """The share; NaN of none."""
        return self.count / self.of if self.of else math.nan


class UnitRows(Struct, frozen=True):
    """Units of one feed-forward, rows of length one; `gate` is None where there is none."""

    up: Array
    down: Array
    gate: Array | None = None

    @classmethod
    def of(cls, up: Array, down: Array, gate: Array | None = None) -> UnitRows:
        """Units from rows of any length; units of which some row is zero take no part."""
        ends = (up, down, gate)
        return cls.complete(*(None if rows is None else unit_rows(rows) for rows in ends))

    @classmethod
    def complete(cls, up: Array, down: Array, gate: Array | None) -> UnitRows:
        """Units from rows of length one; units of which some row is zero take no part."""
        ends = [rows for rows in (up, down, gate) if rows is not None]
        kept = array_module(up).ones(len(up), bool)
        for rows in ends:
            kept &= rows.any(axis=1)
        chosen = ends if kept.all() else [rows[kept] for rows in ends]
        return cls(chosen[0], chosen[1], chosen[2] if gate is not None else None)

    @property
    def key(self) -> Array:
        """The rows by which units are matched: gate rows, up rows where there are none."""
        return self.up if self.gate is None else self.gate

    @property
    def count(self) -> int:
        """Number of units."""
        return len(self.up)

    @property
    def repetition(self) -> float:
        """How alike two ends of a unit are on average: the mean |cosine| of the most alike two."""
        ends = [rows for rows in (self.up, self.down, self.gate) if rows is not None]
        xp = array_module(self.up)
        alike = (abs(xp.einsum("nd,nd->n", x, y)).mean() for x, y in combinations(ends, 2))
        return max(map(float, alike)) if self.count else 0.0

    def some(self, places: Array) -> UnitRows:
        """Some of the units."""
        gate = None if self.gate is None else self.gate[places]
        return UnitRows(self.up[places], self.down[places], gate)

    def uploaded(self) -> UnitRows:
        """The units where they are computed."""
        gate = None if self.gate is None else uploaded(self.gate)
        return UnitRows(uploaded(self.up), uploaded(self.down), gate)

    def carried(self, turn: Array | None) -> UnitRows:
        """The units in the other model's coordinates."""
        gate = None if self.gate is None else carried(self.gate, turn)
        return UnitRows(carried(self.up, turn), carried(self.down, turn), gate)


class UnitAgreement(Struct, frozen=True):
    """How two feed-forwards agree, in numbers of units of the first; no partner is counted twice.

    Attributes
    ----------
    cosine : mean cosine of units with their nearest, by the rows that match them.
    mutual : units that are each other's nearest. Of few rows more are.
    concordance : mutual ones whose up and down cosines have the same sign.
    two_of_three : partners that at least two of gate, |up| and |down| give to a unit.
    span : partners that the plane of gate and up and |down| both give to a unit.
    nearest : partners that the matching rows and down both give to a unit; for plain
        feed-forwards, which have nothing else.
    """

    cosine: float
    mutual: Share
    concordance: Share
    two_of_three: Share
    span: Share
    nearest: Share


class LayerAgreement(Struct, frozen=True):
    """A layer of the first model and the one it was matched with.

    Attributes
    ----------
    layer, partner : places in the two lists of layers.
    turn : place of the residual map, among those given, in which they were matched.
    units : how they agree.
    control : of some units, how many agree with the best of the other layers in the same way:
        two of three, or nearest by both ends in plain feed-forwards. None if there is no other.
    """

    layer: int
    partner: int
    turn: int
    units: UnitAgreement
    control: Share | None


def agreements(
    first: Sequence[UnitRows], second: Sequence[UnitRows], turns: Sequence[Array | None]
) -> tuple[LayerAgreement, ...]:
    """Match every layer of the first model with one of the second, and count how they agree.

    Map and partner are those with the largest mean cosine of nearest keys (gate rows, or up rows
    of plain feed-forwards), layer by layer: parts of a model may follow different bases.
    """
    keys = [units.key for units in first], [units.key for units in second]
    cosines = np.stack([nearest_cosines(*keys, turn) for turn in turns])
    found = []
    for at, ours in enumerate(first):
        which, to = divmod(int(cosines[:, at].argmax()), len(second))
        turn = turns[which]
        some = ours.some(spread(ours.count, PROBES)).carried(turn)
        others = [_agreeing(some, theirs) for place, theirs in enumerate(second) if place != to]
        found.append(
            LayerAgreement(
                at, to, which, unit_agreement(ours, second[to], turn),
                max(others, key=lambda share: share.value) if others else None,
            )
        )  # fmt: skip
    return tuple(found)


def unit_agreement(first: UnitRows, second: UnitRows, turn: Array | None) -> UnitAgreement:
    """How two feed-forwards agree in a given map; both gated, or both compared as plain."""
    first, second = first.uploaded(), second.uploaded()
    turn = None if turn is None else uploaded(turn)
    xp = array_module(first.up)
    ours = first.carried(turn)
    up = ours.up @ second.up.T
    down = ours.down @ second.down.T
    gate = up if ours.gate is None or second.gate is None else ours.gate @ second.gate.T
    best, both = mutual(gate)
    none = Share(0, 0)
    shared = Share(int(both.sum()), first.count)
    cosine = float(gate.max(axis=1).mean())
    if gate is up:
        nearest = _same_partner(best, down.argmax(axis=1))
        return UnitAgreement(cosine, shared, none, none, none, nearest)
    pairs = xp.arange(first.count)[both], best[both]
    by_up, by_down = abs(up).argmax(axis=1), abs(down).argmax(axis=1)
    concordant = (up[pairs] > 0) == (down[pairs] > 0)
    by_span = _plane_likeness(_plane(first), _plane(second), turn, gate).argmax(axis=1)
    return UnitAgreement(
        cosine,
        shared,
        Share(int(concordant.sum()), shared.count),
        _two_of_three(best, by_up, by_down),
        _same_partner(by_span, by_down),
        _same_partner(best, by_down),
    )


class PlaneAgreement(Struct, frozen=True):
    """A layer and the one whose planes of gate and up are nearest, with the units that agree.

    `span` counts units whose nearest by that plane is the nearest by |down|.
    """

    layer: int
    partner: int
    turn: int
    span: Share


def plane_agreements(
    first: Sequence[UnitRows], second: Sequence[UnitRows], turns: Sequence[Array | None]
) -> tuple[PlaneAgreement, ...]:
    """Match layers by the planes that gate and up rows span, which exchanging the two leaves.

    For maps that were not refined with gate rows: where gate and up were exchanged, these are not
    each other's nearest.
    """
    planes = [_plane(units) for units in second]
    few = [_plane(ours.some(spread(ours.count, PROBES // 4))) for ours in first]
    xp = array_module(planes[0][0])
    together = xp.concatenate([gate for gate, _ in few]), xp.concatenate([rest for _, rest in few])
    ends = np.cumsum([len(gate) for gate, _ in few])[:-1]
    means = np.empty((len(first), len(turns), len(second)))
    for which, turn in enumerate(turns):
        for to, theirs in enumerate(planes):
            best = downloaded(_plane_likeness(together, theirs, turn).max(axis=1))
            means[:, which, to] = [rows.mean() for rows in np.split(best, ends)]
    found = []
    for at, ours in enumerate(first):
        which, to = divmod(int(means[at].argmax()), len(second))
        turn = turns[which]
        by_span = _plane_likeness(_plane(ours), planes[to], turn).argmax(axis=1)
        by_down = abs(carried(ours.down, turn) @ second[to].down.T).argmax(axis=1)
        found.append(PlaneAgreement(at, to, which, _same_partner(by_span, by_down)))
    return tuple(found)


class HeadRows(Struct, frozen=True):
    """Attention of one layer: heads × rows of a head × width, `k` and `v` by key-value group.

    Row j of q and k turns with row j + rotated/2; the rows from `rotated` on do not turn. Rows of
    o are the output weights of value dimensions, by query head.
    """

    q: Array
    k: Array
    v: Array
    o: Array
    rotated: int

    @property
    def count(self) -> int:
        """Number of query heads."""
        return len(self.q)


def head_agreement(first: HeadRows, second: HeadRows, turn: Array | None) -> Share | None:
    """Query heads whose nearest by query-key product is the nearest by value-output product.

    None where heads have different numbers of rotating rows, or the second has but one head.
    """
    if first.rotated != second.rotated or second.count < 2:
        return None
    if not first.rotated and first.q.shape[1] != second.q.shape[1]:
        return None
    by_product = _key_products(first, second, turn).argmax(axis=1)
    by_value = _value_products(first, second, turn).argmax(axis=1)
    return Share(int((by_product == by_value).sum()), first.count)


def effective_gains(rows: Sequence[Array], turn: Array | None = None) -> Array:
    """What a norm passes on of each channel: the lengths of the columns that it feeds.

    `rows` are the matrices that read the norm's output, already times its gains: gains can be
    rewritten without changing the function, their product with the columns cannot.
    """
    xp = array_module(rows[0])
    squares = sum(xp.square(carried(part, turn).astype(xp.float64)).sum(axis=0) for part in rows)
    return xp.sqrt(squares)


def _agreeing(first: UnitRows, second: UnitRows) -> Share:
    """Units that several ends give the same nearest: two of three, or both of a plain one."""
    up = first.up @ second.up.T
    down = first.down @ second.down.T
    if first.gate is None or second.gate is None:
        return _same_partner(up.argmax(axis=1), down.argmax(axis=1))
    gate = first.gate @ second.gate.T
    return _two_of_three(gate.argmax(axis=1), abs(up).argmax(axis=1), abs(down).argmax(axis=1))


def _two_of_three(gate: Array, up: Array, down: Array) -> Share:
    """Units that two of three ends give one partner, each partner counted once.

    Where a unit of the second model is nearest to all of the first, or its units are copies of one
    another, every end names the same one: that is no agreement.
    """
    xp = array_module(gate)
    with_gate = (gate == up) | (gate == down)
    partner = xp.where(with_gate, gate, up)[with_gate | (up == down)]
    return Share(distinct(partner), len(gate))


def _same_partner(one: Array, other: Array) -> Share:
    """Units that two ends give one partner, each partner counted once."""
    return Share(distinct(one[one == other]), len(one))


Plane = tuple[Array, Array]
"""Orthonormal rows, two for each unit, that span its gate and up."""


def _plane_likeness(
    first: Plane, second: Plane, turn: Array | None, gates: Array | None = None
) -> Array:
    """Sum of the squared cosines between the planes that gate and up rows span.

    `gates` are the cosines of gate rows, where they are known.
    """
    xp = array_module(first[0])
    gate, rest = (carried(one, turn) for one in first)
    total = xp.square(gate @ second[0].T if gates is None else gates)
    for x, y in ((gate, second[1]), (rest, second[0]), (rest, second[1])):
        cosines = x @ y.T
        xp.square(cosines, out=cosines)
        xp.add(total, cosines, out=total)
    return total


def _plane(units: UnitRows) -> Plane:
    """The planes of units; the second row is zero where gate and up are parallel."""
    xp = array_module(units.up)
    assert units.gate is not None
    rest = units.up - (units.up * units.gate).sum(axis=1, keepdims=True) * units.gate
    length = xp.sqrt((rest * rest).sum(axis=1, keepdims=True))
    return units.gate, xp.where(length > _COLUMNS, rest / xp.where(length > 0, length, 1), 0)


def _key_products(first: HeadRows, second: HeadRows, turn: Array | None) -> Array:
    """Cosines of the products QᵀK of query heads, plane by plane where positions turn them.

    A plane's two rows are one complex row: turning the plane multiplies q and k by one phase,
    which the product of q with the conjugate of k does not see.
    """
    half = first.rotated // 2
    total = own = other = 0.0
    if half:
        q1, k1, q2, k2 = (
            part[:, :half] + 1j * part[:, half : 2 * half]
            for part in (carried(first.q, turn), carried(first.k, turn), second.q, second.k)
        )
        q, k = _by_place(q1, q2), _by_group(_by_place(k1, k2), first, second)
        total = (q * k.conj()).real.sum(axis=2)
        own = _plane_sizes(first, half)
        other = _plane_sizes(second, half)
    if 2 * half < first.q.shape[1]:
        rest = slice(2 * half, None)
        args = [part[:, rest] for part in (first.q, first.k, second.q, second.k)]
        total = total + _products(args[0], args[1], args[2], args[3], turn)
        own = own + _own(args[0], args[1])
        other = other + _own(args[2], args[3])
    return _cosines(total, own, other)


def _value_products(first: HeadRows, second: HeadRows, turn: Array | None) -> Array:
    """Cosines of the products of values and outputs of query heads."""
    total = _products(first.o, first.v, second.o, second.v, turn)
    return _cosines(total, _own(first.o, first.v), _own(second.o, second.v))


def _by_place(first: Array, second: Array) -> Array:
    """Products of rows with the same place in every two heads: heads × heads × places."""
    table = first.transpose(1, 0, 2) @ second.conj().transpose(1, 2, 0)
    return table.transpose(1, 2, 0)


def _by_group(table: Array, first: HeadRows, second: HeadRows) -> Array:
    """Products of key-value groups repeated for the query heads of each group."""
    inside, outside = first.count // len(first.k), second.count // len(second.k)
    return table.repeat(inside, axis=0).repeat(outside, axis=1)


def _plane_sizes(heads: HeadRows, half: int) -> Array:
    """Squared sizes of the products of a model's own heads."""
    q, k = (
        (part[:, :half] ** 2 + part[:, half : 2 * half] ** 2).sum(axis=2)
        for part in (heads.q, heads.k)
    )
    return (q * k.repeat(len(q) // len(k), axis=0)).sum(axis=1)


def _products(a1: Array, b1: Array, a2: Array, b2: Array, turn: Array | None) -> Array:
    """Σ (a₁a₂ᵀ)∘(b₁b₂ᵀ): inner products of a₁ᵀb₁ with a₂ᵀb₂, every head with every head."""
    xp = array_module(a1)
    b1, b2 = (b.repeat(len(a) // len(b), axis=0) for a, b in ((a1, b1), (a2, b2)))
    a1, b1 = carried(a1, turn), carried(b1, turn)
    found = xp.empty((len(a1), len(a2)), a1.dtype)
    for at in range(len(a1)):
        left = a1[at] @ a2.transpose(0, 2, 1)
        right = b1[at] @ b2.transpose(0, 2, 1)
        found[at] = (left * right).sum(axis=(1, 2))
    return found


def _own(a: Array, b: Array) -> Array:
    """Squared sizes of aᵀb of each head."""
    b = b.repeat(len(a) // len(b), axis=0)
    return ((a @ a.transpose(0, 2, 1)) * (b @ b.transpose(0, 2, 1))).sum(axis=(1, 2))


def _cosines(total: Array, own: Array, other: Array) -> Array:
    xp = array_module(total)
    size = xp.sqrt(own)[:, None] * xp.sqrt(other)[None, :]
    return xp.where(size > 0, total / xp.where(size > 0, size, 1), 0)
