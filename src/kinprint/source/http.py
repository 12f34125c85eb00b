"""The one gate to any server: the hub client's session and backoff, with bounded patience.

The hub client owns connections, proxies, certificates, retries and rate limits. This
module adds what it does not do: every failure becomes one of our errors, a server that
asks for minutes of patience is reported instead of obeyed, one that is silent or drips is
given up (`patience.py`), redirects are followed without reading their bodies, and nothing
secret is logged.
"""

from __future__ import annotations

import logging
import re
import socket
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, Literal, TypeVar
from urllib.parse import urlsplit

from huggingface_hub import constants
from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled
from huggingface_hub.utils import (
    hf_raise_for_status,
    http_stream_backoff,
    parse_ratelimit_headers,
)
from msgspec import Struct, field

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
from kinprint.source.patience import Limit, Patience, listening, trace
from kinprint.source.reference import same_origin
from kinprint.source.stopping import Stopped, pause

# The base class of everything the hub client's HTTP library raises. Taken from the hub's
# own error, so that the library behind it (it changed before) is never imported here.
TransportError: type[Exception] = HfHubHTTPError.__bases__[0]

_PASSWORD = re.compile(r"(?<=://)[^/@\s]*@")
_QUERY = re.compile(r"(?<=[^\s?])\?\S+")
_PASSING = (408, 429, 500, 502, 503, 504)
_DIGITS = re.compile(r"[0-9]{1,18}")
_MOST_REDIRECTS = 20
_OF_THE_BODY = frozenset({b"content-encoding", b"content-length", b"transfer-encoding"})
LONGEST_WAIT = 60.0  # seconds that a server may ask us to wait before we say so and stop
_T = TypeVar("_T")

FIRST_WAIT = 1.0  # seconds before the first retry; doubled for each further one
_UNHEARD_OF = 2  # retries for a host that has no address and never answered: a slip of the pen
_answered: set[str] = set()  # hosts that did: one of them without an address is waited for


def _timeout() -> float:
    return float(constants.HF_HUB_DOWNLOAD_TIMEOUT)


def _first_wait() -> float:
    return FIRST_WAIT


class RetryPolicy(Struct, frozen=True):
    """How often and how long to try; the defaults are the hub client's own."""

    retries: int = 5
    first_wait: float = field(default_factory=_first_wait)
    timeout: float = field(default_factory=_timeout)
    slowest_rate: int = 4096  # bytes a second, once `timeout` seconds have passed

    def patience(self) -> Patience:
        """Time for a request and its retries until the server has shown that it is there.

        The hub client's timeout is ten seconds; a silent server is told of after 24.
        """
        return Patience(2.4 * self.timeout)

    def pause_after(self, failures: int) -> float:
        """Seconds to wait before trying again."""
        return min(8.0, self.first_wait * 2.0 ** (failures - 1))


class Refused(Exception):
    """The address was refused (401, 403 and the like): it may have expired."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class Target(Struct, frozen=True):
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
    patience: Patience | None = None,
) -> Iterator[tuple[Any, Limit]]:
    """The streamed answer to a request, and the limit that its body is read under.

    Failures to get one are our own errors. What passes is tried again as the hub client
    would, but waiting is bounded and can be ended: a server that asks for minutes of patience
    is reported with the time it asks for. `response.history` has the redirects before it.
    """
    patience = patience or policy.patience()
    asked = dict(headers) | {"Accept-Encoding": "identity"}
    for attempt in range(policy.retries + 1):
        with _followed(method, target, asked, policy, follow, patience) as (response, limit):
            passing = response.status_code in _PASSING and attempt < policy.retries
            wait = _seconds_to_wait(response.headers) if passing else None
            own = policy.pause_after(attempt + 1)
            if not passing or (own >= patience.left if wait is None else wait > LONGEST_WAIT):
                if method == "HEAD":
                    response.read()  # nothing comes, and the connection can be used again
                yield response, limit
                return
        pause(own if wait is None else wait)
        if wait is not None:
            patience.renew()


@contextmanager
def _followed(
    method: Literal["GET", "HEAD"],
    target: Target,
    headers: Mapping[str, str],
    policy: RetryPolicy,
    follow: bool,
    patience: Patience,
) -> Iterator[tuple[Any, Limit]]:
    """One answer, that of the last address where redirects are followed."""
    address = target.address
    history: list[Any] = []
    while len(history) <= _MOST_REDIRECTS:
        open_stream = partial(_open, method, address, headers, policy.timeout, patience)
        stack, response, limit = ask(open_stream, address, target.path, policy, patience)
        with stack:
            following = response.next_request
            if not follow or following is None:
                response.history = history
                yield response, limit
                return
        history.append(response)
        # The library has dropped the token where this leads to another origin.
        address, headers = str(following.url), dict(following.headers)
    raise no_connection(address, text.message("cause.source.redirects"))


def _open(
    method: Literal["GET", "HEAD"],
    address: str,
    headers: Mapping[str, str],
    timeout: float,
    patience: Patience,
) -> tuple[ExitStack, Any, Limit]:
    """The head of an answer, and what ends the exchange when it is left."""
    with ExitStack() as stack:
        seconds = max(0.01, min(timeout, patience.left))
        limit = stack.enter_context(listening(seconds))
        response = stack.enter_context(
            http_stream_backoff(
                method,
                address,
                headers=headers,
                follow_redirects=False,
                timeout=(seconds, timeout, timeout, seconds),  # connect, read, write, pool
                extensions={"trace": trace},
                retry_on_exceptions=(),
                retry_on_status_codes=(),
            )
        )
        stack.callback(response.close)
        return stack.pop_all(), response, limit
    raise AssertionError("unreachable")


def raise_for_status(response: Any) -> None:
    """Raise the hub client's own error for a status that is none of success.

    What it needs stands in the headers; the body, which may be endless, is left alone.
    """
    kept = [(key, value) for key, value in response.headers.raw if key.lower() not in _OF_THE_BODY]
    hf_raise_for_status(
        type(response)(response.status_code, headers=kept, content=b"", request=response.request)
    )


def _seconds_to_wait(headers: Mapping[str, str]) -> float | None:
    """How long the server asks us to wait, if it does."""
    asked = headers.get("Retry-After") or ""
    limit = parse_ratelimit_headers(headers)
    if limit is not None and limit.remaining == 0:
        return float(limit.reset_in_seconds)
    return float(asked) if _DIGITS.fullmatch(asked) else None


def ask(
    action: Callable[[], _T], address: str, path: str, policy: RetryPolicy, patience: Patience
) -> _T:
    """Do something through the hub client; what it raises becomes one of our errors.

    Broken connections are tried again here and not by the hub client, which would close
    the session that all threads share, and their connections with it.
    """
    host = host_of(address)
    for attempt in range(policy.retries + 1):
        try:
            done = action()
            _answered.add(host)
            return done
        except HfHubHTTPError:
            _answered.add(host)
            raise
        except (KinprintError, Stopped):
            raise
        except OfflineModeIsEnabled:
            missing = text.message("cause.source.missing-file", path=path)
            raise OfflineMiss(what=missing) from None
        except (TransportError, OSError, RuntimeError) as error:
            if isinstance(error, OSError) and error.filename is not None:
                # A token or settings file, not the network.
                cause = system_cause(error)
                raise AccessRefused(path=str(error.filename), cause=cause) from None
            wait = policy.pause_after(attempt + 1)
            lost = attempt >= _UNHEARD_OF and host not in _answered and _has_no_address(error)
            if attempt == policy.retries or wait >= patience.left or lost:
                raise unreachable(error, address) from error
            pause(wait)
        except (TypeError, AttributeError, AssertionError):
            raise  # a mistake of ours, not of the network
        except Exception as error:
            raise unreachable(error, address) from error
    raise AssertionError("unreachable")


def unreachable(error: Exception, address: str) -> Unreachable:
    """No connection, with the first line of what the library said about it."""
    if isinstance(error, TimeoutError):
        return no_connection(address, text.message("cause.source.no-answer"))
    if (known := _system_words(error)) is not None:
        return no_connection(address, known)
    lines = str(error).strip().splitlines()
    return no_connection(address, lines[0][:120] if lines and lines[0] else type(error).__name__)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """An error and those that it came from."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _has_no_address(error: BaseException) -> bool:
    """Whether name servers know no such host; one that cannot be asked just now may do so later."""
    found = [cause for cause in _causes(error) if isinstance(cause, socket.gaierror)]
    return any(cause.errno != socket.EAI_AGAIN for cause in found)


def _system_words(error: BaseException) -> text.Message | None:
    """What the system said of a connection, where a library has only put it into its own words."""
    for cause in _causes(error):
        if isinstance(cause, socket.gaierror):
            return text.message("cause.source.no-such-host")
        if isinstance(cause, OSError) and not isinstance(cause, ssl.SSLError):  # its own numbers
            known = system_cause(cause)
            if isinstance(known, text.Message):
                return known
    return None


def no_connection(address: str, cause: str | text.Message) -> Unreachable:
    """No connection, and what to check: settings of the Hub where that was asked, and so on."""
    key = "cause.check.network"
    if not address.startswith(("http://", "https://")):
        key = "cause.check.store"
    elif same_origin(address, constants.ENDPOINT):
        key = "cause.check.hub"
    return Unreachable(host=host_of(address), cause=cause, check=text.message(key))


def refusal(error: HfHubHTTPError, address: str, path: str) -> KinprintError | Refused:
    """What a status that ended all retries means."""
    return failure(error.response.status_code, error.response.headers, address, path)


def failure(
    status: int, headers: Mapping[str, str], address: str, path: str
) -> KinprintError | Refused:
    """What a status of 400 or more means."""
    if status == 429:
        return RateLimited(host=host_of(address), wait=waiting_time(headers))
    if status < 500 and status != 408:
        return Refused(status)
    return ServerFailed(host=host_of(address), path=path, status=status)


def waiting_time(headers: Mapping[str, str]) -> text.Message:
    """What a 429 says about when to come back, in words."""
    wait = _seconds_to_wait(headers)
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
