"""A hub of your own: serves a folder of models over the Hugging Face Hub's protocol.

Air-gapped laboratories, demos and tests point `HF_ENDPOINT` at it and use the unmodified
client. The names below are loaded on first use, so that naming this package costs nothing.

    folder     FOLDER → repositories, branches, commits, files
    digests    content hashes, computed once and late
    access     who asks, and what they may see; the Hub's refusals
    exchange   one request, one reply; connection: the socket beneath them
    documents  the JSON that the Hub's interface answers with; summary: what files tell
    hub        which address means what; storage: signed addresses, weights
    faults     what may go wrong on purpose; ranges: which bytes were asked for
    delivery   replies on the wire; stats: what was asked and sent
    server     two listening sockets, one event loop; loopback: a process that serves itself
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kinprint.mirror.faults import Fault, parse_fault
    from kinprint.mirror.server import MirrorServer
    from kinprint.mirror.stats import Stats

__all__ = ["Fault", "MirrorServer", "Stats", "parse_fault"]

_HOMES = {
    "Fault": "faults",
    "MirrorServer": "server",
    "Stats": "stats",
    "parse_fault": "faults",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
