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


class MappedTensor(msgspec.Struct, frozen=True, gc=False):
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
    """All tensors of a model, and what about them could not be settled.

    `series` has the places of tensors that differ by the expert alone, in order: they have one
    shape, type and layout, and one meaning but for the weight that each belongs to.
    """

    tensors: tuple[MappedTensor, ...]
    family: str
    tied: bool | None
    warnings: tuple[Message, ...]
    series: tuple[Sequence[int], ...]

    @property
    def kinds(self) -> list[tuple[MappedTensor, int]]:
        """The first tensor of each series, with how many there are."""
        return [(self.tensors[places[0]], len(places)) for places in self.series]

    @property
    def unknown(self) -> tuple[str, ...]:
        """Names that no table explains."""
        places: list[int] = []
        for (one, _), members in zip(self.kinds, self.series, strict=True):
            role = one.role
            if role.role is Role.OTHER and role.detail is None and role.tower is None:
                places += members
        return tuple(self.tensors[place].spec.name for place in sorted(places))


def map_tensors(
    specs: Sequence[TensorSpec],
    config: Mapping[str, Any],
    format: str,
    gguf: Mapping[str, object] | None = None,
    complete: bool = True,
) -> TensorMap:
    """Say of every tensor what it is; contradictions become warnings, never guesses.

    What a model lacks is said only where its tensors are `complete`.
    """
    found: RoleMap = assign_roles(specs, config, gguf, complete)
    tensors: dict[int, MappedTensor] = {}
    contradicted: list[int] = []
    layered = differ_by_layer(config, gguf)
    # Series of most layers are alike: there may be hundreds.
    alike: dict[tuple[object, ...], tuple[Layout, tuple[str, ...]]] = {}
    for series in found.series:
        first = specs[series.members[0]]
        role, shape = found.roles[first.name], first.shape
        layer = role.layer if layered else None
        key = (series.pattern.text, shape, role.role, role.detail, layer)
        if key not in alike:
            layout = layout_of(
                role.role,
                shape,
                config,
                name=first.name,
                detail=role.detail,
                layer=role.layer,
                format=format,
                gguf=gguf,
            )
            axes = axes_of(role.role, len(shape), layout.orient, detail=role.detail)
            known = axes[: len(shape)]
            alike[key] = layout, ("none",) * (len(shape) - len(known)) + known
        layout, axes = alike[key]
        if layout.warnings:
            contradicted += series.members
        for place in series.members:
            spec = specs[place]
            tensors[place] = MappedTensor(spec, found.roles[spec.name], layout, axes)
    ordered = tuple(map(tensors.__getitem__, range(len(specs))))
    warnings = [
        message("note.tensor", name=ordered[place].spec.name, note=one)
        for place in sorted(contradicted)
        for one in ordered[place].layout.warnings
    ]
    return TensorMap(
        ordered,
        found.family,
        found.tied,
        (*found.warnings, *warnings),
        tuple(series.members for series in found.series),
    )
