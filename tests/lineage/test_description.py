"""What models say about themselves, read beside their weights from a real server."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from kinprint.errors import NoWeights, RepositoryMissing
from kinprint.lineage.about.description import CommonTokens, common_tokens
from kinprint.lineage.compare import compare_models
from kinprint.lineage.matrix import compare_all
from kinprint.lineage.planning import plan_comparison
from kinprint.lineage.results import Comparison, Settings
from kinprint.mirror import MirrorServer
from kinprint.mirror.faults import Fault
from kinprint.model.tokens import Vocabulary
from kinprint.reader.fetch import Fetcher
from kinprint.records import Cost, FileEntry, Level, Progress
from kinprint.report.build.comparison import comparison_document

CARD = "---\nbase_model: zoo/base-a\nbase_model_relation: finetune\n---\n# A model\n"
Mirror = Callable[..., MirrorServer]


@pytest.fixture
def models(demo: Path, tmp_path: Path) -> Path:
    """Two demo models, the second with a card that names the first."""
    for name in ("base-a", "a-cpt"):
        shutil.copytree(demo / "zoo" / name, tmp_path / "models/zoo" / name)
    (tmp_path / "models/zoo/a-cpt/README.md").write_text(CARD + "words\n" * 100_000)
    return tmp_path / "models"


def compared(a: str, b: str, **how: object) -> Comparison:
    with Fetcher() as fetcher:
        return compare_models(a, b, fetcher, Settings(**how))  # type: ignore[arg-type]


def test_a_model_on_a_hub_tells_its_state(make_mirror: Mirror, models: Path) -> None:
    make_mirror(models)
    found = compared("zoo/base-a", "zoo/a-cpt")
    base, child = found.subjects
    assert base.claims == ()
    assert [(one.where, one.model, one.relation) for one in child.claims] == [
        ("README.md: base_model", "zoo/base-a", "finetune")
    ]
    assert base.published and base.changed and base.changed.startswith("20")
    weights = models / "zoo/base-a/model.safetensors"
    assert base.files == 1 and base.bytes == weights.stat().st_size
    assert base.digests[0].sha256 is not None and len(base.digests[0].sha256) == 64
    assert base.formats == ("BF16",) and base.architecture == "LlamaForCausalLM"
    assert base.tokenizer is not None and base.tokenizer.tokens == 4096
    assert base.tokenizer.kind == "bpe"
    assert found.tokens is not None and found.tokens.same_ids == found.tokens.common == 4096


def test_a_card_costs_its_head_and_nothing_more(make_mirror: Mirror, models: Path) -> None:
    make_mirror(models)
    with_card = compared("zoo/base-a", "zoo/a-cpt")
    (models / "zoo/a-cpt/README.md").unlink()
    make_mirror(models)
    without = compared("zoo/base-a", "zoo/a-cpt")
    assert without.cost.bytes < with_card.cost.bytes < without.cost.bytes + 10_000
    assert with_card.cost.requests == without.cost.requests + 1


def test_reading_stays_within_its_limits(make_mirror: Mirror, models: Path) -> None:
    make_mirror(models)
    assert compared("zoo/base-a", "zoo/a-cpt", level="quick").cost.bytes < 4_000_000
    with Fetcher(budget=2_000_000) as fetcher:
        settings = Settings(budget=2_000_000)
        found = compare_models("zoo/base-a", "zoo/a-cpt", fetcher, settings)
    assert found.limit <= 2_000_000 and found.subjects[1].claims
    with Fetcher(budget=300_000) as fetcher:  # a card must not eat what headers need
        told = plan_comparison(["zoo/base-a", "zoo/a-cpt"], fetcher, Settings(budget=300_000))
    assert told.limit <= 300_000


def test_a_plan_foretells_what_a_run_reads(make_mirror: Mirror, models: Path) -> None:
    make_mirror(models)
    names = ["zoo/base-a", "zoo/a-cpt"]
    with Fetcher() as fetcher:
        planned = plan_comparison(names, fetcher, Settings())
        knowing = fetcher.spent
    run = compared(*names)
    assert run.cost.bytes <= planned.cost.bytes + knowing.bytes


def test_a_folder_has_claims_but_no_dates(models: Path) -> None:
    found = compared(str(models / "zoo/base-a"), str(models / "zoo/a-cpt"), level="quick")
    assert found.subjects[1].claims[0].model == "zoo/base-a"
    assert found.subjects[1].changed is None and found.cost.requests == 0
    assert found.tokens is not None or found.subjects[0].tokenizer is not None


def test_weight_files_of_a_folder_are_hashed_with_progress(models: Path) -> None:
    a, b = str(models / "zoo/base-a"), str(models / "zoo/a-cpt")
    weights = models / "zoo/a-cpt/model.safetensors"
    told: list[Progress] = []
    with Fetcher(on_progress=told.append) as fetcher:
        found = compare_models(a, b, fetcher, Settings(level=Level.QUICK))
    digest = hashlib.sha256(weights.read_bytes()).hexdigest()
    assert found.subjects[1].digests[0].sha256 == digest
    assert told[-1].done_bytes == told[-1].total_bytes > weights.stat().st_size
    assert found.cost.bytes == 0
    assert compared(a, b, level="quick", budget=900_000).subjects[1].digests[0].sha256 is None


def test_a_file_with_holes_stands_in_for_another_and_is_not_hashed(tmp_path: Path) -> None:
    path = tmp_path / "sparse"
    with path.open("wb") as file:
        file.truncate(2**24)
        file.seek(2**24)
        file.write(b"end")
    with Fetcher() as fetcher:
        entry = FileEntry("sparse", path.stat().st_size, local=str(path))
        assert fetcher.digest(entry) is None


def test_an_adapter_claims_what_it_was_trained_on(models: Path, tmp_path: Path) -> None:
    base = str(models / "zoo/base-a")
    chance = np.random.default_rng(0)
    root = "base_model.model.model.layers.0.self_attn.q_proj.lora_{}.weight"
    shapes = {root.format("A"): (2, 128), root.format("B"): (128, 2)}
    tensors = {
        name: chance.normal(0, 0.02, shape).astype(np.float32) for name, shape in shapes.items()
    }
    folder = tmp_path / "adapter"
    folder.mkdir()
    save_file(tensors, folder / "adapter_model.safetensors")
    config = {"peft_type": "LORA", "r": 2, "lora_alpha": 4, "target_modules": ["q_proj"]}
    told = {**config, "base_model_name_or_path": base}
    (folder / "adapter_config.json").write_text(json.dumps(told))
    found = compared(str(folder), base)
    assert [(one.model, one.relation) for one in found.subjects[0].claims] == [(base, "adapter")]
    assert found.verdict.relation in ("derived", "identical")
    (label,) = found.labels
    assert "counts as its own" in str(label)


def test_what_a_merged_model_kept_of_an_adapter_is_no_claim_to_be_one(models: Path) -> None:
    base, child = (models / "zoo" / name for name in ("base-a", "a-cpt"))
    told = {"peft_type": "LORA", "base_model_name_or_path": "zoo/base-a"}
    (child / "adapter_config.json").write_text(json.dumps(told))
    found = compared(str(child), str(base), level="quick")
    claims = [one for one in found.subjects[0].claims if one.where.startswith("adapter_config")]
    assert [(one.model, one.relation) for one in claims] == [("zoo/base-a", "")]


def test_models_without_anything_to_compare_have_a_document(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        save_file({"a": np.ones((4, 4), np.float32)}, tmp_path / name / "model.safetensors",
                  metadata={"name": name})  # fmt: skip
    found = compared(str(tmp_path / "one"), str(tmp_path / "two"))
    document = comparison_document(found, Cost())
    assert document.verdict.relation == "untestable"
    assert document.shared is not None and document.shared.cells == [] and document.seeds == []


def test_a_matrix_goes_on_without_a_model_that_cannot_be_read(models: Path, demo: Path) -> None:
    broken = models / "zoo/broken"
    shutil.copytree(demo / "zoo/base-a", broken)
    (broken / "model.safetensors").write_bytes(b"\xff" * 64)
    names = [str(models / "zoo" / name) for name in ("base-a", "broken", "a-cpt", "gone")]
    with Fetcher() as fetcher:
        found = compare_all(names, fetcher, Settings(level="quick"))
    assert [one.given for one in found.unread] == [names[1], names[3]]
    assert [ref.given for ref in found.models] == [names[0], names[2]]
    assert [one.verdict.relation for one in found.pairs] == ["partial"]
    assert len(found.subjects) == 2 and found.order and found.tree


def test_a_matrix_needs_two_models_that_can_be_read(models: Path, mirror: MirrorServer) -> None:
    names = [str(models / "zoo/base-a"), "zoo/nothing-of-the-kind"]
    with Fetcher() as fetcher, pytest.raises(RepositoryMissing) as failed:
        compare_all(names, fetcher, Settings(level="quick"))
    assert failed.value.__notes__ == [names[1]]
    (models / "zoo/base-a/model.safetensors").unlink()
    with Fetcher() as fetcher, pytest.raises(NoWeights):
        compare_all([names[0], names[0]], fetcher, Settings(level="quick"))


def test_what_is_read_beside_the_weights_may_fail(make_mirror: Mirror, models: Path) -> None:
    server = make_mirror(models)
    server.faults.replace(
        [Fault("status", code=404, where="*/README.md"), Fault("status", where="*/commits/*")]
    )
    found = compared("zoo/base-a", "zoo/a-cpt", level="quick")
    assert found.verdict.relation == "partial"
    assert found.subjects[1].claims == () and found.subjects[1].changed is None


def test_a_matrix_goes_on_when_weights_stop_coming(
    make_mirror: Mirror, models: Path, demo: Path
) -> None:
    """The header of one model comes, its weights do not."""
    shutil.copytree(demo / "zoo/base-b", models / "zoo/base-b")
    server = make_mirror(models)
    where = "*a-cpt/model.safetensors"
    server.faults.replace([Fault("status", code=403, where=where, port="storage", after=1)])
    names = ["zoo/base-a", "zoo/a-cpt", "zoo/base-b"]
    with Fetcher() as fetcher:
        found = compare_all(names, fetcher, Settings())
    assert [one.given for one in found.unread] == ["zoo/a-cpt"]
    assert [one.verdict.relation for one in found.pairs] == ["no-evidence"]


def test_a_vocabulary_has_all_its_tokens_in_common_with_itself_and_with_a_copy() -> None:
    one, copy = (
        Vocabulary("words", "bpe", "x", (b"a", None, b"b", b"b", b"<s>"), frozenset({4}))
        for _ in range(2)
    )
    assert common_tokens(one, one) == common_tokens(one, copy) == CommonTokens(4, 4, 4, 4)
    assert common_tokens(one, None) is None
