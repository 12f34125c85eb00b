"""All crafted pairs, by family, and those of the short form."""

from benchmarks.redteam.cases import (  # noqa: F401
    architectures,
    broken,
    hostile,
    merged,
    relabelled,
    stored,
    strangers,
    taken,
    towers,
    trained,
    uninformative,
)
from benchmarks.redteam.cases.registry import CASES, Case

__all__ = ["CASES", "SHORT", "Case"]

SHORT = (
    # parts taken over
    "layer-copied", "feed-forward-copied", "two-layers-with-noise", "attention-copied",
    "embedding-copied", "norms-copied", "layer-moved", "layer-copied-renumbered",
    "half-the-units", "four-layers-of-six", "feed-forwards-copied", "narrower-feed-forwards",
    "final-norm-copied", "gates-copied", "head-copied", "scattered-numbers", "embedding-replaced",
    "complementary-halves", "laundered-with-a-raw-layer", "laundered-with-a-raw-embedding",
    "some-units-with-noise", "gates-renumbered", "keys-as-values", "input-norms-with-noise",
    "outputs-with-noise",
    # stored otherwise
    "identical", "cast-fp32", "cast-fp16", "cast-from-master", "cast-fp8", "cast-int8",
    "whole-numbers-without-scales",
    "cast-gguf-q4", "cast-of-a-descendant", "renamed", "renamed-to-numbers", "other-shards",
    "cast-master-fp16-bf16", "cast-nf4", "renamed-one-changed", "untied-head",
    "fused", "rows-moved", "vocabulary-extended", "one-number-changed",
    # renumbered, rotated, laundered
    "gains-overwritten", "function-equal", "half-renumbered", "units-permuted",
    "channels-permuted", "rotated",
    "signs-flipped", "signs-flipped-folded", "scaled", "scaled-out-of-sight", "dead-units",
    "swapped-gates", "laundered-copy",
    "laundered-descendant", "laundered-with-gains", "laundered-with-split-units",
    "laundered-with-swapped-gates",
    # framed
    "framed", "framed-with-values", "framed-by-rotation", "framed-with-gains",
    "framed-by-gains", "framed-with-columns",
    "framed-with-rows", "framed-by-two-norms", "gates-copied-renumbered",
    "embedding-copied-framed",
    # merged, pruned, grown
    "fine-tuned", "average-50", "average-5", "low-rank-update", "same-update", "depth-upscaled",
    "upcycled-shuffled", "heads-pruned", "attention-redrawn",
    "depth-pruned-and-tuned",
    # started alike
    "twins-hardly-trained", "twins-with-unseen-tokens", "twins-on-the-same-data", "twins-folded",
    "first-weights-with-gains",
    "strangers-one-frozen-draw", "strangers-random-frozen-embedding",
    # towers
    "vision-tower-shared", "encoder-of-a-multimodal-model", "encoder-shared",
    "language-model-of-a-multimodal-model", "multimodal-strangers", "text-model-as-encoder",
    "projector-copied", "projector-replaced", "merger-copied",
    # other architectures
    "cross-attention-copied", "latent-keys-copied", "mixer-projections-copied",
    "positions-copied", "strangers-speech", "strangers-state-space-heads",
    # strangers
    "strangers", "strangers-one-pattern", "strangers-one-mask", "strangers-folded",
    "strangers-ternary", "strangers-q4", "strangers-equal-tables", "strangers-principal-axes",
    "strangers-few-values", "strangers-one-codebook-and-cut",
    "strangers-one-pattern-and-codebook", "strangers-one-sided-grid",
    "strangers-all-in-fp8", "strangers-in-narrow-gains",
    "strangers-laundered", "strangers-state-space",
    "strangers-cloned-units", "strangers-repeated-gates",
    # numbers that tell nothing
    "cast-narrow-gains-to-fp8", "cast-folded", "strangers-computed-tables",
    "renamed-with-computed-tables", "strangers-gains-of-a-formula",
    "strangers-began-as-the-identity", "strangers-began-near-the-identity",
    "strangers-positions-in-the-embedding", "strangers-wave-in-the-embedding",
    "strangers-channels-sorted-by-mean",
    "strangers-hadamard-outputs", "strangers-cosine-outputs", "outputs-of-other-formulas",
    # broken files
    "broken-norm-too-short", "broken-norm-a-matrix", "broken-gate-narrower",
    "broken-up-fewer-units", "broken-q-fewer-rows", "broken-embedding-narrower",
    "broken-embedding-a-vector", "broken-layer-missing", "broken-empty-tensor",
    "broken-not-finite-gate", "broken-config-other-heads",
)  # fmt: skip
"""Names of the pairs that `make test` compares; the models of the package suffice for them."""
