"""A small zoo on disk, a mirror in front of it, and a client that hides nothing."""

from __future__ import annotations

import http.client
import json
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from msgspec import Struct

from kinprint.mirror import MirrorServer

TOKEN = "hf_owner"
GUEST = "hf_guest"


class Answer(Struct, frozen=True):
    """What a server really said; header names are in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes


def raw_get(
    url: str,
    *,
    method: str = "GET",
    headers: dict[str, str] | None = None,
    body: bytes | None = None,
) -> Answer:
    """Send one request without following redirects, unpacking or retrying."""
    parts = urlsplit(url)
    assert parts.hostname is not None
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=120)
    try:
        target = parts.path + (f"?{parts.query}" if parts.query else "")
        connection.request(method, target, body=body, headers=headers or {})
        response = connection.getresponse()
        named = {name.lower(): value for name, value in response.getheaders()}
        return Answer(response.status, named, response.read())
    finally:
        connection.close()


def write_safetensors(file: Path, shapes: dict[str, list[int]], fill: int = 1) -> bytes:
    header: dict[str, object] = {}
    offset = 0
    for name, shape in shapes.items():
        size = 4
        for length in shape:
            size *= length
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    body = bytes((index * 7 + fill) % 251 for index in range(offset))
    content = struct.pack("<Q", len(text)) + text + body
    file.write_bytes(content)
    return content


def build_zoo(root: Path) -> Path:
    """Two organisations, a bare name, a second branch, and subfolders."""
    llama = root / "org" / "llama"
    (llama / "original" / "deep").mkdir(parents=True)
    (llama / "config.json").write_text('{"model_type": "llama", "architectures": ["L"]}')
    (llama / "README.md").write_text("---\nbase_model: org/base\nlicense: mit\n---\n# Llama\n")
    write_safetensors(llama / "model.safetensors", {"a": [50, 20], "b": [3]})
    (llama / "original" / "params.json").write_text("{}")
    (llama / "original" / "deep" / "notes 1+2.txt").write_text("é")
    branch = root / "org" / "llama@v2"
    branch.mkdir()
    (branch / "config.json").write_text('{"model_type": "llama2"}')
    write_safetensors(branch / "model.safetensors", {"a": [60, 20]}, fill=2)
    bare = root / "bare"
    bare.mkdir()
    (bare / "config.json").write_text("{}")
    (bare / "model.safetensors.index.json").write_text(
        json.dumps({"metadata": {}, "weight_map": {"x": "m-1.safetensors", "y": "m-2.safetensors"}})
    )
    write_safetensors(bare / "m-1.safetensors", {"x": [4]})
    write_safetensors(bare / "m-2.safetensors", {"y": [5, 2]})
    secret = root / "other" / "secret"
    secret.mkdir(parents=True)
    (secret / "config.json").write_text("{}")
    write_safetensors(secret / "model.safetensors", {"s": [2]})
    gated = root / "other" / "gated"
    gated.mkdir()
    (gated / "config.json").write_text('{"gated": true}')
    write_safetensors(gated / "model.safetensors", {"g": [2]})
    return root


@pytest.fixture(scope="module")
def zoo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_zoo(tmp_path_factory.mktemp("zoo"))


@pytest.fixture(scope="module")
def running(zoo: Path) -> Iterator[MirrorServer]:
    with MirrorServer(
        zoo, token=TOKEN, guest_token=GUEST, gated=["other/gated"], private=["other/secret"]
    ) as server:
        yield server


@pytest.fixture
def mirror(running: MirrorServer) -> Iterator[MirrorServer]:
    """The shared server with counters at zero; weather is cleared afterwards."""
    running.stats.reset()
    yield running
    running.faults.replace([])
    running.latency, running.bandwidth, running.address_ttl = 0.0, None, 3600.0


@pytest.fixture
def fresh_zoo(tmp_path: Path) -> Path:
    """A zoo that a test may change."""
    return build_zoo(tmp_path / "fresh")


@pytest.fixture(scope="module")
def get() -> Callable[..., Answer]:
    return raw_get


@pytest.fixture
def storage_address(mirror: MirrorServer) -> Callable[..., str]:
    """Ask the hub where a large file lies."""

    def ask(path: str = "org/llama/resolve/main/model.safetensors") -> str:
        answer = raw_get(f"{mirror.endpoint}/{path}", method="HEAD")
        assert answer.status == 302
        return answer.headers["location"]

    return ask
