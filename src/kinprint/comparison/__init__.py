"""Two models in, a relation out: opening, reading, testing and judging put together."""

from kinprint.comparison.comparing import (
    ALPHA,
    Comparison,
    Matrix,
    PairVerdict,
    Prospect,
    Settings,
    compare_all,
    compare_models,
    foresee,
)
from kinprint.comparison.controls import Control

__all__ = [
    "ALPHA",
    "Comparison",
    "Control",
    "Matrix",
    "PairVerdict",
    "Prospect",
    "Settings",
    "compare_all",
    "compare_models",
    "foresee",
]
