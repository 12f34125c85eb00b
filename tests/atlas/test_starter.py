"""The starter atlas: it comes with the tests, can be made again, pulled and searched."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
from msgspec.structs import replace

import kinprint
from kinprint.atlas.store import Atlas
from kinprint.mirror.loopback import loopback_hub
from tests.conftest import DEMO
from tools.starter_atlas import MODELS, PLACE, make


def test_it_can_be_made_again(tmp_path: Path) -> None:
    (again,) = make(tmp_path, MODELS[:1])
    assert again.error is None
    made = Atlas(str(tmp_path)).read(again.id)
    (kept,) = [
        one for one in map(Atlas(str(PLACE)).read, Atlas(str(PLACE)).names()) if one.ref == made.ref
    ]
    assert replace(kept, towers=()) == replace(made, towers=())
    for ours, theirs in zip(kept.towers, made.towers, strict=True):  # sums of floats
        for one, other in ((ours.first, theirs.first), (ours.second, theirs.second)):
            assert np.abs(one.astype(int) - other.astype(int)).max() <= 1


def test_a_published_one_is_pulled_and_says_what_a_model_is_built_on(tmp_path: Path) -> None:
    published = tmp_path / "hub" / "org" / "starter"
    shutil.copytree(PLACE, published)
    (published / "config.json").write_text("{}")  # the mirror takes it for a model
    own = kinprint.Atlas(tmp_path / "own")
    with loopback_hub(tmp_path / "hub"):
        assert own.pull("hf://org/starter") == (2, ())
        assert own.pull("hf://org/starter") == (0, ())
    assert [one.name for one in own.entries()] == list(MODELS)
    found = kinprint.identify(DEMO / "zoo" / "a-rotated", atlas=own.place)
    assert [one.name for one in found.parents] == ["zoo/base-a"]


def test_it_stays_small() -> None:
    assert sum(file.stat().st_size for file in PLACE.rglob("*.parquet")) < 6e6
