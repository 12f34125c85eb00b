"""Fixtures that several rooms share: the demo models, a mirror, a clean Hub environment."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from huggingface_hub import constants
from huggingface_hub.utils import close_session
from hypothesis import HealthCheck, settings

import kinprint.demo
import kinprint.source.http
from kinprint.mirror import MirrorServer
from kinprint.model.model import Model
from kinprint.reader.fetch import Fetcher
from kinprint.replica import build_replicas
from kinprint.replica.layout import layouts
from tests.opened import open_models

if TYPE_CHECKING:
    from playwright.sync_api import Browser

REPOSITORY = Path(__file__).resolve().parents[1]
DEMO = kinprint.demo.FOLDER
SHARED = REPOSITORY.parent / "shared"
"""Trained models and publications, beside the checkout; only tests marked `zoo` need them."""
ZOO = SHARED / "zoo"
_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_QUIET = (
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--no-first-run",
)


# Examples are judged by what they show, never by how long they took.
settings.register_profile("kinprint", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("kinprint")

TICK, TICKS = 30, 20
"""A test that lasts twenty ticks of thirty seconds counts as one that never ends."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Iterator[None]:
    """Fail a test that hangs. No test has a shorter limit: work is counted, not timed.

    Ticks are counted, and not the time from the start: a process that is suspended gets one.
    """
    if not hasattr(signal, "SIGALRM"):
        return (yield)
    seen = 0

    def tick(number: int, frame: object) -> None:
        nonlocal seen
        seen += 1
        if seen == TICKS:
            pytest.fail(f"not done after {TICK * TICKS} seconds")

    before = signal.signal(signal.SIGALRM, tick)
    signal.setitimer(signal.ITIMER_REAL, TICK, TICK)
    try:
        return (yield)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Whoever asks for the zoo and has none is told so; nothing is passed over in silence."""
    if item.get_closest_marker("zoo") and not ZOO.is_dir():
        pytest.fail(f"the zoo is not at {ZOO}", pytrace=False)


@pytest.fixture(scope="session")
def demo() -> Path:
    """The folder with the demo models, which come with the package."""
    return DEMO


@pytest.fixture(scope="session")
def replicas(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with all replicas, built once."""
    folder = tmp_path_factory.mktemp("replicas")
    build_replicas(folder)
    return folder


@pytest.fixture(scope="session")
def replica_models(replicas: Path) -> Iterator[dict[str, Model]]:
    """All replicas, opened once, by the short names that published figures use."""
    with Fetcher() as fetcher:
        paths = {one.key: str(replicas / one.name) for one in layouts()}
        opened = open_models(list(paths.values()), fetcher)
        yield dict(zip(paths, opened, strict=True))


@pytest.fixture(scope="session")
def _hub_homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Places of which none was used before, in one folder: `tmp_path` counts all beside its own."""
    folder = tmp_path_factory.mktemp("hf")
    return (folder / str(number) for number in count())


@pytest.fixture(autouse=True)
def _own_hub_environment(
    monkeypatch: pytest.MonkeyPatch, _hub_homes: Iterator[Path]
) -> Iterator[None]:
    """Keep the tests out of the user's caches and tokens, and retry without long waits."""
    home = next(_hub_homes)
    home.mkdir()
    monkeypatch.setattr(constants, "HF_ASSETS_CACHE", str(home / "assets"))
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(home / "hub"))
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(home / "token"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    # A busy machine serves itself slowly; tests of servers that drip set their own patience.
    monkeypatch.setattr(constants, "HF_HUB_DOWNLOAD_TIMEOUT", 120)
    monkeypatch.setattr(kinprint.source.http, "FIRST_WAIT", 0.01)
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_ENDPOINT", "KINPRINT_LANG"):
        monkeypatch.delenv(name, raising=False)
    yield
    close_session()


@pytest.fixture
def point_hub_at(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Make the Hub client in this process talk to an endpoint."""

    def point(endpoint: str) -> None:
        monkeypatch.setattr(constants, "ENDPOINT", endpoint)
        template = endpoint + "/{repo_id}/resolve/{revision}/{filename}"
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)

    return point


@pytest.fixture
def mirror(demo: Path, point_hub_at: Callable[[str], None]) -> Iterator[MirrorServer]:
    """A mirror of the demo models that the Hub client in this process talks to."""
    with MirrorServer(demo) as server:
        point_hub_at(server.endpoint)
        yield server


@pytest.fixture
def make_mirror(
    point_hub_at: Callable[[str], None],
) -> Iterator[Callable[..., MirrorServer]]:
    """Start mirrors with settings of one's own; the last one started is the Hub."""
    servers: list[MirrorServer] = []

    def make(folder: Path, **settings: object) -> MirrorServer:
        server = MirrorServer(folder, **settings)  # type: ignore[arg-type]
        server.__enter__()
        servers.append(server)
        point_hub_at(server.endpoint)
        return server

    yield make
    for server in servers:
        server.close()


@pytest.fixture
def copy_of(demo: Path, tmp_path: Path) -> Callable[[str], Path]:
    """A folder with a copy of one demo model that a test may change."""

    def copy(name: str) -> Path:
        target = tmp_path / "models" / name
        shutil.copytree(demo / name, target)
        return tmp_path / "models"

    return copy


@pytest.fixture
def hub_environment(tmp_path: Path) -> Callable[..., dict[str, str]]:
    """The environment of a `kinprint` process of its own, pointed at an endpoint."""

    def environment(endpoint: str = "", **more: str) -> dict[str, str]:
        names = ("PATH", "HOME", "PYTHONPATH")
        kept = {name: os.environ[name] for name in names if name in os.environ}
        home = str(tmp_path / "hf-home")
        return kept | {"HF_ENDPOINT": endpoint, "HF_HOME": home, "NO_COLOR": "1"} | more

    return environment


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A Chromium of the system, driven by Playwright.

    `KINPRINT_CHROMIUM` names another one. Where there is none the tests that need it are
    skipped, or fail if `KINPRINT_REQUIRE_BROWSER` is set. It lives for one module: while it
    runs, its thread has an event loop that other tests could stumble over.
    """
    named = os.environ.get("KINPRINT_CHROMIUM")
    found = named or next(filter(None, map(shutil.which, _BROWSERS)), None)
    if found is None:
        why = "no Chromium found: install chromium, or name one with KINPRINT_CHROMIUM"
        if os.environ.get("KINPRINT_REQUIRE_BROWSER"):
            pytest.fail(why)
        pytest.skip(why)
    from playwright.sync_api import sync_playwright

    root = hasattr(os, "geteuid") and os.geteuid() == 0
    arguments = [*_QUIET, *(["--no-sandbox"] if root else [])]  # Chromium refuses root a sandbox
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=found, args=arguments, timeout=300_000)
        yield running
        running.close()
