"""How a model is cut into files: what is found does not depend on it, and what was not opened is
not taken for missing."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import kinprint
from kinprint.lineage.opening import open_all, read_headers
from kinprint.lineage.results import Settings
from kinprint.mirror import MirrorServer
from kinprint.reader.fetch import Fetcher
from kinprint.records import Level
from kinprint.report.results.comparison import Comparison
from tests.fewer_layers import short_zoo
from tests.lineage.stored_models import LLAMA, Array, final, llama, mixture, sampled

SIZES = {"layers": 24, "width": 128, "units": 512}
CONFIG = LLAMA | {"num_hidden_layers": 24, "hidden_size": 128, "intermediate_size": 512}


def cut(folder: Path, tensors: dict[str, Array], files: int, config: dict[str, Any]) -> Path:
    """A model in so many files of about as many tensors, the first tensors first."""
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config))
    for at, names in enumerate(np.array_split(np.array(list(tensors), object), files), 1):
        file = folder / f"model-{at:05}-of-{files:05}.safetensors"
        save_file({name: tensors[name] for name in names}, file)
    return folder


def moved(tensors: dict[str, Array], by: float) -> dict[str, Array]:
    """The same after some training: matrices move by a part of their size."""
    chance = np.random.default_rng(7)
    return {
        name: one + np.float32(by * one.std()) * chance.normal(size=one.shape).astype(np.float32)
        for name, one in tensors.items()
    }


def found(result: Comparison) -> tuple[Any, ...]:
    """What a comparison says, but for names and costs."""
    verdict = result.to_dict()["verdict"]
    return verdict["relation"], verdict["link"]["log10_p"], verdict["parts"]


@pytest.mark.parametrize("files", [13, pytest.param(40, marks=pytest.mark.slow)])
def test_a_model_that_is_read_whole_is_the_same_in_many_files(tmp_path: Path, files: int) -> None:
    a, b = short_zoo() / "base-a", short_zoo() / "a-cpt"
    raw = load_file(b / "model.safetensors")
    config = json.loads((b / "config.json").read_text())
    many = cut(tmp_path / "a-cpt", dict(reversed(raw.items())), files, config)
    shutil.copy(b / "tokenizer.json", many)
    assert found(kinprint.compare(a, many)) == found(kinprint.compare(a, b))


def test_weights_that_came_with_headers_are_not_paid_again(
    tmp_path: Path, make_mirror: Callable[..., MirrorServer]
) -> None:
    """First reads of many short files bring most of them."""
    raw = llama(layers=6, width=128, units=512)
    make_mirror(tmp_path)
    costs = []
    for files in (1, 26):
        name = f"anyone/in-{files}"
        cut(tmp_path / name, raw, files, CONFIG | {"num_hidden_layers": 6})
        with Fetcher() as fetcher:
            costs.append(sampled([name] * 2, fetcher).bytes)
        with Fetcher(budget=costs[-1]) as fetcher:
            sampler = sampled([name] * 2, fetcher, budget=costs[-1])
            final(sampler)
            assert all(sampler.whole)
            assert fetcher.spent.bytes <= sampler.bytes
    assert costs[1] < 1.01 * costs[0]


@pytest.mark.parametrize(
    ("swapped", "files"),
    [
        (False, 40),
        (True, 13),
        pytest.param(False, 13, marks=pytest.mark.slow),
        pytest.param(True, 40, marks=pytest.mark.slow),
    ],
)
def test_what_lies_in_files_that_were_not_opened_is_not_missing(
    tmp_path: Path, files: int, swapped: bool
) -> None:
    raw = llama(**SIZES)
    whole = cut(tmp_path / "whole", raw, 1, CONFIG)
    many = cut(tmp_path / "many", moved(raw, 0.05), files, CONFIG)
    result = kinprint.compare(*((many, whole) if swapped else (whole, many)))
    assert result.relation == "derived"
    verdict = result.to_dict()["verdict"]
    reasons = {part["reason"] for part in verdict["parts"]} - {""}
    assert reasons == {
        "it was not read in both models",
        "the answer was clear after stage 1 of 2",
    }
    assert verdict["coverage"]["read"] < 0.01
    assert result.to_dict()["notes"] == []


def test_a_model_that_lacks_a_file_is_not_called_identical(tmp_path: Path) -> None:
    raw, config = llama(layers=2), LLAMA | {"num_hidden_layers": 2}
    folder = cut(tmp_path / "many", raw, 3, config)
    named = {name: path.name for path in folder.glob("*.safetensors") for name in load_file(path)}
    index = json.dumps({"weight_map": {**named, "x.weight": "gone.safetensors"}})
    (folder / "model.safetensors.index.json").write_text(index)
    for files in (1, 3):  # three are equal files
        whole = cut(tmp_path / f"{files}", raw, files, config)
        found = kinprint.compare(folder, whole, level="deep", details=False)
        assert found.relation is kinprint.Relation.SAME_WEIGHTS
        assert any("gone.safetensors" in note for note in found.to_dict()["notes"])


@pytest.mark.parametrize("level", [Level.QUICK, Level.STANDARD])
def test_an_index_that_must_be_read_is_no_reason_to_open_all_files(
    tmp_path: Path, level: Level
) -> None:
    raw = llama(**SIZES)
    folder = cut(tmp_path / "many", raw, 40, CONFIG)
    named = {name: path.name for path in folder.glob("*.safetensors") for name in load_file(path)}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": named}))
    save_file(raw, folder / "consolidated.safetensors")
    settings = Settings(level=level)
    with Fetcher() as fetcher:
        (opened,) = models = open_all([str(folder)], fetcher, settings)
        read_headers(models, settings)
        assert opened.index is not None and len(opened.shards) == 40 and not opened.complete


def test_layers_that_are_missing_are_told_of_where_all_files_were_opened(tmp_path: Path) -> None:
    raw = llama(**SIZES)
    short = {name: one for name, one in raw.items() if ".layers.23." not in name}
    models = [cut(tmp_path / str(files), short, files, CONFIG) for files in (1, 40)]
    (note,) = kinprint.compare(*models).to_dict()["notes"]
    assert note.endswith("/1: 23 layers contradict the configuration, which asks for 24")


def test_strangers_in_many_files_are_not_said_to_be_read_whole(tmp_path: Path) -> None:
    one = cut(tmp_path / "one", llama(1, **SIZES), 1, CONFIG)
    other = cut(tmp_path / "other", llama(2, **SIZES), 20, CONFIG)
    result = kinprint.compare(one, other)
    assert result.relation == "no-evidence"
    assert "All weights" not in result.to_dict()["verdict"]["statements"]["coverage"]


@pytest.mark.parametrize(
    ("dtype", "seed"),
    [
        (np.float32, 0),
        (ml_dtypes.bfloat16, 1),
        pytest.param(np.float32, 1, marks=pytest.mark.slow),
        pytest.param(ml_dtypes.bfloat16, 0, marks=pytest.mark.slow),
    ],
)
def test_feed_forwards_whose_experts_were_not_read_do_not_count_as_others(
    demo: Path, tmp_path: Path, dtype: Any, seed: int
) -> None:
    raw = {
        name: one.astype(np.float32)
        for name, one in load_file(demo / "zoo/base-a/model.safetensors").items()
    }
    config = json.loads((demo / "zoo/base-a/config.json").read_text())
    experts = {name: one for name, one in raw.items() if ".mlp." not in name}
    chance = np.random.default_rng(3)
    for layer in range(6):
        root = f"model.layers.{layer}"
        experts[f"{root}.block_sparse_moe.gate.weight"] = chance.normal(size=(4, 128)).astype("f4")
        for expert in range(4):
            for ours, theirs in (("gate", "w1"), ("down", "w2"), ("up", "w3")):
                name = f"{root}.block_sparse_moe.experts.{expert}.{theirs}.weight"
                experts[name] = raw[f"{root}.mlp.{ours}_proj.weight"]
    mixed = config | {"model_type": "mixtral", "architectures": ["MixtralForCausalLM"]}
    mixed |= {"num_local_experts": 4, "num_experts_per_tok": 2}
    models = [
        cut(tmp_path / name, {key: one.astype(dtype) for key, one in own.items()}, 1, said)
        for name, own, said in (("dense", raw, config), ("experts", moved(experts, 0.1), mixed))
    ]
    result = kinprint.compare(*models, budget="2.4MB", seed=seed)
    assert result.relation == "derived"


def test_the_share_that_was_read_counts_experts_that_no_header_told_of(tmp_path: Path) -> None:
    raw, config = mixture(24)
    models = [
        cut(tmp_path / name, some, 12, config)
        for name, some in (("one", raw), ("other", moved(raw, 0.05)))
    ]
    result = kinprint.compare(*models, level="quick").to_dict()
    told = result["verdict"]["coverage"]["read"]
    assert 0 < told < 1.1 * max(one["read"] / one["bytes"] for one in result["models"])


def test_what_lies_outside_the_layers_is_found_in_the_last_file(tmp_path: Path) -> None:
    models = []
    for seed in (1, 2):
        raw = llama(seed, **SIZES)
        table = raw.pop("model.embed_tokens.weight")
        raw |= {"model.embed_tokens.weight": table}
        models.append(cut(tmp_path / str(seed), raw, 40, CONFIG))
    parts = kinprint.compare(*models).to_dict()["verdict"]["parts"]
    (embedding,) = (one for one in parts if one["component"] == "embedding")
    assert embedding["state"] == "not-comparable"


def test_a_model_of_which_little_was_read_beside_a_whole_one(tmp_path: Path) -> None:
    raw = llama(**SIZES)
    short = {name: one.astype(ml_dtypes.bfloat16) for name, one in raw.items()}
    short["lm_head.weight"] = short["model.embed_tokens.weight"][::-1].copy()  # one part more
    models = [cut(tmp_path / "short", short, 1, CONFIG), cut(tmp_path / "long", raw, 1, CONFIG)]
    verdict = kinprint.compare(*models).to_dict()["verdict"]
    assert verdict["coverage"]["read"] < 0.5
