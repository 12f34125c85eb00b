"""Plain web servers: pinned by their entity tags, with nothing secret in what we say."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import kinprint.source.http
from kinprint.errors import (
    AccessRefused,
    FileChanged,
    FileMissing,
    KinprintError,
    RangeIgnored,
    RateLimited,
    ServerFailed,
)
from kinprint.reader.cache import Cache
from kinprint.reader.checkpoint import open_checkpoint
from kinprint.reader.fetch import Fetcher
from kinprint.records import ByteRange
from kinprint.source import open_source


class Shop:
    """Files that a test may replace while they are being read."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.files: dict[str, tuple[bytes, str | None]] = {}
        self.asked: list[str] = []
        self.refuse: set[str] = set()
        self.busy: list[tuple[int, dict[str, str]]] = []  # what the next requests are answered with


@pytest.fixture
def shop() -> Iterator[Shop]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            opened.asked.append(self.path)
            if opened.busy:
                status, headers = opened.busy.pop(0)
                self.reply(status, b"", headers)
                return
            path = self.path.partition("?")[0]
            if path in opened.refuse:
                self.reply(403, b"", {})
                return
            if self.path in opened.files:
                path = self.path
            if path not in opened.files:
                self.reply(404, b"", {})
                return
            data, tag = opened.files[path]
            headers = {"ETag": tag} if tag else {}
            span = re.match(r"bytes=(\d+)-(\d+)$", self.headers.get("Range", ""))
            if span:
                start, stop = int(span[1]), min(int(span[2]) + 1, len(data))
                headers["Content-Range"] = f"bytes {start}-{stop - 1}/{len(data)}"
                self.reply(206, data[start:stop], headers)
            else:
                self.reply(200, data, headers)

        def reply(self, status: int, body: bytes, headers: dict[str, str]) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: object, client_address: object) -> None:
            """A client may hang up."""

    with Server(("127.0.0.1", 0), Handler) as server:
        opened = Shop(f"http://127.0.0.1:{server.server_port}")
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield opened
        server.shutdown()


def test_a_file_replaced_by_one_of_equal_length_is_noticed(shop: Shop) -> None:
    shop.files["/m.safetensors"] = (b"a" * 5000, '"one"')
    source = open_source(shop.address + "/m.safetensors")
    assert source.read("m.safetensors", ByteRange(10, 20)) == b"a" * 10
    shop.files["/m.safetensors"] = (b"b" * 5000, '"two"')
    with pytest.raises(FileChanged, match="ETag"):
        source.read("m.safetensors", ByteRange(10, 20))
    old, new = source.find("m.safetensors"), open_source(source.ref.given).find("m.safetensors")
    assert old is not None
    assert new is not None
    assert old.key != new.key


@pytest.mark.parametrize("tag", [None, 'W/"weak"'])
def test_without_a_strong_tag_nothing_is_cached(shop: Shop, tag: str | None) -> None:
    shop.files["/m.safetensors"] = (b"a" * 5000, tag)
    entry = open_source(shop.address + "/m.safetensors").find("m.safetensors")
    assert entry is not None
    assert entry.key is None


def test_the_given_address_is_used_as_it_was_given(shop: Shop) -> None:
    for place in ("/files/x%2Fm.safetensors", "/a//m.safetensors?sig=1", "/m.safetensors?id=2"):
        shop.files[place] = (place.encode() * 100, '"tag"')
        source = open_source(shop.address + place)
        (entry,) = source.files()
        assert source.read(entry.path, ByteRange(0, 10)) == place.encode()[:10]


def test_signatures_do_not_make_another_file_but_queries_do(shop: Shop) -> None:
    shop.files["/m.safetensors"] = (b"a" * 500, '"tag"')

    def key(query: str) -> str | None:
        (entry,) = open_source(shop.address + "/m.safetensors?" + query).files()
        return entry.key

    assert key("X-Amz-Signature=1&Expires=5") == key("X-Amz-Signature=2&Expires=6")
    assert key("id=1") != key("id=2")


def test_credentials_are_never_said(shop: Shop) -> None:
    address = shop.address.replace("http://", "http://bob:hunter2@")
    shop.refuse.add("/m.safetensors")
    with pytest.raises(AccessRefused) as caught:
        open_source(address + "/m.safetensors?X-Amz-Signature=SECRET")
    assert "hunter2" not in str(caught.value)
    assert "SECRET" not in str(caught.value)
    with pytest.raises(KinprintError) as missing:
        open_source("http://bob:hunter2@127.0.0.1:9/m.safetensors?sig=SECRET")
    assert "hunter2" not in str(missing.value)
    shop.files["/ok.safetensors"] = (b"a" * 500, '"tag"')
    assert "hunter2" not in str(open_source(address + "/ok.safetensors").ref)


@pytest.mark.parametrize(
    ("answer", "error", "said"),
    [
        ((429, {"Retry-After": "3600"}), RateLimited, "3600 seconds"),
        ((429, {}), RateLimited, "status 429"),
        ((503, {}), ServerFailed, "status 503"),
        ((405, {}), AccessRefused, "status 405"),
    ],
)
def test_a_first_request_that_fails_is_told_by_its_status(
    shop: Shop, answer: tuple[int, dict[str, str]], error: type[KinprintError], said: str
) -> None:
    shop.busy = [answer] * 20
    with pytest.raises(error, match=said):
        open_source(shop.address + "/m.safetensors")
    asked_once = answer[0] == 405 or "Retry-After" in answer[1]
    assert (len(shop.asked) == 1) == asked_once


def test_a_first_request_waits_as_long_as_it_is_asked_to(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []
    monkeypatch.setattr(kinprint.source.http, "pause", waits.append)
    shop.files["/m.safetensors"] = (b"a" * 500, '"tag"')
    shop.busy = [(429, {"Retry-After": "7"})]
    assert open_source(shop.address + "/m.safetensors").files()[0].size == 500
    assert waits == [7.0]


def test_missing_files_and_servers_without_range(shop: Shop) -> None:
    with pytest.raises(FileMissing):
        open_source(shop.address + "/nothing.safetensors")

    shop.files["/page"] = (b"<html>", None)
    source = open_source(shop.address + "/page")
    assert source.find("other") is None
    assert source.ref.kind == "url"


def test_an_index_is_read_once_and_its_shards_are_found(
    shop: Shop, demo: Path, tmp_path: Path
) -> None:
    for file in (demo / "zoo/base-b").iterdir():
        shop.files[f"/m/{file.name}"] = (file.read_bytes(), f'"{file.stat().st_size}"')
    name = shop.address + "/m/model.safetensors.index.json"
    with Fetcher(cache=Cache(tmp_path / "cache")) as fetcher:
        checkpoint = open_checkpoint(name, fetcher)
        assert len(checkpoint.tensors()) == 56
        assert checkpoint.config["hidden_size"] == 128
    shop.asked.clear()
    with Fetcher(cache=Cache(tmp_path / "cache")) as fetcher:
        assert len(open_checkpoint(name, fetcher).tensors()) == 56
    assert len(shop.asked) == len(set(shop.asked)) == 5  # one look at each file, nothing more


def test_range_ignored_is_said_for_addresses_too(shop: Shop, demo: Path) -> None:
    class Plain(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", "5000000000")
            self.end_headers()
            self.wfile.write(b"x" * 1000)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Plain) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with pytest.raises(RangeIgnored, match="5000000000"):
            open_source(f"http://127.0.0.1:{server.server_port}/m.safetensors")
        server.shutdown()
