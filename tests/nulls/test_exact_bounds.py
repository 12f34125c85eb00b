"""Every bound against the exact p-value, by listing all relabellings of small problems."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from msgspec.structs import replace

from kinprint.nulls.blocks import (
    BLOCK,
    block_log10_p,
    block_permutation,
    block_sizes,
    each_block_log10_p,
    each_signed_log10_p,
    signed_blocks,
    signed_log10_p,
)
from kinprint.nulls.chernoff import log_cosh
from kinprint.nulls.fixed_points import Pairs, fixed_point_log10_p, fixed_points
from kinprint.nulls.increasing import (
    increasing_log10_p,
    increasing_subsequence,
    longest_increasing,
    longest_of_many,
)
from kinprint.nulls.result import DRAWS, Floats, NullResult
from kinprint.nulls.signs import (
    each_quarter_log10_p,
    each_sign_log10_p,
    quarter_log10_p,
    quarter_turns,
    sign_chernoff,
    sign_log10_p,
)
from tests.nulls.worlds import block_products

# Scores on a grid, far above what counts as rounding beside the largest of them.
grid = st.one_of(st.integers(-40, 40).map(lambda k: k / 8), st.sampled_from([0.0, 1.0, 1e5]))
orders_of = {m: list(itertools.permutations(range(m))) for m in (1, 2, 3, 4)}


def exact(statistics: Floats) -> Floats:
    """Share of the orbit at or above each element; equal up to rounding counts as equal."""
    slack = 1e-14 * float(np.abs(statistics).max())
    ordered = np.sort(statistics)
    return 1 - np.searchsorted(ordered, statistics - slack) / len(statistics)


def assert_bounds(log10_ps: Floats, statistics: Floats) -> None:
    assert (log10_ps >= np.log10(exact(statistics)) - 1e-9).all()
    assert (log10_ps <= 0).all()


@settings(max_examples=40, deadline=None)
@given(arrays(np.float64, (2, 3, 3), elements=grid))
def test_block_bound_is_above_the_exact_p_of_every_relabelling(scores: Floats) -> None:
    orbit = np.array(
        [[scores[0][list(p)], scores[1][list(q)]] for p in orders_of[3] for q in orders_of[3]]
    )
    statistics = np.trace(orbit, axis1=2, axis2=3).sum(axis=1)
    assert_bounds(block_log10_p(orbit), statistics)


@settings(max_examples=40, deadline=None)
@given(arrays(np.float64, (1, 4, 4), elements=grid), arrays(np.float64, (1, 2, 2), elements=grid))
def test_ragged_blocks_move_only_real_rows(scores: Floats, tail: Floats) -> None:
    wide = np.full((1, 4, 4), 77.0)
    wide[:, :2, :2] = tail
    orbit = np.array(
        [
            np.concatenate([scores[:, list(p)], wide[:, [*q, 2, 3]]])
            for p in orders_of[4]
            for q in orders_of[2]
        ]
    )
    statistics = np.trace(orbit[:, 0], axis1=1, axis2=2) + np.trace(
        orbit[:, 1, :2, :2], axis1=1, axis2=2
    )
    assert_bounds(block_log10_p(orbit, [4, 2]), statistics)


@settings(max_examples=40, deadline=None)
@given(arrays(np.float64, (1, 3, 3), elements=grid), arrays(np.float64, (1, 3, 3), elements=grid))
def test_signed_bound_is_above_the_exact_p(gate: Floats, up: Floats) -> None:
    orbit = [
        (gate[:, list(p)], (up * np.array(e)[None, :, None])[:, list(p)])
        for p in orders_of[3]
        for e in itertools.product((1, -1), repeat=3)
    ]
    plain, signed = np.array([o[0] for o in orbit]), np.array([o[1] for o in orbit])
    statistics = np.trace(plain + signed, axis1=2, axis2=3).sum(axis=1)
    assert_bounds(signed_log10_p(plain, signed), statistics)


@settings(max_examples=40, deadline=None)
@given(arrays(np.float64, 7, elements=grid))
def test_sign_bound_is_above_the_exact_p(t: Floats) -> None:
    orbit = t * np.array(list(itertools.product((1, -1), repeat=7)))
    assert_bounds(sign_log10_p(orbit), orbit.sum(axis=1))


@settings(max_examples=40, deadline=None)
@given(arrays(np.float64, (2, 4), elements=grid))
def test_quarter_turn_bound_is_above_the_exact_p(parts: Floats) -> None:
    c = parts[0] + 1j * parts[1]
    turns = np.array(list(itertools.product((1, 1j, -1, -1j), repeat=4)))
    orbit = c * turns
    assert_bounds(quarter_log10_p(orbit), orbit.real.sum(axis=1))


def test_fixed_point_bound_is_above_the_exact_p() -> None:
    for m, n, layers in ((5, 5, 1), (3, 5, 1), (3, 4, 2), (1, 3, 3)):
        one = [sum(p[i] == i for i in range(m)) for p in itertools.permutations(range(n))]
        counts = np.array([sum(each) for each in itertools.product(one, repeat=layers)])
        for k in range(m * layers + 1):
            found = fixed_point_log10_p(k, [(m, n)] * layers)
            share = (counts >= k).mean()
            assert found >= math.log10(share) - 1e-12
        assert found == pytest.approx(math.log10(share))  # all fixed: exact


def test_fixed_point_bound_is_never_weaker_than_the_plain_one() -> None:
    for k in range(1, 60):
        plain = (k * math.log(8) - math.lgamma(k + 1)) / math.log(10)
        assert fixed_point_log10_p(k, [(64, 64)] * 8) <= min(0.0, plain) + 1e-12


def test_increasing_bound_is_above_the_exact_p() -> None:
    for n in range(2, 8):
        lengths = longest_of_many(np.array(list(itertools.permutations(range(n)))))
        for k in range(1, n + 1):
            assert increasing_log10_p(k, n) >= math.log10((lengths >= k).mean()) - 1e-12
        assert increasing_log10_p(n, n) == pytest.approx(-math.log10(math.factorial(n)))


@given(st.lists(st.integers(0, 20), max_size=25))
def test_longest_increasing_is_the_quadratic_programs(sequence: list[int]) -> None:
    best: list[int] = []
    for i, value in enumerate(sequence):
        best.append(1 + max((best[j] for j in range(i) if sequence[j] < value), default=0))
    assert longest_increasing(sequence) == max(best, default=0)
    if sequence:
        assert longest_of_many(np.array([sequence]))[0] == max(best)


def test_floors_are_reached_and_never_crossed() -> None:
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(9, 4, 4))
    strong = block_permutation(noise + 50 * np.eye(4), [4] * 8 + [3])
    assert strong.floor == pytest.approx(-(8 * math.log10(24) + math.log10(6)))
    assert strong.floor <= strong.log10_p <= strong.floor + 0.01
    both = signed_blocks(noise, np.abs(noise) + 50 * np.eye(4), [4] * 8 + [3])
    assert both.floor <= both.log10_p <= both.floor + 0.01
    coins = sign_chernoff(rng.uniform(1e-4, 1, 300))
    assert coins.floor <= coins.log10_p <= coins.floor + 0.01
    planes = quarter_turns(rng.uniform(1, 2, 50) + 1j * rng.uniform(-1, 1, 50) * 0.9)
    assert planes.floor == pytest.approx(-50 * math.log10(4))
    assert planes.floor <= planes.log10_p <= planes.floor + 0.01


def test_bounds_ignore_scale_and_do_not_overflow() -> None:
    rng = np.random.default_rng(1)
    scores = rng.normal(size=(40, 4, 4)) + 0.5 * np.eye(4)
    one = block_permutation(scores).log10_p
    for scale in (1e-150, 1e-9, 1e9, 1e150):
        assert block_permutation(scores * scale).log10_p == pytest.approx(one, rel=1e-3)
        t = np.diagonal(scores, axis1=1, axis2=2).ravel()
        assert sign_chernoff(t * scale).log10_p == pytest.approx(sign_chernoff(t).log10_p, rel=1e-3)


def test_the_search_finds_the_smallest_exponent() -> None:
    from scipy.optimize import minimize_scalar

    rng = np.random.default_rng(2)
    for draw in (
        rng.normal(0.3, 1, 80),
        rng.standard_cauchy(80) + 0.5,
        np.r_[1e6, rng.normal(2, 1, 60)],
    ):
        t = draw if draw.sum() > 0 else -draw
        dense = np.exp(np.linspace(-40, 20, 6001))
        best = min(float(log_cosh(s * np.abs(t)).sum() - s * t.sum()) for s in dense)
        fine = minimize_scalar(
            lambda u, t=t: float(log_cosh(np.exp(u) * np.abs(t)).sum() - np.exp(u) * t.sum()),
            bracket=None,
            bounds=(-40, 20),
            method="bounded",
        )
        target = min(best, fine.fun) / math.log(10)
        assert sign_log10_p(t)[0] == pytest.approx(target, rel=1e-3, abs=1e-4)


def test_log_cosh_is_accurate_everywhere() -> None:
    x = np.array([0.0, 1e-12, 1e-5, 9.9e-4, 1.1e-3, 0.5, 3.0, 20.0, 1e5])
    assert log_cosh(x[:-1]) == pytest.approx(np.log1p(2 * np.sinh(x[:-1] / 2) ** 2), rel=1e-9)
    assert log_cosh(x)[-1] == pytest.approx(1e5 - math.log(2))


def test_nothing_to_relabel_is_no_evidence() -> None:
    assert block_permutation(np.zeros((0, 4, 4))).log10_p == 0
    assert block_permutation(np.ones((3, 1, 1))).log10_p == 0
    assert block_log10_p(np.ones((5, 3, 1, 1))).tolist() == [0.0] * 5
    assert signed_log10_p(np.ones((5, 0, 4, 4)), np.ones((5, 0, 4, 4))).tolist() == [0.0] * 5
    assert sign_chernoff([0.0, math.nan]).n == 0
    assert quarter_turns([]).floor == 0
    for scores in (np.zeros((5, 4, 4)), np.full((5, 4, 4), 0.3), np.full((5, 4, 4), math.nan)):
        assert block_permutation(scores).log10_p == 0
        assert signed_blocks(scores, np.zeros_like(scores)).log10_p == 0


def test_a_constant_tensor_does_not_speak_through_rounding() -> None:
    rng = np.random.default_rng(3)
    for seed in range(20):
        b = np.random.default_rng(seed).normal(size=(64, 4096))
        a = np.full_like(b, 0.1)
        scores = block_products(a, b)
        scores += 1e-13 * np.abs(scores) * (np.eye(4) + rng.normal(size=scores.shape) * 0.01)
        assert block_permutation(scores).log10_p == 0


def test_wrong_shapes_are_refused() -> None:
    with pytest.raises(ValueError, match="shape"):
        block_permutation(np.zeros((4, 4)))
    with pytest.raises(ValueError, match="sizes"):
        block_permutation(np.zeros((2, 4, 4)), [4, 5])
    with pytest.raises(ValueError, match="pair"):
        signed_blocks(np.zeros((2, 4, 4)), np.zeros((3, 4, 4)))
    assert block_sizes(10).tolist() == [4, 4, 2]


def assert_same_bounds(together: list[float], alone: list[float]) -> None:
    """Sums may be added in another order."""
    np.testing.assert_allclose(together, alone, rtol=1e-9, atol=1e-9)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(1, 3), max_size=30), st.integers(0, 2**32 - 1))
def test_coins_of_several_problems_have_the_bounds_of_each(sizes: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = [rng.normal(0.5, size=size) for size in sizes]
    planes = [value + 1j * rng.normal(size=len(value)) for value in values]
    assert_same_bounds(each_sign_log10_p(values), [float(sign_log10_p(one)[0]) for one in values])
    assert_same_bounds(
        each_quarter_log10_p(planes), [float(quarter_log10_p(one)[0]) for one in planes]
    )


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(1, 9), max_size=20), st.integers(0, 2**32 - 1))
@example([1, 1, 5, 5], 173)  # of points as far apart to either side
def test_blocks_of_several_problems_have_the_bounds_of_each(counts: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    problems = []
    for count in counts:
        sizes = block_sizes(count)
        plain, signed = rng.normal(size=(2, len(sizes), BLOCK, BLOCK)) + np.eye(BLOCK)
        problems.append((plain, signed, sizes))
    assert_same_bounds(
        each_block_log10_p([(plain, sizes) for plain, _, sizes in problems]),
        [float(block_log10_p(plain, sizes)[0]) for plain, _, sizes in problems],
    )
    assert_same_bounds(
        each_signed_log10_p(problems), [float(signed_log10_p(*one)[0]) for one in problems]
    )


@pytest.mark.parametrize(
    "test",
    [
        lambda seed, rng: block_permutation(rng.normal(size=(9, 4, 4)), [4] * 8 + [3], seed),
        lambda seed, rng: signed_blocks(
            rng.normal(size=(9, 4, 4)), rng.normal(size=(9, 4, 4)), [4] * 8 + [3], seed
        ),
        lambda seed, rng: sign_chernoff(rng.normal(size=50), seed),
        lambda seed, rng: quarter_turns(rng.normal(size=50) + 1j * rng.normal(size=50), seed),
        lambda seed, rng: fixed_points([_pairs(rng)], seed=seed),
        lambda seed, rng: increasing_subsequence([_pairs(rng)], seed),
    ],
)
def test_without_a_seed_nothing_is_drawn_and_nothing_else_changes(
    test: Callable[[int | None, np.random.Generator], NullResult],
) -> None:
    drawn, plain = (test(seed, np.random.default_rng(1)) for seed in (0, None))
    assert len(drawn.null) == DRAWS and plain.null == ()
    assert replace(drawn, null=()) == plain


def _pairs(rng: np.random.Generator) -> Pairs:
    return Pairs(np.arange(20), rng.permutation(20), 20, 20)
