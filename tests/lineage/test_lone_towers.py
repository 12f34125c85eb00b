"""Towers that meet none of the other model: they count, and nobody calls them the same."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace
from safetensors.numpy import load_file

from kinprint.lineage.compare import compare_models
from kinprint.lineage.lone_towers import ModelTowers, lone_towers
from kinprint.lineage.matrix import compare_all
from kinprint.lineage.results import Settings
from kinprint.reader.fetch import Fetcher
from kinprint.records import LONE_TOWERS, PartFinding, PartState, Reason, Verdict
from kinprint.report.statements import Reading, spoken
from tests.fewer_layers import short_zoo
from tests.lineage.stored_models import Array, sampled, stored

Make = Callable[..., str]


def tensors_of(folder: Path) -> dict[str, Array]:
    files = sorted(folder.glob("*.safetensors"))
    return {name: one for file in files for name, one in load_file(file).items()}


def pictures(seed: int, width: int = 128, layers: int = 4) -> dict[str, Array]:
    """A tower for pictures; as it is by default it holds half of a small model's weights."""
    chance = np.random.default_rng(seed)
    found = {}
    for layer in range(layers):
        root = f"vision_tower.vision_model.encoder.layers.{layer}"
        for name, shape in (
            ("self_attn.q_proj", (width, width)), ("self_attn.k_proj", (width, width)),
            ("self_attn.v_proj", (width, width)), ("self_attn.out_proj", (width, width)),
            ("mlp.fc1", (4 * width, width)), ("mlp.fc2", (width, 4 * width)),
            ("layer_norm1", (width,)), ("layer_norm2", (width,)),
        ):  # fmt: skip
            mean = float(len(shape) == 1)
            found[f"{root}.{name}.weight"] = chance.normal(mean, 0.05, shape).astype(np.float32)
    return found


def cut(tower: dict[str, Array], width: int) -> dict[str, Array]:
    """A tower without its last channels."""

    def kept(name: str, values: Array) -> Array:
        if values.ndim == 1 or "fc2" in name:
            return values[:width]
        return values[:, :width] if "fc1" in name else values[:width, :width]

    return {name: np.ascontiguousarray(kept(name, one)) for name, one in tower.items()}


@pytest.fixture(name="make")
def make_fixture(tmp_path: Path) -> Make:
    def make(name: str, text: str, tower: dict[str, Array] | None = None) -> str:
        """A demo model, with a tower for pictures where one is given."""
        if tower is None:
            return str(short_zoo() / text)
        tensors = tensors_of(short_zoo() / text)
        layer = "vision_tower.vision_model.encoder.layers.{}.mlp.fc1.weight"
        depth = sum(layer.format(at) in tower for at in range(99))
        units, width = tower[layer.format(0)].shape
        config = {
            "model_type": "llava",
            "architectures": ["LlavaForConditionalGeneration"],
            "text_config": json.loads((short_zoo() / text / "config.json").read_text()),
            "vision_config": {
                "model_type": "clip_vision_model", "hidden_size": width, "num_hidden_layers": depth,
                "intermediate_size": units, "num_attention_heads": 4,
            },
        }  # fmt: skip
        joined = {f"language_model.{name}": one for name, one in tensors.items()} | tower
        where = stored(tmp_path / name, joined, config)
        shutil.copy(short_zoo() / text / "tokenizer.json", where)
        return where

    return make


def verdict(a: str, b: str, level: str = "deep") -> Verdict:
    with Fetcher() as fetcher:
        return compare_models(a, b, fetcher, Settings(level), details=False).verdict


def said(found: Verdict) -> str:
    told = spoken(found, ("a", "b"), Reading())
    return " ".join(map(str, (told.summary, told.what, told.amount, told.coverage)))


def lone(found: Verdict) -> list[PartFinding]:
    return [one for one in found.parts if one.reason and one.reason.key in LONE_TOWERS]


def both_orders(a: str, b: str, level: str = "deep") -> tuple[Verdict, Verdict]:
    """The verdicts of both orders, which say the same."""
    one, other = verdict(a, b, level), verdict(b, a, level)
    assert one.relation == other.relation
    assert one.log10_p == pytest.approx(other.log10_p)
    assert one.amount.linked == pytest.approx(other.amount.linked)
    assert one.amount.read == pytest.approx(other.amount.read)
    return one, other


@pytest.mark.parametrize(
    "level", ["quick", pytest.param("standard", marks=pytest.mark.slow), "deep"]
)
def test_a_tower_that_one_model_has_is_not_the_same(make: Make, level: str) -> None:
    both = both_orders(make("a", "base-a", pictures(1)), make("b", "base-a"), level)
    for found, reason in zip(both, (Reason.TOWER_MISSING, Reason.TOWER_ONLY_THERE), strict=True):
        assert found.relation == "partial"
        assert {one.reason.key for one in lone(found) if one.reason} == {reason}
        assert not any(one.state.linked for one in lone(found))
        assert "in the main tower" in said(found) and "not have been seen: vision" in said(found)


@pytest.mark.slow
def test_the_width_of_a_strangers_tower_decides_nothing(make: Make) -> None:
    """Linked shares are those of the larger model, whatever the width of the other tower is."""
    one = make("a", "base-a", pictures(1))
    same, narrower = (make(name, "base-a", tower) for name, tower in
                      (("b", pictures(2)), ("c", pictures(2, 96))))  # fmt: skip
    (equal, _), both = both_orders(one, same), both_orders(one, narrower)
    for found in both:
        assert found.relation == equal.relation == "partial"
        assert found.amount.linked == pytest.approx(equal.amount.linked)
        assert {one.reason.key for one in lone(found) if one.reason} == {Reason.TOWER_UNLIKE}
        assert len(found.parts) == len(equal.parts)


def test_a_descendant_under_a_small_tower_is_derived(make: Make) -> None:
    tower = pictures(1, 64, 4)
    without = verdict(make("a", "a-cpt"), make("b", "base-a"))
    text = sum(one.weights for one in without.parts)
    own = text / (text + sum(one.size for one in tower.values()))
    for found in both_orders(make("a", "a-cpt", tower), make("b", "base-a")):
        assert found.relation == without.relation == "derived"
        assert found.amount.linked == pytest.approx(own * without.amount.linked)
        assert "not have been seen: vision" in said(found)


def test_silence_says_which_towers_were_not_compared(make: Make) -> None:
    tower = pictures(1)
    one, other = make("a", "base-a", tower), make("b", "base-b", cut(tower, 96))
    for found in both_orders(one, other):
        assert found.relation == "no-evidence"
        assert lone(found) and all(one.part.tower == "vision" for one in lone(found))
        assert "not have been seen: vision" in said(found)


def test_what_was_not_read_of_a_lone_tower_is_not_called_read(make: Make) -> None:
    one, other = make("a", "base-a", pictures(1)), make("b", "base-a")
    for found in both_orders(one, other, "quick"):
        assert found.amount.read < 0.01
        assert any(one.state is PartState.NOT_READ for one in lone(found))


def test_layers_that_draft_are_not_the_same_where_one_model_has_them(
    tmp_path: Path,
) -> None:
    ours, theirs = (tensors_of(short_zoo() / name) for name in ("base-a", "base-b"))
    config = json.loads((short_zoo() / "base-a/config.json").read_text())
    draft = {
        name.replace("model.layers.1.", "mtp.layers.0."): one
        for name, one in theirs.items()
        if ".layers.1." in name
    }
    name = stored(tmp_path / "a", ours | draft, config)
    shutil.copy(short_zoo() / "base-a/tokenizer.json", name)
    for found in both_orders(name, str(short_zoo() / "base-a")):
        assert found.relation == "derived"
        assert {one.part.tower for one in lone(found)} == {"mtp"}
        assert found.amount.linked < 0.95


def test_models_with_the_same_towers_are_still_the_same(make: Make) -> None:
    one = make("a", "base-a", pictures(1))
    half = {name: values.astype(np.float16) for name, values in pictures(1).items()}
    for found in both_orders(one, make("b", "base-a", half)):
        assert found.relation == "same-weights" and not lone(found)


def test_lone_towers_in_a_matrix(make: Make) -> None:
    names = [
        make("a", "base-a", pictures(1)),
        make("b", "base-a", pictures(2, 112)),
        make("c", "base-a"),
        make("d", "base-b", pictures(3, 64, 2)),
    ]
    for order in (names, names[::-1]):
        with Fetcher() as fetcher:
            found = compare_all(order, fetcher, Settings())
        relations = {frozenset((order[one.a], order[one.b])): one for one in found.pairs}
        for pair, one in relations.items():
            unrelated = names[3] in pair
            assert one.verdict.relation == ("no-evidence" if unrelated else "partial")
            assert "not have been seen: vision" in said(one.verdict)


def convolutions(seed: int) -> dict[str, Array]:
    """Blocks for pictures that no test is made for."""
    chance = np.random.default_rng(seed)
    return {
        f"vision_tower.vision_model.encoder.layers.{layer}.conv1.weight": chance.normal(
            size=(32, 32, 3, 3)
        ).astype(np.float32)
        for layer in range(3)
    }


def test_blocks_without_a_test_are_not_called_read(tmp_path: Path) -> None:
    folder = short_zoo() / "base-a"
    text = {f"language_model.{name}": one for name, one in tensors_of(folder).items()}
    config = {
        "model_type": "llava",
        "text_config": json.loads((folder / "config.json").read_text()),
        "vision_config": {"model_type": "clip_vision_model", "hidden_size": 32},
    }
    one, other = (
        stored(tmp_path / f"{seed}", text | convolutions(seed), config) for seed in (1, 2)
    )
    for found in both_orders(one, str(folder)):
        assert found.relation == "derived" and found.amount.read < 1
        assert "not have been seen: vision" in said(found)
    for found in both_orders(one, other):
        assert found.amount.read < 1 and "no test is made for it" in said(found)


def test_a_tower_in_a_file_that_was_not_opened_is_not_missing(make: Make) -> None:
    names = [make("a", "base-a", pictures(1, 64, 2)), make("b", "base-a")]
    with Fetcher() as fetcher:
        ours, theirs = sampled(names, fetcher).towers(0)
    partly = [replace(theirs[0], partial=True)]
    told, unread = (
        lone_towers(ModelTowers(ours), ModelTowers(some), [(0, 0)]) for some in (theirs, partly)
    )
    assert {str(one.reason) for one in told.own} == {str(Reason.TOWER_MISSING.message())}
    assert {str(one.reason) for one in unread.own} == {str(Reason.PART_NOT_READ.message())}
    assert all(one.state is PartState.NOT_READ for one in unread.own)
