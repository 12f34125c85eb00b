"""What strangers may do to a mirror: little, and nothing that lasts."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from kinprint.mirror import MirrorServer
from kinprint.mirror.access import Caller, Refused, Rules
from tests.mirror.conftest import GUEST, TOKEN

Get = Callable[..., Any]
Address = Callable[..., str]


def connected(server: MirrorServer, said: bytes = b"") -> socket.socket:
    sock = socket.create_connection(("127.0.0.1", server.port), timeout=120)
    sock.sendall(said)
    return sock


def is_closed(sock: socket.socket) -> bool:
    """Whether the other side ends the connection, waiting for it; what still comes is read."""
    try:
        while sock.recv(100_000):
            pass
    except ConnectionResetError:
        return True
    except TimeoutError:
        return False
    return True


def test_files_that_begin_with_a_dot_stay_at_home(fresh_zoo: Path, get: Get) -> None:
    repo = fresh_zoo / "org" / "llama"
    (repo / ".env").write_text("SECRET=1")
    (repo / ".ssh").mkdir()
    (repo / ".ssh" / "id.json").write_text("{}")
    (repo / "original" / ".netrc").write_text("password")
    (repo / ".gitattributes").write_text("*.bin filter=lfs")
    with MirrorServer(fresh_zoo) as server:
        for path in (".env", ".ssh/id.json", "original/.netrc"):
            assert get(f"{server.endpoint}/org/llama/resolve/main/{path}").status == 404
        listed = get(f"{server.endpoint}/api/models/org/llama/tree/main?recursive=true").body
        assert b".env" not in listed and b".ssh" not in listed and b".netrc" not in listed
        assert b".gitattributes" in listed


@pytest.mark.parametrize(
    "headers", [{}, {"Authorization": f"Bearer {GUEST}"}], ids=["anonymous", "guest"]
)
def test_counters_are_for_the_owner(
    mirror: MirrorServer, get: Get, headers: dict[str, str]
) -> None:
    get(f"{mirror.endpoint}/api/models/bare")
    for method, place in (("GET", "stats"), ("DELETE", "stats"), ("POST", "reset")):
        answer = get(f"{mirror.endpoint}/-/{place}", method=method, headers=headers)
        assert answer.status == 401 and b"requests" not in answer.body
    assert mirror.stats.count() == 1


def test_without_a_token_counters_are_for_this_machine() -> None:
    rules = Rules()
    rules.check_counters(Caller.ANONYMOUS, ("127.0.0.1", 1))
    rules.check_counters(Caller.ANONYMOUS, ("::1", 1))
    for client in (("192.0.2.7", 1), ("2001:db8::1", 1), None):
        with pytest.raises(Refused):
            rules.check_counters(Caller.GUEST, client)


@pytest.mark.parametrize("signature", ["%C3%A9", "%ED%A0%80", "%00", "é".encode("latin-1")])
def test_odd_signatures_are_refused(
    mirror: MirrorServer, storage_address: Address, signature: str | bytes
) -> None:
    parts = urlsplit(storage_address())
    query = parts.query.partition("Signature=")[0].encode() + b"Signature="
    query += signature if isinstance(signature, bytes) else signature.encode()
    with socket.create_connection(("127.0.0.1", mirror.storage_port), timeout=120) as sock:
        sock.sendall(b"GET %s?%s HTTP/1.1\r\nHost: h\r\n\r\n" % (parts.path.encode(), query))
        assert sock.recv(100).split()[1] in (b"403", b"400")


@pytest.mark.parametrize("name", ["a" * 5_000, "%ED%A0%80", "%00", "a%0Ab", "%FF%FE"])
def test_odd_names_are_missing(mirror: MirrorServer, get: Get, name: str) -> None:
    owner = {"Authorization": f"Bearer {TOKEN}"}
    for place in (f"{name}/{name}", name):
        assert get(f"{mirror.endpoint}/api/models/{place}", headers=owner).status == 404
        answer = get(f"{mirror.endpoint}/{place}/resolve/main/{name}", headers=owner)
        assert answer.status == 404


@pytest.fixture
def strict(zoo: Path) -> Iterator[MirrorServer]:
    """A mirror that waits for the head of a request a fifth of a second."""
    with MirrorServer(zoo, request_seconds=0.2) as server:
        yield server


@pytest.mark.parametrize(
    "said", [b"", b"G", b"GET /bare HTTP/1.1\r\nHost: h\r\n", b"GET " + b"a" * 100_000]
)
def test_a_head_that_is_not_finished_is_not_waited_for(strict: MirrorServer, said: bytes) -> None:
    with connected(strict, said) as sock:
        assert is_closed(sock)


def test_a_second_head_that_is_not_finished_is_not_waited_for(strict: MirrorServer) -> None:
    whole = b"GET /api/models/bare HTTP/1.1\r\nHost: h\r\n\r\n"
    with connected(strict, whole) as sock:
        assert sock.recv(100_000).startswith(b"HTTP/1.1 200")
        sock.sendall(b"GET /api")
        assert is_closed(sock)


def test_a_head_without_end_is_not_kept(zoo: Path) -> None:
    with MirrorServer(zoo) as server, connected(server, b"GET / HTTP/1.1\r\n") as sock:
        with pytest.raises(OSError):
            for _ in range(10_000):
                sock.sendall(b"x: " + b"a" * 10_000 + b"\r\n")
        assert is_closed(sock)


def test_many_idle_connections_keep_nobody_out(zoo: Path, get: Get) -> None:
    with MirrorServer(zoo, most_connections=20) as server, ExitStack() as stack:
        for _ in range(100):
            stack.enter_context(connected(server, b"GET /ba"))
        assert get(f"{server.endpoint}/api/models/bare").status == 200
        deadline = time.monotonic() + 60
        while len(server._register) > 20 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert len(server._register) <= 20


def test_unknown_names_are_not_remembered_for_ever(zoo: Path) -> None:
    with MirrorServer(zoo) as server:
        for number in range(5_000):
            assert server.library.find(f"nobody/{number}") is None
        assert len(server.library._kept) <= 1_000
        for number in range(200):
            server.stats.arrived("hub", f"METHOD{number}", "/" + "a" * 50_000, "b" * 50_000)
        assert len(server.stats.requests) == 1
        assert all(len(seen.path) + len(seen.range or "") <= 1_000 for seen in server.stats.last)


@pytest.mark.parametrize(
    ("host", "said"), [("127.0.0.1", "only this machine"), ("0.0.0.0", "networks that you trust")]
)
def test_what_it_is_for_is_said_on_start(zoo: Path, host: str, said: str) -> None:
    command = [sys.executable, "-m", "kinprint", "mirror", str(zoo), "--port", "0", "--host", host]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        lines = [process.stderr.readline() for _ in range(3)]
    finally:
        process.terminate()
        process.communicate()
    assert said in lines[2]
