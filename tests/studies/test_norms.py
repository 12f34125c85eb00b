"""Norm vectors of the zoo: what raw cosine cannot tell and Pearson can."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import pytest
from safetensors.numpy import load_file, save_file

from kinprint.mirror import MirrorServer
from kinprint.model.opened import open_models
from kinprint.reader.checkpoint import open_checkpoints
from kinprint.reader.fetch import Fetcher
from kinprint.studies.norms import NormComparison, compare_norms

ZOO = Path(__file__).resolve().parents[2].parent / "shared" / "zoo"


@pytest.fixture
def fetcher() -> Iterator[Fetcher]:
    with Fetcher() as made:
        yield made


def compare(fetcher: Fetcher, a: str, b: str) -> NormComparison:
    one, other = open_models(open_checkpoints([a, b], fetcher))
    return compare_norms(one, other)


def test_a_descendant_and_a_stranger(mirror: MirrorServer, fetcher: Fetcher) -> None:
    child = compare(fetcher, "zoo/base-a", "zoo/a-cpt")
    stranger = compare(fetcher, "zoo/base-a", "zoo/base-b")
    assert len(child.rows) == len(stranger.rows) == 13
    assert child.mean_cosine > 0.99
    assert stranger.mean_cosine > 0.99
    assert child.mean_pearson > 0.7
    assert abs(stranger.mean_pearson) < 0.1


def test_order_of_arguments_changes_nothing(mirror: MirrorServer, fetcher: Fetcher) -> None:
    there = compare(fetcher, "zoo/base-a", "zoo/base-b")
    back = compare(fetcher, "zoo/base-b", "zoo/base-a")
    values = {row.name: (row.cosine, row.pearson) for row in there.rows}
    assert values == {row.name: (row.cosine, row.pearson) for row in back.rows}


def test_the_same_norms_under_other_names(demo: Path, tmp_path: Path, fetcher: Fetcher) -> None:
    """InternLM2 calls them attention_norm and ffn_norm; a comparison must not lose it."""
    folder = demo / "zoo/base-a"
    tensors = load_file(folder / "model.safetensors")
    renamed = {
        name.replace("input_layernorm", "attention_norm").replace(
            "post_attention_layernorm", "ffn_norm"
        ): array
        for name, array in tensors.items()
        if "norm" in name
    }
    save_file(renamed, tmp_path / "model.safetensors")
    config = json.loads((folder / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "model_type": "internlm2"}))
    found = compare(fetcher, str(folder), str(tmp_path))
    assert len(found.rows) == 13 and not found.skipped
    assert found.mean_pearson == pytest.approx(1)


@pytest.mark.zoo
@pytest.mark.skipif(not ZOO.is_dir(), reason="the whole zoo is not beside this checkout")
def test_all_unrelated_bases_have_a_raw_cosine_near_one(fetcher: Fetcher) -> None:
    names = ["base-a", "base-b", "base-d", "base-g"]
    for a, b in combinations(names, 2):
        found = compare(fetcher, str(ZOO / a), str(ZOO / b))
        assert found.mean_cosine > 0.99
        assert abs(found.mean_pearson) < 0.15
