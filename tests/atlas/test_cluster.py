"""Building in processes and on a cluster: workers die, and nothing is lost or read twice."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread

import pytest

import kinprint
from kinprint.atlas.building import Adding, add_models
from kinprint.atlas.pools import on_cluster
from kinprint.atlas.store import Atlas
from kinprint.errors import AtlasBroken, BadOption
from kinprint.lineage.matrix import silent
from kinprint.mirror import MirrorServer
from tests.atlas.cluster import Cluster
from tests.lineage.stored_models import LLAMA, llama, stored

MODELS = [f"org/model-{number}" for number in range(12)]
WEIGHTS = "model.safetensors"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MirrorServer]:
    folder = tmp_path_factory.mktemp("hub")
    for number, name in enumerate(MODELS):
        stored(folder / name, llama(number, layers=1), {**LLAMA, "num_hidden_layers": 1})
    with MirrorServer(folder) as found:
        yield found


@pytest.fixture
def hub(server: MirrorServer, point_hub_at: Callable[[str], None]) -> MirrorServer:
    point_hub_at(server.endpoint)
    server.stats.reset()
    return server


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, server: MirrorServer) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("cluster")
    home = {"HF_HOME": str(folder / "home"), "HF_ENDPOINT": server.endpoint}
    with Cluster(folder, **home, HF_HUB_DOWNLOAD_TIMEOUT="120") as found:
        found.add_worker()
        found.add_worker()
        yield found


def read(hub: MirrorServer) -> Counter[str]:
    """How often the weights of each model were asked for."""
    paths = [one.path for one in list(hub.stats.last) if one.port == "storage"]
    return Counter(path.removesuffix(f"/{WEIGHTS}").strip("/") for path in paths)


def names(place: Path) -> list[str]:
    return sorted(entry.name for entry in kinprint.Atlas(place).entries())


class DyingOnce(Adding, frozen=True):
    """Kills its own worker after adding a model, before anybody is told; once."""

    at: str = ""
    mark: str = ""

    def __call__(self, given: str) -> kinprint.Added:
        found = Adding.__call__(self, given)
        if given == self.at and not Path(self.mark).exists():
            Path(self.mark).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return found


def test_what_a_dead_worker_added_is_not_read_again(
    tmp_path: Path, hub: MirrorServer, cluster: Cluster
) -> None:
    mark = tmp_path / "died"
    task = DyingOnce(str(tmp_path / "atlas"), cached=False, at=MODELS[3], mark=str(mark))
    found = list(add_models(MODELS[:6], task, on_cluster(cluster.address), silent))
    cluster.add_worker()
    assert mark.exists() and all(one.error is None for one in found)
    assert {one.given: one.there for one in found}[MODELS[3]]
    assert names(tmp_path / "atlas") == MODELS[:6]
    assert read(hub) == dict.fromkeys(MODELS[:6], 1)


def test_a_worker_killed_in_mid_run_loses_nothing_and_does_nothing_twice(
    tmp_path: Path, hub: MirrorServer, cluster: Cluster
) -> None:
    atlas = Atlas(str(tmp_path / "atlas"))
    complete: set[str] = set()
    asked: list[int] = []

    def kill() -> None:
        while len(found := atlas._listed("fingerprints")) < 3:
            time.sleep(0.01)
        victim = next(one for one in cluster.workers if one.poll() is None)
        victim.kill()
        victim.wait()
        asked.append(len(hub.stats.last))
        complete.update(atlas.read(name).ref.name for name in found)

    killer = Thread(target=kill)
    killer.start()
    found = kinprint.Atlas(atlas.place).build(MODELS, cluster=cluster.address, cache=False)
    killer.join()
    assert [one.given for one in found] == MODELS and not any(one.error for one in found)
    assert names(tmp_path / "atlas") == sorted(MODELS)
    assert len(list((tmp_path / "atlas" / "fingerprints").iterdir())) == len(MODELS)
    after = [one.path for one in list(hub.stats.last)[asked[0] :] if one.port == "storage"]
    assert len(complete) >= 3
    assert not {path.removesuffix(f"/{WEIGHTS}").strip("/") for path in after} & complete
    assert all(times <= 2 for times in read(hub).values())  # the one that was being read

    again = kinprint.Atlas(atlas.place).build(MODELS, cluster=cluster.address, cache=False)
    assert all(one.there and one.bytes == 0 for one in again)


def test_processes_add_what_one_adds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    folder = Path(stored(tmp_path / "models" / "local", llama(99, layers=1))).parent
    given = [str(folder), str(tmp_path / "nowhere"), str(folder / "local")]
    alone = kinprint.Atlas(tmp_path / "alone").build(given)
    steps: list[str] = []
    several = kinprint.Atlas(tmp_path / "several").build(
        given, jobs=2, progress=lambda event: steps.append(event.what)
    )
    assert [(one.given, one.id) for one in several] == [(one.given, one.id) for one in alone]
    assert [one.error is None for one in several] == [True, False]
    assert steps == [one.given for one in several]


def test_a_budget_is_for_one_process(tmp_path: Path) -> None:
    model = stored(tmp_path / "model", llama())
    for several in ({"jobs": 2}, {"cluster": "127.0.0.1:9"}):
        with pytest.raises(BadOption, match="jobs=1"):
            kinprint.Atlas(tmp_path / "a").build([model], budget="1GB", **several)
    (one,) = kinprint.Atlas(tmp_path / "a").build([model], budget="1GB", jobs=None)
    assert one.error is None


def test_workers_that_see_another_place_are_told(
    tmp_path: Path, hub: MirrorServer, cluster: Cluster
) -> None:
    with pytest.raises(AtlasBroken, match="the same place"):
        kinprint.Atlas("memory://not-shared").build(MODELS[:1], cluster=cluster.address)
