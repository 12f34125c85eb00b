"""Tensors that hold a constant or a pattern are alike without being related.

Both models hold the very same numbers in their matrices, yet chance has dealt nothing: no test
may speak against them, and those that had nothing to relabel must say so.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from msgspec.structs import replace

from kinprint.lineage.battery import run_battery
from kinprint.lineage.preparation import Prepared
from kinprint.lineage.reading.sample import Floats, Sample
from kinprint.records import Evidence
from tests.lineage.made import keyed, made, noisy

DEPTH = 14
Fill = Callable[[tuple[int, ...], np.random.Generator], np.ndarray]


def _identity(shape: tuple[int, ...], _: np.random.Generator) -> np.ndarray:
    return np.broadcast_to(np.eye(shape[-2], shape[-1]), shape)


def _counted(shape: tuple[int, ...], _: np.random.Generator) -> np.ndarray:
    return np.arange(np.prod(shape), dtype=np.float64).reshape(shape)


def _ramp(shape: tuple[int, ...], _: np.random.Generator) -> np.ndarray:
    return np.broadcast_to(np.linspace(-1, 1, shape[-1]) ** 3, shape)


def _outer(shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    return rng.normal(size=(*shape[:-1], 1)) * rng.normal(size=shape[-1])


def _lifted(shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    return 1.0 + 0.3 * rng.normal(size=shape)


def _sloped(shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """The same direction under every row, too weak to make rows copies of one another."""
    return np.linspace(-1, 1, shape[-1]) + rng.normal(size=shape)


FILLS: dict[str, Fill] = {
    "zeros": lambda shape, _: np.zeros(shape),
    "ones": lambda shape, _: np.ones(shape),
    "a tenth": lambda shape, _: np.full(shape, 0.1),
    "identity": _identity,
    "counted": _counted,
    "equal rows": _ramp,
    "rank one": _outer,
    "common mean": _lifted,
    "common direction": _sloped,
}


def filled(fill: Fill, seed: int, *, gains: bool = False, biases: bool = False) -> Sample:
    """A model whose matrices are all made the same way; its gains are ones or its own."""
    base, rng = made(seed, depth=DEPTH), np.random.default_rng(seed)

    def new(rows: Floats | None) -> Floats:
        assert rows is not None
        return np.ascontiguousarray(fill(rows.shape, rng), np.float32)

    assert base.embedding is not None
    one = {
        layer: replace(part, q=new(part.q), k=new(part.k), v=new(part.v), o=new(part.o))
        for layer, part in base.attention.items()
    }
    if biases:
        one = {
            layer: replace(part, q_bias=np.ones((4, 8), "f4"), k_bias=np.ones((2, 8), "f4"))
            for layer, part in one.items()
        }
    return keyed(
        replace(
            base,
            norms=base.norms
            if gains
            else {key: np.ones_like(gain) for key, gain in base.norms.items()},
            units={
                layer: replace(part, up=new(part.up), down=new(part.down), gate=new(part.gate))
                for layer, part in base.units.items()
            },
            attention=one,
            embedding=replace(base.embedding, rows=new(base.embedding.rows)),
        )
    )


def by_test(a: Sample, b: Sample) -> dict[str, Evidence]:
    return {one.test: one for one in run_battery(a, b)}


@pytest.mark.parametrize("gains", [False, True], ids=["flat gains", "own gains"])
@pytest.mark.parametrize("name", FILLS)
def test_patterns_are_no_evidence(name: str, gains: bool) -> None:
    one, other = (filled(FILLS[name], seed, gains=gains) for seed in (1, 2))
    for test, found in by_test(one, other).items():
        assert found.log10_p > -4, (test, found.status)


@pytest.mark.parametrize("name", ["zeros", "ones", "a tenth", "identity"])
def test_constants_are_undefined_and_not_tested(name: str) -> None:
    one = filled(FILLS[name], 1)
    assert one.embedding is not None
    rows = one.embedding.rows.copy()
    rows[3, 5] += 1
    other = keyed(replace(one, embedding=replace(one.embedding, rows=rows)))
    for test, found in by_test(one, other).items():
        assert found.status != "ok", test
        assert found.reason and found.log10_p == 0, test
    found_by = by_test(one, other)
    for test in ("U1.blocks", "U1.fixed", "E6.units", "S1", "S2", "Cm.blocks", "E1.blocks", "S4"):
        assert found_by[test].status == "undefined", test


def test_constant_biases_have_no_signs() -> None:
    one = filled(FILLS["rank one"], 1, biases=True)
    found = by_test(one, filled(FILLS["rank one"], 2, biases=True))["S2.biases"]
    assert found.log10_p > -4


@pytest.mark.parametrize("unread", [("down",), ("down", "gate"), ("up",)])
def test_effects_count_the_matrices_that_were_read(unread: tuple[str, ...]) -> None:
    """Zeros stand for what was not read, in one of the models or in both."""

    def without(sample: Sample) -> Sample:
        units = {
            layer: replace(part, **{role: np.zeros_like(part.up) for role in unread})
            for layer, part in sample.units.items()
        }
        return keyed(replace(sample, units=units))

    whole = made(1)
    child = noisy(whole, 1.0, 2)
    for one, other in ((without(whole), without(child)), (without(whole), child)):
        found = by_test(one, other)
        assert found["U1.blocks"].effect == pytest.approx(0.5**0.5, abs=0.1)
        assert found["S1"].effect == pytest.approx(0.5**0.5, abs=0.1)
        kept = tuple(role for role in ("gate", "up", "down") if role not in unread)
        for test in ("U1.blocks", "U1.fixed", "U1.aligned"):
            assert found[test].roles == kept, test
        assert found["S1"].roles == tuple(role for role in kept if role != "gate")
        layers = [value for _, value in found["U1.blocks"].by_layer]
        assert layers == pytest.approx([0.5**0.5] * 3, abs=0.1)


def test_values_without_outputs_have_their_own_scale() -> None:
    whole = made(1)
    child = noisy(whole, 1.0, 2)

    def without(sample: Sample) -> Sample:
        heads = {layer: replace(part, o=None) for layer, part in sample.attention.items()}
        return replace(sample, attention=heads)

    for one, other in ((whole, child), (without(whole), without(child))):
        found = by_test(one, other)
        assert found["E4.blocks"].effect == pytest.approx(0.5**0.5, abs=0.1)
        assert found["S4"].effect == pytest.approx(0.5**0.5, abs=0.1)
    assert found["S4"].roles == ("v",)


def test_unread_rows_do_not_order_units_by_index() -> None:
    """The choice of a basis looks at units in the order of size, whatever their index."""
    whole = made(1)
    units = {
        layer: replace(part, down=np.zeros_like(part.down)) for layer, part in whole.units.items()
    }
    for part in Prepared(replace(whole, units=units)).feed_forwards:
        assert len(np.unique(part.size)) == len(part.size)
