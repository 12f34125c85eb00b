"""Similarity layer by layer, with experts and layers paired anew where order may differ.

The table and the curves that the derivation report drew, and beside each curve the one that
shuffled vectors give.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from kinprint import text
from kinprint.measure.matching import match_rows
from kinprint.model.places import Address
from kinprint.studies.charts import Band, Lines, Series
from kinprint.studies.comparing import SHUFFLED, shape_text
from kinprint.studies.derivation.by_layer import LayerTest, layer_test
from kinprint.studies.derivation.layer_map import LayerMap, map_layers
from kinprint.studies.derivation.pairwise import (
    NORMS,
    A,
    B,
    TensorPair,
    addresses,
    by_role,
    compare_tensors,
    cosine_facts,
    mark_among,
    spread_of,
)
from kinprint.studies.results import Cell, Fact, Output, Table
from kinprint.studies.study import Procedure, ReadTensor, StudyInput, TensorRows
from kinprint.studies.summary import rounded
from kinprint.text import Words
from kinprint.titles import role_title

MEASURES = ("cosine", "pearson", SHUFFLED)
ROUTER = "router"
PUBLISHED_NAMES = {"norm_in": "norm_pre", "norm_post_attn": "norm_post", ROUTER: "router_or_gate"}
"""What the derivation report calls roles; others have the name that they have here."""
_COLUMNS = (
    "layer_B", "layer_A", "category", "cosine", "pearson", "aligned_expert_cosine", "bytes",
    "shape", "key_A", "key_B", "shard_A", "shard_B", "status", "reason", "sample",
    "shuffled_cosine", "mean_A", "std_A", "mean_B", "std_B", "mark",
)  # fmt: skip
_WHOLE = 4


def _needs(inputs: StudyInput) -> list[TensorRows]:
    found = list(addresses(inputs, (*inputs.roles, *NORMS), inputs.own_layers()))
    both = [TensorRows(model, one) for one in found for model in (A, B)]
    routers = [one for one in found if one.role == ROUTER]
    return both + [_tensor(inputs, model, one) for one in routers for model in (A, B)]


def _run(inputs: StudyInput) -> Output:
    inside = list(addresses(inputs, inputs.roles, inputs.own_layers()))
    same = _compare(inputs, ((address, address) for address in inside))
    layers = map_layers(inputs, NORMS, inputs.own_layers(A), inputs.own_layers(B))
    aligned = _compare(inputs, _mapped_addresses(layers, inside))
    tables = (
        _table("layerwise_similarity", text.words("study.layers.table.same"), same),
        _table("aligned_layerwise_similarity", text.words("study.layers.table.aligned"), aligned),
        _map_table(layers),
    )
    tests = {
        role: layer_test(group, inputs.request.seed)
        for role, group in by_role(same).items()
        if role in NORMS
    }
    facts = _facts(same, layers)
    for role, test in tests.items():
        facts[f"{PUBLISHED_NAMES[role]}_by_chance"] = None if test is None else test.facts
    findings = (*_findings(same, layers), *_test_words(tests), *tables[0].gaps)
    return Output(tables, facts, _charts(same), findings)


def _test_words(tests: Mapping[str, LayerTest | None]) -> list[Words]:
    """Whether correlations by layer are more than chance gives, a sentence or two a role."""
    found = []
    for role, test in tests.items():
        if test is None:
            continue
        numbers = {
            "role": role_title(role), "layers": test.layers, "mean": rounded(test.mean, 4),
            "largest": rounded(test.largest), "beyond": test.beyond,
        }  # fmt: skip
        found.append(text.words("study.layers.chance", **numbers))
        for key, chance in (("independent", test.independent), ("together", test.together)):
            if chance is not None:
                shares = {
                    "mean": share(chance.mean), "largest": share(chance.largest),
                    "beyond": share(chance.beyond),
                }  # fmt: skip
                found.append(text.words(f"study.layers.chance.{key}", **shares))
            else:
                found.append(text.words("study.layers.chance.unknown"))
    return found


def share(value: float) -> str:
    """A share of draws for a sentence, two digits that count."""
    return f"{value:.2g}" if value >= 1e-4 else "< 0.0001"


def _mapped_addresses(
    layers: LayerMap, inside: Sequence[Address]
) -> Iterable[tuple[Address, Address]]:
    """What lies in the layers that were paired anew, in the order of the second model."""
    for first, second in sorted(layers.pairs, key=lambda pair: pair[1]):
        for one in inside:
            if one.layer == first:
                yield one, Address(one.role, second, one.expert)


def _compare(inputs: StudyInput, both: Iterable[tuple[Address, Address]]) -> list[TensorPair]:
    pairs = [
        compare_tensors(inputs, *_read_alike(inputs, first, second), MEASURES)
        for first, second in both
    ]
    return pairs if inputs.request.roles else [pair for pair in pairs if not pair.both_missing]


def _read_alike(
    inputs: StudyInput, first: Address, second: Address
) -> tuple[TensorRows, TensorRows]:
    """Both tensors read alike: whole only where both are."""
    whole = _tensor(inputs, A, first), _tensor(inputs, B, second)
    if all(one.rows is not None for one in whole):
        return whole
    return TensorRows(A, first), TensorRows(B, second)


def _tensor(inputs: StudyInput, model: int, address: Address) -> TensorRows:
    """A tensor as this study reads it: a few routers whole, everything else as asked."""
    if address.role == ROUTER and address.layer in _whole_layers(inputs):
        place = inputs.models[model].places.get(address)
        if place is not None and place.shape is not None:
            return TensorRows(model, address, tuple(range(place.shape[0])))
    return TensorRows(model, address)


def _whole_layers(inputs: StudyInput) -> tuple[int, ...]:
    """Layers whose routers are read whole, so that experts can be paired: four, evenly spread.

    A router of a hundred experts is a megabyte, and a model has fifty of them; pairing a few
    says what pairing all would. `--full` and a short list of layers read all of them.
    """
    layers = inputs.own_layers()
    if inputs.request.rows is None or len(layers) <= _WHOLE:
        return layers
    return tuple(layers[round(at)] for at in np.linspace(1, len(layers) - 1, _WHOLE))


def _table(name: str, title: Words, pairs: Iterable[TensorPair]) -> Table:
    return Table(name, title, _COLUMNS, tuple(map(_row, pairs)))


def _row(pair: TensorPair) -> tuple[Cell, ...]:
    stored = pair.a if pair.a.place is not None else pair.b
    return (
        pair.second.address.layer,
        pair.layer,
        PUBLISHED_NAMES.get(pair.role, pair.role),
        pair.value("cosine"),
        pair.value("pearson"),
        _aligned_experts(pair),
        _size(stored),
        shape_text(stored.shape),
        pair.a.name,
        pair.b.name,
        pair.a.file,
        pair.b.file,
        pair.status,
        pair.comparison.reason,
        pair.comparison.sample,
        pair.value(SHUFFLED),
        *_moments(pair.a),
        *_moments(pair.b),
        pair.comparison.marked,
    )


def _size(tensor: ReadTensor) -> int | None:
    """Bytes that a tensor takes in the model; a replica says so of those that it has wider."""
    if tensor.origin is not None and tensor.origin.nbytes is not None:
        return tensor.origin.nbytes
    return None if tensor.place is None else tensor.place.weight.spec.nbytes


def _moments(tensor: ReadTensor) -> tuple[float | None, float | None]:
    """Mean and population deviation of what was read; nothing for values that are not finite."""
    values = tensor.values
    unscaled = tensor.origin is not None and tensor.origin.values != "reconstructed"
    if values is None or not values.size or not np.isfinite(values).all() or unscaled:
        return None, None
    return float(values.mean(dtype=np.float64)), float(values.std(dtype=np.float64))


def _aligned_experts(pair: TensorPair) -> float | None:
    """Mean cosine of router rows after pairing experts for the largest sum.

    Models with different numbers of experts can be paired, too, as far as the fewer go.
    """
    x, y = pair.a.values, pair.b.values
    if pair.role != ROUTER or x is None or y is None or x.ndim != 2 or x.shape[1:] != y.shape[1:]:
        return None
    if pair.a.sampled or pair.b.sampled:
        return None
    matching = match_rows(x, y)
    return matching.mean if matching.scores else None


def _map_table(layers: LayerMap) -> Table:
    columns = ("layer_A", "layer_B", "pearson", "same_layer_pearson", "pearson_by_chance")
    places = {layer: at for at, layer in enumerate(layers.layers_b)}
    rows: list[tuple[Cell, ...]] = []
    for (first, second), score, (at, _) in zip(
        layers.pairs, layers.matching.scores, layers.matching.pairs, strict=True
    ):
        own = float(layers.scores[at, places[first]]) if first in places else math.nan
        same = None if math.isnan(own) else own
        rows.append((first, second, score, same, layers.chance.mean))
    return Table("layer_alignment", text.words("study.layers.table.map"), columns, tuple(rows))


def _facts(pairs: Sequence[TensorPair], layers: LayerMap) -> dict[str, Fact]:
    facts = {
        PUBLISHED_NAMES.get(role, role): cosine_facts(group)
        for role, group in by_role(pairs).items()
    }
    facts["layer_alignment"] = {
        "pairs": len(layers.pairs),
        "same_layer": layers.kept,
        "mean_pearson": layers.matching.mean if layers.matching.scores else None,
        "mean_by_chance": layers.chance.mean,
        "std_by_chance": layers.chance.std,
        "distinct": layers.matching.distinct,
    }
    return facts


def _charts(pairs: Sequence[TensorPair]) -> tuple[Lines, ...]:
    groups = by_role(pairs)
    norms = {role: group for role, group in groups.items() if role.startswith("norm")}
    cosine, pearson = text.words("study.common.cosine"), text.words("study.common.pearson")
    width = next((pair.a.values.size for pair in pairs if pair.a.values is not None), 0)
    bands: tuple[Band, ...] = ()
    if width > 1:
        reach = 2 / (width - 1) ** 0.5
        bands = (Band(text.words("study.layers.band"), 0.0, -reach, reach),)

    def lines(
        name: str, title: str, label: Words, series: list[Series], bands: tuple[Band, ...] = ()
    ) -> Lines:
        layer = text.words("study.common.layer")
        return Lines(name, text.words(title), layer, label, tuple(series), bands)

    return (
        lines(
            "plot_cosine_by_layer",
            "study.layers.chart.cosine",
            cosine,
            _curves(groups, "cosine", shuffled=True),
        ),
        lines(
            "plot_pearson_by_layer",
            "study.layers.chart.pearson",
            pearson,
            _curves(groups, "pearson"),
            bands,
        ),
        lines(
            "layernorm_by_layer",
            "study.layers.chart.norms",
            cosine,
            _curves(norms, "cosine", shuffled=True),
        ),
    )


def _curves(
    groups: Mapping[str, Sequence[TensorPair]], name: str, *, shuffled: bool = False
) -> list[Series]:
    """A line a role, with its interval where rows were sampled, and what shuffling leaves."""
    found: list[Series] = []
    for role, group in groups.items():
        placed = [pair for pair in group if pair.layer is not None]
        x = tuple(float(pair.layer or 0) for pair in placed)
        bounds = [pair.comparison.bounds(name) for pair in placed]
        low, high = (tuple(side) for side in zip(*bounds, strict=True)) if bounds else ((), ())
        known = any(one is not None for one in low)
        y = tuple(pair.value(name) for pair in placed)
        title = role_title(role)
        mark = mark_among(placed, name)
        bounds_shown = (low, high) if known else ((), ())
        found.append(Series(title, x, y, "pair", *bounds_shown, mark))
        if shuffled:
            label = text.words("study.common.shuffled", role=title)
            left = tuple(pair.value(SHUFFLED) for pair in placed)
            found.append(Series(label, x, left, "random", mark=mark))
    return found


def _findings(pairs: Sequence[TensorPair], layers: LayerMap) -> list[Words]:
    found: list[Words] = []
    for role, group in by_role(pairs).items():
        cosine = spread_of(group, "cosine")
        if cosine.mean is None:
            continue
        found.append(
            text.words(
                "study.layers.finding.role",
                role=role_title(role),
                low=rounded(cosine.least),
                high=rounded(cosine.greatest),
                count=cosine.count,
                mean=rounded(cosine.mean),
                left=rounded(spread_of(group, SHUFFLED).mean),
                pearson=rounded(spread_of(group, "pearson").mean),
            )
        )
    if layers.matching.scores:
        found.append(
            text.words(
                "study.layers.finding.map",
                same=layers.kept,
                count=len(layers.pairs),
                mean=rounded(layers.matching.mean),
                chance=rounded(layers.chance.mean),
            )
        )
    else:
        replica = any(side.origin is not None for pair in pairs for side in (pair.a, pair.b))
        found.append(text.words(f"study.layers.finding.no-map{'-replica' if replica else ''}"))
    return found


LAYERS = Procedure(_needs, _run)
