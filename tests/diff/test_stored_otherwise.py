"""Casts and quantising are told from what else was done, however numbers are stored."""

from __future__ import annotations

import json
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from msgspec.structs import replace
from safetensors.numpy import save_file

import kinprint
from benchmarks.redteam import storage, surgery
from benchmarks.redteam.checkpoint import Array, Checkpoint
from benchmarks.redteam.layers import EMBEDDING
from kinprint import Operation
from kinprint.diff.results import Estimate, Rounding, TensorChange
from kinprint.diff.storage import is_beyond_format, stored_otherwise
from kinprint.records import Side, TensorStatus
from kinprint.report.schema import OperationPart
from tests.fewer_layers import LAYERS, fewer_layers


def _saved(model: Checkpoint, folder: Path) -> Path:
    folder.mkdir()
    model.save(model, folder)
    return folder


def _said(a: Path, b: Path) -> list[OperationPart]:
    """What is said from one model to another, but for what stayed as it was."""
    found = kinprint.diff(a, b).operations
    return [one for one in found if one.kind is not Operation.FROZEN]


@pytest.mark.parametrize(
    "kind", [pytest.param(ml_dtypes.bfloat16, marks=pytest.mark.slow), np.float16]
)
def test_numbers_that_were_rounded_and_stored_as_before_are_a_cast(
    kind: type, tmp_path: Path
) -> None:
    draw = np.random.default_rng(4)
    wide = storage.cast(fewer_layers("base-a"), np.float32)
    fine = wide.changed(
        {
            name: (values * (1 + 1e-3 * draw.normal(size=values.shape))).astype(np.float32)
            for name, values in wide.tensors.items()
        }
    )
    coarse = fine.changed(
        {name: values.astype(kind).astype(np.float32) for name, values in fine.tensors.items()}
    )
    a, b = _saved(fine, tmp_path / "a"), _saved(coarse, tmp_path / "b")
    (found,) = _said(a, b)
    assert (found.kind, found.bits, found.format) == (Operation.CAST, 16, None)
    assert "rounded to floats of 16 bits" in kinprint.diff(a, b).summary
    (back,) = _said(b, a)
    assert back.kind is Operation.ROUNDED_BEFORE and "more coarsely" in back.evidence


@pytest.mark.parametrize("sample", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_rounded_copy_is_told_in_both_orders(sample: bool, tmp_path: Path) -> None:
    coarse = fewer_layers("base-a")
    fine = storage.unrounded(coarse, np.random.default_rng(4))
    a, b = _saved(coarse, tmp_path / "a"), _saved(fine, tmp_path / "b")
    there, back = (kinprint.diff(*pair, sample=sample) for pair in ((b, a), (a, b)))
    assert [one.kind for one in there.operations] == [Operation.CAST]
    assert [one.kind for one in back.operations] == [Operation.ROUNDED_BEFORE, Operation.CAST]
    assert "unknown" not in back.summary
    assert "in 15 of 15 tensors" in back.operations[0].evidence


def _adapter(parent: Checkpoint, base: Path, folder: Path) -> tuple[Path, dict[str, Array]]:
    """An adapter of queries and values, and what they are with it."""
    draw = np.random.default_rng(3)
    factors: dict[str, Array] = {}
    merged: dict[str, Array] = {}
    for name, values in parent.tensors.items():
        if "q_proj" in name or "v_proj" in name:
            rows, columns = values.shape
            down = draw.normal(0, 0.1, (8, columns)).astype(np.float32)
            up = draw.normal(0, 0.1 * float(np.std(values)), (rows, 8)).astype(np.float32)
            root = f"base_model.model.{name.removesuffix('.weight')}"
            factors |= {f"{root}.lora_A.weight": down, f"{root}.lora_B.weight": up}
            merged[name] = np.asarray(values, np.float32) + up @ down
    folder.mkdir()
    save_file(factors, folder / "adapter_model.safetensors")
    told = {"peft_type": "LORA", "base_model_name_or_path": str(base), "r": 8, "lora_alpha": 8}
    told["target_modules"] = ["q_proj", "v_proj"]
    (folder / "adapter_config.json").write_text(json.dumps(told))
    return folder, merged


def test_an_adapter_and_its_merged_copy_differ_by_rounding(tmp_path: Path) -> None:
    parent = fewer_layers("base-a")
    adapter, merged = _adapter(parent, _saved(parent, tmp_path / "base"), tmp_path / "adapter")
    copy = _saved(parent.changed(merged), tmp_path / "merged")
    (found,) = _said(adapter, copy)
    assert (found.kind, found.format) == (Operation.CAST, "BF16")
    assert f"in {len(merged)} of " in found.evidence
    (back,) = _said(copy, adapter)
    assert back.kind is Operation.ROUNDED_BEFORE and "more coarsely" in back.evidence


def _tuned(size: float, where: str = "", layers: int = LAYERS) -> Checkpoint:
    """A model some way towards one that was trained from it, where names hold some words."""
    parent, trained = (fewer_layers(name, layers) for name in ("base-a", "a-cpt"))
    return parent.changed(
        {
            name: (values + size * (trained.tensors[name] - values)).astype(np.float32)
            for name, values in parent.tensors.items()
            if where in name
        }
    )


def test_a_tune_that_was_quantised_is_not_said_to_be_quantised_alone(tmp_path: Path) -> None:
    base = _saved(fewer_layers("base-a"), tmp_path / "base")
    for kind, told in (("Q4_0", Operation.CHANGED), ("Q5_1", Operation.FINETUNE)):
        child = _saved(storage.as_gguf(_tuned(0.14), kind), tmp_path / kind)
        first, second = _said(base, child)
        assert (first.kind, second.kind) == (told, Operation.QUANTIZED)
        assert second.evidence.endswith("changed by more than that")
        assert _said(child, base)[0].kind is told


def test_one_layer_that_was_tuned_before_quantising_is_said(tmp_path: Path) -> None:
    base = _saved(fewer_layers("base-a", 5), tmp_path / "base")
    child = _saved(storage.as_gguf(_tuned(1.0, ".layers.1.", 5), "Q4_0"), tmp_path / "child")
    first, second = _said(base, child)
    assert first.kind is Operation.CHANGED
    assert first.evidence.startswith("7 of 36 matrices that are alike changed by more than")
    assert second.kind is Operation.QUANTIZED
    assert second.evidence.endswith("; 7 of 36 matrices changed by more than that")


def test_the_nearest_of_sixteen_levels_is_no_more_where_numbers_are_not_normal(
    tmp_path: Path,
) -> None:
    parent = surgery.with_layers(fewer_layers("base-a"), (0,))
    new = {}
    for name, values in parent.tensors.items():
        if values.ndim > 1:
            levels = np.quantile(values, np.linspace(0.002, 0.998, 16))
            places = np.searchsorted((levels[1:] + levels[:-1]) / 2, values)
            new[name] = np.asarray(levels[places], np.float32)
    a, b = _saved(parent, tmp_path / "a"), _saved(parent.changed(new), tmp_path / "b")
    first, second = _said(a, b)  # the embedding has the longest tails
    assert first.evidence.startswith("1 of 8 matrices that are alike changed by more than the")
    assert "normally distributed" in first.evidence
    assert "; 1 of 8 matrices on it changed by more than that changes" in second.evidence


def test_one_number_everywhere_is_no_rounding_and_no_likeness(tmp_path: Path) -> None:
    parent, stranger = (surgery.with_layers(fewer_layers(x), (0,)) for x in ("base-a", "base-b"))
    ones = {name: np.ones_like(one) for name, one in parent.tensors.items() if one.ndim < 2}
    a = _saved(parent, tmp_path / "a")
    folded = _said(a, _saved(parent.changed(ones), tmp_path / "b"))
    assert [one.evidence.split(";")[1][:13] for one in folded] == [" 3 vectors di"]
    kept = {EMBEDDING: parent.tensors[EMBEDDING]}
    other = _said(a, _saved(stranger.changed({**ones, **kept}), tmp_path / "c"))
    assert [one.evidence.split(";")[1][:13] for one in other] == [
        " 1 vector did"
    ]  # beside its table
    levels = TensorChange(
        "norm", "", 0, None, 0, None, None, "a", "b", "BF16", "BF16", 16, 16, (64,),
        TensorStatus.COMPARED, numbers=64, centred=0.9, changed=Estimate(1.0),
    )  # fmt: skip
    one = replace(levels, rounding=Rounding(8, Side.B, exact=True))
    assert list(stored_otherwise([one, levels, levels])) == []
    assert [found.bits for found in stored_otherwise([one, one, levels])] == [8]


@pytest.mark.parametrize(
    ("before", "after", "relative", "beyond"),
    [
        (("Q8_0", 8), ("Q4_0", 4), 0.2, True),
        (("Q8_0", 8), ("Q4_0", 4), 0.1, False),
        (("Q6_K", 6), ("Q6_K", 6), 0.004, False),  # the same format does nothing to explain
        (("BF16", 16), ("unheard-of", None), 0.2, False),
    ],
)
def test_what_a_format_explains_is_known_of_the_format(
    before: tuple[str, int], after: tuple[str, int | None], relative: float, beyond: bool
) -> None:
    one = TensorChange(
        "up", "", 0, None, 0, None, None, "a", "b", before[0], after[0], before[1], after[1],
        (64, 64), TensorStatus.COMPARED, relative=Estimate(relative),
    )  # fmt: skip
    assert is_beyond_format(one) is beyond
