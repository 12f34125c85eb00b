"""A server that answers every request with the bytes it was given, whatever they are."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from huggingface_hub import constants
from huggingface_hub.utils import close_session

import kinprint.source.http
from kinprint.errors import InternalError, KinprintError
from kinprint.records import ByteRange
from kinprint.source import open_source
from tests.fuzz.targets import watched

_LISTING = json.dumps(
    {"id": "a/b", "sha": "0" * 40, "siblings": [{"rfilename": "config.json", "size": 2}]}
).encode()
_resolve = socket.getaddrinfo
SEEDS = (
    b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nETag: x\r\n\r\n%s" % (len(_LISTING), _LISTING),
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n"
    % (len(_LISTING), _LISTING),
    b"HTTP/1.1 302 Found\r\nLocation: /a/b/api\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 404 Not Found\r\nX-Error-Code: EntryNotFound\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 429 Slow\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 206 Partial\r\nContent-Range: bytes 0-1/2\r\nContent-Length: 2\r\n\r\n{}",
)


class Echo:
    """Answers with `reply`; counts connections."""

    def __init__(self) -> None:
        self.reply = b""
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.endpoint = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(client,), daemon=True).start()

    def _answer(self, client: socket.socket) -> None:
        with client, contextlib.suppress(OSError):
            client.settimeout(5)
            client.recv(65536)
            client.sendall(self.reply)
            client.shutdown(socket.SHUT_WR)

    def tried(self, reply: bytes) -> str | None:
        """Open a model and read a file, each request answered alike; what went wrong, if it did."""
        self.reply = reply
        try:
            with watched(constants.HF_ASSETS_CACHE):
                source = open_source("a/b")
                source.read("config.json", ByteRange(0, 2))
        except InternalError as error:
            return f"InternalError: {error}"
        except KinprintError as error:
            str(error)
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        return None

    def close(self) -> None:
        """Answer nobody any more."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


def _loopback_only(host: str, *others: Any, **more: Any) -> Any:
    """Where a name leads: nowhere, unless it is this machine. An answer may name any other."""
    if host != "127.0.0.1":
        raise socket.gaierror(socket.EAI_NONAME, "no such name here")
    return _resolve(host, *others, **more)


@contextlib.contextmanager
def echo() -> Iterator[Echo]:
    """Such a server in the place of the Hub, and little patience with it."""
    server = Echo()
    settings = {
        "ENDPOINT": server.endpoint,
        "HUGGINGFACE_CO_URL_TEMPLATE": server.endpoint + "/{repo_id}/resolve/{revision}/{filename}",
        "HF_HUB_DOWNLOAD_TIMEOUT": 0.5,
    }
    waits = {"FIRST_WAIT": 0.001, "LONGEST_WAIT": 0.01}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in settings.items():
            patch.setattr(constants, name, value)
        for name, seconds in waits.items():
            patch.setattr(kinprint.source.http, name, seconds)
        patch.setattr(socket, "getaddrinfo", _loopback_only)
        try:
            yield server
        finally:
            close_session()
            server.close()
