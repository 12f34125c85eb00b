"""Weather, counters, the command line, and a quick end."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from click.testing import CliRunner

from kinprint.cli.mirror import mirror as mirror_command
from kinprint.errors import BadOption
from kinprint.mirror import Fault, MirrorServer
from kinprint.mirror.delivery import CHUNK
from tests.mirror.conftest import TOKEN

Get = Callable[..., Any]
Address = Callable[..., str]


def test_latency_on_both_ports(mirror: MirrorServer, get: Get, storage_address: Address) -> None:
    address = storage_address()
    mirror.latency = 0.15
    for url in (address, f"{mirror.endpoint}/api/models/org/llama"):
        began = time.monotonic()
        assert get(url).status == 200
        assert time.monotonic() - began >= 0.15


def test_bandwidth(mirror: MirrorServer, get: Get, storage_address: Address, zoo: Path) -> None:
    address = storage_address()
    mirror.bandwidth = 10_000.0
    began = time.monotonic()
    body = get(address).body
    seconds = time.monotonic() - began
    assert body == (zoo / "org/llama/model.safetensors").read_bytes()
    assert seconds > 0.7 * len(body) / 10_000


def test_counters(mirror: MirrorServer, get: Get, storage_address: Address) -> None:
    address = storage_address()
    get(address, headers={"Range": "bytes=0-99"})
    get(address, headers={"Range": "bytes=0-49"})
    stats = mirror.stats
    assert (stats.count(), stats.count("hub"), stats.count("storage", "GET")) == (3, 1, 2)
    assert stats.body_bytes == stats.storage_body_bytes == 150
    method, path, asked, port = stats.last[-1]
    assert (method, asked, port) == ("GET", "bytes=0-49", "storage")
    assert path == "/org/llama/model.safetensors"
    owner = {"Authorization": f"Bearer {TOKEN}"}
    seen = json.loads(get(f"{mirror.endpoint}/-/stats", headers=owner).body)
    assert seen["requests"] == {"hub": {"HEAD": 1}, "storage": {"GET": 2}}
    assert seen["statuses"]["storage"] == {"206": 2}
    assert (seen["body_bytes"], len(seen["last"])) == (150, 3)
    assert get(f"{mirror.endpoint}/-/stats", method="DELETE", headers=owner).status == 200
    assert stats.count() == stats.body_bytes == 0
    get(address)
    assert get(f"{mirror.endpoint}/-/reset", method="POST", headers=owner).status == 200
    assert stats.count() == 0


def test_bytes_of_a_client_that_hangs_up(tmp_path: Path, get: Get) -> None:
    repo = tmp_path / "org" / "huge"
    repo.mkdir(parents=True)
    with (repo / "model.safetensors").open("wb") as file:
        file.truncate(20 * 10**9)
    with MirrorServer(tmp_path, faults=[Fault("ignore_range")]) as server:
        address = get(
            f"{server.endpoint}/org/huge/resolve/main/model.safetensors", method="HEAD"
        ).headers["location"]
        parts = urlsplit(address)
        with socket.create_connection((parts.hostname, parts.port or 80), timeout=120) as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
            target = f"{parts.path}?{parts.query}"
            sock.sendall(f"GET {target} HTTP/1.1\r\nHost: h\r\nRange: bytes=0-9\r\n\r\n".encode())
            assert sock.recv(1000).startswith(b"HTTP/1.1 200")
            time.sleep(0.2)
        sent = 0
        while sent != server.stats.body_bytes:
            sent = server.stats.body_bytes
            assert sent < 64 * CHUNK
            time.sleep(0.2)
        assert sent > 0


def test_the_end_waits_for_nobody(zoo: Path) -> None:
    """What a client still waits for would take hours: a body that drips, an answer far away."""
    server = MirrorServer(zoo, faults=[Fault("slow", rate=0.001)])
    with server:
        parts = urlsplit(server.endpoint)
        idle = socket.create_connection((parts.hostname, parts.port or 80), timeout=120)
        drip = socket.create_connection((parts.hostname, parts.port or 80), timeout=120)
        wait = socket.create_connection((parts.hostname, parts.port or 80), timeout=120)
        drip.sendall(b"GET /bare/resolve/main/config.json HTTP/1.1\r\nHost: h\r\n\r\n")
        assert drip.recv(100)
        server.latency = 36_000
        wait.sendall(b"GET /bare/resolve/main/config.json HTTP/1.1\r\nHost: h\r\n\r\n")
        while server.stats.count() < 2:
            time.sleep(0.01)
    for sock in (idle, drip, wait):
        sock.close()


def test_the_end_does_not_wait_for_a_hash(tmp_path: Path) -> None:
    (tmp_path / "large").mkdir()
    with (tmp_path / "large" / "model.bin").open("wb") as file:
        file.truncate(4 << 40)  # hours of hashing
    with MirrorServer(tmp_path, hash_limit=8 << 40) as server:
        parts = urlsplit(server.endpoint)
        wait = socket.create_connection((parts.hostname, parts.port or 80), timeout=120)
        wait.sendall(b"HEAD /large/resolve/main/model.bin HTTP/1.1\r\nHost: h\r\n\r\n")
        while server.stats.count() < 1:
            time.sleep(0.01)
        time.sleep(0.05)
    wait.close()


def test_two_servers_and_a_port_in_use(zoo: Path, get: Get) -> None:
    with MirrorServer(zoo) as one, MirrorServer(zoo) as two:
        assert one.endpoint != two.endpoint
        assert get(f"{two.endpoint}/api/models/bare").status == 200
        with (
            pytest.raises(BadOption, match="storage_port"),
            MirrorServer(zoo, storage_port=one.port),
        ):
            pass


@pytest.mark.parametrize("options", [{"latency": -1.0}, {"bandwidth": 0.0}])
def test_impossible_weather(zoo: Path, options: dict[str, float]) -> None:
    with pytest.raises(BadOption):
        MirrorServer(zoo, **options)  # type: ignore[arg-type]


def test_folders_without_models(tmp_path: Path) -> None:
    with pytest.raises(BadOption, match="no such folder"):
        MirrorServer(tmp_path / "nowhere")
    failed = CliRunner().invoke(mirror_command, [str(tmp_path)])
    assert isinstance(failed.exception, BadOption)
    assert "holds model files" in str(failed.exception)
    failed = CliRunner().invoke(mirror_command, [str(tmp_path), "--fault", "explode"])
    assert isinstance(failed.exception, BadOption)


def test_without_httptools(zoo: Path, get: Get, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn.protocols.http.httptools_impl", None)
    with MirrorServer(zoo, faults=[Fault("reset", port="storage", times=1)]) as server:
        answer = get(f"{server.endpoint}/org/llama/resolve/main/model.safetensors")
        assert answer.status == 302
        with pytest.raises(ConnectionResetError):
            get(answer.headers["location"])
        assert get(answer.headers["location"], headers={"Range": "bytes=-3"}).status == 206


def test_naming_the_command_loads_no_server() -> None:
    code = (
        "import sys, kinprint.mirror, kinprint.cli.mirror\n"
        "print([name for name in ('uvicorn', 'asyncio', 'huggingface_hub') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout.strip() == "[]"


def test_a_usage_error_is_a_sentence(zoo: Path) -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "kinprint",
            "mirror",
            str(zoo),
            "--port",
            "0",
            "--fault",
            "slow,rate=0",
        ],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("kinprint: --fault cannot be") and "Traceback" not in done.stderr
