"""All measures by name: what each computes, what leaves it unchanged, how it misleads.

What is true of each stands in `measures.toml`, what is said of it in the catalogues
(`measure.NAME.title` and `.trap`); here names meet functions, and bad input becomes a status.
"""

from __future__ import annotations

import functools
import math
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from kinprint import text
from kinprint.measure import (
    blocks,
    direct,
    gram,
    matching,
    ordered,
    rows,
    shuffled,
    spectra,
    stored,
)
from kinprint.measure.measurement import Measurement, missing
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
    "shuffled_cosine": shuffled.shuffled_cosine_mean,
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


@dataclass(frozen=True, slots=True)
class Measure:
    """One measure and what a reader should know of it.

    `arity` is what it takes: "vector" (any shape, flat), "matrix" or "stored" (undecoded).
    `needs` is what must agree: the whole "shape", the number of "rows" or of "columns", or
    "nothing". `invariances` are keys of the table of the same name; `published` lists the
    names that published tables have for it.
    """

    name: str
    function: Callable[..., float]
    arity: str
    needs: str
    range: tuple[float, float]
    higher_is_closer: bool
    symmetric: bool
    formula: str
    invariances: tuple[str, ...]
    published: tuple[str, ...]
    title: Words
    trap: Words


@functools.cache
def measures() -> Mapping[str, Measure]:
    """Every measure, in the order of the table."""
    table = tomllib.loads(Path(__file__).with_name("measures.toml").read_text("utf-8"))
    return {name: _entry(name, given) for name, given in table["measure"].items()}


def measure(name: str, a: ArrayLike, b: ArrayLike, **options: Any) -> Measurement:
    """Apply a measure by name; data that has no answer gives a status, never an exception."""
    known = measures()[name]
    x, y = np.asarray(a), np.asarray(b)
    if not _fits(known.needs, x, y):
        return missing("shape_mismatch", f"{_shape(x)} {_shape(y)}")
    if not (x.size and y.size):
        return missing("empty", f"{_shape(x)} {_shape(y)}")
    if known.arity == "stored":
        if x.dtype != y.dtype and name != "raw_hash_equal":
            return missing("dtype_mismatch", f"{x.dtype} {y.dtype}")
        return Measurement(known.function(x, y, **options), "ok")
    seen = blocks.scan(x), blocks.scan(y)
    if not all(one.finite for one in seen):
        counts = " ".join(f"NaN={one.nan},Inf={one.infinite}" for one in seen)
        return missing("nonfinite", counts)
    value = known.function(x, y, **options)
    if math.isinf(value):
        return missing("overflow")
    return (
        missing("undefined", _reason(x, y, seen)) if math.isnan(value) else Measurement(value, "ok")
    )


def _entry(name: str, given: Mapping[str, Any]) -> Measure:
    low, high = given["range"]
    return Measure(
        name,
        _FUNCTIONS[name],
        given["arity"],
        given["needs"],
        (float(low), float(high)),
        given["higher_is_closer"],
        given["symmetric"],
        given["formula"],
        tuple(given["invariances"]),
        tuple(given["published"]),
        text.words(f"measure.{name}.title"),
        text.words(f"measure.{name}.trap"),
    )


def _fits(needs: str, x: blocks.Array, y: blocks.Array) -> bool:
    if needs == "shape":
        return x.shape == y.shape
    if needs == "nothing" or not (x.size and y.size):
        return True
    axis = 0 if needs == "rows" else 1
    return bool(blocks.matrix(x).shape[axis] == blocks.matrix(y).shape[axis])


def _reason(x: blocks.Array, y: blocks.Array, seen: tuple[blocks.Scan, blocks.Scan]) -> str:
    """The first of the usual causes that applies; the table of reasons has the words."""
    if any(one.peak == 0 for one in seen):
        return "zero"
    if min(x.size, y.size) == 1:
        return "single"
    if any(one.constant for one in seen):
        return "constant"
    return "degenerate"


def _shape(x: blocks.Array) -> str:
    return "x".join(map(str, x.shape)) or "scalar"
