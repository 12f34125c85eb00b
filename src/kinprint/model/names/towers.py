"""Which tower a tensor is in: the text model, its encoder or decoder, vision, audio, others.

Names say most of it. Where they do not, widths do: a stack that is nowhere as wide as the
configuration's text model, beside one that is, belongs to something else.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from kinprint.model.names.patterns import Pattern
from kinprint.model.names.tables import Family, Tables, Word
from kinprint.records import Role

SIDE, EACH_STACK = "side", "*"
BESIDE = ".*"
"""How names of towers end that are known by the beginning of their tensors' names alone."""
PROJECTOR = "projector"
"""The name of the tensors between towers, which belong to none."""
_VISION = "vision"
_MERGER = "merger"  # the projector of Qwen's vision towers, which lies inside of them
Towers = dict[int, str | None]
Stack = tuple[str, ...]

_STACK_NAMES = {"encoder": "encoder", "enc": "encoder", "decoder": "decoder", "dec": "decoder"}
_SMALLEST = 1 / 64  # of an encoder and its decoder, as a share of the larger: some have one layer
_NORMS = frozenset({Role.NORM_IN, Role.NORM_POST_ATTN, Role.NORM_PRE_FFN, Role.NORM_POST_FFN})
_MATRICES = frozenset({Role.Q, Role.K, Role.V, Role.QKV, Role.UP})


def tower_of(pattern: Pattern, family: Family, tables: Tables) -> str | None:
    """The tower that a pattern's place opens by name, None for the text model."""
    segments = pattern.stack if pattern.layered else pattern.parts
    outer = next((segment for segment in segments if segment != "model"), "")
    if named := family.towers.get(f"^{outer}"):
        if named != EACH_STACK:
            return named
        return ".".join(segments[:-1] or segments) if pattern.layered else None
    for segment in segments:
        if named := family.towers.get(segment) or tables.towers.get(segment):
            merged = named == _VISION and any(_MERGER in one for one in segments)
            return PROJECTOR if merged else named
    for segment in segments:
        for text, name in tables.tower_parts:
            if text in segment and segment not in tables.top:
                return name
    return None


def split_stacks(patterns: Sequence[Pattern], towers: Towers) -> None:
    """Name encoder and decoder apart where a model has both side by side.

    Next to nothing is neither: a handful of numbers beside a model does not make it a decoder.
    """
    places: dict[Stack, Counter[str]] = defaultdict(Counter)
    for pattern in patterns:
        if pattern.layered and towers[id(pattern)] is None:
            for index, segment in enumerate(pattern.stack):
                if segment in _STACK_NAMES:
                    places[pattern.stack[:index]][_STACK_NAMES[segment]] += pattern.numbers
                    break
    for before, names in places.items():
        if len(names) < 2 or min(names.values()) < _SMALLEST * max(names.values()):
            continue
        depth = len(before)
        for pattern in patterns:
            path = pattern.stack or pattern.parts
            if towers[id(pattern)] is None and len(path) > depth and path[:depth] == before:
                towers[id(pattern)] = _STACK_NAMES.get(path[depth])


def split_by_width(
    patterns: Sequence[Pattern],
    words: Mapping[int, Word | None],
    towers: Towers,
    hidden: int | None,
) -> None:
    """Set stacks of another width apart, with what lies beside their layers."""
    if hidden is None:
        return
    norms: dict[Stack, set[int]] = defaultdict(set)
    matrices: dict[Stack, set[int]] = defaultdict(set)
    for pattern in patterns:
        word = words[id(pattern)]
        if word is None or not pattern.layered or towers[id(pattern)] is not None:
            continue
        if word.role in _NORMS and len(pattern.shape) == 1:
            norms[pattern.stack].update(pattern.shape)
        elif word.role in _MATRICES and len(pattern.shape) == 2:
            matrices[pattern.stack].update(pattern.shape)
    sizes = {**matrices, **norms}  # a norm's length says more than any axis of a matrix
    own = [stack for stack, found in sizes.items() if any(size % hidden == 0 for size in found)]
    others = [stack for stack in sizes if stack not in own]
    if not own:
        return
    for root in {root_of(stack, own) for stack in others}:
        for pattern in patterns:
            if towers[id(pattern)] is None and is_inside(pattern, root):
                towers[id(pattern)] = SIDE


def is_inside(pattern: Pattern, root: Stack) -> bool:
    """Whether a pattern lies below a place: what is called like the place itself does not."""
    path = pattern.stack if pattern.layered else pattern.parts[:-1]
    return path[: len(root)] == root


def common_length(stack: Stack, other: Stack) -> int:
    """How many segments two places have in common at their beginning."""
    pairs = enumerate(zip(stack, other, strict=False))
    shorter = min(len(stack), len(other))
    return next((index for index, (one, two) in pairs if one != two), shorter)


def root_of(stack: Stack, own: Iterable[Stack]) -> Stack:
    """The shortest beginning of a stack's place that none of the model's own stacks shares."""
    return stack[: max(common_length(stack, other) for other in own) + 1]
