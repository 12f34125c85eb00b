"""Sets of byte ranges: union, gaps and merging. Pure; the planner and the cache share them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from operator import attrgetter

from kinprint.records import ByteRange

_start = attrgetter("start")


def union(ranges: Iterable[ByteRange]) -> tuple[ByteRange, ...]:
    """Sorted, disjoint ranges that cover the same bytes."""
    merged: list[ByteRange] = []
    for item in sorted((item for item in ranges if item.start < item.stop), key=_start):
        if merged and item.start <= merged[-1].stop:
            if item.stop > merged[-1].stop:
                merged[-1] = ByteRange(merged[-1].start, item.stop)
        else:
            merged.append(item)
    return tuple(merged)


class ExtentSet:
    """A growing set of bytes; adding and asking take logarithmic time."""

    __slots__ = ("_starts", "_stops")

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._stops: list[int] = []

    def add(self, span: ByteRange) -> None:
        """Add all bytes of a range."""
        if span.size <= 0:
            return
        first = bisect_left(self._stops, span.start)
        last = bisect_right(self._starts, span.stop)
        start, stop = span.start, span.stop
        if first < last:
            start = min(start, self._starts[first])
            stop = max(stop, self._stops[last - 1])
        self._starts[first:last] = [start]
        self._stops[first:last] = [stop]

    def covers(self, span: ByteRange) -> bool:
        """Whether every byte of a range is in the set."""
        place = bisect_right(self._starts, span.start) - 1
        return span.size <= 0 or (place >= 0 and self._stops[place] >= span.stop)

    def ranges(self) -> tuple[ByteRange, ...]:
        """The set as sorted, disjoint ranges."""
        return tuple(map(ByteRange, self._starts, self._stops))


def subtract(wanted: Sequence[ByteRange], known: Sequence[ByteRange]) -> tuple[ByteRange, ...]:
    """The parts of `wanted` that `known` does not cover; both sorted and disjoint."""
    missing: list[ByteRange] = []
    starts = [item.start for item in known]
    for want in wanted:
        at = want.start
        place = max(bisect_right(starts, at) - 1, 0)
        for have in known[place:]:
            if have.start >= want.stop:
                break
            if have.stop <= at:
                continue
            if have.start > at:
                missing.append(ByteRange(at, have.start))
            at = max(at, have.stop)
            if at >= want.stop:
                break
        if at < want.stop:
            missing.append(ByteRange(at, want.stop))
    return tuple(missing)


def bridge(
    missing: Sequence[ByteRange], known: Sequence[ByteRange], gap: int
) -> tuple[ByteRange, ...]:
    """Join missing ranges at most `gap` bytes apart, unless known bytes lie in between.

    Reading the bytes of a small gap costs less than another request.
    """
    starts = [item.start for item in known]
    joined: list[ByteRange] = []
    for item in missing:
        if joined and item.start - joined[-1].stop <= gap:
            place = bisect_right(starts, item.start - 1) - 1
            if place < 0 or known[place].stop <= joined[-1].stop:
                joined[-1] = ByteRange(joined[-1].start, item.stop)
                continue
        joined.append(item)
    return tuple(joined)


def split(ranges: Iterable[ByteRange], most: int) -> tuple[ByteRange, ...]:
    """The same ranges cut into parts of at most `most` bytes."""
    return tuple(
        ByteRange(at, min(at + most, item.stop))
        for item in ranges
        for at in range(item.start, item.stop, most)
    )


def total(ranges: Iterable[ByteRange]) -> int:
    """Bytes in all ranges together, counted once each."""
    return sum(item.size for item in ranges)
