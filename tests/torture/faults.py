"""Every fault in every phase of every kind of source: the same result, or one sentence."""

from __future__ import annotations

import http.client
import random
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager

from msgspec import Struct
from msgspec.structs import replace

import kinprint
import kinprint.mirror.storage
from kinprint.errors import InternalError, KinprintError
from kinprint.mirror import Fault, MirrorServer
from tests.torture.scene import (
    PAIRS,
    Row,
    compared,
    demo_mirror,
    nothing_left,
    open_files,
    patience,
)
from tests.torture.store import BUCKET, SCHEMES, object_store

FAULTS = (
    *(Fault("status", code=code) for code in (408, 500, 502, 503, 504)),
    Fault("status", code=429, retry_after=0),
    Fault("reset", at=0),
    Fault("reset"),
    Fault("truncate"),
    Fault("truncate", at=0),
    Fault("slow"),
    Fault("ignore_range"),
    Fault("wrong_range"),
    Fault("short"),
    Fault("expire"),
    Fault("gzip"),
    Fault("etag"),
    Fault("size"),
    Fault("redirect"),
    Fault("hang"),
    Fault("drip"),
    Fault("continue"),
    Fault("endless", code=200),
    Fault("endless", code=404),
    Fault("endless", code=503),
)
# Not "corrupt": a flipped bit in a range shows in no length, and only the whole file has a digest.
WAITING = frozenset({"slow", "hang", "drip", "continue", "endless"})
PHASES = {
    "hub": {
        "listing": {"port": "hub", "where": "*/revision/*"},
        "small files": {"port": "hub", "where": "*.json", "method": "GET"},
        "resolving": {"port": "hub", "where": "*/resolve/*", "method": "HEAD"},
        "headers": {"port": "storage"},
        "weights": {"port": "storage", "after": 3},
    },
    "web address": {
        "probing": {"port": "storage"},
        "headers": {"port": "storage", "after": 2},
        "weights": {"port": "storage", "after": 4},
    },
    "s3": {
        "probing": {"method": "HEAD"},
        "listing": {"method": "GET", "where": f"/{BUCKET}"},
        "small files": {"method": "GET", "where": "*.json"},
        "headers": {"method": "GET", "where": "*.safetensors"},
        "weights": {"method": "GET", "where": "*.safetensors", "after": 3},
    },
    "gs": {
        "probing": {"where": f"/storage/v1/b/{BUCKET}/o/*"},
        "listing": {"where": f"/storage/v1/b/{BUCKET}/o"},
        "small files": {"where": "/download/*.json"},
        "headers": {"where": "/download/*.safetensors"},
        "weights": {"where": "/download/*.safetensors", "after": 3},
    },
    "az": {
        "probing": {"method": "HEAD"},
        "listing": {"method": "GET", "where": f"*/{BUCKET}"},
        "small files": {"method": "GET", "where": "*.json"},
        "headers": {"method": "GET", "where": "*.safetensors"},
        "weights": {"method": "GET", "where": "*.safetensors", "after": 3},
    },
}
_MODELS = ("zoo/base-a", "zoo/a-cpt")
_MIX = ("reset", "truncate", "status", "short", "wrong_range", "expire")


class Case(Struct, frozen=True):
    """One fault, once or for ever, in one phase of one kind of source."""

    fault: Fault
    source: str
    phase: str

    @property
    def title(self) -> str:
        """What it is, for people."""
        often = "once" if self.fault.times else "always"
        code = self.fault.code if self.fault.kind in ("status", "endless") else ""
        return f"{self.fault.kind} {code} {often}, {self.source}, {self.phase}"


def cases() -> list[Case]:
    """All of them."""
    return [
        Case(replace(fault, times=times, **phase), source, name)  # type: ignore[arg-type]
        for source, phases in PHASES.items()
        for name, phase in phases.items()
        for fault in FAULTS
        for times in (1, None)
    ]


@contextmanager
def servers(sources: Collection[str]) -> Iterator[dict[str, MirrorServer]]:
    """What serves each kind of source."""
    with demo_mirror() as mirror, ExitStack() as stack:
        stores = {
            scheme: stack.enter_context(object_store(_MODELS, scheme))
            for scheme in SCHEMES
            if scheme in sources
        }
        yield {source: stores.get(source, mirror) for source in sources}


@contextmanager
def models(source: str, server: MirrorServer) -> Iterator[tuple[str, str]]:
    """Two models as a kind of source names them."""
    server.faults.replace([])
    first, second = _MODELS
    if source == "web address":
        first, second = (web_address(server, name) for name in _MODELS)
    elif source in SCHEMES:  # a folder and a single object
        first, second = (
            f"{source}://{BUCKET}/{first}",
            f"{source}://{BUCKET}/{second}/model.safetensors",
        )
    yield first, second
    server.faults.replace([])


def web_address(server: MirrorServer, name: str) -> str:
    """Where the weights of a model lie, as a plain web address."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    try:
        connection.request("HEAD", f"/{name}/resolve/main/model.safetensors")
        return str(connection.getresponse().headers["location"])
    finally:
        connection.close()


def outcome(action: Callable[[], str], expected: str) -> str:
    """How a run ended: as without faults, with a sentence, or in a way that it must not."""
    try:
        found = action()
    except InternalError as error:
        return f"lost: {error}"
    except KinprintError:
        return "sentence"
    except Exception as error:
        return f"lost: {type(error).__name__}: {error}"
    return "same" if found == expected else "lost: another result"


def run_case(case: Case, server: MirrorServer, action: Callable[..., str], expected: str) -> str:
    """Run something under a fault, with little patience for what waits: servers, or drivers."""
    seconds = 0.3 if case.fault.kind in WAITING else 1.0 if case.source in SCHEMES else 10.0
    with models(case.source, server) as pair, patience(seconds):
        server.faults.add(case.fault)
        return outcome(lambda: action(pair), expected)


def run_cases(chosen: Sequence[Case], action: Callable[..., str]) -> tuple[list[str], list[str]]:
    """How each case ended, and what was lost: results, files, connections and threads."""
    ended: dict[Case, str] = {}
    left: list[str] = []
    with servers({case.source for case in chosen}) as by_source:
        expected = {}
        for source, server in by_source.items():
            with models(source, server) as pair:
                expected[source] = action(pair)
        with nothing_left(left):
            for case in chosen:
                server = by_source[case.source]
                ended[case] = run_case(case, server, action, expected[case.source])
    lost = [f"{case.title}: {how}" for case, how in ended.items() if how.startswith("lost")]
    return list(ended.values()), lost + left


def matrix(chosen: Sequence[Case]) -> tuple[Row, list[str]]:
    """All cases, each a comparison of two models from nothing."""
    ended, lost = run_cases(chosen, compared)
    same, told = ended.count("same"), ended.count("sentence")
    return Row(
        "faults × phases × sources",
        f"{len(ended)} comparisons",
        f"{same} same result, {told} one sentence",
        len(lost),
    ), lost


def mixed(share: float, draw: random.Random) -> list[Fault]:
    """Faults of several kinds that together strike a share of all requests."""
    each = share / len(_MIX)
    return [Fault(kind, share=each, seed=draw.randrange(1 << 30)) for kind in _MIX]


def weather(runs: int, share: float) -> tuple[Row, list[str]]:
    """Many comparisons, each request of which fails with some chance, in one of several ways."""
    draw = random.Random(runs)
    lost: list[str] = []
    told = struck = 0
    with demo_mirror() as server:
        expected = {pair: compared(pair) for pair in PAIRS}
        before = 0
        for number in range(runs):
            pair = draw.choice(PAIRS)
            server.faults.replace(mixed(share, draw))
            how = outcome(lambda pair=pair: compared(pair), expected[pair])  # type: ignore[misc]
            struck += server.faults.struck
            told += how == "sentence"
            lost += [f"run {number}: {how}"] if how.startswith("lost") else []
            if number == min(20, runs // 2):
                before = open_files()
        after = open_files()
        if after > before + 20:
            lost.append(f"open files grew from {before} to {after}")
    return Row(
        f"comparisons at {share:.0%} faults",
        f"{runs:,} comparisons, {struck:,} faults",
        f"{runs - told - len(lost):,} same result, {told} one sentence",
        len(lost),
    ), lost


def clock_jump() -> tuple[Row, list[str]]:
    """The server's clock jumps a day ahead between two requests, again and again."""

    class Jumping:
        def __init__(self) -> None:
            self.calls = 0

        def time(self) -> float:
            self.calls += 1
            return 1.7e9 + 86_400 * (self.calls // 25)

    with demo_mirror() as server:
        expected = compared(PAIRS[1])
        room = vars(kinprint.mirror.storage)
        kept, room["time"] = room["time"], Jumping()
        try:
            how = outcome(lambda: compared(PAIRS[1]), expected)
        finally:
            room["time"] = kept
        renewed = server.stats.statuses["storage", 403]
    lost = [how] if how.startswith("lost") else []
    return Row("clock jumps", f"{renewed} addresses expired", how, len(lost)), lost
