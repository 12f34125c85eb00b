"""The cache: sparse, checked, shared, and alive after anything."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import textwrap
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kinprint.errors import CacheBroken, DiskFull
from kinprint.reader import cache as cache_module
from kinprint.reader.cache import Cache
from kinprint.reader.extents import subtract, union
from kinprint.records import ByteRange, FileEntry

SIZE = 1_000_000
ENTRY = FileEntry("model.safetensors", SIZE, key="k" * 64)


def content(start: int, stop: int) -> bytes:
    """Bytes that any process can recompute from their place alone."""
    return bytes((at * 31 + (at >> 8) * 7) & 0xFF for at in range(start, stop))


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


def stored(cache: Cache, span: ByteRange) -> bool:
    return not subtract([span], cache.known(ENTRY, [span]))


def test_what_is_written_is_known_and_read(cache: Cache) -> None:
    cache.write(ENTRY, 100, content(100, 200), "zoo/a")
    fresh = Cache(cache.folder)
    assert fresh.known(ENTRY, [ByteRange(0, SIZE)]) == (ByteRange(100, 200),)
    assert fresh.read(ENTRY, ByteRange(120, 180)) == content(120, 180)
    assert fresh.known(ENTRY, [ByteRange(0, 100)]) == ()


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5000), st.integers(1, 900)), max_size=8))
def test_known_is_the_union_of_what_was_written(
    tmp_path_factory: pytest.TempPathFactory, writes: list[tuple[int, int]]
) -> None:
    cache = Cache(tmp_path_factory.mktemp("cache"))
    for start, size in writes:
        cache.write(ENTRY, start, content(start, start + size), "zoo/a")
    known = Cache(cache.folder).known(ENTRY, [ByteRange(0, SIZE)])
    assert known == union(ByteRange(start, start + size) for start, size in writes)
    for span in known:
        assert cache.read(ENTRY, span) == content(span.start, span.stop)


def test_a_range_that_two_processes_noted_is_checked_once(
    cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    for one in (cache, Cache(cache.folder)):
        one.write(ENTRY, 100, content(100, 200), "zoo/a")
    checked: list[int] = []

    def counting(data: bytes) -> int:
        checked.append(len(data))
        return zlib.crc32(data)

    monkeypatch.setattr(cache_module, "crc32", counting)
    assert Cache(cache.folder).known(ENTRY, [ByteRange(0, SIZE)]) == (ByteRange(100, 200),)
    assert [length for length in checked if length == 100] == [100]


def test_files_are_sparse(cache: Cache) -> None:
    huge = FileEntry("model.safetensors", 300 * 10**9, key="h" * 64)
    cache.write(huge, 299 * 10**9, b"x" * 5000, "zoo/huge")
    (item,) = cache.items()
    assert item.disk_bytes < 100_000
    assert (item.name, item.path, item.length) == ("zoo/huge", "model.safetensors", 300 * 10**9)
    assert cache.clear() == item.disk_bytes
    assert not list(cache.items())


def test_damaged_bytes_are_not_known(cache: Cache) -> None:
    cache.write(ENTRY, 0, content(0, 100), "zoo/a")
    cache.write(ENTRY, 500, content(500, 600), "zoo/a")
    data = cache.folder / str(ENTRY.key) / "data"
    with data.open("r+b") as file:
        file.seek(50)
        file.write(b"\x00\x01\x02")
    fresh = Cache(cache.folder)
    assert fresh.known(ENTRY, [ByteRange(0, SIZE)]) == (ByteRange(500, 600),)
    fresh.write(ENTRY, 0, content(0, 100), "zoo/a")  # read anew, and good again
    assert stored(Cache(cache.folder), ByteRange(0, 100))


@pytest.mark.parametrize("cut", range(1, 26, 4))
def test_a_torn_note_spoils_nothing_that_follows(cache: Cache, cut: int) -> None:
    cache.write(ENTRY, 0, content(0, 100), "zoo/a")
    cache.write(ENTRY, 200, content(200, 300), "zoo/a")
    journal = cache.folder / str(ENTRY.key) / "journal"
    journal.write_bytes(journal.read_bytes()[:-cut])
    cache.write(ENTRY, 400, content(400, 500), "zoo/a")
    fresh = Cache(cache.folder)
    assert stored(fresh, ByteRange(0, 100))
    assert stored(fresh, ByteRange(400, 500))


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=200), st.integers(0, 400))
def test_any_journal_is_survived(
    tmp_path_factory: pytest.TempPathFactory, junk: bytes, at: int
) -> None:
    cache = Cache(tmp_path_factory.mktemp("cache"))
    cache.write(ENTRY, 10, content(10, 50), "zoo/a")
    journal = cache.folder / str(ENTRY.key) / "journal"
    raw = journal.read_bytes()
    journal.write_bytes(raw[:at] + junk + raw[at:])
    for span in Cache(cache.folder).known(ENTRY, [ByteRange(0, SIZE)]):
        assert cache.read(ENTRY, span) == content(span.start, span.stop)


def test_a_note_beyond_the_file_is_ignored(cache: Cache) -> None:
    longer = FileEntry("model.safetensors", 2 * SIZE, key=ENTRY.key)
    cache.write(longer, SIZE - 10, content(SIZE - 10, SIZE + 10), "zoo/a")
    assert cache.known(ENTRY, [ByteRange(0, SIZE)]) == ()


WRITER = textwrap.dedent(
    """
    import random, sys
    from pathlib import Path
    from tests_cache_content import content
    from kinprint.reader.cache import Cache
    from kinprint.records import FileEntry
    cache = Cache(Path(sys.argv[1]))
    entry = FileEntry("model.safetensors", 1_000_000, key="k" * 64)
    rng = random.Random(int(sys.argv[2]))
    print("ready", flush=True)
    for _ in range(int(sys.argv[3])):
        start = rng.randrange(0, 900_000)
        size = rng.randrange(1, 30_000)
        cache.write(entry, start, content(start, start + size), "zoo/a")
    """
)


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[list[str]]:
    """A program that writes many ranges, to be run in processes of its own."""
    import inspect

    (tmp_path / "tests_cache_content.py").write_text(inspect.getsource(content))
    script = tmp_path / "writer.py"
    script.write_text(WRITER)
    return iter([[sys.executable, str(script)]])


def assert_all_known_is_right(folder: Path) -> tuple[ByteRange, ...]:
    cache = Cache(folder)
    known = cache.known(ENTRY, [ByteRange(0, SIZE)])
    for span in known:
        assert cache.read(ENTRY, span) == content(span.start, span.stop)
    return known


def test_it_survives_kill_9_at_any_moment(cache: Cache, writer: Iterator[list[str]]) -> None:
    command = next(writer)
    rng = random.Random(1)
    for round_number in range(10):
        process = subprocess.Popen(
            [*command, str(cache.folder), str(round_number), "100000"], stdout=subprocess.PIPE
        )
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        time.sleep(rng.uniform(0.0, 0.12))
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        assert_all_known_is_right(cache.folder)
    assert assert_all_known_is_right(cache.folder), "nothing was written: the test tests nothing"
    cache.write(ENTRY, 5, content(5, 25), "zoo/a")
    assert stored(Cache(cache.folder), ByteRange(5, 25))


def test_processes_may_write_at_the_same_time(cache: Cache, writer: Iterator[list[str]]) -> None:
    command = next(writer)
    processes = [
        subprocess.Popen([*command, str(cache.folder), str(seed), "60"], stdout=subprocess.DEVNULL)
        for seed in range(4)
    ]
    assert [process.wait() for process in processes] == [0] * 4
    expected: list[ByteRange] = []
    for seed in range(4):
        rng = random.Random(seed)
        for _ in range(60):
            start = rng.randrange(0, 900_000)
            expected.append(ByteRange(start, start + rng.randrange(1, 30_000)))
    assert assert_all_known_is_right(cache.folder) == union(expected)


def test_clearing_under_our_feet_only_forgets(cache: Cache) -> None:
    cache.write(ENTRY, 0, content(0, 100), "zoo/a")
    Cache(cache.folder).clear()
    assert cache.known(ENTRY, [ByteRange(0, 100)]) == ()
    assert cache.read(ENTRY, ByteRange(0, 100)) is None
    cache.write(ENTRY, 0, content(0, 100), "zoo/a")
    assert stored(cache, ByteRange(0, 100))


def test_holes_of_a_new_file_are_never_taken_for_the_old_ones_bytes(cache: Cache) -> None:
    cache.write(ENTRY, 0, content(0, 100), "zoo/a")
    Cache(cache.folder).clear()
    cache.write(ENTRY, 500, content(500, 600), "zoo/a")  # makes a hole at 0
    assert cache.read(ENTRY, ByteRange(0, 100)) is None
    assert cache.read(ENTRY, ByteRange(500, 600)) == content(500, 600)


def test_clearing_and_writing_at_once(cache: Cache, writer: Iterator[list[str]]) -> None:
    command = next(writer)
    process = subprocess.Popen(
        [*command, str(cache.folder), "1", "400"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    cleared = 0
    while process.poll() is None:
        Cache(cache.folder).clear()
        cleared += 1
        time.sleep(0.01)
    assert cleared > 5
    assert process.returncode == 0, process.communicate()[1].decode()
    process.communicate()
    assert_all_known_is_right(cache.folder)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A real file system of 256 kB."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder)]
    try:
        made = subprocess.run(mount, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        made = False
    if not made:
        pytest.skip("mounting a small file system needs Linux and root")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_is_said_and_loses_nothing(small_disk: Path) -> None:
    cache = Cache(small_disk / "cache")
    cache.write(ENTRY, 0, content(0, 60_000), "zoo/a")
    with pytest.raises(DiskFull, match="kinprint cache clear"):
        for start in range(60_000, 900_000, 60_000):
            cache.write(ENTRY, start, content(start, start + 60_000), "zoo/a")
    assert stored(Cache(cache.folder), ByteRange(0, 60_000))
    assert_all_known_is_right(cache.folder)


@pytest.mark.skipif(os.name == "nt", reason="permissions of this kind are POSIX")
def test_a_cache_that_is_no_folder_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(CacheBroken, match="HF_ASSETS_CACHE"):
        Cache(tmp_path / "file").write(ENTRY, 0, b"x", "zoo/a")
