"""Models whose matrices are packed in a way that is not read: what is said, and of how much."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import kinprint
from kinprint.diff.mapping import FeedForwardRows, match_units
from tests.lineage.stored_models import LLAMA, llama, stored

Array = NDArray[Any]
Packing = Callable[[str, Array], dict[str, Array]]


def bitnet(stem: str, weight: Array) -> dict[str, Array]:
    """Four rows a byte."""
    codes = (np.clip(np.round(weight), -1, 1) + 1).astype(np.uint8).reshape(4, -1, weight.shape[1])
    packed = codes[0] | (codes[1] << 2) | (codes[2] << 4) | (codes[3] << 6)
    return {f"{stem}.weight": packed, f"{stem}.weight_scale": np.ones(1, np.float32)}


def hqq(stem: str, weight: Array) -> dict[str, Array]:
    """Groups of a matrix one upon another, two codes a byte, with a scale for each group."""
    groups = weight.reshape(-1, 16)
    scale = np.abs(groups).max(axis=1, keepdims=True)
    codes = np.round(7 + 7 * groups / scale).astype(np.uint8)
    half = len(codes) // 2
    packed = (codes[:half] << 4) | codes[half:]
    return {f"{stem}.W_q": packed, f"{stem}.scale": scale, f"{stem}.nbits": np.array(4)}


def torchao(stem: str, weight: Array) -> dict[str, Array]:
    """Codes and scales under names of their own."""
    codes = np.round(weight * 20).astype(np.int8)
    scale = np.ones((len(weight), 1), np.float32)
    return {f"{stem}._weight_qdata": codes, f"{stem}._weight_scale": scale}


def exl2(stem: str, weight: Array) -> dict[str, Array]:
    """Words under a name that says nothing of what they are."""
    words = np.round(weight.T * 1e6).astype(np.int32)[:8]
    return {f"{stem}.q_weight": words, f"{stem}.q_scale": words[:2]}


def exl3(stem: str, weight: Array) -> dict[str, Array]:
    """Tiles of codes with three axes."""
    tiles = np.round(weight.reshape(-1, 4, 16) * 1e3).astype(np.int16)
    return {f"{stem}.trellis": tiles, f"{stem}.suh": np.ones(weight.shape[1], np.float16)}


PACKINGS: dict[str, Packing] = {
    "bitnet": bitnet, "hqq": hqq, "torchao": torchao, "exl2": exl2, "exl3": exl3,
}  # fmt: skip


def packed_child(folder: Path, method: str) -> str:
    """A model whose matrices inside the layers are packed, and the rest is the parent's."""
    tensors: dict[str, Array] = {}
    for name, values in llama(1).items():
        one = {name: values}
        if "_proj" in name:
            one = PACKINGS[method](name.removesuffix(".weight"), values)
        tensors |= one
    config = {**LLAMA, "quantization_config": {"quant_method": method}}
    return stored(folder, tensors, config)


@pytest.fixture(scope="module")
def parent(tmp_path_factory: pytest.TempPathFactory) -> str:
    return stored(tmp_path_factory.mktemp("packed") / "parent", llama(1))


@pytest.mark.parametrize("method", PACKINGS)
def test_a_comparison_says_that_matrices_were_not_read(
    method: str, parent: str, tmp_path: Path
) -> None:
    child = packed_child(tmp_path / "child", method)
    for pair in ((parent, child), (child, parent)):
        found = kinprint.compare(*pair).to_dict()
        coverage = " ".join(found["verdict"]["statements"]["coverage"].split())
        assert "All weights" not in coverage
        assert "Not read: attention, feed-forward (stored in one of the models in a way" in coverage
        states = {one["component"]: one["state"] for one in found["verdict"]["parts"]}
        assert states["attention"] == states["feed-forward"] == "not-read"
        notes = " ".join(found["notes"])
        assert f"quantised with '{method}', which this version of kinprint does not read" in notes
        assert "contradicts" not in notes
        assert "compared as stored" not in notes


@pytest.mark.parametrize("method", PACKINGS)
def test_a_diff_says_that_matrices_were_not_read(method: str, parent: str, tmp_path: Path) -> None:
    child = packed_child(tmp_path / "child", method)
    found = kinprint.diff(parent, child)
    said = str(found.to_dict())
    assert "could not be compared (the model is quantised with" in str(found)
    assert "pruned" not in said


def test_units_of_other_widths_have_no_match() -> None:
    some = np.random.default_rng(0).normal(size=(8, 16)).astype(np.float32)
    whole = FeedForwardRows(some, some, some)
    assert match_units(whole, FeedForwardRows(some, some[:, :4], some)) is None
