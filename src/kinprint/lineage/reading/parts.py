"""Which part of a model a tensor belongs to."""

from __future__ import annotations

from kinprint.model.places import Address
from kinprint.records import Component, Part, Role, weight_of


def component_of(role: str) -> Component | None:
    """What a tensor of some role, or its bias, is a part of; None for what has no name."""
    match weight_of(role):
        case Role.EMBED | Role.POS_EMBED:
            return Component.EMBEDDING
        case Role.LM_HEAD:
            return Component.HEAD
        case Role.ROUTER:
            return Component.ROUTER
        case Role.SSM:
            return Component.MIXER
        case Role.Q | Role.K | Role.V | Role.O | Role.QKV | Role.NORM_Q | Role.NORM_K:
            return Component.ATTENTION
        case Role.OTHER | Role.BIAS:
            return None
        case named if named.startswith("norm"):
            return Component.NORMS
        case named if named.startswith("expert_"):
            return Component.EXPERT
    return Component.FEED_FORWARD


def part_of(address: Address, tower: str) -> Part | None:
    """The part of a model that a tensor belongs to; None for what has no name."""
    component = component_of(address.role)
    return None if component is None else Part(component, address.layer, address.expert, tower)
