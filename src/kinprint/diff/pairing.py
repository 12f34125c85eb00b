"""Which tensor of one model meets which of the other: by meaning, not by name.

Fused, split, transposed, stacked and renamed tensors meet at the same address.
"""

from __future__ import annotations

from dataclasses import dataclass

from kinprint.model.model import Model
from kinprint.model.places import Address, Place


@dataclass(frozen=True, slots=True)
class TensorPair:
    """A tensor of each model that belong together; None where one model has no such tensor."""

    a: Place | None
    b: Place | None

    @property
    def address(self) -> Address:
        """What the tensor is, in the second model where it has it."""
        place = self.b or self.a
        assert place is not None
        return place.address


def pair_tensors(a: Model, b: Model) -> list[TensorPair]:
    """Tensors at equal addresses, in the order of the models; others have no partner."""
    ours, theirs = a.places, b.places
    addresses = dict.fromkeys((*theirs, *ours))
    return [TensorPair(ours.get(address), theirs.get(address)) for address in addresses]
