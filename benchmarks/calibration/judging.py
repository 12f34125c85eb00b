"""The invariants of pairs of models, on the processor or on an accelerator."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import asdict

from kinprint.device import array_module
from kinprint.measure.basis import (
    gram_turn,
    polar_factor,
    refined,
    spread,
    token_table,
    traceless_gram,
)
from kinprint.measure.invariants import (
    HeadRows,
    LayerAgreement,
    Share,
    UnitRows,
    agreements,
    effective_gains,
    head_agreement,
    plane_agreements,
)

ROWS = 64
"""Units of a layer of the first model where only some are read."""
STATISTICS = ("concordance", "mutual", "two_of_three", "span", "nearest")
READINGS = ("whole", "tokens", "no tokens", "some rows")
_GRAM_LAYERS = 6


class Known(Struct, frozen=True):
    """Two models, by their names in a collection, of which it is known how they are related."""

    kind: str
    how: str
    first: str
    second: str
    roots: tuple[str, str]


class Prepared:
    """A model as the statistics see it, in the arrays of one module."""

    def __init__(self, model: dict[str, Any], size: int, arrays: Any = np) -> None:
        self.arrays = arrays
        one = {name: arrays.asarray(value, arrays.float32) for name, value in model.items()}
        self.embed = one["embed"]
        self.depth, self.width = one["norm_in"].shape
        self.gains = {name: one[name] for name in ("norm_in", "norm_post_attn")}
        before, between = one["norm_in"][:, None], one["norm_post_attn"][:, None]
        self.read = {name: one[name] * before for name in ("q", "k", "v")}
        self.read |= {name: one[name] * between for name in ("gate", "up") if name in one}
        down = one["down"].transpose(0, 2, 1)
        gate = self.read.get("gate")
        self.units = [
            UnitRows.of(self.read["up"][at], down[at], None if gate is None else gate[at])
            for at in range(self.depth)
        ]
        rows = (-1, size, self.width)
        self.heads = [
            HeadRows(
                self.read["q"][at].reshape(rows), self.read["k"][at].reshape(rows),
                self.read["v"][at].reshape(rows), one["o"][at].T.reshape(rows), size,
            )
            for at in range(self.depth)
        ]  # fmt: skip
        roles = ("gate", "up", "down") if gate is not None else ("up", "down")
        self.grams = {
            role: [traceless_gram(getattr(units, role)) for units in self.units] for role in roles
        }

    def effective(self, norm: str, layer: int, turn: Any = None) -> Any:
        """What a norm passes on of each channel."""
        names = ("q", "k", "v") if norm == "norm_in" else ("gate", "up")
        rows = [self.read[name][layer] for name in names if name in self.read]
        return effective_gains(rows, turn)


def judged(first: Prepared, second: Prepared, readings: Sequence[str]) -> list[dict[str, Any]]:
    """The statistics of a pair, one row for each way of reading it."""
    keys = [units.key for units in first.units], [units.key for units in second.units]
    alike = first.width == second.width
    basis: list[tuple[str, Any]] = [("i", None)] if alike else []
    grams: list[tuple[str, Any]] = []
    if alike and ("whole" in readings or "no tokens" in readings):
        turn = _gram_turn(first, second)
        grams = [("g", refined(*keys, turn)), ("g", refined(*keys, -turn))]
    by_tokens: list[tuple[str, Any]] = []
    if "whole" in readings or "tokens" in readings:
        table = token_table(first.embed, second.embed)
        by_tokens = [("t", refined(*keys, polar_factor(table), table))]
    found = []
    for reading in readings:
        units, maps = first.units, [*basis]
        if reading in ("whole", "tokens"):
            maps += by_tokens + (grams if reading == "whole" else [])
        elif reading == "no tokens":
            maps += grams
        elif reading == "some rows":
            units = [_some(one, at) for at, one in enumerate(first.units)]
            some = spread(len(first.embed), 2 * max(first.width, second.width))
            tokens = first.arrays.asarray(some)
            table = token_table(first.embed[tokens], second.embed[tokens])
            rows = [one.key for one in units]
            maps.append(("t", refined(rows, keys[1], polar_factor(table), table)))
        planes: list[Any] = []
        if reading in ("tokens", "some rows") and first.units[0].gate is not None:
            bare = [*(turn for _, turn in basis), polar_factor(table)]
            planes = [one.span.value for one in plane_agreements(units, second.units, bare)]
        if maps:
            layers = agreements(units, second.units, [turn for _, turn in maps])
            row = {"reading": reading, **_row(first, second, layers, maps)}
            found.append(row | _three("plane", planes) if planes else row)
    return found


def _row(
    first: Prepared, second: Prepared, layers: Sequence[LayerAgreement], maps: Any
) -> dict[str, Any]:
    row: dict[str, Any] = {
        "widths": f"{first.width} {second.width}",
        "units": sum(one.units.mutual.of for one in layers),
        "maps": "".join(maps[one.turn][0] for one in layers),
        "partners": " ".join(str(one.partner) for one in layers),
    }
    for name in STATISTICS:
        row |= _three(name, [getattr(one.units, name).value for one in layers])
    row |= _three("cosine", [one.units.cosine for one in layers])
    row |= _three("control", [one.control.value if one.control else np.nan for one in layers])
    heads = [head_agreement(first.heads[one.layer], second.heads[one.partner], maps[one.turn][1])
             for one in layers]  # fmt: skip
    known = [share for share in heads if share is not None]
    together = Share(sum(one.count for one in known), sum(one.of for one in known))
    row["heads"], row["heads_of"] = round(together.value, 4), together.of
    row |= _gains(first, second, layers, maps)
    return row


def _gains(
    first: Prepared, second: Prepared, layers: Sequence[LayerAgreement], maps: Any
) -> dict[str, Any]:
    """Mean correlations of gains: as stored, effective, and effective in the basis found."""
    found: dict[str, list[float]] = {"gains": [], "effective": [], "carried": []}
    for one in layers:
        for norm in ("norm_in", "norm_post_attn"):
            theirs = second.effective(norm, one.partner)
            turn = maps[one.turn][1]
            found["carried"].append(_pearson(first.effective(norm, one.layer, turn), theirs))
            if first.width == second.width:
                ours = first.gains[norm][one.layer]
                found["gains"].append(_pearson(ours, second.gains[norm][one.partner]))
                found["effective"].append(_pearson(first.effective(norm, one.layer), theirs))
    means = {name: np.nanmean(values) if values and not np.isnan(values).all() else np.nan
             for name, values in found.items()}  # fmt: skip
    return {name: round(float(value), 4) for name, value in means.items()}


def _gram_turn(first: Prepared, second: Prepared) -> Any:
    """The turn between the Gram matrices of feed-forwards, layers paired over the depth."""
    ours = spread(first.depth, _GRAM_LAYERS)
    theirs = [round(at * (second.depth - 1) / max(first.depth - 1, 1)) for at in ours]
    roles = [role for role in first.grams if role in second.grams]
    return gram_turn(
        [first.grams[role][at] for role in roles for at in ours],
        [second.grams[role][at] for role in roles for at in theirs],
    )


def _some(units: UnitRows, seed: int) -> UnitRows:
    """Some units of a layer."""
    draws = np.random.default_rng(seed)
    return units.some(array_module(units.up).asarray(draws.permutation(units.count)[:ROWS]))


def _three(name: str, values: Sequence[float]) -> dict[str, float]:
    if np.isnan(values).all():
        return {}
    mean, least, most = np.nanmean(values), np.nanmin(values), np.nanmax(values)
    return {name: round(float(mean), 4), f"{name}_least": round(float(least), 4),
            f"{name}_most": round(float(most), 4)}  # fmt: skip


def _pearson(x: Any, y: Any) -> float:
    a, b = (np.asarray(v.get() if hasattr(v, "get") else v, np.float64) for v in (x, y))
    a, b = a - a.mean(), b - b.mean()
    size = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / size if size > 1e-12 else float("nan")


def judge_files(
    plan: str, known: Known, first: Path, second: Path, size: int, readings: Sequence[str]
) -> list[dict[str, Any]]:
    """Rows of a pair of models that were laid down in files, for another process."""
    one, other = (Prepared(pickle.loads(path.read_bytes()), size) for path in (first, second))
    return [{"plan": plan, **described(known), **row} for row in judged(one, other, readings)]


def described(known: Known) -> dict[str, Any]:
    """What is known of a pair, as columns of a table."""
    row = asdict(known)
    row["roots"] = " | ".join(known.roots)
    return row
