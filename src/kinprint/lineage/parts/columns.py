"""Columns of rows that were matched: a copy of a part shows whatever its rows were made into.

Units may be numbered anew, flipped and rescaled, rotary planes turned, value dimensions mixed. What
each row of the one model became in the other is fitted to half of the residual channels. Whether
it fits the other half is then asked of their labels: channels of that half change places with
their neighbours, and nothing that was fitted has seen them. So the p-value is exact, for models of
one residual basis.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from kinprint.lineage.alignment.blocks import common_blocks
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
from kinprint.lineage.side import CLONED, alone
from kinprint.measure.basis import spread
from kinprint.measure.ordered import percentile
from kinprint.measure.rows import clear_share, copied_rows
from kinprint.nulls.blocks import BLOCK, each_block_log10_p, least_block_log10_p
from kinprint.nulls.copies import copied_directions
from kinprint.nulls.preparation import each_massive, standardise_columns
from kinprint.nulls.result import Floats

T = TypeVar("T")
P = TypeVar("P", FeedForward, Heads)
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
_MATRICES = ("up", "down", "gate", "q", "k", "q_rest", "k_rest", "v", "o")
_TOGETHER = 1 << 20  # numbers of heads that are mixed at a time, or one head
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


class Halved(Struct, Generic[T], frozen=True):
    """A part with all residual channels, and with those of the half that matches rows."""

    whole: T
    fitted: T


class MatchedRows(Struct, frozen=True):
    """Rows of a part beside those that they match, over channels that no fit has seen.

    Attributes
    ----------
    products : of columns of equal channels, block by block.
    sizes : of these blocks.
    unseen : the channels.
    cosines : how alike rows are over them, by tensor.
    controls : makes rows that do not belong together, for a part that agrees.
    """

    products: Floats
    sizes: Indices
    unseen: Indices
    cosines: Mapping[str, Rows]
    controls: Callable[[], Tensors]

    def score(self, log10_p: float) -> ColumnScore:
        """What rows tell whose columns agree so often by chance."""
        strangers: dict[str, Rows] = {}
        if log10_p <= _OPEN:
            others = _filled(self.controls())
            strangers = {role: _cosines(x, y, self.unseen) for role, x, y in others}
        alike = {role: float(rows.mean()) for role, rows in self.cosines.items()}
        by_chance = {role: float(rows.mean()) for role, rows in strangers.items()}
        excess = {
            role: (one - chance) / (1.0 - chance)
            for role, one in alike.items()
            if (chance := min(max(by_chance.get(role, 1.0), 0.0), _NEVER)) < _NEVER
        }
        noise = 1.0 / math.sqrt(max(len(self.unseen), 1))
        return ColumnScore(
            log10_p,
            least_block_log10_p(self.sizes),
            tuple(alike.values()),
            tuple(map(len, self.cosines.values())),
            float(np.mean([*excess.values()])) if excess else 0.0,
            copied_rows(np.concatenate([*self.cosines.values()]), noise),
            _linked(self.cosines, excess, strangers, noise),
        )


def column_scores(parts: Sequence[MatchedRows]) -> list[ColumnScore]:
    """What each part tells, with p-values that are searched for together."""
    found = each_block_log10_p([(part.products, part.sizes) for part in parts])
    return [part.score(log10_p) for part, log10_p in zip(parts, found, strict=True)]


class HalfChannels(Struct, frozen=True):
    """Channels in two halves: `fitted` tell what became of a row, the others judge it."""

    fitted: Bools
    usable: Bools

    @classmethod
    def of(cls, usable: Bools) -> HalfChannels:
        """Every second block of channels; `usable` may change places with their neighbours."""
        fitted = np.arange(len(usable)) // BLOCK % 2 == 0
        return cls(fitted, usable & ~fitted)

    def halved(self, part: P) -> Halved[P]:
        """A feed-forward, or the attention of a layer, beside its fitted half."""
        rows = {
            name: one[..., self.fitted]
            for name in _MATRICES
            if (one := getattr(part, name, None)) is not None
        }
        return Halved(part, replace(part, **rows))

    def partners(
        self, first: Sequence[FeedForward], second: Sequence[FeedForward]
    ) -> Iterator[tuple[Halved[FeedForward], Halved[FeedForward]]]:
        """Feed-forwards of equal place, and for each the one whose units match best.

        Matched on the fitted half, from either model: a layer may be there twice.
        """
        if not first or not second:
            return
        ours, theirs = ([self.halved(part) for part in parts] for parts in (first, second))
        halves = [[part.fitted for part in parts] for parts in (ours, theirs)]
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
        yield from ((ours[at], theirs[to]) for at, to in sorted(pairs))

    def layers(
        self, first: Mapping[int, Heads], second: Mapping[int, Heads]
    ) -> Iterator[tuple[Halved[Heads], Halved[Heads]]]:
        """Attention of layers of equal number, and of those that match best, in the same way."""
        ours, theirs = (
            {layer: self.halved(heads) for layer, heads in side.items()} for side in (first, second)
        )
        one, other = ([heads.fitted for heads in side.values()] for side in (ours, theirs))
        as_it_is = [RatedMap(IDENTITY, 0.0)]
        there = match_attention(one, other, as_it_is) if one and other else None
        back = match_attention(other, one, as_it_is) if one and other else None
        if there is None or back is None:
            return
        numbers = list(ours), list(theirs)
        pairs = {
            *((layer, numbers[1][to]) for layer, to in zip(ours, there.partners, strict=True)),
            *((numbers[0][at], layer) for layer, at in zip(theirs, back.partners, strict=True)),
            *((layer, layer) for layer in ours.keys() & theirs.keys()),
        }
        yield from ((ours[at], theirs[to]) for at, to in sorted(pairs))

    def feed_forwards(
        self, one: Halved[FeedForward], other: Halved[FeedForward]
    ) -> MatchedRows | None:
        """Units of one feed-forward and the units of another that they match best."""
        first, second = one.whole, other.whole
        some = np.argsort(-first.size, kind="stable")
        some = some[spread(len(some), _UNITS)]
        near = {
            role: getattr(one.fitted, role)[some] @ getattr(other.fitted, role).T
            for role in ("up", "down", "gate")
            if getattr(first, role) is not None and getattr(second, role) is not None
        }
        both = near["up"] + near["down"]
        match = np.abs(both)
        if "gate" in near:
            match += near["gate"]
        match /= len(near)
        match = _closest(match, [*near.values()])
        roles, every, best = tuple(near), np.arange(len(some)), match.argmax(axis=1)
        match[every, best] = -np.inf
        partners = [best, match.argmax(axis=1)][: match.shape[1]]
        signs = [np.where(both[every, to] < 0, -1.0, 1.0)[:, None] for to in partners]

        def rows(place: int) -> Tensors:
            """Units with those that they match best, or next."""
            for role in roles if place < len(partners) else ():
                ours, theirs = getattr(first, role)[some], getattr(second, role)[partners[place]]
                yield role, ours if role == "gate" else ours * signs[place], theirs

        return self._matched(rows(0), lambda: rows(1))

    def attention(
        self, one: Halved[Heads], other: Halved[Heads], *, turned: bool = False
    ) -> MatchedRows | None:
        """Heads of one layer and those of another that they match best.

        `turned` says that the channels of `other` change places: of a model with more heads than
        the first, some have no partner there, and those of the first have one each.
        """
        same = Matching(IDENTITY, (0,), np.nan)
        matches = list(match_head_groups([one.fitted], [other.fitted], same))

        def controls() -> Tensors:
            others = (other_group(match, one.fitted, other.fitted) for match in matches)
            return self._rows([match for match in others if match is not None], one, other)

        return self._matched(self._rows(matches, one, other), controls, turned=turned)

    def _rows(
        self, matches: Sequence[HeadGroupMatch], one: Halved[Heads], other: Halved[Heads]
    ) -> Tensors:
        """Rows of groups as they should be in the other model, and as they are there."""
        if not matches:
            return
        first, second = one.whole, other.whole
        groups, partners = (
            np.array([getattr(match, name) for match in matches]) for name in ("group", "partner")
        )
        inside = np.repeat(np.arange(len(matches)), [len(match.queries) for match in matches])
        pairs = [pair for match in matches for pair in match.queries]
        queries, theirs = np.array(pairs, np.int64).reshape(-1, 2).T
        if matches[0].planes.size:
            assert first.q is not None and first.k is not None
            assert second.q is not None and second.k is not None
            turns = np.exp(-1j * np.angle([match.planes for match in matches]))[..., None]
            yield "k", _planes(first.k[groups] * turns), _planes(second.k[partners])
            yield "q", _planes(first.q[queries] * turns[inside]), _planes(second.q[theirs])
        heads: dict[str, tuple[Rows, Rows]] = {}
        if first.v is not None and second.v is not None:
            heads["v"] = first.v[groups], second.v[partners]
        if first.o is not None and second.o is not None:
            at, to = queries % first.o.shape[1], theirs % second.o.shape[1]
            heads["o"] = first.o[groups[inside], at], second.o[partners[inside], to]
        if not heads:
            return
        ours, there = (np.concatenate(rows) for rows in zip(*heads.values(), strict=True))
        mixed, ends = self._mixed(ours, there), np.cumsum([len(y) for _, y in heads.values()])
        for role, x, y in zip(heads, np.split(mixed, ends), np.split(there, ends), strict=False):
            yield role, _flat(x), _flat(y)

    def _mixed(self, first: Rows, second: Rows) -> Rows:
        """Rows of heads mixed so as to be those of the second model on the fitted channels."""
        found = np.empty((len(first), *second.shape[1:]))
        step = max(1, _TOGETHER // max(first[0].size, second[0].size))
        for start in range(0, len(first), step):
            some = slice(start, start + step)
            wide = first[some].astype(np.float64)
            x, y = wide[..., self.fitted], second[some][..., self.fitted].astype(np.float64)
            ordinary = _ordinary(x, y)[:, None]
            x, y = x * ordinary, y * ordinary
            gram = x @ x.swapaxes(1, 2)
            diagonal = np.einsum("hii->hi", gram)
            diagonal += _RIDGE * np.maximum(diagonal.mean(axis=1, keepdims=True), 1e-30)
            mix = np.linalg.solve(gram, x @ y.swapaxes(1, 2)).swapaxes(1, 2)
            np.matmul(mix, wide, out=found[some])
        return found

    def _matched(
        self, tensors: Tensors, controls: Callable[[], Tensors], *, turned: bool = False
    ) -> MatchedRows | None:
        """The columns of equal channels, over the rows of all tensors; None where these are few.

        Rows that do not belong together are looked at where those that were matched agree. `turned`
        says that the second rows are those of the model whose channels change places.
        """
        told = {role: (_unit(x), _unit(y)) for role, x, y in _filled(tensors)}
        if sum(len(x) for x, _ in told.values()) < FEWEST_ROWS:
            return None
        x, y = (np.concatenate(rows) for rows in zip(*told.values(), strict=True))
        ordinary = _ordinary(x, y) & (y if turned else x).any(axis=0)
        own, other = (y, x) if turned else (x, y)
        columns = standardise_columns(own).T
        usable = np.flatnonzero(self.usable & ordinary & alone(copied_directions(columns, CLONED)))
        if not len(usable):
            return None
        blocks = common_blocks(np.arange(len(columns)), usable)
        products = blocks.products(columns, standardise_columns(other[:, usable]).T)
        products = products.swapaxes(1, 2) if turned else products
        unseen = np.flatnonzero(~self.fitted & ordinary)
        cosines = {role: _cosines(*rows, unseen) for role, rows in told.items()}
        return MatchedRows(products, blocks.sizes, unseen, cosines, controls)


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


def _ordinary(x: Rows, y: Rows) -> Bools:
    """Channels that are far larger than the others in neither; of several sets those of each."""
    sizes = np.sqrt([np.einsum("...nd,...nd->...d", rows, rows) for rows in (x, y)])
    return np.asarray(~each_massive(sizes).any(axis=0))


def _cosines(x: Rows, y: Rows, channels: Indices) -> Rows:
    """The correlations of rows over some channels."""
    x, y = (np.take(rows, channels, axis=1, mode="clip") for rows in (x, y))
    lengths = np.sqrt(_squares(x) * _squares(y))
    return np.asarray(np.einsum("nd,nd->n", x, y) / np.where(lengths > 0, lengths, 1.0))


def _filled(tensors: Tensors) -> Tensors:
    """Those that have numbers in both models."""
    return ((role, x, y) for role, x, y in tensors if x.any() and y.any())


def _closest(match: Rows, single: Sequence[Rows]) -> Rows:
    """How near rows are: by all tensors, or by the size of the one that has much closer partners.

    Of a copied tensor beside strangers' the others only disturb.
    """
    near = [float(np.maximum(one.max(axis=1), -one.min(axis=1)).mean()) for one in single]
    apart = max(near) - float(match.max(axis=1).mean())
    return np.abs(single[near.index(max(near))]) if apart > _CLOSER else match


def _planes(heads: Rows) -> Rows:
    """The two rows of each rotary plane, head by head."""
    return _flat(np.concatenate([heads.real, heads.imag], axis=1))


def _flat(heads: Rows) -> Rows:
    """Rows of several heads, one below the other."""
    return heads.reshape(-1, heads.shape[-1])


def _unit(rows: Rows) -> Rows:
    """Rows of length one, in place; zero where there is nothing."""
    length = np.sqrt(_squares(rows))
    rows *= (1.0 / np.where(length > 0, length, 1.0))[:, None].astype(rows.dtype)
    return rows


def _squares(rows: Rows) -> Rows:
    return np.asarray(np.einsum("nd,nd->n", rows, rows))
