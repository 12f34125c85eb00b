"""Adapters as updates to a base: rows of the merged model, reading only what they need."""

from __future__ import annotations

from kinprint.model.adapters.matching import Matched, match_updates
from kinprint.model.adapters.parsing import Adapter, Piece, Scaling, parse_adapter
from kinprint.model.adapters.update import Update, merged_rows, needed

__all__ = [
    "Adapter",
    "Matched",
    "Piece",
    "Scaling",
    "Update",
    "match_updates",
    "merged_rows",
    "needed",
    "parse_adapter",
]
