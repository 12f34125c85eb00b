"""One measured number with its status: whether it is a number, and if not, why.

A missing value must reach the report as a row that says so, never as a crash or a silent
NaN among numbers.
"""

from __future__ import annotations

import math
from enum import StrEnum

from msgspec import Struct


class ValueStatus(StrEnum):
    """Whether a measure has a value for two arrays, or why it has none."""

    OK = "ok"
    UNDEFINED = "undefined"
    NONFINITE = "nonfinite"
    SHAPE_MISMATCH = "shape_mismatch"
    DTYPE_MISMATCH = "dtype_mismatch"
    EMPTY = "empty"
    OVERFLOW = "overflow"


class Measurement(Struct, frozen=True):
    """A value and its status; the value is NaN unless the status is OK.

    `detail` holds the facts without prose: the two shapes, how many values are no numbers,
    or which of the reasons in the catalogues (`reason.measure`) applies ("zero", "constant", …).
    """

    value: float
    status: ValueStatus = ValueStatus.OK
    detail: str = ""

    @property
    def ok(self) -> bool:
        """Whether there is a value."""
        return self.status is ValueStatus.OK


def missing(status: ValueStatus, detail: str = "") -> Measurement:
    """A measurement that could not be had."""
    return Measurement(math.nan, status, detail)
