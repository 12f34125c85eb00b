"""Pairs of the short form about which something false is said today, each with the reason.

A pair leaves this list when it is told truly: its test fails until then.
"""

from __future__ import annotations

_REASONS = {
    "parts that contradict each other end the comparison":
        "broken-embedding-narrower",
    "some copied numbers of a part pass for one initialisation":
        "half-the-units",
    "power is stated without saying which parts and which transformations it covers":
        "feed-forward-copied feed-forwards-copied attention-copied embedding-copied head-copied "
        "gates-copied scattered-numbers embedding-copied-framed average-5 gains-overwritten "
        "channels-permuted rotated laundered-copy laundered-descendant laundered-with-gains "
        "laundered-with-split-units laundered-with-swapped-gates",
    "a part whose units, signs or place may have been changed is called no trace":
        "function-equal units-permuted dead-units signs-flipped swapped-gates upcycled-shuffled "
        "heads-pruned layer-copied layer-copied-renumbered layer-moved",
    "rounded parts are not told from others in a sample":
        "cast-fp8 cast-int8 cast-gguf-q4",
    "what was not read counts as the same":
        "embedding-replaced scaled",
    "a numbering that was arranged passes for one initialisation":
        "framed-with-values",
    "gains of strangers within a step of a coarse grid count as equal after rounding":
        "strangers-few-values strangers-all-in-fp8 strangers-in-narrow-gains",
    "what is equal in one tower is not told apart from the others":
        "vision-tower-shared encoder-of-a-multimodal-model encoder-shared text-model-as-encoder",
}  # fmt: skip
KNOWN_FALSE = {name: reason for reason, names in _REASONS.items() for name in names.split()}
"""Why something false is said, by the name of the pair."""
