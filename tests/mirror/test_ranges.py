"""Ranges against Python's own slices, in the parser and over the wire."""

from __future__ import annotations

import http.client
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kinprint.mirror import MirrorServer
from kinprint.mirror.ranges import Unsatisfiable, parse_range
from kinprint.records import ByteRange

Get = Callable[..., Any]


@given(start=st.integers(0, 300), last=st.integers(0, 300), size=st.integers(0, 200))
def test_first_and_last(start: int, last: int, size: int) -> None:
    header = f"bytes={start}-{last}"
    if last < start:
        assert parse_range(header, size) is None
    elif start >= size:
        with pytest.raises(Unsatisfiable):
            parse_range(header, size)
    else:
        span = parse_range(header, size)
        data = bytes(size)
        assert span is not None and span.size == len(data[start : last + 1])


@given(length=st.integers(0, 300), size=st.integers(0, 200))
def test_suffix(length: int, size: int) -> None:
    if length == 0 or size == 0:
        with pytest.raises(Unsatisfiable):
            parse_range(f"bytes=-{length}", size)
    else:
        assert parse_range(f"bytes=-{length}", size) == ByteRange(max(0, size - length), size)


@given(st.text(max_size=30))
def test_any_text_is_survived(text: str) -> None:
    span = None
    try:
        span = parse_range(text, 10)
    except Unsatisfiable:
        return
    assert span is None or 0 <= span.start < span.stop <= 10


@pytest.mark.parametrize(
    "header", [None, "", "bytes", "bytes=-", "bytes=1-2,4-5", "items=0-1", f"bytes=0-{'9' * 5000}"]
)
def test_what_is_not_understood_means_everything(header: str | None) -> None:
    assert parse_range(header, 10) is None


@pytest.fixture(scope="module")
def content(zoo: Path) -> bytes:
    return (zoo / "org/llama/model.safetensors").read_bytes()


@pytest.fixture(scope="module")
def wire(running: MirrorServer, get: Get) -> Iterator[tuple[http.client.HTTPConnection, str]]:
    location = get(
        f"{running.endpoint}/org/llama/resolve/main/model.safetensors", method="HEAD"
    ).headers["location"]
    parts = urlsplit(location)
    assert parts.hostname is not None
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=120)
    yield connection, f"{parts.path}?{parts.query}"
    connection.close()


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(start=st.integers(0, 4500), length=st.integers(1, 5000))
def test_over_the_wire(
    wire: tuple[http.client.HTTPConnection, str], content: bytes, start: int, length: int
) -> None:
    connection, target = wire
    connection.request("GET", target, headers={"Range": f"bytes={start}-{start + length - 1}"})
    response = connection.getresponse()
    body = response.read()
    if start >= len(content):
        assert response.status == 416
        assert response.headers["Content-Range"] == f"bytes */{len(content)}"
        return
    expected = content[start : start + length]
    assert (response.status, body) == (206, expected)
    stop = start + len(expected) - 1
    assert response.headers["Content-Range"] == f"bytes {start}-{stop}/{len(content)}"


def test_small_files_and_conditions(mirror: MirrorServer, get: Get, zoo: Path) -> None:
    address = f"{mirror.endpoint}/org/llama/resolve/main/config.json"
    text = (zoo / "org/llama/config.json").read_bytes()
    assert get(address, headers={"Range": "bytes=-5"}).body == text[-5:]
    assert get(address, headers={"Range": "bytes=4-"}).body == text[4:]
    whole = get(address)
    assert (whole.status, whole.body, whole.headers["accept-ranges"]) == (200, text, "bytes")
    tag = whole.headers["etag"]
    assert get(address, headers={"If-None-Match": tag}).status == 304
    assert get(address, headers={"If-None-Match": '"other"'}).status == 200
    other = get(address, headers={"If-Range": '"other"', "Range": "bytes=0-1"})
    assert (other.status, other.body) == (200, text)
    assert get(address, headers={"If-Range": tag, "Range": "bytes=0-1"}).status == 206
    head = get(address, method="HEAD", headers={"Range": "bytes=0-1"})
    assert (head.status, head.headers["content-length"]) == (200, str(len(text)))
