"""`open`, `inspect`, `plan` and `plan_inspection` from Python, and what a model gives."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import kinprint
from kinprint.mirror import MirrorServer
from tests.fewer_layers import short_zoo

BASE = "zoo/base-a"


@pytest.fixture
def stored(demo: Path) -> dict[str, np.ndarray]:
    (file,) = (demo / BASE).glob("*.safetensors")
    return load_file(file)


def test_a_model_is_read_by_meaning(demo: Path, stored: dict[str, np.ndarray]) -> None:
    name = "model.layers.2.mlp.down_proj.weight"
    with kinprint.open(demo / BASE) as model:
        assert model.layers() == tuple(range(6)) and model.towers == ("",)
        (down,) = model.tensors("down", layer=2)
        assert (down.name, down.shape) == (name, stored[name].shape)
        rows = (5, 1)
        picked = stored[name][list(rows)].astype(np.float32)
        assert np.array_equal(model.read("down", layer=2, rows=rows), picked)
        (whole,) = model.read_all([down])
        assert np.array_equal(whole[list(rows)], picked)
        assert np.array_equal(model.read_stored(name, rows), picked)
        kept = model.read_stored(name, rows, as_stored=True)
        assert kept.dtype == stored[name].dtype and np.array_equal(kept, stored[name][list(rows)])
        with pytest.raises(kinprint.TensorUnknown, match="down"):
            model.read("dwn", layer=2)
        with pytest.raises(kinprint.TensorUnknown):
            model.read_stored("no.such.weight")


def test_a_plan_of_rows_is_what_reading_them_costs(mirror: MirrorServer) -> None:
    with kinprint.open(BASE, cache=False) as model:
        before = model.cost
        norms = model.tensors("norm_in")
        planned = model.plan(norms)
        assert model.cost.bytes == before.bytes
        model.read_all(norms)
        assert 0 < planned.bytes == model.cost.bytes - before.bytes


def test_a_model_keeps_to_its_budget_and_leaves_a_reader_open(mirror: MirrorServer) -> None:
    with kinprint.open(BASE, budget="200kB", cache=False) as model:
        with pytest.raises(kinprint.BudgetExceeded):
            model.read("embed")
        assert model.cost.bytes <= 200_000
    with kinprint.Reader(cache=False) as reader:
        with kinprint.open(BASE, reader=reader):
            pass
        assert kinprint.inspect(BASE, reader=reader).cost.bytes > 0


def test_what_is_planned_is_what_inspecting_costs(mirror: MirrorServer) -> None:
    plan = kinprint.plan_inspection(BASE, cache=False)
    found = kinprint.inspect(BASE, cache=False)
    assert (plan.local, plan.at_least, plan.files) == (False, True, 1)
    assert plan.to_dict()["at_least"] is True
    assert plan.models == (BASE,) and plan.tensors is None
    assert plan.cost.bytes > 0 and found.cost.bytes <= plan.cost.bytes + plan.spent.bytes
    assert found.commit and found.name == BASE and len(found.tensors) > 50


def test_an_index_says_what_headers_cost(mirror: MirrorServer, demo: Path) -> None:
    """Elsewhere they may be longer than what is read of a file at first."""
    plan = kinprint.plan_inspection("zoo/base-b", cache=False)
    found = kinprint.inspect("zoo/base-b", cache=False)
    assert not plan.at_least and found.cost.bytes <= plan.cost.bytes + plan.spent.bytes
    assert not kinprint.plan_inspection(demo / BASE).at_least  # nothing is fetched


def test_tensors_are_chosen_by_patterns(mirror: MirrorServer) -> None:
    norms = kinprint.plan(BASE, cache=False)
    assert norms.tensors == 13 and norms.cost.bytes > 0
    both = kinprint.plan(BASE, ["*norm*.weight", "*down_proj*"], cache=False)
    assert both.tensors == 19 and both.cost.bytes > norms.cost.bytes
    with pytest.raises(kinprint.BadOption, match="tensors"):
        kinprint.plan(BASE, "nothing*")


def test_norms_are_planned_whatever_they_are_called(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    shapes = {"wte.weight": (50, 8), "ln_f.weight": (8,), "ln_f.bias": (8,)}
    shapes |= {f"h.0.{part}.weight": (8,) for part in ("ln_1", "ln_2")}
    shapes |= {"h.0.attn.c_attn.weight": (8, 24), "h.0.attn.c_proj.weight": (8, 8)}
    shapes |= {"h.0.mlp.c_fc.weight": (8, 32), "h.0.mlp.c_proj.weight": (32, 8)}
    gpt = {name: draw.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    for folder, held in (("all", gpt), ("none", {"wte.weight": gpt["wte.weight"]})):
        (tmp_path / folder).mkdir()
        save_file(held, tmp_path / folder / "model.safetensors")
    assert kinprint.plan(tmp_path / "all").tensors == 3
    assert kinprint.plan(tmp_path / "none").tensors == 0


def test_nothing_is_planned_for_files_on_this_machine(demo: Path) -> None:
    plan = kinprint.plan(demo / BASE, language="ko")
    assert plan.local and plan.cost == kinprint.Cost() and not repr(plan).isascii()


@pytest.mark.parametrize(
    "verb", [kinprint.open, kinprint.inspect, kinprint.plan, kinprint.plan_inspection]
)
def test_a_name_that_names_nothing_is_refused(verb: object, tmp_path: Path) -> None:
    assert callable(verb)
    with pytest.raises(kinprint.BadReference):
        verb(tmp_path / "nowhere")


def _indexed_with(base: Path, folder: Path, **more: str) -> Path:
    """A copy of a model in shards whose index names further tensors, each with its file."""
    shutil.copytree(base, folder)
    (index,) = folder.glob("*.index.json")
    content = json.loads(index.read_text())
    content["weight_map"] |= more
    index.write_text(json.dumps(content))
    return folder


def test_all_verbs_read_what_is_there_of_what_an_index_names(tmp_path: Path) -> None:
    base = short_zoo() / "base-b"
    shard = min(path.name for path in base.glob("*.safetensors"))
    model = _indexed_with(base, tmp_path / "m", **{"lm_head.weight": shard})
    documents = (
        kinprint.inspect(model).document,
        kinprint.compare(short_zoo() / "base-a", model).document,
        kinprint.diff(short_zoo() / "base-a", model).document,
    )
    for document in documents:
        assert [note for note in document.notes if "lm_head.weight" in note]


def test_all_verbs_note_a_file_that_an_index_names_beside_complete_numbers(
    tmp_path: Path,
) -> None:
    base = short_zoo() / "base-b"
    model = _indexed_with(base, tmp_path / "m", extra="extra.safetensors")
    documents = (
        kinprint.inspect(model).document,
        kinprint.compare(base, model).document,
        kinprint.diff(base, model).document,
    )
    for document in documents:
        assert [note for note in document.notes if "extra.safetensors" in note]


def test_all_verbs_refuse_a_model_without_numbered_files(demo: Path, tmp_path: Path) -> None:
    base = demo / "zoo/base-b"
    model = shutil.copytree(base, tmp_path / "m")
    (model / "model-00002-of-00003.safetensors").unlink()
    for ask in (
        lambda: kinprint.inspect(model),
        lambda: kinprint.compare(base, model),
        lambda: kinprint.diff(base, model),
    ):
        with pytest.raises(kinprint.PartsMissing, match="model-00002-of-00003"):
            ask()


def test_rows_may_be_an_array(demo: Path) -> None:
    with kinprint.open(demo / BASE) as model:
        rows = model.read("q", layer=0, rows=np.arange(3))  # type: ignore[arg-type]
        np.testing.assert_array_equal(rows, model.read("q", layer=0, rows=range(3)))
