"""Signed addresses, the token that must not arrive, and files too large to hash."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import HfApi, get_hf_file_metadata, hf_hub_url

from kinprint.mirror import MirrorServer

Get = Callable[..., Any]
Address = Callable[..., str]


def test_the_token_is_refused_and_counted(
    mirror: MirrorServer, get: Get, storage_address: Address
) -> None:
    answer = get(storage_address(), headers={"Authorization": "Bearer hf_owner"})
    assert answer.status == 400 and b"<Code>InvalidArgument</Code>" in answer.body
    assert mirror.stats.tokens_seen_by_storage == 1
    assert get(storage_address()).status == 200
    assert mirror.stats.tokens_seen_by_storage == 1


@pytest.mark.parametrize("change", ["path", "expiry", "signature", "version", "none"])
def test_a_forged_address_is_refused(
    mirror: MirrorServer, get: Get, storage_address: Address, change: str
) -> None:
    address = storage_address()
    expiry = address.partition("Expires=")[2].partition("&")[0]
    forged = {
        "path": address.replace("model.safetensors", "config.json"),
        "expiry": address.replace(expiry, str(int(expiry) + 1)),
        "signature": address[:-1] + ("A" if address[-1] != "A" else "B"),
        "version": address.replace("?v=", "?v=0"),
        "none": address.partition("?")[0],
    }[change]
    answer = get(forged)
    assert answer.status == 403 and answer.body.startswith(b"<?xml")
    assert get(address, method="PUT").status == 405


def test_an_address_expires(mirror: MirrorServer, get: Get, storage_address: Address) -> None:
    mirror.address_ttl = -2
    answer = get(storage_address())
    assert answer.status == 403 and b"Request has expired" in answer.body
    mirror.address_ttl = 1
    address = storage_address()
    assert get(address).status == 200
    while get(address).status == 200:
        time.sleep(0.1)
    assert get(storage_address()).status == 200


def test_an_address_is_void_once_the_file_changes(fresh_zoo: Path, get: Get) -> None:
    with MirrorServer(fresh_zoo) as server:
        resolve = f"{server.endpoint}/bare/resolve/main/m-1.safetensors"
        address = get(resolve, method="HEAD").headers["location"]
        assert get(address).status == 200
        (fresh_zoo / "bare/m-1.safetensors").write_bytes(b"other")
        answer = get(address)
        assert answer.status == 404 and b"NoSuchKey" in answer.body
        server.refresh()
        assert get(get(resolve).headers["location"]).body == b"other"


def test_storage_headers(mirror: MirrorServer, get: Get, storage_address: Address) -> None:
    answer = get(storage_address(), method="HEAD")
    assert answer.status == 200 and answer.body == b""
    assert answer.headers["accept-ranges"] == "bytes"
    assert answer.headers["etag"].strip('"') in storage_address()
    assert 'filename="model.safetensors"' in answer.headers["content-disposition"]


def test_a_sparse_file_of_300_gigabytes(tmp_path: Path, get: Get) -> None:
    size = 300 * 10**9
    repo = tmp_path / "org" / "huge"
    repo.mkdir(parents=True)
    (repo / "config.json").write_text("{}")
    with (repo / "model.safetensors").open("wb") as file:
        try:
            file.truncate(size)
        except OSError:
            pytest.skip("this file system has no sparse files")
        file.seek(size - 4)
        file.write(b"tail")
    with MirrorServer(tmp_path) as server:
        api = HfApi(endpoint=server.endpoint, token=False)
        info = api.model_info("org/huge", files_metadata=True)
        assert info.siblings is not None
        weights = info.siblings[1]
        assert (weights.size, weights.lfs) == (size, None)
        assert [entry.path for entry in api.list_repo_tree("org/huge")] == [
            "config.json",
            "model.safetensors",
        ]
        address = hf_hub_url("org/huge", "model.safetensors", endpoint=server.endpoint)
        metadata = get_hf_file_metadata(address, token=False)
        assert metadata.size == size and metadata.etag is not None
        assert len(metadata.etag) not in (40, 64)
        server.stats.reset()
        answer = get(metadata.location, headers={"Range": f"bytes={size - 8}-{size + 100}"})
        assert (answer.status, answer.body) == (206, b"\0\0\0\0tail")
        assert answer.headers["content-range"] == f"bytes {size - 8}-{size - 1}/{size}"
        assert server.stats.body_bytes == 8
        assert get(metadata.location, headers={"Range": f"bytes={size}-"}).status == 416


def test_the_hash_limit_can_be_set(zoo: Path) -> None:
    with MirrorServer(zoo, hash_limit=100) as server:
        info = HfApi(endpoint=server.endpoint, token=False).model_info(
            "org/llama", files_metadata=True
        )
        assert info.siblings is not None and all(one.lfs is None for one in info.siblings)
