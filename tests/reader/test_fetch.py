"""The fetcher: each byte once, within the budget, and nothing half-written."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import CancelledError
from pathlib import Path

import pytest
from huggingface_hub import constants

from kinprint.errors import BudgetExceeded, DiskFull, OfflineMiss, ServerFailed
from kinprint.mirror import Fault, MirrorServer
from kinprint.reader.cache import Cache
from kinprint.reader.fetch import Fetcher, Want
from kinprint.reader.plan import ReadPolicy
from kinprint.records import ByteRange, FileEntry, Progress
from kinprint.source import Source, open_source

FILE = "model.safetensors"


def listen_to_interrupts() -> None:
    """A background job ignores SIGINT, and so would the processes it starts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


@pytest.fixture
def truth(demo: Path) -> bytes:
    return (demo / "zoo/base-a" / FILE).read_bytes()


def entry_of(source: Source) -> FileEntry:
    return next(item for item in source.files() if item.path == FILE)


def wants(source: Source, *spans: tuple[int, int]) -> list[Want]:
    return [Want(source, entry_of(source), tuple(ByteRange(*span) for span in spans))]


def test_the_plan_is_what_is_spent(mirror: MirrorServer, cache: Cache) -> None:
    source = open_source("zoo/base-a")
    asked = wants(source, (0, 5000), (200_000, 210_000), (1_000_000, 1_600_000))
    with Fetcher(cache=cache, policy=ReadPolicy(part=256 * 1024)) as fetcher:
        (plan,) = fetcher.plan(asked)
        mirror.stats.reset()
        before = source.spent
        fetcher.ensure(asked)
        after = source.spent
    assert plan.cost.requests == mirror.stats.count() == after.requests - before.requests
    assert plan.cost.bytes == mirror.stats.storage_body_bytes == after.bytes - before.bytes
    assert len(plan.reads) == 5


def test_no_byte_is_read_twice(mirror: MirrorServer, cache: Cache, truth: bytes) -> None:
    source = open_source("zoo/base-a")
    with Fetcher(cache=cache) as fetcher:
        view = fetcher.view(source, entry_of(source))
        assert view.read(1000, 9000) == truth[1000:9000]
        mirror.stats.reset()
        assert view.read(2000, 3000) == truth[2000:3000]
        assert mirror.stats.count() == 0
        assert view.read(5000, 12000) == truth[5000:12000]
        assert mirror.stats.storage_body_bytes == 3000
    mirror.stats.reset()
    with Fetcher(cache=cache) as fetcher:  # another run
        assert fetcher.view(source, entry_of(source)).read(1000, 12000) == truth[1000:12000]
    assert mirror.stats.count() == 0


def test_equal_files_are_read_once(
    demo: Path, tmp_path: Path, make_mirror: Callable[..., MirrorServer], cache: Cache
) -> None:
    import shutil

    for name in ("one", "two"):
        shutil.copytree(demo / "zoo/base-a", tmp_path / "models/zoo" / name)
    server = make_mirror(tmp_path / "models")
    one, two = open_source("zoo/one"), open_source("zoo/two")
    with Fetcher(cache=cache) as fetcher:
        server.stats.reset()
        fetcher.ensure(wants(one, (0, 9000)) + wants(two, (0, 9000)))
        assert server.stats.storage_body_bytes == 9000
        span = ByteRange(0, 9000)
        assert fetcher.take(one, entry_of(one), span) == fetcher.take(two, entry_of(two), span)
        assert server.stats.storage_body_bytes == 9000


def test_what_is_there_is_done_by_whoever_asks_and_the_rest_as_it_comes(
    demo: Path, tmp_path: Path, make_mirror: Callable[..., MirrorServer], cache: Cache
) -> None:
    names = ["one", "two", "three"]
    for at, name in enumerate(names):
        shutil.copytree(demo / "zoo/base-a", tmp_path / "models/zoo" / name)
        with (tmp_path / "models/zoo" / name / FILE).open("ab") as file:
            file.write(bytes(at))
    make_mirror(tmp_path / "models")
    sources = [open_source(f"zoo/{name}") for name in names]
    asked = [want for source in sources for want in wants(source, (0, 9000))]
    workers: dict[str, str] = {}

    def note(want: Want) -> str:
        workers[want.source.ref.name] = threading.current_thread().name
        return want.source.ref.name

    with Fetcher(cache=cache) as fetcher:
        fetcher.ensure(asked[1:2])
        assert fetcher.each(asked, note) == [source.ref.name for source in sources]
    here = threading.current_thread().name
    assert [workers[source.ref.name] == here for source in sources] == [False, True, False]


def test_a_failure_with_what_is_there_ends_the_rest(mirror: MirrorServer, cache: Cache) -> None:
    there, coming = open_source("zoo/base-a"), open_source("zoo/a-cpt")

    def refuse(want: Want) -> None:
        if want.source is there:
            raise ValueError("refused")

    with Fetcher(cache=cache) as fetcher:
        asked = wants(there, (0, 100))
        fetcher.ensure(asked)
        with pytest.raises(ValueError, match="refused"):
            fetcher.each([*wants(coming, (0, 100)), *asked], refuse)


def test_without_a_cache_bytes_are_kept_for_the_run(mirror: MirrorServer, truth: bytes) -> None:
    source = open_source("zoo/base-a")
    with Fetcher(cache=None) as fetcher:
        view = fetcher.view(source, entry_of(source))
        assert view.read(0, 4000) == truth[:4000]
        assert view.read(8000, 9000) == truth[8000:9000]
        mirror.stats.reset()
        assert view.read(10, 3000) == truth[10:3000]
        assert mirror.stats.count() == 0
        assert view.read(3000, 8500) == truth[3000:8500]


def test_offline_works_from_the_cache(
    mirror: MirrorServer, cache: Cache, truth: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = open_source("zoo/base-a")
    with Fetcher(cache=cache) as fetcher:
        fetcher.ensure(wants(source, (0, 9000)))
    mirror.close()
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    offline = open_source("zoo/base-a")
    with Fetcher(cache=cache) as fetcher:
        view = fetcher.view(offline, entry_of(offline))
        assert view.read(100, 9000) == truth[100:9000]
        with pytest.raises(OfflineMiss):
            view.read(9000, 200_000)


def test_damage_in_the_cache_is_mended(mirror: MirrorServer, cache: Cache, truth: bytes) -> None:
    source = open_source("zoo/base-a")
    with Fetcher(cache=cache) as fetcher:
        fetcher.ensure(wants(source, (0, 9000)))
    with (cache.folder / str(entry_of(source).key) / "data").open("r+b") as file:
        file.seek(4000)
        file.write(b"damage")
    with Fetcher(cache=Cache(cache.folder)) as fetcher:
        assert fetcher.view(source, entry_of(source)).read(0, 9000) == truth[:9000]


def test_the_budget_is_refused_before_reading(mirror: MirrorServer, cache: Cache) -> None:
    source = open_source("zoo/base-a")
    with Fetcher(cache=cache, budget=100_000) as fetcher:
        mirror.stats.reset()
        with pytest.raises(BudgetExceeded, match="150 kB") as caught:
            fetcher.ensure(wants(source, (0, 150_000)))
        assert "budget to 150kB" in str(caught.value)
        assert mirror.stats.count() == 0
        fetcher.ensure(wants(source, (0, 60_000)))
        with pytest.raises(BudgetExceeded):  # the budget is for the run, not for each call
            fetcher.ensure(wants(source, (500_000, 560_000)))
        fetcher.ensure(wants(source, (0, 60_000)))  # what is there costs nothing


def test_progress_tells_totals_first_and_ends_with_all_done(
    mirror: MirrorServer, cache: Cache
) -> None:
    events: list[Progress] = []
    source = open_source("zoo/base-a")
    with Fetcher(cache=cache, on_progress=events.append) as fetcher:
        fetcher.ensure(wants(source, (0, 5000), (900_000, 905_000)))
    assert [event.kind for event in events] == ["plan", "bytes", "bytes"]
    assert events[0].total_bytes == events[-1].done_bytes == 10_000
    assert events[0].total_requests == events[-1].done_requests == 2
    assert events[0].done_bytes == 0


def test_what_arrived_before_a_failure_is_kept(mirror: MirrorServer, cache: Cache) -> None:
    source = open_source("zoo/base-a")
    source.read(FILE, ByteRange(0, 1))
    mirror.faults.replace([Fault("status", code=500, port="storage", after=3)])
    spans = [(at, at + 100) for at in range(0, 2_000_000, 200_000)]
    with (
        Fetcher(cache=cache, policy=ReadPolicy(connections=1)) as fetcher,
        pytest.raises(ServerFailed),
    ):
        fetcher.ensure(wants(source, *spans))
    known = Cache(cache.folder).known(entry_of(source), [ByteRange(0, 3_000_000)])
    assert len(known) == 3


def test_after_closing_nothing_more_is_asked_for(mirror: MirrorServer, cache: Cache) -> None:
    source = open_source("zoo/base-a")
    source.read(FILE, ByteRange(0, 1))
    mirror.faults.replace([Fault("status", code=503, port="storage", retry_after=1)])
    spans = [(at, at + 100) for at in range(0, 3_000_000, 100_000)]
    fetcher = Fetcher(cache=cache)
    before = threading.active_count()
    worker = threading.Thread(target=lambda: _ignoring_errors(fetcher, wants(source, *spans)))
    worker.start()
    while mirror.stats.count("storage") < 10:
        time.sleep(0.01)
    fetcher.close()
    worker.join()
    while threading.active_count() > before:
        time.sleep(0.01)
    asked = 0
    while asked != mirror.stats.count("storage"):  # what is on its way arrives
        asked = mirror.stats.count("storage")
        time.sleep(0.3)
    time.sleep(1.5)  # longer than the server asked to wait
    assert mirror.stats.count("storage") == asked


def test_closing_wakes_those_whose_jobs_have_not_begun(mirror: MirrorServer, cache: Cache) -> None:
    """One of two models fails while the other's jobs still queue: its thread must not wait on."""
    source = open_source("zoo/base-a")
    fetcher = Fetcher(cache=cache, policy=ReadPolicy(connections=1))
    begun, go_on = threading.Semaphore(0), threading.Event()

    def hold(want: Want) -> None:
        begun.release()
        go_on.wait()

    def asking(start: int) -> threading.Thread:
        def ask() -> None:
            with contextlib.suppress(Exception, CancelledError):
                fetcher.each(wants(source, (start, start + 100)), hold)

        thread = threading.Thread(target=ask, daemon=True)
        thread.start()
        return thread

    holding = [asking(at) for at in (0, 200_000)]  # all threads that the pool has
    for _ in holding:
        begun.acquire()
    waiting = asking(400_000)
    while not fetcher._pool._work_queue.qsize():
        time.sleep(0.01)
    fetcher.close()
    go_on.set()
    for thread in (*holding, waiting):
        thread.join(30)
    assert not waiting.is_alive()
    assert not begun.acquire(blocking=False)  # what had not begun did not begin


def _ignoring_errors(fetcher: Fetcher, asked: list[Want]) -> None:
    with contextlib.suppress(Exception, CancelledError):
        fetcher.ensure(asked)


def test_damaged_answers_on_the_wire_do_not_mix_files(
    mirror: MirrorServer, cache: Cache, truth: bytes
) -> None:
    """Sixteen connections at once, every fault in turn, and still the right bytes."""
    source = open_source("zoo/base-a")
    mirror.faults.replace(
        [
            Fault("reset", port="storage", times=4, after=3),
            Fault("truncate", port="storage", times=4, after=6),
            Fault("status", code=503, port="storage", times=4, after=9),
            Fault("expire", port="storage", times=2, after=12),
        ]
    )
    spans = [(at, at + 3000) for at in range(0, 3_000_000, 100_000)]
    with Fetcher(cache=cache, policy=ReadPolicy(gap=0)) as fetcher:
        fetcher.ensure(wants(source, *spans))
        for start, stop in spans:
            span = ByteRange(start, stop)
            assert fetcher.take(source, entry_of(source), span) == truth[start:stop]


def test_an_interrupt_stops_and_keeps_what_is_there(
    demo: Path, tmp_path: Path, hub_environment: Callable[..., dict[str, str]]
) -> None:
    program = (
        "import os\n"
        "from kinprint.reader.cache import Cache\n"
        "from kinprint.reader.fetch import Fetcher, Want\n"
        "from kinprint.records import ByteRange\n"
        "from kinprint.source import open_source\n"
        "source = open_source('zoo/base-a')\n"
        "entry = [e for e in source.files() if e.path == 'model.safetensors'][0]\n"
        "print('ready', flush=True)\n"
        "input()\n"
        "try:\n"
        "    with Fetcher(cache=Cache.default()) as fetcher:\n"
        "        spans = tuple(ByteRange(at, at + 90_000) for at in range(0, 3_000_000, 190_000))\n"
        "        fetcher.ensure([Want(source, entry, spans)])\n"
        "except KeyboardInterrupt:\n"
        "    os._exit(130)\n"
    )
    with MirrorServer(demo) as server:
        environment = hub_environment(server.endpoint, HF_HUB_DOWNLOAD_TIMEOUT="3600")
        process = subprocess.Popen(
            [sys.executable, "-c", program],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            preexec_fn=listen_to_interrupts,
        )
        assert process.stdin is not None and process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        server.bandwidth = 50  # half an hour a range
        server.stats.reset()
        process.stdin.write(b"\n")
        process.stdin.flush()
        while server.stats.storage_body_bytes < 100:
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=300)
        assert process.returncode == 130
    folder = Path(environment["HF_HOME"]) / "assets" / "kinprint" / "ranges" / "v1"
    truth = (demo / "zoo/base-a" / FILE).read_bytes()
    for place in folder.glob("*"):
        entry = FileEntry(FILE, len(truth), key=place.name)
        for span in Cache(folder).known(entry, [ByteRange(0, len(truth))]):
            assert Cache(folder).read(entry, span) == truth[span.start : span.stop]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs Linux")  # noqa: PTH110
def test_a_full_disk_ends_the_run_with_a_sentence(mirror: MirrorServer, tmp_path: Path) -> None:
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting a small file system needs root")
    try:
        source = open_source("zoo/base-a")
        with Fetcher(cache=Cache(folder / "cache")) as fetcher, pytest.raises(DiskFull):
            fetcher.ensure(wants(source, (0, 1_000_000)))
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_a_cache_that_cannot_be_written_to_is_done_without(
    mirror: MirrorServer, tmp_path: Path, truth: bytes
) -> None:
    (tmp_path / "file").write_text("in the way")
    source = open_source("zoo/base-a")
    with Fetcher(cache=Cache(tmp_path / "file")) as fetcher:
        view = fetcher.view(source, entry_of(source))
        assert view.read(1000, 90_000) == truth[1000:90_000]
        mirror.stats.reset()
        assert view.read(2000, 80_000) == truth[2000:80_000]
        assert mirror.stats.count() == 0


def test_a_cache_that_can_only_be_read_is_read(
    mirror: MirrorServer, cache: Cache, truth: bytes
) -> None:
    source = open_source("zoo/base-a")
    with Fetcher(cache=cache) as fetcher:
        fetcher.ensure(wants(source, (10_000, 60_000), (100_000, 160_000)))
    mount = ["mount", "-t", "tmpfs", "tmpfs", str(cache.folder)]
    kept = cache.folder.with_name("kept")
    shutil.copytree(cache.folder, kept)
    try:
        made = subprocess.run(mount, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        made = False
    if not made:
        pytest.skip("mounting a file system needs Linux and root")
    try:
        shutil.copytree(kept, cache.folder, dirs_exist_ok=True)
        subprocess.run(["mount", "-o", "remount,ro", str(cache.folder)], check=True)
        with Fetcher(cache=Cache(cache.folder)) as fetcher:
            view = fetcher.view(source, entry_of(source))
            mirror.stats.reset()
            assert view.read(20_000, 150_000) == truth[20_000:150_000]
            assert view.read(0, 170_000) == truth[:170_000]
            assert mirror.stats.storage_body_bytes < 170_000  # what was there is not read again
    finally:
        subprocess.run(["umount", str(cache.folder)], check=True)
