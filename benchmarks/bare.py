"""The floor, measured: the requests of a run, made again by a client that does nothing else.

The bare client knows beforehand what to ask for. It opens sixteen connections, asks for every
address at once, then for every range at once, throws the bytes away and neither parses, checks,
caches nor computes. A program that must look at an index before it knows which file to open, and
at a header before it knows which bytes to read, cannot be as fast; the ratio to this floor says
how much of a command's time is not the network's. Because the floor is measured beside the
command, a busy machine slows both.
"""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote, unquote, urlsplit

from benchmarks.network import CONNECTIONS, Request, Traffic


def floor_seconds(endpoint: str, traffic: Traffic) -> float:
    """Seconds that the same requests take without the program that made them."""
    client = _BareClient(endpoint)
    started = time.monotonic()
    _share_out(client.ask_hub, [one for one in traffic.requests if one.port == "hub"])
    _share_out(client.ask_storage, [one for one in traffic.requests if one.port == "storage"])
    return time.monotonic() - started


class _BareClient:
    def __init__(self, endpoint: str) -> None:
        self._hub = urlsplit(endpoint).netloc
        self._signed: dict[str, str] = {}
        self._storage = ""

    def ask_hub(self, requests: Iterable[Request]) -> None:
        """Ask the hub over one connection, and keep the addresses it redirects to."""
        connection = http.client.HTTPConnection(self._hub)
        for one in requests:
            answer = _ask(connection, one, quote(one.path))
            if place := answer.headers["location"]:
                address = urlsplit(place)
                self._storage = address.netloc
                self._signed[unquote(address.path)] = f"{address.path}?{address.query}"
        connection.close()

    def ask_storage(self, requests: Iterable[Request]) -> None:
        """Ask the storage host over one connection."""
        connection = http.client.HTTPConnection(self._storage)
        for one in requests:
            answer = _ask(connection, one, self._signed[one.path])
            assert answer.status in (200, 206), answer.status
        connection.close()


def _ask(
    connection: http.client.HTTPConnection, request: Request, target: str
) -> http.client.HTTPResponse:
    headers = {} if request.range is None else {"Range": request.range}
    connection.request(request.method, target, headers=headers)
    answer = connection.getresponse()
    answer.read()
    return answer


def _share_out(ask: Callable[[Iterable[Request]], None], requests: list[Request]) -> None:
    """Let every connection take the next request as soon as it is free."""
    waiting = iter(requests)
    lock = threading.Lock()

    def next_ones() -> Iterable[Request]:
        while True:
            with lock:
                one = next(waiting, None)
            if one is None:
                return
            yield one

    with ThreadPoolExecutor(CONNECTIONS) as connections:
        asked = [connections.submit(ask, next_ones()) for _ in range(CONNECTIONS)]
    for one in asked:
        one.result()  # raises what went wrong
