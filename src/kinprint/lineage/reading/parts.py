"""Which part of a model a tensor belongs to."""

from __future__ import annotations

from functools import lru_cache
from math import prod

from kinprint.model.names.towers import PROJECTOR
from kinprint.model.places import Address, Place, word_of
from kinprint.records import Component, Part, Role, weight_of

TABLES = (Component.EMBEDDING, Component.HEAD)
"""Components that are tables with a row for each token."""
# What the tables of names call tensors that are part of attention.
_ATTENTION = ("attn_", "cross_attention", "kv_fused", "mla_", "qk_fused", "indexer")
_COMPUTED = ("buffer", "rope")
_WHOLE_NUMBERS = ("I", "U", "BOOL")
_NAMELESS = (None, Component.OTHER)
_ROLES = frozenset(Role)


def component_of(role: str) -> Component | None:
    """What a tensor of some role, or its bias, is a part of; None for what is no weight."""
    return _component_of_word(weight_of(role.partition(":")[0]))


@lru_cache(1024)
def _component_of_word(word: str) -> Component | None:
    """The same for a role alone; most are few, and each model asks for thousands of tensors."""
    match word:
        case Role.EMBED:
            return Component.EMBEDDING
        case Role.LM_HEAD:
            return Component.HEAD
        case Role.ROUTER:
            return Component.ROUTER
        case Role.SSM:
            return Component.MIXER
        case Role.Q | Role.K | Role.V | Role.O | Role.QKV:
            return Component.ATTENTION
        case Role.GATE | Role.UP | Role.DOWN | Role.GATE_UP:
            return Component.FEED_FORWARD
        case named if named.startswith("norm_") and named in _ROLES:
            return Component.NORMS
        case named if named.startswith("expert_"):
            return Component.EXPERT
        case named if named.startswith("shared_") and named in _ROLES:
            return Component.FEED_FORWARD
        case named if named.startswith(_ATTENTION):
            return Component.ATTENTION
        case named if named in _COMPUTED:
            return None
    return Component.OTHER


def has_whole_numbers(place: Place) -> bool:
    """Whether a tensor is stored as whole numbers that nothing says how to turn into weights."""
    weight = place.weight
    return weight.quantised is None and weight.spec.dtype.startswith(_WHOLE_NUMBERS)


def is_without_scale(place: Place) -> bool:
    """Whether a tensor holds weights as whole numbers whose scale is not known."""
    if not has_whole_numbers(place) or place.weight.spec.dtype == "BOOL":
        return False
    if place.weight.refusal is not None:
        return False
    shape = place.shape
    matrix = shape is not None and len(shape) > 1
    return matrix and component_of(place.address.role) not in _NAMELESS


def _is_learnt_number(shape: tuple[int, ...], address: Address) -> bool:
    """Whether a single number stands by itself, as scales of whole layers do."""
    alone = len(shape) < 2 and prod(shape) == 1
    return alone and component_of(address.role) is Component.OTHER


def part_of(place: Place, tower: str) -> Part | None:
    """The part of a model that a tensor belongs to; None for what is no weight.

    Tables that are computed and whole numbers are none, nor is a single number in the place of a
    matrix or a norm; matrices of whole numbers that the name says are weights are those up to a
    scale. Codes that cannot be read are weights.
    """
    weight, address, shape = place.weight, place.address, place.shape
    if shape is not None and prod(shape) < 2 and not _is_learnt_number(shape, address):
        return None
    if weight.refusal is None and has_whole_numbers(place) and not is_without_scale(place):
        return None
    if address.tower == PROJECTOR != tower:
        return Part(Component.PROJECTOR, tower=tower)
    component = component_of(address.role)
    if component is Component.OTHER:  # one of several that are stored as one: their name tells
        component = component_of(word_of(weight.role) or Role.OTHER)
    return None if component is None else Part(component, address.layer, address.expert, tower)
