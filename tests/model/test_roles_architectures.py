"""Typical names of many architectures, each with what its tensors are."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from kinprint.model.roles import RoleMap, assign_roles
from kinprint.records import TensorSpec

_DATA = Path(__file__).with_name("role_names.toml")
CASES: dict[str, dict[str, Any]] = tomllib.loads(_DATA.read_text(encoding="utf-8"))
H, F, V, E = 64, 160, 512, 4
_SHAPES = {
    "embed": (V, H), "lm_head": (V, H), "q": (H, H), "k": (H, H), "v": (H, H), "o": (H, H),
    "qkv": (3 * H, H), "gate": (F, H), "up": (F, H), "down": (H, F), "gate_up": (2 * F, H),
    "router": (E, H), "pos_embed": (128, H),
}  # fmt: skip


def _shape(role: str, alone: bool) -> tuple[int, ...]:
    wrap, _, base = role.partition("_")
    if wrap in ("expert", "shared"):
        shape = _SHAPES[base]
        return shape if wrap == "shared" or alone else (E, *shape)
    return _SHAPES.get(role, (H,) if role.startswith("norm") or role == "bias" else (24, 24))


def wanted(name: str) -> list[tuple[str, str, str | None]]:
    """A case's names with their roles and, where given, their places."""
    block = CASES[name].get("block", "")
    rows = []
    for entry in CASES[name]["names"].replace(",", "\n").split("\n"):
        if entry.strip():
            tensor, role, *place = entry.split()
            rows.append((tensor.replace("@", block), role, place[0] if place else None))
    return rows


def found(name: str, config: dict[str, Any]) -> RoleMap:
    specs = []
    for tensor, role, place in wanted(name):
        alone = place is not None or ".experts.1." in tensor or "expert_1" in tensor
        specs.append(TensorSpec(tensor, "BF16", _shape(role, alone), "f", 0, 0))
    return assign_roles(specs, config)


@pytest.mark.parametrize("name", CASES)
def test_typical_names_of_an_architecture(name: str) -> None:
    config = CASES[name].get("config")
    result = found(name, {**config, "hidden_size": H} if config else {})
    got = {tensor: role.role for tensor, role in result.roles.items()}
    assert got == {tensor: role for tensor, role, _ in wanted(name)}
    assert not [line for line in result.warnings if line.key.startswith("note.unknown")]
    for tensor, _, place in wanted(name):
        role = result.roles[tensor]
        assert place in (None, f"{role.layer}/{role.expert}"), tensor


@pytest.mark.parametrize("name", [n for n, case in CASES.items() if "names_suffice" not in case])
def test_names_alone_say_the_same_where_they_can(name: str) -> None:
    """Without a configuration most of the core must still be known."""
    result = found(name, {})
    rows = wanted(name)
    right = sum(result.roles[tensor].role == role for tensor, role, _ in rows)
    assert right >= 0.7 * len(rows)
