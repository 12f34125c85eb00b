"""Work in this process, in others and on a cluster: the same results, and no death that spreads."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from kinprint.atlas import pools
from kinprint.atlas.pools import Pool, here, in_processes, on_cluster, pool_of
from kinprint.errors import (
    AtlasFull,
    BadOption,
    BadReference,
    ClusterLost,
    ClusterUnfit,
    ClusterUnreachable,
    InternalError,
    KinprintError,
    WorkerDied,
)
from tests.atlas.cluster import Cluster


def square(number: int) -> int:
    if number == 3:
        raise BadReference(given="three", cause="it is three")
    if number == 5:
        raise ZeroDivisionError("five")
    return number * number


def fill(number: int) -> int:
    raise AtlasFull(place="here", bytes=number)


def die_at_two(number: int) -> int:
    if number == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


class Sleep:
    """Leaves a mark when it is begun, and then waits for another."""

    def __init__(self, folder: Path) -> None:
        self.begun, self.end = folder / "begun", folder / "end"

    def __call__(self, number: int) -> int:
        self.begun.touch()
        while not self.end.exists():
            time.sleep(0.05)
        return number


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("cluster")) as found:
        found.add_worker()
        yield found


@pytest.fixture(params=["here", "processes", "cluster"])
def pool(request: pytest.FixtureRequest) -> Pool:
    if request.param == "here":
        return here
    if request.param == "processes":
        return in_processes(2)
    return on_cluster(request.getfixturevalue("cluster").address)


def results(found: Iterable[tuple[int, int | KinprintError]]) -> dict[int, object]:
    return {one: type(got) if isinstance(got, Exception) else got for one, got in found}


def test_every_pool_gives_the_same(pool: Pool) -> None:
    expected: dict[int, object] = {number: number * number for number in range(20)}
    expected |= {3: BadReference, 5: InternalError}
    assert results(pool(square, iter(range(20)))) == expected


def test_what_concerns_all_ends_it(pool: Pool) -> None:
    with pytest.raises(AtlasFull, match="no room"):
        list(pool(fill, range(3)))


def test_nothing_is_asked_for_before_there_is_room(cluster: Cluster) -> None:
    for pool, most in ((here, 1), (in_processes(2), 4), (on_cluster(cluster.address), 17)):
        asked: list[int] = []

        def endless(asked: list[int] = asked) -> Iterator[int]:
            while True:
                asked.append(6)
                yield 6

        running = pool(square, endless())
        assert next(running) == (6, 36)
        assert len(asked) <= most
        running.close()  # type: ignore[attr-defined]


def test_options_choose_a_pool(cluster: Cluster) -> None:
    assert pool_of() is here
    for pool in (pool_of(2), pool_of(None), pool_of(1, cluster.address)):
        assert results(pool(square, [4])) == {4: 16}


def test_a_process_that_dies_takes_no_other_with_it() -> None:
    expected: dict[int, object] = {number: number for number in range(6)}
    assert results(in_processes(2)(die_at_two, range(6))) == expected | {2: WorkerDied}


def test_a_worker_that_dies_takes_no_other_with_it(tmp_path: Path) -> None:
    once = "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES"
    with Cluster(tmp_path, **{once: "0"}) as cluster:
        for _ in range(3):
            cluster.add_worker()
        found = dict(on_cluster(cluster.address)(die_at_two, range(6)))
    # What waited for the dead worker is given up by the scheduler too, and tried again alone.
    assert isinstance(found[2], WorkerDied) and "'2'" in str(found[2])
    assert [found[number] for number in (0, 1, 3, 4, 5)] == [0, 1, 3, 4, 5]


def test_a_cluster_that_goes_away_is_told(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    task = Sleep(tmp_path)
    with Cluster(tmp_path) as cluster:
        cluster.add_worker()

        def given() -> Iterator[int]:
            yield 1
            while not task.begun.exists():
                time.sleep(0.05)
            cluster.scheduler.kill()
            cluster.scheduler.wait()

        with pytest.raises(ClusterLost, match="goes on where it stopped"):
            list(on_cluster(cluster.address)(task, given()))
        task.end.touch()
    assert capfd.readouterr().err == ""


def test_a_cluster_without_workers_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pools, "PATIENCE", 0.1)
    with Cluster(tmp_path) as cluster, pytest.raises(ClusterLost, match="no worker"):
        list(on_cluster(cluster.address)(square, [1]))


@pytest.mark.parametrize("address", ["nonsense", "", "foo://x:1", "127.0.0.1:99999"])
def test_what_is_no_address_is_told(address: str) -> None:
    with pytest.raises(BadOption, match="cluster"):
        list(on_cluster(address)(square, [1]))


def test_nobody_at_the_address_is_told(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(pools, "CONNECTING", 0.5)
    with pytest.raises(ClusterUnreachable, match=r"127\.0\.0\.1:9"):
        list(on_cluster("127.0.0.1:9")(square, [1]))
    assert capfd.readouterr().err == ""


def test_workers_without_the_code_are_told(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "only_here.py").write_text("def same(one):\n    return one\n")
    monkeypatch.syspath_prepend(tmp_path)
    import only_here  # type: ignore[import-not-found]

    same: Callable[[int], int] = only_here.same
    try:
        with pytest.raises(ClusterUnfit, match="versions"):
            list(on_cluster(cluster.address)(same, [1]))
    finally:
        del sys.modules["only_here"]
