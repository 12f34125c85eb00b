"""The kinds of sources, one line each, and the one that a model name asks for.

Another package adds a source through an entry point of the group `kinprint.sources` that names a
`SourceKind`: a scheme, as in `acme://team/model`, and the function that opens it. Schemes of our
own (hf, http, https, file) cannot be taken; for the others, packages come before fsspec.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from msgspec import Struct

from kinprint.extensions import SOURCES, usable
from kinprint.source.protocol import Source
from kinprint.source.reference import OWN_SCHEMES, Reference, parse_reference
from kinprint.text import Message

# The kind of a reference, and the function that opens it, imported when it is needed.
_OPENERS = {
    "hub": "kinprint.source.hub:open_hub",
    "local": "kinprint.source.local:open_local",
    "url": "kinprint.source.address:open_address",
    "store": "kinprint.source.store:open_store",
}


class SourceKind(Struct, frozen=True):
    """A kind of place of another package.

    `name` is the scheme in small letters, without `://`; `open` takes the parsed reference, whose
    `place` is the whole address, and returns a source that obeys `source.protocol.Source`.
    """

    name: str
    open: Callable[[Reference], Source]


def open_source(given: str) -> Source:
    """The source that `given` names, pinned to its present state."""
    reference = parse_reference(given)
    if reference.kind == "store":
        added = added_sources()[0].get(reference.place.partition("://")[0])
        if added is not None:
            return added.open(reference)
    module, _, name = _OPENERS[reference.kind].partition(":")
    opener: Callable[[Reference], Source] = getattr(import_module(module), name)
    return opener(reference)


def added_sources() -> tuple[dict[str, SourceKind], tuple[Message, ...]]:
    """Sources of other packages by scheme, and what is wrong with those that cannot be used."""
    return usable(SOURCES, SourceKind, OWN_SCHEMES)
