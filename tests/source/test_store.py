"""Object stores: real drivers behind faults, and one that tells nothing of what it read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from kinprint.demo import FOLDER
from kinprint.errors import (
    BadReference,
    BodyBroken,
    FileChanged,
    KinprintError,
    LengthWrong,
    RangeIgnored,
    Unreachable,
)
from kinprint.mirror import Fault, MirrorServer
from kinprint.records import ByteRange
from kinprint.source import open_source
from tests.torture.scene import nothing_left, patience
from tests.torture.store import SCHEMES, object_store

MODEL, FILE = "zoo/base-a", "model.safetensors"
SPAN = ByteRange(1_000, 201_000)
TRUTH = (FOLDER / MODEL / FILE).read_bytes()[SPAN.start : SPAN.stop]


@pytest.fixture(scope="module", params=SCHEMES)
def scheme(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def running(scheme: str) -> Iterator[MirrorServer]:
    with object_store([MODEL], scheme) as server:
        yield server


@pytest.fixture
def store(running: MirrorServer) -> Iterator[MirrorServer]:
    yield running
    running.faults.replace([])


@pytest.mark.parametrize(
    "fault",
    [
        Fault("status", code=408, times=2),
        Fault("status", code=503, times=1),
        Fault("reset", at=0, times=1),
        Fault("reset", times=1),
        Fault("truncate", times=1),
        Fault("short", times=1),
        Fault("wrong_range", times=1),
        Fault("gzip", times=1),
    ],
    ids=lambda fault: f"{fault.kind}-{fault.at}",
)
def test_passing_faults_change_nothing(fault: Fault, store: MirrorServer, scheme: str) -> None:
    source = open_source(f"{scheme}://models/{MODEL}")
    store.faults.add(fault)
    assert source.read(FILE, SPAN) == TRUTH
    assert store.faults.struck == fault.times


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (Fault("status", code=408), Unreachable),
        (Fault("truncate"), Unreachable),
        (Fault("short"), LengthWrong),
        (Fault("wrong_range"), LengthWrong),
        (Fault("gzip"), LengthWrong),
        (Fault("ignore_range"), RangeIgnored),
        (Fault("size"), FileChanged),
        (Fault("endless", code=200), KinprintError),
    ],
    ids=lambda item: item.kind if isinstance(item, Fault) else None,
)
def test_lasting_faults_are_named(
    fault: Fault, error: type[KinprintError], store: MirrorServer, scheme: str
) -> None:
    source = open_source(f"{scheme}://models/{MODEL}")
    store.faults.add(fault)
    with patience(2.0), pytest.raises(error):
        source.read(FILE, SPAN)
    assert source.spent.bytes <= 2 * (SPAN.size + 1)


def test_bytes_of_an_object_with_another_tag_are_refused(store: MirrorServer, scheme: str) -> None:
    source = open_source(f"{scheme}://models/{MODEL}")
    vars(source)["_tags"][FILE] = "that of another object"
    with pytest.raises(FileChanged):
        source.read(FILE, SPAN)


def test_azures_client_is_given_no_body_of_another_length() -> None:
    with object_store([MODEL], "az") as server:
        source = open_source(f"az://models/{MODEL}")
        server.faults.add(Fault("gzip"))
        with pytest.raises(LengthWrong):
            source.read(FILE, SPAN)
        assert source.spent.bytes == 0


def test_what_is_refused_leaves_no_connection(store: MirrorServer, scheme: str) -> None:
    source = open_source(f"{scheme}://models/{MODEL}")
    store.faults.add(Fault("ignore_range"))
    lost: list[str] = []
    with nothing_left(lost):
        for _ in range(25):
            with pytest.raises(RangeIgnored):
                source.read(FILE, SPAN)
    assert lost == []


def test_what_to_check_is_told(store: MirrorServer, scheme: str) -> None:
    source = open_source(f"{scheme}://models/{MODEL}")
    store.faults.add(Fault("status", code=408))
    with patience(1.0), pytest.raises(Unreachable, match="endpoint and credentials") as told:
        source.read(FILE, SPAN)
    assert "HF_ENDPOINT" not in str(told.value)


def test_a_fault_makes_no_folder_of_an_object(store: MirrorServer, scheme: str) -> None:
    store.faults.add(Fault("status", code=408, where=f"*/{FILE}", times=1))
    source = open_source(f"{scheme}://models/{MODEL}/{FILE}")
    assert source.ref.path == FILE


def test_what_a_driver_listed_before_is_not_believed(store: MirrorServer, scheme: str) -> None:
    open_source(f"{scheme}://models/{MODEL}/{FILE}")
    store.stats.reset()
    open_source(f"{scheme}://models/{MODEL}/{FILE}")
    assert store.stats.statuses["storage", 200] >= 2  # of the object, and the list


class TaggedFileSystem(MemoryFileSystem):  # type: ignore[misc]
    """A store whose driver tells of entity tags, but not of those of the bytes it gives."""

    protocol = "tagged"
    store: ClassVar[dict[str, Any]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]
    tag = "one"
    lengths: ClassVar[list[int]] = []

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return str(super()._strip_protocol(path.removeprefix("tagged://")))

    def info(self, path: str, **options: Any) -> dict[str, Any]:
        return {**super().info(path, **options), "ETag": self.tag}

    def find(self, path: str, **options: Any) -> dict[str, Any]:
        return {name: self.info(name) for name in super().find(path)}

    def cat_file(self, path: str, **options: Any) -> bytes:
        data = bytes(super().cat_file(path, **options))
        return data[: self.lengths.pop()] if self.lengths else data


@pytest.fixture
def tagged() -> Iterator[type[TaggedFileSystem]]:
    fsspec.register_implementation("tagged", TaggedFileSystem, clobber=True)
    TaggedFileSystem().pipe_file("/model/weights.bin", b"0123456789")
    yield TaggedFileSystem
    TaggedFileSystem.tag = "one"
    TaggedFileSystem.lengths = []


def test_bytes_of_a_replaced_object_are_refused(tagged: type[TaggedFileSystem]) -> None:
    source = open_source("tagged://model")
    assert source.read("weights.bin", ByteRange(2, 5)) == b"234"
    assert source.spent.requests == 2
    tagged.tag = "two"
    with pytest.raises(FileChanged):
        source.read("weights.bin", ByteRange(2, 5))


def test_one_answer_of_another_length_is_forgiven(tagged: type[TaggedFileSystem]) -> None:
    source = open_source("tagged://model")
    tagged.lengths = [1]
    assert source.read("weights.bin", ByteRange(2, 5)) == b"234"
    tagged.lengths = [1, 1]
    with pytest.raises(BodyBroken):
        source.read("weights.bin", ByteRange(2, 5))


def test_a_driver_that_lists_bare_names_is_refused(
    tagged: type[TaggedFileSystem], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Azure's does where an object is called like the folder."""
    monkeypatch.setattr(tagged, "find", lambda *_, **__: ["/model"])
    with pytest.raises(BadReference):
        open_source("tagged://model")
