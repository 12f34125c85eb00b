"""The measures by name: what each computes, what leaves it unchanged, how it misleads.

A measure is a function and an entry. Entries of ours are tables in `measures.toml`; the
catalogues have the words (`measure.NAME.title` and `.trap`). Another package adds a measure with
an entry point in the group `kinprint.measures`, whose name is that of the measure and which leads
to a `Measure`; studies take it with `--measures`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import ArrayLike

from kinprint import text
from kinprint.extensions import MEASURES, Registry
from kinprint.measure import (
    blocks,
    direct,
    gram,
    matching,
    ordered,
    rows,
    spectra,
    stored,
)
from kinprint.measure.measurement import Measurement, ValueStatus, missing
from kinprint.tables import read_table
from kinprint.text import Words

_FUNCTIONS: dict[str, Callable[..., float]] = {
    "cosine": direct.cosine,
    "centred_cosine": direct.centred_cosine,
    "cosine_about_one": direct.cosine_about,
    "pearson": direct.pearson,
    "spearman": ordered.spearman,
    "l2": direct.l2,
    "relative_l2": direct.relative_l2,
    "symmetric_relative_l2": direct.symmetric_relative_l2,
    "relative_rmse": direct.relative_rmse,
    "mean_abs_diff": direct.mean_abs_diff,
    "max_abs_diff": direct.max_abs_diff,
    "p99_abs_diff": ordered.p99_abs_diff,
    "p99_gap": ordered.p99_gap,
    "variation_difference": direct.variation_difference,
    "sign_agreement": direct.sign_agreement,
    "shuffled_cosine": direct.shuffled_cosine_mean,
    "bit_equal_share": stored.bit_equal_share,
    "raw_hash_equal": stored.raw_hash_equal,
    "row_cosine_mean": rows.row_cosine_mean,
    "row_pearson_mean": rows.row_pearson_mean,
    "linear_cka": gram.linear_cka,
    "unbiased_cka": gram.unbiased_cka,
    "gram_similarity": gram.gram_similarity,
    "spectrum_cosine": spectra.spectrum_cosine,
    "spectrum_log_distance": spectra.spectrum_log_distance,
    "subspace_overlap": spectra.subspace_overlap,
    "aligned_cosine": matching.aligned_cosine,
}


class Takes(StrEnum):
    """What a measure compares: vectors (any shape, taken flat), matrices, or what is stored."""

    VECTOR = "vector"
    MATRIX = "matrix"
    STORED = "stored"


class Agree(StrEnum):
    """What must agree between the two sides."""

    SHAPE = "shape"
    ROWS = "rows"
    COLUMNS = "columns"
    NOTHING = "nothing"


class Measure(Struct, frozen=True):
    """One measure and what a reader should know of it.

    `function` takes two arrays and gives a float, NaN where there is none. `invariances` are
    changes of the sides that leave it as it is; `published` lists the names that published
    tables have for it. `estimable` says that rows drawn at random estimate its value for the
    whole matrix: not so for a largest difference, nor for a sum that grows with the rows.
    """

    name: str
    function: Callable[..., float]
    title: Words
    trap: Words
    arity: Takes = Takes.VECTOR
    needs: Agree = Agree.SHAPE
    range: tuple[float, float] = (-math.inf, math.inf)
    higher_is_closer: bool = True
    symmetric: bool = True
    estimable: bool = False
    formula: str = ""
    invariances: tuple[str, ...] = ()
    published: tuple[str, ...] = ()


def _own_measures() -> dict[str, Measure]:
    """Those that come with kinprint, in the order of the table."""
    table = read_table(Path(__file__).with_name("measures.toml"))
    return {name: _entry(name, given) for name, given in table["measure"].items()}


def _entry(name: str, given: Mapping[str, Any]) -> Measure:
    low, high = given["range"]
    return Measure(
        name,
        _FUNCTIONS[name],
        text.words(f"measure.{name}.title"),
        text.words(f"measure.{name}.trap"),
        Takes(given["arity"]),
        Agree(given["needs"]),
        (float(low), float(high)),
        given["higher_is_closer"],
        given["symmetric"],
        given.get("estimable", True),
        given["formula"],
        tuple(given["invariances"]),
        tuple(given["published"]),
    )


_MEASURES = Registry(MEASURES, Measure, _own_measures)


def measures() -> Registry[Measure]:
    """All measures; its `faults` say which of other packages cannot be used."""
    return _MEASURES


def measure(name: str, a: ArrayLike, b: ArrayLike) -> Measurement:
    """Apply a measure by name; data that has no answer gives a status, never an exception."""
    known = measures()[name]
    x, y = np.asarray(a), np.asarray(b)
    if not _fits(known.needs, x, y):
        return missing(ValueStatus.SHAPE_MISMATCH, f"{_shape(x)} {_shape(y)}")
    if not (x.size and y.size):
        return missing(ValueStatus.EMPTY, f"{_shape(x)} {_shape(y)}")
    if known.arity is Takes.STORED:
        if x.dtype != y.dtype and name != "raw_hash_equal":
            return missing(ValueStatus.DTYPE_MISMATCH, f"{x.dtype} {y.dtype}")
        return Measurement(known.function(x, y))
    seen = blocks.scan(x), blocks.scan(y)
    if not all(one.finite for one in seen):
        counts = " ".join(f"NaN={one.nan},Inf={one.infinite}" for one in seen)
        return missing(ValueStatus.NONFINITE, counts)
    value = known.function(x, y)
    if math.isinf(value):
        return missing(ValueStatus.OVERFLOW)
    if math.isnan(value):
        return missing(ValueStatus.UNDEFINED, _reason(x, y, seen))
    return Measurement(value)


def _fits(needs: Agree, x: blocks.Array, y: blocks.Array) -> bool:
    if needs is Agree.SHAPE:
        return x.shape == y.shape
    if needs is Agree.NOTHING or not (x.size and y.size):
        return True
    axis = 0 if needs is Agree.ROWS else 1
    return bool(blocks.matrix(x).shape[axis] == blocks.matrix(y).shape[axis])


def _reason(x: blocks.Array, y: blocks.Array, seen: tuple[blocks.Scan, blocks.Scan]) -> str:
    """The first of the usual causes that applies; `reason.measure` has the words."""
    if any(one.peak == 0 for one in seen):
        return "zero"
    if min(x.size, y.size) == 1:
        return "single"
    if any(one.constant for one in seen):
        return "constant"
    return "degenerate"


def _shape(x: blocks.Array) -> str:
    return "x".join(map(str, x.shape)) or "scalar"
