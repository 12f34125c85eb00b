"""A sample made ready for comparison: inputs scaled by their norm, rows of length one.

Everything here treats all units, heads and channels alike, so that relabelling a model relabels
what comes out and changes nothing else; only diagonals, which no relabelling explains, are taken
out where they stand. Up, down, values and outputs are never centred over units, because a mean does
not survive flips; but each row loses its own mean, since two tensors with a common offset are alike
without being related.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from kinprint.lineage.common_starts import without_common_starts
from kinprint.lineage.reading.sample import Attention, Embedding, Floats, Indices, Sample, Units
from kinprint.mapped import keep, let_go
from kinprint.measure.basis import unit_rows
from kinprint.measure.computed import of_formulas
from kinprint.measure.invariants import HeadRows, UnitRows
from kinprint.measure.ordered import distinct
from kinprint.model.symmetries import axes_of
from kinprint.nulls.fixed_points import Neighbours
from kinprint.nulls.masks import masked, without_filler
from kinprint.nulls.preparation import (
    degenerate,
    normal_scores,
    one_valued,
    standardise_columns,
)
from kinprint.records import Component, weight_of

Complex = NDArray[np.complex64]
NormKey = tuple[str, int]
_BEFORE_MLP = "norm_mlp"  # the norm before the feed-forward, whatever a model calls it
DENSE = -1
"""The expert number of a feed-forward that is not one of several."""
FEWEST_TOKENS = 16
"""Fewer shared tokens than this do not make a column."""
_COLUMNS = 256  # of a row, where all would be more than it takes
_TINY, _VAST = np.float32(1e-36), np.float32(1e18)
# Matrices of other sizes are scaled to the usual one: their products would leave the range.
_LEAST_SIZE, _SIZE, _MOST_SIZE = 1e-9, 2.0**-5, 1e9
_LARGE = 4_000_000  # bytes of a matrix after which others need not stay in memory
_LOOKED_AT = 1024  # numbers that tell the size of a matrix
_ROUNDING = np.float32(1e-6)
_EVERY = slice(None)


class FeedForward(Struct, frozen=True):
    """Units of one feed-forward with rows of length one, inputs scaled by the norm before.

    `index` are the units that were read of `total`. `size` orders them without regard to index,
    sign or residual basis. `read` names the matrices that say something: those that were not
    read, or are constant, are all zero. `masked` says that zeros or another value stand at many
    places, which training does not do.
    """

    layer: int
    expert: int
    index: Indices
    total: int
    up: Floats
    down: Floats
    gate: Floats | None
    size: Floats
    read: frozenset[str]
    masked: bool = False

    @property
    def width(self) -> int:
        """Numbers in a row: the residual width."""
        return int(self.up.shape[1])

    def thinned(self, units: int | None = None) -> Floats:
        """Up and down rows side by side, of the first units or all, with some of the columns."""
        step = max(1, self.width // _COLUMNS)
        return np.concatenate([self.up[:units, ::step], self.down[:units, ::step]], axis=1)


class Heads(Struct, frozen=True):
    """Attention of one layer: rotary planes of length one, values and outputs by row.

    `q` and `k` are heads × planes × width, complex (the two rows of a plane); `q_rest` and
    `k_rest` rows that do not rotate; `v` groups × dimensions × width; `o` the same with the
    query heads of a group between. `masked` names the matrices with zeros or another value at
    many places.
    """

    layer: int
    q: Complex | None
    k: Complex | None
    q_rest: Floats | None
    k_rest: Floats | None
    v: Floats | None
    o: Floats | None
    q_bias: Complex | None = None
    k_bias: Complex | None = None
    masked: frozenset[str] = frozenset()

    @property
    def groups(self) -> int:
        """Number of key-value heads."""
        part = self.k if self.k is not None else self.v
        return 0 if part is None else len(part)

    @property
    def queries(self) -> int:
        """Query heads in a group."""
        if self.q is not None:
            return len(self.q) // self.groups
        return 1 if self.o is None else int(self.o.shape[1])

    def rows(self, role: str, group: int, step: int = 1) -> Floats:
        """Rows of k or v in a group, every so many columns of them; planes as real numbers."""
        part = getattr(self, role)[group][:, ::step]
        if np.iscomplexobj(part):
            return np.concatenate([part.real, part.imag], axis=-1).astype(np.float32)
        return np.asarray(part, np.float32)

    def informative(self, role: str) -> bool:
        """Whether a matrix was read and is more than a constant."""
        part = getattr(self, role)
        return part is not None and bool(part.any())


class GainScores(Struct, eq=False):
    """Normal scores of a model's gains by norm; those of constant vectors are left out.

    They stay with a model as long as its gains do. `nearest` are the channels of the model that it
    was compared with last, by their scores.
    """

    by_norm: dict[NormKey, NDArray[np.float64]]
    nearest: tuple[GainScores, Neighbours] | None = None


class Prepared:
    """One model as the tests see it; what several of them need is prepared once.

    `stored` is the sample as it was read. In `sample`, what says nothing is zero (`_telling`).
    Gains are the same in both, so that whoever asks for these alone waits for no matrix.
    """

    def __init__(self, sample: Sample) -> None:
        self.stored = sample
        self.key = sample.key
        self.facts = sample.facts
        self.width = sample.width

    @cached_property
    def sample(self) -> Sample:
        """The sample as it is tested."""
        return without_common_starts(_as_tested(self.stored))

    @cached_property
    def feed_forwards(self) -> tuple[FeedForward, ...]:
        """All feed-forwards read, dense ones and experts, by layer."""
        units = {(layer, DENSE): part for layer, part in self.sample.units.items()}
        units.update(self.sample.experts)
        prepared = (self._feed_forward(*place, units[place]) for place in sorted(units))
        return tuple(part for part in prepared if part.up.size)

    @cached_property
    def unit_rows(self) -> dict[tuple[int, int], UnitRows]:
        """Units by layer and expert as a rotation of the residual stream leaves them.

        Unlike `feed_forwards`, no row loses its mean over channels: that is no invariant.
        """
        units = {(layer, DENSE): part for layer, part in self.sample.units.items()}
        units.update(self.sample.experts)
        found = {}
        for (layer, expert), part in sorted(units.items()):
            gain = self.feed_forward_gain(layer)
            scaled = (part.up, gain), (part.down, np.float32(1)), (part.gate, gain)
            with np.errstate(over="ignore", invalid="ignore"):
                ends = (None if end is None else keep(unit_rows(end * by)) for end, by in scaled)
                found[layer, expert] = UnitRows.complete(*ends)
        return {place: rows for place, rows in found.items() if rows.count}

    @cached_property
    def whole_feed_forwards(self) -> frozenset[tuple[int, int]]:
        """Feed-forwards of which every unit was read, by layer and expert."""
        units = {(layer, DENSE): part for layer, part in self.sample.units.items()}
        units.update(self.sample.experts)
        return frozenset(
            place for place, part in units.items() if distinct(part.index) == part.total
        )

    @cached_property
    def head_rows(self) -> dict[int, HeadRows]:
        """Attention by layer, inputs scaled by the norm before; where all four matrices are."""
        found = {}
        for layer, part in sorted(self.sample.attention.items()):
            if part.q is None or part.k is None or part.v is None or part.o is None:
                continue
            heads, groups = len(part.q), len(part.k)
            if heads % groups or len(part.o) != heads or len(part.v) != groups:
                continue
            gain = self.attention_gain(layer)
            turned = part.rotated if self.facts.rotary is None else self.facts.rotary
            with np.errstate(over="ignore", invalid="ignore"):
                rows = (part.q * gain, part.k * gain, part.v * gain, part.o)
            if all(np.isfinite(one).all() for one in rows):
                found[layer] = HeadRows(*rows, min(part.rotated, turned))
        return found

    @cached_property
    def heads(self) -> dict[int, Heads]:
        """Attention by layer."""
        return {
            layer: _heads(layer, part, self.attention_gain(layer), self.facts.rotary)
            for layer, part in sorted(self.sample.attention.items())
        }

    @cached_property
    def gains(self) -> dict[NormKey, Floats]:
        """Gains (and biases) of the residual stream's norms, as they were read.

        The norm before the feed-forward has one name, whatever the model calls it.
        """
        stored = [
            *((key, "", gain) for key, gain in sorted(self.stored.norms.items())),
            *((key, ".bias", bias) for key, bias in sorted(self.stored.norm_biases.items())),
        ]
        return {
            (self._common_name(role, layer) + suffix, layer): vector
            for (role, layer), suffix, vector in stored
            if axes_of(role, 1) == ("residual",) and vector.shape == (self.width,)
        }

    @cached_property
    def scores(self) -> GainScores:
        """Normal scores of the gains."""
        keys = list(self.gains)
        if not keys:
            return GainScores({})
        table = normal_scores(np.stack([self.gains[key] for key in keys]))
        return GainScores({key: row for key, row in zip(keys, table, strict=True) if row.any()})

    @cached_property
    def profile(self) -> NDArray[np.float64] | None:
        """Normal scores of the gains' mean over depth; None where there is none that varies."""
        scores = list(self.scores.by_norm.values())
        profile = np.mean(scores, axis=0) if scores else np.empty(0)
        return None if degenerate(profile) else normal_scores(profile)

    @cached_property
    def routers(self) -> dict[int, Floats]:
        """Router rows of length one by layer, inputs scaled by the norm before.

        Routers that read something else than the residual stream say nothing about it.
        """
        return {
            layer: _unit_rows(_scaled(rows, self.feed_forward_gain(layer)))[0]
            for layer, rows in sorted(self.sample.routers.items())
            if rows.shape[-1] == self.width
        }

    @cached_property
    def token_rows(self) -> dict[bytes, int]:
        """The row of each token that was read; of equal spellings the first."""
        return _token_rows(self.sample.embedding)

    @cached_property
    def tied(self) -> bool:
        """Whether logits come from the embedding, as no head is stored and none is missing."""
        stored = any(part.component is Component.HEAD for part in self.sample.parts)
        return not (stored or self.sample.head or self.sample.partial or self.sample.headless)

    @property
    def output(self) -> Embedding | None:
        """The table that logits come from."""
        return self.sample.embedding if self.tied else self.sample.head

    @cached_property
    def output_rows(self) -> dict[bytes, int]:
        """The row of each token in the table that logits come from."""
        return self.token_rows if self.tied else _token_rows(self.sample.head)

    def stored_units(self, part: FeedForward) -> Units:
        """The units of a feed-forward as they are tested, neither scaled nor centred."""
        if part.expert == DENSE:
            return self.sample.units[part.layer]
        return self.sample.experts[part.layer, part.expert]

    def gate_among(self, part: FeedForward, some: Indices) -> Floats:
        """Gate rows of a feed-forward less the mean of some of its units, not of all that were
        read."""
        gate = self.stored_units(part).gate
        assert gate is not None
        return _less_mean(_unit_rows(_scaled(gate, self.feed_forward_gain(part.layer)))[0], some)

    def attention_gain(self, layer: int) -> Floats:
        """Gains of the norm before attention; ones where there is none."""
        return self._gain("norm_in", layer)

    def feed_forward_gain(self, layer: int) -> Floats:
        """Gains of the norm before the feed-forward; ones where there is none."""
        return self._gain(self._norm_before_feed_forward(layer), layer)

    def _feed_forward(self, layer: int, expert: int, units: Units) -> FeedForward:
        gain = self.feed_forward_gain(layer)
        gate = None
        if units.gate is not None:
            gate = keep(_less_mean(_unit_rows(_scaled(units.gate, gain))[0]))
        up, up_size = _unit_rows(_scaled(units.up, gain))
        down, down_size = _unit_rows(_centred(units.down))
        up, down = keep(up), keep(down)
        # Without down rows the order of size must not fall back on the order of index.
        size = np.minimum(up_size, _VAST)
        if down_size.any():
            size = size * np.minimum(down_size, _VAST)
        parts = {"gate": gate, "up": up, "down": down}
        read = frozenset(role for role, part in parts.items() if part is not None and part.any())
        # Side by side, so that units with nothing but zeros are told from masks.
        stored = [getattr(units, role) for role in sorted(read)] or [up]
        return FeedForward(
            layer, expert, units.index, units.total, up, down, gate, size, read, masked(*stored)
        )

    @cached_property
    def gain_roles(self) -> dict[NormKey, str]:
        """What the model itself calls each of the `gains`."""
        names = {(role, layer): weight_of(role) for role, layer in self.gains}
        return {
            key: self._norm_before_feed_forward(key[1]) if name == _BEFORE_MLP else name
            for key, name in names.items()
        }

    def _common_name(self, role: str, layer: int) -> str:
        before = role == self._norm_before_feed_forward(layer) and role != "norm_in"
        return _BEFORE_MLP if before else role

    def _norm_before_feed_forward(self, layer: int) -> str:
        """The role of the norm that feeds the feed-forward; empty where none does."""
        norms = self.stored.norms
        if ("norm_pre_ffn", layer) in norms:
            return "norm_pre_ffn"
        if ("norm_post_ffn", layer) in norms:
            return ""
        roles = (role for role in ("norm_post_attn", "norm_in") if (role, layer) in norms)
        return next(roles, "")

    def _gain(self, role: str, layer: int) -> Floats:
        gain = self.stored.norms.get((role, layer))
        if gain is None or gain.shape != (self.width,) or not np.isfinite(gain).all():
            return np.ones(self.width, np.float32)
        return gain


class SharedTokens(Struct, frozen=True, eq=False, dict=True):
    """Rows of the tokens that two models have, and their columns made comparable.

    `columns` are standardised over the tokens, one row a channel; None with too few tokens.
    """

    first: Floats
    second: Floats
    columns: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None

    @cached_property
    def squares(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The mean squares of channels over the tokens."""
        first, second = (
            np.einsum("td,td->d", rows, rows, dtype=np.float64) / len(rows)
            for rows in (self.first, self.second)
        )
        return first, second

    @cached_property
    def masked(self) -> bool:
        """Whether both tables have zeros or another value at many places."""
        return len(self.first) > 0 and masked(self.first) and masked(self.second)


def shared_tokens(first: Prepared, second: Prepared) -> SharedTokens:
    """Embedding rows of the tokens that both models have, in an order that favours neither."""
    tables = first.sample.embedding, second.sample.embedding
    return _shared(*tables, first.token_rows, second.token_rows)


def shared_outputs(first: Prepared, second: Prepared) -> SharedTokens:
    """The same of the tables that logits come from."""
    return _shared(first.output, second.output, first.output_rows, second.output_rows)


def _shared(
    first: Embedding | None,
    second: Embedding | None,
    ours: Mapping[bytes, int],
    theirs: Mapping[bytes, int],
) -> SharedTokens:
    tokens = sorted(ours.keys() & theirs.keys())
    if first is None or second is None or not tokens:
        none = np.empty((0, 0), np.float32)
        return SharedTokens(none, none)
    x = first.rows[[ours[token] for token in tokens]]
    y = second.rows[[theirs[token] for token in tokens]]
    finite = np.isfinite(x).all(axis=1) & np.isfinite(y).all(axis=1)
    if not finite.all():
        x, y = x[finite], y[finite]
    if len(x) < FEWEST_TOKENS:
        return SharedTokens(x, y)
    return SharedTokens(x, y, (_columns(x), _columns(y)))


def _token_rows(table: Embedding | None) -> dict[bytes, int]:
    tokens = () if table is None else table.tokens
    return {token: row for row, token in reversed(list(enumerate(tokens)))}


def _as_tested(sample: Sample) -> Sample:
    """The sample with what its matrices tell."""

    def units(part: Units) -> Units:
        return replace(part, **_all_telling(part, ("gate", "up", "down")))

    def heads(part: Attention) -> Attention:
        return replace(part, **_all_telling(part, ("q", "k", "v", "o")))

    def table(part: Embedding | None) -> Embedding | None:
        if part is None or part.rows.shape[1] != sample.width:
            return None  # a table of another width is not part of the residual stream
        return replace(part, rows=_telling([part.rows])[0])

    return replace(
        sample,
        units={layer: units(part) for layer, part in sample.units.items()},
        experts={place: units(part) for place, part in sample.experts.items()},
        attention={layer: heads(part) for layer, part in sample.attention.items()},
        routers={layer: _telling([rows])[0] for layer, rows in sample.routers.items()},
        embedding=table(sample.embedding),
        head=table(sample.head),
    )


def _all_telling(part: Units | Attention, roles: tuple[str, ...]) -> dict[str, Any]:
    stored = {role: rows for role in roles if (rows := getattr(part, role)) is not None}
    return dict(zip(stored, _telling(list(stored.values())), strict=True))


def _telling(matrices: Sequence[Floats]) -> list[Floats]:
    """Matrices with zeros where they say nothing, and with numbers of a usual size.

    Where one other value stands at many places, these are zero, and all are where a formula gives
    a matrix: strangers have the same one.
    """
    formulas = of_formulas([rows.reshape(-1, rows.shape[-1]) for rows in matrices])
    return [
        np.zeros_like(rows) if formula else _of_usual_size(rows)
        for rows, formula in zip(matrices, formulas, strict=True)
    ]


def _of_usual_size(rows: Floats) -> Floats:
    """A matrix without filler; its scale is a power of two, so that nothing is lost."""
    if rows.nbytes >= _LARGE:
        let_go()
    size = float(np.abs(rows.reshape(-1)[:: max(1, rows.size // _LOOKED_AT)]).max(initial=0.0))
    if not _LEAST_SIZE < size < _MOST_SIZE and 0.0 < size < np.inf:
        rows = np.ldexp(rows, round(np.log2(_SIZE / size)))
    return without_filler(rows)


def _columns(table: Floats) -> NDArray[np.float64]:
    """Columns over tokens, one row a channel; those that hold one value become zero."""
    columns = standardise_columns(table).T
    columns[one_valued(table.T)] = 0.0
    return columns


def _centred(rows: Floats) -> Floats:
    """Rows less their own mean along the last axis; those that hold one value become zero.

    Each row is treated by itself, so this commutes with permutations and flips of rows.
    """
    flat = rows.reshape(-1, rows.shape[-1])
    with np.errstate(invalid="ignore", over="ignore"):
        mean = flat.mean(axis=1, dtype=np.float64, keepdims=True).astype(np.float32)
        centred: Floats = flat - mean
    centred[one_valued(flat)] = 0
    return centred.reshape(rows.shape)


def _scaled(rows: Floats, gain: Floats) -> Floats:
    """Rows less their own mean, times the gains of the norm before; what overflows is no number."""
    with np.errstate(invalid="ignore", over="ignore"):
        return _centred(rows) * gain


def _less_mean(rows: Floats, some: Indices | slice = _EVERY) -> Floats:
    """Rows less the mean of some of them, of length one."""
    rest = rows - rows[some].mean(axis=0, dtype=np.float64).astype(np.float32)
    rest[np.abs(rest) <= _ROUNDING] = 0  # of equal rows nothing but rounding is left
    return _unit_rows(rest)[0]


def _unit_rows(rows: Floats) -> tuple[Floats, Floats]:
    """Rows of length one along the last axis, and their lengths; bad rows become zero."""
    wide = rows.astype(np.float64)
    square = np.einsum("...d,...d->...", wide, wide)  # finite where all numbers of a row are
    finite = np.isfinite(square)
    x = rows if finite.all() else np.where(np.isfinite(rows), rows, np.float32(0))
    length = np.sqrt(np.where(finite, square, 0.0)).astype(np.float32)
    good = length > _TINY
    scale = np.where(good, 1 / np.where(good, length, 1), 0).astype(np.float32)
    unit: Floats = x * scale[..., None]
    return unit, np.where(good, length, 0).astype(np.float32)


def _heads(layer: int, part: Attention, gain: Floats, rotary: int | None) -> Heads:
    """A layer's attention; `rotary` is how many positions of a head the architecture rotates."""
    turned = part.rotated if rotary is None else min(part.rotated, rotary)
    q, q_rest = _planes(part.q, gain, turned)
    k, k_rest = _planes(part.k, gain, turned)
    v = None if part.v is None else keep(_unit_rows(_scaled(part.v, gain))[0])
    o = None
    groups = len(part.v) if part.v is not None else 0
    queries = len(part.q) if part.q is not None else groups
    if part.o is not None and groups and len(part.o) == queries and queries % groups == 0:
        rows = keep(_unit_rows(_centred(part.o))[0])
        o = rows.reshape(groups, len(rows) // groups, *rows.shape[1:])
    return Heads(
        layer, q, k, q_rest, k_rest, v, o,
        _plane_bias(part.q_bias, turned), _plane_bias(part.k_bias, turned),
        _masked(part),
    )  # fmt: skip


def _masked(part: Attention) -> frozenset[str]:
    """The matrices, as they were read, that have zeros at many places, in whole rows too."""
    stored = {role: getattr(part, role) for role in ("q", "k", "v", "o")}
    return frozenset(
        role
        for role, rows in stored.items()
        if rows is not None and rows.any() and masked(rows, whole_rows=True)
    )


def _planes(rows: Floats | None, gain: Floats, turned: int) -> tuple[Complex | None, Floats | None]:
    """Rotary planes of all heads, and the rows that do not rotate; both of length one."""
    if rows is None:
        return None, None
    scaled = _scaled(rows, gain)
    rest = keep(_unit_rows(scaled[:, turned:])[0]) if turned < rows.shape[1] else None
    if not turned:
        return None, rest
    half = turned // 2
    both = np.concatenate([scaled[:, :half], scaled[:, half:turned]], axis=2)
    unit = _unit_rows(both)[0]
    width = rows.shape[2]
    planes = np.empty((*unit.shape[:-1], width), np.complex64)
    planes.real, planes.imag = unit[..., :width], unit[..., width:]
    return keep(planes), rest


def _plane_bias(bias: Floats | None, turned: int) -> Complex | None:
    if bias is None or not turned:
        return None
    half = turned // 2
    bias = np.where(np.isfinite(bias), bias, np.float32(0))
    planes: Complex = (bias[:, :half] + 1j * bias[:, half:turned]).astype(np.complex64)
    return planes
