"""What may go wrong on purpose: faults as values, and a book that decides when they strike.

Clients are only as good as the failures they were tried against. A fault says what happens,
to which requests and how often; it is data, so tests and the command line share it.
"""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from random import Random

from msgspec import Struct

from kinprint.errors import BadOption
from kinprint.text import message

KINDS: dict[str, str] = {
    "status": "answer with `code` and, if given, Retry-After",
    "reset": "break the connection with a TCP reset after `at` bytes (0: before the answer)",
    "truncate": "promise the whole body, send `at` bytes of it and close",
    "slow": "send `rate` bytes a second",
    "ignore_range": "answer a Range request with 200 and the whole file",
    "wrong_range": "answer a Range request with other bytes than asked for",
    "short": "answer a Range request with half of the bytes asked for",
    "corrupt": "flip the bits of the byte at `at`",
    "expire": "treat a storage address as expired",
    "gzip": "compress the body and say so",
    "etag": "name another ETag",
    "size": "say that the file is a byte longer",
    "redirect": "send the client to the address that it has just asked for",
    "hang": "take the request and say nothing",
    "drip": "send `rate` header lines a second, without end",
    "continue": "send `100 Continue` without end",
    "endless": "answer with `code` and a body without end",
}
PORTS = ("any", "hub", "storage")

# Decided before the request is looked at; all others change a reply that has a body.
UNENDING = frozenset({"hang", "drip", "continue", "endless"})
EARLY = frozenset({"status", "expire", "redirect"}) | UNENDING
NEEDS_RANGE = frozenset({"ignore_range", "wrong_range", "short"})
NEEDS_BODY = frozenset({"truncate", "slow", "corrupt", "gzip", "etag", "size"}) | NEEDS_RANGE


class Fault(Struct, frozen=True):
    """One thing that goes wrong: `kind`, for requests that match `where`, `port` and `method`.

    It skips the first `after` matching requests and strikes `times` (None: always), of every
    hundred at `share` 0.05 about five, drawn anew with another `seed`. `where` is a glob on the
    address's path or on its last part. `at` counts bytes of the body; None is its middle. A
    fault that cannot apply (a cut body where there is none) is not used up.
    """

    kind: str
    where: str = "*"
    port: str = "any"
    times: int | None = None
    after: int = 0
    method: str = "*"
    code: int = 503
    retry_after: int | None = None
    at: int | None = None
    rate: float = 8.0
    share: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        negative = message("cause.option.not-negative")
        checks = (
            (self.kind in KINDS, "kind", message("cause.option.one-of", known=", ".join(KINDS))),
            (self.port in PORTS, "port", message("cause.option.one-of", known=", ".join(PORTS))),
            (
                (200 if self.kind == "endless" else 400) <= self.code <= 599,
                "code",
                message("cause.mirror.status"),
            ),
            (self.rate > 0, "rate", message("cause.option.above-zero")),
            (0 < self.share <= 1, "share", message("cause.mirror.share")),
            (self.after >= 0, "after", negative),
            (self.times is None or self.times >= 0, "times", negative),
            (self.at is None or self.at >= 0, "at", negative),
            (self.retry_after is None or self.retry_after >= 0, "retry_after", negative),
        )
        for good, name, cause in checks:
            if not good:
                raise BadOption(option=f"fault {name}", value=getattr(self, name), cause=cause)

    def matches(self, port: str, method: str, path: str) -> bool:
        """Whether a request is one that this fault is about."""
        return (
            self.port in ("any", port)
            and self.method in ("*", method)
            and (
                self.where == "*"
                or fnmatchcase(path, self.where)
                or fnmatchcase(path.lstrip("/"), self.where)
                or fnmatchcase(path.rpartition("/")[2], self.where)
            )
        )


_WHOLE_NUMBERS = ("times", "after", "code", "retry_after", "at", "seed")
_NUMBERS = ("rate", "share")


def parse_fault(text: str) -> Fault:
    """Read a fault from text such as `status=503,where=*.safetensors,times=2`.

    The first part is the kind; `status=503` is short for `status,code=503`. This is what
    `--fault` takes. Raises `BadOption`.
    """
    first, *rest = [part.strip() for part in text.split(",")]
    kind, _, code = first.partition("=")
    given: dict[str, str] = {}
    if code:
        if kind not in ("status", "endless"):
            raise _bad(text, "cause.mirror.fault.value", kind=kind)
        given["code"] = code
    for part in rest:
        name, sign, value = part.partition("=")
        if not sign or not value:
            raise _bad(text, "cause.mirror.fault.part", part=part)
        if name in given:
            raise _bad(text, "cause.mirror.fault.twice", name=name)
        given[name] = value
    fields: dict[str, object] = {"kind": kind}
    for name, value in given.items():
        try:
            if name in ("where", "port"):
                fields[name] = value
            elif name == "method":
                fields[name] = value.upper()
            elif name in _NUMBERS:
                fields[name] = float(value)
            elif name in _WHOLE_NUMBERS:
                fields[name] = int(value)
            else:
                known = ", ".join(("where", "port", "method", *_NUMBERS, *_WHOLE_NUMBERS))
                raise _bad(text, "cause.mirror.fault.unknown", name=name, known=known)
        except ValueError:
            raise _bad(text, "cause.mirror.fault.number", name=name, value=value) from None
    try:
        return Fault(**fields)  # type: ignore[arg-type]
    except BadOption as error:
        name = str(error.fields["option"])
        raise _bad(text, "cause.mirror.fault.field", name=name, cause=error.cause) from None


def _bad(text: str, key: str, /, **fields: object) -> BadOption:
    return BadOption(option="faults", value=text, cause=message(key, **fields))


class FaultBook:
    """Keeps count of which faults have struck, and picks the one for a request."""

    def __init__(self, faults: Iterable[Fault] = ()) -> None:
        self._rows: list[_Row] = []
        self.replace(faults)

    def replace(self, faults: Iterable[Fault]) -> None:
        """Forget all faults and counts, and start over with these."""
        self._rows = [_Row(fault) for fault in faults]

    def add(self, fault: Fault) -> None:
        """Put one more fault at the end of the book."""
        self._rows = [*self._rows, _Row(fault)]

    @property
    def armed(self) -> bool:
        """Whether there is any fault at all; lets the common path skip the rest."""
        return bool(self._rows)

    @property
    def struck(self) -> int:
        """How often faults of this book have struck."""
        return sum(row.struck for row in self._rows)

    def early(self, port: str, method: str, path: str) -> Fault | None:
        """Return the fault that strikes before the request is looked at."""
        for row in self._rows:
            fault = row.fault
            if (
                (fault.kind in EARLY or (fault.kind == "reset" and fault.at == 0))
                and (fault.kind != "expire" or port == "storage")
                and fault.matches(port, method, path)
                and row.strikes()
            ):
                return fault
        return None

    def late(self, port: str, method: str, path: str, *, body: bool, partial: bool) -> Fault | None:
        """Return the fault that spoils a reply, given whether it has a body and is a range."""
        for row in self._rows:
            fault = row.fault
            kind = fault.kind
            if kind in EARLY or (kind == "reset" and fault.at == 0):
                continue
            if (kind in NEEDS_BODY and not body) or (kind in NEEDS_RANGE and not partial):
                continue
            if fault.matches(port, method, path) and row.strikes():
                return fault
        return None


class _Row:
    __slots__ = ("fault", "random", "seen", "struck")

    def __init__(self, fault: Fault) -> None:
        self.fault = fault
        self.random = Random(fault.seed)
        self.seen = 0
        self.struck = 0

    def strikes(self) -> bool:
        self.seen += 1
        if self.seen <= self.fault.after:
            return False
        if self.fault.times is not None and self.struck >= self.fault.times:
            return False
        if self.fault.share < 1 and self.random.random() >= self.fault.share:
            return False
        self.struck += 1
        return True
