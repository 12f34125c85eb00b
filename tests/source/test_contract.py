"""One suite that every source passes, whatever the place."""

from __future__ import annotations

import functools
import http.server
import random
import re
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import snapshot_download

from kinprint.errors import FileMissing, KinprintError
from kinprint.mirror import MirrorServer
from kinprint.records import ByteRange
from kinprint.source import Source, open_source
from tests.torture.store import BUCKET, object_store

MODEL = "zoo/base-b"
SHARD = "model-00002-of-00003.safetensors"


class RangeHandler(http.server.SimpleHTTPRequestHandler):
    """Python's own file server with single byte ranges added: a plain web server."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        file = Path(self.translate_path(self.path))
        if not file.is_file():
            self.send_error(404)
            return
        data = file.read_bytes()
        asked = re.match(r"bytes=(\d+)-(\d+)$", self.headers.get("Range", ""))
        start, stop = (
            (int(asked[1]), min(int(asked[2]) + 1, len(data))) if asked else (0, len(data))
        )
        self.send_response(206 if asked else 200)
        self.send_header("ETag", f'"{len(data)}-{file.stat().st_mtime_ns}"')
        self.send_header("Content-Length", str(stop - start))
        if asked:
            self.send_header("Content-Range", f"bytes {start}-{stop - 1}/{len(data)}")
        self.end_headers()
        self.wfile.write(data[start:stop])

    def log_message(self, format: str, *args: Any) -> None:
        pass


class QuietServer(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client may hang up when it has what it wants."""


@pytest.fixture
def web(demo: Path) -> Iterator[str]:
    handler = functools.partial(RangeHandler, directory=str(demo))
    with QuietServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    """A bucket on a server that speaks the S3 protocol on this machine."""
    with object_store([MODEL]):
        yield f"s3://{BUCKET}"


@pytest.fixture(
    params=["hub", "hub-address", "local", "snapshot", "file", "url", "url-index", "memory", "s3"]
)
def source(request: pytest.FixtureRequest, demo: Path, tmp_path: Path) -> Source:
    """The same model, in each kind of place."""
    get: Callable[[str], Any] = request.getfixturevalue
    match request.param:
        case "hub":
            get("mirror")
            return open_source(MODEL)
        case "hub-address":
            server: MirrorServer = get("mirror")
            return open_source(f"{server.endpoint}/{MODEL}/tree/main")
        case "local":
            return open_source(str(demo / MODEL))
        case "snapshot":
            server = get("mirror")
            folder = snapshot_download(MODEL, cache_dir=tmp_path, endpoint=server.endpoint)
            return open_source(folder)
        case "file":
            return open_source(str(demo / MODEL / SHARD))
        case "url":
            return open_source(f"{get('web')}/{MODEL}/{SHARD}")
        case "url-index":
            return open_source(f"{get('web')}/{MODEL}/model.safetensors.index.json")
        case "memory":
            fsspec = pytest.importorskip("fsspec")
            fsspec.filesystem("memory").put(str(demo / MODEL), "/contract", recursive=True)
            return open_source("memory://contract")
        case _:
            return open_source(f"{get('bucket')}/{MODEL}")


@pytest.fixture
def truth(demo: Path) -> bytes:
    return (demo / MODEL / SHARD).read_bytes()


def test_lists_files_with_their_true_sizes(source: Source, demo: Path) -> None:
    files = source.files()
    paths = [entry.path for entry in files]
    assert paths == sorted(paths)
    for path in (SHARD, "config.json"):
        found = source.find(path)
        assert found is not None
        assert found.size == (demo / MODEL / path).stat().st_size
    assert source.find("nothing.json") is None
    for entry in files:
        assert entry.size == (demo / MODEL / entry.path).stat().st_size


def test_gives_exactly_the_bytes_asked_for(source: Source, truth: bytes) -> None:
    rng = random.Random(7)
    spans = [ByteRange(0, 1), ByteRange(len(truth) - 1, len(truth)), ByteRange(0, len(truth))]
    for _ in range(20):
        start = rng.randrange(len(truth))
        spans.append(ByteRange(start, rng.randrange(start, min(start + 5000, len(truth))) + 1))
    for span in spans:
        assert source.read(SHARD, span) == truth[span.start : span.stop]


def test_serves_many_threads(source: Source, truth: bytes) -> None:
    spans = [ByteRange(at, at + 1000) for at in range(0, 48_000, 1000)]
    with ThreadPoolExecutor(16) as pool:
        parts = list(pool.map(lambda span: source.read(SHARD, span), spans))
    assert b"".join(parts) == truth[:48_000]


def test_a_file_that_is_not_there_is_an_error(source: Source) -> None:
    with pytest.raises(FileMissing):
        source.read("nothing.safetensors", ByteRange(0, 8))


def test_reading_past_the_end_is_an_error(source: Source, truth: bytes) -> None:
    with pytest.raises(KinprintError):
        source.read(SHARD, ByteRange(len(truth) - 10, len(truth) + 10))


def test_says_which_model_it_is(source: Source) -> None:
    assert source.ref.given
    assert source.ref.name
    assert source.ref.kind in {"hub", "local", "url", "store"}


def test_costs_are_counted(source: Source, truth: bytes) -> None:
    source.find(SHARD)
    before = source.spent
    extra = source.overhead(SHARD)
    source.read(SHARD, ByteRange(100, 1124))
    after = source.spent
    if source.ref.kind == "local":
        assert after == before
    else:
        assert after.bytes - before.bytes == 1024
        assert after.requests - before.requests == 1 + extra
        assert source.overhead(SHARD) == 0


def test_content_keys_are_the_same_every_time(source: Source) -> None:
    again = open_source(source.ref.given)
    first, second = source.find(SHARD), again.find(SHARD)
    assert first is not None
    assert first == second
    has_key = source.ref.kind != "local" and not source.ref.name.startswith("memory:")
    assert (first.key is not None) == has_key


def test_history_is_a_list_of_commits_or_nothing(source: Source) -> None:
    found = source.history()
    assert (len(found) > 0) == (source.ref.kind == "hub")
    assert all(one.id and one.date for one in found)
    if found:
        assert found[0].id == source.ref.commit


def test_changes_are_the_last_commit_of_each_file_or_nothing(source: Source) -> None:
    changes = source.changes()
    if source.ref.kind != "hub":
        assert not changes
        return
    assert changes.keys() == {entry.path for entry in source.files()}
    assert all(one.id == source.ref.commit and one.date for one in changes.values())
