"""Object stores that can fail, behind the faults of the mirror.

The mirror's storage port stands before each. S3 is moto, Google an emulator: they are asked what
they would answer, and that is delivered as the mirror delivers files of its own, spoilt where a
fault is due. Azure's emulator is no Python: the few answers that its driver needs are given here,
as Azurite gives them.
"""

from __future__ import annotations

import http.client
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from email.utils import formatdate
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import parse_qs, unquote
from xml.sax.saxutils import escape

import boto3  # type: ignore[import-untyped]
import fsspec
import pytest
from azure.storage.blob.aio import ExponentialRetry
from gcp_storage_emulator.server import create_server
from moto.server import ThreadedMotoServer

import kinprint.demo
from kinprint.mirror import MirrorServer
from kinprint.mirror.exchange import Exchange, FileBody, Headers, Reply
from kinprint.mirror.ranges import parse_range
from kinprint.records import ByteRange

BUCKET = "models"
SCHEMES = ("s3", "gs", "az")
_ACCOUNT = "account"
_MADE_ANEW = frozenset(
    {"connection", "content-length", "content-range", "date", "server", "transfer-encoding"}
)


class Store(Protocol):
    """Answers requests on the mirror's storage port."""

    def answer(self, exchange: Exchange) -> Reply:
        """What the store says."""


class Front:
    """Answers with what a store on another port answers; objects lie below `objects` there."""

    def __init__(self, port: int, objects: str) -> None:
        self._port = port
        self._objects = objects

    def answer(self, exchange: Exchange) -> Reply:
        """The store's status and headers; bytes of an object come from the file that it holds."""
        path = exchange.scope["raw_path"].decode()
        query = exchange.scope["query_string"].decode()
        headers = {name.decode(): value.decode() for name, value in exchange.headers.items()}
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
        try:
            connection.request(exchange.method, f"{path}?{query}".rstrip("?"), headers=headers)
            answer = connection.getresponse()
            body = answer.read()
        finally:
            connection.close()
        kept = [
            (name.lower().encode(), value.encode())
            for name, value in answer.getheaders()
            if name.lower() not in _MADE_ANEW
        ]
        key = unquote(path).partition(self._objects)[2]
        if answer.status not in (200, 206) or not key:
            return Reply(answer.status, kept, body)
        found = _file_body(key, exchange.header(b"range"))
        truth = Path(found.file).read_bytes()[found.span.start : found.span.stop]
        if exchange.method == "GET" and body != truth:
            raise AssertionError(f"the store holds other bytes than {found.file}")
        return Reply(200, kept, found)


class AzureStore:
    """Answers as Azure's blob service does, for the files of models."""

    def __init__(self, models: Sequence[str]) -> None:
        self._keys = [f"{model}/{file.name}" for model in models for file in _files(model)]

    def answer(self, exchange: Exchange) -> Reply:
        """A list of blobs, or one of them."""
        key = exchange.path.removeprefix(f"/{_ACCOUNT}/{BUCKET}").strip("/")
        if not key:
            query = parse_qs(exchange.scope["query_string"].decode())
            return self._list(query.get("prefix", [""])[0])
        if key not in self._keys:
            return Reply(404, [(b"x-ms-error-code", b"BlobNotFound")])
        asked = exchange.header(b"x-ms-range") or exchange.header(b"range")
        told = _about(key)
        headers: Headers = [(name.lower().encode(), value.encode()) for name, value in told.items()]
        headers.append((b"x-ms-blob-type", b"BlockBlob"))
        return Reply(200, headers, _file_body(key, asked))

    def _list(self, prefix: str) -> Reply:
        blobs = [
            f"<Blob><Name>{escape(key)}</Name><Properties><BlobType>BlockBlob</BlobType>"
            f"<Content-Length>{(kinprint.demo.FOLDER / key).stat().st_size}</Content-Length>"
            + "".join(f"<{name}>{value}</{name}>" for name, value in _about(key).items())
            + "</Properties></Blob>"
            for key in self._keys
            if key.startswith(prefix)
        ]
        document = (
            '<?xml version="1.0" encoding="UTF-8"?><EnumerationResults ContainerName="'
            f'{BUCKET}"><Blobs>{"".join(blobs)}</Blobs><NextMarker/></EnumerationResults>'
        )
        return Reply(200, [(b"content-type", b"application/xml")], document.encode())


@contextmanager
def object_store(models: Sequence[str], scheme: str = "s3") -> Iterator[MirrorServer]:
    """A store that holds models, behind faults; the driver of this process is pointed there."""
    opened = {"s3": _s3, "gs": _google, "az": _azure}[scheme]
    with MirrorServer(kinprint.demo.FOLDER) as server, pytest.MonkeyPatch.context() as patch:
        with opened(models, server.storage_endpoint, patch) as store:
            vars(server)["_storage"] = store
            driver = fsspec.get_filesystem_class(scheme)
            driver.clear_instance_cache()  # others may have had another endpoint
            yield server
        driver.clear_instance_cache()


@contextmanager
def _s3(models: Sequence[str], endpoint: str, patch: pytest.MonkeyPatch) -> Iterator[Store]:
    logging.getLogger("werkzeug").setLevel(logging.WARNING)  # no line for each request
    patch.setenv("AWS_ACCESS_KEY_ID", "test")
    patch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    patch.setenv("AWS_ENDPOINT_URL", endpoint)
    store = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    store.start()
    port = store.get_host_and_port()[1]
    try:
        client = boto3.client("s3", endpoint_url=f"http://127.0.0.1:{port}")
        client.create_bucket(Bucket=BUCKET)
        for model in models:
            for file in _files(model):
                client.upload_file(str(file), BUCKET, f"{model}/{file.name}")
        client.close()
        yield Front(port, f"/{BUCKET}/")
    finally:
        store.stop()


@contextmanager
def _google(models: Sequence[str], endpoint: str, patch: pytest.MonkeyPatch) -> Iterator[Store]:
    # Without this the driver asks Google itself what kind of bucket it has before it.
    patch.setenv("GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT", "false")
    patch.setitem(fsspec.config.conf, "gs", {"token": "anon"})
    patch.setenv("STORAGE_EMULATOR_HOST", endpoint)
    store: Any = create_server("127.0.0.1", 0, in_memory=True, default_bucket=BUCKET)
    store.start()
    port = store._api._httpd.server_port
    try:
        upload = f"/upload/storage/v1/b/{BUCKET}/o?uploadType=media&name="
        for model in models:
            for file in _files(model):
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
                connection.request("POST", f"{upload}{model}/{file.name}", file.read_bytes())
                assert connection.getresponse().status == 200
                connection.close()
        yield Front(port, f"/download/storage/v1/b/{BUCKET}/o/")
    finally:
        store.stop()


@contextmanager
def _azure(models: Sequence[str], endpoint: str, patch: pytest.MonkeyPatch) -> Iterator[Store]:
    said = {"AccountName": _ACCOUNT, "AccountKey": "a2V5", "BlobEndpoint": f"{endpoint}/{_ACCOUNT}"}
    connection = ";".join(f"{name}={value}" for name, value in said.items())
    patch.setenv("AZURE_STORAGE_CONNECTION_STRING", connection)
    logging.getLogger("azure").setLevel(logging.CRITICAL)  # no line for each broken answer
    patch.setattr(ExponentialRetry, "get_backoff_time", lambda *_: 0.01)  # 15 seconds otherwise
    yield AzureStore(models)


def _files(model: str) -> list[Path]:
    return sorted((kinprint.demo.FOLDER / model).iterdir())


def _file_body(key: str, asked: str | None) -> FileBody:
    """The bytes of an object that a Range header asks for; all of them without one."""
    file = kinprint.demo.FOLDER / key
    state = file.stat()
    span = parse_range(asked, state.st_size)
    whole = ByteRange(0, state.st_size)
    return FileBody(
        str(file), state.st_size, state.st_mtime_ns, span or whole, partial=span is not None
    )


def _about(key: str) -> dict[str, str]:
    state = (kinprint.demo.FOLDER / key).stat()
    return {
        "Etag": f'"0x{state.st_mtime_ns:X}"',
        "Last-Modified": formatdate(state.st_mtime, usegmt=True),
        "Content-Type": "application/octet-stream",
    }
