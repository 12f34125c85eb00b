"""A server that never comes to an end is given up: every phase of an exchange has its time."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from huggingface_hub import constants
from msgspec.structs import replace

from kinprint.errors import KinprintError, LengthWrong, NetworkError, Unreachable
from kinprint.mirror import Fault, MirrorServer
from kinprint.records import ByteRange
from kinprint.source import Source, open_source
from kinprint.source.http import RetryPolicy, ask
from tests.torture.faults import FAULTS, PHASES, WAITING, web_address

FILE = "model.safetensors"
SPAN = ByteRange(1_000, 201_000)
UNENDING = [one for one in FAULTS if one.kind in WAITING | {"redirect"}]
# An answer to HEAD has no body that could drip, or be too long.
BODIES = [Fault("slow"), Fault("endless", code=200)]
CASES = [
    (fault, phase)
    for fault in UNENDING
    for phase in ("listing", "small files", "resolving", "headers")
    if phase != "resolving" or fault not in BODIES
]


@pytest.fixture
def lose_patience(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """From here on a fraction of a second; what must succeed before has all its time."""
    return partial(monkeypatch.setattr, constants, "HF_HUB_DOWNLOAD_TIMEOUT", 0.3)


@pytest.fixture
def impatient(lose_patience: Callable[[], None]) -> None:
    """A fraction of a second from the beginning: nothing needs to succeed."""
    lose_patience()


@pytest.mark.parametrize(
    ("fault", "phase"),
    CASES,
    ids=lambda item: f"{item.kind}-{item.code}" if isinstance(item, Fault) else item,
)
@pytest.mark.usefixtures("impatient")
def test_what_never_ends_is_given_up(mirror: MirrorServer, fault: Fault, phase: str) -> None:
    mirror.faults.add(replace(fault, **PHASES["hub"][phase]))  # type: ignore[arg-type]
    with pytest.raises(KinprintError) as caught:
        source = open_source("zoo/base-a")
        if phase == "small files":
            source.read("config.json", ByteRange(0, 100))
        source.read(FILE, SPAN)
    assert isinstance(caught.value, NetworkError) or fault.code == 404


@pytest.mark.parametrize("fault", UNENDING, ids=lambda fault: f"{fault.kind}-{fault.code}")
@pytest.mark.parametrize("method", ["first", "later"])
def test_a_web_server_that_never_ends_is_given_up(
    mirror: MirrorServer,
    storage_file: str,
    fault: Fault,
    method: str,
    lose_patience: Callable[[], None],
) -> None:
    source = open_source(storage_file) if method == "later" else None
    mirror.faults.add(fault)
    lose_patience()
    with pytest.raises(KinprintError):
        (source or open_source(storage_file)).read(FILE, SPAN)


@pytest.fixture
def storage_file(mirror: MirrorServer) -> str:
    """A file at a plain web address."""
    return web_address(mirror, "zoo/base-a")


@pytest.mark.parametrize("kind", ["reset", "truncate"])
def test_the_first_byte_of_a_web_address_may_be_lost(
    mirror: MirrorServer, storage_file: str, demo: Path, kind: str
) -> None:
    mirror.faults.add(Fault(kind, times=1))
    truth = (demo / "zoo/base-a" / FILE).read_bytes()[SPAN.start : SPAN.stop]
    assert open_source(storage_file).read(FILE, SPAN) == truth


def test_a_passing_hang_changes_nothing(
    mirror: MirrorServer, demo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(constants, "HF_HUB_DOWNLOAD_TIMEOUT", 3)
    source = open_source("zoo/base-a")
    for kind in ("hang", "drip", "continue"):
        mirror.faults.replace([Fault(kind, times=1)])
        truth = (demo / "zoo/base-a" / FILE).read_bytes()[SPAN.start : SPAN.stop]
        assert source.read(FILE, SPAN) == truth


def test_a_hung_server_is_told_within_half_a_minute() -> None:
    default = RetryPolicy(timeout=10.0)
    assert default.patience().left <= 25.0


@contextmanager
def raw_server(speak: Callable[[socket.socket], None]) -> Iterator[str]:
    """A server that says what `speak` writes to each connection."""
    listener = socket.create_server(("127.0.0.1", 0))
    done = threading.Event()

    def serve(client: socket.socket) -> None:
        with client:
            try:
                client.recv(65536)
                while not done.is_set():
                    speak(client)
            except OSError:
                return

    def accept() -> None:
        while not done.is_set():
            try:
                client, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(client,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        done.set()
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def chunk_line(client: socket.socket) -> None:
    """The length of a chunk, digit by digit."""
    if not threading.current_thread().name.endswith("-begun"):
        threading.current_thread().name += "-begun"
        client.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n")
    client.sendall(b"0")
    threading.Event().wait(0.05)


def redirect_with_endless_body(client: socket.socket) -> None:
    if not threading.current_thread().name.endswith("-begun"):
        threading.current_thread().name += "-begun"
        client.sendall(b"HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\n\r\n")
    client.sendall(b" " * 65536)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("speak", [chunk_line, redirect_with_endless_body])
def test_raw_servers_without_end(
    speak: Callable[[socket.socket], None], point_hub_at: Callable[[str], None]
) -> None:
    with raw_server(speak) as endpoint:
        point_hub_at(endpoint)
        with pytest.raises(NetworkError):
            open_source("zoo/base-a")


def silence(client: socket.socket) -> None:
    threading.Event().wait(0.1)


@pytest.mark.usefixtures("impatient")
def test_a_silent_object_store_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    s3fs = pytest.importorskip("s3fs")
    with raw_server(silence) as endpoint:
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
        monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
        with pytest.raises(Unreachable, match="no usable answer in time"):
            open_source("s3://silent/model")
        s3fs.S3FileSystem.clear_instance_cache()  # another test has another endpoint


def test_a_body_that_is_no_answer_is_not_kept(
    mirror: MirrorServer, lose_patience: Callable[[], None]
) -> None:
    source: Source = open_source("zoo/base-a")
    lose_patience()
    mirror.faults.add(Fault("endless", code=200, port="storage"))
    before = source.spent.bytes
    with pytest.raises((LengthWrong, NetworkError)):
        source.read(FILE, SPAN)
    assert source.spent.bytes - before < 4 * SPAN.size


def test_circles_are_called_circles(mirror: MirrorServer) -> None:
    mirror.faults.add(Fault("redirect", port="hub"))
    with pytest.raises(Unreachable, match="redirects in circles"):
        open_source("zoo/base-a")


@pytest.mark.parametrize(
    ("met", "code", "tries"),
    [
        (False, socket.EAI_NONAME, 3),
        (True, socket.EAI_NONAME, 6),
        (False, socket.EAI_AGAIN, 6),
    ],
)
def test_a_host_without_an_address_is_waited_for_if_it_may_have_one(
    met: bool, code: int, tries: int
) -> None:
    policy = RetryPolicy(first_wait=0.001)
    address, asked = f"http://{'met' if met else 'unheard-of'}.invalid/x", 0

    def look_up() -> None:
        nonlocal asked
        asked += 1
        raise socket.gaierror(code, "Name or service not known")

    if met:
        ask(lambda: None, address, "x", policy, policy.patience())
    with pytest.raises(Unreachable):
        ask(look_up, address, "x", policy, policy.patience())
    assert asked == tries
