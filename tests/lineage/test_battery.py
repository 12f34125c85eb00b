"""The battery on made-up models: what it finds, what it refuses, and that order is no matter."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from kinprint.lineage.battery import run_battery
from kinprint.lineage.reading.sample import Sample, Units
from kinprint.lineage.side import Side
from kinprint.lineage.tests.menu import menu
from kinprint.records import Evidence, Group
from tests.lineage.made import LLAMA, each_matrix, keyed, made, noisy
from tests.lineage.relabelling import relabelled

BASE = made(1)
CHILD = noisy(BASE, 1.0, 2)


def by_test(a: Sample, b: Sample, **settings: object) -> dict[str, Evidence]:
    return {one.test: one for one in run_battery(a, b, **settings)}  # type: ignore[arg-type]


def changed(sample: Sample, **facts: object) -> Sample:
    return replace(sample, facts=replace(sample.facts, **facts))


@pytest.mark.parametrize("level", ["quick", "standard", "deep"])
def test_every_entry_of_the_menu_answers(level: str) -> None:
    entries = menu(level)
    assert sum(entry.share for entry in entries) == pytest.approx(1.0)
    found = run_battery(BASE, CHILD, level=level)
    assert [one.test for one in found] == [entry.name for entry in entries]
    for one in found:
        assert one.status in ("ok", "needs", "guarded", "undefined")
        assert (one.status == "ok") == (one.reason is None)
        assert one.log10_p <= 0 and one.log10_p >= one.floor - 1e-9
        assert len(one.null) == (200 if one.status == "ok" else 0)
        assert one.effect is None or abs(one.effect) <= 1.0 + 1e-6


def test_a_level_must_be_known() -> None:
    with pytest.raises(ValueError, match="quick, standard, deep"):
        menu("thorough")


def test_a_trained_copy_is_found_by_labels_and_by_signs() -> None:
    found = by_test(BASE, CHILD)
    for test in ("E1.blocks", "E3.blocks", "U1.blocks", "U1.fixed", "S1", "S2", "S4", "E4.blocks"):
        assert found[test].log10_p < -6, test
    assert found["U1.blocks"].effect == pytest.approx(0.5**0.5, abs=0.1)
    assert found["E1.blocks"].learnt and not found["U1.blocks"].learnt


def test_norms_are_named_as_the_two_models_name_them() -> None:
    tests = "E1.blocks", "E1.profile", "E1.fixed"
    found = by_test(BASE, CHILD)
    for test in tests:
        assert found[test].roles == ("norm_in", "norm_post_attn", "norm_final"), test
    renamed = {
        (role.replace("norm_post_attn", "norm_pre_ffn"), layer): gain
        for (role, layer), gain in CHILD.norms.items()
    }
    found = by_test(BASE, keyed(replace(CHILD, norms=renamed)))
    for test in tests:
        roles = "norm_in", "norm_post_attn", "norm_pre_ffn", "norm_final"
        assert found[test].roles == roles, test


def test_a_renamed_copy_is_found_by_signs_alone() -> None:
    """Signs were kept, every label was drawn anew."""
    rng = np.random.default_rng(3)
    moved = relabelled(CHILD, rng, signs=False)
    found = by_test(BASE, moved)
    for test, one in found.items():
        if test.startswith(("E", "U", "C")):
            assert one.log10_p > -4, test
    assert found["S1"].log10_p < -20
    assert found["S2"].log10_p < -10
    assert found["S1.numbered"].log10_p > -4


def test_strangers_stay_strangers() -> None:
    for seed in range(3):
        for test, one in by_test(made(10 + seed), made(20 + seed)).items():
            assert one.log10_p > -4, test


def test_the_order_of_the_arguments_changes_nothing() -> None:
    narrow = made(5, width=24, depth=2, units=40)
    for one, other in ((BASE, CHILD), (BASE, made(4)), (BASE, narrow)):
        assert run_battery(one, other) == run_battery(other, one)
        assert run_battery(Side(one), Side(other)) == run_battery(other, one)


def test_the_seed_draws_pictures_and_nothing_else() -> None:
    first, second = run_battery(BASE, CHILD, seed=1), run_battery(BASE, CHILD, seed=2)
    assert [one.log10_p for one in first] == [one.log10_p for one in second]
    assert first != second


@pytest.mark.parametrize(
    ("facts", "silent"),
    [
        ({"norm": "layer"}, {"S3"}),
        ({"gated": False, "odd_up": False}, {"S1"}),
        ({"odd_up": False}, {"S1", "S1.numbered"}),
        ({"odd_up": None}, {"S1"}),
        ({"rope": "none", "rotary": None}, {"S2", "S2.numbered"}),
        ({"qk_norm": "layer"}, {"S2", "S2.numbered"}),
        ({"latent": True}, {"S2", "S2.numbered"}),
        ({"fixed_positions": True}, {"E1.blocks", "E3.blocks", "E6.norms", "Cm.blocks", "S3"}),
        ({"fixed_positions": None}, {"E1.blocks", "E3.blocks", "Cm.blocks", "S3"}),
        ({"plain_values": False}, {"E4.blocks", "S4"}),
        ({"free_units": False}, {"U1.blocks", "U1.fixed", "U1.aligned", "E6.units", "S1"}),
    ],
)
def test_what_is_not_exchangeable_is_not_tested(facts: dict[str, object], silent: set[str]) -> None:
    found = by_test(changed(BASE, **facts), changed(CHILD, **facts))
    for test in silent:
        assert found[test].status == "guarded" and found[test].reason, test
    assert found["U1.blocks"].log10_p < -6 or "U1.blocks" in silent


def test_one_model_with_the_symmetry_is_enough() -> None:
    found = by_test(changed(BASE, odd_up=None), CHILD)
    assert found["S1"].status == "ok"
    assert found["S1"].log10_p < -6


def test_quarter_turns_need_rows_that_no_gain_tells_apart() -> None:
    plain, normed = by_test(BASE, CHILD)["S2"], None
    normed = by_test(changed(BASE, qk_norm="rms"), changed(CHILD, qk_norm="rms"))["S2"]
    assert plain.bound == "quarter turns" and normed.bound == "signs"
    assert plain.floor == pytest.approx(2 * normed.floor)


def test_sorted_units_lose_their_labels_and_keep_their_signs() -> None:
    def sort(sample: Sample) -> Sample:
        units = {}
        for layer, one in sample.units.items():
            order = np.argsort(-np.square(one.up).sum(axis=1))
            assert one.gate is not None
            units[layer] = replace(
                one, up=one.up[order], down=one.down[order], gate=one.gate[order]
            )
        return keyed(replace(sample, units=units))

    loud = replace(
        BASE,
        units={
            layer: replace(
                one, up=one.up * np.linspace(1, 3, len(one.up), dtype=np.float32)[:, None]
            )
            for layer, one in BASE.units.items()
        },
    )
    found = by_test(sort(loud), sort(noisy(loud, 0.3, 5)))
    assert found["U1.blocks"].status == found["U1.fixed"].status == "guarded"
    assert "sorted" in str(found["U1.blocks"].reason)
    assert found["S1"].log10_p < -6


def test_canonical_axes_are_no_channels() -> None:
    def principal(sample: Sample) -> Sample:
        assert sample.embedding is not None
        rows = sample.embedding.rows * np.linspace(1, 4, sample.width, dtype=np.float32)
        axes = np.linalg.svd(rows, full_matrices=False)[2]
        turned = (rows @ axes.T).astype(np.float32)
        return keyed(replace(sample, embedding=replace(sample.embedding, rows=turned)))

    found = by_test(principal(made(6)), principal(made(7)))
    for test in ("E1.blocks", "E3.blocks", "Cm.blocks", "S3"):
        assert found[test].status == "guarded", test
        assert "canonical" in str(found[test].reason)


@pytest.mark.parametrize("ends", ["up", "down"])
def test_signs_that_follow_a_rule_are_no_coins(ends: str) -> None:
    """Strangers whose units were flipped by one rule agree without being related."""

    def ruled(one: Units) -> Units:
        assert one.gate is not None
        flips = np.sign((one.gate * getattr(one, ends)).sum(axis=1, keepdims=True))
        return replace(one, up=one.up * flips, down=one.down * flips)

    canonical = replace(BASE, units={layer: ruled(one) for layer, one in BASE.units.items()})
    found = by_test(canonical, canonical)
    assert found["S1"].status == "guarded" and "follow a rule" in str(found["S1"].reason)
    assert by_test(BASE, BASE)["S1"].status == "ok"
    assert by_test(canonical, noisy(BASE, 0.1, 4))["S1"].status == "ok"  # the other has coins


def test_copies_share_a_coin() -> None:
    """Copied layers, replicated heads and cloned units count once."""
    twice = replace(
        BASE,
        units={0: BASE.units[0], 1: BASE.units[0], 2: BASE.units[2]},
        attention={0: BASE.attention[0], 1: BASE.attention[0], 2: BASE.attention[2]},
    )
    plain, tied = by_test(BASE, BASE), by_test(keyed(twice), noisy(twice, 0.1, 6))
    assert tied["S1"].n == plain["S1"].n * 2 // 3
    assert tied["U1.blocks"].n == plain["U1.blocks"].n * 2 // 3
    assert tied["S2"].n == plain["S2"].n * 2 // 3
    clones = replace(BASE.units[0], up=np.repeat(BASE.units[0].up[:24], 2, axis=0))
    clones = replace(clones, down=np.repeat(BASE.units[0].down[:24], 2, axis=0))
    cloned = keyed(replace(BASE, units={**BASE.units, 0: clones}))
    found = by_test(cloned, noisy(cloned, 0.1, 7))
    assert found["S1"].n == plain["S1"].n - 24
    assert found["U1.blocks"].n == plain["U1.blocks"].n - 48


def test_heads_with_the_same_keys_or_the_same_channels_share_a_coin() -> None:
    first, *_ = (one.k for one in BASE.attention.values())
    assert first is not None
    same_keys = {
        layer: replace(one, k=first if layer < 2 else one.k)
        for layer, one in BASE.attention.items()
    }
    plain = by_test(BASE, BASE)
    found = by_test(keyed(replace(BASE, attention=same_keys)), noisy(BASE, 0.1, 6))
    assert found["S2"].n == plain["S2"].n * 2 // 3
    widened = _widened(BASE)
    found = by_test(widened, noisy(widened, 0.1, 6))
    assert found["E1.fixed"].n == 0 and found["E3.fixed"].n == 0


def _widened(sample: Sample) -> Sample:
    """Every channel twice, side by side, with gains that have moved a little since."""
    double = each_matrix(sample, lambda rows: np.repeat(rows, 2, axis=-1))
    norms = {key: np.repeat(gain, 2) for key, gain in sample.norms.items()}
    return noisy(replace(double, width=2 * sample.width, norms=norms), 0.02, 5)


def test_what_was_not_read_or_does_not_vary_is_said() -> None:
    bare = replace(BASE, units={}, attention={}, embedding=None, norms={})
    assert {one.status for one in run_battery(bare, CHILD)} == {"needs"}
    ones = replace(BASE, norms={key: np.ones_like(gain) for key, gain in BASE.norms.items()})
    found = by_test(ones, CHILD)
    assert found["E1.blocks"].status == "undefined"
    assert found["U1.blocks"].log10_p < -6


def test_constants_zeros_and_bad_numbers_are_no_evidence() -> None:
    def hollow(sample: Sample) -> Sample:
        units = {
            layer: replace(
                one, up=np.full_like(one.up, 0.5), down=np.zeros_like(one.down), gate=None
            )
            for layer, one in sample.units.items()
        }
        units[0] = replace(units[0], up=np.full_like(units[0].up, np.nan))
        heads = {
            layer: replace(one, q=np.ones_like(one.q), k=np.zeros_like(one.k))
            for layer, one in sample.attention.items()
        }
        return keyed(replace(sample, units=units, attention=heads))

    found = by_test(hollow(made(8)), hollow(made(9)))
    for test in ("U1.blocks", "U1.fixed", "U1.aligned", "E6.units", "S1"):
        assert found[test].log10_p > -2, test


def test_removed_units_and_channels_keep_their_order() -> None:
    rng = np.random.default_rng(8)
    big = made(30, width=40, units=64)
    kept = np.sort(rng.choice(64, 40, replace=False))
    units = {
        layer: replace(
            one, index=np.arange(40), total=40, up=one.up[kept], down=one.down[kept],
            gate=None if one.gate is None else one.gate[kept],
        )
        for layer, one in big.units.items()
    }  # fmt: skip
    found = by_test(big, noisy(replace(big, units=units), 0.3, 9))
    assert found["U1.order"].log10_p < -20
    assert found["S1"].log10_p < -20
    assert by_test(big, made(31, width=32))["E3.order"].log10_p > -4


def test_a_sample_of_rows_is_enough() -> None:
    def sample(sample: Sample) -> Sample:
        rows = np.r_[4:12, 20:28]
        units = {
            layer: replace(
                one, index=rows, up=one.up[rows], down=one.down[rows],
                gate=None if one.gate is None else one.gate[rows],
            )
            for layer, one in sample.units.items()
        }  # fmt: skip
        return keyed(replace(sample, units=units, attention={}, embedding=None))

    found = by_test(sample(BASE), sample(noisy(BASE, 0.5, 10)))
    assert found["U1.blocks"].log10_p < -10
    assert found["U1.blocks"].n == 48


def test_experts_are_compared_by_number_and_copies_of_one_are_tied() -> None:
    def mixed(seed: int, copied: bool) -> Sample:
        sources = [made(100 if copied else 100 + at, units=24) for at in range(4)]
        rng = np.random.default_rng(seed)
        routers = {layer: rng.normal(size=(4, 32)).astype(np.float32) for layer in range(3)}
        experts = {
            (layer, at): one.units[layer] for layer in range(3) for at, one in enumerate(sources)
        }
        return keyed(replace(made(101), units={}, experts=experts, routers=routers))

    apart = mixed(1, copied=False)
    found = by_test(apart, apart)
    assert found["E5.blocks"].log10_p == pytest.approx(-3 * np.log10(24), abs=0.01)
    assert found["S1"].n == 3 * 4 * 24
    tied = by_test(mixed(1, copied=True), mixed(2, copied=True))
    assert tied["E5.blocks"].log10_p > -2
    assert tied["S1"].n == 3 * 24
    dense = keyed(replace(made(100, units=24), units=made(100, units=24).units))
    assert by_test(dense, mixed(1, copied=True))["S1"].log10_p < -15


def test_biases_of_q_and_k_speak_for_themselves() -> None:
    def biased(sample: Sample, seed: int) -> Sample:
        rng = np.random.default_rng(seed)
        heads = {
            layer: replace(
                one,
                q_bias=rng.normal(size=(4, 8)).astype(np.float32),
                k_bias=rng.normal(size=(2, 8)).astype(np.float32),
            )
            for layer, one in sample.attention.items()
        }
        return replace(sample, attention=heads)

    same = by_test(biased(BASE, 1), biased(CHILD, 1))["S2.biases"]
    assert same.log10_p < -5 and same.learnt
    assert by_test(biased(BASE, 1), biased(CHILD, 2))["S2.biases"].log10_p > -3


def test_facts_of_a_llama_grant_all_groups() -> None:
    """The other tests would prove little if the made-up model had no symmetries."""
    side = Side(BASE)
    groups = [
        Group.RESIDUAL, Group.RESIDUAL_SIGN, Group.UNIT, Group.UNIT_SIGN, Group.VALUE_DIM,
        Group.PLANE_QUARTER,
    ]  # fmt: skip
    assert [side.refusal(group) for group in groups] == [None] * len(groups)
    assert LLAMA.norm == "rms"


def test_what_did_not_change_is_not_examined_again() -> None:
    """Reading more units leaves the answers about channels; other gains do not."""
    bare = replace(BASE, units={}, attention={})
    earlier = Side(bare)
    run_battery(earlier, replace(CHILD, units={}, attention={}))
    again = Side(BASE, earlier)
    assert again.prepared.scores is earlier.prepared.scores
    assert run_battery(again, CHILD) == run_battery(BASE, CHILD)
    other = replace(BASE, norms=made(9).norms)
    assert run_battery(Side(other, earlier), CHILD) == run_battery(other, CHILD)
