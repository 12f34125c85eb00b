"""One measured number with its standing: whether it is a number, and if not, why.

A missing value must reach the report as a row that says so, never as a crash or a silent
NaN among numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

Status = Literal[
    "ok", "undefined", "nonfinite", "shape_mismatch", "dtype_mismatch", "empty", "overflow"
]


@dataclass(frozen=True, slots=True)
class Measurement:
    """A value and its status; the value is NaN unless the status is "ok".

    `detail` holds the facts without prose: the two shapes, how many values are no numbers,
    or which of the reasons in the catalogues (`measure.reason`) applies ("zero", "constant", …).
    """

    value: float
    status: Status
    detail: str = ""

    @property
    def ok(self) -> bool:
        """Whether there is a value."""
        return self.status == "ok"


def missing(status: Status, detail: str = "") -> Measurement:
    """A measurement that could not be had."""
    return Measurement(math.nan, status, detail)
