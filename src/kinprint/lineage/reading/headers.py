"""Opening models for a comparison: as few headers as the level needs.

A model of a hundred billion weights lies in some forty shards whose headers and index make
eight megabytes for a pair. A comparison looks into a dozen layers, so it reads the headers of
the shards that hold these; where they lie is guessed from lengths and corrected by what the
headers say.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate

from kinprint.errors import naming
from kinprint.lineage.reading.levels import LevelPlan, StepKind, choose_layers, spread_layers
from kinprint.lineage.reading.tower import main_stack
from kinprint.model.geometry import geometry_of
from kinprint.model.model import Model
from kinprint.model.opening import may_be_adapter, open_model, open_partly
from kinprint.model.places import places_of
from kinprint.reader.checkpoint import Checkpoint
from kinprint.reader.fetch import side_by_side
from kinprint.records import TensorSpec

_ROUNDS = 6  # of headers; most layers are found in the second
_SHARE = 2  # of what a level reads of a model, all headers may have this part
_NORMS = ("norm_in", "norm_post_attn")
_HEADS = ("k", "q")
_UNITS = ("down", "up")
_EXPERTS = 2
_MOST_LAYERS = 4096  # ten times the deepest model published
_DRAFTING = "num_nextn_predict_layers"
_MOST_DRAFTING = 4  # layers; published models have up to three
# A layer has a number of few digits, as for names everywhere; others are a stranger's.
_TWO_NUMBERS = r"(?s)\.([0-9]{1,9})(?=\.).*?\.([0-9]+)\."

Found = dict[int, set[int]]
"""By layer, the numbers of the shards that hold something of it, experts included."""


def open_with_few_headers(
    checkpoints: Sequence[Checkpoint],
    level: LevelPlan,
    base: str | None = None,
    limit: int | None = None,
) -> list[Model]:
    """Read the headers that a level needs, of all models side by side.

    Those of many shards are read as far as the level allows, and `limit` bytes of each model.
    """

    def open_one(checkpoint: Checkpoint) -> Model:
        with naming(checkpoint.ref.given):
            if not _needs_some_headers(checkpoint, level):
                return open_model(checkpoint, base)
            return _open_shards_of_layers(checkpoint, level, level.limit(limit))

    return side_by_side(open_one, checkpoints)


def _needs_some_headers(checkpoint: Checkpoint, level: LevelPlan) -> bool:
    """Whether a model has so many shards that only some of their headers are read.

    Not of one that is read whole: what is found must not depend on how it was cut into files. An
    index that says which files are the model is no reason to read them all.
    """
    whole = may_be_adapter(checkpoint) or (level.index and checkpoint.index is not None)
    length = sum(checkpoint.files[shard].size for shard in checkpoint.shards)
    whole = whole or bool(checkpoint.components) or length <= (level.limit() or level.whole)
    return not whole and len(checkpoint.shards) > level.layers and _depth(checkpoint) is not None


def _depth(checkpoint: Checkpoint) -> int | None:
    """How many layers there are as the configuration says; None where it says nothing credible."""
    said = geometry_of(checkpoint.config).layers
    return None if said is None or said > _MOST_LAYERS else said


def _open_shards_of_layers(checkpoint: Checkpoint, level: LevelPlan, limit: int | None) -> Model:
    """The model as far as the shards with the norms of some layers tell, and one layer's heads.

    Two shards are looked at first, from which follows how layers go with shards, beside the first
    and the last one: what belongs to no layer lies there. All are read where there are more layers
    than the configuration says, and where layers do not lie together, if that is cheap. Nothing
    more is read where that would go beyond the limit, as far as the headers before it tell.
    """
    shards, depth = checkpoint.shards, _depth(checkpoint) or 1
    layers = spread_layers(depth, level.layers, level.shift)
    wanted = _wanted(level, layers, depth, bool(geometry_of(checkpoint.config).experts))
    thirds = {layers[len(layers) // 3], layers[2 * len(layers) // 3]}
    to_read = {_shard_by_length(checkpoint, layer, depth) for layer in thirds}
    to_read |= {0, len(shards) - 1}
    number_of = {shard: at for at, shard in enumerate(shards)}
    towers = _Towers()
    read: set[int] = set()
    few = _FewExperts()
    for _ in range(_ROUNDS):
        opened = open_partly(checkpoint, [shards[at] for at in sorted(to_read)], few.is_no_expert)
        towers.note(opened, few, number_of)
        found, roles = towers.found, towers.roles
        read |= to_read
        missing = {layer for layer, role in wanted if role not in roles[layer]}
        guesses = [_next_shard(found, layer, read, len(shards)) for layer in missing]
        to_read = {at for at in guesses if at is not None}
        beyond = _is_beyond(limit, checkpoint, [shards[at] for at in to_read])
        if not to_read or beyond:
            break
    drafting = checkpoint.config.get(_DRAFTING)
    known = min(drafting, _MOST_DRAFTING) if isinstance(drafting, int) else 0
    hidden = any(layer >= depth + known for layer, held in roles.items() if held)
    most = level.whole if limit is None else limit
    cheap = checkpoint.all_headers_bytes * _SHARE <= most
    beyond = beyond or (hidden and _is_beyond(limit, checkpoint, shards))
    if not beyond and (hidden or (cheap and _apart(towers, layers, read, len(shards)))):
        return open_model(checkpoint)
    model = open_partly(checkpoint, [shards[at] for at in sorted(read)], few.is_kept)
    model.cut_short = beyond
    return model


def _is_beyond(limit: int | None, checkpoint: Checkpoint, shards: Sequence[str]) -> bool:
    """Whether the headers of some more shards are likely to cost more than a limit."""
    more = checkpoint.unread_bytes(shards)
    return limit is not None and more > 0 and checkpoint.known_bytes + more > limit


def _apart(towers: _Towers, layers: Sequence[int], read: set[int], count: int) -> bool:
    """Whether a layer was not found, or lacks norms and may have more in shards that were not read.

    It has none where its shards are together between two that were read, as all layers are then;
    one without any norm, where others have some, may have them apart.
    """
    found, roles = towers.found, towers.roles
    norms = {role for held in roles.values() for role in held} & {*_NORMS}
    lacking = [layer for layer in layers if not norms or not norms <= roles[layer]]
    enclosed = all(found[layer] and _around(found[layer], count) <= read for layer in lacking)
    together = all(_between(shards) & read <= shards for shards in found.values())
    beside = not norms or all(norms & roles[layer] for layer in lacking)
    return bool(lacking) and not (enclosed and together and beside)


def _between(shards: set[int]) -> set[int]:
    """Shards from the first to the last of some."""
    return set(range(min(shards, default=0), max(shards, default=-1) + 1))


def _around(shards: set[int], count: int) -> set[int]:
    """The same with the one before and the one after."""
    return {at + by for at in _between(shards) for by in (-1, 0, 1)} & {*range(count)}


class _Towers:
    """Where layers lie and what they hold, as far as headers told; asked about the main tower.

    Layers of a tower for pictures have the same numbers. Experts are known by their names alone,
    of which the beginning tells the tower.
    """

    def __init__(self) -> None:
        self._found: dict[str, Found] = defaultdict(lambda: defaultdict(set))
        self._roles: dict[str, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
        self._beginnings: dict[str, str] = {}
        self._stacks: set[str] = set()

    @property
    def found(self) -> Found:
        """By layer, the numbers of the shards that hold something of it."""
        return self._found[self._main]

    @property
    def roles(self) -> dict[int, set[str]]:
        """By layer, what it holds beside experts."""
        return self._roles[self._main]

    def note(self, opened: Model, few: _FewExperts, number_of: Mapping[str, int]) -> None:
        """Take in what some more shards hold."""
        self._stacks.update(opened.stacks)
        for address, place in places_of(opened.weights.values()).items():
            tower, layer = address.tower, address.layer
            if layer is not None:
                spec = place.weight.spec
                self._found[tower][layer].add(number_of[spec.file])
                words = address.role.partition(":")[0].split("/")  # keys and values may be one
                self._roles[tower][layer].update(words)
                self._beginnings[spec.name.partition(f".{layer}.")[0]] = tower
        for file, beginning, layer in few.seen:
            tower = self._beginnings.get(beginning, self._main)
            self._found[tower][layer].add(number_of[file])

    @property
    def _main(self) -> str:
        return main_stack(sorted(self._stacks))


def _wanted(
    level: LevelPlan, layers: Sequence[int], depth: int, with_experts: bool
) -> list[tuple[int, str]]:
    """Layers and roles that the steps of a level read first, in every model.

    Experts are listed by themselves, in whichever shards are known.
    """
    wanted = [(layer, role) for layer in layers for role in _NORMS]
    for step in level.steps:
        roles: tuple[str, ...] = _HEADS if step.kind is StepKind.ATTENTION else ()
        if step.kind is StepKind.UNITS and not with_experts:
            roles = _UNITS
        some = choose_layers(layers, depth, step.layers, level.shift) if roles else ()
        wanted += [(layer, role) for layer in some for role in roles]
    return wanted


class _FewExperts:
    """Keeps the first experts of a layer in a shard: thousands more would only cost time.

    A name is taken apart once, however often its tensor is asked about. Which layers' experts a
    file holds is noted.
    """

    def __init__(self) -> None:
        self._first: dict[tuple[str, str, str], set[str]] = defaultdict(set)
        self._kept: set[str] = set()
        self._two_numbers = re.compile(_TWO_NUMBERS)

    def is_no_expert(self, spec: TensorSpec) -> bool:
        """Whether a tensor is none of an expert's; which experts are kept is noted on the way."""
        name = spec.name
        numbers = self._two_numbers.search(name)
        if numbers is None:
            self._kept.add(name)
            return True
        layer, expert = numbers.groups()
        first = self._first[spec.file, name[: numbers.start()], layer]
        if expert in first or len(first) < _EXPERTS:
            first.add(expert)
            self._kept.add(name)
        return False

    @property
    def seen(self) -> Iterator[tuple[str, str, int]]:
        """Files, and a layer of which they hold experts, after how its names begin."""
        return ((file, beginning, int(layer)) for file, beginning, layer in self._first)

    def is_kept(self, spec: TensorSpec) -> bool:
        """Whether a tensor that was asked about is one of the few."""
        return spec.name in self._kept


def _shard_by_length(checkpoint: Checkpoint, layer: int, depth: int) -> int:
    """The shard that holds the middle of a layer if all layers are equally long."""
    sizes = [checkpoint.files[shard].size for shard in checkpoint.shards]
    ends = list(accumulate(sizes))
    middle = (layer + 0.5) / depth * ends[-1]
    return min(bisect_right(ends, middle), len(sizes) - 1)


def _next_shard(found: Found, layer: int, read: set[int], count: int) -> int | None:
    """The shard to look at next for what is missing of a layer; None if there is none.

    It is beside the part of the layer that was found, or on the line through the nearest
    layers below and above, or through the outermost two.
    """
    if found[layer]:
        around: tuple[int, ...] = (max(found[layer]) + 1, min(found[layer]) - 1)
    else:
        last = {known: max(shards) for known, shards in found.items() if shards}
        guess = _shard_on_line(last, layer)
        around = (guess, guess + 1, guess - 1)
    return next((at for at in around if 0 <= at < count and at not in read), None)


def _shard_on_line(shard_of: Mapping[int, int], layer: int) -> int:
    """The shard of a layer if shards grow evenly between the layers whose shards are known."""
    known = sorted(shard_of)
    if len(known) < 2:
        return shard_of[known[0]] + (1 if layer > known[0] else -1) if known else 0
    below = [one for one in known if one < layer]
    above = [one for one in known if one > layer]
    low, high = (below[-1], above[0]) if below and above else (known[0], known[-1])
    return round(shard_of[low] + (shard_of[high] - shard_of[low]) * (layer - low) / (high - low))
