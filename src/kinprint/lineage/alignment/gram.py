"""Residual maps found without tokens or gains, and maps made better by matched units.

When norms were folded away and the vocabulary was replaced, what is left of the residual
basis are the Gram matrices of the weights that read and write it: K = XᵀX·d/tr − I turns
with the basis and knows neither labels nor signs of units. Fitting uses every second unit in
the order of size, so that the quality, which looks at the others, is not flattered.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from kinprint.lineage.alignment.residual import Residual, polar_factor
from kinprint.lineage.alignment.units import (
    Judged,
    Stack,
    fitted_units,
    judge,
    partners,
    some_parts,
    spread,
)
from kinprint.lineage.preparation import Forward, Prepared
from kinprint.lineage.reading.sample import Floats

CLEAR = 1.5
"""A residual map of this quality, half of the greatest, needs no better one."""
WIDEST = {"quick": 0, "standard": 512, "deep": 2048}
"""Up to which width maps are looked for harder, by level: the work grows with its cube."""
_PARTS = 4  # feed-forwards that a map is refined with
_BETTER = 0.02  # what another round must have brought
_ROLES = ("gate", "up", "down")


@dataclass(frozen=True, slots=True)
class _Start:
    """Where a search begins: whose eigenbasis, how many of its directions (0: all), which layers.

    Layers are paired over the depth, or counted from the first or the last where depths differ.
    """

    role: str = ""
    few: int = 0
    pairing: str = "spread"


@dataclass(frozen=True, slots=True)
class _Search:
    """How hard to look: layers, steps, rounds of refinement, and starts in their order."""

    layers: int
    steps: int
    rounds: int
    starts: tuple[_Start, ...]


_FEW = 24
_LOOK = {
    "standard": _Search(4, 6, 3, (_Start(),)),
    "deep": _Search(
        12, 30, 6,
        (
            *(_Start(role, few) for role in ("", *_ROLES) for few in (0, _FEW)),
            *(_Start(role, _FEW, end) for end in ("first", "last") for role in ("", "gate")),
        ),
    ),
}  # fmt: skip


def judged_maps(
    first: Prepared,
    second: Prepared,
    known: Sequence[Residual],
    level: str,
    odd: bool,
    whole: Stack | None,
) -> tuple[Judged, ...]:
    """The known maps with their quality, and further ones where none of them is clear.

    Nothing but the quality decides whether to look further. `whole` is the second model's
    stack of units, if it has any.
    """
    mine, theirs = first.forwards, second.forwards
    judged = [judge(mine, whole, one, odd) for one in known]
    clear = any(one.quality >= CLEAR for one in judged)
    wide = max(first.width, second.width) > WIDEST[level]
    few = sum(len(one.index) for one in mine) < 2 * first.width
    if whole is None or clear or wide or few:
        return tuple(judged)
    search = _LOOK[level if first.width <= WIDEST["standard"] else "standard"]
    if first.width == second.width:
        for one in _gram_maps(mine, theirs, search):
            judged.append(judge(mine, whole, one, odd))
            if judged[-1].quality >= CLEAR:
                break
    if judged:
        judged += _refined(mine, theirs, whole, max(judged, key=_quality), odd, search.rounds)
    return tuple(judged)


def _gram_maps(
    first: Sequence[Forward], second: Sequence[Forward], search: _Search
) -> Iterator[Residual]:
    """Maps that turn the Gram matrices of one model into those of the other, and their negatives.

    Eigenbases of sums give a first map up to signs; these are synchronised by the top
    eigenvector of the summed elementwise products, and R ← polar(Σ K₁ R K₂) does the rest.
    Which sum has an eigenbasis that outlived further training differs from model to model, and
    so do the layers that were dropped; few directions make the safer start.
    """
    mine, theirs = _grams(first, fit=True), _grams(second, fit=False)
    roles = [role for role in _ROLES if role in mine and role in theirs]
    for start in search.starts:
        tables = [
            (role, mine[role][at], theirs[role][to])
            for role in roles
            for at, to in _paired(len(mine[role]), len(theirs[role]), start.pairing, search.layers)
        ]
        chosen = [(one, other) for role, one, other in tables if start.role in ("", role)]
        if chosen:
            turn = _turn(tables, chosen, start.few, search.steps)
            yield Residual("Gram matrices", turn)
            yield Residual("Gram matrices", -turn)


def _turn(
    tables: Sequence[tuple[str, Floats, Floats]],
    chosen: Sequence[tuple[Floats, Floats]],
    few: int,
    steps: int,
) -> Floats:
    x, y = np.stack([one for _, one, _ in tables]), np.stack([one for _, _, one in tables])
    own = np.linalg.eigh(np.sum([one for one, _ in chosen], axis=0))[1][:, -few:]
    their = np.linalg.eigh(np.sum([one for _, one in chosen], axis=0))[1][:, -few:]
    both = ((own.T @ x @ own) * (their.T @ y @ their)).sum(axis=0)
    signs = np.where(np.linalg.eigh(both)[1][:, -1] < 0, -1, 1)
    turn: Floats = ((own * signs) @ their.T).astype(np.float32)
    for _ in range(steps):
        turn = polar_factor((x @ turn @ y).sum(axis=0))
    return turn


def _paired(depth: int, other: int, pairing: str, most: int) -> list[tuple[int, int]]:
    """Layers of two models, spread over the depth or counted from one end."""
    if pairing == "spread":
        return [(at, round(at * (other - 1) / max(depth - 1, 1))) for at in spread(depth, most)]
    if depth == other:
        return []
    shift = other - depth if pairing == "last" else 0
    return [(at, at + shift) for at in range(depth) if 0 <= at + shift < other]


def _grams(parts: Sequence[Forward], fit: bool) -> dict[str, list[Floats]]:
    """Traceless Gram matrices by role and layer, experts of a layer together."""
    found: dict[str, list[Floats]] = {}
    for layer in sorted({one.layer for one in parts}):
        for role in _ROLES:
            rows = [
                getattr(one, role)[fitted_units(one) if fit else slice(None)]
                for one in parts
                if one.layer == layer and getattr(one, role) is not None
            ]
            if rows:
                stacked = np.concatenate(rows)
                table = stacked.T @ stacked
                width = len(table)
                trace = max(float(np.trace(table)), 1e-30)
                found.setdefault(role, []).append(
                    table * np.float32(width / trace) - np.eye(width, dtype=np.float32)
                )
    return found


def _refined(
    first: Sequence[Forward],
    second: Sequence[Forward],
    whole: Stack,
    start: Judged,
    odd: bool,
    rounds: int,
) -> Iterator[Judged]:
    """Maps fitted to the units that the last one matched, for as long as that makes them better."""
    current = start
    some = some_parts(first, _PARTS)
    for _ in range(rounds):
        total = np.zeros((first[0].width, second[0].width))
        for one, to in zip(some, partners(some, whole, current.residual, odd), strict=True):
            total += _matched_products(one, second[to], current.residual, odd)
        fitted = judge(first, whole, Residual("matched units", polar_factor(total)), odd)
        yield fitted
        if fitted.quality < current.quality + _BETTER:
            return
        current = fitted


def _quality(one: Judged) -> float:
    return one.quality


def _matched_products(one: Forward, other: Forward, residual: Residual, odd: bool) -> Floats:
    """Σ xᵀy over matched units; up and down with the sign that their cosine has."""
    at = fitted_units(one)
    up, down = one.up[at], one.down[at]
    both = residual.carry(up) @ other.up.T + residual.carry(down) @ other.down.T
    scores = np.abs(both) if odd else both
    gate = one.gate[at] if one.gate is not None and other.gate is not None else None
    if gate is not None and other.gate is not None:
        scores = scores + residual.carry(gate) @ other.gate.T
    best = scores.argmax(axis=1)
    rows = np.arange(len(best))
    weight = np.maximum(scores[rows, best], 0)[:, None]
    signs = np.where(both[rows, best, None] < 0, -weight, weight) if odd else weight
    found: Floats = (up * signs).T @ other.up[best] + (down * signs).T @ other.down[best]
    if gate is not None and other.gate is not None:
        found = found + (gate * weight).T @ other.gate[best]
    return found
