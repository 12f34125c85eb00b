"""Confusion matrices: every model, or every layer of one model, against every other.

Three studies share them: models at the same layer, each model at a layer of its own, and
one model across its layers. Rows are the first argument of a measure, so that a matrix of
a measure which divides by the first norm is not symmetric; the published ones show its
upper half twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from kinprint import text
from kinprint.measure.measures import measures
from kinprint.studies.charts import Chart, Heatmap, Panels, Values
from kinprint.studies.comparing import SHUFFLED
from kinprint.studies.pairs import (
    ComparedPair,
    ComparedPairs,
    LayerPair,
    ModelLayer,
    compare_pairs,
    layers_for,
    pair_table,
    published_name,
    stem,
    tensors_of,
)
from kinprint.studies.results import Fact, Output
from kinprint.studies.study import Procedure, StudyInput, TensorRows
from kinprint.studies.summary import rounded
from kinprint.text import Words
from kinprint.titles import role_title

# What published matrices call the roles.
_PUBLISHED = {
    "norm_in": "input_layernorm",
    "norm_post_attn": "post_attention_layernorm",
    "k": "k_proj",
    "v": "v_proj",
}


class Matrix(Struct, frozen=True):
    """One matrix to fill: the layers on both sides, and how its files begin and end.

    `about` is what its JSON says besides metric and values; `axis` what the labels are, where
    they do not say it.
    """

    prefix: str
    suffix: str
    title: Words
    labels: tuple[str, ...]
    layers: tuple[ModelLayer, ...]
    about: Mapping[str, Fact]
    axis: Words | None = None

    def pairs(self, roles: Sequence[str]) -> list[LayerPair]:
        """All ordered pairs, row by row, role by role."""
        group = f"{self.prefix}{self.suffix}"
        return [
            LayerPair(a, b, role, group) for role in roles for a in self.layers for b in self.layers
        ]

    def name(self, measure: str) -> str:
        """The file's stem for one measure."""
        return f"{self.prefix}_{published_name(measure)}_{self.suffix}"

    def grid(self, pairs: ComparedPairs, role: str, measure: str) -> tuple[Values, ...]:
        """The values of one role, row by row."""
        size, line = len(self.layers), [one.value(measure) for one in pairs.only(role=role)]
        return tuple(tuple(line[at : at + size]) for at in range(0, len(line), size))


def same_layer(inputs: StudyInput) -> list[Matrix]:
    """All models at the same layer, one matrix a layer."""
    return [
        Matrix(
            "confusion",
            f"layer{layer}",
            text.words("study.common.models-at-layer", layer=layer),
            inputs.names,
            tuple(ModelLayer(at, layer) for at in range(len(inputs.models))),
            {"layer": layer, "models": list(inputs.names)},
        )
        for layer in layers_for(inputs)
    ]


def own_layers(inputs: StudyInput) -> list[Matrix]:
    """Each model at a layer of its own: one matrix."""
    layers = layer_each(inputs)
    named = list(zip(inputs.names, layers, strict=True))
    about: dict[str, Fact] = {f"{stem(name)}_layer": layer for name, layer in named}
    return [
        Matrix(
            "confusion_mixed",
            "_".join(f"{stem(name)[0]}{layer}" for name, layer in named),
            text.words("study.confusion-mixed.chart"),
            tuple(f"{name} [{layer}]" for name, layer in named),
            tuple(ModelLayer(at, layer) for at, layer in enumerate(layers)),
            about | {"models": list(inputs.names)},
        )
    ]


def layer_each(inputs: StudyInput) -> tuple[int, ...]:
    """One layer a model: those asked for if they are as many as the models.

    Else the study's own, if there are enough of them and each model is deep enough; else
    model i of n at i/(n + 1) of its own depth, never its first layer.
    """
    count = len(inputs.models)
    asked = inputs.request.layers
    if asked is not None and len(asked) == count:
        return asked
    depths = [inputs.depth(at) for at in range(count)]
    own = inputs.study.layers[:count]
    if len(own) == count and all(one < depth for one, depth in zip(own, depths, strict=True)):
        return own
    return tuple(
        max(round(depth * (at + 1) / (count + 1)), 1 if depth > 1 else 0)
        for at, depth in enumerate(depths)
    )


def one_model(inputs: StudyInput) -> list[Matrix]:
    """Each model by itself across its layers, one matrix a model."""
    found = []
    for at, name in enumerate(inputs.names):
        layers = layers_for(inputs, at)
        found.append(
            Matrix(
                "within",
                f"{stem(name)}_layers{'_'.join(map(str, layers))}",
                text.words("study.within-model.chart", name=name),
                tuple(map(str, layers)),
                tuple(ModelLayer(at, layer) for layer in layers),
                {"model": name, "layers": list(layers)},
                text.words("study.common.layer"),
            )
        )
    return found


def _procedure(
    matrices_of: Callable[[StudyInput], list[Matrix]],
    remarks: Callable[[StudyInput], tuple[Words, ...]] = lambda inputs: (),
) -> Procedure:
    def needs(inputs: StudyInput) -> list[TensorRows]:
        matrices = matrices_of(inputs)
        return tensors_of(pair for one in matrices for pair in one.pairs(inputs.roles))

    def run(inputs: StudyInput) -> Output:
        return _fill(inputs, matrices_of(inputs), remarks(inputs))

    return Procedure(needs, run)


def _fill(inputs: StudyInput, matrices: Sequence[Matrix], remarks: Sequence[Words]) -> Output:
    facts: dict[str, Fact] = {}
    charts: list[Chart] = []
    every: list[ComparedPair] = []
    for matrix in matrices:
        pairs = compare_pairs(inputs, matrix.pairs(inputs.roles))
        every += pairs
        for measure in inputs.measures:
            facts[matrix.name(measure)] = _published_form(matrix, inputs.roles, pairs, measure)
            charts.append(_panels(matrix, inputs.roles, pairs, measure))
    pairs = ComparedPairs(tuple(every))
    table = pair_table(inputs, text.words("study.common.pairs-table"), pairs)
    findings = (*_findings(pairs, inputs.roles), *remarks, *table.gaps)
    return Output((table,), facts, tuple(charts), findings)


def _published_form(
    matrix: Matrix, roles: Sequence[str], pairs: ComparedPairs, measure: str
) -> Fact:
    """The JSON of one measure, in the form in which matrices were published."""
    mats: dict[str, Fact] = {}
    marks: dict[str, Fact] = {}
    samples: dict[str, Fact] = {}
    for role in roles:
        name = _PUBLISHED.get(role, role)
        mats[name] = [list(row) for row in matrix.grid(pairs, role, measure)]
        mine = pairs.only(role=role).apart
        marks[name] = str(mine.mark(measure)) if len(mine.known(measure)) else None
        read = {one.comparison.sample for one in pairs.only(role=role)} - {""}
        if read:
            samples[name] = ", ".join(sorted(read))
    fact: dict[str, Fact] = {"metric": published_name(measure), **matrix.about}
    fact |= {"params": list(mats), "mats": mats, "marks": marks}
    return fact | ({"rows_read": samples} if samples else {})


def _panels(matrix: Matrix, roles: Sequence[str], pairs: ComparedPairs, measure: str) -> Panels:
    """One heatmap a role."""
    maps = []
    for role in roles:
        values = matrix.grid(pairs, role, measure)
        low, high, diverging = _colours(measure, values)
        maps.append(
            Heatmap(
                f"{matrix.name(measure)}_{stem(role)}", role_title(role), matrix.labels,
                matrix.labels, values, measures()[measure].title, low, high, diverging,
                row_label=matrix.axis, column_label=matrix.axis,
                note=pairs.only(role=role).apart.note(measure),
                mark=pairs.only(role=role).apart.mark(measure),
            )
        )  # fmt: skip
    return Panels(matrix.name(measure), matrix.title, tuple(maps))


def _colours(measure: str, values: tuple[Values, ...]) -> tuple[float, float, bool]:
    """Similarities share one scale, so that pictures compare; distances begin at zero."""
    if measures()[measure].range == (-1, 1):
        return -1.0, 1.0, True
    known = [value for row in values for value in row if value is not None]
    return 0.0, max(known, default=0.0) or 1.0, False


def _findings(pairs: ComparedPairs, roles: Sequence[str]) -> list[Words]:
    found = []
    for role in roles:
        apart = pairs.only(role=role).apart
        if apart.spread("cosine").mean is None:
            continue
        means = {
            "cosine": apart.written_mean("cosine"), "shuffled": apart.written_mean(SHUFFLED),
        }  # fmt: skip
        found.append(text.words("study.confusion.finding.cosine", role=role_title(role), **means))
        pearson = apart.spread("pearson")
        if pearson.mean is not None:
            found.append(
                text.words(
                    "study.confusion.finding.pearson",
                    role=role_title(role),
                    mean=rounded(pearson.mean, 4),
                    least=rounded(pearson.least, 4),
                    greatest=rounded(pearson.greatest, 4),
                )
            )
    return found


def _layers_ignored(inputs: StudyInput) -> tuple[Words, ...]:
    """Say so if layers were asked for that cannot be given out, one a model."""
    asked, models = inputs.request.layers, len(inputs.models)
    if asked is None or len(asked) == models:
        return ()
    given = ", ".join(map(str, layer_each(inputs)))
    key = "study.confusion-mixed.finding.layers"
    return (text.words(key, asked=len(asked), models=models, given=given),)


SAME_LAYER = _procedure(same_layer)
OWN_LAYERS = _procedure(own_layers, _layers_ignored)
ONE_MODEL = _procedure(one_model)
