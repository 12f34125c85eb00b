"""What a graphics card gains, beside two cores in the same run.

    python -m benchmarks.gpu

Matches the units of two feed-forwards of 4096 × 11008, finds the rank of a change of that size
(sums, folds and spectrum, from numbers in memory), and takes all singular values of one. Prints
seconds of both and their ratio, checks that both say the same, and fails where matching or the rank
is less than ten times as fast on the card. Prepared tensors are in the memory of the processor: the
way to the card is counted.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from concurrent.futures import wait
from contextlib import ExitStack
from functools import partial
from typing import Any, TypeVar

import ml_dtypes
import numpy as np
from msgspec import Struct
from threadpoolctl import threadpool_limits

from kinprint.device import Device, computing_on, find_device
from kinprint.diff.mapping import FeedForwardRows, match_units
from kinprint.measure.change import ChangeSums, change_sums
from kinprint.measure.low_rank import ChangeSpectrum, rounding_variance, spectrum_of
from kinprint.measure.spectra import singular_values
from kinprint.workers import Threads

_WIDTH, _UNITS, _RANK = 4096, 11008, 16
_TENSORS = 32  # of which the rank is found
_CORES, _GAIN = 2, 10.0
_BLOCKS = {Device.CPU: 1 << 21, Device.GPU: 1 << 24}  # numbers, as in a full diff
_THREADS = {Device.CPU: _CORES, Device.GPU: 8}
T = TypeVar("T")


class _Row(Struct, frozen=True):
    name: str
    seconds: dict[Device, float]
    same: bool
    goal: bool

    @property
    def gain(self) -> float:
        return self.seconds[Device.CPU] / self.seconds[Device.GPU]


def _timed(device: Device, action: Callable[[], T], times: int) -> tuple[float, T]:
    """The least seconds of some runs, after one that warms up, and what they gave."""
    with ExitStack() as stack:
        stack.enter_context(computing_on(device))
        if device is Device.CPU:
            stack.enter_context(threadpool_limits(_CORES))
            times = 1
        else:
            action()
        best = float("inf")
        for _ in range(times):
            begun = time.perf_counter()
            found = action()
            best = min(best, time.perf_counter() - begun)
    return best, found


def _row(
    name: str, action: Callable[[Device], T], same: Callable[[T, T], bool], *, goal: bool = True
) -> _Row:
    seconds, found = {}, {}
    for device in Device:
        seconds[device], found[device] = _timed(device, partial(action, device), 5)
    return _Row(name, seconds, same(found[Device.CPU], found[Device.GPU]), goal)


def _matching(draw: np.random.Generator) -> _Row:
    """Units of two feed-forwards, the second renumbered, flipped and trained a little."""
    order = draw.permutation(_UNITS)
    signs = np.where(draw.random(_UNITS) < 0.5, -1, 1).astype(np.float32)[:, None]
    up, down, gate = (draw.standard_normal((_UNITS, _WIDTH), np.float32) for _ in range(3))
    noise = draw.standard_normal((_UNITS, _WIDTH), np.float32) * np.float32(0.1)
    before = FeedForwardRows(up, down, gate)
    after = FeedForwardRows(
        (up * signs)[order] + noise, (down * signs)[order] + noise, gate[order] + noise
    )

    def same(one: Any, other: Any) -> bool:
        pairs = all(np.array_equal(getattr(one, x), getattr(other, x)) for x in ("a", "b", "signs"))
        return pairs and bool(np.array_equal(one.a, order))

    return _row("matching of a layer pair", lambda _: match_units(before, after), same)


def _rank(draw: np.random.Generator) -> _Row:
    """Changes of rank sixteen, rounded to bfloat16."""
    base = (draw.standard_normal((_UNITS, _WIDTH), np.float32) * np.float32(0.02)).astype(
        ml_dtypes.bfloat16
    )
    thin = [draw.standard_normal((n, _RANK), np.float32) for n in (_UNITS, _WIDTH)]
    update = thin[0] @ thin[1].T * np.float32(2e-3)
    tuned = (base.astype(np.float32) + update).astype(ml_dtypes.bfloat16)

    def spectrum(device: Device) -> ChangeSpectrum:
        each = _BLOCKS[device] // _WIDTH
        total: ChangeSums | None = None
        for start in range(0, _UNITS, each):
            rows = slice(start, start + each)
            some = change_sums(base[rows], tuned[rows], base.shape, start)
            total = some if total is None else total + some
        assert total is not None
        found = spectrum_of(total, rounding_variance(tuned[:16]))
        assert found is not None
        return found

    pools = {device: Threads(count, "benchmark") for device, count in _THREADS.items()}

    def all_of_them(device: Device) -> ChangeSpectrum:
        """As in a diff: threads share the tensors."""
        with threadpool_limits(1):
            futures = [pools[device].submit(spectrum, device) for _ in range(_TENSORS)]
            wait(futures)
        return futures[0].result()

    def same(one: ChangeSpectrum, other: ChangeSpectrum) -> bool:
        near = [abs(one.effective / other.effective - 1), abs(one.whiteness - other.whiteness)]
        return one.rank == other.rank == _RANK and max(near) < 1e-3

    return _row(f"rank of a change, {_TENSORS} tensors", all_of_them, same)


def _spectrum(draw: np.random.Generator) -> _Row:
    matrix = draw.standard_normal((_UNITS, _WIDTH), np.float32)
    return _row(
        "singular values",
        lambda _: singular_values(matrix),
        lambda one, other: bool(np.allclose(one, other, rtol=1e-6)),
        goal=False,
    )


def main() -> int:
    """Print the table; 1 where a goal is missed or the devices disagree."""
    find_device(Device.GPU)
    draw = np.random.default_rng(0)
    rows = [_matching(draw), _rank(draw), _spectrum(draw)]
    print(f"{'4096 × 11008':32}{'2 cores':>10}{'card':>10}{'gain':>8}  same")
    for row in rows:
        seconds = (row.seconds[one] for one in (Device.CPU, Device.GPU))
        shown = "".join(f"{one:9.3f}s" for one in seconds)
        print(f"{row.name:32}{shown}{row.gain:7.1f}×  {'yes' if row.same else 'NO'}")
    missed = [row for row in rows if not row.same or (row.goal and row.gain < _GAIN)]
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
