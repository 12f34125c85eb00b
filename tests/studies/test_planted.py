"""What replicas leave open, on small models that have it, in the layouts of the real ones.

Keys, values, routers, embeddings, tokenizers and equal tensors of Solar-Open-100B and GLM-4.5-Air
can only be measured on those models. Here their layouts hold a few planted numbers, so that the
way from a file to each published figure is walked and its end is known.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from kinprint.model.model import Model
from kinprint.reader.fetch import Fetcher
from kinprint.records import Mark
from kinprint.replica.layout import layout_of
from kinprint.studies.registry import study_named
from kinprint.studies.results import Result
from kinprint.studies.study import Request
from tests.conftest import DEMO
from tests.opened import open_models
from tests.studies.runs import run_studies

SOLAR, GLM = "upstage/Solar-Open-100B", "zai-org/GLM-4.5-Air"
LAYERS, EXPERTS, WIDTH, TOKENS = 3, 4, 64, 4096
# Real dimensions and those of the small models: heads of 16, four and six of them, two groups.
SMALL = {
    4096: WIDTH, 8192: 64, 12288: 96, 1024: 32, 10240: 48, 10944: 48, 1280: 24, 1408: 24,
    196608: TOKENS, 151552: TOKENS, 128: 16,
}  # fmt: skip
Tensors = dict[str, np.ndarray]


def shrunk(name: str, rng: np.random.Generator) -> Tensors:
    """The first layers and experts of a layout, filled with noise."""
    found: Tensors = {}
    for slots in layout_of(name).copies[0].files.values():
        for slot in slots:
            expert = slot.name.partition(".experts.")[2].partition(".")[0]
            if (slot.layer or 0) >= LAYERS or int(expert or 0) >= EXPERTS:
                continue
            shape = [SMALL[size] for size in slot.shape]
            if ".mlp.gate." in slot.name:
                shape[0] = EXPERTS
            noise = rng.standard_normal(shape).astype(np.float32)
            found[slot.name] = 1 + 0.1 * noise if len(shape) == 1 else noise
    return found


def written(folder: Path, name: str, tensors: Tensors) -> Path:
    """A folder with the real configuration but for sizes."""
    folder.mkdir()
    small = {
        "hidden_size": WIDTH, "num_hidden_layers": LAYERS, "n_routed_experts": EXPERTS,
        "num_attention_heads": 6 if name == GLM else 4, "num_key_value_heads": 2, "head_dim": 16,
        "intermediate_size": 48, "moe_intermediate_size": 24, "vocab_size": TOKENS,
        "num_nextn_predict_layers": 0,
    }  # fmt: skip
    config = {**layout_of(name).config, **small}
    (folder / "config.json").write_text(json.dumps(config), "utf-8")
    shutil.copy(DEMO / "zoo" / "base-a" / "tokenizer.json", folder)
    save_file(tensors, folder / "model.safetensors")
    return folder


@pytest.fixture(scope="module")
def tensors() -> tuple[Tensors, Tensors]:
    rng = np.random.default_rng(8)
    solar, glm = shrunk(SOLAR, rng), shrunk(GLM, rng)
    for part, kept in (("self_attn.k_proj", 0.8), ("mlp.gate", 0.5)):
        for layer in range(1, LAYERS):
            name = f"model.layers.{layer}.{part}.weight"
            glm[name] = kept * solar[name] + (1 - kept) * glm[name]
    equal = "model.layers.1.self_attn.v_proj.weight"
    glm[equal] = solar[equal]
    table = "model.embed_tokens.weight"
    glm[table] = 0.6 * solar[table] + 0.4 * glm[table]
    return solar, glm


@pytest.fixture(scope="module")
def models(
    tensors: tuple[Tensors, Tensors], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[Model]]:
    folder = tmp_path_factory.mktemp("planted")
    names = (SOLAR, GLM)
    paths = [
        str(written(folder / name.rpartition("/")[2], name, some))
        for name, some in zip(names, tensors, strict=True)
    ]
    with Fetcher() as fetcher:
        yield open_models(paths, fetcher)


def run(models: list[Model], study: str, **asked: object) -> Result:
    return run_studies([study_named(study)], models, Request(**asked))[0]  # type: ignore[arg-type]


def cosine(x: np.ndarray, y: np.ndarray) -> float:
    x, y = (one.astype(np.float64).reshape(-1) for one in (x, y))
    return float(x @ y / np.linalg.norm(x) / np.linalg.norm(y))


@pytest.mark.parametrize(("role", "part"), [("k", "self_attn.k_proj"), ("v", "self_attn.v_proj"),
                                            ("router", "mlp.gate")])  # fmt: skip
def test_matrices_by_type(
    models: list[Model], tensors: tuple[Tensors, Tensors], role: str, part: str
) -> None:
    found = run(models, "tensor-types", rows=None, roles=(role,)).facts[role]
    names = [f"model.layers.{layer}.{part}.weight" for layer in range(LAYERS)]
    known = [cosine(tensors[0][name], tensors[1][name]) for name in names if name in tensors[1]]
    assert isinstance(found, dict) and found["mark"] is Mark.MEASURED
    assert found["count"] == len(known)
    assert [found[one] for one in ("mean", "min", "max")] == pytest.approx(
        [np.mean(known), min(known), max(known)], abs=1e-6
    )


def test_routers_by_layer(models: list[Model], tensors: tuple[Tensors, Tensors]) -> None:
    """GLM's first layer has no router, and that is said."""
    table = run(models, "layers").table("layerwise_similarity")
    rows = {row[0]: row for row in table.rows if row[2] == "router_or_gate"}
    assert rows[0][12] == "missing" and rows[0][3] is None
    for layer in range(1, LAYERS):
        name = f"model.layers.{layer}.mlp.gate.weight"
        assert rows[layer][3] == pytest.approx(cosine(tensors[0][name], tensors[1][name]), abs=1e-6)
        assert rows[layer][20] == "measured"


@pytest.mark.parametrize("study", ["embeddings", "embeddings-published"])
def test_embeddings(models: list[Model], tensors: tuple[Tensors, Tensors], study: str) -> None:
    found = run(models, study)
    first, second = (some["model.embed_tokens.weight"] for some in tensors)
    rows = found.table("embedding_comparison").rows
    known = [cosine(first[int(row[1] or 0)], second[int(row[2] or 0)]) for row in rows]
    assert [row[5] for row in rows] == pytest.approx(known, abs=1e-6)
    assert found.facts["mean_cosine"] == pytest.approx(np.mean(known), abs=1e-6)
    baseline = found.facts["baseline_mean"]
    assert isinstance(baseline, float) and abs(baseline) < 0.05 < 0.7 < np.mean(known)


def test_tokenizers(models: list[Model]) -> None:
    facts = run(models, "tokenizers").facts
    overlap = facts["token_set_overlap"]
    assert isinstance(overlap, dict) and overlap["jaccard"] == 1.0


def test_equal_tensors(models: list[Model]) -> None:
    found = run(models, "raw-bytes", rows=None)
    table = found.table("raw_bytes")
    equal = [row[table.columns.index("key_A")] for row in table.rows if row[6] is True]
    assert equal == ["model.layers.1.self_attn.v_proj.weight"]
    assert found.facts["identical"] == 1
