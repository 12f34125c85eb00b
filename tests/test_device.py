"""Arrays on a graphics card give what arrays on the processor give."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

import kinprint
from kinprint.device import Device, array_module, computing_on, downloaded, on_card, uploaded
from kinprint.errors import BadOption, MissingExtra
from kinprint.measure.basis import nearest_cosines, polar_factor
from kinprint.measure.change import change_sums
from kinprint.measure.invariants import UnitRows, unit_agreement
from kinprint.measure.spectra import principal_angles, singular_values
from kinprint.nulls.fixed_points import nearest_rows
from kinprint.workers import Threads


def _has_card() -> bool:
    try:
        import cupy

        return int(cupy.cuda.runtime.getDeviceCount()) > 0
    except Exception:
        return False


card = pytest.mark.skipif(not _has_card(), reason="no graphics card, or no CuPy")
DRAW = np.random.default_rng(7)


def test_without_a_card_it_is_said() -> None:
    if _has_card():
        assert kinprint.Reader(device="gpu").again() is not None
        return
    with pytest.raises((MissingExtra, BadOption), match="graphics card"):
        kinprint.Reader(device="gpu")


def test_a_device_nobody_knows_is_named() -> None:
    with pytest.raises(BadOption, match=r"device cannot be 'tpu': devices are cpu \| gpu"):
        kinprint.Reader(device="tpu")


def test_on_the_processor_arrays_stay_as_they_are() -> None:
    given = np.ones(3, ml_dtypes.bfloat16)
    assert uploaded(given) is given and downloaded(given) is given
    assert array_module(given) is np


def test_threads_compute_where_whoever_asks_does() -> None:
    """The choice belongs to a call, and the threads that the call starts keep to it."""
    pool = Threads(2, "test-device")
    with computing_on(Device.GPU):
        inside = pool.submit(on_card).result()
    outside = pool.submit(on_card).result()
    pool.shutdown()
    assert inside and not outside and not on_card()


def both(action: Callable[[], Any]) -> tuple[Any, Any]:
    found = []
    for device in (Device.CPU, Device.GPU):
        with computing_on(device):
            found.append(action())
    return found[0], found[1]


def _broken(values: NDArray[Any]) -> NDArray[Any]:
    values = values.copy()
    values[0, :3] = np.nan, np.inf, 0.0
    return values


@card
@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float16, np.float32, np.float64])
@pytest.mark.parametrize("shape", [(300, 5000), (70_000, 16), (9, 9), (1500, 1100)])
def test_sums_of_a_change(dtype: type, shape: tuple[int, int]) -> None:
    a: NDArray[Any] = DRAW.standard_normal(shape).astype(dtype)
    b = _broken((a.astype(np.float32) + 0.01 * DRAW.standard_normal(shape)).astype(dtype))
    b[5:7] = a[5:7]
    one, other = both(lambda: change_sums(a, b, shape))
    for name in ("numbers", "equal", "broken", "zeroed", "filled", "zeros"):
        assert getattr(one, name) == getattr(other, name), name
    for name in ("a_squares", "squares", "largest", "row_squares", "column_squares"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-4)
    for name in ("folded", "shuffled", "row_products", "column_products"):
        size = float(np.abs(getattr(one, name)).max())
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), atol=1e-4 * size)


@card
@pytest.mark.parametrize("flips", [False, True])
def test_nearest_rows(flips: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kinprint.nulls.fixed_points._PRODUCTS_ON_CARD", 700 * 600)
    x, y = DRAW.standard_normal((5000, 40)), DRAW.standard_normal((600, 40))
    one, other = both(lambda: nearest_rows(x, y, flips))
    for end in ("there", "back"):
        mine, theirs = getattr(one, end), getattr(other, end)
        np.testing.assert_array_equal(mine.at, theirs.at)
        np.testing.assert_allclose(mine.score, theirs.score, rtol=1e-4)
        np.testing.assert_allclose(mine.lead, theirs.lead, atol=1e-4)


@card
def test_maps_spectra_and_units() -> None:
    table = DRAW.standard_normal((60, 60)).astype(np.float32)
    np.testing.assert_allclose(*both(lambda: polar_factor(table)), atol=1e-5)
    tall, other = (DRAW.standard_normal((900, 80)) for _ in range(2))
    np.testing.assert_allclose(*both(lambda: singular_values(tall, direct=0)), rtol=1e-8)
    angles = both(lambda: principal_angles(tall, other, k=4, direct=0))
    np.testing.assert_allclose(*angles, atol=1e-6)
    layers = [UnitRows.of(*(DRAW.standard_normal((50, 30)) for _ in range(3))) for _ in range(3)]
    keys = [one.key for one in layers]
    np.testing.assert_allclose(*both(lambda: nearest_cosines(keys, keys, None)), atol=1e-5)
    agreement = both(lambda: unit_agreement(layers[0], layers[1], table[:30, :30].copy()))
    assert agreement[0].mutual == agreement[1].mutual
