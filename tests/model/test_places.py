"""Addresses: every logical tensor has one, and no two share it."""

from __future__ import annotations

from kinprint.model.layout import layout_of
from kinprint.model.places import Address, Weight, places_of
from kinprint.model.roles import TensorRole
from kinprint.records import Role, TensorSpec

CONFIG = {"model_type": "hrm_text", "hidden_size": 32, "num_attention_heads": 4}


def weight(name: str, role: str, *shape: int) -> Weight:
    layout = layout_of(role, shape, CONFIG, name=name)
    spec = TensorSpec(name, "F32", shape, "f", 0, 0)
    return Weight(name, spec, TensorRole(Role(role), 0), layout)


def test_stacks_that_differ_by_name_alone_keep_all_their_tensors() -> None:
    both = [
        weight(f"model.{stack}.layers.0.attn.gqkv_proj.weight", "qkv", 128, 32) for stack in "HL"
    ]
    places = places_of(both)
    assert len(places) == 8
    for one in both:
        own = places[Address(f"q:{one.name.removesuffix('.weight')}", 0)]
        assert own.weight is one


def test_tensors_of_one_block_are_told_apart_by_its_end() -> None:
    twice = [weight(f"model.layers.0.self_attn.{n}.q_proj.weight", "q", 32, 32) for n in (0, 1)]
    assert {address.role for address in places_of(twice)} == {
        "q:self_attn.0.q_proj", "q:self_attn.1.q_proj",
    }  # fmt: skip
