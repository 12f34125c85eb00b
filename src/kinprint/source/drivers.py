"""What the drivers of object stores show of a server's answer: status, headers and body.

Their own functions to read a file show neither, so that bytes of another range would be taken for
those asked for, and a server that sends the whole file would be let. Each function here asks for
one range by its driver's own client, looks at the head of the answer first, and reads no more of
a body than a byte too many.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

from msgspec import Struct

from kinprint.records import ByteRange

_TAG = "ETag"


class Answer(Struct, frozen=True):
    """An answer, and how to take it.

    `whole` is false where a range was asked for; `tagged` is true where the answer has the entity
    tag that lists have.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes
    whole: bool
    tagged: bool


class _Body(Protocol):
    def read(self, size: int, /) -> Awaitable[bytes]: ...


Ask = Callable[..., Awaitable[Answer]]


def shown_by(files: Any) -> Ask | None:
    """What asks for a range by this driver and shows the answer; None for drivers unknown here."""
    homes = (kind.__module__.partition(".")[0] for kind in type(files).__mro__)
    return next((_DRIVERS[home] for home in homes if home in _DRIVERS), None)


def bare_tag(tag: str) -> str:
    """An entity tag without its quotes: some lists have them and some have not."""
    return tag.strip('"')


async def _ask_s3(files: Any, place: str, *, span: ByteRange, whole: bool) -> Answer:
    bucket, key, version = files.split_path(place)
    asked = {"Bucket": bucket, "Key": key}
    if version:
        asked["VersionId"] = version
    if not whole:
        asked["Range"] = _range(span)
    answer = await files._call_s3("get_object", **asked)
    try:
        body = await _collected(answer["Body"], span.size)
    finally:
        answer["Body"].close()
    told = answer["ResponseMetadata"]
    return Answer(told["HTTPStatusCode"], _headers(told["HTTPHeaders"]), body, whole, tagged=True)


async def _ask_google(files: Any, place: str, *, span: ByteRange, whole: bool) -> Answer:
    await files._set_session()
    headers = {"Accept-Encoding": "identity"} | ({} if whole else {"Range": _range(span)})
    async with files.session.get(
        files.url(place),
        params=files._get_params({}),
        headers=files._get_headers(headers),
        timeout=files.requests_timeout,
    ) as answer:
        if _is_refusal(answer.status):
            raise _refused(answer.status, answer.reason)
        wanted = answer.status == (200 if whole else 206)
        body = await _collected(answer.content, span.size) if wanted else b""
        return Answer(answer.status, _headers(answer.headers), body, whole, tagged=False)


async def _ask_azure(files: Any, place: str, *, span: ByteRange, whole: bool) -> Answer:
    """Azure's client asks for a range even where that is the whole file."""
    container, blob, version = files.split_path(place)
    heads: list[tuple[int, dict[str, str]]] = []
    opened: list[Any] = []

    def look(response: Any) -> None:
        answer = response.http_response
        opened.append(answer.internal_response)
        told = _headers(answer.headers)
        heads[:] = [(answer.status_code, told)]
        sent = told.get("Content-Range", "").partition("/")[0].split()
        wanted = sent == _range(span).split("=") and told.get("Content-Length") == str(span.size)
        if answer.status_code < 400 and not wanted:  # the client would take all that comes
            raise _Unasked

    async with files.service_client.get_blob_client(container=container, blob=blob) as client:
        try:
            stream = await client.download_blob(
                offset=span.start,
                length=span.size,
                version_id=version,
                max_concurrency=1,
                retry_total=0,
                raw_response_hook=look,
            )
            body = await stream.readall()
        except Exception as error:  # of Azure's library, or what `look` raised
            status = heads[0][0] if heads else 0
            if not isinstance(error, _Unasked) and (_is_refusal(status) or status < 400):
                raise _refused(status, "" if status else type(error).__name__) from error
            body = b""
        finally:
            for one in opened:  # the client leaves connections of what was not read to its end
                one.close()
    return Answer(*heads[0], body, whole=False, tagged=True)


_DRIVERS: Mapping[str, Ask] = {"s3fs": _ask_s3, "gcsfs": _ask_google, "adlfs": _ask_azure}


class _Unasked(Exception):
    """What comes is not what was asked for."""


def _is_refusal(status: int) -> bool:
    """Whether a status ends an exchange; that of a range outside the file is an answer."""
    return status >= 400 and status != 416


def _refused(status: int, reason: str | None) -> OSError:
    """What a status that is none of success means, 0 where there was none."""
    said = f"{status or ''} {reason or ''}".strip()
    if status == 404:
        return FileNotFoundError(said)
    if status in (401, 403):
        return PermissionError(said)
    return ConnectionError(said)


def _range(span: ByteRange) -> str:
    return f"bytes={span.start}-{span.stop - 1}"


async def _collected(body: _Body, most: int) -> bytes:
    data = bytearray()
    try:
        while chunk := await body.read(most + 1 - len(data)):
            data += chunk
    except Exception as error:  # whichever HTTP library the driver has
        raise ConnectionError from error
    return bytes(data)


def _headers(told: Mapping[str, str]) -> dict[str, str]:
    """Headers by their names as they are commonly spelt; each library has a way of its own."""
    named = {name.title(): value for name, value in told.items()}
    tag = named.pop(_TAG.title(), None)
    return named if tag is None else named | {_TAG: bare_tag(tag)}
