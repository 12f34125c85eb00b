"""Opens the right source for a model name."""

from __future__ import annotations

from kinprint.source.protocol import Source
from kinprint.source.reference import parse_reference


def open_source(given: str) -> Source:
    """The source that `given` names, pinned to its present state."""
    reference = parse_reference(given)
    match reference.kind:
        case "local":
            from kinprint.source.local import LocalSource

            return LocalSource(given, reference.place)
        case "url":
            from kinprint.source.address import AddressSource

            return AddressSource(given, reference.place)
        case "store":
            from kinprint.source.store import StoreSource

            return StoreSource(given, reference.place)
        case _:
            from kinprint.source.hub import open_hub

            return open_hub(reference)
