"""Keys: of fixed length, alike where models are, whatever was renamed or turned."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from kinprint.atlas.fingerprint import fingerprint
from kinprint.atlas.keys import FIRST, SECOND, SKETCHES, TowerKeys, likeness
from kinprint.atlas.search import nearest, second_likeness
from kinprint.atlas.store import Index, index_schema
from kinprint.reader.fetch import Fetcher
from tests.conftest import DEMO
from tests.lineage.stored_models import llama, stored
from tests.lineage.towered_models import LLAVA, llava


@cache
def keys_of(model: Path | str) -> tuple[TowerKeys, ...]:
    with Fetcher() as fetcher:
        return fingerprint(str(model), fetcher).towers


def demo(name: str) -> TowerKeys:
    (key,) = keys_of(DEMO / "zoo" / name)
    return key


def alike(one: TowerKeys, other: TowerKeys) -> dict[str, float]:
    (found,) = likeness(one.second, other.second[None], SECOND)
    return dict(zip(SKETCHES, map(float, found), strict=True))


def test_lengths_are_those_that_were_promised(tmp_path: Path) -> None:
    wide = keys_of(stored(tmp_path, llama(width=96, layers=3)))
    for key in (*wide, demo("base-a")):
        assert (key.first.nbytes, key.second.nbytes) == (512, 16 * 1024)
    assert (sum(FIRST), sum(SECOND)) == (512, 16 * 1024)


def test_descendants_are_alike_and_strangers_are_not() -> None:
    child, stranger = (alike(demo("base-a"), demo(name)) for name in ("a-cpt", "base-b"))
    for sketch in ("rows", "tokens", "gains"):
        assert child[sketch] > 0.6
        assert abs(stranger[sketch]) < 0.1


def test_products_of_tokens_see_through_a_turn_of_the_stream() -> None:
    turned = alike(demo("base-a"), demo("a-rotated"))
    assert abs(turned["rows"]) < 0.1 and abs(turned["tokens"]) < 0.1
    assert turned["gram"] > 0.95
    assert turned["gram"] > alike(demo("base-a"), demo("base-b"))["gram"] + 0.05


def test_the_turned_copy_ranks_before_the_stranger() -> None:
    one, turned, stranger = (demo(name) for name in ("base-a", "a-rotated", "base-b"))
    assert second_likeness([one], [turned]) > second_likeness([one], [stranger]) + 0.2


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("name", ["q_proj", "o_proj"])
def test_a_number_that_is_none_spoils_no_key(tmp_path: Path, name: str, value: float) -> None:
    tensors = llama(layers=2)
    tensors[f"model.layers.0.self_attn.{name}.weight"][1, 1] = value
    (whole,) = keys_of(stored(tmp_path / "whole", llama(layers=2)))
    (broken,) = keys_of(stored(tmp_path / "broken", tensors))
    assert alike(whole, broken)["gains"] > 0.99


def test_every_tower_has_a_key(tmp_path: Path) -> None:
    one, other = (keys_of(stored(tmp_path / str(at), llava(at, 9), LLAVA)) for at in (1, 2))
    assert [key.tower for key in one] == ["", "vision"]
    assert second_likeness(one, other) > 0.9  # by the tower that they share


@pytest.mark.parametrize("count", [50, 5000])
def test_planted_relatives_are_found(count: int) -> None:
    chance = np.random.default_rng(count)
    keys = np.clip(chance.normal(0, 40, (count, sum(FIRST))), -127, 127).astype(np.int8)
    at = np.arange(count)
    index = Index(pa.Table.from_pylist([], schema=index_schema()), at, at, keys)
    for number in chance.choice(count, 20, replace=False):
        child = 0.7 * keys[number] + 0.7 * chance.normal(0, 40, sum(FIRST))
        key = TowerKeys("", 1, 1, np.clip(child, -127, 127).astype(np.int8), keys[0])
        assert nearest([key], index, 5)[0] == number


def test_who_is_no_candidate_is_not_ranked() -> None:
    keys = np.ones((3, sum(FIRST)), np.int8)
    at = np.arange(3)
    index = Index(pa.Table.from_pylist([], schema=index_schema()), at, at, keys)
    key = TowerKeys("", 1, 1, keys[0], keys[0])
    assert nearest([key], index, 3, np.array([False, True, False])).tolist() == [1]
