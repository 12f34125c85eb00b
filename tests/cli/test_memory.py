"""How much memory commands take: each level has a ceiling, and many models no more than few."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from benchmarks.commands import run
from benchmarks.curves import wide_pair
from benchmarks.matrix import write_stranger

MODELS = ("upstage/Solar-Open-100B", "zai-org/GLM-4.5-Air")
MB = 1_000_000

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no getrusage")


@pytest.fixture(autouse=True)
def _one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every thread of linear algebra has a buffer of its own."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        monkeypatch.setenv(name, "1")


@pytest.mark.parametrize(
    ("level", "ceiling"), [("quick", 150 * MB), ("standard", 300 * MB), ("deep", 600 * MB)]
)
def test_a_level_has_a_ceiling(replicas: Path, tmp_path: Path, level: str, ceiling: int) -> None:
    given = [str(replicas / name) for name in MODELS]
    cost = run("", str(tmp_path), "compare", *given, "--level", level, "--format", "json")
    assert 20 * MB < cost.peak_bytes < ceiling


@pytest.mark.slow
def test_the_ceiling_holds_for_the_widest_models(tmp_path: Path) -> None:
    given = map(str, wide_pair(tmp_path, 16_384))
    cost = run("", str(tmp_path), "compare", *given, "--level", "standard", "--format", "json")
    assert 20 * MB < cost.peak_bytes < 300 * MB


def test_processes_of_a_matrix_hold_what_they_compare(tmp_path: Path) -> None:
    """The largest of them; 200 models are measured by `python -m benchmarks.matrix`."""
    given = [str(tmp_path / f"stranger-{number}") for number in range(8)]
    for number, folder in enumerate(given):
        write_stranger(Path(folder), number)
    cost = run("", str(tmp_path), "matrix", *given, "--jobs", "2", "--format", "json")
    assert 20 * MB < cost.peak_bytes < 250 * MB
