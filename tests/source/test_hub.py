"""Models on the Hub: pinned, resolved once, and with the token kept at home."""

from __future__ import annotations

import json
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from huggingface_hub import constants, hf_hub_download

from kinprint.errors import (
    AccessRefused,
    BadReference,
    FileMissing,
    NotAHub,
    OfflineMiss,
    RepositoryGated,
    RepositoryMissing,
    RepositoryPrivate,
    RevisionMissing,
)
from kinprint.mirror import Fault, MirrorServer
from kinprint.records import ByteRange
from kinprint.source import open_source

FILE = "model.safetensors"
SPAN = ByteRange(100, 1100)
MakeMirror = Callable[..., MirrorServer]


@contextmanager
def serving(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@contextmanager
def said_by_a_hub(answer: object, tokens: list[str | None] | None = None) -> Iterator[str]:
    """A server that gives the same JSON to every question."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if tokens is not None:
                tokens.append(self.headers.get("Authorization"))
            body = json.dumps(answer, separators=(",", ":")).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with serving(Handler) as endpoint:
        yield endpoint


@contextmanager
def redirecting(storage: str) -> Iterator[str]:
    """A Hub that lists one small file and sends those who read it to another host."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            listing = {"sha": "b" * 40, "siblings": [{"rfilename": "config.json", "size": 7}]}
            body = json.dumps(listing).encode() if "/api/" in self.path else b""
            self.send_response(200 if body else 302)
            if not body:
                self.send_header("Location", storage + "/config.json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with serving(Handler) as endpoint:
        yield endpoint


def test_a_file_is_resolved_once(mirror: MirrorServer) -> None:
    source = open_source("zoo/base-a")
    mirror.stats.reset()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda at: source.read(FILE, ByteRange(at, at + 10)), range(0, 400, 10)))
    assert mirror.stats.count("hub", "HEAD") == 1
    assert mirror.stats.count("storage", "GET") == 40


def test_opening_takes_one_request(mirror: MirrorServer) -> None:
    source = open_source("zoo/base-b")
    assert mirror.stats.count() == 1
    assert source.spent.requests == 1
    assert len(source.ref.commit) == 40


def test_large_files_carry_the_sha256_of_their_content(mirror: MirrorServer, demo: Path) -> None:
    from hashlib import sha256

    entry = {item.path: item for item in open_source("zoo/base-a").files()}[FILE]
    assert entry.sha256 == sha256((demo / "zoo/base-a" / FILE).read_bytes()).hexdigest()


def test_equal_files_are_known_to_be_equal_without_reading(
    demo: Path, tmp_path: Path, make_mirror: MakeMirror
) -> None:
    shutil.copytree(demo / "zoo/base-a", tmp_path / "zoo/original")
    shutil.copytree(demo / "zoo/base-a", tmp_path / "zoo/copy")
    make_mirror(tmp_path)
    keys = [
        {entry.path: entry.key for entry in open_source(name).files()}[FILE]
        for name in ("zoo/original", "zoo/copy")
    ]
    assert keys[0] == keys[1]


def test_a_repository_that_moves_changes_nothing(
    demo: Path, tmp_path: Path, make_mirror: MakeMirror
) -> None:
    shutil.copytree(demo / "zoo/base-a", tmp_path / "zoo/model")
    shutil.copytree(demo / "zoo/a-cpt", tmp_path / "zoo/model@next")
    (tmp_path / "zoo/model@next/README.md").write_text("moved")  # equal sizes and dates may be
    server = make_mirror(tmp_path)
    source = open_source("zoo/model")
    before = source.read(FILE, SPAN)
    server.repoint("zoo/model", "main", "next")
    assert source.read(FILE, ByteRange(1000, 2000))[:100] == before[900:]
    assert source.read("config.json", ByteRange(0, 10))  # not resolved before the move
    moved = open_source("zoo/model")
    assert moved.ref.commit != source.ref.commit
    assert open_source(f"zoo/model@{source.ref.commit}").ref.commit == source.ref.commit


def test_an_expired_address_is_renewed(demo: Path, make_mirror: MakeMirror) -> None:
    server = make_mirror(demo, address_ttl=1)
    source = open_source("zoo/base-a")
    first = source.read(FILE, SPAN)
    time.sleep(2.2)
    server.address_ttl = 600  # the renewed address lasts, however slow the machine
    server.stats.reset()
    with ThreadPoolExecutor(8) as pool:
        parts = list(pool.map(lambda _: source.read(FILE, SPAN), range(8)))
    assert set(parts) == {first}
    assert server.stats.count("hub", "HEAD") == 1  # renewed once, not once a thread


def test_an_address_that_is_always_refused_is_given_up(demo: Path, make_mirror: MakeMirror) -> None:
    make_mirror(demo, faults=[Fault("status", code=403, port="storage")])
    with pytest.raises(AccessRefused, match="403"):
        open_source("zoo/base-a").read(FILE, SPAN)


def test_the_token_never_reaches_the_storage_host(
    demo: Path, make_mirror: MakeMirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    server = make_mirror(demo, token="hf_secret", private=["zoo/base-a"], gated=["zoo/base-b"])
    for name, file in (
        ("zoo/base-a", FILE),
        ("zoo/base-b", "model-00001-of-00003.safetensors"),
        ("zoo/base-b", "config.json"),
    ):
        assert open_source(name).read(file, ByteRange(0, 8))
    assert server.stats.count("storage") == 2
    assert server.stats.tokens_seen_by_storage == 0


def test_the_witness_for_tokens_is_awake(demo: Path, make_mirror: MakeMirror) -> None:
    """Proof that the count above would not stay at zero whatever is sent."""
    import urllib.request

    server = make_mirror(demo)
    asked = urllib.request.Request(
        f"{server.storage_endpoint}/anything", headers={"Authorization": "Bearer hf_secret"}
    )
    with pytest.raises(OSError, match="HTTP Error"):
        urllib.request.urlopen(asked)
    assert server.stats.tokens_seen_by_storage == 1


def test_missing_private_and_gated_are_told_apart(
    demo: Path, make_mirror: MakeMirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_mirror(demo, token="hf_right", private=["zoo/base-a"], gated=["zoo/base-b"])
    with pytest.raises(RepositoryMissing, match="private"):
        open_source("zoo/nothing")
    with pytest.raises(RepositoryMissing, match="hf auth login"):
        open_source("zoo/base-a")
    gated = open_source("zoo/base-b")
    with pytest.raises(RepositoryGated, match="accept"):
        gated.read("model-00001-of-00003.safetensors", ByteRange(0, 8))
    monkeypatch.setenv("HF_TOKEN", "hf_wrong")
    with pytest.raises((RepositoryPrivate, RepositoryMissing)):
        open_source("zoo/base-a")


def test_a_revision_that_is_not_there_is_named(mirror: MirrorServer) -> None:
    with pytest.raises(RevisionMissing, match="'nowhere'"):
        open_source("zoo/base-a@nowhere")


def test_a_file_that_is_not_there_is_named(mirror: MirrorServer) -> None:
    with pytest.raises(FileMissing, match="lost"):
        open_source("zoo/base-a").read("lost.bin", ByteRange(0, 1))


@pytest.mark.parametrize("given", ["a/b/../../c", "zoo/..", "spa ces/name", "-x-/y--z", "@main"])
def test_names_that_cannot_be_are_refused(given: str, mirror: MirrorServer) -> None:
    with pytest.raises((BadReference, RepositoryMissing)):
        open_source(given)


def test_what_the_hub_tools_downloaded_is_read_in_place(mirror: MirrorServer, demo: Path) -> None:
    hf_hub_download("zoo/base-a", FILE, endpoint=mirror.endpoint, cache_dir=constants.HF_HUB_CACHE)
    mirror.stats.reset()
    source = open_source("zoo/base-a")
    entry = {item.path: item for item in source.files()}[FILE]
    assert entry.local is not None
    assert source.read(FILE, SPAN) == (demo / "zoo/base-a" / FILE).read_bytes()[100:1100]
    assert mirror.stats.count("storage") == 0


def test_offline_opens_what_was_listed_before(
    mirror: MirrorServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    online = open_source("zoo/base-a")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    offline = open_source("zoo/base-a")
    assert offline.ref.commit == online.ref.commit
    assert offline.files() == online.files()
    with pytest.raises(OfflineMiss):
        offline.read(FILE, SPAN)
    with pytest.raises(OfflineMiss, match="file list"):
        open_source("zoo/base-b")


def test_offline_a_path_in_a_snapshot_is_honoured(
    mirror: MirrorServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    from huggingface_hub import snapshot_download

    snapshot_download("zoo/base-b", endpoint=mirror.endpoint, cache_dir=constants.HF_HUB_CACHE)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    path = "model-00002-of-00003.safetensors"
    assert open_source(f"zoo/base-b/{path}").ref.path == path


def test_a_renamed_repository_is_read_under_its_new_name(
    mirror: MirrorServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = {
        "sha": "a" * 40,
        "id": "zoo/new-name",
        "siblings": [{"rfilename": "config.json", "size": 3}],
    }
    with said_by_a_hub(answer) as endpoint:
        monkeypatch.setattr(constants, "ENDPOINT", endpoint)
        assert open_source("zoo/old-name").ref.name == "zoo/new-name"


@pytest.mark.parametrize(
    "siblings",
    [
        [{"rfilename": "m.safetensors", "size": 9, "lfs": {"sha256": "/tmp/evil", "size": 9}}],
        [{"rfilename": "m.safetensors", "size": 9, "lfs": {"sha256": "../" * 9, "size": 9}}],
        [{"rfilename": "../../m.safetensors", "size": 9}, {"rfilename": "ok.bin", "size": 1}],
        [{"rfilename": "a/../b.bin", "size": 9}, {"rfilename": "/abs.bin", "size": 9}],
    ],
)
def test_hostile_listings_name_no_paths_and_no_keys(
    siblings: list[dict[str, object]], monkeypatch: pytest.MonkeyPatch
) -> None:
    with said_by_a_hub({"sha": "a" * 40, "siblings": siblings}) as endpoint:
        monkeypatch.setattr(constants, "ENDPOINT", endpoint)
        for entry in open_source("zoo/hostile").files():
            assert entry.sha256 is None
            assert entry.key is not None
            assert set(entry.key) <= set("hub-0123456789abcdef")
            assert ".." not in entry.path
            assert not entry.path.startswith("/")


@pytest.mark.parametrize(
    "answer",
    [
        {"sha": None, "siblings": []},
        {"sha": "[/bold]x", "siblings": [{"rfilename": "a", "size": 1}]},
        {"siblings": []},
        {"sha": "a" * 40, "siblings": ["config.json"]},
        {"sha": "a" * 40, "siblings": [{"rfilename": "x", "size": 1, "lfs": "?"}]},
        [1, 2],
        "hello",
    ],
)
def test_answers_of_something_else_are_said_to_be_none_of_a_hub(
    answer: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    with said_by_a_hub(answer) as endpoint:
        monkeypatch.setattr(constants, "ENDPOINT", endpoint)
        with pytest.raises(NotAHub, match="HF_ENDPOINT"):
            open_source("zoo/odd")


def test_large_repositories_are_listed_whole(
    demo: Path, tmp_path: Path, make_mirror: MakeMirror
) -> None:
    folder = tmp_path / "zoo/many"
    shutil.copytree(demo / "zoo/base-a", folder)
    for number in range(1200):
        (folder / f"note-{number:04}.txt").write_text("x")
    make_mirror(tmp_path)
    assert len(open_source("zoo/many").files()) == 1203


def test_the_token_does_not_follow_a_foreign_next_page(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[str | None] = []

    class Paged(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            tree = "/tree/" in self.path
            body = json.dumps([] if tree else {"sha": "c" * 40, "siblings": []}).encode()
            self.send_response(200)
            if tree:
                self.send_header("Link", f'<{foreign}/next>; rel="next"')
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with said_by_a_hub([], seen) as foreign, serving(Paged) as endpoint:
        monkeypatch.setenv("HF_TOKEN", "hf_secret")
        monkeypatch.setattr(constants, "ENDPOINT", endpoint)
        with pytest.raises(NotAHub):
            open_source("zoo/paged")
    assert seen == []


def test_endless_pages_come_to_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = 0

    class Endless(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            nonlocal asked
            asked += 1
            tree = "/tree/" in self.path
            body = json.dumps([] if tree else {"sha": "c" * 40, "siblings": []}).encode()
            self.send_response(200)
            self.send_header("Link", f'<{self.path}>; rel="next"')
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with serving(Endless) as endpoint:
        monkeypatch.setattr(constants, "ENDPOINT", endpoint)
        with pytest.raises(NotAHub):
            open_source("zoo/endless")
    assert asked < 500


def test_offline_knows_a_renamed_repository_by_both_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answer = {"sha": "a" * 40, "id": "new/name", "siblings": [{"rfilename": "x", "size": 3}]}
    with said_by_a_hub(answer) as endpoint:
        monkeypatch.setattr(constants, "ENDPOINT", endpoint)
        open_source("oldname")
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
        for name in ("oldname", "new/name"):
            assert open_source(name).ref.name == "new/name"


def test_an_address_that_expires_in_mid_part_loses_nothing(
    demo: Path, make_mirror: MakeMirror
) -> None:
    server = make_mirror(demo)
    source = open_source("zoo/base-a")
    source.read(FILE, ByteRange(0, 1))
    server.faults.replace(
        [
            Fault("truncate", port="storage", times=1, at=900_000),
            Fault("expire", port="storage", times=1, after=1),
        ]
    )
    server.stats.reset()
    span = ByteRange(0, 1_000_000)
    truth = (demo / "zoo/base-a" / FILE).read_bytes()
    assert source.read(FILE, span) == truth[:1_000_000]
    assert server.stats.storage_body_bytes < 1_100_000


def test_odd_file_names_and_empty_files(tmp_path: Path, make_mirror: MakeMirror) -> None:
    folder = tmp_path / "zoo/odd"
    folder.mkdir(parents=True)
    names = ["config.json", "a b#c?.json", "가중치.json", "100%25.json", "empty.json"]
    for name in names:
        (folder / name).write_text("" if name == "empty.json" else "text of " + name)
    make_mirror(tmp_path)
    source = open_source("zoo/odd")
    assert {entry.path for entry in source.files()} == set(names)
    for entry in source.files():
        text = "" if entry.path == "empty.json" else "text of " + entry.path
        assert source.read(entry.path, ByteRange(0, entry.size)).decode() == text


def test_small_files_that_lie_on_the_storage_host_get_no_token(
    demo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A Hub may send small files to another host as well; the token stays behind."""
    seen: list[str | None] = []
    with said_by_a_hub({"x": 1}, seen) as storage, redirecting(storage) as endpoint:
        monkeypatch.setenv("HF_TOKEN", "hf_secret")
        monkeypatch.setattr(constants, "ENDPOINT", endpoint)
        template = endpoint + "/{repo_id}/resolve/{revision}/{filename}"
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        source = open_source("zoo/redirected")
        assert source.read("config.json", ByteRange(0, 7)) == b'{"x":1}'
    assert seen == [None]


def test_offline_opens_a_downloaded_snapshot(
    mirror: MirrorServer, monkeypatch: pytest.MonkeyPatch, demo: Path
) -> None:
    from huggingface_hub import snapshot_download

    snapshot_download("zoo/base-a", endpoint=mirror.endpoint, cache_dir=constants.HF_HUB_CACHE)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    source = open_source("zoo/base-a")
    assert len(source.ref.commit) == 40
    assert source.read(FILE, SPAN) == (demo / "zoo/base-a" / FILE).read_bytes()[100:1100]
