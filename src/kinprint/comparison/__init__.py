"""Two models in, a relation out: opening, reading, testing and judging put together."""

from kinprint.comparison.claims import Claim
from kinprint.comparison.comparing import compare_all, compare_models, foresee
from kinprint.comparison.configuration import Setting
from kinprint.comparison.controls import Control
from kinprint.comparison.families import Branch
from kinprint.comparison.findings import (
    ALPHA,
    Comparison,
    Matrix,
    PairVerdict,
    Prospect,
    Settings,
    Unread,
)
from kinprint.comparison.subjects import CommonTokens, Description, TokenizerFile

__all__ = [
    "ALPHA",
    "Branch",
    "Claim",
    "CommonTokens",
    "Comparison",
    "Control",
    "Description",
    "Matrix",
    "PairVerdict",
    "Prospect",
    "Setting",
    "Settings",
    "TokenizerFile",
    "Unread",
    "compare_all",
    "compare_models",
    "foresee",
]
