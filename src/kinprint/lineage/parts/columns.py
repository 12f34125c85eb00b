"""Columns of rows that were matched: a copy of a part shows whatever its rows were made into.

Units may be numbered anew, flipped and rescaled, rotary planes turned, value dimensions mixed. What
each row of the one model became in the other is fitted to half of the residual channels. Whether
it fits the other half is then asked of their labels: channels of that half change places with
their neighbours, and nothing that was fitted has seen them. So the p-value is exact, for models of
one residual basis.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from kinprint.lineage.alignment.blocks import equal_blocks
from kinprint.lineage.alignment.heads import (
    HeadGroupMatch,
    match_attention,
    match_head_groups,
    other_group,
)
from kinprint.lineage.alignment.residual import IDENTITY
from kinprint.lineage.alignment.units import (
    Matching,
    RatedMap,
    UnitStack,
    best_partners,
)
from kinprint.lineage.preparation import FeedForward, Heads
from kinprint.lineage.reading.sample import Indices
from kinprint.lineage.side import alone, copied_channels
from kinprint.measure.basis import spread
from kinprint.measure.ordered import percentile
from kinprint.measure.rows import clear_share, copied_rows
from kinprint.nulls.blocks import BLOCK, block_log10_p, least_block_log10_p
from kinprint.nulls.preparation import massive, standardise_columns

Rows = NDArray[Any]
Bools = NDArray[np.bool_]
Tensors = Iterator[tuple[str, Rows, Rows]]
"""Rows that belong together, by the role of their tensor."""
FEWEST_ROWS = 16
"""Fewer rows than this do not make a column."""
UNLIKE = 0.25
"""The correlation of matched rows below which a part is no copy."""
_NEARLY_ALL, _MOST = 0.9, 0.8  # of strangers' rows
_CLOSER = 0.15  # by which one tensor must be closer than all, over half of the channels
_UNITS = 512  # of the first model that are matched at most
_OPEN = math.log10(0.05)  # no error is larger
_NEVER = 0.99  # likeness of rows that do not belong together from which on nothing tells
_AS_ALIKE, _SOME = 0.25, 0.1  # excess of a linked tensor: as a share of the largest, and at least
_RIDGE = 0.02  # of the length of a value row, so that mixing them back does not fit noise


class ColumnScore(Struct, frozen=True):
    """How well rows of a part fit those of another, over channels that no fit has seen.

    `likenesses` are mean correlations of rows, one a tensor of so many `rows`; `floor` is the least
    log10 p that so many channels could have given. `excess` is how much of what rows that do not
    belong together leave open is alike in those that were matched, on average: rows drawn over one
    covariance are all alike. `copied` is what `copied_rows` says of all rows. `roles` has the share
    of the rows of each tensor that is linked for sure.
    """

    log10_p: float
    floor: float
    likenesses: tuple[float, ...]
    rows: tuple[int, ...]
    excess: float
    copied: tuple[float, float] | None
    roles: Mapping[str, float]


class HalfChannels(Struct, frozen=True):
    """Channels in two halves: `fitted` tell what became of a row, the others judge it."""

    fitted: Bools
    usable: Bools

    @classmethod
    def of(cls, usable: Bools) -> HalfChannels:
        """Every second block of channels; `usable` may change places with their neighbours."""
        fitted = np.arange(len(usable)) // BLOCK % 2 == 0
        return cls(fitted, usable & ~fitted)

    def partners(
        self, first: Sequence[FeedForward], second: Sequence[FeedForward]
    ) -> Iterator[tuple[FeedForward, FeedForward]]:
        """Feed-forwards of equal place, and for each the one whose units match best.

        Matched on the fitted half, from either model: a layer may be there twice.
        """
        if not first or not second:
            return
        halves = [[self._half(part) for part in parts] for parts in (first, second)]
        stacks = [UnitStack.of(parts) for parts in halves]
        there = best_partners(halves[0], stacks[1], IDENTITY, True)
        back = best_partners(halves[1], stacks[0], IDENTITY, True)
        places = {(part.layer, part.expert): to for to, part in enumerate(second)}
        pairs = {
            *enumerate(there),
            *((at, to) for to, at in enumerate(back)),
            *(
                (at, places[part.layer, part.expert])
                for at, part in enumerate(first)
                if (part.layer, part.expert) in places
            ),
        }
        yield from ((first[at], second[to]) for at, to in sorted(pairs))

    def layers(
        self, first: Mapping[int, Heads], second: Mapping[int, Heads]
    ) -> Iterator[tuple[Heads, Heads]]:
        """Attention of layers of equal number, and of those that match best, in the same way."""
        ours, theirs = (
            [_columns(heads, self.fitted) for heads in side.values()] for side in (first, second)
        )
        as_it_is = [RatedMap(IDENTITY, 0.0)]
        there = match_attention(ours, theirs, as_it_is) if ours and theirs else None
        back = match_attention(theirs, ours, as_it_is) if ours and theirs else None
        if there is None or back is None:
            return
        pairs = {
            *(
                (heads.layer, theirs[to].layer)
                for heads, to in zip(ours, there.partners, strict=True)
            ),
            *(
                (ours[at].layer, heads.layer)
                for heads, at in zip(theirs, back.partners, strict=True)
            ),
            *((layer, layer) for layer in first.keys() & second.keys()),
        }
        yield from ((first[at], second[to]) for at, to in sorted(pairs))

    def feed_forwards(self, first: FeedForward, second: FeedForward) -> ColumnScore | None:
        """Units of one feed-forward and the units of another that they match best."""
        some = np.argsort(-first.size, kind="stable")
        some = some[spread(len(some), _UNITS)]
        near = [self._near(first.up[some], second.up), self._near(first.down[some], second.down)]
        both = near[0] + near[1]
        gates = None
        if first.gate is not None and second.gate is not None:
            gates = first.gate[some], second.gate
            near.append(self._near(*gates))
        match = np.abs(both) + sum(near[2:])
        match = _closest(match / len(near), [np.abs(one) for one in near])

        def rows(partners: Indices) -> Tensors:
            signs = np.where(both[np.arange(len(partners)), partners] < 0, -1.0, 1.0)[:, None]
            yield "up", first.up[some] * signs, second.up[partners]
            yield "down", first.down[some] * signs, second.down[partners]
            if gates is not None:
                yield "gate", gates[0], gates[1][partners]

        best = match.argmax(axis=1)
        controls: Tensors = iter(())
        if match.shape[1] > 1:
            match[np.arange(len(best)), best] = -np.inf
            controls = rows(match.argmax(axis=1))
        return self._score(rows(best), controls)

    def attention(self, first: Heads, second: Heads, *, turned: bool = False) -> ColumnScore | None:
        """Heads of one layer and those of another that they match best.

        `turned` says that the channels of `second` change places: of a model with more heads than
        the other, some have no partner there, and those of the other have one each.
        """
        halves = [_columns(heads, self.fitted) for heads in (first, second)]
        same = Matching(IDENTITY, (0,), np.nan)
        matches = list(match_head_groups(halves[:1], halves[1:], same))
        others = [one for match in matches if (one := other_group(match, *halves)) is not None]
        return self._score(
            *(
                (role for match in some for role in self._head_rows(match, first, second))
                for some in (matches, others)
            ),
            turned=turned,
        )

    def _half(self, part: FeedForward) -> FeedForward:
        """A feed-forward with the fitted channels only."""
        gate = None if part.gate is None else part.gate[:, self.fitted]
        return replace(part, up=part.up[:, self.fitted], down=part.down[:, self.fitted], gate=gate)

    def _near(self, first: Rows, second: Rows) -> Rows:
        return np.asarray(first[:, self.fitted] @ second[:, self.fitted].T)

    def _head_rows(
        self, match: HeadGroupMatch, first: Heads, second: Heads
    ) -> Iterator[tuple[str, Rows, Rows]]:
        """Rows of a group as they should be in the other model, and as they are there."""
        if match.planes.size:
            assert first.q is not None and first.k is not None
            assert second.q is not None and second.k is not None
            turn = np.exp(-1j * np.angle(match.planes))[:, None]
            yield "k", _planes(first.k[match.group] * turn), _planes(second.k[match.partner])
            for i, j in match.queries:
                yield "q", _planes(first.q[i] * turn), _planes(second.q[j])
        if first.v is not None and second.v is not None:
            values = first.v[match.group], second.v[match.partner]
            yield "v", self._mixed(*values), values[1]
        if first.o is not None and second.o is not None:
            inside, outside = first.o.shape[1], second.o.shape[1]
            for i, j in match.queries:
                outputs = first.o[match.group, i % inside], second.o[match.partner, j % outside]
                yield "o", self._mixed(*outputs), outputs[1]

    def _mixed(self, first: Rows, second: Rows) -> Rows:
        """Rows of the first model mixed so as to be those of the second on the fitted channels."""
        x, y = (rows[:, self.fitted].astype(np.float64) for rows in (first, second))
        ordinary = _ordinary(x) & _ordinary(y)
        x, y = x[:, ordinary], y[:, ordinary]
        gram = x @ x.T
        gram.flat[:: len(gram) + 1] += _RIDGE * max(float(np.trace(gram)) / len(gram), 1e-30)
        mix = np.linalg.solve(gram, x @ y.T).T
        return np.asarray(mix @ first.astype(np.float64))

    def _score(
        self, tensors: Tensors, controls: Tensors, *, turned: bool = False
    ) -> ColumnScore | None:
        """The agreement of columns of equal channels, over the rows of all tensors.

        Rows that do not belong together are looked at where those that were matched agree. `turned`
        says that the second rows are those of the model whose channels change places.
        """
        told = {role: (_unit(x), _unit(y)) for role, (x, y) in _joined(tensors).items()}
        if sum(len(x) for x, _ in told.values()) < FEWEST_ROWS:
            return None
        x, y = (np.concatenate(rows) for rows in zip(*told.values(), strict=True))
        ordinary = _ordinary(x) & _ordinary(y) & (y if turned else x).any(axis=0)
        columns = standardise_columns(x).T, standardise_columns(y).T
        usable = self.usable & ordinary & alone(copied_channels(columns[turned]))
        blocks = equal_blocks(usable)
        if not len(blocks.sizes):
            return None
        log10_p = float(block_log10_p(blocks.products(*columns), blocks.sizes)[0])
        unseen = np.flatnonzero(~self.fitted & ordinary)
        cosines = {role: _cosines(*rows, unseen) for role, rows in told.items()}
        alike = {role: float(rows.mean()) for role, rows in cosines.items()}
        strangers: dict[str, Rows] = {}
        if log10_p <= _OPEN:
            others = _joined(controls).items()
            strangers = {role: _cosines(*rows, unseen) for role, rows in others}
        by_chance = {role: float(rows.mean()) for role, rows in strangers.items()}
        excess = {
            role: (one - chance) / (1.0 - chance)
            for role, one in alike.items()
            if (chance := min(max(by_chance.get(role, 1.0), 0.0), _NEVER)) < _NEVER
        }
        noise = 1.0 / math.sqrt(max(len(unseen), 1))
        return ColumnScore(
            log10_p,
            least_block_log10_p(blocks.sizes),
            tuple(alike.values()),
            tuple(len(x) for x, _ in told.values()),
            float(np.mean([*excess.values()])) if excess else 0.0,
            copied_rows(np.concatenate([*cosines.values()]), noise),
            _linked(cosines, excess, strangers, noise),
        )


def _linked(
    cosines: Mapping[str, Rows],
    excess: Mapping[str, float],
    strangers: Mapping[str, Rows],
    noise: float,
) -> dict[str, float]:
    """By tensor, the share of rows that is linked, where the excess is about that of the best."""
    least = max(_AS_ALIKE * max((*excess.values(), 0.0)), _SOME)
    return {
        role: matched_share(rows, strangers[role], noise)
        for role, rows in cosines.items()
        if excess.get(role, 0.0) >= least
    }


def matched_share(likeness: Rows, others: Rows, noise: float) -> float:
    """The least share of rows that are linked among those that match best; `others` match next.

    Rows of strangers that were trained on like texts are somewhat alike where they match, the best
    hardly more than the next: most of theirs are no more alike than nearly all of the others are.
    Rows that no stranger reaches count in any case. `noise` is how far chance alone takes a row.
    """
    ours, theirs = np.abs(likeness), np.abs(others)
    if not ours.size or not theirs.size:
        return 0.0
    limit = max(percentile(theirs, _NEARLY_ALL), UNLIKE + noise)
    strangers = float((ours <= limit).mean()) / _MOST
    clear = clear_share(np.where(ours >= UNLIKE, ours, 0.0), others, len(ours) ** 2)
    return max(1.0 - strangers, clear)


def _ordinary(rows: Rows) -> Bools:
    """Channels that are not far larger than the others."""
    return np.asarray(~massive(np.sqrt(np.square(rows).mean(axis=0))))


def _cosines(x: Rows, y: Rows, channels: Indices) -> Rows:
    """The correlations of rows over some channels."""
    x, y = (np.take(rows, channels, axis=1) for rows in (x, y))
    lengths = np.sqrt(_squares(x) * _squares(y))
    return np.asarray(np.einsum("nd,nd->n", x, y) / np.where(lengths > 0, lengths, 1.0))


def _joined(tensors: Tensors) -> dict[str, tuple[Rows, Rows]]:
    """All rows by role, where there are any."""
    roles: dict[str, list[tuple[Rows, Rows]]] = {}
    for role, x, y in tensors:
        roles.setdefault(role, []).append((x, y))
    joined = {
        role: tuple(np.concatenate(rows) for rows in zip(*pairs, strict=True))
        for role, pairs in roles.items()
    }
    return {role: (x, y) for role, (x, y) in joined.items() if x.any() and y.any()}


def _closest(match: Rows, single: Sequence[Rows]) -> Rows:
    """How near rows are: by all tensors, or by the one that has much closer partners.

    Of a copied tensor beside strangers' the others only disturb.
    """
    closest = max(single, key=lambda one: float(one.max(axis=1).mean()))
    apart = float(closest.max(axis=1).mean()) - float(match.max(axis=1).mean())
    return closest if apart > _CLOSER else match


def _columns(heads: Heads, chosen: Bools) -> Heads:
    """Attention with some of the residual channels."""

    def some(rows: Any) -> Any:
        return None if rows is None else rows[..., chosen]

    return replace(
        heads,
        q=some(heads.q),
        k=some(heads.k),
        q_rest=some(heads.q_rest),
        k_rest=some(heads.k_rest),
        v=some(heads.v),
        o=some(heads.o),
    )


def _planes(rows: Rows) -> Rows:
    """The two rows of each rotary plane."""
    return np.concatenate([rows.real, rows.imag])


def _unit(rows: Rows) -> Rows:
    """Rows of length one, zero where there is nothing."""
    length = np.sqrt(_squares(rows))
    scale = 1.0 / np.where(length > 0, length, 1.0)
    return np.asarray(rows * scale[:, None].astype(rows.dtype))


def _squares(rows: Rows) -> Rows:
    return np.asarray(np.einsum("nd,nd->n", rows, rows))
