"""Slices in, byte ranges out: what to read, known before the first byte is read.

Pure: no network, no disk, no numbers decoded. A slice becomes runs of elements; runs are
rounded out to whole blocks of their number format and become bytes; bytes that lie close
together are read in one request; long ranges are cut so that many connections share them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import prod
from typing import NoReturn

from msgspec import Struct

from kinprint import text
from kinprint.errors import SliceOutside
from kinprint.reader.dtypes import dtype_named
from kinprint.reader.extents import bridge, split, subtract, total, union
from kinprint.records import ByteRange, Cost, Slice, TensorSpec


class ReadPolicy(Struct, frozen=True):
    """How ranges are joined and cut.

    `gap` is what a request costs in bytes: 50 ms shared by 16 connections on a line of
    200 Mbit/s is 78 kB. `first_slack` lets the first read of a shard bring the tensors
    next to its header, often a norm vector, and `first_read` is that read's length where
    no index tells how long the header is. `benchmarks/tuning.py` measures all of them.
    """

    gap: int = 64 * 1024
    part: int = 4 * 1024 * 1024
    first_slack: int = 9 * 1024
    first_read: int = 128 * 1024
    connections: int = 16


class Run(Struct, frozen=True):
    """Consecutive elements of one tensor: where they start and how many."""

    start: int
    count: int


class FilePlan(Struct, frozen=True):
    """What is still to be read from one file, in requests."""

    path: str
    reads: tuple[ByteRange, ...]
    overhead: int = 0

    @property
    def cost(self) -> Cost:
        """Bytes and requests, resolving the address included."""
        extra = self.overhead if self.reads else 0
        return Cost(bytes=total(self.reads), requests=len(self.reads) + extra)


def element_runs(part: Slice) -> Iterator[Run]:
    """The slice as runs of consecutive elements, in the order of its result."""
    tensor = part.tensor
    columns = tensor.shape[-1] if tensor.shape else 1
    if part.elements is not None:
        if part.rows is not None or part.columns is not None:
            _refuse(tensor, "cause.slice.elements-within")
        _check(tensor, part.elements, tensor.count, "cause.slice.element")
        yield from _consecutive(part.elements)
    elif part.rows is None and part.columns is None:
        yield Run(0, tensor.count)
    else:
        height = prod(tensor.shape[:-1])
        rows = range(height) if part.rows is None else part.rows
        _check(tensor, rows, height, "cause.slice.row")
        if part.columns is None:
            for run in _consecutive(rows):
                yield Run(run.start * columns, run.count * columns)
        else:
            wide = part.columns
            if wide.step != 1:
                _refuse(tensor, "cause.slice.column-steps", number=wide.step)
            _check(tensor, wide, columns, "cause.slice.column")
            for row in rows:
                yield Run(row * columns + wide.start, len(wide))


def result_shape(part: Slice) -> tuple[int, ...]:
    """Shape of the array that reading the slice gives."""
    tensor = part.tensor
    if part.elements is not None:
        return (len(part.elements),)
    if part.rows is None and part.columns is None:
        return tensor.shape
    columns = tensor.shape[-1] if tensor.shape else 1
    height = prod(tensor.shape[:-1])
    return (
        height if part.rows is None else len(part.rows),
        columns if part.columns is None else len(part.columns),
    )


def run_bytes(tensor: TensorSpec, run: Run) -> ByteRange:
    """Bytes in the file that hold a run, rounded out to whole blocks."""
    kind = dtype_named(tensor.dtype, tensor.file)
    first = run.start // kind.block
    last = -(-(run.start + run.count) // kind.block)
    stop = min(tensor.offset + last * kind.size, tensor.offset + tensor.nbytes)
    return ByteRange(tensor.offset + first * kind.size, stop)


def slice_bytes(part: Slice) -> tuple[ByteRange, ...]:
    """Bytes in the file that a slice needs."""
    tensor = part.tensor
    if tensor.strides is not None:  # elements lie scattered; the whole extent is read
        list(element_runs(part))
        return union([ByteRange(tensor.offset, tensor.offset + tensor.nbytes)])
    return union([run_bytes(tensor, run) for run in element_runs(part)])


def plan_file(
    path: str,
    wanted: Iterable[ByteRange],
    known: Sequence[ByteRange],
    size: int,
    policy: ReadPolicy,
    overhead: int = 0,
) -> FilePlan:
    """Requests that bring what is wanted and not yet known of one file.

    A gap is bridged only where nothing known lies in it: no byte is read twice.
    """
    joined = bridge(subtract(union(wanted), known), known, policy.gap)
    for item in joined:
        if item.start < 0 or item.stop > size:
            raise ValueError(f"range {item} lies outside '{path}' of {size} bytes")
    return FilePlan(path, split(joined, policy.part), overhead)


def _consecutive(indices: range | tuple[int, ...]) -> Iterator[Run]:
    """Group indices into runs, keeping their order."""
    if isinstance(indices, range) and indices.step == 1:
        if len(indices):
            yield Run(indices.start, len(indices))
        return
    start: int | None = None
    count = 0
    for index in indices:
        if start is not None and index == start + count:
            count += 1
            continue
        if start is not None:
            yield Run(start, count)
        start, count = index, 1
    if start is not None:
        yield Run(start, count)


def _check(tensor: TensorSpec, indices: range | tuple[int, ...], limit: int, what: str) -> None:
    if not len(indices):
        return
    ends = (indices[0], indices[-1]) if isinstance(indices, range) else indices
    lowest, highest = min(ends), max(ends)
    if lowest < 0 or highest >= limit:
        _refuse(tensor, what, number=highest if highest >= limit else lowest)


def _refuse(tensor: TensorSpec, key: str, /, **fields: object) -> NoReturn:
    what = text.message(key, **fields)
    raise SliceOutside(tensor=tensor.name, shape=list(tensor.shape), what=what)
