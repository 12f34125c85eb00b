"""The registry: every measure keeps what its entry promises, and bad data has a status."""

from __future__ import annotations

import math
import pkgutil
import subprocess
import sys
from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest

import kinprint.measure
from kinprint import text
from kinprint.measure.measurement import Measurement
from kinprint.measure.measures import measure, measures

NAMES = list(measures())
FLAT = [name for name in NAMES if measures()[name].arity == "vector"]
Pair = tuple[np.ndarray, np.ndarray]
Change = Callable[[np.random.Generator, np.ndarray, np.ndarray], Pair]


def _turn(rng: np.random.Generator, size: int) -> np.ndarray:
    return np.asarray(np.linalg.qr(rng.normal(size=(size, size)))[0])


def _signs(rng: np.random.Generator, a: np.ndarray) -> np.ndarray:
    return rng.choice([-1.0, 1.0], a.shape)


def _reorder(order: np.ndarray, *sides: np.ndarray) -> Pair:
    one, other = (side.reshape(-1)[order].reshape(side.shape) for side in sides)
    return one, other


def _alike(r: np.random.Generator, a: np.ndarray, b: np.ndarray) -> Pair:
    turn = _turn(r, a.shape[1])
    return a @ turn, b @ turn


def _negate(r: np.random.Generator, a: np.ndarray, b: np.ndarray) -> Pair:
    signs = _signs(r, a)
    return a * signs, b * signs


def _rows_alike(r: np.random.Generator, a: np.ndarray, b: np.ndarray) -> Pair:
    order = r.permutation(len(a))
    return a[order], b[order]


CHANGES: dict[str, Change] = {
    "scale": lambda r, a, b: (a * r.uniform(0.1, 9), b * r.uniform(0.1, 9)),
    "common_scale": lambda r, a, b: (a * 7.5, b * 7.5),
    "shift": lambda r, a, b: (a + r.normal(), b + r.normal()),
    "common_shift": lambda r, a, b: (a + 1.25, b + 1.25),
    "monotone": lambda r, a, b: (np.exp(a), b**3),
    "common_order": lambda r, a, b: _reorder(r.permutation(a.size), a, b),
    "own_order": lambda r, a, b: (_reorder(r.permutation(a.size), a, b)[0], b),
    "common_signs": _negate,
    "common_rotation": _alike,
    "row_scale": lambda r, a, b: (a * r.uniform(0.1, 9, (len(a), 1)), b),
    "row_shift": lambda r, a, b: (a, b + r.normal(size=(len(a), 1))),
    "column_shift": lambda r, a, b: (a + r.normal(size=a.shape[1]), b),
    "common_row_order": _rows_alike,
    "own_row_order": lambda r, a, b: (a, r.permutation(b)),
    "own_row_rotation": lambda r, a, b: (_turn(r, len(a)) @ a, b),
    "own_column_rotation": lambda r, a, b: (a, b @ _turn(r, b.shape[1])),
    "common_column_rotation": _alike,
}


def _example(seed: int) -> Pair:
    rng = np.random.default_rng(seed)
    a = rng.normal(0.4, 1, (14, 9))
    return a, 0.5 * a + rng.normal(0.2, 1, (14, 9))


@pytest.mark.parametrize(
    ("name", "key"), [(name, key) for name in NAMES for key in measures()[name].invariances]
)
def test_what_is_said_to_change_nothing_changes_nothing(name: str, key: str) -> None:
    for seed in range(5):
        a, b = _example(seed)
        changed = CHANGES[key](np.random.default_rng(seed + 100), a, b)
        assert not all(np.array_equal(x, y) for x, y in zip(changed, (a, b), strict=True))
        before = measure(name, a, b).value
        assert measure(name, *changed).value == pytest.approx(before, abs=1e-7)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_not_said_does_change_something(name: str) -> None:
    """An entry that forgets an invariance of simple kind would mislead as well."""
    known = measures()[name]
    simple = {"scale", "shift", "own_order"} - set(known.invariances)
    if "monotone" in known.invariances:
        simple -= {"scale", "shift"}
    a, b = _example(3)
    for key in simple if known.arity == "vector" else ():
        changed = CHANGES[key](np.random.default_rng(9), a, b)
        assert measure(name, *changed).value != pytest.approx(measure(name, a, b).value, abs=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_range_symmetry_and_direction(name: str) -> None:
    known = measures()[name]
    low, high = known.range
    for seed in range(10):
        a, b = _example(seed)
        value, swapped = measure(name, a, b).value, measure(name, b, a).value
        assert low <= value <= high
        assert (value == pytest.approx(swapped, abs=1e-9)) is known.symmetric
        equal = measure(name, a, a).value
        if name != "shuffled_cosine":
            assert equal == pytest.approx(1 if known.higher_is_closer else 0, abs=1e-7)
            assert (equal > value) is known.higher_is_closer


@pytest.mark.parametrize("name", NAMES)
def test_words_are_there_in_both_languages(name: str) -> None:
    known = measures()[name]
    assert known.arity in {"vector", "matrix", "stored"}
    assert known.needs in {"shape", "rows", "columns", "nothing"}
    assert known.formula
    for words in (known.title, known.trap):
        assert set(words) == set(text.languages())
    assert any("가" <= letter <= "힣" for letter in known.trap["ko"])


def test_tables_name_nothing_else() -> None:
    used = {key for known in measures().values() for key in known.invariances}
    assert used == set(CHANGES)
    published = [name for known in measures().values() for name in known.published]
    assert len(published) == len(set(published))


ONES, ZEROS, RISING = np.ones((6, 4)), np.zeros((6, 4)), np.arange(1.0, 25).reshape(6, 4) ** 1.5
CENTRED = {
    "pearson",
    "centred_cosine",
    "spearman",
    "row_pearson_mean",
    "linear_cka",
    "unbiased_cka",
}
DIRECTED = {
    "cosine", "relative_l2", "relative_rmse", "shuffled_cosine", "variation_difference",
    "row_cosine_mean", "gram_similarity", "spectrum_cosine", "spectrum_log_distance",
    "aligned_cosine", "subspace_overlap",
}  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_the_degenerate_table(name: str) -> None:
    known = measures()[name]

    def status(a: object, b: object) -> tuple[str, str]:
        found = measure(name, np.asarray(a), np.asarray(b))
        assert math.isnan(found.value) is not found.ok
        return found.status, found.detail

    a = np.vander(np.linspace(1, 2, 12)) if name == "subspace_overlap" else RISING
    assert measure(name, a, a).ok
    expected = ("undefined", "zero") if name in CENTRED | DIRECTED else ("ok", "")
    assert status(ZEROS, RISING) == expected
    if name in CENTRED:
        assert status(ONES, RISING) == ("undefined", "constant")
    empty = np.ones((0, 4))
    assert status(empty, empty) == ("empty", "0x4 0x4")
    if known.needs != "nothing":
        other = RISING.reshape(3, 8)
        assert status(RISING, other) == ("shape_mismatch", "6x4 3x8")
    if known.arity != "stored":
        spoilt = RISING.copy()
        spoilt[0, 0], spoilt[2, 1], spoilt[3, 3] = math.nan, math.inf, -math.inf
        assert status(spoilt, RISING) == ("nonfinite", "NaN=1,Inf=2 NaN=0,Inf=0")
        assert status(RISING, spoilt) == ("nonfinite", "NaN=0,Inf=0 NaN=1,Inf=2")
    else:
        assert measure(name, RISING * math.nan, RISING * math.nan).value == 1


@pytest.mark.parametrize("name", FLAT)
def test_one_value_alone(name: str) -> None:
    found = measure(name, [2.0], [3.0])
    if name in CENTRED:
        assert (found.status, found.detail) == ("undefined", "single")
    else:
        assert found.ok
    scalar = measure(name, 2.0, 3.0)
    assert (scalar.status, scalar.detail) == (found.status, found.detail)


def test_statuses_of_their_own() -> None:
    half, whole = np.ones(3, ml_dtypes.bfloat16), np.ones(3, np.float32)
    mixed = measure("bit_equal_share", half, whole)
    assert (mixed.status, mixed.detail) == ("dtype_mismatch", "bfloat16 float32")
    assert measure("raw_hash_equal", half, whole) == Measurement(0.0)
    assert measure("l2", [1.7e308], [-1.7e308]).status == "overflow"
    assert measure("variation_difference", [-1.0, 1.0], [1.0, 2.0]).detail == "degenerate"
    assert measure("unbiased_cka", RISING[:3], RISING[:3]).detail == "degenerate"
    assert measure("gram_similarity", np.eye(3), RISING[:, :3]).detail == "degenerate"
    for reason in ("zero", "constant", "single", "degenerate"):
        assert text.knows(f"reason.measure.{reason}", "ko")


def test_importing_the_room_does_not_import_scipy() -> None:
    modules = [
        f"kinprint.measure.{one.name}" for one in pkgutil.iter_modules(kinprint.measure.__path__)
    ]
    code = f"import sys, {', '.join(modules)}; sys.exit('scipy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
