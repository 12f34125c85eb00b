"""Models with several towers: every tower that could match is compared, at a price."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kinprint.lineage.compare import compare_models
from kinprint.lineage.matrix import compare_all
from kinprint.lineage.results import Comparison, Settings
from kinprint.reader.fetch import Fetcher
from kinprint.records import Component, Part, PartState, VerdictReason
from tests.lineage.stored_models import (
    LAYERS,
    LLAMA,
    WIDTH,
    Array,
    final,
    llama,
    sampled,
    stored,
)
from tests.lineage.towered_models import LLAVA, T5, VISION, diffusion, llava, pipeline, t5, vision


def compared(folder: Path, *models: tuple[dict[str, Array], dict[str, Any]]) -> Comparison:
    names = [stored(folder / str(at), *model) for at, model in enumerate(models)]
    with Fetcher() as fetcher:
        return compare_models(names[0], names[1], fetcher, Settings(), details=False)


@pytest.mark.parametrize(
    ("one", "other", "shared"),
    [
        pytest.param(
            (llava(1, 9), LLAVA), (llava(2, 9), LLAVA), ("vision", "vision"), id="one tower"
        ),
        pytest.param((vision(9), VISION), (llava(2, 9), LLAVA), ("vision", "vision"), id="bare"),
        pytest.param((t5(1, 2), T5), (t5(1, 3), T5), ("encoder", "encoder"), id="encoder"),
        pytest.param(
            (t5(1, None), T5),
            (t5(1, 3), T5),
            ("", "encoder"),
            id="encoder alone",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_tower_that_was_taken_over_is_found(
    tmp_path: Path, one: Any, other: Any, shared: tuple[str, str]
) -> None:
    for models, names in (((one, other), shared), ((other, one), shared[::-1])):
        found = compared(tmp_path / names[0], *models)
        linked = [(pair.a, pair.b) for pair in found.towers if pair.verdict.log10_p < -6]
        assert linked == [names]
        assert found.verdict.relation == "partial"
        assert VerdictReason.TOWERS_SHARED in found.verdict.reasons


@pytest.mark.parametrize("first", [9, pytest.param(7, marks=pytest.mark.slow)])
def test_each_of_two_towers_for_pictures_may_be_taken_over(tmp_path: Path, first: int) -> None:
    """One of another width would not meet it; the second is not the one that is configured."""
    both = llava(1, first) | vision(8, "vision_tower.second.")
    other = llava(2, 9) | vision(8, "vision_tower.second.")
    found = compared(tmp_path, (both, LLAVA), (other, LLAVA))
    linked = {(pair.a, pair.b) for pair in found.towers if pair.verdict.log10_p < -6}
    second = ("vision_tower.vision_model",) * 2
    assert linked == {("vision", "vision"), second} if first == 9 else {("vision", "vision")}
    assert len(found.towers) == 4


def test_towers_of_strangers_are_told_apart(tmp_path: Path) -> None:
    found = compared(tmp_path, (llava(1, 8), LLAVA), (llava(2, 9), LLAVA))
    assert found.verdict.relation == "no-evidence"
    assert [(pair.a, pair.b) for pair in found.towers] == [("vision", "vision")]


def test_what_meets_pays_for_all_that_meets(tmp_path: Path) -> None:
    """Shares of the error follow from the headers, whatever the weights are."""
    found = compared(tmp_path, (t5(1, 2), T5), (t5(3, 4), T5))
    meeting = {("decoder", "decoder")} | {(pair.a, pair.b) for pair in found.towers}
    assert meeting == {(a, b) for a in ("decoder", "encoder") for b in ("decoder", "encoder")}
    assert {pair.charge.stage for pair in found.towers} == {found.charge.stage} == {1 / 4}


def test_towers_of_other_shapes_do_not_meet(tmp_path: Path) -> None:
    found = compared(tmp_path, (vision(9), VISION), (llama(1), LLAMA))
    assert not found.towers and found.charge.stage == 1.0


def test_a_model_is_the_same_only_if_all_its_towers_are(tmp_path: Path) -> None:
    one = llava(1, 9)
    buffer = "language_model.model.layers.0.self_attn.rotary_emb.inv_freq"
    other = one | {buffer: np.ones(8, np.float32)}
    found = compared(tmp_path / "a", (one, LLAVA), (other, LLAVA))
    assert found.verdict.relation == "same-weights"  # one more tensor, which nobody reads
    assert "belong to no part" in found.notes[-1].say()
    with Fetcher() as fetcher:
        names = [str(tmp_path / "a" / place) for place in "01"]
        (pair,) = compare_all(names, fetcher, Settings()).pairs
    assert pair.verdict.relation == "same-weights"
    (tmp_path / "a/1/consolidated.safetensors").write_bytes(b"another set")
    with Fetcher() as fetcher:
        notes = compare_models(names[0], names[1], fetcher, Settings(), details=False).notes
    assert any("consolidated.safetensors" in note.say() for note in notes)
    name = "vision_tower.vision_model.encoder.layers.1.mlp.fc1.weight"
    other[name] = other[name] + np.float32(1)
    found = compared(tmp_path / "b", (one, LLAVA), (other, LLAVA))
    assert found.verdict.relation not in ("identical", "no-evidence")


@pytest.mark.parametrize("name", ["classification_head.dense.weight", "shared.weight"])
def test_what_stands_in_neither_stack_counts_too(tmp_path: Path, name: str) -> None:
    """A head for a task, and a second table beside that of the decoder."""
    one = t5(1, 2)
    if name in one:
        one["decoder.embed_tokens.weight"] = one[name]
    chance = np.random.default_rng(3)
    drawn = [chance.normal(size=one["shared.weight"].shape).astype(np.float32) for _ in range(2)]
    first, second = (one | {name: rows} for rows in drawn)
    found = compared(tmp_path / "other", (first, T5), (second, T5))
    assert found.verdict.relation == "derived" and not found.notes
    (spare,) = (one for one in found.verdict.parts if not one.state.linked)
    assert spare.part.component is Component.OTHER and spare.weights == drawn[0].size
    found = compared(tmp_path / "same", (first, T5), (dict(first), T5))
    assert found.verdict.relation == "identical"


def test_a_table_that_is_written_again_counts_once(tmp_path: Path) -> None:
    one = t5(1, 2)
    again = one | {"decoder.embed_tokens.weight": one["shared.weight"]}
    for at, models in enumerate(((one, again), (again, one))):
        found = compared(tmp_path / str(at), *((tensors, T5) for tensors in models))
        assert found.verdict.relation == "same-weights"


def test_towers_in_a_matrix(tmp_path: Path) -> None:
    models = [(llava(1, 9), LLAVA), (llava(2, 9), LLAVA), (llava(3, 8), LLAVA)]
    names = [stored(tmp_path / str(at), *model) for at, model in enumerate(models)]
    with Fetcher() as fetcher:
        found = compare_all(names, fetcher, Settings())
    relations = {(pair.a, pair.b): pair.verdict.relation for pair in found.pairs}
    assert relations == {(0, 1): "partial", (0, 2): "no-evidence", (1, 2): "no-evidence"}
    assert [[record.tower for record in towers] for towers in found.read] == [["", "vision"]] * 3


def test_layers_that_draft_further_tokens_are_a_tower(tmp_path: Path, fetcher: Fetcher) -> None:
    joined = {"model.layers.6.eh_proj.weight": np.ones((WIDTH, 2 * WIDTH), np.float32)}
    name = stored(tmp_path / "a", llama(layers=7) | joined, LLAMA)
    main, draft = sampled([name], fetcher).towers(0)[0]
    assert (main.tower, draft.tower) == ("", "mtp")
    assert set(draft.units) == set(draft.attention) == {6} and 6 not in main.units
    assert Part(Component.FEED_FORWARD, 6, None, "mtp") in draft.parts


@pytest.mark.parametrize("stated", [1, LAYERS])
@pytest.mark.parametrize("first", [0, 1, LAYERS])
def test_layers_are_what_tensors_say(tmp_path: Path, stated: int, first: int) -> None:
    """Neither a configuration nor other numbers hide equal layers."""
    one, other = llama(1), llama(2)
    for name in list(other):
        if ".layers." in name:
            del other[name]
    for name, values in one.items():
        if ".layers." in name:
            head, number, rest = re.split(r"(?<=layers)\.(\d+)\.", name)
            other[f"{head}.{first + int(number)}.{rest}"] = values
    config = LLAMA | {"num_hidden_layers": stated}
    found = compared(tmp_path, (one, LLAMA), (other, config))
    states = {
        one.part.layer: one.state for one in found.verdict.parts if one.part.layer is not None
    }
    assert states == dict.fromkeys(range(LAYERS), PartState.EQUAL)
    assert found.verdict.relation == "derived" and not found.towers


def test_the_main_tower_keeps_most_of_a_budget(tmp_path: Path, fetcher: Fetcher) -> None:
    name = stored(tmp_path / "a", llava(1, 2), LLAVA)
    sampler = sampled([name], fetcher, budget=550_000)
    _, other = sampler.models[0]
    assert sampler.whole == (False,)
    assert 0 < other.plan.bytes <= 150_000 and sampler.bytes <= 550_000
    assert final(sampler)[0].units and sampler.towers(1)[0][1].units


@pytest.mark.parametrize("gated", [False, True])
def test_feed_forwards_of_diffusion_transformers_are_tested(tmp_path: Path, gated: bool) -> None:
    """Copied they are equal; with units renumbered they are found."""
    names = [diffusion(tmp_path / str(at), at, gated) for at in (1, 2)]
    equal, renumbered = (
        diffusion(tmp_path / f"taken {shuffled}", 2, gated, 1, shuffled)
        for shuffled in (False, True)
    )
    found = {}
    with Fetcher() as fetcher:
        for other in (names[1], equal, renumbered):
            found[other] = compare_models(
                names[0], other, fetcher, Settings(), details=False
            ).verdict
    assert found[names[1]].relation == "no-evidence"
    for other, state in ((equal, PartState.EQUAL), (renumbered, PartState.SHARED)):
        states = {one.part.component: one.state for one in found[other].parts}
        assert states[Component.FEED_FORWARD] is state


def test_models_of_a_pipeline_are_towers(tmp_path: Path) -> None:
    """A text encoder that two pipelines share is found; convolutions are named as untested."""
    names = [pipeline(tmp_path / str(at), at, 9) for at in (1, 2)]
    with Fetcher() as fetcher:
        found = compare_models(names[0], names[1], fetcher, Settings(), details=False)
    assert ("text_encoder", "text_encoder") in [(pair.a, pair.b) for pair in found.towers]
    assert found.verdict.relation == "partial"
    assert {note.key for note in found.notes} == {"note.untested-tower"}
    assert all("vae" in str(note) for note in found.notes)
    strangers = [pipeline(tmp_path / str(at), at, at) for at in (3, 4)]
    with Fetcher() as fetcher:
        found = compare_models(strangers[0], strangers[1], fetcher, Settings(), details=False)
    assert found.verdict.relation in ("no-evidence", "untestable")
    with Fetcher() as fetcher:
        alone = compare_models(
            f"{names[0]}/text_encoder", names[1], fetcher, Settings(), details=False
        )
    assert alone.verdict.relation in ("partial", "derived")
