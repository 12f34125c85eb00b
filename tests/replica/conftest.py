"""All replicas, built once, and read back with the official library."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors import safe_open

from kinprint.replica.layout import layouts
from kinprint.replica.vectors import written

HERE = Path(__file__).parent
Vectors = dict[tuple[str, str, int], NDArray[np.float64]]


@pytest.fixture(scope="session")
def built(replicas: Path) -> Path:
    return replicas


@pytest.fixture(scope="session")
def vectors(built: Path) -> Vectors:
    """Norm vectors by model, role and layer, as a reader of the files sees them."""
    found: Vectors = {}
    for layout in layouts():
        for path, slot in written(layout):
            if path not in layout.copies[0].files:
                continue
            with safe_open(built / layout.name / path, "np") as file:
                assert slot.layer is not None
                values = file.get_tensor(slot.name).astype(np.float64)
                found[layout.key, slot.role, slot.layer] = values
    return found


@pytest.fixture(scope="session")
def rows() -> Callable[[str], list[dict[str, str]]]:
    """Rows of a table of published numbers that lies beside the tests."""

    def read(name: str) -> list[dict[str, str]]:
        with (HERE / name).open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))

    return read
