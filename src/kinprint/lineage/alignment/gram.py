"""Gram matrices: residual maps found without tokens or gains.

When norms were folded away and the vocabulary was replaced, what is left of the residual
basis are the Gram matrices of the weights that read and write it: K = XᵀX·d/tr − I turns
with the basis and knows neither labels nor signs of units. Fitting uses every second unit in
the order of size, so that the quality, which looks at the others, is not flattered.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from msgspec import Struct

from kinprint.lineage.alignment.residual import MapSource, ResidualMap
from kinprint.lineage.alignment.units import (
    RatedMap,
    UnitStack,
    best_partners,
    fitted_units,
    rate_map,
    spread_parts,
)
from kinprint.lineage.preparation import FeedForward, Prepared
from kinprint.lineage.reading.sample import Floats
from kinprint.measure.basis import gram_turn, polar_factor, spread, traceless_gram
from kinprint.records import Level

CLEAR = 1.5
"""A residual map of this quality, half of the greatest, needs no better one."""
WIDEST = {Level.QUICK: 0, Level.STANDARD: 512, Level.DEEP: 2048}
"""Up to which width maps are looked for harder, by level: the work grows with its cube."""
ABOVE = 1.3
"""How much better than random ones a map must match units to be trusted; twice if it was fitted."""
_FITTED = (MapSource.GRAM, MapSource.UNITS)
_DRAWN = 3  # random maps that a map between different widths is held against
_PARTS = 4  # feed-forwards that a map is refined with
_BETTER = 0.02  # what another round must have brought
_ROLES = ("gate", "up", "down")


class _Start(Struct, frozen=True):
    """Where a search begins: whose eigenbasis, how many of its directions (0: all), which layers.

    Layers are paired over the depth, or counted from the first or the last where depths differ.
    """

    role: str = ""
    directions: int = 0
    pairing: str = "spread"


class _Search(Struct, frozen=True):
    """How hard to look: layers, steps, rounds of refinement, and starts in their order."""

    layers: int
    steps: int
    rounds: int
    starts: tuple[_Start, ...]


_FEW = 24
_SEARCHES = {
    Level.STANDARD: _Search(4, 6, 3, (_Start(),)),
    Level.DEEP: _Search(
        12, 30, 6,
        (
            *(_Start(role, few) for role in ("", *_ROLES) for few in (0, _FEW)),
            *(_Start(role, _FEW, end) for end in ("first", "last") for role in ("", "gate")),
        ),
    ),
}  # fmt: skip


def rated_maps(
    first: Prepared,
    second: Prepared,
    candidates: Sequence[ResidualMap],
    level: Level,
    flips: bool,
    stack: UnitStack | None,
) -> tuple[RatedMap, ...]:
    """The candidates with their quality, and further maps where none of them is clear.

    Nothing but the quality decides whether to look further. `stack` is the second model's, if it
    has any units.
    """
    ours, theirs = first.feed_forwards, second.feed_forwards
    rated = [rate_map(ours, stack, residual, flips) for residual in candidates]
    clear = any(each.quality >= CLEAR for each in rated)
    wide = max(first.width, second.width) > WIDEST[level]
    few = sum(len(part.index) for part in ours) < 2 * first.width
    if stack is None or clear or wide or few:
        return tuple(rated)
    search = _SEARCHES[level if first.width <= WIDEST[Level.STANDARD] else Level.STANDARD]
    if first.width != second.width and trusted(rated, ours, stack, flips):
        return tuple(rated)
    for residual in _gram_maps(ours, theirs, search):
        rated.append(rate_map(ours, stack, residual, flips))
        if rated[-1].quality >= CLEAR:
            break
    if rated:
        best = max(rated, key=lambda each: each.quality)
        rated += _refined(ours, theirs, stack, best, flips, search.rounds)
    return tuple(rated)


def trusted(
    maps: Sequence[RatedMap], first: Sequence[FeedForward], stack: UnitStack, flips: bool
) -> bool:
    """Whether some map between streams of different width matches units better than chance does.

    Held against maps that were drawn at random, whose quality is that of rows without any common
    basis. Strangers who share tokens reach 1.4 times as much or more with the map that the tokens
    give, and 1.2 times with one of random tokens; a map that was fitted to Gram matrices or units
    of strangers reaches 1.4 times as much, and that of relatives four times.
    """
    if not maps:
        return False
    fitted = [each.quality for each in maps if each.residual.source in _FITTED]
    others = [each.quality for each in maps if each.residual.source not in _FITTED]
    if max(fitted + others) >= CLEAR:
        return True
    widths = first[0].width, stack.pair.shape[1] // 2
    drawn = np.random.default_rng(0).normal(size=(_DRAWN, *widths))
    random = [ResidualMap(MapSource.UNITS, polar_factor(table)) for table in drawn]
    chance = max(rate_map(first, stack, each, flips).quality for each in random)
    return max(others, default=0.0) > ABOVE * chance or max(fitted, default=0.0) > 2 * chance


def _gram_maps(
    first: Sequence[FeedForward], second: Sequence[FeedForward], search: _Search
) -> Iterator[ResidualMap]:
    """Maps that turn the Gram matrices of one model into those of the other, and their negatives.

    Eigenbases of sums give a first map up to signs; these are synchronised by the top
    eigenvector of the summed elementwise products, and R ← polar(Σ K₁ R K₂) does the rest.
    Which sum has an eigenbasis that outlived further training differs from model to model, and
    so do the layers that were dropped; few directions make the safer start.
    """
    ours, theirs = _grams(first, fitted=True), _grams(second, fitted=False)
    roles = [role for role in _ROLES if role in ours and role in theirs]
    for start in search.starts:
        tables = [
            (role, ours[role][at], theirs[role][to])
            for role in roles
            for at, to in _paired(len(ours[role]), len(theirs[role]), start.pairing, search.layers)
        ]
        chosen = [at for at, (role, _, _) in enumerate(tables) if start.role in ("", role)]
        if chosen:
            turn = gram_turn(
                [one for _, one, _ in tables], [other for _, _, other in tables],
                start=chosen, directions=start.directions, steps=search.steps,
            )  # fmt: skip
            yield ResidualMap(MapSource.GRAM, turn)
            yield ResidualMap(MapSource.GRAM, -turn)


def _paired(depth: int, other: int, pairing: str, most: int) -> list[tuple[int, int]]:
    """Layers of two models, spread over the depth or counted from one end."""
    if pairing == "spread":
        return [(at, round(at * (other - 1) / max(depth - 1, 1))) for at in spread(depth, most)]
    if depth == other:
        return []
    shift = other - depth if pairing == "last" else 0
    return [(at, at + shift) for at in range(depth) if 0 <= at + shift < other]


def _grams(parts: Sequence[FeedForward], fitted: bool) -> dict[str, list[Floats]]:
    """Gram matrices by role and layer, experts of a layer together; of all or the fitted units."""
    grams: dict[str, list[Floats]] = {}
    for layer in sorted({part.layer for part in parts}):
        for role in _ROLES:
            rows = [
                getattr(part, role)[fitted_units(part) if fitted else slice(None)]
                for part in parts
                if part.layer == layer and getattr(part, role) is not None
            ]
            if rows:
                grams.setdefault(role, []).append(traceless_gram(np.concatenate(rows)))
    return grams


def _refined(
    first: Sequence[FeedForward],
    second: Sequence[FeedForward],
    stack: UnitStack,
    start: RatedMap,
    flips: bool,
    rounds: int,
) -> Iterator[RatedMap]:
    """Maps fitted to the units that the last one matched, for as long as that makes them better."""
    current = start
    some = spread_parts(first, _PARTS)
    for _ in range(rounds):
        total = np.zeros((first[0].width, second[0].width))
        partners = best_partners(some, stack, current.residual, flips)
        for part, partner in zip(some, partners, strict=True):
            total += _matched_products(part, second[partner], current.residual, flips)
        fitted = ResidualMap(MapSource.UNITS, polar_factor(total))
        rated = rate_map(first, stack, fitted, flips)
        yield rated
        if rated.quality < current.quality + _BETTER:
            return
        current = rated


def _matched_products(
    first: FeedForward, second: FeedForward, residual: ResidualMap, flips: bool
) -> Floats:
    """Σ xᵀy over matched units; up and down with the sign that their cosine has."""
    units = fitted_units(first)
    up, down = first.up[units], first.down[units]
    both = residual.carry(up) @ second.up.T + residual.carry(down) @ second.down.T
    scores = np.abs(both) if flips else both
    gate = first.gate[units] if first.gate is not None and second.gate is not None else None
    if gate is not None and second.gate is not None:
        scores = scores + residual.carry(gate) @ second.gate.T
    best = scores.argmax(axis=1)
    rows = np.arange(len(best))
    weight = np.maximum(scores[rows, best], 0)[:, None]
    signs = np.where(both[rows, best, None] < 0, -weight, weight) if flips else weight
    total: Floats = (up * signs).T @ second.up[best] + (down * signs).T @ second.down[best]
    if gate is not None and second.gate is not None:
        total = total + (gate * weight).T @ second.gate[best]
    return total
