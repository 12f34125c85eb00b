"""Tensors of real architectures contradict nothing; of tensors that do, the minority is named."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from kinprint.model.consistency import consistent, contradiction_notes, stream_width
from kinprint.model.geometry import geometry_of
from kinprint.model.places import Address, Place, Weight, places_of
from kinprint.model.tensor_map import map_tensors
from kinprint.records import TensorSpec
from tests.lineage.stored_models import LLAMA, llama
from tests.model.architectures import ARCHITECTURES

Shapes = Mapping[str, tuple[int, ...]]
ROOT = "model.layers.1"


def placed(shapes: Shapes, config: dict[str, Any]) -> dict[Address, Place]:
    specs = tuple(TensorSpec(name, "F32", shape, "file", 0, 0) for name, shape in shapes.items())
    mapped = map_tensors(specs, config, "safetensors", None)
    weights = [Weight(one.spec.name, one.spec, one.role, one.layout) for one in mapped.tensors]
    return consistent(places_of(weights), geometry_of(config))


def wrong(shapes: Shapes, config: dict[str, Any]) -> dict[str, str]:
    """Names of tensors that contradict others, with what they should have."""
    return {
        place.weight.name: place.contradiction.words()["en"]
        for place in placed(shapes, config).values()
        if place.contradiction is not None
    }


def small(**changed: tuple[int, ...] | None) -> Shapes:
    shapes = {name: value.shape for name, value in llama().items()}
    for name, shape in changed.items():
        if shape is None:
            del shapes[f"{ROOT}.{name.replace('__', '.')}.weight"]
        else:
            shapes[f"{ROOT}.{name.replace('__', '.')}.weight"] = shape
    return shapes


PACKED = ("qweight", "_blocks")  # whose logical shapes are told by tensors beside them


@pytest.mark.parametrize("entry", ARCHITECTURES)
def test_real_architectures_contradict_nothing(entry: str) -> None:
    model = ARCHITECTURES[entry]
    config = model["config"] | {"model_type": model["model_type"]}
    shapes = {tensor["name"]: tuple(tensor["shape"]) for tensor in model["tensors"]}
    shapes = {name: shape for name, shape in shapes.items() if not name.endswith(PACKED)}
    assert wrong(shapes, config) == {}


@pytest.mark.parametrize(
    ("name", "shape", "wanted"),
    [
        ("mlp__gate_proj", (45, 64), "48 rows"),
        ("mlp__up_proj", (45, 64), "48 rows"),
        ("mlp__down_proj", (64, 45), "48 inputs"),
        ("mlp__down_proj", (61, 48), "an axis of 64"),
        ("mlp__up_proj", (48, 61), "an axis of 64"),
        ("mlp__up_proj", (48 * 64,), "a matrix"),
        ("mlp__up_proj", (), "a matrix"),
        ("mlp__up_proj", (0, 64), "numbers"),
        ("input_layernorm", (61,), "64 numbers"),
        ("self_attn__q_proj", (61, 64), "rows in heads of 16"),
        ("self_attn__k_proj", (48, 64), "groups of keys that 4 heads can share"),
        ("self_attn__v_proj", (31, 64), "rows in 2 groups"),
        ("self_attn__o_proj", (64, 61), "64 inputs"),
        ("self_attn__o_proj", (61, 64), "an axis of 64"),
    ],
)
def test_the_minority_is_named(name: str, shape: tuple[int, ...], wanted: str) -> None:
    assert wrong(small(**{name: shape}), LLAMA) == {
        f"{ROOT}.{name.replace('__', '.')}.weight": wanted
    }


@pytest.mark.parametrize("down", [True, False])
def test_a_tower_for_pictures_is_held_to_the_same(down: bool) -> None:
    shapes = {f"visual.{name}": shape for name, shape in small(mlp__up_proj=(45, 64)).items()}
    if not down:
        del shapes[f"visual.{ROOT}.mlp.down_proj.weight"]
    told = wrong({**small(), **shapes}, LLAMA)
    assert told == {f"visual.{ROOT}.mlp.up_proj.weight": "48 rows"}


def test_a_layer_without_its_gate_is_no_gated_layer() -> None:
    assert wrong(small(mlp__gate_proj=None), LLAMA) == {
        f"{ROOT}.mlp.up_proj.weight": "a gate beside it"
    }


@pytest.mark.parametrize(("hidden", "width"), [(64, 64), (63, 64), (None, 64), (128, 64)])
def test_norms_know_the_width_better_than_the_configuration(hidden: int, width: int) -> None:
    config = LLAMA | {"hidden_size": hidden}
    assert stream_width(placed(small(), config), geometry_of(config)) == width
    assert stream_width({}, geometry_of(config)) == (hidden or 0)


def test_a_gate_may_lie_in_a_file_that_was_not_opened() -> None:
    shapes = {name: value.shape for name, value in llama().items()}
    del shapes["model.layers.1.mlp.gate_proj.weight"]
    places = placed(shapes, LLAMA)
    (alone,) = (one for one in places.values() if one.contradiction)
    assert alone.weight.name == "model.layers.1.mlp.up_proj.weight"
    assert list(contradiction_notes(places.values(), True))
    assert not list(contradiction_notes(places.values(), False))


def test_one_sentence_tells_of_many_alike() -> None:
    shapes = {name: value.shape for name, value in llama().items()}
    for layer in (1, 2):
        shapes[f"model.layers.{layer}.mlp.gate_proj.weight"] = (45, 64)
    notes = [
        note.words()["en"] for note in contradiction_notes(placed(shapes, LLAMA).values(), True)
    ]
    assert notes == [
        "shape [45, 64] of model.layers.1.mlp.gate_proj.weight contradicts the other tensors, which"
        " ask for 48 rows: it is left out, and 1 more like it"
    ]


@pytest.mark.parametrize("config", [LLAMA, {}])
def test_one_sentence_tells_of_all_empty_tensors(config: dict[str, Any]) -> None:
    """Weights of a run in parts that nobody gathered: of all or of some there are names alone."""
    empty = {name: (0, *shape[1:]) for name, shape in small().items()}
    for shapes in (empty, {**small(), **dict(list(empty.items())[5:9])}):
        places = placed(shapes, config)
        (note,) = contradiction_notes(places.values(), True)
        count = sum(0 in shape for shape in shapes.values())
        assert f"hold no numbers are left out ({count} in all, " in note.words()["en"]
        left_out = [place.shape for place in places.values() if place.contradiction]
        assert all(shape is not None and 0 in shape for shape in left_out)
