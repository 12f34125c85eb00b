"""The map of shared weights: true where models are kin, noise of the told size where not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from kinprint.lineage.battery import run_tests
from kinprint.lineage.charge import Charge
from kinprint.lineage.pair import Pair
from kinprint.lineage.sharing.map import LayerMap, map_shared, norm_likenesses
from kinprint.lineage.sharing.tally import Tally, row_cosines
from kinprint.lineage.side import Side
from kinprint.lineage.tests.menu import menu
from kinprint.text import message
from tests.conftest import ZOO
from tests.lineage.relabelling import relabelled
from tests.lineage.samples import samples_of

ROLES = {"norm_in", "norm_post_attn", "norm_final", "q", "k", "v", "o", "gate", "up", "down"}


@pytest.fixture(scope="module")
def sides(demo: Path) -> dict[str, Side]:
    found = samples_of(demo / "zoo", ["base-a", "a-cpt", "base-b"])
    found["hidden"] = relabelled(found["a-cpt"], np.random.default_rng(1), signs=False)
    return {name: Side(one) for name, one in found.items()}


def mapped(a: Side, b: Side) -> LayerMap:
    pair = Pair(a, b)
    return map_shared(pair, a, run_tests(pair), Charge.for_menu(menu()))


def deviations(found: LayerMap) -> np.ndarray:
    return np.array([one.likeness / one.chance for one in found.cells if one.chance])


def test_the_deviation_under_relabelling_is_exact() -> None:
    """All relabellings of rows that share a direction, tried one by one."""
    rng = np.random.default_rng(0)
    common = rng.normal(size=12)
    x, y = (rng.normal(size=(40, 12)) + common for _ in range(2))
    tally = Tally()
    tally.add_labelled(x, y)
    drawn = []
    for _ in range(4000):
        other = Tally()
        other.add_labelled(x[rng.permutation(40)], y)
        assert other.chance == pytest.approx(tally.chance)
        drawn.append(other.likeness or 0.0)
    assert tally.chance == pytest.approx(np.std(drawn), rel=0.05)
    assert np.mean(drawn) == pytest.approx(0.0, abs=4 * np.std(drawn) / np.sqrt(4000))


@pytest.mark.parametrize("shape", [(40, 12), (12, 40)])
def test_equal_rows_have_likeness_one(shape: tuple[int, int]) -> None:
    x = np.random.default_rng(0).normal(size=shape) + 5.0
    tally = Tally()
    tally.add_labelled(x, 3.0 * x)
    assert tally.likeness == pytest.approx(1.0) and tally.count == shape[0]
    few = Tally()
    few.add_labelled(x[:2], x[:2])
    few.add_labelled(np.ones((9, 4)), np.ones((9, 4)))
    assert few.likeness is None and few.chance is None


def test_coins_have_their_own_deviation() -> None:
    cosines = np.array([0.3, -0.2, 0.5, 0.1])
    tally = Tally()
    tally.add_signed(cosines)
    signs = np.array(np.meshgrid(*[[-1, 1]] * 4)).reshape(4, -1).T
    assert tally.likeness == pytest.approx(cosines.mean())
    assert tally.chance == pytest.approx((signs * cosines).mean(axis=1).std())


def test_planes_are_compared_by_their_real_part() -> None:
    one = np.array([[1 + 1j, 0]]) / np.sqrt(2)
    assert row_cosines(one, one) == pytest.approx([1.0])
    assert row_cosines(one, 1j * one) == pytest.approx([0.0])


def test_kin_are_alike_everywhere(sides: dict[str, Side]) -> None:
    found = mapped(sides["base-a"], sides["a-cpt"])
    assert found.alignment == (message("note.map.by-number"),) and found.depths == (6, 6)
    assert [(one.a, one.b, one.quality) for one in found.layers] == [
        (at, at, None) for at in range(6)
    ]
    assert {one.role for one in found.cells} == ROLES | {"embed"}
    assert len(found.cells) == 9 * 6 + 2
    assert min(one.likeness for one in found.cells) > 0.4


def test_strangers_are_noise(sides: dict[str, Side]) -> None:
    found = mapped(sides["base-a"], sides["base-b"])
    z = deviations(found)
    assert len(z) == len(found.cells) == 9 * 6 + 2
    assert abs(z.mean()) < 0.6 and 0.7 < z.std() < 1.4 and np.abs(z).max() < 4.5
    alike = [one.likeness for one in found.cells if one.role in ("gate", "up", "down")]
    assert np.abs(alike).max() < 0.03


def test_strangers_whose_shapes_differ_are_noise(sides: dict[str, Side]) -> None:
    """Units must be matched where there are fewer, and what the search has seen is not shown."""
    sample = sides["base-b"].prepared.sample
    kept = {layer: one for layer, one in sample.units.items() if layer != 2}
    cut = {
        layer - (layer > 2): type(one)(
            one.index[:300], 300, one.up[:300], one.down[:300],
            None if one.gate is None else one.gate[:300],
        )
        for layer, one in kept.items()
    }  # fmt: skip
    heads = {at - (at > 2): one for at, one in sample.attention.items() if at != 2}
    norms = {(r, at - (at > 2)): one for (r, at), one in sample.norms.items() if at != 2}
    shorter = replace(sample, depth=5, units=cut, attention=heads, norms=norms, key="shorter")
    found = mapped(sides["base-a"], Side(shorter))
    z = deviations(found)
    assert (
        found.alignment == (message("note.map.by-number"),)
        and {one.role for one in found.cells} >= ROLES
    )
    assert [(one.a, one.b) for one in found.layers] == [(at, at) for at in range(5)]
    assert abs(z.mean()) < 0.6 and 0.6 < z.std() < 1.4 and np.abs(z).max() < 4.5


def test_renamed_kin_are_found_by_matching(sides: dict[str, Side]) -> None:
    found = mapped(sides["base-a"], sides["hidden"])
    assert message("note.map.units-matched") in found.alignment
    assert {one.role for one in found.cells} >= {"q", "k", "v", "o", "gate", "up", "down"}
    assert min(one.likeness for one in found.cells) > 0.4
    assert "embed" not in {one.role for one in found.cells}  # the basis was fitted to it


@pytest.mark.parametrize("other", ["a-cpt", "base-b", "hidden"])
def test_the_order_of_the_models_turns_the_map(sides: dict[str, Side], other: str) -> None:
    one, two = sides["base-a"], sides[other]
    found, turned = mapped(one, two), mapped(two, one)
    assert turned.alignment == found.alignment
    assert {(c.role, c.b, c.a, c.likeness, c.chance, c.count) for c in turned.cells} == {
        (c.role, c.a, c.b, c.likeness, c.chance, c.count) for c in found.cells
    }
    assert {(p.b, p.a, p.quality) for p in turned.layers} == {
        (p.a, p.b, p.quality) for p in found.layers
    }


def test_norms_as_the_disputes_measured_them(sides: dict[str, Side]) -> None:
    """Strangers have raw cosines near one, which is why they are shown and never counted."""
    one, two = sides["base-a"], sides["base-b"]
    found = norm_likenesses(one, two)
    assert {(each.role, each.a) for each in found} == {
        *((role, at) for role in ("norm_in", "norm_post_attn") for at in range(6)),
        ("norm_final", -1),
    }
    assert min(each.cosine for each in found) > 0.9
    assert np.mean([each.pearson for each in found]) < 0.2
    assert all(each.n == 128 and each.relative_l2 > 0 for each in found)


@pytest.mark.zoo
def test_maps_of_the_zoo() -> None:
    names = ["base-a", "a-depthprune", "a-hidprune", "a-upcycled", "qwen-i", "moe-k"]
    zoo = {name: Side(one) for name, one in samples_of(ZOO, names).items()}
    pruned = mapped(zoo["base-a"], zoo["a-depthprune"])
    assert [(one.a, one.b) for one in pruned.layers] == [(0, 0), (1, 1), (4, 2), (5, 3)]
    assert min(one.quality or 0.0 for one in pruned.layers) > 0.9
    narrower = mapped(zoo["base-a"], zoo["a-hidprune"])
    assert min(one.likeness for one in narrower.cells) > 0.7
    mixture = mapped(zoo["base-a"], zoo["a-upcycled"])
    assert {"expert_up", "expert_gate", "expert_down"} <= {one.role for one in mixture.cells}
    z = np.concatenate(
        [deviations(mapped(zoo["base-a"], zoo[name])) for name in ("qwen-i", "moe-k")]
    )
    assert abs(z.mean()) < 0.5 and 0.7 < z.std() < 1.3
    assert mapped(zoo["a-hidprune"], zoo["qwen-i"]).cells == ()
