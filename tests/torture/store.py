"""An object store that can fail: a real one (moto) behind the faults of the mirror.

The mirror's storage port stands before it. It asks the store what it would answer, and delivers
that as it delivers files of its own, spoilt where a fault is due.
"""

from __future__ import annotations

import http.client
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import boto3  # type: ignore[import-untyped]
import pytest
from moto.server import ThreadedMotoServer
from s3fs import S3FileSystem

import kinprint.demo
from kinprint.mirror import MirrorServer
from kinprint.mirror.exchange import Exchange, FileBody, Reply
from kinprint.mirror.ranges import parse_range
from kinprint.records import ByteRange

BUCKET = "models"
_MADE_ANEW = frozenset(
    {"connection", "content-length", "content-range", "date", "server", "transfer-encoding"}
)


class Front:
    """Answers on the mirror's storage port with what the store answers."""

    def __init__(self, port: int) -> None:
        self._port = port

    def answer(self, exchange: Exchange) -> Reply:
        """The store's status and headers; bytes of an object come from the file that it holds."""
        query = exchange.scope["query_string"].decode()
        address = exchange.path + (f"?{query}" if query else "")
        headers = {name.decode(): value.decode() for name, value in exchange.headers.items()}
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
        try:
            connection.request(exchange.method, address, headers=headers)
            answer = connection.getresponse()
            body = answer.read()
        finally:
            connection.close()
        kept = [
            (name.lower().encode(), value.encode())
            for name, value in answer.getheaders()
            if name.lower() not in _MADE_ANEW
        ]
        file = kinprint.demo.FOLDER / Path(exchange.path).relative_to(f"/{BUCKET}")
        if answer.status not in (200, 206) or not file.is_file():
            return Reply(answer.status, kept, body)
        state = file.stat()
        asked = parse_range(exchange.header(b"range"), state.st_size)
        span = asked or ByteRange(0, state.st_size)
        if exchange.method == "GET" and body != file.read_bytes()[span.start : span.stop]:
            raise AssertionError(f"the store holds other bytes than {file}")
        found = FileBody(
            str(file), state.st_size, state.st_mtime_ns, span, partial=asked is not None
        )
        return Reply(200, kept, found)


@contextmanager
def object_store(models: Sequence[str]) -> Iterator[MirrorServer]:
    """A store that holds models, behind faults; the driver of this process is pointed there."""
    logging.getLogger("werkzeug").setLevel(logging.WARNING)  # no line for each request
    store = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    store.start()
    port = store.get_host_and_port()[1]
    try:
        with MirrorServer(kinprint.demo.FOLDER) as server, pytest.MonkeyPatch.context() as patch:
            vars(server)["_storage"] = Front(port)
            patch.setenv("AWS_ACCESS_KEY_ID", "test")
            patch.setenv("AWS_SECRET_ACCESS_KEY", "test")
            patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
            patch.setenv("AWS_ENDPOINT_URL", server.storage_endpoint)
            _fill(port, models)
            S3FileSystem.clear_instance_cache()  # others may have had another endpoint
            yield server
    finally:
        S3FileSystem.clear_instance_cache()
        store.stop()


def _fill(port: int, models: Sequence[str]) -> None:
    client = boto3.client("s3", endpoint_url=f"http://127.0.0.1:{port}")
    client.create_bucket(Bucket=BUCKET)
    for name in models:
        for file in sorted((kinprint.demo.FOLDER / name).iterdir()):
            client.upload_file(str(file), BUCKET, f"{name}/{file.name}")
    client.close()
