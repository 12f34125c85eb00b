"""Roles measured on architectures whose data flow was traced."""

from __future__ import annotations

import re
from typing import Any

import pytest

from kinprint.model.roles import RoleMap, assign_roles
from kinprint.records import TensorSpec
from tests.model.architectures import ARCHITECTURES

_NOT_CORE = {"norm_other", "pos_embed", "bias", "ssm", "other"}


def assigned(entry: dict[str, Any]) -> RoleMap:
    specs = [
        TensorSpec(t["name"], t["dtype"], tuple(t["shape"]), "f", 0, 0) for t in entry["tensors"]
    ]
    return assign_roles(specs, entry["config"])


def right(tensor: dict[str, Any], role: str) -> bool:
    return role == tensor["role_truth"] or role in (tensor.get("role_alt") or ())


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_no_core_role_is_wrong(name: str) -> None:
    entry = ARCHITECTURES[name]
    found = assigned(entry)
    wrong = {
        t["name"]: (found.roles[t["name"]].role, t["role_truth"])
        for t in entry["tensors"]
        if t["role_truth"] not in _NOT_CORE and not right(t, found.roles[t["name"]].role)
    }
    invented = {
        t["name"]: (found.roles[t["name"]].role, t["role_truth"])
        for t in entry["tensors"]
        if t["role_truth"] in _NOT_CORE
        and found.roles[t["name"]].role not in _NOT_CORE
        and not right(t, found.roles[t["name"]].role)
    }
    assert (wrong, invented) == ({}, {})
    assert found.warnings == ()


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_layer_and_expert_numbers_are_right(name: str) -> None:
    entry = ARCHITECTURES[name]
    found = assigned(entry)
    for tensor in entry["tensors"]:
        role = found.roles[tensor["name"]]
        if tensor.get("tower"):
            assert role.tower is not None
            assert role.role == "other"
            continue
        expert = f"stacked:{role.stacked}" if role.stacked is not None else role.expert
        assert (role.layer, expert) == (_layer(name, tensor), tensor["expert"]), tensor["name"]


def _layer(name: str, tensor: dict[str, Any]) -> int | None:
    """The layer that a name says; of those with two attentions each half is one."""
    layer: int | None = tensor["layer"]
    if name != "longcat_flash" or layer is None:
        return layer
    half = re.search(r"layers\.\d+\.\w+\.([01])\.", tensor["name"])
    return 2 * layer + (int(half[1]) if half else 0)


def test_nearly_every_role_is_right() -> None:
    total = good = 0
    for entry in ARCHITECTURES.values():
        found = assigned(entry)
        for tensor in entry["tensors"]:
            total += 1
            good += right(tensor, found.roles[tensor["name"]].role)
    assert good / total >= 0.995
