"""Names of other libraries and older versions, and bases that wrap their names differently."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kinprint.errors import KinprintError
from kinprint.model.adapters import parse_adapter
from kinprint.model.adapters.naming import Names, Spelled, spelled
from tests.model.adapters.fixtures import stored

RNG = np.random.default_rng(5)
PLAIN = {"peft_type": "LORA", "r": 2, "lora_alpha": 3, "base_model_name_or_path": "org/base"}
Q = "model.layers.0.self_attn.q_proj"


def pair(out: int, width: int, rank: int = 2) -> tuple[Any, Any]:
    return RNG.normal(size=(rank, width)), RNG.normal(size=(out, rank))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (f"base_model.model.{Q}.lora_A.weight", Spelled(Q, "a")),
        (f"base_model.model.{Q}.lora_A.default.weight", Spelled(Q, "a")),
        (f"base_model.model.base_model.model.{Q}.lora_B.weight", Spelled(Q, "b")),
        (f"{Q}.base_layer.base_layer.lora_B.weight", Spelled(Q, "b", depth=2)),
        (f"{Q}.lora_B.bias", Spelled(f"{Q}.bias", "added", whole=True)),
        (f"{Q}.base_layer.bias", Spelled(f"{Q}.bias", "stored", whole=True)),
        (f"{Q}.lora_magnitude_vector.default.weight", Spelled(Q, "magnitude")),
        (f"{Q}.lora_magnitude_vector", Spelled(Q, "magnitude")),
        ("e.lora_embedding_A.default", Spelled("e", "embedding_a")),
        ("e.token_adapter.trainable_tokens_delta", Spelled("e", "tokens")),
        ("e.token_adapter.trainable_tokens_original.default", None),
        (
            "base_model.model.lm_head.modules_to_save.default.weight",
            Spelled("lm_head.weight", "stored", whole=True),
        ),
        ("lm_head.original_module.weight", None),
        ("score.weight", Spelled("score.weight", "stored", whole=True)),
        (f"{Q}.lora_up.weight", Spelled(Q, "b")),
        ("lora_unet_x_q_proj.alpha", Spelled("lora_unet_x_q_proj", "alpha")),
        (f"{Q}.lora_a", Spelled(Q, "a", "mlx")),
        (f"{Q}.m", Spelled(Q, "magnitude", "mlx")),
        (
            "blk.0.attn_q.weight.lora_b",
            Spelled("blk.0.attn_q.weight", "b", "gguf", whole=True),
        ),
    ],
)
def test_spelled(name: str, expected: Spelled | None) -> None:
    assert spelled(name, {name, f"{Q}.lora_a"}) == expected


def test_a_letter_m_is_a_magnitude_only_beside_factors() -> None:
    assert spelled("block.m", {"block.m"}) == Spelled("block.m", "stored", whole=True)


@pytest.mark.parametrize(
    ("base", "asked", "found"),
    [
        ([f"{Q}.weight"], f"{Q}.weight", f"{Q}.weight"),
        (["language_model." + Q], Q, "language_model." + Q),
        (["model.language_model.layers.3.x"], "language_model.model.layers.3.x", None),
        (["layers.3.x"], "model.layers.3.x", None),
        (["model.layers.3.x"], "lora_unet_model_layers_3.x", None),
        (["model.layers.0.block_sparse_moe.gate.w"], "model.layers.0.mlp.gate.w", None),
    ],
)
def test_names_are_found_through_wrappers(base: list[str], asked: str, found: str | None) -> None:
    assert Names([*base, "vision_tower.layers.3.x"]).find(asked) == (found or base[0],)


def test_another_tower_is_not_taken_for_the_one_meant() -> None:
    assert Names(["vision_tower.layers.3.x"]).find("model.layers.3.x") == ()


def test_the_same_name_wins_and_two_likenesses_are_refused() -> None:
    down, up = pair(4, 6)
    adapter = stored(PLAIN, {f"{Q}.lora_A.weight": down, f"{Q}.lora_B.weight": up})
    both = {f"{Q}.weight": (4, 6), f"language_model.{Q}.weight": (4, 6)}
    assert set(adapter.matched(both).updates) == {f"{Q}.weight"}
    other = {f"module.{Q}.weight": (4, 6), f"language_model.{Q}.weight": (4, 6)}
    with pytest.raises(KinprintError, match=r"may mean 'language_model\..*' and 'module\."):
        adapter.matched(other)


def test_what_matches_nothing_is_a_tensor_of_the_adapted_model() -> None:
    down, up = pair(4, 6)
    arrays = {f"{Q}.lora_A.weight": down, f"{Q}.lora_B.weight": up}
    alone = {
        "base_model.model.score.modules_to_save.weight": "score.weight",
        "base_model.model.lm_head.lora_A.weight": "lm_head.lora_A.weight",
        "base_model.model.lm_head.lora_B.weight": "lm_head.lora_B.weight",
    }
    matched = stored(PLAIN, arrays | dict.fromkeys(alone, up)).matched({f"{Q}.weight": (4, 6)})
    assert list(matched.updates) == [f"{Q}.weight"]
    assert {spec.name: name for name, spec in matched.own.items()} == alone
    first, second = map(str, matched.warnings)
    assert first.startswith("'base_model.model.score.modules_to_save.weight' changes nothing that")
    assert second.startswith("'base_model.model.lm_head.lora_A.weight' changes nothing that")


def test_gguf_with_experts_and_token_embeddings() -> None:
    """Shapes in row-major order; llama.cpp turns only the `a` of token embeddings."""
    arrays = {
        "blk.0.attn_q.weight.lora_a": RNG.normal(size=(2, 6)),
        "blk.0.attn_q.weight.lora_b": RNG.normal(size=(4, 2)),
        "blk.0.ffn_up_exps.weight.lora_a": RNG.normal(size=(3, 2, 6)),
        "blk.0.ffn_up_exps.weight.lora_b": RNG.normal(size=(3, 5, 2)),
        "token_embd.weight.lora_a": RNG.normal(size=(9, 2)),
        "token_embd.weight.lora_b": RNG.normal(size=(6, 2)),
    }
    config = {"general.type": "adapter", "adapter.type": "lora", "adapter.lora.alpha": 5.0}
    adapter = stored(config, arrays)
    shapes = {
        "blk.0.attn_q.weight": (4, 6),
        "blk.0.ffn_up_exps.weight": (3, 5, 6),
        "token_embd.weight": (9, 6),
    }
    updates = adapter.matched(shapes).updates
    for name, shape in shapes.items():
        down, up = arrays[f"{name}.lora_a"], arrays[f"{name}.lora_b"]
        change = down @ up.T if name == "token_embd.weight" else up @ down
        base = RNG.normal(size=shape)
        expected = (base + 5.0 / 2 * change).reshape(-1, 6)
        rows = tuple(range(len(expected) - 1, -1, -2))
        got = adapter.merged(updates[name], rows, base.reshape(-1, 6)[list(rows)])
        np.testing.assert_allclose(got, expected[list(rows)], rtol=1e-5, atol=1e-6)
    found = parse_adapter(adapter.config, adapter.specs)
    assert (found.ranks, str(found.summary)) == ((2,), "LoRA, rank 2")


def test_scales_that_are_tensors() -> None:
    """Trainers of image models store alpha beside the factors, and none means one."""
    down, up = pair(4, 6)
    arrays = {
        "lora_unet_mid_q.lora_down.weight": down,
        "lora_unet_mid_q.lora_up.weight": up,
        "lora_unet_mid_q.alpha": np.array(7.0),
        "mid.k.lora_down.weight": down,
        "mid.k.lora_up.weight": up,
    }
    adapter = stored({}, arrays)
    updates = adapter.matched({"mid.q.weight": (4, 6), "mid.k.weight": (4, 6)}).updates
    base = RNG.normal(size=(4, 6))
    for name, scale in (("mid.q.weight", 7.0 / 2), ("mid.k.weight", 1.0)):
        got = adapter.merged(updates[name], range(4), base)
        np.testing.assert_allclose(got, base + scale * up @ down, rtol=1e-5, atol=1e-6)


def test_new_tokens_in_a_stored_embedding_come_before_the_update() -> None:
    table, down, up = RNG.normal(size=(12, 6)), RNG.normal(size=(2, 12)), RNG.normal(size=(6, 2))
    arrays = {
        "base_model.model.model.embed_tokens.lora_embedding_A": down,
        "base_model.model.model.embed_tokens.lora_embedding_B": up,
        "base_model.model.model.embed_tokens.base_layer.weight": table,
    }
    adapter = stored(PLAIN, arrays)
    update = adapter.matched({"model.embed_tokens.weight": (10, 6)}).updates[
        "model.embed_tokens.weight"
    ]
    assert (update.shape, update.needs_base) == ((12, 6), False)
    got = adapter.merged(update, (11, 0), None)
    np.testing.assert_allclose(got, (table + 1.5 * (up @ down).T)[[11, 0]], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("version", "flipped"), [("0.18.1", True), (None, True), ("0.19.0", False)]
)
def test_square_stacks_follow_the_version_that_wrote_them(
    version: str | None, flipped: bool
) -> None:
    """Before 0.19 PEFT took every stack for inputs first, whatever the model does."""
    down, up = RNG.normal(size=(6, 4)), RNG.normal(size=(4, 6))
    config = {**PLAIN, "target_parameters": ["experts.down_proj"], "peft_version": version}
    adapter = stored(config, {"e.experts.lora_A.weight": down, "e.experts.lora_B.weight": up})
    update = adapter.matched({"e.experts.down_proj": (3, 4, 4)}).updates["e.experts.down_proj"]
    change = np.einsum("ore,eri->eoi", up.reshape(4, 2, 3), down.reshape(3, 2, 4)) * 1.5
    change = change.swapaxes(1, 2) if flipped else change
    got = adapter.merged(update, range(12), np.zeros((12, 4)))
    np.testing.assert_allclose(got, change.reshape(12, 4), rtol=1e-5, atol=1e-6)


def test_what_an_adapter_declares() -> None:
    down, up = pair(4, 6)
    config = {**PLAIN, "revision": "abc", "use_rslora": True}
    arrays = {f"{Q}.lora_A.weight": down, f"{Q}.lora_B.weight": up, "lm_head.weight": up}
    adapter = stored(config, arrays)
    found = parse_adapter(adapter.config, adapter.specs)
    assert (found.base, found.revision, found.method) == ("org/base", "abc", "LORA")
    assert str(found.summary) == "LoRA, rank 2, rank-stabilised, 1 tensor replaced"


def test_parameters_of_one_shape_cannot_be_told_apart() -> None:
    """PEFT nests them in the order of the model's code, which the adapter does not hold."""
    arrays = {
        f"e.experts.{inner}lora_{factor}.weight": RNG.normal(size=shape)
        for inner in ("", "base_layer.")
        for factor, shape in (("A", (6, 4)), ("B", (4, 6)))
    }
    adapter = stored({**PLAIN, "target_parameters": ["experts.v", "experts.k"]}, arrays)
    with pytest.raises(KinprintError, match=r"may mean 'e\.experts\.k' and 'e\.experts\.v'"):
        adapter.matched({"e.experts.k": (3, 4, 4), "e.experts.v": (3, 4, 4)})


def test_a_square_embedding_is_still_one() -> None:
    down, up = pair(6, 6)
    adapter = stored(PLAIN, {"e.lora_embedding_A": down, "e.lora_embedding_B": up})
    update = adapter.matched({"e.weight": (6, 6)}).updates["e.weight"]
    got = adapter.merged(update, range(6), np.zeros((6, 6)))
    np.testing.assert_allclose(got, 1.5 * (up @ down).T, rtol=1e-5, atol=1e-6)
