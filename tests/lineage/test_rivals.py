"""Tensors beside a model that nobody loads do not hide where the model comes from."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from kinprint.lineage.compare import compare_models
from kinprint.lineage.results import Comparison, Settings
from kinprint.reader.fetch import Fetcher
from kinprint.records import Relation, VerdictReason
from tests.fewer_layers import short_zoo
from tests.lineage.stored_models import Array

Tensors = dict[str, Array]
LAYERS = "model.layers"


def tensors_of(name: str) -> Tensors:
    files = sorted((short_zoo() / name).glob("*.safetensors"))
    return {key: values for file in files for key, values in load_file(file).items()}


def layers(tensors: Tensors, place: str) -> Tensors:
    return {
        name.replace(LAYERS, place): values for name, values in tensors.items() if LAYERS in name
    }


def tiny(tensors: Tensors) -> Tensors:
    return {name: values[(slice(1),) * values.ndim] for name, values in tensors.items()}


def noise(tensors: Tensors) -> Tensors:
    chance = np.random.default_rng(3)
    return {
        name: (chance.normal(size=values.shape) / 8).astype(values.dtype)
        for name, values in tensors.items()
    }


def stored(folder: Path, name: str, tensors: Tensors) -> str:
    """A model of the demo with other tensors."""
    folder.mkdir()
    for file in ("config.json", "tokenizer.json"):
        shutil.copyfile(short_zoo() / name / file, folder / file)
    save_file(
        {key: np.ascontiguousarray(one) for key, one in tensors.items()},
        folder / "model.safetensors",
    )
    return str(folder)


def compared(one: str, other: str) -> Comparison:
    with Fetcher() as fetcher:
        return compare_models(one, other, fetcher, Settings(), details=False)


def notes(found: Comparison) -> str:
    return " ".join(map(str, found.notes))


@pytest.fixture(scope="module")
def plain() -> Comparison:
    return compared(str(short_zoo() / "a-cpt"), str(short_zoo() / "base-a"))


@pytest.mark.parametrize(
    "place",
    [
        "encoder.layers",
        *(
            pytest.param(other, marks=pytest.mark.slow)
            for other in ("ema.model.layers", "layers", "model.language_model.layers")
        ),
    ],
)
def test_tiny_layers_change_no_verdict(plain: Comparison, tmp_path: Path, place: str) -> None:
    own = tensors_of("a-cpt")
    decoyed = stored(tmp_path / "decoyed", "a-cpt", own | tiny(layers(own, place)))
    for pair in ((decoyed, str(short_zoo() / "base-a")), (str(short_zoo() / "base-a"), decoyed)):
        found = compared(*pair)
        assert found.verdict.relation == plain.verdict.relation == Relation.DERIVED
        assert found.verdict.log10_p == pytest.approx(plain.verdict.log10_p, abs=1)
        assert found.verdict.amount.layers == plain.verdict.amount.layers
        assert place in notes(found)


def test_both_models_may_hold_them(plain: Comparison, tmp_path: Path) -> None:
    pair = [
        stored(tmp_path / name, name, own | tiny(layers(own, place)))
        for name, place in (("a-cpt", "encoder.layers"), ("base-a", "x.layers"))
        for own in [tensors_of(name)]
    ]
    found = compared(*pair)
    assert found.verdict.relation == plain.verdict.relation
    assert found.verdict.amount.layers == plain.verdict.amount.layers


def test_the_same_ones_do_not_link_strangers(tmp_path: Path) -> None:
    added = tiny(layers(tensors_of("base-a"), "encoder.layers"))
    pair = [
        stored(tmp_path / name, name, tensors_of(name) | added) for name in ("base-a", "base-b")
    ]
    assert compared(*pair).verdict.relation == Relation.NO_EVIDENCE


@pytest.mark.parametrize(
    "added",
    [
        lambda own: {
            name.replace("q_proj", "qkv_proj"): np.ones((1, 1), values.dtype)
            for name, values in own.items()
            if "q_proj" in name
        },
        lambda own: noise(
            {name.replace("q_proj", "wq"): one for name, one in own.items() if "q_proj" in name}
        ),
        lambda own: tiny({f"foo.{name}": one for name, one in own.items() if LAYERS not in name}),
    ],
    ids=["fused", "full size", "tables and norms"],
)
def test_tensors_beside_the_models_own_change_no_verdict(
    plain: Comparison, tmp_path: Path, added: Callable[[Tensors], Tensors]
) -> None:
    own = tensors_of("a-cpt")
    found = compared(
        stored(tmp_path / "decoyed", "a-cpt", own | added(own)), str(short_zoo() / "base-a")
    )
    assert found.verdict.relation == plain.verdict.relation
    assert found.verdict.amount.layers == plain.verdict.amount.layers


def test_averages_of_training_are_compared_beside_the_model(tmp_path: Path) -> None:
    own = tensors_of("a-cpt")
    averages = {f"ema.{name}": one for name, one in tensors_of("base-a").items()}
    found = compared(
        stored(tmp_path / "both", "a-cpt", own | averages), str(short_zoo() / "base-a")
    )
    assert found.verdict.relation == Relation.DERIVED
    assert [(pair.a, pair.b) for pair in found.towers] == [("ema.*", "")]
    assert "ema.model.layers" in notes(found)


@pytest.mark.parametrize("hidden", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_layers_of_noise_hide_no_link(tmp_path: Path, hidden: bool) -> None:
    """Whether loaders find the noise or the model, both are compared."""
    own = tensors_of("a-cpt")
    added = layers(own, "x.layers")
    files = noise(own) | added if hidden else own | noise(added)
    found = compared(stored(tmp_path / "both", "a-cpt", files), str(short_zoo() / "base-a"))
    assert found.verdict.relation == Relation.PARTIAL
    assert found.verdict.log10_p < -1000
    assert (VerdictReason.TOWERS_SHARED in found.verdict.reasons) == hidden
    assert "x.layers" in notes(found)
