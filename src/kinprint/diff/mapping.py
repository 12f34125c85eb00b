"""Which layers, experts, channels, units, heads and tokens of two models belong together.

Most models are what they were numbered: rows of equal number are alike, and nothing is looked for.
Otherwise the alignments of a comparison are asked which layers and channels correspond, then units
and heads are matched layer by layer at full size. What is matched is verified by the diff itself:
a wrong match shows as a change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from kinprint.device import Array, array_module, downloaded, uploaded
from kinprint.diff.pairing import AS_NUMBERED, Correspondence, Match, Turn, UnitsKey, source_of
from kinprint.diff.structure import Sizes
from kinprint.errors import FormatError
from kinprint.lineage.alignment.residual import IDENTITY, ResidualMap
from kinprint.lineage.alignment.units import Matching, UnitStack, match_feed_forwards
from kinprint.lineage.compare import algebra_for
from kinprint.lineage.pair import Alignment, FeedForwardPair, Pair
from kinprint.lineage.preparation import DENSE
from kinprint.lineage.reading.parts import component_of
from kinprint.lineage.reading.sampler import Sampler
from kinprint.lineage.side import Side
from kinprint.measure.basis import polar_factor, unit_rows
from kinprint.measure.rows import are_filled, row_cosines
from kinprint.model.model import Floats, Model
from kinprint.model.places import Address, Place
from kinprint.model.tokens import Vocabulary, align
from kinprint.nulls.fixed_points import nearest_rows
from kinprint.records import Component, Level, Role, feed_forward_of, plain_role

_PROBED = 16  # rows of a tensor that tell whether rows of equal number are alike
_ALIKE = 0.2  # the least cosine of such rows, in the mean over a layer; strangers have 0.02
_TOKENS = 64  # rows of the embedding that tell whether it followed its tokenizer
_AS_GOOD = 0.9  # as the best basis, for one whose channels were only renamed or removed
_AS_IT_IS = 0.99  # as the best of these, for the basis as it is: strangers' come as near by chance
_TURNED, _AGREE = 0.6, 0.99  # cosines of units that are alike in a turned basis, and that agree
_UNITS_ALIKE = 0.3  # the mean cosine of what units read and send; base-a and base-b have 0.17
_HEADS_ALIKE = 0.3  # the mean size of what planes of queries and keys share; strangers have 0.06
_MUTUAL = 0.5  # of the units: fewer that are each other's nearest are no match

# Tower, layer, expert, component, and which feed-forward (see `feed_forward_of`).
_PartKey = tuple[str, int | None, int | None, Component | None, str]


def find_correspondence(a: Model, b: Model) -> Correspondence:
    """How the parts of two models correspond, as far as their numbers tell.

    Samples are as large as matching units needs; the search for a basis is that of a usual
    comparison.
    """
    tokens, spelt = find_tokens(a, b)
    alike = _alike_by_number(a, b)
    if alike is not None and all(alike.values()):
        return Correspondence(tokens=tokens, spelt=spelt)
    if alike is not None and _only_units_differ(a, b, alike):
        found = Correspondence({("", layer): layer for layer in b.layers()})
        return replace(found, units=dict(_units(a, b, found)), tokens=tokens, spelt=spelt)
    sampler = Sampler((a, b), Level.DEEP)
    with algebra_for(Level.DEEP):
        ours, theirs = (Side(one) for one in sampler.samples(sampler.stages - 1))
        alignment = Pair(ours, theirs, level=Level.STANDARD).alignment_from(theirs)
        found = _aligned(a, b, alignment)
    unsure = None if found.layers else found.channels  # no feed-forward is a copy in this basis
    if unsure is not None and not _rows_fit(a, b, unsure, tokens):
        found = AS_NUMBERED
    return replace(found, tokens=tokens, spelt=spelt)


def find_tokens(a: Model, b: Model, *, sampled: bool = False) -> tuple[Match | None, bool]:
    """Rows of the vocabularies that stand for the same text; None where all have equal numbers.

    Also whether the spelling of tokens is known: otherwise rows of equal number are given. Where
    only samples are read, rows that stand for no token are taken for padding.
    """
    tables = [one.places.get(Address(Role.EMBED)) for one in (a, b)]
    if any(table is None or table.shape is None or table.weight.refusal for table in tables):
        return None, False
    sizes = [table.shape[0] for table in tables if table is not None and table.shape is not None]
    known = []
    for model in (a, b):
        try:
            known.append(model.vocabulary())
        except FormatError:
            known.append(None)
    if known[0] is None or known[1] is None:
        return _rows_by_number(sizes[0], sizes[1]), False
    shared = align(known[0], known[1])
    kept = (shared.a < sizes[0]) & (shared.b < sizes[1])
    left, right = shared.a[kept], shared.b[kept]
    if sizes[0] == sizes[1] and (np.array_equal(left, right) or _rows_stay(a, b, left, right)):
        return None, True
    padding = 0, 0
    if sizes[0] != sizes[1]:
        free = _free(known[0], sizes[0], left), _free(known[1], sizes[1], right)
        padding = len(free[0]), len(free[1])
        if not sampled:
            padding = _padding(a, free[0]), _padding(b, free[1])
    return Match(left, right, sizes[0], sizes[1], padding=padding), True


def numbered_tokens(a: Model, b: Model) -> Match | None:
    """Rows of the vocabularies that have equal numbers; None where all have. As many are read as of
    those that stand for the same text, and no tokenizer is needed for it."""
    sizes = [Sizes.of(one).tokens for one in (a, b)]
    return None if sizes[0] is None or sizes[1] is None else _rows_by_number(sizes[0], sizes[1])


def _rows_by_number(before: int, after: int) -> Match | None:
    rows = np.arange(min(before, after))
    return None if before == after else Match(rows, rows, before, after)


def _free(vocabulary: Vocabulary, size: int, matched: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rows of an embedding of some size that stand for no token."""
    free = np.ones(size, np.bool_)
    free[matched] = False
    spelt = [token is not None for token in vocabulary.tokens[:size]]
    free[: len(spelt)] &= ~np.array(spelt, np.bool_)
    return np.flatnonzero(free)


def _padding(model: Model, rows: NDArray[np.int64]) -> int:
    """How many of the rows of an embedding hold no numbers of their own: all of them, or none."""
    some = rows[:: max(1, len(rows) // _TOKENS)][:_TOKENS]
    if not len(some):
        return 0
    values = model.reading(model.places[Address(Role.EMBED)], tuple(some.tolist())).take()
    return len(rows) if are_filled(values) else 0


def _rows_stay(a: Model, b: Model, left: NDArray[np.int64], right: NDArray[np.int64]) -> bool:
    """Whether rows of equal number are more alike than those of equal tokens.

    A tokenizer may have been replaced beside an embedding that stayed as it was.
    """
    moved = np.flatnonzero(left != right)
    some = moved[:: max(1, len(moved) // _TOKENS)][:_TOKENS]
    if not len(some):
        return True
    table, other = a.places[Address(Role.EMBED)], b.places[Address(Role.EMBED)]
    ours = tuple(left[some].tolist())
    x = a.reading(table, ours).take()
    likeness = [
        float(np.nanmean(row_cosines(x, b.reading(other, tuple(ids)).take(), centred=True)))
        for ids in (ours, right[some].tolist())
    ]
    return likeness[0] > likeness[1]


def _rows_fit(a: Model, b: Model, channels: Match, tokens: Match | None) -> bool:
    """Whether rows of the embedding are alike once channels are renamed."""
    table, other = (one.places.get(Address(Role.EMBED)) for one in (a, b))
    if table is None or other is None or table.shape is None or other.shape is None:
        return False
    known = np.arange(min(table.shape[0], other.shape[0]))
    left, right = (known, known) if tokens is None else (tokens.a, tokens.b)
    some = slice(None, None, max(1, len(left) // _TOKENS))
    x = a.reading(table, tuple(left[some].tolist())).take()
    y = b.reading(other, tuple(right[some].tolist())).take()
    cosines = row_cosines(channels.of_a(x, 1), channels.of_b(y, 1), centred=True)
    return bool(np.nanmean(cosines) >= _ALIKE)


def _alike_by_number(a: Model, b: Model) -> dict[_PartKey, bool] | None:
    """Whether attention, feed-forward and each expert of a layer have rows that are alike at equal
    numbers; None where layers have other numbers."""
    if a.layers() != b.layers() or a.stacks != b.stacks:
        return None
    by_part: dict[_PartKey, list[float]] = {}
    resized: set[_PartKey] = set()
    for address, place in b.places.items():
        partner = a.places.get(address)
        if address.layer is None or place.shape is None or len(place.shape) < 2:
            continue
        component, prefix = component_of(address.role), feed_forward_of(address.role)
        key = address.tower, address.layer, address.expert, component, prefix
        if partner is None or not _comparable(partner, place):
            resized.add(key)
            continue
        rows = range(min(_PROBED, place.shape[0]))
        x, y = (np.atleast_2d(m.reading(p, rows).take()) for m, p in ((a, partner), (b, place)))
        cosines = row_cosines(x, y)
        known = cosines[np.isfinite(cosines)]
        likeness = float(known.mean()) if len(known) else float(np.array_equal(x, y))
        by_part.setdefault(key, []).append(likeness)
    found = {key: bool(np.mean(some) >= _ALIKE) for key, some in by_part.items()}
    return found | dict.fromkeys(resized, False)


def _only_units_differ(a: Model, b: Model, alike: Mapping[_PartKey, bool]) -> bool:
    """Whether the attention of every layer is alike at equal numbers, and what is not are
    feed-forwards: layers are then as they were numbered, whatever became of their units."""
    if any(one.expert is not None for one in (*a.places, *b.places)):
        return False
    layers = all(alike.get(("", at, None, Component.ATTENTION, "")) for at in b.layers())
    unlike = {(tower, component) for (tower, _, _, component, _), one in alike.items() if not one}
    return layers and unlike == {("", Component.FEED_FORWARD)}


def _aligned(a: Model, b: Model, alignment: Alignment) -> Correspondence:
    """What an alignment from the second model to the first says."""
    matching = alignment.feed_forwards
    if matching is None or not matching.trusted:
        return AS_NUMBERED
    matching = _plainest(alignment, matching)
    if matching.residual.matrix is not None:
        turn = _turn(alignment, matching)
        return AS_NUMBERED if turn.cosine < _TURNED else Correspondence(turned=turn)
    theirs, ours = alignment.first.prepared.feed_forwards, alignment.second.prepared.feed_forwards
    votes: dict[int, list[int]] = {}
    experts: dict[tuple[int, int], int | None] = {}
    for at, (part, to) in enumerate(zip(theirs, matching.partners, strict=True)):
        if to < 0:
            continue
        partner = ours[to]
        _, both = alignment.matched_units(FeedForwardPair(at, to, part, partner), matching.residual)
        copied = np.count_nonzero(np.abs(both) >= 2 * _UNITS_ALIKE)  # of what they read and send
        if copied < _MUTUAL * min(len(part.index), len(partner.index)):
            continue  # the nearest, and no copy: it keeps its number
        votes.setdefault(part.layer, []).append(partner.layer)
        if part.expert != DENSE:
            experts[part.layer, part.expert] = None if partner.expert == DENSE else partner.expert
    layers = {("", layer): max(set(some), key=some.count) for layer, some in votes.items()}
    channels = _channels(matching.residual, alignment.first.prepared.width)
    found = Correspondence(layers, experts, channels)
    queries, groups = _heads(alignment, layers)
    return replace(found, units=dict(_units(a, b, found)), queries=queries, groups=groups)


def _turn(alignment: Alignment, matching: Matching) -> Turn:
    """How alike units are that are each other's nearest in a basis that was turned.

    The turn that was found is made more exact first: by the one that brings every second unit
    nearest to its partner. It is judged by the others.
    """
    fitted: list[NDArray[np.float64]] = []
    judged: list[list[tuple[Floats, Floats]]] = []
    total = 0
    for part in alignment.representatives(matching):
        pairs, both = alignment.matched_units(part, matching.residual)
        signs = np.where(both < 0, -1.0, 1.0).astype(np.float32)[:, None]
        left = _places(part.first.index, pairs.first)
        right = _places(part.second.index, pairs.second)
        first, second = (
            side.prepared.unit_rows[one.layer, one.expert]
            for side, one in ((alignment.first, part.first), (alignment.second, part.second))
        )
        if first.count != len(part.first.index) or second.count != len(part.second.index):
            continue  # dead units were left out
        ends = [
            (x[left] * signs, y[right])
            for x, y in ((first.up, second.up), (first.down, second.down))
        ]
        fitted += [x[::2].T.astype(np.float64) @ y[::2] for x, y in ends]
        judged.append([(x[1::2], y[1::2]) for x, y in ends])
        total += len(part.first.index) // 2
    if not total:
        return Turn(0, 0.0, 0.0)
    turn = polar_factor(np.sum(fitted, axis=0))
    found = np.concatenate(
        [np.min([row_cosines(x @ turn, y) for x, y in ends], axis=0) for ends in judged]
    )
    agree = np.count_nonzero(found >= _AGREE)
    return Turn(total, min(1.0, agree / total), float(np.nansum(found) / total))


def _places(index: NDArray[np.int64], some: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where numbers stand in a list of them."""
    order = np.argsort(index)
    return order[np.searchsorted(index, some, sorter=order)]


def _plainest(alignment: Alignment, fitting: Matching) -> Matching:
    """Feed-forwards matched in the plainest basis that is as good as the best: the one as it is,
    else one whose channels are some of the other model's, else the one that fits.

    Bases were rated by a few feed-forwards; here all of them count, as few may be copies.
    """
    theirs, ours = alignment.first.prepared.feed_forwards, alignment.second.prepared.feed_forwards
    stack = UnitStack.of(ours)
    found = (
        match_feed_forwards(theirs, ours, [one], alignment.first.units_flip, stack)
        for one in alignment.residual_maps
        if one.residual.matrix is None
    )
    renamed = [one for one in found if one is not None]
    if not renamed:
        return fitting
    best = max(renamed, key=lambda one: one.quality)
    for one in renamed:
        if one.residual is IDENTITY and one.quality >= _AS_IT_IS * best.quality:
            best = one
    return best if best.quality >= _AS_GOOD * fitting.quality else fitting


def _heads(
    alignment: Alignment, layers: Mapping[tuple[str, int], int]
) -> tuple[dict[int, Match], dict[int, Match]]:
    """Query and key-value heads of layers that correspond, where they are alike and changed places
    or number. Heads that share keys otherwise than before have no partners."""
    theirs, ours = (side.prepared.heads for side in (alignment.first, alignment.second))
    pairs: dict[int, tuple[dict[int, int], dict[int, int]]] = {}
    unlike: set[int] = set()
    for one in alignment.head_groups:
        if layers.get(("", one.layer)) == one.partner_layer:
            shared = theirs[one.layer].queries == ours[one.partner_layer].queries
            if not shared or (one.planes.size and np.abs(one.planes).mean() < _HEADS_ALIKE):
                unlike.add(one.layer)
            queries, groups = pairs.setdefault(one.layer, ({}, {}))
            groups[one.group] = one.partner
            queries |= dict(one.queries)
    found: tuple[dict[int, Match], dict[int, Match]] = {}, {}
    for layer, both in pairs.items():
        if layer in unlike:
            continue
        as_many = theirs[layer].groups == ours[layers["", layer]].groups
        for known, to in zip(both, found, strict=True):
            second = np.array(sorted(known), np.int64)
            first = np.array([known[at] for at in second.tolist()], np.int64)
            moved = not as_many or not np.array_equal(first, second)
            if len(set(first.tolist())) == len(first) and moved:
                to[layer] = Match(first, second, len(first), len(second))
    return found


def _channels(residual: ResidualMap, width: int) -> Match | None:
    """Channels of the first model with those of the second; the map goes the other way."""
    if residual is IDENTITY or residual.pairs is None:
        return None
    theirs, ours, signs = residual.pairs
    order = np.argsort(theirs)
    return Match(ours[order], theirs[order], residual.width, width, signs[order])


def _units(a: Model, b: Model, found: Correspondence) -> Iterator[tuple[UnitsKey, Match]]:
    """Units of layers and experts that correspond, each other's nearest, where numbers differ."""
    for address in list(b.places):
        if plain_role(address.role) != Role.UP or address.layer is None or address.tower:
            continue
        if ("", address.layer) not in found.layers:
            continue
        theirs, ours = _unit_rows(b, address), _unit_rows(a, source_of(address, found))
        if theirs is None or ours is None:
            continue
        match = match_units(ours, theirs, found.channels)
        if match is not None:
            yield (feed_forward_of(address.role), address.layer, address.expert), match


def _comparable(one: Place, other: Place) -> bool:
    """Whether two tensors have one shape and can be read."""
    refused = one.weight.refusal or other.weight.refusal
    return refused is None and one.shape == other.shape


class FeedForwardRows(Struct, frozen=True, eq=False):
    """What units read and send: rows of up, of down turned, and of the gate if there is one."""

    up: Array
    down: Array
    gate: Array | None

    def uploaded(self) -> FeedForwardRows:
        """The same where it is computed."""
        gate = None if self.gate is None else uploaded(self.gate)
        return FeedForwardRows(uploaded(self.up), uploaded(self.down), gate)


def _unit_rows(model: Model, address: Address) -> FeedForwardRows | None:
    """The units of the feed-forward that a matrix belongs to."""
    prefix = feed_forward_of(address.role)
    places = [
        model.places.get(replace(address, role=prefix + role))
        for role in (Role.UP, Role.DOWN, Role.GATE)
    ]
    refused = [one is None or one.weight.refusal or one.contradiction for one in places]
    places = [None if no else one for one, no in zip(places, refused, strict=True)]
    up, down, gate = (None if one is None else model.reading(one).take() for one in places)
    if up is None or down is None:
        return None
    return FeedForwardRows(up, np.ascontiguousarray(down.T), gate)


def match_units(
    a: FeedForwardRows, b: FeedForwardRows, channels: Match | None = None
) -> Match | None:
    """Units of two feed-forwards that are each other's nearest, and alike; None where all have
    equal numbers, or too few have a partner.

    Units are matched by what the gate reads, which no flip changes, or by all they read and send
    where there is no gate. A unit whose up and down are both negated was flipped.
    """
    ours, theirs = (
        _carried(one, channels, picked).uploaded()
        for one, picked in ((a, Match.of_a), (b, Match.of_b))
    )
    if ours.up.shape[1] != theirs.up.shape[1] or ours.down.shape[1] != theirs.down.shape[1]:
        return None
    if ours.gate is not None and theirs.gate is not None:
        near = nearest_rows(unit_rows(ours.gate), unit_rows(theirs.gate))
    else:
        xp = array_module(ours.up)
        first, second = (xp.concatenate([one.up, one.down], axis=1) for one in (ours, theirs))
        near = nearest_rows(unit_rows(first), unit_rows(second))
    there, back = near.there.at, near.back.at
    left = np.flatnonzero(back[there] == np.arange(len(there)))
    left = left[np.argsort(there[left])]
    right = there[left]
    both = sum(
        (unit_rows(one[left]) * unit_rows(other[right])).sum(axis=1)
        for one, other in ((ours.up, theirs.up), (ours.down, theirs.down))
    )
    both = downloaded(both)
    gated = ours.gate is not None and theirs.gate is not None
    likeness = (np.abs(both) + near.there.score[left] * gated) / (2 + gated)
    alike = likeness >= _UNITS_ALIKE
    left, right, both = left[alike], right[alike], both[alike]
    if len(left) < _MUTUAL * min(len(there), len(back)):
        return None
    signs = np.where(both < 0, -1.0, 1.0).astype(np.float32)
    if len(there) == len(back) and np.mean(left == right) > _MUTUAL and (signs > 0).all():
        return None
    flips = signs if (signs < 0).any() else None
    return Match(left, right, len(there), len(back), flips)


def _carried(
    units: FeedForwardRows,
    channels: Match | None,
    picked: Callable[[Match, Array, int], Array],
) -> FeedForwardRows:
    """Units over channels that both models have, in the coordinates of the second."""
    if channels is None:
        return units
    gate = None if units.gate is None else picked(channels, units.gate, 1)
    return FeedForwardRows(picked(channels, units.up, 1), picked(channels, units.down, 1), gate)
