"""How tensors are stored: which way round, fused with what, stacked, in pairs.

`layouts.toml` is the table of families; `rules` applies it to one tensor, `parts` describes the
result, `sizes` looks up what the table speaks of in a configuration, and `slices` plans reading.
"""

from kinprint.model.layout.parts import IN_OUT, OUT_IN, Layout, StoredPart, pattern_of
from kinprint.model.layout.rules import layout_of
from kinprint.model.layout.slices import Cut, cut

__all__ = [
    "IN_OUT",
    "OUT_IN",
    "Cut",
    "Layout",
    "StoredPart",
    "cut",
    "layout_of",
    "pattern_of",
]
