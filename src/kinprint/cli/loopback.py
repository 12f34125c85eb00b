"""Commands that serve models to themselves: the Hub's own client, pointed at this machine."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def loopback_hub(folder: Path) -> Iterator[None]:
    """Serve a folder of models as the Hub does, and have the hub client talk to nobody else.

    The cache and the settings of the user's own Hub tools are left alone.
    """
    from kinprint.mirror import MirrorServer

    with MirrorServer(folder) as server, tempfile.TemporaryDirectory() as scratch:
        _point_hub_tools_at(server.endpoint, scratch)
        yield


def _point_hub_tools_at(endpoint: str, scratch: str) -> None:
    """Set the Hub's own variables, before its client is imported and reads them."""
    assert "huggingface_hub" not in sys.modules, "the hub client was imported too early"
    for name in ("HF_HUB_OFFLINE", "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"):
        os.environ.pop(name, None)
    os.environ.update(
        HF_ENDPOINT=endpoint,
        HF_HOME=scratch,
        HF_HUB_DISABLE_IMPLICIT_TOKEN="1",
        HF_HUB_DOWNLOAD_TIMEOUT="120",  # a busy machine serves itself slowly, and nobody else
        HF_ASSETS_CACHE=str(Path(scratch) / "assets"),
        HF_HUB_CACHE=str(Path(scratch) / "hub"),
        MPLCONFIGDIR=scratch,
        NO_PROXY="127.0.0.1,localhost",
        no_proxy="127.0.0.1,localhost",
    )
