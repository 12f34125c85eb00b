"""Models whose tensors have names that nobody knows, compared by shape and content."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from kinprint.lineage.compare import compare_models
from kinprint.lineage.reading.levels import level_plan
from kinprint.lineage.results import Settings
from kinprint.mirror import MirrorServer
from kinprint.reader.cache import Cache
from kinprint.reader.fetch import Fetcher
from kinprint.records import (
    SINGLE,
    Component,
    Level,
    PartState,
    Reason,
    Relation,
    Verdict,
    VerdictReason,
)
from kinprint.report.statements import headline
from tests.lineage.stored_models import LLAMA, Array, llama, stored

NET = LLAMA | {"model_type": "net", "architectures": []}
MODEL = llama(1)
CHANGED = "model.layers.2.mlp.up_proj.weight"


def renamed(tensors: dict[str, Array], prefix: str = "t") -> dict[str, Array]:
    return {f"{prefix}_{at}": tensors[name] for at, name in enumerate(sorted(tensors))}


def verdict(folder: Path, ours: dict[str, Array], theirs: dict[str, Array], **how: Any) -> Verdict:
    names = [
        stored(folder / "ours", ours, NET if "t_0" in ours else LLAMA),
        stored(folder / "theirs", theirs, NET),
    ]
    with Fetcher() as fetcher:
        return compare_models(names[0], names[1], fetcher, Settings(**how), details=False).verdict


@pytest.mark.parametrize("level", ["quick", "standard"])
def test_parts_are_listed_by_the_names_that_are_known(tmp_path: Path, level: str) -> None:
    found = verdict(tmp_path, MODEL, renamed(MODEL), level=level)
    assert found.relation is Relation.SAME_WEIGHTS
    assert {one.state for one in found.parts} == {PartState.EQUAL}
    assert {one.part.component for one in found.parts} == {
        Component.EMBEDDING, Component.NORMS, Component.ATTENTION, Component.FEED_FORWARD,
    }  # fmt: skip
    assert all(0 < one.read < 1 for one in found.parts if one.part.component != Component.NORMS)


@pytest.mark.parametrize(
    ("kind", "state"), [(np.float16, PartState.ROUNDED), (ml_dtypes.bfloat16, PartState.ROUNDED)]
)
def test_a_cast_under_other_names_is_found(tmp_path: Path, kind: Any, state: PartState) -> None:
    cast = {name: one.astype(kind).astype(np.float32) for name, one in MODEL.items()}
    found = verdict(tmp_path, MODEL, renamed(cast))
    assert found.relation is Relation.SAME_WEIGHTS
    assert {one.state for one in found.parts} == {state}


def doubled(seed: int) -> dict[str, Array]:
    """The model in double precision, changed by less than single precision shows."""
    draws = np.random.default_rng(seed)
    return {
        name: one * (1 + 1e-9 * draws.standard_normal(one.shape)) for name, one in MODEL.items()
    }


def test_doubles_under_other_names_are_the_same_to_single_precision(tmp_path: Path) -> None:
    """Names make the claim no stronger; a copy in double precision is equal."""
    first, second = doubled(0), doubled(1)
    found = verdict(tmp_path / "named", first, renamed(second))
    assert found.relation is Relation.SAME_WEIGHTS
    assert {(one.state, one.bits) for one in found.parts} == {(PartState.ROUNDED, SINGLE)}
    assert "to single precision" in str(headline(found, ("A", "B")))
    unnamed = verdict(tmp_path / "unnamed", renamed(first), renamed(second, "x"))
    assert VerdictReason.SAME_AFTER_ROUNDING in unnamed.reasons
    assert "after rounding" in str(headline(unnamed, ("A", "B")))
    copy = verdict(tmp_path / "copy", first, renamed(first))
    assert {one.state for one in copy.parts} == {PartState.EQUAL}
    assert copy.reasons == (VerdictReason.SAME_CONTENTS,)


def test_a_table_does_not_make_a_model_of_other_layers_derived(tmp_path: Path) -> None:
    """However large it is; and parts that only the second model has are told as such."""
    table = "model.embed_tokens.weight"
    large = np.random.default_rng(3).normal(size=(8000, MODEL[table].shape[1])).astype(np.float32)
    ours, theirs = MODEL | {table: large}, llama(2) | {table: large}
    found = verdict(tmp_path / "table", ours, renamed(theirs))
    assert found.relation is Relation.PARTIAL and found.amount.layers == 0
    layers = {name: one for name, one in MODEL.items() if "embed" not in name}
    beside = verdict(tmp_path / "beside", layers, renamed(MODEL | {table: large}))
    assert beside.amount.linked < 0.5 and beside.amount.layers is None
    fewer = {name: one for name, one in MODEL.items() if "layers.2" not in name}
    there = verdict(tmp_path / "layers", renamed(fewer, "u"), MODEL)
    alone = {one.part.layer for one in there.parts if one.of_second}
    assert alone == {2} and {one.part.layer for one in there.parts if one.partner is None} == set()


@pytest.mark.parametrize("rows", [slice(None), slice(-16, None)])
def test_a_tensor_that_was_changed_is_told_from_those_that_were_not(
    tmp_path: Path, rows: slice
) -> None:
    """All of it, or its end alone: what begins alike is not the same."""
    other = {name: one.copy() for name, one in MODEL.items()}
    other[CHANGED][rows] = llama(2)[CHANGED][rows]
    found = verdict(tmp_path, MODEL, renamed(other))
    assert found.relation is Relation.DERIVED
    (part,) = (one for one in found.parts if one.state is not PartState.EQUAL)
    assert (part.part.component, part.part.layer) == (Component.FEED_FORWARD, 2)
    assert part.state is PartState.SHARED and part.share == pytest.approx(2 / 3)


def test_what_is_not_found_is_not_called_without_a_trace(tmp_path: Path) -> None:
    """A stranger with one feed-forward of the model."""
    other = llama(2) | {name: one for name, one in MODEL.items() if ".2.mlp." in name}
    found = verdict(tmp_path, MODEL, renamed(other))
    assert found.relation is Relation.PARTIAL
    equal = {one.part.layer for one in found.parts if one.state is PartState.EQUAL}
    assert equal == {2}
    assert {one.state for one in found.parts} == {PartState.EQUAL, PartState.NOT_COMPARABLE}


def test_without_any_known_name_there_are_no_parts_and_it_is_said(tmp_path: Path) -> None:
    found = verdict(tmp_path, renamed(MODEL), renamed(dict(reversed(MODEL.items())), "x"))
    assert found.relation is Relation.SAME_WEIGHTS and not found.parts
    assert found.reasons == (VerdictReason.SAME_CONTENTS_UNNAMED,)


def test_what_no_test_reads_takes_nothing_of_a_budget(tmp_path: Path) -> None:
    """Two models that would fit as a whole, and of which contents alone are looked at."""
    model = llama(1, width=256, units=768)
    budget = int(2.2 * sum(one.nbytes for one in model.values()))
    found = verdict(tmp_path, renamed(model), renamed(model, "x"), budget=budget)
    assert found.relation is Relation.SAME_WEIGHTS


def test_parts_that_hold_constants_alone_were_read_and_tell_nothing(tmp_path: Path) -> None:
    model = {name: np.ones_like(one) if "norm" in name else one for name, one in MODEL.items()}
    found = verdict(tmp_path, model, renamed(model))
    norms = [one for one in found.parts if one.part.component is Component.NORMS]
    assert norms and {one.state for one in norms} == {PartState.NOT_COMPARABLE}
    assert all(one.read > 0 and one.reason == Reason.PART_SILENT.message() for one in norms)


@pytest.mark.parametrize("known", [True, False])
def test_strangers_stay_untestable(tmp_path: Path, known: bool) -> None:
    """Gains that are all one, or zeros, are equal in both and mean nothing."""
    stranger = {
        name: np.ones_like(one) if "norm" in name else one for name, one in llama(2).items()
    }
    model = {name: np.ones_like(one) if "norm" in name else one for name, one in MODEL.items()}
    found = verdict(tmp_path, model if known else renamed(model), renamed(stranger, "x"))
    assert found.relation is Relation.UNTESTABLE


def test_no_more_is_read_than_the_budget_allows(
    tmp_path: Path, make_mirror: Callable[..., MirrorServer]
) -> None:
    for name, tensors in (("ours", renamed(MODEL)), ("theirs", renamed(MODEL, "x"))):
        path = stored(tmp_path / "made" / name, tensors, NET)
        shutil.copytree(path, tmp_path / "hub" / "some" / name)
    make_mirror(tmp_path / "hub", hash_limit=0)
    for budget, relation in ((600_000, Relation.UNTESTABLE), (4_000_000, Relation.SAME_WEIGHTS)):
        with Fetcher(budget=budget) as fetcher:
            how = Settings(budget=budget)
            found = compare_models("some/ours", "some/theirs", fetcher, how, details=False)
            assert found.verdict.relation is relation
            assert found.cost.bytes <= min(budget, found.limit)


@pytest.mark.parametrize("level", ["quick", "standard"])
def test_neither_a_cache_nor_where_models_lie_changes_an_answer(
    tmp_path: Path, demo: Path, make_mirror: Callable[..., MirrorServer], level: str
) -> None:
    """Rows of all tensors of the two cost about what the quick level may read."""
    tensors = load_file(demo / "zoo/base-a/model.safetensors")
    names = ["zoo/one", "zoo/other"]
    for name in names:
        (tmp_path / name).mkdir(parents=True)
        told = {f"{name[-3:]}.{at:05}": one for at, one in enumerate(tensors.values())}
        save_file(told, tmp_path / name / "model.safetensors")
    make_mirror(tmp_path)

    def found(given: list[str]) -> Relation:
        with Fetcher(cache=Cache.default()) as fetcher:
            told = compare_models(given[0], given[1], fetcher, Settings(level), details=False)
        limit = level_plan(Level(level)).budget
        assert limit is not None and told.cost.bytes <= limit
        return told.verdict.relation

    relations = [found([str(tmp_path / name) for name in names]), found(names)]
    with Fetcher(cache=Cache.default()) as fetcher:
        compare_models(names[0], names[1], fetcher, Settings("deep"), details=False)
    relations.append(found(names))
    assert len(set(relations)) == 1
