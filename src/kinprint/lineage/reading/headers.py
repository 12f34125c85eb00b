"""Opening models for a comparison: as few headers as the level needs.

A model of a hundred billion weights lies in some forty shards whose headers and index make
eight megabytes for a pair. A comparison looks into a dozen layers, so it reads the headers of
the shards that hold these; where they lie is guessed from lengths and corrected by what the
headers say.
"""

from __future__ import annotations

import posixpath
import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import accumulate

from kinprint.lineage.reading.levels import Level, spread_layers
from kinprint.model.model import Model
from kinprint.model.opening import CONFIG, open_model, open_partly
from kinprint.reader.checkpoint import Checkpoint, open_checkpoint
from kinprint.reader.fetch import Fetcher, side_by_side
from kinprint.reader.formats.registry import GGUF
from kinprint.records import TensorSpec

_ROUNDS = 4  # of headers; most layers are found in the second
_NORMS = ("norm_in", "norm_post_attn")
_HEADS = ("k", "q")
_EXPERTS = 2
_NUMBER = re.compile(r"(?<=\.)\d+(?=\.)")


def open_models_of(
    given: Sequence[str], fetcher: Fetcher, level: Level, base: str | None = None
) -> list[Model]:
    """Open the models of a comparison, side by side.

    All are looked into at the same layers, which the shallowest of them has.
    """

    def open_one(name: str) -> Checkpoint:
        return open_checkpoint(name, fetcher, indexed=level.index)

    return open_layers_of(side_by_side(open_one, given), level, base)


def open_layers_of(
    checkpoints: Sequence[Checkpoint], level: Level, base: str | None = None
) -> list[Model]:
    """Read the headers that a level needs, of all models side by side."""
    depths = [depth for one in checkpoints if (depth := _depth(one)) is not None]
    common = min(depths, default=0)

    def understand(checkpoint: Checkpoint) -> Model:
        if not _is_large(checkpoint, level):
            return open_model(checkpoint, base)
        return _open_layers(checkpoint, spread_layers(common, level.layers), level)

    return side_by_side(understand, checkpoints)


def _is_large(checkpoint: Checkpoint, level: Level) -> bool:
    """Whether only some of its headers are read."""
    adapter = posixpath.join(checkpoint.choice.weights.folder, CONFIG) in checkpoint.files
    whole = checkpoint.format == GGUF or adapter or checkpoint.index is not None
    return not whole and len(checkpoint.shards) > level.layers and _depth(checkpoint) is not None


def _depth(checkpoint: Checkpoint) -> int | None:
    from kinprint.model.geometry import geometry_of

    return geometry_of(checkpoint.config).layers


def _open_layers(checkpoint: Checkpoint, layers: Sequence[int], level: Level) -> Model:
    """The model as far as the shards with these layers' norms tell, and one layer's heads.

    Two shards are looked at first; from them follows how layers go with shards.
    """
    shards, depth = checkpoint.shards, _depth(checkpoint) or 1
    wanted = [(layer, role) for layer in layers for role in _NORMS]
    if any(step.what == "attention" for step in level.steps):
        wanted += [(layers[len(layers) // 2], role) for role in _HEADS]
    thirds = {layers[len(layers) // 3], layers[2 * len(layers) // 3]}
    more: set[int] = {_by_length(checkpoint, layer, depth) for layer in thirds}
    held: dict[int, dict[str, int]] = {}
    known: set[int] = set()
    for _ in range(_ROUNDS):
        checkpoint.load_headers([shards[at] for at in sorted(more)])
        for at in sorted(more):
            for address in open_partly(checkpoint, [shards[at]], _not_an_expert).places:
                if address.layer is not None:
                    held.setdefault(address.layer, {})[address.role] = at
        known |= more
        missing = {layer for layer, role in wanted if role not in held.get(layer, {})}
        guesses = [_next(held, layer, known, len(shards)) for layer in missing]
        more = {at for at in guesses if at is not None}
        if not more:
            break
    return open_partly(checkpoint, [shards[at] for at in sorted(known)], _FewExperts())


def _not_an_expert(spec: TensorSpec) -> bool:
    return len(_NUMBER.findall(spec.name)) < 2


class _FewExperts:
    """Lets the first experts of a layer in a shard pass: thousands more would only cost time."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str], set[str]] = {}

    def __call__(self, spec: TensorSpec) -> bool:
        numbers = _NUMBER.findall(spec.name)
        if len(numbers) < 2:
            return True
        seen = self._seen.setdefault((spec.file, numbers[0]), set())
        if len(seen) < _EXPERTS:
            seen.add(numbers[1])
        return numbers[1] in seen


def _by_length(checkpoint: Checkpoint, layer: int, depth: int) -> int:
    """The shard that holds the middle of a layer if all layers are equally long."""
    sizes = [checkpoint.files[shard].size for shard in checkpoint.shards]
    ends = list(accumulate(sizes))
    at = (layer + 0.5) / depth * ends[-1]
    return min(bisect_right(ends, at), len(sizes) - 1)


def _next(
    held: Mapping[int, Mapping[str, int]], layer: int, known: set[int], count: int
) -> int | None:
    """The shard to look at next for what is missing of a layer; None if there is none.

    It is beside the part of the layer that was found, or on the line through the nearest
    layers below and above, or through the outermost two.
    """
    if layer in held:
        where = held[layer].values()
        around: tuple[int, ...] = (max(where) + 1, min(where) - 1)
    else:
        guess = _on_line({one: max(where.values()) for one, where in held.items()}, layer)
        around = (guess, guess + 1, guess - 1)
    return next((at for at in around if 0 <= at < count and at not in known), None)


def _on_line(shard: Mapping[int, int], layer: int) -> int:
    layers = sorted(shard)
    if len(layers) < 2:
        return shard[layers[0]] + (1 if layer > layers[0] else -1) if layers else 0
    below = [one for one in layers if one < layer]
    above = [one for one in layers if one > layer]
    low, high = (below[-1], above[0]) if below and above else (layers[0], layers[-1])
    return round(shard[low] + (shard[high] - shard[low]) * (layer - low) / (high - low))
