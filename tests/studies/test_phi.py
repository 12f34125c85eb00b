"""Matrices over models and layers, and values by index, against plain NumPy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from kinprint.reader.fetch import Fetcher
from kinprint.studies.charts import Heatmap, Lines, Panels
from kinprint.studies.phi.elementwise import SHOWN, thin
from kinprint.studies.registry import study_named
from kinprint.studies.results import Result
from kinprint.studies.study import Request
from tests.opened import open_models
from tests.studies.runs import run_studies

Vector = NDArray[np.float64]
Study = Callable[..., Result]
NAMES = ("base-a", "base-b", "a-cpt")


@pytest.fixture
def study() -> Iterator[Study]:
    with Fetcher() as fetcher:

        def do(name: str, paths: Sequence[Path], **request: Any) -> Result:
            models = open_models(paths, fetcher)
            return run_studies([study_named(name)], models, Request(**request))[0]

        yield do


@pytest.fixture
def paths(demo: Path) -> list[Path]:
    return [demo / "zoo" / name for name in NAMES]


def tensor(path: Path, layer: int, name: str = "input_layernorm") -> Vector:
    wanted = f"model.layers.{layer}.{name}.weight"
    files = map(load_file, sorted(path.glob("*.safetensors")))
    found: Vector = next(file[wanted] for file in files if wanted in file).astype(np.float64)
    return found


def cosine(a: Vector, b: Vector) -> float:
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


PLAIN: dict[str, Callable[[Vector, Vector], float]] = {
    "cosine": cosine,
    "centered_cosine": lambda a, b: cosine(a - a.mean(), b - b.mean()),
    "pearson": lambda a, b: float(np.corrcoef(a, b)[0, 1]),
    "mean_abs_diff": lambda a, b: float(np.abs(a - b).mean()),
    "p99_abs_diff": lambda a, b: float(abs(np.percentile(a, 99) - np.percentile(b, 99))),
    "rel_l2": lambda a, b: float(np.linalg.norm(a - b) / np.linalg.norm(a)),
    "cv_diff": lambda a, b: float(abs(a.std() / a.mean() - b.std() / b.mean())),
}


def mats(result: Result, name: str) -> dict[str, Any]:
    found: Any = result.facts[name]
    return dict(found["mats"])


@pytest.mark.parametrize("metric", PLAIN)
def test_confusion_is_what_numpy_says(study: Study, paths: list[Path], metric: str) -> None:
    found = study("confusion", paths, layers=(2,), roles=("norm_in",))
    vectors = [tensor(path, 2) for path in paths]
    wanted = [[PLAIN[metric](a, b) for b in vectors] for a in vectors]
    matrix = np.array(mats(found, f"confusion_{metric}_layer2")["input_layernorm"], float)
    assert matrix == pytest.approx(np.array(wanted), abs=1e-6)
    symmetric = np.array_equal(matrix, matrix.T)
    assert symmetric == (metric != "rel_l2")  # which divides by the row's model


def test_each_model_at_its_own_layer(study: Study, paths: list[Path]) -> None:
    found = study("confusion-mixed", paths, layers=(1, 3, 5), roles=("norm_in",))
    a, b = tensor(paths[0], 1), tensor(paths[1], 3)
    matrix = mats(found, "confusion_mixed_cosine_b1_b3_a5")["input_layernorm"]
    assert matrix[0][1] == pytest.approx(cosine(a, b), abs=1e-6)


def test_layers_that_cannot_be_given_out_are_replaced_aloud(
    study: Study, paths: list[Path]
) -> None:
    found = study("confusion-mixed", paths, layers=(1, 3), roles=("norm_in",))
    assert "confusion_mixed_cosine_b2_b3_a4" in found.facts
    assert any("2, 3, 4" in words["en"] and "2, 3, 4" in words["ko"] for words in found.findings)


def test_one_model_across_layers(study: Study, paths: list[Path]) -> None:
    found = study("within-model", paths[:1], layers=(1, 2, 4), roles=("norm_post_attn",))
    vectors = [tensor(paths[0], layer, "post_attention_layernorm") for layer in (1, 2, 4)]
    wanted = [[cosine(a, b) for b in vectors] for a in vectors]
    matrix = mats(found, "within_cosine_base-a_layers1_2_4")["post_attention_layernorm"]
    assert np.array(matrix) == pytest.approx(np.array(wanted), abs=1e-6)


def test_sampled_matrices_say_so(study: Study, paths: list[Path]) -> None:
    found = study("confusion", paths[:2], layers=(2,), roles=("k",), rows=16)
    table = found.table("confusion")
    assert set(table.column("sample")) == {"16/64"}
    whole = cosine(*(tensor(path, 2, "self_attn.k_proj").ravel() for path in paths[:2]))
    rows = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
    (row,) = [one for one in rows if (one["model_a"], one["model_b"]) == NAMES[:2]]
    assert isinstance(row["cosine_low"], float) and isinstance(row["cosine_high"], float)
    assert row["cosine_low"] - 0.05 < whole < row["cosine_high"] + 0.05
    facts: Any = found.facts["confusion_cosine_layer2"]
    assert facts["rows_read"] == {"k_proj": "16/64"}


def test_whole_matrices_are_exact(study: Study, paths: list[Path]) -> None:
    found = study("confusion", paths[:2], layers=(2,), roles=("k",), rows=None)
    whole = cosine(*(tensor(path, 2, "self_attn.k_proj").ravel() for path in paths[:2]))
    assert mats(found, "confusion_cosine_layer2")["k_proj"][0][1] == pytest.approx(whole, abs=1e-6)


def test_pictures_hold_the_numbers_of_the_facts(study: Study, paths: list[Path]) -> None:
    found = study("confusion", paths, layers=(2,), roles=("norm_in", "v"))
    for chart in found.charts:
        assert isinstance(chart, Panels)
        for role, panel in zip(("input_layernorm", "v_proj"), chart.charts, strict=True):
            assert isinstance(panel, Heatmap)
            assert [list(row) for row in panel.values] == mats(found, chart.name)[role]
            if "cosine_" in chart.name and "centered" not in chart.name:
                assert panel.note is not None  # what shuffled places would give


def test_default_layers_fit_small_models(study: Study, paths: list[Path]) -> None:
    found = study("confusion", paths, roles=("norm_in",), measures=("cosine",))
    assert list(found.facts) == [f"confusion_cosine_layer{layer}" for layer in (1, 3, 4)]
    assert found.statuses == {"ok": 27}


@pytest.mark.parametrize("name", ["confusion", "confusion-mixed", "within-model", "elementwise"])
def test_what_is_missing_is_a_row(study: Study, paths: list[Path], name: str) -> None:
    found = study(name, paths[:2], layers=(2, 99), roles=("norm_in", "router"))
    table = found.table(name)
    assert found.statuses["missing"] > 0
    for row in table.rows:
        named = dict(zip(table.columns, row, strict=True))
        if named["status"] != "ok":
            assert named["cosine"] is None and named["note"]
    assert any("missing" in words["en"] for words in found.findings)


@pytest.fixture
def odd(demo: Path, tmp_path: Path) -> Callable[[str, Callable[[Any], Any]], Path]:
    """A copy of base-a with its norm vectors changed."""

    def make(name: str, change: Callable[[Any], Any]) -> Path:
        source, target = demo / "zoo" / "base-a", tmp_path / name
        target.mkdir()
        tensors = load_file(source / "model.safetensors")
        changed = {k: change(v) if "layernorm" in k else v for k, v in tensors.items()}
        save_file(changed, target / "model.safetensors")
        (target / "config.json").write_bytes((source / "config.json").read_bytes())
        return target

    return make


def test_other_widths_and_broken_numbers_are_rows(
    study: Study, paths: list[Path], odd: Callable[[str, Callable[[Any], Any]], Path]
) -> None:
    narrow = odd("narrow", lambda vector: np.ascontiguousarray(vector[:96]))
    broken = odd("broken", lambda vector: np.full_like(vector, np.nan))
    flat = odd("flat", lambda vector: np.ones_like(vector))
    for name in ("confusion", "elementwise"):
        found = study(name, [paths[0], narrow, broken, flat], layers=(2,), roles=("norm_in",))
        table = found.table(name)
        rows = {(row[2], row[4]): dict(zip(table.columns, row, strict=True)) for row in table.rows}
        assert rows["base-a", "narrow"]["status"] == "shape_mismatch"
        assert rows["base-a", "broken"]["status"] == "undefined"
        flat_row = rows["base-a", "flat"]
        assert flat_row["status"] == "ok" and flat_row["pearson"] is None
        assert "pearson" in str(flat_row["note"])


def test_values_are_all_there(study: Study, paths: list[Path]) -> None:
    found = study("elementwise", paths[:2], layers=(2,), roles=("norm_in",))
    table = found.table("values_norm-in_layer2")
    assert table.columns == ("index", "base-a", "base-b")
    for at, path in enumerate(paths[:2]):
        assert np.array(table.column(NAMES[at])) == pytest.approx(tensor(path, 2))
    (chart,) = found.charts
    assert isinstance(chart, Panels) and chart.name == "elementwise/base-a_vs_base-b"
    (lines,) = chart.charts
    assert isinstance(lines, Lines) and lines.points and lines.note is None


def test_pictures_of_long_vectors_are_thinned_evenly(study: Study, paths: list[Path]) -> None:
    found = study("elementwise", paths[:2], layers=(2,), roles=("k",), rows=None)
    assert len(found.table("values_k_layer2").rows) == 64 * 128
    (chart,) = found.charts
    assert isinstance(chart, Panels)
    (lines,) = chart.charts
    assert isinstance(lines, Lines) and lines.note is not None
    assert [len(one.x) for one in lines.series] == [SHOWN, SHOWN]


@given(st.integers(0, 5000), st.integers(2, 100))
def test_thinning_keeps_both_ends_and_even_gaps(length: int, most: int) -> None:
    picked = thin(length, most)
    assert len(picked) == min(length, most)
    assert picked[:1] == list(range(min(length, 1))) and picked[-1:] == list(range(length))[-1:]
    gaps = np.diff(picked)
    assert not len(gaps) or (gaps.min() >= 1 and gaps.max() - gaps.min() <= 1)
