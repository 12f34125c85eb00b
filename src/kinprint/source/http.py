"""The one gate to any server: the hub client's session and backoff, with bounded patience.

The hub client owns connections, proxies, certificates, retries and rate limits. This
module adds what it does not do: every failure becomes one of our errors, a server that
asks for minutes of patience is reported instead of obeyed, and nothing secret is logged.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar
from urllib.parse import urlsplit

from huggingface_hub import constants
from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled
from huggingface_hub.utils import http_stream_backoff, parse_ratelimit_headers

from kinprint import text
from kinprint.errors import (
    AccessRefused,
    KinprintError,
    OfflineMiss,
    RateLimited,
    ServerFailed,
    Unreachable,
    system_cause,
)
from kinprint.source.stopping import Stopped, pause

# The base class of everything the hub client's HTTP library raises. Taken from the hub's
# own error, so that the library behind it (it changed before) is never imported here.
TransportError: type[Exception] = HfHubHTTPError.__bases__[0]

_PASSWORD = re.compile(r"(?<=://)[^/@\s]*@")
_QUERY = re.compile(r"(?<=[^\s?])\?\S+")
_PASSING = (408, 429, 500, 502, 503, 504)
_DIGITS = re.compile(r"[0-9]{1,18}")
LONGEST_WAIT = 60.0  # seconds that a server may ask us to wait before we say so and stop
_T = TypeVar("_T")

FIRST_WAIT = 1.0  # seconds before the first retry; doubled for each further one


def _timeout() -> float:
    return float(constants.HF_HUB_DOWNLOAD_TIMEOUT)


def _first_wait() -> float:
    return FIRST_WAIT


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and how long to try; the defaults are the hub client's own."""

    retries: int = 5
    first_wait: float = field(default_factory=_first_wait)
    timeout: float = field(default_factory=_timeout)
    slowest_rate: int = 4096  # bytes a second, once `timeout` seconds have passed


class Refused(Exception):
    """The address was refused (401, 403 and the like): it may have expired."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


@dataclass(frozen=True, slots=True)
class Target:
    """A file on a server as it was listed: what every answer is held against."""

    address: str
    path: str
    size: int
    headers: Mapping[str, str] = field(default_factory=dict)
    pin: tuple[str, str] | None = None  # a header and its value; another one is another file

    @property
    def host(self) -> str:
        """The server, for people."""
        return host_of(self.address)


def host_of(address: str) -> str:
    """Host and port of an address, for people; never the credentials before them."""
    return urlsplit(address).netloc.rpartition("@")[2] or address


@contextmanager
def answer_to(
    method: Literal["GET", "HEAD"],
    target: Target,
    headers: Mapping[str, str],
    policy: RetryPolicy,
    *,
    follow: bool = True,
) -> Iterator[Any]:
    """The streamed answer to a request; failures to get one are our own errors.

    What passes is tried again as the hub client would, but waiting is bounded and can be
    ended: a server that asks for minutes of patience is reported with the time it asks for.
    """
    asked = dict(headers) | {"Accept-Encoding": "identity"}

    def open_stream() -> tuple[Any, Any]:
        context = http_stream_backoff(
            method,
            target.address,
            headers=asked,
            follow_redirects=follow,
            timeout=policy.timeout,
            retry_on_exceptions=(),
            retry_on_status_codes=(),
        )
        return context, context.__enter__()

    for attempt in range(policy.retries + 1):
        context, response = ask(open_stream, target.address, target.path, policy)
        if response.status_code not in _PASSING or attempt == policy.retries:
            break
        wait = _seconds_to_wait(response.headers, policy.first_wait * 2**attempt)
        if wait > LONGEST_WAIT:
            break
        _close(context, response)
        pause(wait)
    try:
        if method == "HEAD":
            response.read()  # nothing comes, and the connection can be used again
        yield response
    finally:
        _close(context, response)


def _close(context: Any, response: Any) -> None:
    response.close()
    context.__exit__(None, None, None)


def _seconds_to_wait(headers: Mapping[str, str], otherwise: float) -> float:
    asked = headers.get("Retry-After") or ""
    limit = parse_ratelimit_headers(headers)
    if limit is not None and limit.remaining == 0:
        return float(limit.reset_in_seconds)
    return float(asked) if _DIGITS.fullmatch(asked) else min(otherwise, 8.0)


def ask(action: Callable[[], _T], address: str, path: str, policy: RetryPolicy) -> _T:
    """Do something through the hub client; what it raises becomes one of our errors.

    Broken connections are tried again here and not by the hub client, which would close
    the session that all threads share, and their connections with it.
    """
    for attempt in range(policy.retries + 1):
        try:
            return action()
        except (KinprintError, HfHubHTTPError, Stopped):
            raise
        except OfflineModeIsEnabled:
            missing = text.message("cause.source.missing-file", path=path)
            raise OfflineMiss(what=missing) from None
        except (TransportError, OSError, RuntimeError) as error:
            if isinstance(error, OSError) and error.filename is not None:
                # A token or settings file, not the network.
                cause = system_cause(error)
                raise AccessRefused(path=str(error.filename), cause=cause) from None
            if attempt == policy.retries:
                raise unreachable(error, address) from error
            pause(min(8.0, policy.first_wait * 2**attempt))
        except (TypeError, AttributeError, AssertionError):
            raise  # a mistake of ours, not of the network
        except Exception as error:
            raise unreachable(error, address) from error
    raise AssertionError("unreachable")


def unreachable(error: Exception, address: str) -> Unreachable:
    """No connection, with the first line of what the library said about it."""
    lines = str(error).strip().splitlines()
    cause = lines[0][:120] if lines and lines[0] else type(error).__name__
    return Unreachable(host=host_of(address), cause=cause)


def refusal(error: HfHubHTTPError, address: str, path: str) -> KinprintError | Refused:
    """What a status that ended all retries means."""
    status = error.response.status_code
    if status == 429:
        return RateLimited(host=host_of(address), wait=waiting_time(error.response.headers))
    if status < 500 and status != 408:
        return Refused(status)
    return ServerFailed(host=host_of(address), path=path, status=status)


def waiting_time(headers: Mapping[str, str]) -> text.Message:
    """What a 429 says about when to come back, in words."""
    wait = _seconds_to_wait(headers, 0)
    if not wait:
        return text.message("cause.source.no-waiting-time")
    return text.message("cause.source.waiting-time", seconds=wait)


class _WithoutQueries(logging.Filter):
    """The hub client logs whole addresses when it retries; signatures are nobody's business."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg = _PASSWORD.sub("", _QUERY.sub("", record.getMessage()))
        record.args = ()
        return True


logging.getLogger("huggingface_hub.utils._http").addFilter(_WithoutQueries())
