"""How much is linked where layers, experts or heads are other ones or lie elsewhere."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kinprint.lineage.compare import compare_models
from kinprint.lineage.parts.findings import Sharing
from kinprint.lineage.results import Comparison, Settings
from kinprint.reader.fetch import Fetcher
from kinprint.records import (
    Amount,
    Component,
    Part,
    PartFinding,
    PartState,
    Reason,
    Relation,
    Verdict,
)
from kinprint.report.statements import Reading, spoken
from tests.lineage.stored_models import (
    LAYERS,
    LLAMA,
    SIZE,
    UNITS,
    Array,
    llama,
    mixture,
    stored,
)

Model = tuple[Mapping[str, Array], Mapping[str, Any]]


def compared(
    folder: Path, one: Model, other: Model, budget: int | None = None
) -> tuple[Comparison, Comparison]:
    """Two models compared in both orders."""
    a, b = (
        stored(folder / name, dict(tensors), dict(config))
        for name, (tensors, config) in (("a", one), ("b", other))
    )
    with Fetcher() as fetcher:
        return tuple(  # type: ignore[return-value]
            compare_models(*pair, fetcher, Settings(budget=budget), details=False)
            for pair in ((a, b), (b, a))
        )


def what(found: Comparison) -> str:
    """What is said to be shared."""
    return str(spoken(found.verdict, ("A", "B"), Reading()).what)


def headline(found: Comparison) -> str:
    return str(spoken(found.verdict, ("A", "B"), Reading()).summary)


def with_layers(tensors: Mapping[str, Array], of: Mapping[str, Array], by: int) -> dict[str, Array]:
    """The tensors with all layers of another model that have room, so many places further."""
    found = dict(tensors)
    for name, one in of.items():
        match = re.fullmatch(r"model\.layers\.(\d+)\.(.*)", name)
        if match and int(match[1]) + by < LAYERS:
            found[f"model.layers.{int(match[1]) + by}.{match[2]}"] = one
    return found


@pytest.mark.parametrize("by", [1, 2])
def test_layers_that_have_moved_count_as_much_as_those_in_place(tmp_path: Path, by: int) -> None:
    ours, stranger = llama(), llama(1)
    moved = with_layers(stranger, ours, by)
    for found in compared(tmp_path, (ours, LLAMA), (moved, LLAMA)):
        assert found.verdict.amount.layers == pytest.approx(1 - by / LAYERS)
        derived = by < LAYERS / 2
        assert found.verdict.relation is (Relation.DERIVED if derived else Relation.PARTIAL)


def experts(kept: Mapping[int, int], count: int) -> Model:
    """The mixture with some of its experts at other numbers, others drawn anew."""
    ours, _ = mixture()
    theirs, config = mixture(count)
    tensors = {name: one for name, one in ours.items() if ".experts." not in name}
    chance = np.random.default_rng(9)
    for name, one in theirs.items():
        if "block_sparse_moe" in name:
            tensors[name] = chance.normal(size=one.shape).astype(np.float32)
    for name, one in ours.items():
        match = re.fullmatch(r"(.*\.experts)\.(\d+)\.(.*)", name)
        if match and int(match[2]) in kept:
            tensors[f"{match[1]}.{kept[int(match[2])]}.{match[3]}"] = one
    return tensors, config


def test_experts_under_other_numbers_count_as_much_as_those_in_place(tmp_path: Path) -> None:
    in_place, moved = (
        compared(tmp_path / name, mixture(), experts(kept, 4))
        for name, kept in (("place", {0: 0, 1: 1}), ("moved", {0: 2, 1: 3}))
    )
    for one, other in zip(in_place, moved, strict=True):
        assert one.verdict.amount.layers == pytest.approx(other.verdict.amount.layers)
        assert one.verdict.relation is other.verdict.relation


def test_routers_of_experts_under_other_numbers_are_not_said_to_be_strange(tmp_path: Path) -> None:
    """Rows in another order that were tuned are no rows in place: that a copy would not show."""
    theirs, config = experts({0: 3, 1: 2, 2: 1, 3: 0}, 4)
    chance = np.random.default_rng(10)
    tuned = {
        name: (one[::-1] + 0.1 * one.std() * chance.normal(size=one.shape)).astype(np.float32)
        for name, one in mixture()[0].items()
        if name.endswith("block_sparse_moe.gate.weight")
    }
    for found in compared(tmp_path, mixture(), ({**theirs, **tuned}, config)):
        routers = [one for one in found.verdict.parts if one.part.component is Component.ROUTER]
        reasons = {one.reason.key for one in routers if one.reason is not None}
        assert routers and reasons == {Reason.PART_EXPERTS_RENAMED}
        assert "experts were renumbered" in what(found)


def test_experts_are_counted_in_the_model_that_has_them(tmp_path: Path) -> None:
    there, back = compared(tmp_path, mixture(), experts({1: 0, 3: 1}, 2))
    assert f"experts ({2 * LAYERS} of {4 * LAYERS}) of layers" in what(there)
    assert f"Equal: embedding, norms, attention, experts of layers 0–{LAYERS - 1}" in what(back)
    for found in (there, back):
        counts = re.findall(r"experts \(\d+ of (\d+)\) of layers? ([\d–, ]*\d)", what(found))
        assert counts
        for total, named in counts:
            runs = [[int(end) for end in run.split("–")] for run in named.split(", ")]
            assert int(total) == 4 * sum(run[-1] - run[0] + 1 for run in runs)
        assert "some layers only" not in headline(found)


def test_a_feed_forward_that_was_cut_into_experts_is_linked_whole(tmp_path: Path) -> None:
    """Equal numbers of a part that is smaller than its partner are all of it."""
    layers, experts_of = 6, 4  # enough to tell quarters of equal units by
    dense = llama(layers=layers)
    cut, config = mixture(experts_of, layers)
    tensors = {name: one for name, one in cut.items() if ".experts." not in name}
    size = UNITS // experts_of
    for layer in range(layers):
        mlp = f"model.layers.{layer}.mlp"
        for expert in range(experts_of):
            rows = slice(expert * size, (expert + 1) * size)
            root = f"model.layers.{layer}.block_sparse_moe.experts.{expert}"
            tensors[f"{root}.w1.weight"] = dense[f"{mlp}.gate_proj.weight"][rows].copy()
            tensors[f"{root}.w3.weight"] = dense[f"{mlp}.up_proj.weight"][rows].copy()
            tensors[f"{root}.w2.weight"] = dense[f"{mlp}.down_proj.weight"][:, rows].copy()
    for found in compared(
        tmp_path,
        (dense, LLAMA | {"num_hidden_layers": layers}),
        (tensors, config | {"intermediate_size": size}),
    ):
        assert found.verdict.amount.layers == pytest.approx(1.0, abs=0.01)
        assert {Component.FEED_FORWARD, Component.EXPERT} <= set(found.verdict.linked)


def test_units_of_a_stranger_do_not_speak_for_the_others(tmp_path: Path) -> None:
    """Half of the units of a feed-forward, in one of twice as many others."""
    small, large = llama(), llama(1, units=2 * UNITS)
    some = slice(0, UNITS // 2)
    for layer in range(LAYERS):
        mlp = f"model.layers.{layer}.mlp"
        for name in ("gate", "up"):
            large[f"{mlp}.{name}_proj.weight"][some] = small[f"{mlp}.{name}_proj.weight"][some]
        large[f"{mlp}.down_proj.weight"][:, some] = small[f"{mlp}.down_proj.weight"][:, some]
    config = LLAMA | {"intermediate_size": 2 * UNITS}
    for found in compared(tmp_path, (small, LLAMA), (large, config)):
        parts = found.verdict.parts
        units = [one for one in parts if one.part.component is Component.FEED_FORWARD]
        assert all(one.sure == pytest.approx(0.25) for one in units)
        assert found.verdict.relation is Relation.PARTIAL


def test_experts_without_a_link_are_counted_too(tmp_path: Path) -> None:
    """Two of four are copied, the others stand beside two of the four that are no copies."""
    there, _ = compared(tmp_path, mixture(), experts({0: 0, 1: 1}, 8))
    assert f"experts ({4 * LAYERS} of {8 * LAYERS}) of layers" in what(there)


def test_a_part_of_the_second_model_without_a_trace_is_said_to_be_its() -> None:
    """Order makes no difference: what stands beside experts that were made of a feed-forward."""
    dense, expert = Part(Component.FEED_FORWARD, 0), Part(Component.EXPERT, 0, 1)
    found = Sharing(
        (
            PartFinding(expert, dense, PartState.EQUAL, 1.0, learnt=True, weights=9, read=1.0),
            PartFinding(dense, dense, PartState.NO_TRACE, weights=9, read=1.0),
        )
    ).swapped()
    assert [(one.state, one.of_second) for one in found.alone] == [(PartState.NO_TRACE, True)]
    told = spoken(
        Verdict(Relation.PARTIAL, -99.0, 1e-6, found.parts, Amount()), ("A", "B"), Reading()
    )
    assert "would have been seen: feed-forward of layer 0 (of the second model)" in str(told.what)


def test_an_attention_of_which_some_heads_were_kept_is_linked_as_far_as_it_goes(
    tmp_path: Path,
) -> None:
    ours = llama()
    fewer = dict(ours)
    for name, one in ours.items():
        if name.endswith(("q_proj.weight",)):
            fewer[name] = one[2 * SIZE :].copy()
        elif name.endswith(("k_proj.weight", "v_proj.weight")):
            fewer[name] = one[SIZE:].copy()
        elif name.endswith("o_proj.weight"):
            fewer[name] = one[:, 2 * SIZE :].copy()
    config = LLAMA | {"num_attention_heads": 2, "num_key_value_heads": 1}
    for found in compared(tmp_path, (ours, LLAMA), (fewer, config)):
        attention = [
            one for one in found.verdict.parts if one.part.component is Component.ATTENTION
        ]
        assert {one.state for one in attention} == {PartState.SHARED}
        assert all(one.sure == pytest.approx(0.5, abs=0.02) for one in attention)
        assert all((one.likeness or 0.0) > 0.95 for one in attention)


def test_experts_that_were_not_read_are_not_said_to_be_missing(tmp_path: Path) -> None:
    dense, copies = llama(), 8
    many, config = mixture(copies)
    tensors = {name: one for name, one in many.items() if ".experts." not in name}
    for layer in range(LAYERS):
        mlp = f"model.layers.{layer}.mlp"
        for expert in range(copies):
            root = f"model.layers.{layer}.block_sparse_moe.experts.{expert}"
            for ours, theirs in (("gate", "w1"), ("up", "w3"), ("down", "w2")):
                tensors[f"{root}.{theirs}.weight"] = dense[f"{mlp}.{ours}_proj.weight"]
    for found in compared(tmp_path, (dense, LLAMA), (tensors, config), budget=400_000):
        unread = [
            one
            for one in found.verdict.parts
            if one.state is PartState.NOT_READ and one.part.component is Component.EXPERT
        ]
        missing = str(Reason.PART_MISSING.message())
        assert unread and missing not in {str(one.reason) for one in unread}


@pytest.mark.parametrize("tied", [pytest.param(False, marks=pytest.mark.slow), None])
def test_a_model_that_says_it_has_no_head_has_none(tmp_path: Path, tied: bool | None) -> None:
    """Its embedding stands for a head where nothing says that it does not."""
    config = LLAMA if tied is None else {**LLAMA, "tie_word_embeddings": tied}
    ours = llama()
    head = {"lm_head.weight": llama(7)["model.embed_tokens.weight"]}
    there, back = compared(tmp_path, (ours, config), (ours | head, LLAMA))
    for found, only in ((there, Reason.PART_ONLY_THERE), (back, Reason.PART_MISSING)):
        (told,) = [one for one in found.verdict.parts if one.part.component is Component.HEAD]
        assert told.state is PartState.NOT_COMPARABLE and told.reason is not None
        assert (told.reason.key == only) is (tied is False)
    written = ours | {"lm_head.weight": ours["model.embed_tokens.weight"]}
    for found in compared(tmp_path / "written", (ours, config), (written, LLAMA)):
        assert found.verdict.relation is Relation.SAME_WEIGHTS
