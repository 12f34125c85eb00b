"""Similarity layer by layer, with experts and layers paired anew where order may differ.

The table and the curves that the derivation report drew, and beside each curve the one that
shuffled vectors give.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from kinprint import text
from kinprint.measure.matching import match_rows
from kinprint.model.places import Address
from kinprint.studies.catalogue import Procedure, Study
from kinprint.studies.charts import Band, Lines, Series
from kinprint.studies.derivation.alignment import LayerMap, map_layers
from kinprint.studies.derivation.pairwise import (
    NORMS,
    A,
    B,
    Row,
    addresses,
    by_role,
    file_of,
    rounded,
    row_of,
    spread_of,
)
from kinprint.studies.pairing import all_layers, shape_text, tell_gaps, wanted_roles
from kinprint.studies.results import Cell, Fact, Result, Table
from kinprint.studies.scene import Item, Scene, Taken
from kinprint.studies.titles import role_title
from kinprint.text import Words

MEASURES = ("cosine", "pearson", "shuffled_cosine")
ROUTER = "router"
_CATEGORIES = {"norm_in": "norm_pre", "norm_post_attn": "norm_post", ROUTER: "router_or_gate"}
_COLUMNS = (
    "layer_B", "layer_A", "category", "cosine", "pearson", "aligned_expert_cosine", "bytes",
    "shape", "key_A", "key_B", "shard_A", "shard_B", "status", "reason", "sample",
    "shuffled_cosine", "mean_A", "std_A", "mean_B", "std_B",
)  # fmt: skip
_WHOLE = 4


def _roles(study: Study, scene: Scene) -> tuple[str, ...]:
    return wanted_roles(scene, study.roles)


def _item(scene: Scene, model: int, address: Address) -> Item:
    """A tensor as this study reads it: a few routers whole, everything else as asked."""
    if address.role == ROUTER and address.layer in _whole_layers(scene):
        place = scene.models[model].places.get(address)
        if place is not None and place.shape is not None:
            return Item(model, address, tuple(range(place.shape[0])))
    return Item(model, address)


def _whole_layers(scene: Scene) -> tuple[int, ...]:
    """Layers whose routers are read whole, so that experts can be paired: four, evenly spread.

    A router of a hundred experts is a megabyte, and a model has fifty of them; pairing a few
    says what pairing all would. `--full` and a short list of layers read all of them.
    """
    layers = all_layers(scene)
    if scene.request.rows is None or len(layers) <= _WHOLE:
        return layers
    return tuple(layers[round(at)] for at in np.linspace(1, len(layers) - 1, _WHOLE))


def _needs(study: Study, scene: Scene) -> list[Item]:
    found = list(addresses(scene, (*_roles(study, scene), *NORMS), all_layers(scene)))
    both = [Item(model, one) for one in found for model in (A, B)]
    whole = [_item(scene, model, one) for one in found for model in (A, B) if one.role == ROUTER]
    return both + whole


def _run(study: Study, scene: Scene) -> Result:
    roles = _roles(study, scene)
    inside = list(addresses(scene, roles, all_layers(scene)))
    same = _rows(scene, ((one, one) for one in inside))
    mapped = map_layers(scene, NORMS, all_layers(scene, A), all_layers(scene, B))
    aligned = _rows(
        scene,
        (
            (Address(one.role, first, one.expert), Address(one.role, second, one.expert))
            for first, second in sorted(mapped.pairs, key=lambda pair: pair[1])
            for one in inside
            if one.layer == first
        ),
    )
    tables = (
        _table("layerwise_similarity", text.words("study.layers.table.same"), same),
        _table(
            "aligned_layerwise_similarity",
            text.words("study.layers.table.aligned"),
            aligned,
        ),
        _map_table(mapped),
    )
    return Result(
        study.name,
        scene.names,
        tables,
        _facts(same, mapped),
        _charts(same),
        (*_findings(same, mapped), *tell_gaps(tables[0].column("status"))),
        scene.labels,
    )


def _rows(scene: Scene, pairs: Iterable[tuple[Address, Address]]) -> list[Row]:
    rows = [row_of(scene, *_items(scene, first, second), MEASURES) for first, second in pairs]
    return rows if scene.request.roles else [row for row in rows if not row.both_missing]


def _items(scene: Scene, first: Address, second: Address) -> tuple[Item, Item]:
    """Both tensors read alike: whole only where both are."""
    whole = _item(scene, A, first), _item(scene, B, second)
    if all(one.rows is not None for one in whole):
        return whole
    return Item(A, first), Item(B, second)


def _table(name: str, title: Words, rows: Iterable[Row]) -> Table:
    return Table(name, title, _COLUMNS, tuple(_line(row) for row in rows))


def _line(row: Row) -> tuple[Cell, ...]:
    found, (key_a, key_b) = row.found, row.keys
    stored = row.a if row.a.place is not None else row.b
    return (
        row.second.address.layer,
        row.layer,
        _CATEGORIES.get(row.role, row.role),
        found.value("cosine"),
        found.value("pearson"),
        _aligned_experts(row),
        None if stored.place is None else stored.place.weight.spec.nbytes,
        shape_text(stored.shape),
        key_a,
        key_b,
        file_of(row.a),
        file_of(row.b),
        found.status,
        found.reason,
        found.sample,
        found.value("shuffled_cosine"),
        *_moments(row.a),
        *_moments(row.b),
    )


def _moments(taken: Taken) -> tuple[float | None, float | None]:
    """Mean and population deviation of what was read; nothing for values that are not finite."""
    values = taken.values
    if values is None or not values.size or not np.isfinite(values).all():
        return None, None
    return float(values.mean(dtype=np.float64)), float(values.std(dtype=np.float64))


def _aligned_experts(row: Row) -> float | None:
    """Mean cosine of router rows after pairing experts for the largest sum.

    Models with different numbers of experts can be paired, too, as far as the fewer go.
    """
    x, y = row.a.values, row.b.values
    if row.role != ROUTER or x is None or y is None or x.ndim != 2 or x.shape[1:] != y.shape[1:]:
        return None
    if row.a.sampled or row.b.sampled:
        return None
    matching = match_rows(x, y)
    return matching.mean if matching.scores else None


def _map_table(mapped: LayerMap) -> Table:
    columns = ("layer_A", "layer_B", "pearson", "same_layer_pearson", "pearson_by_chance")
    places = {layer: at for at, layer in enumerate(mapped.layers_b)}
    rows: list[tuple[Cell, ...]] = []
    for (first, second), score, (at, _) in zip(
        mapped.pairs, mapped.matching.scores, mapped.matching.pairs, strict=True
    ):
        own = float(mapped.scores[at, places[first]]) if first in places else None
        rows.append((first, second, score, own if own == own else None, mapped.chance.mean))
    title = text.words("study.layers.table.map")
    return Table("layer_alignment", title, columns, tuple(rows))


def _facts(rows: Sequence[Row], mapped: LayerMap) -> dict[str, Fact]:
    facts: dict[str, Fact] = {}
    for role, group in by_role(rows).items():
        s, p = spread_of(group, "cosine"), spread_of(group, "pearson")
        facts[_CATEGORIES.get(role, role)] = {
            "mean": s.mean,
            "std": s.std,
            "min": s.least,
            "max": s.greatest,
            "count": s.count,
            "pearson_mean": p.mean,
            "shuffled_cosine_mean": spread_of(group, "shuffled_cosine").mean,
        }
    matched = bool(mapped.matching.scores)
    same = sum(first == second for first, second in mapped.pairs)
    facts["layer_alignment"] = {
        "pairs": len(mapped.pairs),
        "same_layer": same,
        "mean_pearson": mapped.matching.mean if matched else None,
        "mean_by_chance": mapped.chance.mean,
        "std_by_chance": mapped.chance.std,
        "distinct": mapped.matching.distinct,
    }
    return facts


def _charts(rows: Sequence[Row]) -> tuple[Lines, ...]:
    groups = by_role(rows)
    norms = {role: group for role, group in groups.items() if role.startswith("norm")}
    cosine, pearson = text.words("study.common.cosine"), text.words("study.common.pearson")
    width = next((row.a.values.size for row in rows if row.a.values is not None), 0)
    reach = 2 / (width - 1) ** 0.5 if width > 1 else 0.0
    label = text.words("study.layers.band")
    by_layer = text.words("study.layers.chart.cosine")
    return (
        _lines("plot_cosine_by_layer", by_layer, cosine, _curves(groups, "cosine", True)),
        _lines(
            "plot_pearson_by_layer",
            text.words("study.layers.chart.pearson"),
            pearson,
            _curves(groups, "pearson", False),
            (Band(label, 0.0, -reach, reach),) if reach else (),
        ),
        _lines(
            "layernorm_by_layer",
            text.words("study.layers.chart.norms"),
            cosine,
            _curves(norms, "cosine", True),
        ),
    )


def _curves(groups: dict[str, list[Row]], name: str, shuffled: bool) -> tuple[Series, ...]:
    found: list[Series] = []
    for role, group in groups.items():
        placed = [row for row in group if row.layer is not None]
        x = tuple(float(row.layer or 0) for row in placed)
        title = role_title(role)
        low, high = zip(*(row.found.bounds(name) for row in placed), strict=True) or ((), ())
        known = any(one is not None for one in low)
        y = tuple(row.found.value(name) for row in placed)
        found.append(Series(title, x, y, "pair", low if known else (), high if known else ()))
        if shuffled:
            label = text.words("study.common.shuffled", role=title)
            left = tuple(row.found.value("shuffled_cosine") for row in placed)
            found.append(Series(label, x, left, "random"))
    return tuple(found)


def _lines(
    name: str, title: Words, y: Words, series: tuple[Series, ...], bands: tuple[Band, ...] = ()
) -> Lines:
    return Lines(name, title, text.words("study.common.layer"), y, series, bands)


def _findings(rows: Sequence[Row], mapped: LayerMap) -> tuple[Words, ...]:
    told: list[Words] = []
    for role, group in by_role(rows).items():
        s, left = spread_of(group, "cosine"), spread_of(group, "shuffled_cosine")
        if s.mean is None:
            continue
        title = role_title(role)
        told.append(
            text.words(
                "study.layers.finding.role",
                role=title,
                low=rounded(s.least),
                high=rounded(s.greatest),
                count=s.count,
                mean=rounded(s.mean),
                left=rounded(left.mean),
                pearson=rounded(spread_of(group, "pearson").mean),
            )
        )
    if mapped.matching.scores:
        same = sum(first == second for first, second in mapped.pairs)
        told.append(
            text.words(
                "study.layers.finding.map",
                same=same,
                count=len(mapped.pairs),
                mean=rounded(mapped.matching.mean),
                chance=rounded(mapped.chance.mean),
            )
        )
    return tuple(told)


LAYERS = Procedure(_needs, _run)
