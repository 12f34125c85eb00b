"""What goes wrong between here and there: retried where that helps, named where not."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from huggingface_hub import constants

import kinprint.source.http
from kinprint.errors import (
    BodyBroken,
    FileChanged,
    FileMissing,
    KinprintError,
    LengthWrong,
    NotAHub,
    RangeIgnored,
    RangeRefused,
    RateLimited,
    RepositoryMissing,
    RepositoryPrivate,
    RevisionMissing,
    ServerFailed,
    TooSlow,
    Unreachable,
)
from kinprint.mirror import Fault, MirrorServer
from kinprint.records import ByteRange
from kinprint.source import Source, open_source

FILE = "model.safetensors"
SPAN = ByteRange(1_000, 201_000)
MakeMirror = Callable[..., MirrorServer]


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two seconds of patience, for servers that drip."""
    monkeypatch.setattr(constants, "HF_HUB_DOWNLOAD_TIMEOUT", 2)


@pytest.fixture
def truth(demo: Path) -> bytes:
    return (demo / "zoo/base-a" / FILE).read_bytes()[SPAN.start : SPAN.stop]


@pytest.fixture
def faulty(mirror: MirrorServer) -> Callable[..., Source]:
    """A source whose storage begins to fail once it is open."""

    def make(*faults: Fault) -> Source:
        source = open_source("zoo/base-a")
        mirror.faults.replace(faults)
        return source

    return make


@pytest.mark.parametrize(
    "fault",
    [
        Fault("status", code=500, port="storage", times=2),
        Fault("status", code=502, port="storage", times=2),
        Fault("status", code=503, port="storage", times=2),
        Fault("status", code=429, port="storage", times=1, retry_after=0),
        Fault("reset", port="storage", times=2),
        Fault("reset", port="storage", times=2, at=0),
        Fault("truncate", port="storage", times=2),
        Fault("expire", port="storage", times=1),
        Fault("slow", port="storage", times=1),
        Fault("short", port="storage", times=1),
        Fault("wrong_range", port="storage", times=1),
    ],
    ids=lambda fault: f"{fault.kind}-{fault.code if fault.kind == 'status' else fault.at}",
)
def test_passing_faults_change_nothing(
    fault: Fault, faulty: Callable[..., Source], truth: bytes, request: pytest.FixtureRequest
) -> None:
    if fault.kind == "slow":
        request.getfixturevalue("impatient")
    assert faulty(fault).read(FILE, SPAN) == truth


def test_faults_on_the_way_to_the_address_are_retried(
    faulty: Callable[..., Source], truth: bytes
) -> None:
    source = faulty(Fault("status", code=503, port="hub", times=1))
    assert source.read(FILE, SPAN) == truth


def test_a_broken_answer_is_taken_up_where_it_stopped(
    mirror: MirrorServer, faulty: Callable[..., Source], truth: bytes
) -> None:
    source = faulty(Fault("truncate", port="storage", times=1, at=150_000))
    mirror.stats.reset()
    assert source.read(FILE, SPAN) == truth
    assert mirror.stats.storage_body_bytes < 1.4 * SPAN.size


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (Fault("status", code=500, port="storage"), ServerFailed),
        (Fault("status", code=503, port="storage"), ServerFailed),
        (Fault("status", code=429, port="storage", retry_after=0), RateLimited),
        (Fault("status", code=416, port="storage"), RangeRefused),
        (Fault("truncate", port="storage", at=10), BodyBroken),
        (Fault("reset", port="storage", at=10), (BodyBroken, Unreachable)),
        (Fault("slow", port="storage"), TooSlow),
        (Fault("ignore_range", port="storage"), RangeIgnored),
        (Fault("wrong_range", port="storage"), LengthWrong),
        (Fault("short", port="storage"), LengthWrong),
        (Fault("gzip", port="storage"), LengthWrong),
    ],
    ids=lambda item: item.kind if isinstance(item, Fault) else None,
)
@pytest.mark.usefixtures("impatient")
def test_lasting_faults_are_named(
    fault: Fault,
    error: type[KinprintError] | tuple[type[KinprintError], ...],
    faulty: Callable[..., Source],
) -> None:
    source = faulty(fault)
    with pytest.raises(error) as caught:
        source.read(FILE, SPAN)
    assert FILE in str(caught.value) or "127.0.0.1" in str(caught.value)


def test_a_server_without_range_never_makes_us_download(
    mirror: MirrorServer, faulty: Callable[..., Source]
) -> None:
    source = faulty(Fault("ignore_range", port="storage"))
    mirror.bandwidth = 2_000_000  # so that a client which reads on would be seen doing so
    mirror.stats.reset()
    with pytest.raises(RangeIgnored, match="ignores Range"):
        source.read(FILE, SPAN)
    # The server may have handed one chunk (256 KiB at most) to the socket; nobody took it.
    assert source.spent.bytes <= 64 * 1024
    assert mirror.stats.storage_body_bytes <= 512 * 1024


def test_nobody_there_is_said_plainly(mirror: MirrorServer) -> None:
    source = open_source("zoo/base-a")
    source.read(FILE, SPAN)
    mirror.close()
    with pytest.raises(Unreachable, match="No connection") as told:
        source.read(FILE, SPAN)
    assert "HF_ENDPOINT" not in str(told.value)  # it is the storage host that is gone
    with pytest.raises(Unreachable, match="Check the network, the proxy and HF_ENDPOINT"):
        open_source("zoo/base-a")


def test_a_file_of_another_length_is_noticed(
    copy_of: Callable[[str], Path], make_mirror: MakeMirror
) -> None:
    folder = copy_of("zoo/base-a")
    server = make_mirror(folder)
    source = open_source("zoo/base-a")
    source.read(FILE, SPAN)
    with (folder / "zoo/base-a" / FILE).open("ab") as file:
        file.write(b"more")
    server.refresh()
    with pytest.raises((FileChanged, FileMissing, RevisionMissing)):
        source.read(FILE, SPAN)


def test_the_listing_is_retried_too(mirror: MirrorServer) -> None:
    mirror.faults.replace([Fault("status", code=503, port="hub", times=2)])
    assert open_source("zoo/base-a").ref.commit


@pytest.mark.parametrize("port", ["hub", "storage"])
def test_a_server_that_asks_for_an_hour_is_not_obeyed(
    port: str, faulty: Callable[..., Source], monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []
    monkeypatch.setattr(kinprint.source.http, "pause", waits.append)
    source = faulty(Fault("status", code=429, port=port, retry_after=3600))
    with pytest.raises(RateLimited, match="3600 seconds"):
        source.read(FILE, SPAN)
    assert waits == []


@pytest.mark.usefixtures("impatient")
def test_a_listing_that_drips_is_given_up(mirror: MirrorServer) -> None:
    mirror.faults.replace([Fault("slow", port="hub", where="*/revision/*")])
    with pytest.raises(TooSlow):
        open_source("zoo/base-b")


def test_a_listing_without_end_is_not_downloaded(point_hub_at: Callable[[str], None]) -> None:
    sent = 0

    class Endless(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            nonlocal sent
            self.send_response(200)
            self.end_headers()
            with contextlib.suppress(OSError):
                for _ in range(4000):
                    self.wfile.write(b" " * 100_000)
                    sent += 100_000

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Endless) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        point_hub_at(f"http://127.0.0.1:{server.server_port}")
        with pytest.raises(LengthWrong, match="more than"):
            open_source("zoo/base-a")
        server.shutdown()
    assert sent < 100_000_000


def test_a_server_that_is_no_hub_is_said_to_be_none(
    mirror: MirrorServer, point_hub_at: Callable[[str], None]
) -> None:
    point_hub_at(mirror.storage_endpoint)
    with pytest.raises((RepositoryMissing, RepositoryPrivate)):
        open_source("zoo/base-a")


class _Moved(BaseHTTPRequestHandler):
    """An interface that sends clients elsewhere, where nothing is."""

    def do_GET(self) -> None:
        if self.path.startswith("/api/"):
            self.send_response(302)
            self.send_header("Location", "/login?next=" + self.path)
        else:
            self.send_response(self.server.status)  # type: ignore[attr-defined]
            self.send_header("X-Error-Code", self.server.code)  # type: ignore[attr-defined]
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.mark.parametrize(("status", "code"), [(404, "EntryNotFound"), (410, ""), (200, "")])
def test_a_redirected_interface_is_no_missing_file(
    status: int, code: str, point_hub_at: Callable[[str], None]
) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Moved) as server:
        server.daemon_threads = True
        server.status, server.code = status, code  # type: ignore[attr-defined]
        threading.Thread(target=server.serve_forever, daemon=True).start()
        point_hub_at(f"http://127.0.0.1:{server.server_port}")
        with pytest.raises(NotAHub, match="login page or a proxy"):
            open_source("zoo/base-a")
        server.shutdown()
