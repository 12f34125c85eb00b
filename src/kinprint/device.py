"""Where large arrays are computed: on the processor by NumPy, or on a graphics card by CuPy.

`computing_on` chooses for a while; `uploaded` then puts arrays where they are computed and
`downloaded` brings results back. Functions in between take their module from `array_module`. On the
processor all of them hand on what they got. Results differ by rounding: sums are added in another
order.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from enum import StrEnum
from functools import wraps
from typing import Any, TypeVar

import numpy as np

from kinprint import text
from kinprint.errors import BadOption, MissingExtra

Array = Any
"""An array of NumPy or of CuPy."""
F = TypeVar("F", bound=Callable[..., Array])


class Device(StrEnum):
    """What computes."""

    CPU = "cpu"
    GPU = "gpu"


_ROOM = 32 << 20  # bytes that are sent at once
_thread = threading.local()
_device: ContextVar[Device] = ContextVar("kinprint-device", default=Device.CPU)


@contextmanager
def computing_on(device: Device) -> Iterator[None]:
    """Compute on a device within this block, in this thread and the pools that it starts."""
    token = _device.set(device)
    try:
        yield
    finally:
        _device.reset(token)


def find_device(name: str) -> Device:
    """The device of that name, if this machine has it."""
    if name not in list(Device):
        names = " | ".join(Device)
        cause = text.message("cause.device.unknown", names=names)
        raise BadOption(option="device", value=name, cause=cause)
    if name == Device.GPU:
        _require_card()
    return Device(name)


def on_card() -> bool:
    """Whether arrays are computed on a graphics card now."""
    return _device.get() is Device.GPU


def array_module(array: Array) -> Any:
    """NumPy, or CuPy where the array is one of its own."""
    if type(array).__module__.partition(".")[0] == "cupy":
        return sys.modules["cupy"]  # loaded by whoever made the array
    return np


def uploaded(array: Array) -> Array:
    """An array where it is computed; bfloat16, which no card's arrays have, as float32."""
    if not on_card() or array_module(array) is not np:
        return array
    if array.dtype.name != "bfloat16":
        return _sent(np.ascontiguousarray(array))
    bits = _sent(np.ascontiguousarray(array).view(np.uint16))
    xp = array_module(bits)
    return xp.left_shift(bits, 16, dtype=xp.uint32).view(xp.float32)


def downloaded(array: Array) -> Any:
    """An array of NumPy's, wherever it was computed."""
    xp = array_module(array)
    return array if xp is np else xp.asnumpy(array)


def computed_on_device(function: F) -> F:
    """Have a function from arrays to one array computed on the device; what it gives lies where
    its first argument lay."""

    @wraps(function)
    def run(first: Array, *others: Array) -> Array:
        found = function(uploaded(first), *(uploaded(one) for one in others))
        return downloaded(found) if array_module(first) is np else found

    return run  # type: ignore[return-value]


def _sent(array: Array) -> Array:
    """An array on the card, piece by piece through memory that the card reads by itself.

    Each thread has a room of its own for that, so that several can send at once.
    """
    import cupy

    out = cupy.empty(array.shape, array.dtype)
    if not array.size:
        return out
    if not hasattr(_thread, "room"):
        memory = cupy.cuda.alloc_pinned_memory(_ROOM)
        _thread.room = np.frombuffer(memory, np.uint8, _ROOM)
    stream = cupy.cuda.get_current_stream()
    raw, to = array.reshape(-1).view(np.uint8), out.reshape(-1).view(np.uint8)
    for start in range(0, len(raw), _ROOM):
        some = raw[start : start + _ROOM]
        room = _thread.room[: len(some)]
        np.copyto(room, some)
        to[start : start + len(some)].set(room, stream)
        stream.synchronize()
    return out


def _require_card() -> None:
    # Threads send and compute side by side; CuPy looks for this when it is first loaded.
    os.environ.setdefault("CUPY_CUDA_PER_THREAD_DEFAULT_STREAM", "1")
    try:
        import cupy
    except ImportError:
        feature = text.message("cause.extra.gpu")
        raise MissingExtra(feature=feature, extra="gpu") from None
    try:
        cards = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError:
        cards = 0
    if not cards:
        cause = text.message("cause.device.no-card")
        raise BadOption(option="device", value=str(Device.GPU), cause=cause)
