"""Levels keep their word: no more is read than was said, whatever the models are."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from kinprint.errors import BudgetExceeded
from kinprint.lineage.compare import compare_models
from kinprint.lineage.reading.headers import open_with_few_headers
from kinprint.lineage.reading.levels import level_plan, spread_layers
from kinprint.lineage.reading.sampler import Sampler
from kinprint.lineage.results import Settings
from kinprint.mirror import MirrorServer
from kinprint.reader.checkpoint import open_checkpoint
from kinprint.reader.fetch import Fetcher
from kinprint.records import Level, Relation
from tests.lineage.stored_models import LLAMA, Array, llama, mixture, stored
from tests.lineage.towered_models import LLAVA, llava, vision

BUDGETS = (None, 300_000, 700_000, 1_500_000, 4_000_000)


def words(folder: Path, seed: int, count: int) -> None:
    """A tokenizer whose numbers are dealt at random, so that tokens of two models lie apart."""
    numbers = np.random.default_rng(seed).permutation(count).tolist()
    vocabulary = {f"word{at}": number for at, number in enumerate(numbers)}
    told = {"model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "word0"}}
    (folder / "tokenizer.json").write_text(json.dumps(told))


def wide(folder: Path, seed: int) -> None:
    """A model with a large embedding and a head of its own, and a card."""
    config = LLAMA | {"hidden_size": 256, "vocab_size": 6000, "tie_word_embeddings": False}
    raw = llama(seed, width=256, units=192)
    chance = np.random.default_rng(seed)
    for name in ("model.embed_tokens.weight", "lm_head.weight"):
        raw[name] = chance.normal(size=(6000, 256)).astype(np.float32)
    stored(folder, raw, config)
    words(folder, seed, 6000)
    (folder / "README.md").write_text("---\nlicense: mit\n---\n" + "words " * 9000)


def fourteen_layers(seed: int) -> dict[str, Array]:
    return llama(seed, width=192, units=256, layers=14)


def layer_of(name: str) -> int:
    """The layer of a tensor, counted from one; what is in none comes first."""
    return int(name.split(".")[2]) + 1 if ".layers." in name else 0


def by_layer(seed: int) -> list[dict[str, Array]]:
    """Its tensors, those of one layer together."""
    parts: list[dict[str, Array]] = [{} for _ in range(15)]
    for name, values in fourteen_layers(seed).items():
        parts[layer_of(name)][name] = values
    return parts


def sharded(folder: Path, seed: int) -> None:
    """A model in many shards, with an index."""
    in_shards(folder, by_layer(seed))


def in_shards(folder: Path, parts: Sequence[Mapping[str, Array]]) -> None:
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(
        json.dumps(LLAMA | {"hidden_size": 192, "num_hidden_layers": 14})
    )
    names = [f"model-{at + 1:05}-of-{len(parts):05}.safetensors" for at in range(len(parts))]
    for name, part in zip(names, parts, strict=True):
        save_file(dict(part), folder / name)
    index: dict[str, Any] = {
        "metadata": {},
        "weight_map": {key: name for name, part in zip(names, parts, strict=True) for key in part},
    }
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def with_long_headers(parts: Sequence[dict[str, Array]]) -> Sequence[dict[str, Array]]:
    """Names of a thousand letters make them as long as those of a large mixture of experts."""
    rare = np.zeros(16, np.float32)
    for at, part in enumerate(parts):
        part.update({f"layers.{at}.{row}.{'x' * 900}": rare for row in range(250)})
    return parts


@pytest.mark.parametrize(
    ("count", "order"),
    [
        (15, layer_of),
        (100, layer_of),
        (15, str),
        (100, str),
        (40, lambda name: name[::-1]),
        (15, lambda name: ("norm" in name, layer_of(name))),
    ],
)
def test_a_quick_look_reads_the_same_norms_however_a_model_was_cut(
    tmp_path: Path, count: int, order: Callable[[str], Any]
) -> None:
    """Layers lie in the order that a writer chose, in one file each or in seven."""
    names = ("whole", "cut")
    for name in names:
        raw = fourteen_layers(1)
        ordered = sorted(raw, key=order)
        ends = [len(raw) * at // count for at in range(count + 1)] if name == "cut" else [0, None]
        parts = [{key: raw[key] for key in ordered[low:high]} for low, high in pairwise(ends)]
        in_shards(tmp_path / name, parts)
    with Fetcher() as fetcher:
        models = [open_checkpoint(str(tmp_path / name), fetcher) for name in names]
        whole, cut = open_with_few_headers(models, level_plan(Level.QUICK))
    norms = [{name for name in model.weights if "norm" in name} for model in (whole, cut)]
    read = {f"layers.{layer}." for layer in spread_layers(14, level_plan(Level.QUICK).layers)}
    wanted = {name for name in norms[0] if any(layer in name for layer in read)}
    assert len(wanted) == 2 * len(read) and wanted <= norms[1]


@pytest.mark.parametrize("said", [{}, {"num_nextn_predict_layers": 1000}])
def test_a_configuration_hides_no_layers_in_many_shards(
    tmp_path: Path, said: dict[str, int]
) -> None:
    whole, fewer = tmp_path / "whole", tmp_path / "fewer"
    sharded(whole, 1)
    sharded(fewer, 2)
    config = json.loads((fewer / "config.json").read_text()) | {"num_hidden_layers": 2}
    (fewer / "config.json").write_text(json.dumps(config | said))
    with Fetcher() as fetcher:
        found = compare_models(str(whole), str(fewer), fetcher, Settings(Level.QUICK))
        models = [open_checkpoint(str(fewer), fetcher, indexed=False)]
        open_with_few_headers(models, level_plan(Level.QUICK))
    partners = [one.partner.layer for one in found.verdict.parts if one.partner is not None]
    assert max(layer for layer in partners if layer is not None) > 2 and not found.towers
    assert models[0].complete


def test_headers_that_a_level_does_not_allow_are_left_unread(
    tmp_path: Path, make_mirror: Callable[..., MirrorServer]
) -> None:
    """Also where all would be needed to look for equal tensors, since nothing can be tested."""
    for seed in (1, 2):
        folder = tmp_path / "made" / f"model-{seed}"
        in_shards(folder, with_long_headers(by_layer(seed)))
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps(config | {"model_type": "odd"}))
    server = make_mirror(tmp_path)
    with Fetcher() as fetcher:
        found = compare_models("made/model-1", "made/model-2", fetcher, Settings(Level.QUICK))
    assert found.verdict.relation is Relation.UNTESTABLE
    assert server.stats.body_bytes <= found.limit < 4_000_000


def test_a_billion_layers_are_not_believed(tmp_path: Path) -> None:
    in_shards(tmp_path / "deep", with_long_headers(by_layer(1)))
    config = LLAMA | {"hidden_size": 192, "num_hidden_layers": 10**9}
    (tmp_path / "deep/config.json").write_text(json.dumps(config))
    with Fetcher() as fetcher:
        checkpoint = open_checkpoint(str(tmp_path / "deep"), fetcher, indexed=False)
        open_with_few_headers([checkpoint], level_plan(Level.QUICK))
    assert checkpoint.complete


@pytest.mark.parametrize("kept", [(), (8,)])
def test_layers_that_lack_norms_are_no_reason_to_read_all_headers_where_layers_lie_together(
    tmp_path: Path, kept: Sequence[int]
) -> None:
    """Some layers of a hybrid have one norm, and norms may have names that nobody knows."""
    dropped = "post_attention_layernorm" if kept else "layernorm"
    parts = [
        {
            name: one
            for name, one in part.items()
            if dropped not in name or layer_of(name) - 1 in kept
        }
        for part in by_layer(1)
    ]
    in_shards(tmp_path / "hybrid", parts)
    with Fetcher() as fetcher:
        checkpoint = open_checkpoint(str(tmp_path / "hybrid"), fetcher, indexed=False)
        open_with_few_headers([checkpoint], level_plan(Level.QUICK))
    assert not checkpoint.complete


def test_layers_of_a_tower_for_pictures_do_not_stand_for_those_of_the_text(tmp_path: Path) -> None:
    parts = [
        {name.replace("model.", "language_model.model.", 1): one for name, one in part.items()}
        for part in by_layer(1)
    ]
    pictures = vision(2, "vision_tower.vision_model.")
    parts.append(
        {re.sub(r"(?<=layers\.)\d+", _times_four, name): one for name, one in pictures.items()}
    )
    config = LLAVA | {"text_config": LLAMA | {"hidden_size": 192, "num_hidden_layers": 14}}
    in_shards(tmp_path / "both", parts)
    (tmp_path / "both/config.json").write_text(json.dumps(config))
    with Fetcher() as fetcher:
        checkpoint = open_checkpoint(str(tmp_path / "both"), fetcher, indexed=False)
        (model,) = open_with_few_headers([checkpoint], level_plan(Level.QUICK))
    found = {one.layer for one in model.places if one.role == "norm_post_attn" and not one.tower}
    assert {0, 4, 8, 12} <= found and not checkpoint.complete


def _times_four(number: re.Match[str]) -> str:
    return str(4 * int(number[0]))


def test_layers_of_absurd_numbers_are_none(tmp_path: Path) -> None:
    """Names come from strangers; what is no layer's is left out of the guess where layers lie."""
    parts: list[dict[str, Array]] = [
        {
            f"model.layers.{10**900 + at}.mlp.experts.0.up_proj.weight": np.zeros((64, 64), "f4"),
            f"padding{at}": np.zeros((300, 192), "f4"),
        }
        for at in range(15)
    ]
    in_shards(tmp_path / "odd", parts)
    with Fetcher() as fetcher:
        models = [open_checkpoint(str(tmp_path / "odd"), fetcher)]
        (odd,) = open_with_few_headers(models, level_plan(Level.QUICK))
    assert not odd.stacks


@pytest.mark.parametrize(("limit", "cut"), [(1_200_000, True), (None, False)])
def test_a_limit_holds_for_headers_and_what_it_left_out_is_said(
    tmp_path: Path, limit: int | None, cut: bool
) -> None:
    in_shards(tmp_path / "long", with_long_headers(by_layer(1)))
    with Fetcher() as fetcher:
        checkpoint = open_checkpoint(str(tmp_path / "long"), fetcher, indexed=False)
        (model,) = open_with_few_headers([checkpoint], level_plan(Level.QUICK), limit=limit)
        said = [one.key for one in Sampler([model], Level.QUICK, limit).left_out]
    assert model.cut_short == cut == ("note.left-out.whole" in said)
    assert checkpoint.known_bytes <= (limit or 2_000_000)


def experts(folder: Path, seed: int) -> None:
    raw, config = mixture(8)
    stored(folder, {name: values + np.float32(seed) for name, values in raw.items()}, config)


def towers(folder: Path, seed: int) -> None:
    stored(folder, llava(seed, seed + 50), LLAVA)


ASKED = [
    (make, level)
    for make in (wide, sharded, experts, towers)
    for level in ("quick", "standard", "deep")
]


@pytest.mark.parametrize(
    ("make", "level"), [one for one in ASKED if one[1] != "deep" or one[0] in (experts, towers)]
)
def test_no_more_is_read_than_was_said(
    tmp_path: Path,
    make_mirror: Callable[..., MirrorServer],
    make: Callable[[Path, int], None],
    level: str,
) -> None:
    read_within((None, 300_000), tmp_path, make_mirror, make, level)


@pytest.mark.slow
@pytest.mark.parametrize(("make", "level"), ASKED)
def test_no_more_is_read_within_any_budget(
    tmp_path: Path,
    make_mirror: Callable[..., MirrorServer],
    make: Callable[[Path, int], None],
    level: str,
) -> None:
    read_within(BUDGETS, tmp_path, make_mirror, make, level)


def read_within(
    budgets: Sequence[int | None],
    tmp_path: Path,
    make_mirror: Callable[..., MirrorServer],
    make: Callable[[Path, int], None],
    level: str,
) -> None:
    """What the server counted is within the plan, and within the budget where there is one."""
    for seed in (1, 2):
        make(tmp_path / "made" / f"model-{seed}", seed)
    for budget in budgets:
        server = make_mirror(tmp_path)  # a new one, since a comparison that fails leaves requests
        with Fetcher(budget=budget) as fetcher:
            try:
                settings = Settings(level, budget=budget)
                models = "made/model-1", "made/model-2"
                found = compare_models(*models, fetcher, settings, details=False)
            except BudgetExceeded:  # headers alone may be longer; nothing was read beyond it
                assert budget is not None and server.stats.storage_body_bytes <= budget
                continue
        counted = server.stats.body_bytes
        assert counted <= found.limit
        assert budget is None or found.limit <= budget
