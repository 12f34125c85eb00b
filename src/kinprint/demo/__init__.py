"""Four small trained models that come with kinprint, and what is known about them.

They lie in `FOLDER/zoo` as a repository on the Hub would hold them: `kinprint demo` serves
`FOLDER` from a mirror, and the tests do the same.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

from msgspec import Struct

FOLDER = Path(__file__).resolve().parent


class History(StrEnum):
    """What was done to make the second model of a pair."""

    DESCENDANT = "descendant"
    LAUNDERED = "laundered"
    STRANGER = "stranger"


class KnownPair(Struct, frozen=True):
    """Two of the models, by their names on the mirror, and how the second was made."""

    a: str
    b: str
    history: History


PAIRS = (
    KnownPair("zoo/base-a", "zoo/a-cpt", History.DESCENDANT),
    KnownPair("zoo/base-a", "zoo/a-rotated", History.LAUNDERED),
    KnownPair("zoo/base-a", "zoo/base-b", History.STRANGER),
)
