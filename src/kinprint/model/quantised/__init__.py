"""Quantised weights as rows of floats, reading only the bytes that those rows need."""

from __future__ import annotations

from kinprint.model.quantised.grouping import logical_weights
from kinprint.model.quantised.schemes import Scheme, scheme_for
from kinprint.model.quantised.weight import (
    Codec,
    NumberFormat,
    QuantisedWeight,
    described,
    describing,
    float_rows,
    needed,
)

__all__ = [
    "Codec",
    "NumberFormat",
    "QuantisedWeight",
    "Scheme",
    "described",
    "describing",
    "float_rows",
    "logical_weights",
    "needed",
    "scheme_for",
]
