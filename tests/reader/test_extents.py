"""Sets of ranges against sets of single bytes."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from kinprint.reader.extents import ExtentSet, bridge, split, subtract, total, union
from kinprint.records import ByteRange

spans = st.builds(
    lambda start, size: ByteRange(start, start + size), st.integers(0, 60), st.integers(0, 20)
)
span_lists = st.lists(spans, max_size=12)


def covered(ranges: tuple[ByteRange, ...] | list[ByteRange]) -> set[int]:
    return {at for item in ranges for at in range(item.start, item.stop)}


@given(span_lists)
def test_union_covers_the_same_bytes_and_is_disjoint(ranges: list[ByteRange]) -> None:
    merged = union(ranges)
    assert covered(merged) == covered(ranges)
    assert total(merged) == len(covered(ranges))
    assert all(one.stop < two.start for one, two in pairwise(merged))


@given(span_lists, st.integers(0, 15))
def test_bridging_joins_exactly_the_close_ones(ranges: list[ByteRange], gap: int) -> None:
    joined = bridge(union(ranges), (), gap)
    assert covered(ranges) <= covered(joined)
    assert all(two.start - one.stop > gap for one, two in pairwise(joined))
    edges = {at for item in ranges if item.size for at in (item.start, item.stop)}
    assert {at for item in joined for at in (item.start, item.stop)} <= edges


@given(span_lists, span_lists)
def test_subtract_is_the_difference(wanted: list[ByteRange], known: list[ByteRange]) -> None:
    missing = subtract(union(wanted), union(known))
    assert covered(missing) == covered(wanted) - covered(known)
    assert total(missing) == len(covered(missing))


@given(span_lists, span_lists, st.integers(0, 15))
def test_bridging_never_reads_what_is_known(
    wanted: list[ByteRange], known: list[ByteRange], gap: int
) -> None:
    have = union(known)
    missing = subtract(union(wanted), have)
    joined = bridge(missing, have, gap)
    assert covered(missing) <= covered(joined)
    assert not covered(joined) & covered(known)
    assert len(joined) <= len(missing)


@given(span_lists, st.integers(1, 9))
def test_split_keeps_the_bytes_and_the_limit(ranges: list[ByteRange], most: int) -> None:
    parts = split(union(ranges), most)
    assert covered(list(parts)) == covered(ranges)
    assert all(0 < part.size <= most for part in parts)


@given(span_lists, spans)
def test_a_growing_set_is_the_union(ranges: list[ByteRange], asked: ByteRange) -> None:
    grown = ExtentSet()
    for item in ranges:
        grown.add(item)
    assert grown.ranges() == union(ranges)
    assert grown.covers(asked) == (covered([asked]) <= covered(ranges))
