"""Where each logical tensor of a model lies: by role, layer and expert, not by name.

Two models call the same thing differently, store it fused or apart, stacked or one by one.
Comparisons ask for an address, such as the queries of layer 3, and get the same rows from
either model.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

import msgspec
from msgspec.structs import replace

from kinprint.model.layout.parts import IN_OUT, Layout
from kinprint.model.names.patterns import ADAPTED
from kinprint.model.quantised import NumberFormat, QuantisedWeight
from kinprint.model.roles import TensorRole
from kinprint.reader.dtypes import bits_of
from kinprint.records import Role, TensorSpec, bias_of, feed_forward_of, is_bias, weight_of
from kinprint.text import Message

# What a name has before the part that tells tensors of one layer apart.
_UP_TO_LAYER = re.compile(r"^.*?\.\d+\.")
# Roles that say nothing: a tensor is known by its name.
_NAMELESS = (Role.OTHER, Role.BIAS)


class Address(msgspec.Struct, frozen=True, order=True, gc=False):
    """What a tensor is: the same words in every model.

    `role` is one of the roles that tensors have, followed by `.bias` for biases; where the
    role alone says too little (latent attention, state-space parts) it is the detail, or the
    detail with the tail of the name. `tower` is empty for the text model's only stack.
    """

    role: str
    layer: int | None = None
    expert: int | None = None
    tower: str = ""

    def __str__(self) -> str:
        words = [self.tower, "" if self.layer is None else f"layer {self.layer}", self.role]
        words.append("" if self.expert is None else f"expert {self.expert}")
        return " ".join(filter(None, words))


class Weight(msgspec.Struct, frozen=True, gc=False):
    """One tensor as it would be without quantisation.

    `layout` is None as long as only a stored tensor's values tell the shape; `refusal` is
    why the numbers cannot be had, empty for nearly all.
    """

    name: str
    spec: TensorSpec
    role: TensorRole
    layout: Layout | None
    quantised: QuantisedWeight | None = None
    refusal: Message | None = None

    @property
    def format(self) -> NumberFormat:
        """How its numbers are written."""
        if self.quantised is not None:
            return self.quantised.format
        return NumberFormat(self.spec.dtype, bits_of(self.spec.dtype))

    @property
    def stored(self) -> Collection[TensorSpec]:
        """All stored tensors that it is made of: codes, and the scales to read them by."""
        return (self.spec,) if self.quantised is None else self.quantised.parts.values()


class Place(msgspec.Struct, frozen=True):
    """The part of a stored tensor that an address leads to."""

    address: Address
    weight: Weight
    part: str
    expert: int | None = None  # its place in a stack of experts
    contradiction: Message | None = None  # what its shape should be, if other tensors are right

    @property
    def shape(self) -> tuple[int, ...] | None:
        """Outputs by inputs, or the length of a vector; None while it is not known."""
        layout = self.weight.layout
        return None if layout is None else layout.part_shape(self.part)


def places_of(weights: Iterable[Weight]) -> dict[Address, Place]:
    """Every address of a model; tensors that share one are told apart by their names.

    So are those whose meaning is unknown.
    """
    found: dict[Address, Place] = {}
    several: dict[Address, list[Place]] = {}
    for weight in weights:
        for place in _places(weight):
            first = found.setdefault(place.address, place)
            if first is not place:
                several.setdefault(place.address, [first]).append(place)
    nameless = {role: weight_of(role) in _NAMELESS for role in {address.role for address in found}}
    places: dict[Address, Place] = {}
    for address, place in found.items():
        if address not in several and not nameless[address.role]:
            places[address] = place
            continue
        sharing = several.get(address, [place])
        names = [place.weight.name.removesuffix(".weight") for place in sharing]
        for place, words in zip(sharing, _tails(names, address.layer is not None), strict=True):
            own = replace(address, role=f"{address.role}:{words}")
            places[own] = replace(place, address=own)
    return places


def _tails(names: Sequence[str], layered: bool) -> list[str]:
    """Ends of names that tell tensors apart: what follows the layer, else as few words as do.

    Models that hold one another have different beginnings. Two stacks of layers may have the same
    ends: nothing but the whole name is left.
    """
    if layered:
        forms = [[_UP_TO_LAYER.sub("", name) for name in names]]
    else:
        forms = [[".".join(name.split(".")[-words:]) for name in names] for words in (1, 2, 3)]
    return next((tails for tails in forms if len(set(tails)) == len(tails)), list(names))


def _places(weight: Weight) -> list[Place]:
    role = weight.role
    word = word_of(role)
    if word is None:
        return []
    tower = "" if role.tower is None else role.tower
    layout = weight.layout
    if layout is not None and len(layout.parts) == 1 and not layout.experts:  # as nearly all are
        address = Address(word, role.layer, role.expert, tower)
        return [Place(address, weight, layout.parts[0].role)]
    parts = [part.role for part in layout.parts] if layout is not None else [word]
    stacked = layout.experts if layout is not None else 0
    places = []
    for part in parts:
        name = _part_word(word, part) if len(parts) > 1 else word
        if not stacked:
            places.append(Place(Address(name, role.layer, role.expert, tower), weight, part))
        for expert in range(stacked):
            address = Address(name, role.layer, expert, tower)
            places.append(Place(address, weight, part, expert))
    return places


def word_of(role: TensorRole) -> str | None:
    """The role in an address; None for what has no meaning of its own, such as scales.

    Updates that are stored beside what they change (LoRA) are weights of their own.
    """
    if role.role not in _NAMELESS:
        return role.role
    if role.role is Role.BIAS:
        return bias_of(role.detail) if role.detail else role.role
    # inside a tower of pictures or sound the detail is the role
    return None if is_companion(role) else role.detail or role.role


def is_companion(role: TensorRole) -> bool:
    """Whether the name says that a tensor tells how to read another, as scales of codes do."""
    named = role.role is Role.OTHER and role.of is not None
    return named and not (role.detail or "").startswith(ADAPTED)


def _part_word(word: str, part: str) -> str:
    """The address of a part: `k` of `qkv`, `expert_up` of `expert_gate_up`, `v.bias`."""
    found = feed_forward_of(word) + part
    return bias_of(found) if is_bias(word) else found


def stored_rows(place: Place, rows: Iterable[int]) -> tuple[int, ...]:
    """Rows of a quantised weight's matrix, all experts counted through, for logical rows."""
    layout = place.weight.layout
    assert layout is not None and layout.orient != IN_OUT
    part = layout.part(place.part)
    assert part is not None
    first = (place.expert or 0) * layout.outputs
    return tuple(first + part.stored(row) for row in rows)
