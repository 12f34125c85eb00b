"""Equal numbers of two samples: by place, by row, by token, whatever was read of each."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from kinprint.lineage.parts.equality import INFORMATION, EqualNumbers, compare_numbers, copies
from kinprint.lineage.parts.tensors import at_equal_numbers
from kinprint.lineage.reading.sample import Attention, Floats, Sample, Units
from kinprint.model.places import Address
from kinprint.records import Component, Part
from tests.lineage.made import made, noisy

MODEL, STRANGER = made(1), made(2)
FEED_FORWARD, ATTENTION = Part(Component.FEED_FORWARD, 1), Part(Component.ATTENTION, 1)
EMBEDDING, HEAD = Part(Component.EMBEDDING), Part(Component.HEAD)


def equal_numbers(a: Sample, b: Sample, part: Part, partner: Part, *, tested: bool) -> EqualNumbers:
    """How a part and its partner agree, as a comparison of one pair of parts sees it."""
    return compare_numbers(a, b, part, partner, INFORMATION).told(tested)


def with_units(sample: Sample, rows: int, of: Sample) -> Sample:
    """The sample with some units of layer 1 from another."""

    def some(own: Floats, others: Floats) -> Floats:
        return np.concatenate([others[:rows], own[rows:]])

    own, others = sample.units[1], of.units[1]
    assert own.gate is not None and others.gate is not None
    taken = replace(
        own,
        up=some(own.up, others.up),
        down=some(own.down, others.down),
        gate=some(own.gate, others.gate),
    )
    return replace(sample, units={**sample.units, 1: taken})


def test_rows_meet_under_their_numbers() -> None:
    ours, theirs = np.arange(6, dtype=np.float32), np.arange(10, 16, dtype=np.float32)
    x, y = ours.reshape(3, 2), theirs.reshape(3, 2)
    same = at_equal_numbers((np.array([0, 2, 4]), x), (np.array([0, 2, 4]), y))
    assert np.array_equal(same[0], x) and np.array_equal(same[1], y)
    others = at_equal_numbers((np.array([0, 2, 4]), x), (np.array([2, 4, 6]), y))
    assert np.array_equal(others[0], x[1:]) and np.array_equal(others[1], y[:2])
    turned = at_equal_numbers((np.array([4, 0, 2]), x), (np.array([4, 0, 2]), y))
    assert np.array_equal(turned[0], x[[1, 2, 0]]) and np.array_equal(turned[1], y[[1, 2, 0]])


def test_rows_that_are_equal_are_found_among_others() -> None:
    half = with_units(STRANGER, 24, MODEL)
    found = equal_numbers(MODEL, half, FEED_FORWARD, FEED_FORWARD, tested=False)
    assert found.any and not found.all and found.kept
    assert found.share == 0.5 and found.information >= INFORMATION
    one = with_units(STRANGER, 1, MODEL)
    assert equal_numbers(MODEL, one, FEED_FORWARD, FEED_FORWARD, tested=False).share == 1 / 48
    for other in (STRANGER, noisy(MODEL, 0.1, 3)):
        assert not equal_numbers(MODEL, other, FEED_FORWARD, FEED_FORWARD, tested=False).any


def test_rows_without_information_are_no_equality() -> None:
    """Zeros, constants and a few numbers at places that a mask may have chosen."""
    for values in (0.0, 0.5):
        rows = np.full((48, 32), values, np.float32)
        rows[:, :4] = np.arange(1, 5) if values == 0 else 0.5
        first, second = (
            replace(one, units={1: replace(one.units[1], up=rows)}) for one in (MODEL, STRANGER)
        )
        assert not equal_numbers(first, second, FEED_FORWARD, FEED_FORWARD, tested=True).any


def test_equality_of_some_tensors_is_not_said_of_the_whole_part() -> None:
    units = MODEL.units[1]
    without = replace(MODEL, units={1: replace(units, down=np.zeros_like(units.down))})
    found = equal_numbers(MODEL, without, FEED_FORWARD, FEED_FORWARD, tested=False)
    assert found.any and not found.all and found.share == pytest.approx(2 / 3)
    plain = replace(MODEL, units={1: replace(units, gate=None)})
    assert not equal_numbers(MODEL, plain, FEED_FORWARD, FEED_FORWARD, tested=False).all


def test_heads_are_compared_by_their_numbers() -> None:
    """Of some groups one query head was read in the one model, and all of them in the other."""
    heads = MODEL.attention[1]
    assert heads.q is not None and heads.k is not None and heads.v is not None
    for groups in ([0, 1], [1]):
        queries = [2 * group for group in groups]
        sampled = replace(
            heads,
            q=heads.q[queries],
            k=heads.k[groups],
            v=heads.v[groups],
            o=None,
            query_heads=np.array(queries),
            groups=np.array(groups),
        )
        other = replace(MODEL, attention={1: sampled})
        found = equal_numbers(MODEL, other, ATTENTION, ATTENTION, tested=False)
        assert found.any and set(found.alike.values()) == {1.0}


def test_changed_biases_are_a_difference() -> None:
    heads = MODEL.attention[1]
    biases = np.random.default_rng(5).normal(size=(2, 4, 8)).astype(np.float32)
    first, second = (replace(MODEL, attention={1: replace(heads, q_bias=bias)}) for bias in biases)
    assert equal_numbers(first, first, ATTENTION, ATTENTION, tested=False).all
    assert not equal_numbers(first, second, ATTENTION, ATTENTION, tested=False).all


def test_equal_biases_beside_other_matrices_are_found() -> None:
    heads, others = MODEL.attention[1], STRANGER.attention[1]
    assert heads.q is not None
    bias = np.random.default_rng(5).normal(size=heads.q.shape[:2]).astype(np.float32)
    model = replace(MODEL, attention={1: replace(heads, q_bias=bias)})
    thief = replace(STRANGER, attention={1: replace(others, q_bias=bias)})
    found = equal_numbers(model, thief, ATTENTION, ATTENTION, tested=False)
    assert found.any and not found.all and 0 < found.share < 0.1
    other = replace(STRANGER, attention={1: replace(others, q_bias=bias[::-1].copy())})
    assert not equal_numbers(model, other, ATTENTION, ATTENTION, tested=False).any


def test_a_few_rows_of_a_table_are_compared_by_number_where_no_spelling_is_known() -> None:
    table = MODEL.embedding
    assert table is not None
    few = {(Address("embed"), False): (np.arange(8, 12), table.rows[8:12])}
    unspelt = replace(MODEL, embedding=None, few=few)
    assert equal_numbers(MODEL, unspelt, EMBEDDING, EMBEDDING, tested=False).all
    assert not equal_numbers(STRANGER, unspelt, EMBEDDING, EMBEDDING, tested=False).any


def test_a_head_may_be_the_embedding_of_another_model() -> None:
    other = replace(STRANGER, head=MODEL.embedding)
    assert equal_numbers(MODEL, other, EMBEDDING, HEAD, tested=False).all
    assert not equal_numbers(MODEL, other, EMBEDDING, EMBEDDING, tested=False).any


@pytest.mark.parametrize("crossed", ["head", "embedding"])
def test_tables_in_the_place_of_each_other_are_found(crossed: str) -> None:
    tables = [EMBEDDING, HEAD]
    ours, theirs = (
        replace(one, head=made(seed).embedding) for one, seed in ((MODEL, 3), (STRANGER, 4))
    )
    assert not any(copies(ours, theirs, tables, tables).values())
    other = "embedding" if crossed == "head" else "head"
    copied = replace(theirs, **{crossed: getattr(ours, other)})
    pair = (EMBEDDING, HEAD) if crossed == "head" else (HEAD, EMBEDDING)
    assert copies(ours, copied, tables, tables) == {pair[0]: [pair[1]], pair[1]: []}
    assert not any(copies(ours, copied, [EMBEDDING], tables).values())  # a tied one has its own way


def test_equal_rows_of_a_table_beside_others_may_be_first_weights() -> None:
    ours, theirs = MODEL.embedding, STRANGER.embedding
    assert ours is not None and theirs is not None
    for rows, kept in ((10, False), (60, False), (80, True)):
        mixed = np.concatenate([ours.rows[:rows], theirs.rows[rows:]])
        other = replace(STRANGER, embedding=replace(theirs, rows=mixed))
        found = equal_numbers(MODEL, other, EMBEDDING, EMBEDDING, tested=False)
        assert found.any and found.kept is kept and found.share == rows / 80


def test_a_share_counts_numbers_not_tensors() -> None:
    """Keys and values of one head beside queries and outputs of two are a third of the weights."""
    rng = np.random.default_rng(5)

    def heads(number: int) -> np.ndarray:
        return rng.standard_normal((number, 8, 32)).astype(np.float32)

    k, v = heads(1), heads(1)
    one, other = (
        Sample(name, name, 32, 1, attention={0: Attention(q=heads(2), k=k, v=v, o=heads(2))})
        for name in "ab"
    )
    part = Part(Component.ATTENTION, 0)
    found = equal_numbers(one, other, part, part, tested=False)
    assert found.any and not found.all
    assert found.share == pytest.approx(1 / 3) and found.alike == {"q": 0, "k": 1, "v": 1, "o": 0}


def test_what_a_short_float_makes_constant_is_no_equality() -> None:
    """Gains near one are one in fp8, whoever's they are."""
    norms = Part(Component.NORMS, 1)
    near: Floats = np.random.default_rng(6).uniform(0.98, 1.04, 32).astype(np.float32)
    told, silent = ("norm_in", 1), ("norm_post_attn", 1)
    ours = replace(MODEL, norms={**MODEL.norms, silent: near})
    theirs = replace(MODEL, norms={**MODEL.norms, silent: np.ones(32, np.float32)})
    found = equal_numbers(ours, theirs, norms, norms, tested=True)
    assert found.any and not found.all and found.share == 0.5
    assert found.consistent and found.bits == 8
    first, second = (replace(one, norms={silent: one.norms[silent]}) for one in (ours, theirs))
    assert not equal_numbers(first, second, norms, norms, tested=True).any
    other = replace(theirs, norms={**theirs.norms, told: STRANGER.norms[told]})
    assert not equal_numbers(ours, other, norms, norms, tested=True).consistent


def test_gains_of_a_formula_are_no_equality() -> None:
    norms = Part(Component.NORMS, 1)
    places = np.linspace(0, 1, 64)
    for gains in (1 + places, 1.5 + np.sin(9 * places), np.exp(-places), np.hanning(64) + 1):
        vectors = {("norm_in", 1): gains.astype(np.float32)}
        first, second = (replace(one, norms=vectors) for one in (MODEL, STRANGER))
        assert not equal_numbers(first, second, norms, norms, tested=True).any


def test_copies_at_other_places_pay_for_the_places_of_both_models() -> None:
    """The fewest numbers that tell are more where more parts may meet, in either order."""
    few = [Part(Component.FEED_FORWARD, layer) for layer in range(2)]
    many = [*few, *(Part(Component.EXPERT, 0, expert) for expert in range(10**5))]
    rows = np.zeros((1, 32), np.float32)
    rows[0, :20] = np.random.default_rng(7).normal(size=20)  # 10^18 arrangements
    units = Units(np.arange(1), 1, rows, rows)
    first, second = (replace(one, units={at: units}) for at, one in ((1, MODEL), (0, STRANGER)))
    assert copies(first, second, few, few)[few[1]] == [few[0]]
    for ours, theirs in ((few, many), (many, few), (many, many)):
        found = copies(first, second, ours, theirs)[few[1]]
        assert found == ([few[0]] if len(ours) * len(theirs) < 10**6 else [])
