"""Bad files for every parser, and bad requests for the mirror."""

from __future__ import annotations

import random
import socket
import time

import kinprint.demo
from kinprint.mirror import MirrorServer
from tests.fuzz.answers import SEEDS, echo
from tests.fuzz.targets import mutated, targets, tried
from tests.torture.scene import Row, memory, open_files

_SLOWEST = 10.0  # seconds for one file
_MOST_MEMORY = 200 << 20
_LONG = ("model", "shown")  # which take milliseconds
_REQUESTS = (
    b"GET /api/models/zoo/base-a HTTP/1.1\r\nHost: h\r\n\r\n",
    b"GET /api/models/zoo/base-a/tree/main?recursive=true&limit=2&cursor=MQ== HTTP/1.1\r\n"
    b"Host: h\r\n\r\n",
    b"HEAD /zoo/base-a/resolve/main/model.safetensors HTTP/1.1\r\nHost: h\r\n\r\n",
    b"GET /zoo/base-a/resolve/main/config.json HTTP/1.1\r\nHost: h\r\nRange: bytes=1-5\r\n\r\n",
    b"POST /api/models/zoo/base-a/paths-info/main HTTP/1.1\r\nHost: h\r\nContent-Type: "
    b'application/json\r\nContent-Length: 26\r\n\r\n{"paths": ["config.json"]}',
    b"GET /zoo/base-a/x?v=1-2-a&Expires=9&Signature=x HTTP/1.1\r\nHost: h\r\n\r\n",
)


def inputs(count: int) -> tuple[Row, list[str]]:
    """So many damaged files for each parser."""
    draw = random.Random(count)
    known = targets()
    for target in known.values():  # whatever is loaded late is loaded now
        for seed in target.seeds:
            tried(target, seed)
    before = memory()
    lost: list[str] = []
    done = 0
    for name, target in known.items():
        for _ in range(count // 20 if name in _LONG else count):
            raw = mutated(draw.choice(target.seeds), draw)
            began = time.monotonic()
            found = tried(target, raw)
            done += 1
            if found is not None:
                lost.append(f"{name}: {found[:200]}: {raw[:200]!r}")
            elif time.monotonic() - began > _SLOWEST:
                lost.append(f"{name}: slow: {raw[:200]!r}")
    grown = memory() - before
    if grown > _MOST_MEMORY:
        lost.append(f"memory grew by {grown:,} bytes")
    return Row(
        "damaged files",
        f"{done:,} files for {len(known)} parsers",
        f"refused or read; memory {grown / 2**20:+.0f} MiB",
        len(lost),
    ), lost


def answers(count: int) -> tuple[Row, list[str]]:
    """Damaged answers of a server that stands in the place of the Hub."""
    draw = random.Random(count)
    with echo() as server:
        before = open_files()
        found = [server.tried(mutated(draw.choice(SEEDS), draw)) for _ in range(count)]
        time.sleep(1.0)
        grown = open_files() - before
    lost = [one for one in found if one is not None]
    lost += [f"{grown} files stay open"] if grown > 20 else []
    what = "damaged answers of a server"
    return Row(what, f"{count:,} answers", "refused or read", len(lost)), lost


def requests(count: int) -> tuple[Row, list[str]]:
    """Damaged requests to a mirror: it answers, refuses or hangs up, and is there afterwards."""
    draw = random.Random(count)
    lost: list[str] = []
    with MirrorServer(kinprint.demo.FOLDER, request_seconds=1.0) as server:
        before = open_files()
        for _ in range(count):
            raw = mutated(draw.choice(_REQUESTS), draw)
            port = draw.choice((server.port, server.storage_port))
            with socket.create_connection(("127.0.0.1", port), timeout=30) as sock:
                try:
                    sock.sendall(raw)
                    sock.shutdown(socket.SHUT_WR)
                    answer = sock.recv(64)
                except ConnectionError:
                    continue
            if answer.split()[1:2] == [b"500"]:
                lost.append(f"status 500 to {raw[:300]!r}")
        with socket.create_connection(("127.0.0.1", server.port), timeout=30) as sock:
            sock.sendall(_REQUESTS[0])
            if not sock.recv(64).startswith(b"HTTP/1.1 200"):
                lost.append("no answer afterwards")
        time.sleep(2.0)
        grown = open_files() - before
        if grown > 10:
            lost.append(f"{grown} files stay open")
    return Row(
        "damaged requests to the mirror",
        f"{count:,} requests",
        "answered, refused or hung up on",
        len(lost),
    ), lost
