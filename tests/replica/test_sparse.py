from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.numpy import save

from kinprint.errors import BadOption
from kinprint.replica import sparse
from kinprint.replica.build import values_of
from kinprint.replica.layout import Slot, layout_of, replica_names
from kinprint.replica.vectors import written

TYPES = {"BF16": ml_dtypes.bfloat16, "F32": np.float32}


@given(
    st.dictionaries(
        st.text("ab.1029_é", min_size=1, max_size=6),
        st.tuples(st.sampled_from(sorted(TYPES)), st.lists(st.integers(1, 3), max_size=3)),
        max_size=8,
    )
)
def test_header_is_the_official_one(tensors: dict[str, tuple[str, list[int]]]) -> None:
    slots = [Slot(n, tuple(shape), kind, None, 0) for n, (kind, shape) in tensors.items()]
    arrays = {n: np.zeros(shape, TYPES[kind]) for n, (kind, shape) in tensors.items()}
    ours = sparse.header(slots, {"format": "pt"})
    official = save(arrays, metadata={"format": "pt"})
    assert official[: len(ours)] == ours
    assert len(official) == len(ours) + sum(slot.nbytes for slot in slots)


SIBLINGS = {
    "Qwen/Qwen1.5-7B-Chat",
    "mistralai/Mistral-7B-Instruct-v0.3",
    "01-ai/Yi-1.5-9B-Chat",
}
"""Replicas of dense models, of which two more are read in every run."""


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow) if name in SIBLINGS else name
        for name in replica_names()
    ],
)
def test_official_reader_opens_every_shard(built: Path, name: str) -> None:
    layout = layout_of(name)
    known = {(path, slot.name) for path, slot in written(layout)}
    for copy in layout.copies:
        for path, slots in copy.files.items():
            with safe_open(built / name / path, "np") as file:
                assert file.metadata()["format"] == "pt"
                assert "NOT the real model" in file.metadata()["replica"]
                assert set(file.keys()) == {slot.name for slot in slots}
                for slot in slots:
                    part = file.get_slice(slot.name)
                    assert tuple(part.get_shape()) == slot.shape
                    wide = (path, slot.name) in known
                    assert part.get_dtype() == ("F32" if wide else slot.dtype)
                    if len(slot.shape) > 1:
                        continue
                    values = file.get_tensor(slot.name)
                    if wide:
                        assert np.array_equal(values, values_of(layout, slot))
                    else:
                        assert not values.any()


def test_replicas_are_long_and_take_no_room(built: Path) -> None:
    assert sparse.full_bytes(built) > 1_190e9
    assert sparse.disk_bytes(built) < 40e6
    for name in replica_names():
        assert sparse.disk_bytes(built / name) < 8e6


def test_a_file_system_without_holes_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sparse, "disk_bytes", lambda path: path.stat().st_size)
    with pytest.raises(BadOption, match="sparse"):
        sparse.require_holes(tmp_path)
    assert not list(tmp_path.iterdir())


def test_values_of_another_size_are_refused(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="takes 8 bytes"):
        sparse.write_sparse(tmp_path / "x", [Slot("t", (4,), "BF16", None, 0)], {"t": b"1"}, {})
