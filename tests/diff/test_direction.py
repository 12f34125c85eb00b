"""Which of two models came first: what each trace says, and what a lie comes to at worst."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from msgspec import UNSET
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

import kinprint
import kinprint.demo
from kinprint import text
from kinprint.diff.direction import (
    TraceFound,
    TrainingLog,
    dates,
    drift,
    parsed_log,
    rounding,
    training,
    vocabulary,
    weighed,
)
from kinprint.measure.drift import log_size
from kinprint.measure.rounding import equality
from kinprint.model.tokens import Vocabulary
from kinprint.records import Precedence, Trace
from tests.fewer_layers import short_zoo

DRAWS = np.random.default_rng(5)
Floats = NDArray[np.float32]
A, B, OPEN = Precedence.A_FIRST, Precedence.B_FIRST, Precedence.UNDECIDED


def bf16(values: Floats) -> Floats:
    return values.astype(ml_dtypes.bfloat16).astype(np.float32)


def matrix() -> Floats:
    return DRAWS.normal(0, 0.02, (64, 128)).astype(np.float32)


def tokens(count: int, *more: bytes) -> Vocabulary:
    known = tuple(f"t{at}".encode() for at in range(count))
    return Vocabulary("plain", "bpe", "tokenizer.json", (*known, *more), frozenset())


def log(steps: int, *losses: float) -> bytes:
    entries = [{"loss": loss, "step": 10 * at} for at, loss in enumerate(losses)]
    return json.dumps({"epoch": 1.0, "global_step": steps, "log_history": entries}).encode()


def speaks(found: TraceFound | None) -> Precedence:
    return OPEN if found is None else found.speaks


def quantised(values: Floats, levels: int) -> Floats:
    blocks = values.reshape(-1, 32)
    steps = np.abs(blocks).max(axis=1, keepdims=True) / levels
    rounded: Floats = (np.rint(blocks / steps) * steps).astype(np.float32)
    return rounded.reshape(values.shape)


@pytest.mark.parametrize("levels", [7, 127, None])
def test_what_is_rounded_comes_later(levels: int | None) -> None:
    fine = [matrix() for _ in range(4)]
    coarse = [bf16(one) if levels is None else quantised(one, levels) for one in fine]
    assert speaks(rounding(zip(fine, coarse, strict=True))) is A
    assert speaks(rounding(zip(coarse, fine, strict=True))) is B


def test_rounding_says_nothing_of_other_changes() -> None:
    fine = matrix()
    assert rounding([(fine, fine)]) is None
    assert rounding([(fine, fine + 0.1 * matrix())]) is None
    assert rounding([(fine, bf16(fine)), (fine, fine + 0.1 * matrix())]) is None
    assert rounding([(fine, bf16(fine)), (bf16(fine), fine)]) is None, "contradiction"
    assert rounding([]) is None


def test_tokens_added_behind_come_later() -> None:
    assert speaks(vocabulary(tokens(50), tokens(50, b"x", b"y"))) is A
    assert speaks(vocabulary(tokens(50, b"x"), tokens(50))) is B
    assert vocabulary(tokens(50), tokens(50)) is None
    assert vocabulary(tokens(50, b"x"), tokens(50, b"y", b"z")) is None
    assert vocabulary(tokens(50), None) is None
    padded = Vocabulary("plain", "bpe", "", (*tokens(50).tokens, None, None), frozenset())
    assert vocabulary(padded, tokens(50)) is None, "unused numbers are no tokens"


def test_a_run_that_went_on_comes_later() -> None:
    run = [4.0, 3.5, 3.2, 3.1, 3.05, 3.0]
    short, long = parsed_log(log(30, *run[:5])), parsed_log(log(50, *run))
    assert speaks(training(short, long)) is A
    assert speaks(training(long, short)) is B
    assert training(short, parsed_log(log(50, *[one + 0.01 for one in run]))) is None
    assert training(short, short) is None
    assert training(parsed_log(log(10, 4.0)), long) is None, "one entry is no run"


@pytest.mark.parametrize(
    "raw",
    [b"", b"{", b"[]", b'{"global_step": "x"}',
     b'{"global_step": 5, "log_history": [[', b"\xff" * 50,
     b'{"global_step": 5, "log_history": ' + b"[" * 30_000],
)  # fmt: skip
def test_a_broken_log_says_nothing(raw: bytes) -> None:
    found = parsed_log(raw)
    assert found is None or found == TrainingLog(5, ())


def test_a_log_that_is_cut_off_keeps_its_entries() -> None:
    whole = log(90, *[4.0 - at / 10 for at in range(20)])
    cut = parsed_log(whole[: len(whole) // 2])
    assert cut is not None and 4 < len(cut.entries) < 20


def test_dates_are_told_by_the_day() -> None:
    assert speaks(dates("2025-01-01T10:00:00Z", "2025-02-01")) is A
    assert dates("2025-01-01T10:00:00Z", "2025-01-01T23:00:00Z") is None
    assert dates(None, "2025-01-01") is None


def found(trace: Trace, speaks: Precedence) -> TraceFound:
    return TraceFound(trace, speaks, text.message("report.direction.title"))


def test_one_trace_decides_nothing_and_a_contradiction_less() -> None:
    assert weighed([]) is OPEN
    assert weighed([found(Trace.DATES, A)]) is OPEN
    assert weighed([found(Trace.DATES, A), found(Trace.ROUNDING, A)]) is A
    assert weighed([found(Trace.DATES, B), found(Trace.VOCABULARY, B)]) is B
    three = [found(Trace.DATES, A), found(Trace.ROUNDING, A), found(Trace.VOCABULARY, B)]
    assert weighed(three) is OPEN
    assert weighed([found(Trace.DATES, A), found(Trace.DRIFT, A)]) is OPEN, "drift never counts"


# Lies: each is undecided at worst.


def test_dates_set_back_are_undecided() -> None:
    parent = matrix()
    honest = rounding([(parent, bf16(parent))])
    lie = dates("2024-01-01", "2020-01-01")
    assert weighed([one for one in (honest, lie) if one]) is OPEN
    assert weighed([lie] if lie else []) is OPEN


def test_digits_filled_in_are_named_and_undecided() -> None:
    parent = bf16(matrix())
    half = np.ldexp(np.float32(0.49), np.frexp(parent)[1] - 8)
    child = parent + DRAWS.uniform(-1, 1, parent.shape).astype(np.float32) * half
    child = np.where(bf16(child) == parent, child, parent)  # half as far below powers of two
    lie = rounding([(parent, child)])
    assert speaks(lie) is B, "the parent is what the filled-in child rounds to"
    assert weighed([lie] if lie else []) is OPEN
    assert lie is not None
    said = text.Message(lie.says.key, {**lie.says.fields, "a": "X", "b": "Y"})
    assert "fills in lost digits" in str(said)


@pytest.mark.parametrize("levels", [7, 127, None])
def test_a_change_smaller_than_the_grid_it_began_on_is_no_rounding(levels: int | None) -> None:
    """A tune of what was released on a grid rounds to it, number by number."""
    fine = matrix()
    parent = bf16(fine) if levels is None else quantised(fine, levels)
    steps = np.abs(parent - fine).max(axis=1, keepdims=True)
    child = (parent + 0.04 * steps * DRAWS.normal(size=parent.shape)).astype(np.float32)
    assert rounding([(parent, child)]) is None
    assert not equality(parent, child).same


def test_norms_and_tables_that_are_no_rounding_refute_it(tmp_path: Path) -> None:
    for name in ("fine", "coarse"):
        shutil.copytree(short_zoo() / "base-a", tmp_path / name)
    tensors = load_file(short_zoo() / "base-a" / "model.safetensors")
    for moved in (False, True):
        coarse = {
            name: value * ml_dtypes.bfloat16(1.5 if moved else 1.0)
            if "norm" in name
            else value.astype(ml_dtypes.float8_e4m3fn).astype(value.dtype)
            for name, value in tensors.items()
        }
        save_file(coarse, tmp_path / "coarse" / "model.safetensors", {"format": "pt"})
        found = kinprint.compare(tmp_path / "fine", tmp_path / "coarse", direction=True)
        assert found.direction is not None
        traces = [row.trace for row in found.direction.traces if row.counted]
        assert traces == ([] if moved else [Trace.ROUNDING])


def test_noise_is_no_trace() -> None:
    parent = bf16(matrix())
    child = bf16(parent + 0.1 * matrix())
    assert rounding([(parent, child)]) is None
    before, after = log_size(parent), log_size(bf16(parent + 0.5 * matrix()))
    assert before is not None and after is not None
    lie = drift([(before, after)])
    assert lie is not None and weighed([lie]) is OPEN


def test_rescaled_gains_change_no_drift() -> None:
    rows, gain = matrix(), np.exp(DRAWS.normal(0, 0.3, 128)).astype(np.float32)
    scale = np.exp(DRAWS.normal(0, 1, 128)).astype(np.float32)
    honest, lie = log_size(rows, gain), log_size(rows / scale, gain * scale)
    assert honest is not None and lie is not None
    assert lie == pytest.approx(honest, abs=1e-5)
    assert drift([(honest, lie)]) is None


@pytest.mark.parametrize("odd", [0.0, np.inf, np.nan])
def test_degenerate_rows_have_no_size(odd: float) -> None:
    rows = matrix()
    rows[:, 3] = odd
    assert log_size(rows) is None


def test_a_comparison_shows_its_traces_in_both_languages(tmp_path: Path) -> None:
    cast = tmp_path / "cast"
    shutil.copytree(short_zoo() / "base-a", cast)
    tensors = load_file(short_zoo() / "base-a" / "model.safetensors")
    eighth = {
        name: value.astype(ml_dtypes.float8_e4m3fn).astype(value.dtype)
        for name, value in tensors.items()
    }
    save_file(eighth, cast / "model.safetensors", {"format": "pt"})
    run = [4.0, 3.5, 3.2, 3.1, 3.05, 3.0]
    parent = tmp_path / "parent"
    shutil.copytree(short_zoo() / "base-a", parent)
    (parent / "trainer_state.json").write_bytes(log(30, *run[:5]))
    one = kinprint.compare(parent, cast, direction=True, hashes=False)
    assert one.direction is not None and one.direction.answer is OPEN
    assert [row.trace for row in one.direction.traces if row.counted] == [Trace.ROUNDING]
    translations = one.document.translations
    assert translations is not UNSET and one.direction.traces[0].says in translations["ko"]
    (cast / "trainer_state.json").write_bytes(log(50, *run))
    two = kinprint.compare(cast, parent, direction=True, hashes=False)
    assert two.direction is not None and two.direction.answer is B
    assert {row.trace for row in two.direction.traces if row.counted} == {
        Trace.ROUNDING,
        Trace.TRAINING,
    }
    two.save(tmp_path / "page.html", tmp_path / "page.md", tmp_path / "result.json")
    for name in ("page.html", "page.md"):
        page = (tmp_path / name).read_text("utf-8")
        assert "parent came first" in page and "after 30 steps" in page, name
    shown = two._repr_html_()
    assert "parent came first" in shown and "after 30 steps" in shown
    again = kinprint.report(tmp_path / "result.json")
    again.save(tmp_path / "again.html")
    assert (tmp_path / "again.html").read_bytes() == (tmp_path / "page.html").read_bytes()
