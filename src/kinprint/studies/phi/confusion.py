"""Confusion matrices: every model, or every layer of one model, against every other.

Three studies share them: models at the same layer, each model at a layer of its own, and
one model across its layers. Rows are the first argument of a measure, so that a matrix of
a measure which divides by the first norm is not symmetric; the published ones show its
upper half twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kinprint import text
from kinprint.measure.measures import measures
from kinprint.studies.catalogue import Procedure, Study
from kinprint.studies.charts import Chart, Heatmap, Panels, Values
from kinprint.studies.pairing import (
    depth_of,
    tell_gaps,
    wanted_measures,
    wanted_roles,
)
from kinprint.studies.pairs import (
    SHUFFLED,
    Met,
    Pair,
    Spot,
    compare_pairs,
    items_of,
    layers_for,
    number,
    pair_table,
    published_name,
    shuffled_note,
    spread_of,
    stem,
)
from kinprint.studies.results import Fact, Result
from kinprint.studies.scene import Item, Scene
from kinprint.studies.titles import measure_title, role_title
from kinprint.text import Words

# What published matrices call the roles.
_PUBLISHED = {
    "norm_in": "input_layernorm",
    "norm_post_attn": "post_attention_layernorm",
    "k": "k_proj",
    "v": "v_proj",
}


@dataclass(frozen=True, slots=True)
class Square:
    """One matrix to fill: the spots on both sides, and how its files begin and end."""

    prefix: str
    suffix: str
    title: Words
    labels: tuple[str, ...]
    spots: tuple[Spot, ...]
    about: tuple[tuple[str, Fact], ...]  # what its JSON says besides metric and matrices
    axis: Words | None = None  # what the labels are, where they do not say it

    def pairs(self, roles: Sequence[str]) -> list[Pair]:
        """All ordered pairs, row by row, role by role."""
        group = f"{self.prefix}{self.suffix}"
        return [Pair(a, b, role, group) for role in roles for a in self.spots for b in self.spots]

    def name(self, measure: str) -> str:
        """The file's stem for one measure."""
        return f"{self.prefix}_{published_name(measure)}_{self.suffix}"


def same_layer(study: Study, scene: Scene) -> list[Square]:
    """All models at the same layer, one matrix a layer."""
    found = []
    for layer in layers_for(study, scene):
        title = text.words("study.common.models-at-layer", layer=layer)
        spots = tuple(Spot(at, layer) for at in range(len(scene.models)))
        about: tuple[tuple[str, Fact], ...] = (("layer", layer), ("models", list(scene.names)))
        found.append(Square("confusion", f"layer{layer}", title, scene.names, spots, about))
    return found


def own_layers(study: Study, scene: Scene) -> list[Square]:
    """Each model at a layer of its own: one matrix."""
    layers = layer_each(study, scene)
    spots = tuple(Spot(at, layer) for at, layer in enumerate(layers))
    labels = tuple(f"{name} [{at}]" for name, at in zip(scene.names, layers, strict=True))
    marks = (f"{stem(name)[0]}{at}" for name, at in zip(scene.names, layers, strict=True))
    title = text.words("study.confusion-mixed.chart")
    named = zip(scene.names, layers, strict=True)
    about: tuple[tuple[str, Fact], ...] = (
        *((f"{stem(name)}_layer", layer) for name, layer in named),
        ("models", list(scene.names)),
    )
    return [Square("confusion_mixed", "_".join(marks), title, labels, spots, about)]


def layer_each(study: Study, scene: Scene) -> tuple[int, ...]:
    """One layer a model: those asked for if they are as many as the models.

    Else the study's own, if there are enough of them and each model is deep enough; else
    model i of n at i/(n + 1) of its own depth, never its first layer.
    """
    count = len(scene.models)
    asked = scene.request.layers
    if asked is not None and len(asked) == count:
        return asked
    depths = [depth_of(scene, at) for at in range(count)]
    own = study.layers[:count]
    if len(own) == count and all(one < depth for one, depth in zip(own, depths, strict=True)):
        return own
    return tuple(
        max(round(depth * (at + 1) / (count + 1)), 1 if depth > 1 else 0)
        for at, depth in enumerate(depths)
    )


def one_model(study: Study, scene: Scene) -> list[Square]:
    """Each model by itself across its layers, one matrix a model."""
    found = []
    for at, name in enumerate(scene.names):
        layers = layers_for(study, scene, at)
        suffix = f"{stem(name)}_layers{'_'.join(map(str, layers))}"
        spots = tuple(Spot(at, layer) for layer in layers)
        labels = tuple(map(str, layers))
        title = text.words("study.within-model.chart", name=name)
        axis = text.words("study.common.layer")
        about: tuple[tuple[str, Fact], ...] = (("model", name), ("layers", list(layers)))
        found.append(Square("within", suffix, title, labels, spots, about, axis))
    return found


def _procedure(squares_of: Callable[[Study, Scene], list[Square]]) -> Procedure:
    def needs(study: Study, scene: Scene) -> list[Item]:
        roles = wanted_roles(scene, study.roles)
        return items_of(pair for one in squares_of(study, scene) for pair in one.pairs(roles))

    def run(study: Study, scene: Scene) -> Result:
        return _fill(study, scene, squares_of(study, scene))

    return Procedure(needs, run)


def _fill(study: Study, scene: Scene, squares: Sequence[Square]) -> Result:
    roles, names = wanted_roles(scene, study.roles), wanted_measures(scene, study.measures)
    facts: dict[str, Fact] = {}
    charts: list[Chart] = []
    every: list[Met] = []
    for square in squares:
        met = compare_pairs(scene, square.pairs(roles), names)
        every += met
        for name in names:
            facts[square.name(name)] = _matrices(square, roles, met, name)
            charts.append(_panels(square, roles, met, name))
    title = text.words("study.common.pairs-table")
    table = pair_table(scene, study.name, title, every, names)
    findings = (*_findings(every, roles), *_layers_ignored(study, scene))
    return Result(
        study.name, scene.names, (table,), facts, tuple(charts),
        (*findings, *tell_gaps(table.statuses)), scene.labels,
    )  # fmt: skip


def _grid(square: Square, role: str, met: Sequence[Met], name: str) -> tuple[Values, ...]:
    size = len(square.spots)
    line = [each.value(name) for each in met if each.pair.role == role]
    return tuple(tuple(line[at : at + size]) for at in range(0, len(line), size))


def _matrices(square: Square, roles: Sequence[str], met: Sequence[Met], name: str) -> Fact:
    """The JSON of one measure, in the form in which matrices were published."""
    mats: dict[str, Fact] = {}
    samples: dict[str, Fact] = {}
    for role in roles:
        mats[_PUBLISHED.get(role, role)] = [list(row) for row in _grid(square, role, met, name)]
        read = {each.found.sample for each in met if each.pair.role == role and each.found.sample}
        if read:
            samples[_PUBLISHED.get(role, role)] = ", ".join(sorted(read))
    fact: dict[str, Fact] = {"metric": published_name(name), **dict(square.about)}
    fact |= {"params": list(mats), "mats": mats}
    return fact | ({"rows_read": samples} if samples else {})


def _panels(square: Square, roles: Sequence[str], met: Sequence[Met], name: str) -> Panels:
    maps = []
    for role in roles:
        mine = [each for each in met if each.pair.role == role]
        values = _grid(square, role, met, name)
        low, high, diverging = _colours(name, values)
        apart = [each for each in mine if each.pair.a != each.pair.b]
        note = shuffled_note(apart) if name == "cosine" else None
        maps.append(
            Heatmap(
                f"{square.name(name)}_{stem(role)}", role_title(role), square.labels,
                square.labels, values, measure_title(name), low, high, diverging,
                row_label=square.axis, column_label=square.axis, note=note,
            )
        )  # fmt: skip
    return Panels(square.name(name), square.title, tuple(maps))


def _colours(name: str, values: tuple[Values, ...]) -> tuple[float, float, bool]:
    """Similarities share one scale, so that pictures compare; distances begin at zero."""
    least, greatest = measures()[name].range
    if (least, greatest) == (-1, 1):
        return -1.0, 1.0, True
    known = [value for row in values for value in row if value is not None]
    return 0.0, max(known, default=0.0) or 1.0, False


def _findings(met: Sequence[Met], roles: Sequence[str]) -> tuple[Words, ...]:
    found = []
    for role in roles:
        apart = [each for each in met if each.pair.role == role and each.pair.a != each.pair.b]
        cosine = spread_of(apart, "cosine")
        if cosine.mean is None:
            continue
        means = number(cosine.mean), number(spread_of(apart, SHUFFLED).mean)
        found.append(
            text.words(
                "study.confusion.finding.cosine", role=role, cosine=means[0], shuffled=means[1]
            )
        )
        pearson = spread_of(apart, "pearson")
        if pearson.mean is not None:
            found.append(
                text.words(
                    "study.confusion.finding.pearson",
                    role=role,
                    mean=number(pearson.mean),
                    least=number(pearson.least),
                    greatest=number(pearson.greatest),
                )
            )
    return tuple(found)


def _layers_ignored(study: Study, scene: Scene) -> tuple[Words, ...]:
    """Say so if layers were asked for that cannot be given out, one a model."""
    asked = scene.request.layers
    if study.name != "confusion-mixed" or asked is None or len(asked) == len(scene.models):
        return ()
    given = ", ".join(map(str, layer_each(study, scene)))
    return (
        text.words(
            "study.confusion-mixed.finding.layers",
            asked=len(asked),
            models=len(scene.models),
            given=given,
        ),
    )


SAME_LAYER = _procedure(same_layer)
OWN_LAYERS = _procedure(own_layers)
ONE_MODEL = _procedure(one_model)
