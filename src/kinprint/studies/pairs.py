"""Pairs of one role at chosen layers of chosen models: planned, compared, tabulated.

Confusion matrices, baselines and group means are all lists of such pairs; what differs is
which pairs, and what is done with the numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from kinprint import text
from kinprint.measure.measures import measures
from kinprint.model.places import Address
from kinprint.studies.catalogue import Study
from kinprint.studies.charts import Band, Bar
from kinprint.studies.pairing import Compared, Spread, compare, default_layers, spread
from kinprint.studies.results import Cell, Fact, Table
from kinprint.studies.scene import Item, Scene
from kinprint.text import Words

SHUFFLED = "shuffled_cosine"
# Roles that a model has once, not once a layer.
_ONCE = frozenset({"embed", "lm_head", "norm_final", "pos_embed"})
_COLUMNS = ("group", "role", "model_a", "layer_a", "model_b", "layer_b", "status", "note", "sample")


@dataclass(frozen=True, slots=True)
class Spot:
    """A layer of one of the scene's models, by their numbers."""

    model: int
    layer: int

    def item(self, role: str) -> Item:
        """What to read there; of experts, which have no order of their own, the first."""
        expert = 0 if role.startswith("expert_") else None
        return Item(self.model, Address(role, None if role in _ONCE else self.layer, expert))


@dataclass(frozen=True, slots=True)
class Pair:
    """Two spots whose tensors of one role are to be compared; `group` says to what end."""

    a: Spot
    b: Spot
    role: str
    group: str = ""


@dataclass(frozen=True, slots=True)
class Met:
    """A pair and what came of comparing it."""

    pair: Pair
    found: Compared

    def value(self, name: str) -> float | None:
        """One measure, None where there is no value."""
        return self.found.value(name)


def layers_for(study: Study, scene: Scene, *models: int) -> tuple[int, ...]:
    """Layers to look at in these models, or in all, each once.

    Where a model has no layer but its first, the study's own layers stand: rows that say
    that they are missing are better than none.
    """
    return tuple(dict.fromkeys(default_layers(scene, study.layers, *models) or study.layers))


def items_of(pairs: Iterable[Pair]) -> list[Item]:
    """Everything to be read for the pairs, each once."""
    every = (spot.item(pair.role) for pair in pairs for spot in (pair.a, pair.b))
    return list(dict.fromkeys(every))


def compare_pairs(scene: Scene, pairs: Iterable[Pair], names: Sequence[str]) -> list[Met]:
    """Compare each pair, and beside every cosine what shuffling the entries leaves of it.

    A pair that came before the other way round costs only what its order changes.
    """
    wanted = tuple(dict.fromkeys((*names, SHUFFLED) if "cosine" in names else names))
    ordered = tuple(name for name in wanted if not measures()[name].symmetric)
    done: dict[Pair, Compared] = {}
    for pair in pairs:
        a, b = (scene.get(spot.item(pair.role)) for spot in (pair.a, pair.b))
        before = done.get(replace(pair, a=pair.b, b=pair.a))
        if before is None or not before.ok or before.reason:
            done[pair] = compare(a, b, wanted)
            continue
        again = compare(a, b, ordered)
        done[pair] = replace(
            before,
            values={**before.values, **again.values},
            intervals={**before.intervals, **again.intervals},
        )
    return [Met(pair, found) for pair, found in done.items()]


def pair_table(
    scene: Scene, name: str, title: Words, met: Sequence[Met], names: Sequence[str]
) -> Table:
    """One row a pair: its standing, how much was read, and every measure with its interval.

    Columns for intervals are there only if something was sampled.
    """
    shown = tuple(dict.fromkeys((*names, SHUFFLED) if "cosine" in names else names))
    bounded = [one for one in shown if any(one in each.found.intervals for each in met)]
    columns = (*_COLUMNS, *shown)
    columns += tuple(f"{one}_{side}" for one in bounded for side in ("low", "high"))
    rows: list[tuple[Cell, ...]] = []
    for each in met:
        pair, found = each.pair, each.found
        bounds = [side for one in bounded for side in found.bounds(one)]
        layers = [None if pair.role in _ONCE else spot.layer for spot in (pair.a, pair.b)]
        rows.append(
            (
                pair.group, pair.role, scene.names[pair.a.model], layers[0],
                scene.names[pair.b.model], layers[1], found.status, found.reason, found.sample,
                *(found.value(one) for one in shown), *bounds,
            )
        )  # fmt: skip
    return Table(name, title, columns, tuple(rows))


def spread_of(met: Iterable[Met], name: str) -> Spread:
    """Mean, deviation and range of one measure over the pairs that have it."""
    return spread(each.value(name) for each in met)


def sum_up(met: Sequence[Met], names: Sequence[str]) -> dict[str, Fact]:
    """By measure: how many pairs there are, how many have a value, and their moments."""
    facts: dict[str, Fact] = {}
    for name in names:
        found = spread_of(met, name)
        facts[name] = {
            "pairs": len(met), "count": found.count, "mean": found.mean, "std": found.std,
            "min": found.least, "max": found.greatest,
        }  # fmt: skip
    return facts


def shuffled_band(met: Iterable[Met]) -> tuple[Band, ...]:
    """What cosines are expected from the values alone, their places shuffled; none if unknown."""
    found = spread_of(met, SHUFFLED)
    if found.mean is None or found.least is None or found.greatest is None:
        return ()
    label = text.words("study.common.places-shuffled")
    return (Band(label, found.mean, found.least, found.greatest),)


def shuffled_note(met: Iterable[Met]) -> Words | None:
    """The same in words, for charts that have no room for a band."""
    for band in shuffled_band(met):
        middle, low, high = map(number, (band.middle, band.low, band.high))
        return text.words("study.common.places-shuffled-note", middle=middle, low=low, high=high)
    return None


def bar_of(label: Words, met: Sequence[Met], name: str, kind: str, group: str = "") -> Bar:
    """The mean of a measure over pairs, with its deviation if there are several."""
    found = spread_of(met, name)
    return Bar(label, found.mean, found.std if found.count > 1 else None, kind, group)


def published_name(measure: str) -> str:
    """What the published tables call a measure; its own name if they do not have it."""
    return next(iter(measures()[measure].published), measure)


def leading(names: Sequence[str]) -> str:
    """The measure that pictures show: cosine, since that is what was argued about, if asked."""
    return "cosine" if "cosine" in names else names[0]


def chart_name(base: str, role: str, roles: Sequence[str]) -> str:
    """The name that a picture always had for the first role; others say theirs."""
    return base if role == roles[0] else f"{base}_{stem(role)}"


def stem(name: str) -> str:
    """A name as part of a file's: small letters, digits and hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "model"


def number(value: float | None, digits: int = 4) -> str:
    """A number for a sentence; a dash where there is none."""
    return "–" if value is None else f"{round(value, digits) + 0.0:.{digits}f}"
