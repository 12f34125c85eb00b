"""Pairs of the short form about which something false is said today, each with the reason.

A pair leaves this list when it is told truly: its test fails until then.
"""

from __future__ import annotations

_REASONS = {
    "parts that contradict each other end the comparison":
        "broken-embedding-narrower",
    "one copied part drowns in averages, so that the kind is same-init or undecided":
        "layer-copied feed-forward-copied attention-copied layer-moved "
        "half-the-units average-5 gains-overwritten layer-copied-renumbered gates-copied "
        "scattered-numbers",
    "power is stated without saying which parts and which transformations it covers":
        "feed-forwards-copied embedding-copied head-copied channels-permuted rotated",
    "a part whose units or signs may have been renamed is called no trace":
        "function-equal units-permuted dead-units signs-flipped swapped-gates upcycled-shuffled",
    "equality after rounding, under other names or in a sample has no relation of its own":
        "cast-fp32 cast-fp16 cast-from-master cast-fp8 cast-int8 cast-gguf-q4 renamed "
        "renamed-to-numbers other-shards fused",
    "the invariants have no tier that decides":
        "laundered-copy laundered-descendant laundered-with-gains laundered-with-split-units "
        "laundered-with-swapped-gates",
    "a numbering that was arranged passes for one initialisation or for a descendant":
        "embedding-copied-framed",
    "what is equal in one tower is not told apart from the others":
        "vision-tower-shared encoder-of-a-multimodal-model encoder-shared "
        "text-model-as-encoder",
}  # fmt: skip
KNOWN_FALSE = {name: reason for reason, names in _REASONS.items() for name in names.split()}
"""Why something false is said, by the name of the pair."""
