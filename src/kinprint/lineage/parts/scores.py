"""Single parts of two models: how alike each is, and how often chance alone does that.

The tests of the menu pool all layers, which finds weak traces and hides what only one layer shares.
Here the same symmetries are asked part by part. Labels and coins of one part are a relabelling of
their own, so that every p-value is exact by itself; `judging.py` pays for all of them together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import TypeVar

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kinprint.lineage.alignment.blocks import Blocks, common_blocks, equal_blocks
from kinprint.lineage.alignment.heads import HeadGroupMatch
from kinprint.lineage.alignment.residual import IDENTITY, Channels, ResidualMap
from kinprint.lineage.alignment.units import Matching, UnitStack, best_partners
from kinprint.lineage.pair import Alignment, FeedForwardPair, Pair
from kinprint.lineage.parts.columns import (
    HalfChannels,
    MatchedRows,
    column_scores,
    matched_share,
)
from kinprint.lineage.parts.tensors import tensor_sizes
from kinprint.lineage.preparation import DENSE, FeedForward, Prepared, SharedTokens
from kinprint.lineage.reading.sample import OUTSIDE
from kinprint.lineage.side import alone
from kinprint.lineage.tests.attention import HeadGroups
from kinprint.lineage.tests.columns import head_evidence
from kinprint.lineage.tests.registry import Basis, Likeness, NoResult, registered_test
from kinprint.measure.basis import spread
from kinprint.measure.rows import alike_share, copied_rows, partner_cosines
from kinprint.model.places import Address
from kinprint.nulls.blocks import (
    BLOCK,
    block_log10_p,
    each_block_log10_p,
    each_signed_log10_p,
)
from kinprint.nulls.chernoff import TOGETHER
from kinprint.nulls.copies import sum_over
from kinprint.nulls.masks import masked
from kinprint.nulls.signs import each_quarter_log10_p, each_sign_log10_p
from kinprint.records import Component, Evidence, Group, Part, Role, Status

T = TypeVar("T")
_AS_ALIKE = 0.25  # as a share of the likeness of the tensor that is most alike
_ALONE = -6.0  # log10 p of a matrix by itself that is linked, whatever the others are
_ERRORS = 3.0  # standard errors from which on likeness is none by chance
_FEW_ERRORS = 0.8  # the same as a share of those that so many equal numbers have
_UNITS = 512  # of a feed-forward whose matrices are looked at one by one
_NEARLY_ALL = 0.9  # tokens, of which the others are no strangers
TABLE, HEAD = Part(Component.EMBEDDING), Part(Component.HEAD)
"""The tables of tokens, in and out."""
MATCHED_COLUMNS = "Cm.matched"
"""The test of columns of matched rows: single parts have it, the menu has not."""


class PartScore(Struct, frozen=True):
    """One test of one part.

    Attributes
    ----------
    parts : the part in each of the models, in the order of `Pair.sides`.
    test : which test of the menu asks the same of all layers.
    log10_p : its p-value for this part alone.
    likeness : mean correlation of the weights compared.
    matched : whether units or heads were matched first, so that a renumbered copy would show.
    as_stored : whether channels were taken as they are numbered.
    share : the share of the part's numbers in tensors that are as alike as the rest of them, or in
        rows that are copies beside others that have nothing in common.
    floor : the least log10 p that the test could have given.
    excess : of matched rows, how much of what others leave open is alike.
    copies : whether there are such copies, of which one start is no explanation. Units without a
        gate may never fire, and keep their first weights.
    roles : by tensor, the share of its rows in one of the models that is linked for sure; None
        where the test is of one tensor, or of all in one.
    side : which of the models that is.
    """

    parts: tuple[Part, Part]
    test: str
    log10_p: float
    likeness: float
    matched: bool = False
    as_stored: bool = True
    share: float = 1.0
    floor: float = 0.0
    excess: float = 1.0
    copies: bool = False
    roles: Mapping[str, float] | None = None
    side: int = 0


def part_scores(pair: Pair, evidence: Sequence[Evidence]) -> tuple[PartScore, ...]:
    """Every test of every part that both models have; `evidence` is what the menu gave."""
    return (
        *_norms(pair),
        *_numbered_units(pair),
        *_matched_units(pair),
        *_heads(pair),
        *_matched_columns(pair),
        *_routers(pair),
        *_embedding(pair, evidence),
        *_head(pair),
    )


def _norms(pair: Pair) -> Iterator[PartScore]:
    """Gains of equal channels, all vectors of a layer together.

    In layers of equal number, and in those that units found to correspond. Which these are may
    depend on channels, so that each of them pays for all pairs of layers.
    """
    alignment = _as_numbered(pair)
    if alignment is None:
        return
    first, second = alignment.first.prepared, alignment.second.prepared
    shared = alignment.channels.norms
    if not shared:
        return
    blocks = alignment.channel_blocks
    if not len(blocks.sizes):
        return
    every_pair = math.log10(max(1, first.sample.depth * second.sample.depth))
    places = [(layer, layer, 0.0) for layer in sorted({layer for _, layer in shared})]
    places += [(*layers, every_pair) for layers in _layers_elsewhere(pair, alignment)]
    for portion in _portions(places):
        gains = {
            place: both
            for place in portion
            if (both := _common_gains(first, second, *place[:2])) is not None
        }
        tables = [(blocks.products(x, y), blocks.sizes) for x, y in gains.values()]
        for (place, (x, y)), log10_p in zip(gains.items(), each_block_log10_p(tables), strict=True):
            at, to, price = place
            lengths = np.sqrt(np.square(x).sum(axis=0) * np.square(y).sum(axis=0))
            parts = (Part(Component.NORMS, None if one == OUTSIDE else one) for one in (at, to))
            likenesses = ((x * y).sum(axis=0) / lengths).tolist()
            share = _alike(likenesses, [1] * len(likenesses))
            yield PartScore(
                _ordered(pair, alignment, *parts), "E1.blocks", min(log10_p + price, 0.0),
                share * _of_those_alike(likenesses), share=share,
            )  # fmt: skip


def _common_gains(
    first: Prepared, second: Prepared, at: int, to: int
) -> tuple[np.ndarray, np.ndarray] | None:
    """Normal scores of the gains that both layers have, a column a vector."""
    ours, theirs = ({role for role, layer in one.scores.by_norm if layer == place}
                    for one, place in ((first, at), (second, to)))  # fmt: skip
    roles = sorted(ours & theirs)
    if not roles:
        return None
    x, y = (
        np.stack([one.scores.by_norm[role, place] for role in roles], axis=1)
        for one, place in ((first, at), (second, to))
    )
    return x, y


def _portions(many: Iterable[T]) -> Iterator[list[T]]:
    """As many at a time as p-values are searched for at once: what these need is held no longer."""
    rest = iter(many)
    while some := list(islice(rest, TOGETHER)):
        yield some


def _as_numbered(pair: Pair) -> Alignment | None:
    """Models whose channels are those of equal number, if they may change places at all."""
    if pair.refusal(Group.RESIDUAL) is not None:
        return None
    alignment = pair.alignment(Group.RESIDUAL)
    widths = {side.prepared.width for side in (alignment.first, alignment.second)}
    return alignment if len(widths) == 1 else None


def _layers_elsewhere(pair: Pair, alignment: Alignment) -> list[tuple[int, int]]:
    """Layers whose units correspond, in the basis as stored, to those of a layer of other number.

    Those of the model that is first in the alignment come first.
    """
    if pair.refusal(Group.UNIT_SIGN) is not None:
        return []
    units = pair.alignment(Group.UNIT_SIGN)
    matching = units.feed_forwards
    if matching is None or not matching.trusted or matching.residual is not IDENTITY:
        return []
    ours, theirs = (side.prepared.feed_forwards for side in (units.first, units.second))
    met = {(at, to) for at, to in enumerate(matching.partners) if to >= 0}
    # A layer may be there twice: those that nothing met look for the one they are made of.
    rest = sorted(set(range(len(theirs))) - {to for _, to in met})
    if rest:
        back = best_partners(
            [theirs[to] for to in rest], UnitStack.of(ours), IDENTITY, units.first.units_flip
        )
        met |= set(zip(back, rest, strict=True))
    found = {(ours[at].layer, theirs[to].layer) for at, to in met}
    straight = units.first is alignment.first
    return sorted((at, to) if straight else (to, at) for at, to in found if at != to)


def _numbered_units(pair: Pair) -> Iterator[PartScore]:
    """Units of equal number in feed-forwards of equal place and size.

    In the basis as it is, and in the one in which units match best, which knows no numbers.
    """
    if pair.refusal(Group.UNIT) is not None:
        return
    alignment = pair.alignment(Group.UNIT)
    matching = alignment.feed_forwards
    bases = [("U1.blocks", IDENTITY)]
    if matching is not None and matching.trusted and matching.residual is not IDENTITY:
        bases.append(("U1.aligned", matching.residual))
    flips = alignment.first.units_flip
    for some in _portions(_of_equal_place(alignment)):
        for test, residual in bases:
            tables = [_unit_products(alignment, *one, residual) for one in some]
            problems = [
                _labels_and_signs(products, blocks)
                for products, (_, blocks) in zip(tables, some, strict=True)
            ]
            if flips:
                found = each_signed_log10_p(problems)
            else:
                found = each_block_log10_p([(gate + both, n) for gate, both, n in problems])
            for (compared, blocks), products, log10_p in zip(some, tables, found, strict=True):
                members = blocks.first >= 0
                rows = {
                    role: one.diagonal(axis1=1, axis2=2)[members] for role, one in products.items()
                }
                units = list(rows.values())
                roles = [float(one.mean()) for one in units]
                score = _score(pair, alignment, compared, test, log10_p, float(np.mean(roles)))
                score = replace(
                    score,
                    as_stored=residual is IDENTITY,
                    share=_alike(roles, [1] * len(roles)),
                    roles=linked_rows(
                        rows,
                        {
                            role: alike_share(one, _of_other_numbers(products[role], blocks))
                            for role, one in rows.items()
                        },
                        partial(_linked_alone, products, blocks),
                    ),
                    side=_side(pair, alignment),
                )
                copied = copied_rows(np.concatenate(units), 1.0 / math.sqrt(compared.first.width))
                yield _with_copies(score, copied, compared.first.gate is not None)


def _of_equal_place(alignment: Alignment) -> Iterator[tuple[FeedForwardPair, Blocks]]:
    """Feed-forwards of equal place and size, with the units of equal number that both have."""
    theirs = {
        (part.layer, part.expert): (to, part)
        for to, part in enumerate(alignment.second.prepared.feed_forwards)
    }
    for at, ours in enumerate(alignment.first.prepared.feed_forwards):
        to, other = theirs.get((ours.layer, ours.expert), (-1, None))
        if other is None or (other.total, other.width) != (ours.total, ours.width):
            continue
        compared = FeedForwardPair(at, to, ours, other)
        blocks = common_blocks(ours.index, other.index, alignment.first.usable_units[at])
        if not len(blocks.sizes) or not compared.read:
            continue
        if not compared.masked:
            yield compared, blocks
        elif alignment.first.units_flip:
            yield compared, blocks.single()


def _unit_products(
    alignment: Alignment, compared: FeedForwardPair, blocks: Blocks, residual: ResidualMap
) -> dict[str, np.ndarray]:
    """Correlations of units of a block with each other, by matrix."""
    found = {}
    for role in sorted(compared.read):
        both = getattr(compared.first, role), getattr(compared.second, role)
        first, second = (alignment.gates(compared, blocks) or both) if role == "gate" else both
        found[role] = blocks.products(residual.carry(first), second)
    return found


def _labels_and_signs(
    products: Mapping[str, np.ndarray], blocks: Blocks
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Correlations that no flip of a unit changes, those that one negates, and sizes of blocks."""
    gate = products.get("gate", np.zeros((len(blocks.sizes), BLOCK, BLOCK)))
    both = sum((products[role] for role in ("up", "down") if role in products), 0 * gate)
    return gate, both, blocks.sizes


def _of_other_numbers(products: np.ndarray, blocks: Blocks) -> np.ndarray:
    """How alike units of a block are that have other numbers."""
    some = blocks.first >= 0
    pairs = some[:, :, None] & some[:, None, :] & ~np.eye(BLOCK, dtype=bool)
    return np.asarray(products[pairs])


def _linked_alone(products: Mapping[str, np.ndarray], blocks: Blocks, role: str) -> bool:
    """Whether a matrix is linked by itself, whatever the others are."""
    return float(block_log10_p(products[role], blocks.sizes)[0]) <= _ALONE


def _with_copies(score: PartScore, copied: tuple[float, float] | None, telling: bool) -> PartScore:
    """The score of the rows that are copies, where only some are."""
    if copied is None:
        return score
    share, likeness = copied
    return replace(score, share=share, likeness=share * likeness, copies=telling)


def _alike(likenesses: Sequence[float], sizes: Sequence[int]) -> float:
    """The share of tensors of these sizes that are about as alike as the most alike one."""
    least = _AS_ALIKE * max(likenesses)
    if least <= 0:
        return 1.0
    alike = (size for one, size in zip(likenesses, sizes, strict=True) if one >= least)
    return sum(alike) / sum(sizes)


def linked_rows(
    rows: Mapping[str, np.ndarray],
    shares: Mapping[str, float],
    by_itself: Callable[[str], bool] = lambda role: False,
) -> dict[str, float]:
    """By tensor, the share of its rows that is linked, of the `shares` that are alike for sure.

    Tensors count that are linked each `by_itself`, or about as alike as the most alike one, which
    counts in any case, and more than by chance.
    """
    means = {role: float(one.mean()) for role, one in rows.items()}
    most = max(means.values(), default=0.0)
    found = {}
    for role, one in rows.items():
        alike = _clear(one) and means[role] >= _AS_ALIKE * most
        if alike or means[role] == most or by_itself(role):
            found[role] = shares[role]
    return found


def _linked_heads(heads: Sequence[Mapping[str, np.ndarray]]) -> dict[str, float]:
    """By tensor, the share of heads that is linked, from the likeness of each row of each head.

    That a tensor is alike is told by the rows of a head, or by those of all: a head may have few.
    """
    rows: dict[str, list[tuple[float, np.ndarray]]] = {}
    for head in heads:
        for role, one in head.items():
            rows.setdefault(role, []).append((float(one.mean()), one))
    least = _AS_ALIKE * max((mean for told in rows.values() for mean, _ in told), default=0.0)
    found = {}
    for role, told in rows.items():
        together = _clear(np.concatenate([one for _, one in told]))
        alike = [together or _clear(one) for mean, one in told if mean >= least]
        found[role] = sum(alike) / len(heads)
    return found


def _clear(likeness: np.ndarray) -> bool:
    """Whether rows are alike more than coins for their signs would make them; of few rows, whether
    they are all about as alike, since more cannot be."""
    errors = min(_ERRORS, _FEW_ERRORS * math.sqrt(likeness.size))
    return float(likeness.sum()) > errors * math.sqrt(float(np.square(likeness).sum()))


def _of_those_alike(likenesses: Sequence[float]) -> float:
    """The mean of those that are about as alike as the most alike one.

    The others would make these seem more so.
    """
    least = _AS_ALIKE * max(likenesses)
    return float(np.mean([one for one in likenesses if one >= least or least <= 0]))


def _matched_units(pair: Pair) -> Iterator[PartScore]:
    """Signs of units that match best, in the basis and the layers that do."""
    if pair.refusal(Group.UNIT_SIGN) is not None:
        return
    alignment = pair.alignment(Group.UNIT_SIGN)
    matching = alignment.feed_forwards
    if matching is None or not matching.trusted:
        return
    ours, theirs = (side.prepared.feed_forwards for side in (alignment.first, alignment.second))
    found = []
    for at, to in _correspondences(matching, theirs):
        compared = FeedForwardPair(at, to, ours[at], theirs[to])
        best = alignment.scores(compared, matching.residual).best()
        coins = sum_over(np.asarray(best, np.float64), alignment.first.unit_clones[at])
        # Where the other has fewer units, so many can be in both.
        common = np.sort(best)[-max(1, min(len(best), theirs[to].total)) :]
        likeness = float(np.mean(common)) / max(1, len(compared.read - {"gate"}))
        score = replace(
            _score(pair, alignment, compared, "S1", 0.0, likeness),
            matched=len(theirs[to].index) == theirs[to].total,
            as_stored=matching.residual is IDENTITY,
            floor=_coins(len(coins)),
            roles=_matched_roles(alignment, compared, matching.residual),
            side=_side(pair, alignment),
        )
        found.append((score, coins))
    yield from _by_coins(found)


def _matched_roles(
    alignment: Alignment, compared: FeedForwardPair, residual: ResidualMap
) -> Mapping[str, float]:
    """By matrix, the share of the first feed-forward's units that have a partner in it.

    The matrix that is most alike is taken as all together match. The others are looked at where
    the rest of them matches: a matrix that had its part in choosing partners is alike for that.
    """
    first, second = compared.first, compared.second
    if not compared.read:
        return {}
    some, flips = spread(len(first.index), _UNITS), alignment.first.units_flip
    scores = alignment.scores(compared, residual)
    both, match = scores.both[some], scores.match[some]
    up = residual.carry(first.up[some]) @ second.up.T
    gate = match - (np.abs(both) if flips else both)
    every_role = {"down": both - up, "gate": gate, "up": up}
    cosines = {role: one for role, one in every_role.items() if role in compared.read}

    def matched(
        roles: Iterable[str], by: Sequence[str]
    ) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """How alike units are to their partners by some matrices, and to those that match next."""
        near = np.zeros_like(next(iter(cosines.values())))
        for signed in (cosines[role] for role in by if role != "gate"):
            near += signed
        if flips:
            np.abs(near, out=near)
        if "gate" in by:
            near += cosines["gate"]
        every, best = np.arange(len(some)), near.argmax(axis=1)
        near[every, best] = -np.inf
        after = near.argmax(axis=1)
        return {role: (cosines[role][every, best], cosines[role][every, after]) for role in roles}

    found = matched(cosines, [*cosines])
    best = max(found, key=lambda role: float(found[role][0].mean()))
    for role in cosines.keys() - {best}:
        found |= matched([role], [one for one in cosines if one != role])
    shares = {role: matched_share(*both, second.width**-0.5) for role, both in found.items()}
    return linked_rows({role: rows for role, (rows, _) in found.items()}, shares)


def _correspondences(
    matching: Matching, theirs: Sequence[FeedForward]
) -> Iterator[tuple[int, int]]:
    """Feed-forwards with their partners, and others of a partner's layer: experts made of one."""
    layers: dict[int, int] = {}
    met: set[int] = set()
    for at, to in enumerate(matching.partners):
        if to >= 0:
            layers.setdefault(theirs[to].layer, at)
            met.add(to)
            yield at, to
    for to, other in enumerate(theirs):
        if to not in met and other.layer in layers:
            yield layers[other.layer], to


def _heads(pair: Pair) -> Iterator[PartScore]:
    """Rotary planes and values of heads, as they are numbered and as they match best."""
    for name, groups_of in (("S2.numbered", HeadGroups.numbered), ("S2", HeadGroups.matched)):
        try:
            groups = groups_of(pair, Group.PLANE_SIGN)
        except NoResult:
            continue
        yield from _planes(pair, groups, name)
    for name, groups_of in (("E4.blocks", HeadGroups.numbered), ("S4", HeadGroups.matched)):
        try:
            groups = groups_of(pair, Group.VALUE_SIGN)
            tables = groups.value_scores()
        except NoResult:
            continue
        yield from _values(pair, groups, tables, name)


def _planes(pair: Pair, groups: HeadGroups, test: str) -> Iterator[PartScore]:
    quarter = groups.alignment.first.refusal(Group.PLANE_QUARTER) is None
    quarter &= not groups.masked("q", "k")
    known = []
    for parts, places in _by_layers(pair, groups).items():
        matches = [groups.matches[at] for at in places]
        planes = np.concatenate(groups.by_class(matches, [match.planes for match in matches]))
        if planes.size:
            known.append((parts, matches, planes))
    coins = [planes if quarter else planes.real for *_, planes in known]
    found = each_quarter_log10_p(coins) if quarter else each_sign_log10_p(coins)
    for (parts, matches, planes), log10_p in zip(known, found, strict=True):
        yield PartScore(
            parts,
            test,
            log10_p,
            float(planes.real.mean()),
            not groups.by_number,
            groups.residual is IDENTITY,
            floor=_coins(planes.size * (1 + quarter)),
            roles=_linked_heads([_of_planes(groups, match) for match in matches]),
            side=_side(pair, groups.alignment),
        )


def _of_planes(groups: HeadGroups, match: HeadGroupMatch) -> dict[str, np.ndarray]:
    """How alike the rotary planes of a group are, in k and in its queries."""
    ours, theirs = groups.layers(match)
    if ours.q is None or ours.k is None or theirs.q is None or theirs.k is None:
        return {}

    def products(first: np.ndarray, second: np.ndarray) -> np.ndarray:
        table = np.einsum("jd,jd->j", groups.residual.carry(first), second.conj())
        return np.asarray(table.real)

    queries = [products(ours.q[i], theirs.q[j]) for i, j in match.queries]
    keys = products(ours.k[match.group], theirs.k[match.partner])
    return {"k": keys, "q": np.concatenate(queries)} if queries else {"k": keys}


def _values(
    pair: Pair, groups: HeadGroups, tables: Sequence[np.ndarray], test: str
) -> Iterator[PartScore]:
    """Values and outputs together; which of them are alike, values alone tell."""
    found = []
    for parts, places in _by_layers(pair, groups).items():
        matches = [groups.matches[at] for at in places]
        names = groups.value_roles(matches)
        roles = max(1, len(names))
        cells = [_cells(tables[at], groups.by_number) for at in places]
        summed = [tables[at][cell] for at, cell in zip(places, cells, strict=True)]
        coins = []
        for members in groups.classes(matches):
            values = [summed[member] for member in members]
            shortest = min(map(len, values))
            coins.append(np.mean([value[:shortest] for value in values], axis=0))
        flat = np.concatenate(coins)
        likeness, share = float(flat.mean()) / roles, 1.0
        each = [dict.fromkeys(names, one) for one in summed]
        if roles == 2:
            pairs = zip(matches, cells, strict=True)
            values = [groups.value_rows(match)[cell] for match, cell in pairs]
            each = [{"v": v, "o": one - v} for v, one in zip(values, summed, strict=True)]
            alone = float(np.mean([one.mean() for one in values]))
            both = alone, 2.0 * likeness - alone
            share = _alike(both, groups.value_sizes(matches[0]))
            likeness = share * _of_those_alike(both)
        score = PartScore(
            parts,
            test,
            0.0,
            likeness,
            not groups.by_number,
            groups.residual is IDENTITY,
            share=share,
            floor=_coins(flat.size),
            roles=_linked_heads(each),
            side=_side(pair, groups.alignment),
        )
        found.append((score, flat))
    yield from _by_coins(found)


def _by_coins(scores: Sequence[tuple[PartScore, np.ndarray]]) -> Iterator[PartScore]:
    """Scores with their p-values: how often the coins beside each would lean as far."""
    found = each_sign_log10_p([coins for _, coins in scores])
    for (score, _), log10_p in zip(scores, found, strict=True):
        yield replace(score, log10_p=log10_p)


def _cells(table: np.ndarray, by_number: bool) -> tuple[np.ndarray, np.ndarray]:
    """Where value dimensions meet their partners: those of equal number, or the most alike."""
    if by_number:
        equal = np.arange(min(table.shape))
        return equal, equal
    return np.arange(len(table)), np.abs(table).argmax(axis=1)


def _coins(number: int) -> float:
    """The least log10 p that so many coins can give."""
    return -number * math.log10(2.0)


def _matched_columns(pair: Pair) -> Iterator[PartScore]:
    """Columns of rows that match best, in the basis as it is."""
    alignment = _as_numbered(pair)
    if alignment is None:
        return
    for some in _portions(_matched_rows(pair, alignment)):
        found = column_scores([rows for _, rows, _ in some])
        for (part, _, telling), score in zip(some, found, strict=True):
            share = _alike(score.likenesses, score.rows)
            told = replace(
                part,
                log10_p=score.log10_p,
                likeness=float(np.mean(score.likenesses)),
                share=share,
                floor=score.floor,
                excess=score.excess,
                roles=score.roles,
            )
            yield _with_copies(told, score.copied, telling)


def _matched_rows(
    pair: Pair, alignment: Alignment
) -> Iterator[tuple[PartScore, MatchedRows, bool]]:
    """Parts whose rows were matched, before their columns are tested, and whether copied rows tell.

    Units without a gate do not: they may never fire, and keep their first weights.
    """
    first, second = alignment.first.prepared, alignment.second.prepared
    halves, side = HalfChannels.of(alone(alignment.first.channel_clones)), _side(pair, alignment)

    def score(ours: Part, theirs: Part, whole: bool = True, side: int = side) -> PartScore:
        parts = _ordered(pair, alignment, ours, theirs)
        return PartScore(parts, MATCHED_COLUMNS, 0.0, 0.0, matched=whole, side=side)

    for ours, theirs in halves.partners(first.feed_forwards, second.feed_forwards):
        one, other = ours.whole, theirs.whole
        if not (one.masked and other.masked):
            rows = halves.feed_forwards(ours, theirs)
            if rows is not None:
                whole = len(other.index) == other.total
                yield score(part_of(one), part_of(other), whole), rows, one.gate is not None
    for heads, others in halves.layers(first.heads, second.heads):
        if not heads.whole.masked & others.whole.masked:
            layer, to = (Part(Component.ATTENTION, side.whole.layer) for side in (heads, others))
            rows = halves.attention(heads, others)
            if rows is not None:
                yield score(layer, to), rows, True
            if others.whole.groups < heads.whole.groups:
                rows = halves.attention(others, heads, turned=True)
                if rows is not None:
                    yield score(layer, to, side=1 - side), rows, True


def _by_layers(pair: Pair, groups: HeadGroups) -> dict[tuple[Part, Part], list[int]]:
    """Places of the matches by the layers that they are in."""
    places: dict[tuple[Part, Part], list[int]] = {}
    for at, match in enumerate(groups.matches):
        first = Part(Component.ATTENTION, match.layer)
        second = Part(Component.ATTENTION, match.partner_layer)
        places.setdefault(_ordered(pair, groups.alignment, first, second), []).append(at)
    return places


def _routers(pair: Pair) -> Iterator[PartScore]:
    """Rows of equal experts in layers of equal number, in the basis in which units match best."""
    if pair.refusal(Group.EXPERT) is not None:
        return
    alignment = pair.alignment(Group.EXPERT)
    first, second = alignment.first.prepared, alignment.second.prepared
    if not (first.routers.keys() & second.routers.keys()):
        return
    residual = _residual(alignment)
    if residual is None:
        return
    for layer in sorted(first.routers.keys() & second.routers.keys()):
        x, y = residual.carry(first.routers[layer]), second.routers[layer]
        if len(x) != len(y) or len(x) < 2 or all(masked(one, whole_rows=True) for one in (x, y)):
            continue
        blocks = equal_blocks(np.ones(len(x), bool))
        log10_p = float(block_log10_p(blocks.products(x, y), blocks.sizes)[0])
        part = Part(Component.ROUTER, layer)
        likeness = float(np.einsum("ed,ed->e", x, y).mean())
        yield PartScore((part, part), "E5.blocks", log10_p, likeness)


def _residual(alignment: Alignment) -> ResidualMap | None:
    matching = alignment.feed_forwards
    if matching is not None:
        return matching.residual
    return IDENTITY if alignment.first.prepared.width == alignment.second.prepared.width else None


def _embedding(pair: Pair, evidence: Sequence[Evidence]) -> Iterator[PartScore]:
    """The embedding is one part: the tests of the menu are tests of it."""
    tests = [one for one in evidence if one.roles == ("embed",)]
    yield from _table(pair, (TABLE, TABLE), tests, lambda channels: channels.shared)


def _head(pair: Pair) -> Iterator[PartScore]:
    """The output heads, unless both are embeddings; one that is tied to its embedding is this."""
    first, second = (TABLE if side.prepared.tied else HEAD for side in pair.sides)
    if HEAD in (first, second):
        tests = list(head_evidence(pair))
        yield from _table(pair, (first, second), tests, lambda channels: channels.outputs, True)


def _table(
    pair: Pair,
    parts: tuple[Part, Part],
    evidence: Sequence[Evidence],
    rows: Callable[[Channels], SharedTokens],
    some: bool = False,
) -> Iterator[PartScore]:
    """Tests of a table of tokens; `rows` of equal tokens tell how much of it is alike in channels
    as they are numbered, and whether `some` of them are copies, if that is asked.

    Effects are sizes of several kinds; the likeness is that of columns of equal channels, or of
    matched ones where these have none.
    """
    tests = [one for one in evidence if one.status == Status.OK]
    effects = {
        one.test: one.effect
        for one in tests
        if registered_test(one).likeness is Likeness.EMBEDDING and one.effect is not None
    }
    likeness = max(effects.values(), default=0.0)
    widths = [side.prepared.width for side in pair.sides]
    same = alike = None
    for one in tests:
        score = PartScore(parts, one.test, one.log10_p, likeness)
        if registered_test(one).basis is Basis.AS_STORED and widths[0] == widths[1]:
            if same is None:
                shared = rows(pair.alignment(Group.RESIDUAL).channels)
                same, others = map(_finite, partner_cosines(shared.first, shared.second))
                alike = _alike_tokens(same, others) * _common_tokens(pair, parts, len(same))
            score = replace(score, roles={str(Role.EMBED): alike})
            if some:
                score = _with_copies(score, copied_rows(same, widths[0] ** -0.5), telling=True)
        yield score


def _common_tokens(pair: Pair, parts: tuple[Part, Part], common: int) -> float:
    """The share of the rows of the shorter table that both have, where both were read whole.

    Where it is nearly all, the others are rows that no token names.
    """
    counts = []
    for side, part in zip(pair.sides, parts, strict=True):
        sample, role = side.prepared.stored, Role.EMBED if part == TABLE else Role.LM_HEAD
        numbers, rows = sample.few.get((Address(role), False), (np.empty(0), np.empty(0)))
        if not rows.size or rows.size < tensor_sizes(sample, part).get(role, 0):
            return 1.0
        counts.append(len(numbers))
    share = common / min(counts)
    return share if share < _NEARLY_ALL else 1.0


def _finite(numbers: np.ndarray) -> np.ndarray:
    return np.asarray(numbers[np.isfinite(numbers)])


def _alike_tokens(same: np.ndarray, others: np.ndarray) -> float:
    """The least share of tokens whose rows are more alike than those of other tokens.

    Where these are nearly all, the rest are tokens that training has moved far.
    """
    share = alike_share(same, others)
    return share if share < _NEARLY_ALL else 1.0


def _score(
    pair: Pair,
    alignment: Alignment,
    compared: FeedForwardPair,
    test: str,
    log10_p: float,
    likeness: float,
) -> PartScore:
    parts = _ordered(pair, alignment, part_of(compared.first), part_of(compared.second))
    return PartScore(parts, test, log10_p, likeness)


def part_of(feed_forward: FeedForward) -> Part:
    """The part that a feed-forward is."""
    if feed_forward.expert == DENSE:
        return Part(Component.FEED_FORWARD, feed_forward.layer)
    return Part(Component.EXPERT, feed_forward.layer, feed_forward.expert)


def _ordered(pair: Pair, alignment: Alignment, first: Part, second: Part) -> tuple[Part, Part]:
    """Two parts in the order of the pair's models, whichever model supplied the labels."""
    return (first, second) if alignment.first is pair.sides[0] else (second, first)


def _side(pair: Pair, alignment: Alignment) -> int:
    """Which of the pair's models comes first in an alignment."""
    return 0 if alignment.first is pair.sides[0] else 1
