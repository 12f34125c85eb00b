"""Recipes as files for mergekit: its own keys, nothing else (docs/merge_methods.md of mergekit)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kinprint.diff.passthrough import Slice
from kinprint.measure.merging import Precision
from kinprint.measure.recipes import Recipe, Settings
from kinprint.records import MergeMethod

_BY_DEFAULT = {
    MergeMethod.LINEAR: (True, False),
    MergeMethod.TASK_ARITHMETIC: (False, False),
    MergeMethod.TIES: (True, False),
    MergeMethod.DARE_LINEAR: (False, True),
    MergeMethod.DARE_TIES: (False, True),
}
"""What mergekit takes `normalize` and `rescale` for where a recipe is silent."""


def recipe_yaml(
    recipe: Recipe,
    names: Sequence[str],
    tensors: Sequence[str],
    layers: Sequence[int | None],
    stored: Precision | None,
) -> str:
    """The recipe; with one slice a layer where tensors differ."""
    document: dict[str, Any] = {"merge_method": recipe.method.value}
    if recipe.base is not None:
        document["base_model"] = names[recipe.base]
    if len(set(recipe.settings)) == 1:
        document["models"] = [
            {"model": names[at], **_parameters(_of_parent(recipe.settings[0], number))}
            for number, at in enumerate(recipe.parents)
        ]
        shared = _shared(recipe, [("", recipe.settings[0])])
    else:
        document["slices"] = _slices(recipe, names, tensors, layers)
        shared = _shared(recipe, [])
    document.update(_parameters(shared))
    document.update(_formats(recipe.precision, stored))
    return _written(document)


def passthrough_yaml(
    slices: Sequence[Slice], names: Sequence[str], stored: Precision | None
) -> str:
    """Layers of models one after the other."""
    document: dict[str, Any] = {
        "merge_method": MergeMethod.PASSTHROUGH.value,
        "slices": [
            {"sources": [{"model": names[one.source], "layer_range": [one.first, one.last + 1]}]}
            for one in slices
        ],
    }
    document.update(_formats(stored, stored))
    return _written(document)


def _slices(
    recipe: Recipe,
    names: Sequence[str],
    tensors: Sequence[str],
    layers: Sequence[int | None],
) -> list[dict[str, Any]]:
    """A slice a layer; tensors outside the layers belong to the first and to the last."""
    numbers = sorted({layer for layer in layers if layer is not None})
    outside = [
        (tensor, settings)
        for tensor, layer, settings in zip(tensors, layers, recipe.settings, strict=True)
        if layer is None
    ]
    slices = []
    for number in numbers:
        own = [
            (_tail(tensor, number), settings)
            for tensor, layer, settings in zip(tensors, layers, recipe.settings, strict=True)
            if layer == number
        ]
        if number in (numbers[0], numbers[-1]):
            own = [*outside, *own]
        sources = [
            {
                "model": names[at],
                "layer_range": [number, number + 1],
                **_parameters(_filtered(own, index)),
            }
            for index, at in enumerate(recipe.parents)
        ]
        if recipe.base is not None and recipe.base not in recipe.parents:
            sources.append({"model": names[recipe.base], "layer_range": [number, number + 1]})
        slices.append({"sources": sources, **_parameters(_way(recipe, own))})
    return slices


def _tail(tensor: str, layer: int) -> str:
    """The end of a name that follows the layer."""
    return tensor.partition(f".{layer}.")[2] or tensor


def _filtered(own: Sequence[tuple[str, Settings]], index: int) -> dict[str, Any]:
    keys = _of_parent(own[0][1], index)
    return {
        key: _values([(name, _of_parent(one, index)[key]) for name, one in own]) for key in keys
    }


def _way(recipe: Recipe, own: Sequence[tuple[str, Settings]]) -> dict[str, Any]:
    if recipe.method is not MergeMethod.SLERP:
        return {}
    return {"t": _values([(name, one.t) for name, one in own])}


def _values(given: Sequence[tuple[str, Any]]) -> Any:
    """One value, or values by filter with the usual one last."""
    values = [value for _, value in given]
    usual = max(dict.fromkeys(values), key=values.count)
    others = [{"filter": name, "value": value} for name, value in given if value != usual]
    return [*others, {"value": usual}] if others else usual


def _of_parent(settings: Settings, number: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if settings.weights:
        found["weight"] = settings.weights[number]
    if settings.densities:
        found["density"] = settings.densities[number]
    return found


def _shared(recipe: Recipe, settings: Sequence[tuple[str, Settings]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if settings:
        found.update(_way(recipe, settings))
    normalize, rescale = _BY_DEFAULT.get(recipe.method, (recipe.normalize, recipe.rescale))
    if recipe.normalize != normalize:
        found["normalize"] = recipe.normalize
    if recipe.rescale != rescale:
        found["rescale"] = recipe.rescale
    if recipe.scale != 1:
        found["lambda"] = recipe.scale
    return found


def _formats(precision: Precision | None, stored: Precision | None) -> dict[str, str]:
    found = {} if precision is None else {"dtype": precision.value}
    if stored is not None and stored is not precision:
        found["out_dtype"] = stored.value
    return found


def _parameters(given: Mapping[str, Any]) -> dict[str, Any]:
    return {"parameters": dict(given)} if given else {}


def _written(document: Mapping[str, Any]) -> str:
    import yaml

    return str(
        yaml.safe_dump(dict(document), sort_keys=False, allow_unicode=True, default_flow_style=None)
    )
