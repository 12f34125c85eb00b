"""Which tower a tensor is in: the text model, its encoder or decoder, vision, audio, others.

Names say most of it. Where they do not, widths do: a stack that is nowhere as wide as the
configuration's text model, beside one that is, belongs to something else.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from kinprint.model.names.patterns import Pattern
from kinprint.model.names.tables import Family, Tables, Word
from kinprint.records import Role

SIDE, EACH_STACK = "side", "*"
_VISION, _PROJECTOR = "vision", "projector"
_MERGER = "merger"  # the projector of Qwen's vision towers, which lies inside of them
Towers = dict[int, str | None]
Stack = tuple[str, ...]

_STACK_NAMES = {"encoder": "encoder", "enc": "encoder", "decoder": "decoder", "dec": "decoder"}
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
            return _PROJECTOR if merged else named
    for segment in segments:
        for text, name in tables.tower_parts:
            if text in segment and segment not in tables.top:
                return name
    return None


def split_stacks(patterns: Sequence[Pattern], towers: Towers) -> None:
    """Name encoder and decoder apart where a model has both side by side."""
    places: dict[Stack, set[str]] = defaultdict(set)
    for pattern in patterns:
        if pattern.layered and towers[id(pattern)] is None:
            for index, segment in enumerate(pattern.stack):
                if segment in _STACK_NAMES:
                    places[pattern.stack[:index]].add(_STACK_NAMES[segment])
                    break
    for before, names in places.items():
        if len(names) < 2:
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
    for root in {_root(stack, own) for stack in others}:
        for pattern in patterns:
            path = pattern.stack or pattern.parts
            if towers[id(pattern)] is None and path[: len(root)] == root:
                towers[id(pattern)] = SIDE


def _root(stack: Stack, own: Iterable[Stack]) -> Stack:
    """The shortest beginning of a stack's place that no stack of the text model shares."""
    shared = max(
        next((i for i, pair in enumerate(zip(stack, other, strict=False)) if pair[0] != pair[1]),
             min(len(stack), len(other)))
        for other in own
    )  # fmt: skip
    return stack[: shared + 1]
