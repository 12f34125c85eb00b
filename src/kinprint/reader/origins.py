"""What a weight file says about where its numbers come from: replicas list what is in them.

The list travels in the header of every file, so that whoever serves a replica, its numbers are
told from those of the model it imitates.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

LABEL, WRITTEN = "replica", "replica.written"


class Origin(msgspec.Struct, frozen=True):
    """What one tensor of a replica agrees with.

    `values` is "reconstructed" or "fitted"; `pearson` and `cosine` name the tensors with which its
    correlation, or its cosine alone, agrees with a published figure. A name that ends in `*` is
    all that begin so. `nbytes` is what the tensor takes in the model itself.
    """

    id: str
    values: str
    pearson: tuple[str, ...] = ()
    cosine: tuple[str, ...] = ()
    nbytes: int | None = None

    def correlates(self, other: Origin) -> bool:
        """Whether a published figure determines the correlation of the two."""
        return _named(other.id, self.pearson) or _named(self.id, other.pearson)

    def compares(self, other: Origin) -> bool:
        """Whether a published figure determines their cosine, or an average that it is part of."""
        fitted = _named(other.id, self.cosine) or _named(self.id, other.cosine)
        return fitted or self.correlates(other)


_ORIGINS = msgspec.json.Decoder(dict[str, Origin])


UNKNOWN = Origin("", "unknown")
"""Of a tensor in a replica that does not say what is in it."""


def _named(name: str, known: tuple[str, ...]) -> bool:
    return any(name == one or (one.endswith("*") and name.startswith(one[:-1])) for one in known)


def origins(metadata: Mapping[str, object]) -> Mapping[str, Origin] | None:
    """By tensor, what a header says of its origin; None where it lists nothing."""
    told = metadata.get(WRITTEN)
    if not isinstance(told, str):
        return None
    try:
        return _ORIGINS.decode(told.encode())
    except msgspec.MsgspecError:
        return None
