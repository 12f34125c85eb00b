"""Tests on columns, one a residual channel: of embeddings and heads (E3, S3), of matrices (Cm).

One permutation and one coin a channel for the whole model. Channels are compared as they are
numbered, since a basis that was fitted to them would already have used their labels; only the test
of signs matches columns itself, by sizes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from kinprint.lineage.alignment.blocks import equal_blocks
from kinprint.lineage.pair import Alignment, Pair
from kinprint.lineage.preparation import FEWEST_TOKENS, Prepared, SharedTokens
from kinprint.lineage.reading.sample import Sample, Units
from kinprint.lineage.side import alone, copied_channels
from kinprint.lineage.tests.conditions import granted_alignment, require_width
from kinprint.lineage.tests.registry import Basis, Likeness, LineageTest, NoResult, lineage_test
from kinprint.mapped import let_go
from kinprint.measure.basis import spread
from kinprint.nulls.blocks import block_permutation, signed_blocks
from kinprint.nulls.copies import sum_over
from kinprint.nulls.exchangeability import Doubt, balance
from kinprint.nulls.fixed_points import Pairs, fixed_points, nearest_rows
from kinprint.nulls.increasing import increasing_subsequence
from kinprint.nulls.masks import masked
from kinprint.nulls.preparation import massive, normalise_rows, one_valued, standardise_in_place
from kinprint.nulls.result import Ints
from kinprint.nulls.signs import sign_chernoff
from kinprint.records import Component, Evidence, Group, Reason, Status

Doubles = NDArray[np.float64]
Rows = NDArray[np.float32]
_ROWS = 1024  # matrix rows that are compared
_BALANCED = 128
_CLEAR = -20.0  # log10 p, far below what any number of tests costs
# Strangers do not come near the cosine of clones over so many rows, but with chance 1e-24.
_CLONED_ROWS = 64


@lineage_test(
    "E3.blocks", group=Group.RESIDUAL, component=Component.EMBEDDING, basis=Basis.AS_STORED,
    likeness=Likeness.EMBEDDING, channels_only=True,
)  # fmt: skip
def column_blocks(pair: Pair, test: LineageTest) -> Evidence:
    """Do embedding columns of equal channels agree over shared tokens?"""
    columns = _embedding_columns(pair, test.group, same_width=True)
    single = columns.alignment.channels.shared.masked
    usable = columns.usable & columns.x.any(axis=1)
    return _correlation(pair, test, columns, usable, ("embed",), single)


@lineage_test(
    "E3.fixed", group=Group.RESIDUAL, component=Component.EMBEDDING, basis=Basis.AS_STORED,
    channels_only=True,
)  # fmt: skip
def column_fixed_points(pair: Pair, test: LineageTest) -> Evidence:
    """Are embedding columns that are each other's nearest the same channel?"""
    columns = _embedding_columns(pair, test.group, same_width=True)
    _require_labels(columns.alignment)
    matched = columns.matched()
    signs = None
    if columns.flip:
        signs = [columns.alignment.channels.near_columns.there.score[matched.first]]
    return test.evidence(fixed_points([matched], signs, pair.null_seed), roles=("embed",))


@lineage_test(
    "E3.order", group=Group.RESIDUAL, component=Component.EMBEDDING, basis=Basis.AS_STORED,
    channels_only=True,
)  # fmt: skip
def column_order(pair: Pair, test: LineageTest) -> Evidence:
    """Where widths differ, do channels matched by embedding columns keep their order?"""
    columns = _embedding_columns(pair, test.group, same_width=False)
    _require_labels(columns.alignment)
    matched = columns.matched()
    return test.evidence(increasing_subsequence([matched], pair.null_seed), roles=("embed",))


@lineage_test(
    "S3", group=Group.RESIDUAL_SIGN, component=Component.EMBEDDING, basis=Basis.FOUND,
    likeness=Likeness.EMBEDDING, channels_only=True,
)  # fmt: skip
def column_signs(pair: Pair, test: LineageTest) -> Evidence:
    """Do best-matching embedding columns have the same sign more often than coins would?

    The cube lets clear matches count and leaves the many doubtful ones their small say.
    """
    columns = _embedding_columns(pair, test.group, same_width=None)
    values = columns.alignment.channels.near_columns.there.score
    return _signs(pair, test, columns, values, ("embed",))


def head_evidence(pair: Pair) -> Iterator[Evidence]:
    """What E3.blocks and S3 say of output heads; the menu has them of embeddings alone.

    Where channels of equal numbers agree beyond doubt, all are not compared with all.
    """
    clear = False
    with suppress(NoResult):
        found = _head_blocks(pair, column_blocks)
        clear = found.log10_p <= _CLEAR
        yield found
    with suppress(NoResult):
        if not clear:
            yield _head_signs(pair, column_signs)


def _head_blocks(pair: Pair, test: LineageTest) -> Evidence:
    columns = _head_columns(pair, test.group)
    require_width(columns.alignment, same=True)
    single = columns.alignment.channels.outputs.masked
    return _correlation(pair, test, columns, columns.usable & columns.apart(), ("lm_head",), single)


def _head_signs(pair: Pair, test: LineageTest) -> Evidence:
    columns = _head_columns(pair, test.group)
    scores = nearest_rows(columns.x, columns.y, flips=True).there.score
    values = np.where(columns.apart(), scores, 0.0)
    return _signs(pair, test, columns, values, ("lm_head",))


@lineage_test(
    "Cm.blocks", group=Group.RESIDUAL, component=None, basis=Basis.AS_STORED,
    likeness=Likeness.MATRICES,
)  # fmt: skip
def matrix_columns(pair: Pair, test: LineageTest) -> Evidence:
    """Do matrix columns of equal channels agree over rows with equal places?"""
    alignment = granted_alignment(pair, test.group)
    require_width(alignment, same=True)
    x, y, places = _columns_of_equal_rows(alignment.first.prepared, alignment.second.prepared)
    if places < FEWEST_TOKENS:
        raise NoResult(Reason.MATRIX_ROWS)
    if x.shape[1] < FEWEST_TOKENS:
        raise NoResult(Reason.CONSTANT_MATRICES, Status.UNDEFINED)
    sizes = [np.einsum("cn,cn->c", one, one) / one.shape[1] for one in (x, y)]
    single = masked(x.T) and masked(y.T)
    columns = _Columns(alignment, standardise_in_place(x), standardise_in_place(y), *sizes)
    roles = ("q", "k", "v", "o", "gate", "up", "down")
    return _correlation(pair, test, columns, columns.usable & columns.apart(), roles, single)


class _Columns(Struct, frozen=True):
    """Standardised columns of two models, one row a channel, and their mean squares before."""

    alignment: Alignment
    x: Doubles
    y: Doubles
    first_squares: NDArray[np.floating]
    second_squares: NDArray[np.floating]

    @property
    def flip(self) -> bool:
        """Whether the signs of the first model's channels are coins."""
        return self.alignment.first.refusal(Group.RESIDUAL_SIGN) is None

    @property
    def ordinary(self) -> NDArray[np.bool_]:
        """Channels of the first model that are not massive, nor so in the other at that place."""
        ordinary = ~massive(np.sqrt(self.first_squares))
        if len(self.second_squares) == len(ordinary):
            ordinary &= ~massive(np.sqrt(self.second_squares))
        return ordinary

    @property
    def usable(self) -> NDArray[np.bool_]:
        """Channels of the first model that may stand for themselves: ordinary, and no copies."""
        return alone(self.alignment.first.channel_clones) & self.ordinary

    def apart(self) -> NDArray[np.bool_]:
        """Channels of the first model whose columns say something, and are no copies of others.

        Self-tests have looked at the embedding; columns elsewhere may lean, or be copies, by
        themselves.
        """
        if balance(self.x, most=_BALANCED).reason is Doubt.UNFAIR:
            raise NoResult(Reason.COLUMNS_LEAN, Status.GUARDED)
        some = self.x[:, :: max(1, self.x.shape[1] // _CLONED_ROWS)]
        return alone(copied_channels(some)) & self.x.any(axis=1)

    def matched(self) -> Pairs:
        """Columns that are each other's nearest; copies in the first take no part."""
        usable = np.flatnonzero(self.usable)
        if self.flip and len(usable) == len(self.x):
            return self.alignment.channels.near_columns.pairs()
        return nearest_rows(self.x[usable], self.y, self.flip).pairs(usable)


def _embedding_columns(pair: Pair, group: Group, same_width: bool | None) -> _Columns:
    """Columns of the embedding over the tokens that both models have."""
    alignment = granted_alignment(pair, group)
    if same_width is not None:
        require_width(alignment, same_width)
    return _columns_over(alignment, alignment.channels.shared)


def _head_columns(pair: Pair, group: Group) -> _Columns:
    """Columns of the output head, or of the embedding that it is tied to, over the same tokens."""
    alignment = granted_alignment(pair, group)
    return _columns_over(alignment, alignment.channels.outputs)


def _columns_over(alignment: Alignment, shared: SharedTokens) -> _Columns:
    if shared.columns is None:
        raise NoResult(Reason.SHARED_TOKENS, number=FEWEST_TOKENS)
    return _Columns(alignment, *shared.columns, *shared.squares)


def _require_labels(alignment: Alignment) -> None:
    """Go on only if no mask tells channels apart that both embeddings may have."""
    if alignment.channels.shared.masked:
        raise NoResult(Reason.BOTH_MASKED, Status.GUARDED)


def _correlation(
    pair: Pair,
    test: LineageTest,
    columns: _Columns,
    usable: np.ndarray,
    roles: tuple[str, ...],
    single: bool,
) -> Evidence:
    """The test of columns of equal channels; `single` leaves their labels and takes the coins."""
    if single and not columns.flip:
        raise NoResult(Reason.BOTH_MASKED, Status.GUARDED)
    blocks = equal_blocks(usable)
    if not len(blocks.sizes):
        raise NoResult(Reason.CONSTANT_COLUMNS, Status.UNDEFINED)
    if single:
        blocks = blocks.single()
    table = blocks.products(columns.x, columns.y)
    if columns.flip:
        result = signed_blocks(
            np.zeros_like(table), table, blocks.sizes, pair.null_seed, (0.0, 1.0)
        )
    else:
        result = block_permutation(table, blocks.sizes, pair.null_seed, 1.0)
    effect = float(np.einsum("cn,cn->c", columns.x, columns.y).mean())
    return test.evidence(result, roles=roles, effect=effect)


def _signs(
    pair: Pair, test: LineageTest, columns: _Columns, values: np.ndarray, roles: tuple[str, ...]
) -> Evidence:
    """The test of the signs of columns, of which `values` are the products with the best match."""
    coins = np.where(columns.ordinary, values**3, 0.0)
    clones = columns.alignment.first.channel_clones
    result = sign_chernoff(sum_over(coins, clones), pair.null_seed)
    return test.evidence(result, roles=roles, effect=float(values.mean()))


class _EqualRows(Struct, frozen=True):
    """Two matrices, the rows of each that have equal places, and the norms before them."""

    first: Rows
    second: Rows
    at: Ints
    to: Ints
    first_gain: Rows | float
    second_gain: Rows | float

    def ours(self) -> Rows:
        """The first model's rows, scaled."""
        return self.first[self.at] * self.first_gain

    def theirs(self) -> Rows:
        """The second model's rows, scaled."""
        return self.second[self.to] * self.second_gain

    def only(self, some: NDArray[Any]) -> _EqualRows:
        """Some of the rows."""
        return replace(self, at=self.at[some], to=self.to[some])


def _columns_of_equal_rows(first: Prepared, second: Prepared) -> tuple[Doubles, Doubles, int]:
    """Columns, a row each, over matrix rows at equal places in both models; how many there were.

    At most so many, evenly spaced, each of length one. Rows keep their mean here, since a flip of
    channels would change it; rows that hold one size of number say nothing and are left out.
    """
    matrices = list(_equal_rows(first, second))
    total = sum(len(rows.at) for rows in matrices)
    some, start = np.array(spread(total, _ROWS), np.int64), 0
    kept: list[_EqualRows] = []
    for rows in matrices:
        few = rows.only(some[(some >= start) & (some < start + len(rows.at))] - start)
        kept.append(few.only(~one_valued(np.abs(few.ours())) & ~one_valued(np.abs(few.theirs()))))
        start += len(rows.at)
    let_go()
    shape = first.width, sum(len(rows.at) for rows in kept)
    ours = _transposed((rows.ours() for rows in kept), shape)
    return ours, _transposed((rows.theirs() for rows in kept), shape), len(some)


def _transposed(matrices: Iterable[Rows], shape: tuple[int, int]) -> Doubles:
    """Columns, a row each, of matrices whose rows get length one."""
    table, start = np.empty(shape), 0
    for matrix in matrices:
        rows = normalise_rows(matrix)
        table[:, start : start + len(rows)] = rows.T
        start += len(rows)
    let_go()
    return table


def _equal_rows(first: Prepared, second: Prepared) -> Iterator[_EqualRows]:
    """Every matrix that both models have, inputs to be scaled by the norm before."""
    for units, others, layer in _equal_units(first.sample, second.sample):
        _, at, to = np.intersect1d(units.index, others.index, return_indices=True)
        gains = first.feed_forward_gain(layer), second.feed_forward_gain(layer)
        for role in ("gate", "up", "down"):
            x, y = getattr(units, role), getattr(others, role)
            if x is not None and y is not None:
                yield _EqualRows(x, y, at, to, *((1.0, 1.0) if role == "down" else gains))
    for layer, heads in sorted(first.sample.attention.items()):
        other = second.sample.attention.get(layer)
        gains = first.attention_gain(layer), second.attention_gain(layer)
        for role in ("q", "k", "v", "o"):
            x, y = getattr(heads, role), getattr(other, role, None)
            if x is not None and y is not None and x.shape == y.shape:
                x, y = (part.reshape(-1, first.width) for part in (x, y))
                every = np.arange(len(x))
                yield _EqualRows(x, y, every, every, *((1.0, 1.0) if role == "o" else gains))


def _equal_units(first: Sample, second: Sample) -> Iterator[tuple[Units, Units, int]]:
    for layer in sorted(first.units.keys() & second.units.keys()):
        yield first.units[layer], second.units[layer], layer
    for place in sorted(first.experts.keys() & second.experts.keys()):
        yield first.experts[place], second.experts[place], place[0]
