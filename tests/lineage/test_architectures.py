"""Parts of other architectures than LLaMA's: each is called what it is, and compared."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import kinprint
from benchmarks.redteam.architectures import encoder_model, latent_model, speech_model
from benchmarks.redteam.cases import CASES
from benchmarks.redteam.checkpoint import Checkpoint
from benchmarks.redteam.surgery import stirred
from benchmarks.redteam.zoo import DEMO, Zoo
from kinprint.lineage.reading.parts import component_of
from kinprint.records import Component, Reason
from tests.lineage.stored_models import llama, stored


def compared(tmp_path: Path, first: Checkpoint, second: Checkpoint) -> kinprint.Comparison:
    paths = first.write(tmp_path / "first"), second.write(tmp_path / "second")
    return kinprint.compare(*paths, level="deep")


@pytest.mark.parametrize(
    ("role", "component"),
    [
        ("cross_attention:encoder_attn.q_proj", Component.ATTENTION),
        ("mla_kv_a", Component.ATTENTION),
        ("ssm", Component.MIXER),
        ("norm_q", Component.NORMS),
        ("shared_up", Component.FEED_FORWARD),
        ("pos_embed", Component.OTHER),
        ("other:conv1", Component.OTHER),
        ("bias:conv1.bias", Component.OTHER),
        ("rope", None),
    ],
)
def test_roles_have_the_component_that_they_are_part_of(
    role: str, component: Component | None
) -> None:
    assert component_of(role) is component


def test_kernels_of_flax_hold_the_numbers_of_weights(tmp_path: Path) -> None:
    weights = llama()
    kernels = {
        name.replace("proj.weight", "proj.kernel"): np.ascontiguousarray(one.T)
        if "proj" in name
        else one
        for name, one in weights.items()
    }
    names = stored(tmp_path / "torch", weights), stored(tmp_path / "flax", kernels)
    assert kinprint.compare(*names).relation == "identical"


def test_equal_keys_and_values_are_a_share_of_latent_attention(tmp_path: Path) -> None:
    """Two of four matrices, a quarter of the numbers."""
    found = compared(tmp_path, *CASES["latent-keys-copied"].pair(Zoo(DEMO), 0))
    shares = {one.share for one in found.parts if one.part.component == "attention"}
    own = latent_model(0).tensors
    sizes = {
        name: own[f"model.layers.0.self_attn.{name}.weight"].size
        for name in ("q_proj", "kv_a_proj_with_mqa", "kv_b_proj", "o_proj")
    }
    copied = sizes["kv_a_proj_with_mqa"] + sizes["kv_b_proj"]
    assert [*shares] == [pytest.approx(copied / sum(sizes.values()))]


def test_nothing_is_said_to_be_sought_where_no_test_may_look(tmp_path: Path) -> None:
    """Computed positions give channels a meaning; the norm of an embedding has no test."""
    for model, without in ((speech_model(0), True), (encoder_model(0), False)):
        tuned = stirred(model, np.random.default_rng(0), 0.05)
        found = compared(tmp_path, model, tuned)
        norms = [one for one in found.parts if one.part.component == "norms"]
        reasons = {one.part.layer: one.reason for one in norms if not one.state.linked}
        assert reasons and (without or [*reasons] == [None])
        assert set(map(str, reasons.values())) == {str(Reason.PART_WITHOUT_TEST.message())}


def test_stages_of_other_widths_end_no_comparison(tmp_path: Path) -> None:
    """Transformers over windows double their width from stage to stage, norms with it."""
    paths = []
    for seed in range(2):
        chance = np.random.default_rng(seed)
        tensors = {
            f"swin.encoder.layers.{stage}.{name}.weight": chance.normal(size=shape).astype("f4")
            for stage in range(3)
            for width in (16 << stage,)
            for name, shape in {
                "blocks.0.layernorm_before": (width,),
                "blocks.0.attention.self.query": (width, width),
                "blocks.0.intermediate.dense": (4 * width, width),
                "blocks.0.output.dense": (width, 4 * width),
                "downsample.norm": (4 * width,),
            }.items()
        }
        config = {"model_type": "swin", "embed_dim": 16, "hidden_size": 64}
        paths.append(stored(tmp_path / str(seed), tensors, config))
    assert kinprint.compare(*paths, level="deep").relation in ("no-evidence", "untestable")


def test_a_part_is_named_once_and_no_reading_is_promised(tmp_path: Path) -> None:
    found = compared(tmp_path, speech_model(0), speech_model(1))
    parts = [one.part for one in found.parts]
    assert len(set(parts)) == len(parts)
    assert all(one.read == 1 and one.needs is None for one in found.parts)


def test_buffers_are_no_weights_and_learnt_numbers_are(tmp_path: Path) -> None:
    model = encoder_model(0)
    table = model.tensors["bert.embeddings.position_embeddings.weight"][:, :16]
    for name, values, relation in (
        ("bert.rotary_emb.cos_cached", table, "same-weights"),
        ("bert.logit_scale", table[0, :1], "derived"),
    ):
        found = compared(tmp_path / relation, model, model.changed({name: values}))
        assert found.relation == relation
