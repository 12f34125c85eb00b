"""Puts the bytes of a slice together into an array. Pure, given a way to get bytes."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable

import numpy as np

from kinprint.reader.decode import Array, decode_run
from kinprint.reader.dtypes import dtype_named
from kinprint.reader.extents import union
from kinprint.reader.plan import element_runs, result_shape, run_bytes
from kinprint.records import ByteRange, Slice


def assemble(part: Slice, take: Callable[[ByteRange], bytes]) -> Array:
    """The numbers of a slice in the type they are stored in, shaped as the slice says."""
    if part.tensor.strides is not None:
        return _assemble_strided(part, take)
    tensor = part.tensor
    block = dtype_named(tensor.dtype, tensor.file).block
    runs = [run for run in element_runs(part) if run.count]
    needed = [run_bytes(tensor, run) for run in runs]
    spans = union(needed)
    held = [memoryview(take(span)) for span in spans]
    starts = [span.start for span in spans]
    pieces: list[Array] = []
    for run, span in zip(runs, needed, strict=True):
        home = bisect_right(starts, span.start) - 1
        raw = held[home][span.start - starts[home] : span.stop - starts[home]]
        pieces.append(decode_run(raw, tensor.dtype, run.start % block, run.count, tensor.file))
    return _join(pieces, part)


def _assemble_strided(part: Slice, take: Callable[[ByteRange], bytes]) -> Array:
    """A view into a larger storage: everything it spans is read, then viewed alike."""
    tensor = part.tensor
    steps = tensor.strides or ()
    pieces: list[Array] = []
    if tensor.count:
        reach = 1 + sum((size - 1) * step for size, step in zip(tensor.shape, steps, strict=True))
        raw = take(ByteRange(tensor.offset, tensor.offset + tensor.nbytes))
        stored = decode_run(raw, tensor.dtype, 0, reach, tensor.file)
        strides = tuple(step * stored.itemsize for step in steps)
        view = np.lib.stride_tricks.as_strided(stored, tensor.shape, strides, writeable=False)
        flat = np.ascontiguousarray(view).reshape(-1)
        pieces = [flat[run.start : run.start + run.count] for run in element_runs(part)]
    return _join(pieces, part)


def _join(pieces: list[Array], part: Slice) -> Array:
    if not pieces:
        pieces = [decode_run(b"", part.tensor.dtype, 0, 0, part.tensor.file)]
    flat = pieces[0] if len(pieces) == 1 else np.concatenate(pieces)
    return flat.reshape(result_shape(part))
