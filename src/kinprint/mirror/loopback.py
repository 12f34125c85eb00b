"""A process that serves models to itself: the Hub's own client, pointed at this machine."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from kinprint.mirror.digests import DEFAULT_HASH_LIMIT

_TOKENS = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN")
_SECONDS = 120  # a busy machine serves itself slowly, and nobody else


@contextmanager
def loopback_hub(folder: Path, hash_limit: int = DEFAULT_HASH_LIMIT) -> Iterator[None]:
    """Serve a folder of models as the Hub does, and have the hub client talk to nobody else.

    The cache and the settings of the user's own Hub tools are left alone, and are in force
    again afterwards. Files longer than `hash_limit` are served without a sha256.
    """
    from kinprint.mirror.server import MirrorServer

    with (
        MirrorServer(folder, hash_limit=hash_limit) as server,
        tempfile.TemporaryDirectory() as scratch,
        _hub_tools_at(server.endpoint, Path(scratch)),
    ):
        yield


@contextmanager
def _hub_tools_at(endpoint: str, scratch: Path) -> Iterator[None]:
    """Have the hub client of this process talk to an endpoint, and keep its files in a folder."""
    from huggingface_hub import constants
    from huggingface_hub.utils import close_session

    variables = {
        **dict.fromkeys(_TOKENS),
        "MPLCONFIGDIR": str(scratch),
        "NO_PROXY": "127.0.0.1,localhost",
        "no_proxy": "127.0.0.1,localhost",
    }
    settings = {
        "ENDPOINT": endpoint,
        "HUGGINGFACE_CO_URL_TEMPLATE": endpoint + "/{repo_id}/resolve/{revision}/{filename}",
        "HF_HUB_DISABLE_IMPLICIT_TOKEN": True,
        "HF_HUB_DOWNLOAD_TIMEOUT": _SECONDS,
        "HF_HUB_OFFLINE": False,
        "HF_ASSETS_CACHE": str(scratch / "assets"),
        "HF_HUB_CACHE": str(scratch / "hub"),
        "HF_TOKEN_PATH": str(scratch / "token"),
    }
    before = {name: os.environ.get(name) for name in variables}
    known = {name: getattr(constants, name) for name in settings}
    _set(variables)
    vars(constants).update(settings)
    close_session()  # open connections know other proxies
    try:
        yield
    finally:
        _set(before)
        vars(constants).update(known)
        close_session()


def _set(variables: Mapping[str, str | None]) -> None:
    for name, value in variables.items():
        os.environ.pop(name, None)
        if value is not None:
            os.environ[name] = value
