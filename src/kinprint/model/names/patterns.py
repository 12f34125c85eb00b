"""Names cut into what repeats and what is looked up: stack, layer, expert, part, ending.

A model has tens of thousands of names and a few hundred patterns; everything that thinks
works on patterns, and only numbers are read from each name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import prod

from msgspec import Struct, field

from kinprint.model.names.tables import Ending, Tables
from kinprint.records import TensorSpec

# No model has ten digits of layers; longer numbers are part of a name.
_NUMBER = re.compile(r"(?:expert_)?([0-9]{1,9})")
_STAR, _LAYER, _EXPERT = "*", "#", "@"
_ENDS = 3  # segments after an expert's number
# Segments that training tools put into names, anywhere: they wrap what is already there.
_WRAPPERS = ("_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module", "base_layer")
_WRAPPED = re.compile(rf"(?<![^.])(?:{'|'.join(_WRAPPERS)})\.")
ADAPTED = ("lora_", "plora_", "ia3_", "hada_", "lokr_", "oft_", "vera_")
"""How segments begin that name an update of a weight."""


class Pattern(Struct):
    """All tensors whose names differ by layer and expert number alone.

    `stack` are the segments up to the layer number (none outside layers), `parts` those
    after it without their ending; `ending` is what kind of companion the ending makes it.
    `shape` is that of the first tensor, `numbers` counts the elements of all of them.
    """

    text: str
    stack: tuple[str, ...]
    parts: tuple[str, ...]
    ending: Ending | None
    layered: bool
    marked: bool
    shape: tuple[int, ...]
    dtype: str
    adapter: str | None = None
    numbers: int = 0
    tensors: int = 0

    @property
    def part(self) -> str:
        """The part of the block, numbers left out."""
        return ".".join(plain_parts(self.parts))

    @property
    def is_weight(self) -> bool:
        """Whether this is the thing itself, not a bias or a companion."""
        return self.adapter is None and (self.ending is None or self.ending.role is None)


class Patterns(Struct):
    """The patterns of a model, and each tensor's pattern, layer and expert."""

    patterns: list[Pattern] = field(default_factory=list)
    places: list[tuple[Pattern, int | None, int | None]] = field(default_factory=list)


class _Plan(Struct, frozen=True):
    """Which segment of a name is the layer, which the expert; other numbers are spelled out.

    A place is the same as a piece of the name and a segment in it.
    """

    layer: int | None
    expert: int | None
    literal: tuple[int, ...]
    layer_place: tuple[int, int]
    expert_place: tuple[int, int]


class _Stars(dict[str, str]):
    """Pieces of names, with a star for each segment that is a number.

    A star in a name is none. Names share most of their pieces, each of which is read once.
    """

    def __missing__(self, piece: str) -> str:
        star = self[piece] = ".".join(
            _STAR if _NUMBER.fullmatch(segment) else segment.replace(_STAR, "?")
            for segment in piece.split(".")
        )
        return star


class _Numbers(dict[str, list[int]]):
    """What the segments of a piece count, in their order; -1 for those that are no numbers."""

    def __missing__(self, piece: str) -> list[int]:
        numbers = self[piece] = [
            int(_digits(segment)) if _NUMBER.fullmatch(segment) else -1
            for segment in piece.split(".")
        ]
        return numbers


class _Counts(dict[tuple[int, ...], int]):
    """How many numbers a tensor of some shape has."""

    def __missing__(self, shape: tuple[int, ...]) -> int:
        count = self[shape] = prod(shape)
        return count


def _digits(segment: str) -> str:
    return segment.removeprefix("expert_")


def plain_parts(parts: Sequence[str]) -> list[str]:
    """Parts without numbers, since a part's meaning seldom depends on which copy it is."""
    return [part for part in parts if not is_number(part) and part != _EXPERT]


def is_number(part: str) -> bool:
    """Say whether a segment is a number by which copies are told apart."""
    return part.isascii() and part.isdigit() and len(part) < 10


def unwrapped(name: str) -> str:
    """A name as it was before tools for training wrapped the modules it leads through."""
    return _WRAPPED.sub("", name)


def read_patterns(tensors: Sequence[TensorSpec], tables: Tables) -> Patterns:
    """Find the patterns of all names in one pass."""
    result = Patterns()
    plans: dict[str, _Plan] = {}
    known: dict[tuple[str, tuple[str, ...], bool], Pattern] = {}
    counts = _Counts()
    marked = _marked_modules(tensors, tables)
    names = "\n".join([spec.name for spec in tensors])
    wrapped = any(word in names for word in _WRAPPERS)
    star, numbers = _Stars().__getitem__, _Numbers()
    for spec in tensors:
        name = unwrapped(spec.name) if wrapped else spec.name
        pieces = name.rsplit(".", _ENDS)  # the first is the same for all experts of a layer
        starred = ".".join(map(star, pieces))
        plan = plans.get(starred)
        if plan is None:
            plan = plans[starred] = _plan(starred, tables)
        literal: tuple[str, ...] = ()
        if plan.literal:
            segments = name.split(".")
            literal = tuple([_digits(segments[at]) for at in plan.literal])
        inside = bool(marked) and _inside(spec.name, marked)
        key = (starred, literal, inside)
        pattern = known.get(key)
        if pattern is None:
            pattern = known[key] = _pattern(starred, plan, literal, inside, spec, tables)
            result.patterns.append(pattern)
        pattern.numbers += counts[spec.shape]
        pattern.tensors += 1
        layer = expert = None
        if plan.layer is not None:
            piece, at = plan.layer_place
            layer = numbers[pieces[piece]][at]
        if plan.expert is not None:
            piece, at = plan.expert_place
            expert = numbers[pieces[piece]][at]
        result.places.append((pattern, layer, expert))
    return result


def _marked_modules(tensors: Sequence[TensorSpec], tables: Tables) -> set[str]:
    """Modules that hold a state-space parameter, whatever their own name is."""
    lasts = {spec.name.rpartition(".")[2] for spec in tensors}
    marks = {last for last in lasts if last.lower() in tables.state_space_marks}
    ends = (spec.name.rpartition(".") for spec in tensors if marks)
    return {module for module, _, last in ends if last in marks}


def _inside(name: str, modules: set[str]) -> bool:
    for _ in range(3):
        name = name.rpartition(".")[0]
        if name in modules:
            return True
    return False


def _plan(starred: str, tables: Tables) -> _Plan:
    """Tell a name's numbers apart by the segment before each."""
    segments = starred.lower().split(".")
    places = [index for index, segment in enumerate(segments) if segment == _STAR]
    layer = expert = None
    for index in places:
        before = segments[index - 1] if index else ""
        if layer is None and (before in tables.containers or before in tables.containers_named):
            layer = index
        elif expert is None and "expert" in before and "shared" not in before:
            expert = index
    if layer is None:
        layer = _layer_by_zone(segments, places, expert, tables)
    literal = tuple(index for index in places if index not in (layer, expert))
    of_layer, of_expert = (_place(index or 0, len(segments)) for index in (layer, expert))
    return _Plan(layer, expert, literal, of_layer, of_expert)


def _place(index: int, segments: int) -> tuple[int, int]:
    """The piece that a segment is in, and its place there: the first piece has many."""
    first = max(segments - _ENDS, 1)
    return (0, index) if index < first else (index - first + 1, 0)


def _layer_by_zone(
    segments: Sequence[str], places: Sequence[int], expert: int | None, tables: Tables
) -> int | None:
    """In an unknown container, the first number that a part of a block follows."""
    for index in places:
        if index != expert and any(part in tables.zones for part in segments[index + 1 :]):
            return index
    return None


def _pattern(
    starred: str,
    plan: _Plan,
    literal: Sequence[str],
    marked: bool,
    spec: TensorSpec,
    tables: Tables,
) -> Pattern:
    segments = starred.lower().split(".")
    place = plan.layer
    for index, digits in zip(plan.literal, literal, strict=True):
        segments[index] = digits
    if place is not None:
        segments[place] = _LAYER
    if plan.expert is not None:
        segments[plan.expert] = _EXPERT
    stack = () if place is None else tuple(segments[:place])
    parts = segments if place is None else segments[place + 1 :]
    if stack and stack[-1] in tables.containers_named:
        parts = [stack[-1], *parts]
    parts, adapter = _without_adapter(parts)
    kept, ending = _without_ending(parts, tables)
    return Pattern(
        text=starred,
        stack=stack,
        parts=tuple(kept),
        ending=ending,
        layered=place is not None,
        marked=marked,
        shape=spec.shape,
        dtype=spec.dtype,
        adapter=adapter,
    )


def _without_adapter(parts: list[str]) -> tuple[list[str], str | None]:
    for index, part in enumerate(parts):
        if part.startswith(ADAPTED):
            return parts[:index], part
    return parts, None


def _without_ending(parts: list[str], tables: Tables) -> tuple[list[str], Ending | None]:
    for length in (3, 2, 1):
        if length < len(parts):
            ending = tables.suffixes.get(".".join(parts[-length:]))
            if ending is not None:
                return parts[:-length], ending
    if len(parts) > 1 and parts[-1] == "scale" and "norm" in parts[-2]:
        return parts[:-1], Ending()
    return parts, None
