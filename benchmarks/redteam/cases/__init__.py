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

__all__ = ["CASES", "SHORT", "WITHIN_THE_PACKAGE", "Case"]

SHORT = (
    # parts taken over
    "layer-copied", "attention-copied", "embedding-copied", "norms-copied", "layer-moved",
    "half-the-units", "feed-forwards-copied", "narrower-feed-forwards", "final-norm-copied",
    "gates-copied", "head-copied", "tables-crossed", "scattered-numbers", "embedding-replaced",
    "laundered-with-a-raw-layer", "some-units-with-noise", "keys-as-values",
    "input-norms-with-noise",
    # stored otherwise
    "identical", "cast-fp32", "cast-from-master", "cast-int8", "whole-numbers-without-scales",
    "cast-gguf-q4", "renamed", "other-shards", "cast-nf4", "untied-head", "fused", "rows-moved",
    "vocabulary-extended", "one-number-changed",
    # renumbered, rotated, laundered
    "gains-overwritten", "units-permuted", "channels-permuted", "rotated", "signs-flipped-folded",
    "scaled", "scaled-out-of-sight", "swapped-gates", "laundered-copy", "laundered-with-gains",
    "laundered-with-swapped-gates",
    # framed
    "framed", "framed-by-rotation", "framed-with-gains", "framed-by-gains", "framed-with-columns",
    "framed-with-rows", "framed-by-one-layer", "framed-with-large-heads",
    "framed-with-a-narrow-feed-forward", "tuned-with-gains-moved",
    "tuned-beside-framed-attention", "embedding-copied-framed",
    # merged, pruned, grown
    "fine-tuned", "average-50", "average-5", "low-rank-update", "same-update", "depth-upscaled",
    "upcycled-shuffled", "heads-pruned", "depth-pruned-and-tuned",
    # started alike
    "twins-hardly-trained", "twins-with-unseen-tokens", "twins-on-the-same-data",
    "twins-hardly-trained-with-gains", "first-weights-with-gains", "strangers-one-frozen-draw",
    "strangers-random-frozen-embedding",
    # towers
    "vision-tower-shared", "encoder-of-a-multimodal-model", "language-model-of-a-multimodal-model",
    "multimodal-strangers", "text-model-as-encoder", "projector-copied", "merger-copied",
    # other architectures
    "cross-attention-copied", "positions-copied", "strangers-speech", "strangers-state-space-heads",
    # strangers
    "strangers", "strangers-one-pattern", "strangers-equal-tables", "strangers-principal-axes",
    "strangers-one-pattern-and-codebook", "strangers-all-in-fp8", "strangers-laundered",
    "strangers-cloned-units",
    # numbers that tell nothing
    "cast-narrow-gains-to-fp8", "strangers-computed-tables", "strangers-gains-of-a-formula",
    "strangers-began-as-the-identity", "strangers-positions-in-the-embedding",
    "strangers-channels-sorted-by-mean", "strangers-hadamard-outputs", "outputs-of-other-formulas",
    # broken files
    "broken-norm-too-short", "broken-gate-narrower", "broken-embedding-narrower",
    "broken-layer-missing", "broken-empty-tensor", "broken-not-finite-gate",
    "broken-config-other-heads",
)  # fmt: skip
"""Names of the pairs that `make test` compares: one or two of a kind."""
WITHIN_THE_PACKAGE = tuple(
    name for name, case in CASES.items() if not case.needs and not case.large
)
"""Names of the pairs for which the models of the package suffice, all of those above among them."""
