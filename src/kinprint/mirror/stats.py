"""What was asked of the mirror and what it sent: the witness in tests about cost."""

from __future__ import annotations

from collections import Counter, deque
from typing import NamedTuple

DEFAULT_KEPT = 10_000
_LONGEST_PATH = 500  # characters of a path that are remembered
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"})


class Seen(NamedTuple):
    """One request as it arrived; `range` is the header's text, or None without one."""

    method: str
    path: str
    range: str | None
    port: str


class Stats:
    """Counts requests and bytes, so that a test can prove what a client really used.

    `body_bytes` counts body bytes handed to the socket. A whole body is counted before its
    last byte leaves; where a client hangs up, at most one chunk (256 KiB) too many is.
    """

    def __init__(self, kept: int = DEFAULT_KEPT) -> None:
        self.requests: Counter[tuple[str, str]] = Counter()
        self.statuses: Counter[tuple[str, int]] = Counter()
        self.body_bytes = 0
        self.storage_body_bytes = 0
        self.tokens_seen_by_storage = 0
        self.last: deque[Seen] = deque(maxlen=kept)

    def reset(self) -> None:
        """Start counting from zero."""
        self.requests.clear()
        self.statuses.clear()
        self.body_bytes = self.storage_body_bytes = self.tokens_seen_by_storage = 0
        self.last.clear()

    def arrived(self, port: str, method: str, path: str, range_header: str | None) -> None:
        """Count a request."""
        known = method if method in _METHODS else "other"
        self.requests[port, known] += 1
        asked = None if range_header is None else range_header[:_LONGEST_PATH]
        self.last.append(Seen(known, path[:_LONGEST_PATH], asked, port))

    def sending(self, port: str, size: int) -> None:
        """Count body bytes that are about to be written."""
        self.body_bytes += size
        if port == "storage":
            self.storage_body_bytes += size

    def count(self, port: str | None = None, method: str | None = None) -> int:
        """Return the number of requests, of one port or method where given."""
        return sum(
            number
            for (seen_port, seen_method), number in list(self.requests.items())
            if port in (None, seen_port) and method in (None, seen_method)
        )

    def document(self) -> dict[str, object]:
        """Return the counts as plain values for JSON, for readers in other processes."""
        requests: dict[str, dict[str, int]] = {"hub": {}, "storage": {}}
        for (port, method), number in list(self.requests.items()):
            requests[port][method] = number
        statuses: dict[str, dict[str, int]] = {"hub": {}, "storage": {}}
        for (port, status), number in list(self.statuses.items()):
            statuses[port][str(status)] = number
        return {
            "requests": requests,
            "statuses": statuses,
            "body_bytes": self.body_bytes,
            "storage_body_bytes": self.storage_body_bytes,
            "tokens_seen_by_storage": self.tokens_seen_by_storage,
            "last": [seen._asdict() for seen in list(self.last)],
        }
