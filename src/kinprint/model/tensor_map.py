"""What each tensor of a checkpoint is and how it is stored, put together from the tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from kinprint.model.layout.parts import Layout, pattern_of
from kinprint.model.layout.rules import layout_of
from kinprint.model.layout.sizes import differ_by_layer
from kinprint.model.roles import RoleMap, TensorRole, assign_roles
from kinprint.model.symmetries import axes_of
from kinprint.records import Role, TensorSpec
from kinprint.text import Message, message


class MappedTensor(msgspec.Struct, frozen=True):
    """One tensor with its meaning: role, axes, and the parts it is made of if it is fused."""

    spec: TensorSpec
    role: TensorRole
    layout: Layout
    axes: tuple[str, ...]

    @property
    def splits(self) -> str | None:
        """What a tensor holds in the order of its rows, if more than one matrix; else None."""
        return pattern_of(self.layout) or None


class TensorMap(Struct, frozen=True):
    """All tensors of a model, and what about them could not be settled."""

    tensors: tuple[MappedTensor, ...]
    family: str
    tied: bool | None
    warnings: tuple[Message, ...]

    @property
    def unknown(self) -> tuple[str, ...]:
        """Names that no table explains."""
        other = Role.OTHER
        return tuple(
            one.spec.name
            for one in self.tensors
            if one.role.role is other and one.role.detail is None and one.role.tower is None
        )


def map_tensors(
    specs: Sequence[TensorSpec],
    config: Mapping[str, Any],
    format: str,
    gguf: Mapping[str, object] | None = None,
) -> TensorMap:
    """Say of every tensor what it is; contradictions become warnings, never guesses."""
    found: RoleMap = assign_roles(specs, config, gguf)
    tensors: list[MappedTensor] = []
    warnings = list(found.warnings)
    # Experts differ by their number alone, layers nearly always: there may be thousands.
    layered = differ_by_layer(config, gguf)
    alike: dict[tuple[object, ...], tuple[Layout, tuple[str, ...]]] = {}
    for spec, pattern in zip(specs, found.patterns, strict=True):
        role = found.roles[spec.name]
        key = (pattern, spec.shape, role.role, role.detail, role.layer if layered else None)
        if key not in alike:
            layout = layout_of(
                role.role,
                spec.shape,
                config,
                name=spec.name,
                detail=role.detail,
                layer=role.layer,
                format=format,
                gguf=gguf,
            )
            axes = axes_of(role.role, len(spec.shape), layout.orient, detail=role.detail)
            known = axes[: len(spec.shape)]
            alike[key] = layout, ("none",) * (len(spec.shape) - len(known)) + known
        layout, axes = alike[key]
        if layout.warnings:
            warnings += [
                message("note.tensor", name=spec.name, note=one) for one in layout.warnings
            ]
        tensors.append(MappedTensor(spec, role, layout, axes))
    return TensorMap(tuple(tensors), found.family, found.tied, tuple(warnings))
