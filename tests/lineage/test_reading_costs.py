"""What reading for samples costs, and that it keeps to its budget."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kinprint import text
from kinprint.errors import BudgetExceeded
from kinprint.lineage.opening import open_all, read_headers
from kinprint.lineage.reading import plan
from kinprint.lineage.reading.deciding import part_sizes
from kinprint.lineage.reading.levels import (
    StepKind,
    level_plan,
    spread_layers,
)
from kinprint.lineage.reading.sampler import Sampler
from kinprint.lineage.reading.tower import Piece, towers_of
from kinprint.lineage.results import Settings
from kinprint.mirror import MirrorServer
from kinprint.model.model import Model
from kinprint.model.places import Address
from kinprint.reader.extents import bridge, total, union
from kinprint.reader.fetch import Fetcher
from kinprint.records import ByteRange, Component, Cost, Level, Part
from tests.lineage.stored_models import (
    LLAMA,
    final,
    llama,
    sampled,
    stored,
)

PAIR = ("zai-org/GLM-4.5-Air", "upstage/Solar-Open-100B")


def test_a_low_budget_leaves_steps_out_and_says_so(tmp_path: Path, fetcher: Fetcher) -> None:
    names = [stored(tmp_path / str(seed), llama(seed)) for seed in (1, 2)]
    whole = sampled(names, fetcher)
    assert all(whole.whole) and not whole.left_out
    poor = sampled(names, fetcher, budget=450_000)
    assert not any(poor.whole)
    assert poor.left_out
    assert poor.bytes <= 450_000
    assert final(poor)[0].norms


def test_some_rows_of_each_kind_of_matrices_are_read_before_many_of_any(
    replica_models: dict[str, Model],
) -> None:
    """A few megabytes of a mixture: weights can be called the same only if each kind was seen."""
    model = replica_models["mixtral"]
    tower = towers_of(model)[0]
    (reader,) = Sampler([model], Level.STANDARD, tower.opening_bytes + 2_000_000).models[0]
    roles = {piece.address.role for stage in reader.plan.stages for piece in stage.pieces}
    assert {"embed", "lm_head", "v", "router", "expert_up"} <= roles
    assert "note.left-out.attention" in [note.key for note in reader.plan.left_out]


@settings(max_examples=20, deadline=None)
@given(budget=st.integers(1, 40_000_000), level=st.sampled_from(Level))
def test_no_plan_goes_beyond_its_budget(
    replica_models: dict[str, Model], budget: int, level: Level
) -> None:
    models = [replica_models["mistral"], replica_models["mixtral"]]
    limit = budget + max(towers_of(one)[0].opening_bytes for one in models)
    sampler = Sampler(models, level, limit)
    assert sampler.bytes <= 2 * limit


def test_whole_layers_are_read_where_they_fit_and_are_not_missed_elsewhere(
    tmp_path: Path, fetcher: Fetcher
) -> None:
    """All units of two layers, after some of them, and only of models of middle size."""
    wide = {"width": 512, "units": 384, "layers": 6}
    config = LLAMA | {"hidden_size": 512, "intermediate_size": 384, "num_hidden_layers": 6}
    names = [stored(tmp_path / str(at), llama(at, **wide), config) for at in (1, 2)]
    ample = sampled(names, fetcher)
    assert not any(ample.whole) and ample.bytes <= 24_000_000
    for one in final(ample):
        whole = [layer for layer, units in one.units.items() if len(units.index) == units.total]
        assert len(whole) == 2
        assert all(one.units[layer].down.any() for layer in whole)
    scant = sampled(names, fetcher, budget=4_000_000)
    assert all(len(units.index) < units.total for units in final(scant)[0].units.values())
    assert not {"units", "experts"} & set(map(str, scant.left_out))


@pytest.mark.parametrize("level", [Level.QUICK, Level.STANDARD])
def test_large_models_are_opened_without_their_index(
    replicas: Path, fetcher: Fetcher, level: Level
) -> None:
    """Norms of the same layers are found in both, in a few shards of each."""
    how = Settings(level)
    models = read_headers(open_all([str(replicas / name) for name in PAIR], fetcher, how), how)
    layers = spread_layers(46, level_plan(level).layers)
    for model in models:
        assert model.checkpoint.index is None and not model.checkpoint.complete
        for role in ("norm_in", "norm_post_attn"):
            found = {one.layer for one in model.places if one.role == role}
            assert set(layers) <= found
    assert sum(model.checkpoint.known_bytes for model in models) < 5_000_000


@pytest.mark.parametrize(("level", "most"), [("quick", 4_000_000), ("standard", 24_000_000)])
def test_what_large_models_cost(
    replicas: Path, make_mirror: Callable[..., MirrorServer], level: str, most: int
) -> None:
    """All bytes are counted, and what was planned is what is spent."""
    server = make_mirror(replicas, hash_limit=0)
    with Fetcher() as fetcher:
        sampler = sampled(list(PAIR), fetcher, level)
        before = fetcher.spent
        planned = sum(sampler.costs(), Cost())
        assert fetcher.spent.bytes == before.bytes
        final(sampler)
        spent = fetcher.spent
    assert spent.bytes < most
    assert spent.bytes - before.bytes <= planned.bytes
    assert spent.bytes <= sampler.bytes
    assert server.stats.requests


def test_a_budget_too_small_for_headers_is_refused(mirror: MirrorServer) -> None:
    with Fetcher(budget=1000) as fetcher, pytest.raises(BudgetExceeded):
        sampled(["zoo/base-a", "zoo/a-cpt"], fetcher, budget=1000)


@pytest.mark.parametrize(
    "budget",
    [
        *range(1_500_000, 5_000_000, 1_000_000),
        *(
            pytest.param(budget, marks=pytest.mark.slow)
            for budget in range(2_000_000, 5_000_000, 1_000_000)
        ),
    ],
)
def test_what_was_planned_within_a_budget_can_be_read(mirror: MirrorServer, budget: int) -> None:
    """Gaps between the parts of different steps are read through, and were priced as well."""
    with Fetcher(budget=budget) as fetcher:
        sampler = sampled(["zoo/base-a", "zoo/a-cpt"], fetcher, budget=budget)
        final(sampler)
        assert fetcher.spent.bytes <= budget


@pytest.mark.parametrize("language", text.languages())
def test_every_step_can_be_named_where_it_is_left_out(language: str) -> None:
    assert all(text.knows(f"note.left-out.{kind}", language) for kind in StepKind)


def test_deep_reads_what_matching_needs(replica_models: dict[str, Model]) -> None:
    """All of one feed-forward, and no more than its plan says; a budget that was given is kept."""
    (reader,) = Sampler([replica_models["mistral"]], Level.DEEP).models[0]
    tower = reader.tower
    whole = {
        piece.address.role
        for stage in reader.plan.stages
        for piece in stage.pieces
        if piece.rows is None and piece.address.layer == 8 and "norm" not in piece.address.role
    }
    assert whole == {"gate", "up", "down"}
    matrices = sum(tower.stored_bytes(tower.address(role, 8)) for role in whole)
    assert matrices < reader.plan.bytes < 2 * matrices
    sizes = part_sizes(tower)
    basis = sizes[Part(Component.EMBEDDING)].needs
    assert basis is not None
    assert sizes[Part(Component.FEED_FORWARD, 8)].needs == matrices + basis
    limited = Sampler([replica_models["mistral"]], Level.DEEP, 50_000_000)
    assert limited.bytes <= 50_000_000
    assert [note.key for note in limited.left_out] == ["note.left-out.layer"]


def test_no_step_brings_more_into_memory_than_it_may(
    replica_models: dict[str, Model], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "_HELD", 1_000_000)
    sampler = Sampler([replica_models["mistral"]], Level.DEEP)
    assert "note.left-out.layer" in [note.key for note in sampler.left_out]
    assert sampler.bytes < 60_000_000


@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.data())
def test_pieces_cost_the_same_in_whatever_steps_they_were_added(
    replica_models: dict[str, Model], data: st.DataObject
) -> None:
    """Of a tensor that was asked for again only the last piece counts; gaps are read through."""
    tower = towers_of(replica_models["mixtral"])[0]
    matrices = sorted(
        (address for address, place in tower.places.items() if len(place.shape or ()) == 2), key=str
    )
    some = matrices[:: max(1, len(matrices) // 12)]
    rows = st.lists(st.integers(0, 7), min_size=1, max_size=4, unique=True)
    piece = st.builds(
        lambda address, rows: Piece(address, tuple(sorted(rows))), st.sampled_from(some), rows
    )
    basket = plan._Basket()
    last: dict[Address, Piece] = {}
    for step in data.draw(st.lists(st.lists(piece, max_size=4), max_size=6)):
        basket = basket.with_more(tower, step)
        last |= {one.address: one for one in step}
        spans: dict[str, list[ByteRange]] = {}
        for one in last.values():
            for file, ranges in tower.spans(one).items():
                spans.setdefault(file, []).extend(ranges)
        gap = tower.model.checkpoint.fetcher.policy.gap
        assert basket.cost == sum(total(bridge(union(one), (), gap)) for one in spans.values())
