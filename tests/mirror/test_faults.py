"""Every fault as a client without mercy sees it."""

from __future__ import annotations

import gzip
import http.client
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from huggingface_hub import hf_hub_download

from kinprint.errors import BadOption
from kinprint.mirror import Fault, MirrorServer, parse_fault
from kinprint.mirror.faults import KINDS

Get = Callable[..., Any]
Address = Callable[..., str]


@pytest.fixture
def content(zoo: Path) -> bytes:
    return (zoo / "org/llama/model.safetensors").read_bytes()


def read_raw(address: str, headers: str = "", *, most: int = 1 << 30) -> bytes:
    """Read what the server sends, headers included, until it breaks or `most` bytes of body."""
    parts = urlsplit(address)
    with socket.create_connection((parts.hostname, parts.port or 80), timeout=120) as sock:
        target = parts.path + (f"?{parts.query}" if parts.query else "")
        sock.sendall(f"GET {target} HTTP/1.1\r\nHost: h\r\n{headers}\r\n".encode())
        data = b""
        while len(data.partition(b"\r\n\r\n")[2]) < most and (chunk := sock.recv(65536)):
            data += chunk
        return data


def test_status(mirror: MirrorServer, get: Get, storage_address: Address) -> None:
    address = storage_address()
    mirror.faults.replace([Fault("status", code=429, retry_after=7, times=2, after=1)])
    assert [get(address).status for _ in range(4)] == [200, 429, 429, 200]
    mirror.faults.replace([Fault("status", code=500, port="hub", where="*config.json")])
    hub = get(f"{mirror.endpoint}/org/llama/resolve/main/config.json")
    assert hub.status == 500
    assert get(address).status == 200
    mirror.faults.replace([Fault("status", code=503, retry_after=3)])
    answer = get(address)
    assert answer.headers["retry-after"] == "3" and b"SlowDown" in answer.body
    assert mirror.stats.statuses["storage", 503] == 1


@pytest.mark.parametrize("at", [0, 100, None])
def test_reset(
    mirror: MirrorServer, content: bytes, storage_address: Address, at: int | None
) -> None:
    address = storage_address()
    mirror.stats.reset()
    mirror.faults.add(Fault("reset", at=at, port="storage"))
    with pytest.raises(ConnectionResetError):
        read_raw(address)
    assert mirror.stats.body_bytes == (len(content) // 2 if at is None else at)


def test_reset_reaches_heads_and_redirects(mirror: MirrorServer, get: Get) -> None:
    mirror.faults.add(Fault("reset", where="*.safetensors", times=2))
    for method in ("HEAD", "GET"):
        with pytest.raises(ConnectionResetError):
            get(f"{mirror.endpoint}/org/llama/resolve/main/model.safetensors", method=method)


def test_truncate(mirror: MirrorServer, content: bytes, storage_address: Address) -> None:
    address = storage_address()
    mirror.faults.add(Fault("truncate", at=1000))
    head, _, body = read_raw(address).partition(b"\r\n\r\n")
    assert f"content-length: {len(content)}".encode() in head
    assert body == content[:1000]


def test_truncate_spoils_documents_too(mirror: MirrorServer, get: Get) -> None:
    mirror.faults.add(Fault("truncate", times=1))
    with pytest.raises(http.client.IncompleteRead):
        get(f"{mirror.endpoint}/api/models/org/llama")


def test_slow(mirror: MirrorServer, content: bytes, storage_address: Address) -> None:
    address = storage_address()
    mirror.faults.add(Fault("slow", rate=20, port="storage"))
    began = time.monotonic()
    data = read_raw(address, most=12)
    seconds = time.monotonic() - began
    body = data.partition(b"\r\n\r\n")[2]
    assert 12 <= len(body) <= 1 + 20 * seconds
    assert body == content[: len(body)]


def test_ignore_range(
    mirror: MirrorServer, get: Get, content: bytes, storage_address: Address
) -> None:
    address = storage_address()
    mirror.faults.add(Fault("ignore_range", times=1))
    assert get(address).status == 200  # no range, so the fault is not used up
    answer = get(address, headers={"Range": "bytes=5-9"})
    assert (answer.status, answer.body) == (200, content)
    assert get(address, headers={"Range": "bytes=5-9"}).status == 206


@pytest.mark.parametrize("asked", ["0-9", "100-199", "4000-", "0-"])
def test_wrong_range(
    mirror: MirrorServer, get: Get, content: bytes, storage_address: Address, asked: str
) -> None:
    address = storage_address()
    right = get(address, headers={"Range": f"bytes={asked}"})
    mirror.faults.add(Fault("wrong_range"))
    wrong = get(address, headers={"Range": f"bytes={asked}"})
    assert wrong.status == 206
    assert wrong.headers["content-range"] != right.headers["content-range"]
    first, last = wrong.headers["content-range"].split()[1].partition("/")[0].split("-")
    assert wrong.body == content[int(first) : int(last) + 1]


def test_short(mirror: MirrorServer, get: Get, content: bytes, storage_address: Address) -> None:
    address = storage_address()
    mirror.faults.add(Fault("short"))
    answer = get(address, headers={"Range": "bytes=10-109"})
    assert (answer.status, answer.body) == (206, content[10:60])
    assert answer.headers["content-length"] == "50"


def test_corrupt(mirror: MirrorServer, get: Get, content: bytes, storage_address: Address) -> None:
    address = storage_address()
    mirror.faults.replace([Fault("corrupt", at=3)])
    body = get(address, headers={"Range": "bytes=10-19"}).body
    assert [n for n in range(10) if body[n] != content[10 + n]] == [3]
    mirror.faults.replace([Fault("corrupt")])
    body = get(address).body
    assert len(body) == len(content)
    assert sum(a != b for a, b in zip(body, content, strict=True)) == 1


def test_expire(mirror: MirrorServer, get: Get, storage_address: Address) -> None:
    mirror.faults.add(Fault("expire", times=1))
    address = storage_address()
    answer = get(address)
    assert answer.status == 403 and b"expired" in answer.body
    assert get(address).status == 200


def test_gzip(mirror: MirrorServer, get: Get, content: bytes, storage_address: Address) -> None:
    address = storage_address()
    mirror.faults.add(Fault("gzip"))
    answer = get(address, headers={"Range": "bytes=0-999"})
    assert (answer.status, answer.headers["content-encoding"]) == (206, "gzip")
    assert gzip.decompress(answer.body) == content[:1000]
    document = get(f"{mirror.endpoint}/api/models/org/llama")
    assert gzip.decompress(document.body).startswith(b"{")


def test_the_client_gets_over_some_faults(
    mirror: MirrorServer, content: bytes, tmp_path: Path
) -> None:
    mirror.faults.add(Fault("truncate", port="storage", times=1, at=500))
    got = hf_hub_download(
        "org/llama", "model.safetensors", endpoint=mirror.endpoint, cache_dir=tmp_path, token=False
    )
    assert Path(got).read_bytes() == content
    assert mirror.stats.count("storage", "GET") == 2


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (
            "status=503,where=*.safetensors,times=2",
            Fault("status", code=503, where="*.safetensors", times=2),
        ),
        ("status,retry_after=3", Fault("status", retry_after=3)),
        ("slow, rate=0.5, port=hub", Fault("slow", rate=0.5, port="hub")),
        ("reset,at=0,after=4,method=get", Fault("reset", at=0, after=4, method="GET")),
        *((kind, Fault(kind)) for kind in KINDS),
    ],
)
def test_faults_are_read_from_text(text: str, fault: Fault) -> None:
    assert parse_fault(text) == fault


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "one of status, reset"),
        ("explode", "one of status, reset"),
        ("status=200", "between 400 and 599"),
        ("status=abc", "takes a number"),
        ("slow=5", "only status takes a value"),
        ("slow,rate=0", "above zero"),
        ("slow,rate", "name=value"),
        ("slow,speed=3", "none of where, port"),
        ("short,port=disk", "one of any, hub, storage"),
        ("short,times=-1", "not be negative"),
        ("short,times=1,times=2", "given twice"),
    ],
)
def test_a_bad_fault_is_explained(text: str, said: str) -> None:
    with pytest.raises(BadOption, match="faults") as bad:
        parse_fault(text)
    assert said in str(bad.value)
