"""Names cut into what repeats and what is looked up: stack, layer, expert, part, ending.

A model has tens of thousands of names, and a few hundred patterns and series of experts:
everything that thinks works on these, and only an expert's number is read from each name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from math import prod

from msgspec import Struct, field
from msgspec.structs import replace

from kinprint.model.names.tables import Ending, Tables
from kinprint.records import TensorSpec

# No model has ten digits of layers; longer numbers are part of a name.
_NUMBER = re.compile(r"(?:expert_)?([0-9]{1,9})")
_STAR, _LAYER, _EXPERT = "*", "#", "@"
_LISTED = "_projs"  # how a module ends that lists one matrix for each expert
_ENDS = 3  # segments of a name from an expert's number on
# Segments that training tools put into names, anywhere: they wrap what is already there.
_WRAPPERS = ("_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module", "base_layer")
_WRAPPED = re.compile(rf"(?<![^.])(?:{'|'.join(_WRAPPERS)})\.")
ADAPTED = ("lora_", "plora_", "ia3_", "hada_", "lokr_", "oft_", "vera_")
"""How segments begin that name an update of a weight."""


class Pattern(Struct):
    """All tensors whose names differ by layer and expert number alone.

    `stack` are the segments up to the layer number (none outside layers), `parts` those
    after it without their ending; `ending` is what kind of companion the ending makes it.
    `shape` is that of the largest tensor, `numbers` counts the elements of all of them.
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


class Series(Struct, frozen=True):
    """Tensors of one shape and type whose names differ by an expert's number alone: often one.

    `members` are their places among all tensors, in order, and `experts` their numbers.
    """

    pattern: Pattern
    layer: int | None
    members: list[int]
    experts: list[int | None]

    def apart(self) -> list[Series]:
        """The same tensors, each a series of its own."""
        return [
            Series(self.pattern, self.layer, [member], [expert])
            for member, expert in zip(self.members, self.experts, strict=True)
        ]


class Patterns(Struct):
    """The patterns of a model and the series in them, both in the order of their first tensors.

    `halved` are the stacks of which each layer is counted as two.
    """

    patterns: list[Pattern] = field(default_factory=list)
    series: list[Series] = field(default_factory=list)
    halved: frozenset[tuple[str, ...]] = frozenset()


class _Plan(Struct, frozen=True):
    """Which segment of a name is the layer, which the expert; other numbers are spelled out."""

    layer: int | None
    expert: int | None
    literal: tuple[int, ...]


class _Stars(dict[str, str]):
    """Segments of names, with a star for each that is a number; a star in a name is none."""

    def __missing__(self, segment: str) -> str:
        number = _NUMBER.fullmatch(segment)
        star = self[segment] = _STAR if number else segment.replace(_STAR, "?")
        return star


class _Plans(dict[str, _Plan]):
    """Plans by names with stars for numbers, each made once."""

    def __init__(self, tables: Tables) -> None:
        super().__init__()
        self._tables = tables

    def __missing__(self, starred: str) -> _Plan:
        plan = self[starred] = _plan(starred, self._tables)
        return plan


class _Head(Struct, frozen=True):
    """The first segments of a name: those around an expert's number, or if it follows them."""

    before: str
    after: str = ""
    expert: int | None = None
    followed: bool = False


class _Heads(dict[str, _Head]):
    """What is known of the first segments of names, which many share, each looked at once."""

    def __init__(self, plans: _Plans) -> None:
        super().__init__()
        self._plans = plans

    def __missing__(self, head: str) -> _Head:
        segments = head.split(".")
        kept = [at for at, segment in enumerate(segments) if segment not in _WRAPPERS]
        stars = [*(_Stars()[segments[at]] for at in kept), _STAR]
        place = self._plans[".".join(stars)].expert
        found = _Head(head, followed=place == len(kept))
        if place is not None and place < len(kept) and is_number(segments[kept[place]]):
            at = kept[place]
            before, after = ".".join(segments[:at]), ".".join(["", *segments[at + 1 :]])
            found = _Head(before, after, int(segments[at]))
        self[head] = found
        return found


class _Numbers(dict[str, int | None]):
    """What segments of names count; None for those that are no plain numbers."""

    def __missing__(self, segment: str) -> int | None:
        number = self[segment] = int(segment) if is_number(segment) else None
        return number


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
    """Find the patterns and series of all names in one pass."""
    patterns: dict[tuple[str, tuple[str, ...], bool], Pattern] = {}
    found: dict[object, Series] = {}
    star, numbers, plans = _Stars().__getitem__, _Numbers(), _Plans(tables)
    heads = _Heads(plans)
    marked = _marked_modules(tensors, tables)
    for place, spec in enumerate(tensors):
        inside = bool(marked) and _inside(spec.name, marked)
        same: object = place
        pieces = spec.name.rsplit(".", _ENDS)
        head, expert = heads[pieces[0]], None
        if head.expert is not None:
            expert, ends = head.expert, pieces[1:]
        elif head.followed and len(pieces) > _ENDS:
            expert, ends = numbers[pieces[1]], pieces[2:]
        if expert is not None:
            same = (head.before, head.after, *ends, spec.shape, spec.dtype, inside)
            if (series := found.get(same)) is not None:
                series.members.append(place)
                series.experts.append(expert)
                continue
        segments = unwrapped(spec.name).split(".")
        starred = ".".join(map(star, segments))
        plan = plans[starred]
        literal = tuple([_digits(segments[at]) for at in plan.literal])
        key = (starred, literal, inside)
        if key not in patterns:
            patterns[key] = _pattern(starred, plan, literal, inside, spec, tables)
        layer, expert = (
            None if at is None else int(_digits(segments[at])) for at in (plan.layer, plan.expert)
        )
        found[same] = Series(patterns[key], layer, [place], [expert])
    largest: dict[int, int] = {}
    for series in found.values():
        pattern, first, count = series.pattern, tensors[series.members[0]], len(series.members)
        size = prod(first.shape)
        pattern.tensors += count
        pattern.numbers += count * size
        if size > largest.get(id(pattern), -1):
            largest[id(pattern)] = size
            pattern.shape, pattern.dtype = first.shape, first.dtype
    return Patterns(list(patterns.values()), list(found.values()))


def with_halves(found: Patterns, numbered: Set[str], named: Mapping[str, int]) -> Patterns:
    """The same with two layers for each that has some parts twice.

    These are `numbered` 0 and 1, or `named` by the half, as the feed-forwards of a conformer are.
    What such a layer has once belongs to its first half.
    """
    halves = {id(pattern): _half(pattern, numbered, named) for pattern in found.patterns}
    seen = {(pattern.stack, halves[id(pattern)]) for pattern in found.patterns}
    stacks = frozenset(stack for stack, half in seen if half == 0 and (stack, 1) in seen)
    if not stacks:
        return found
    series = [
        replace(one, layer=2 * one.layer + (halves[id(one.pattern)] or 0))
        if one.layer is not None and one.pattern.stack in stacks
        else one
        for one in found.series
    ]
    return Patterns(found.patterns, series, stacks)


def _half(pattern: Pattern, numbered: Set[str], named: Mapping[str, int]) -> int | None:
    first, second, *_ = (*pattern.parts, "", "")
    if first in numbered:
        return int(second) if second in ("0", "1") else None
    whole = second or "norm" in first  # else one of a feed-forward's matrices
    return named.get(first) if whole and pattern.layered else None


def _marked_modules(tensors: Sequence[TensorSpec], tables: Tables) -> set[str]:
    """Modules that hold a state-space parameter, whatever their own name is."""
    names = [spec.name for spec in tensors if not spec.name.endswith(".weight")]  # no mark does
    ends = [name.rpartition(".") for name in names]
    return {module for module, _, last in ends if last.lower() in tables.state_space_marks}


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
    inner = False  # a block inside of a part that has a number
    for index in places:
        before = segments[index - 1] if index else ""
        if layer is None and before in tables.containers_named:
            layer, inner = index, True
        elif (layer is None or inner) and before in tables.containers:
            layer, inner = index, False
        elif index - 2 == layer and before in tables.containers_inner:
            layer = index  # of a stage that is counted too
        elif expert is None and _counts_experts(segments[:index]):
            expert = index
    if layer is None:
        layer = _layer_by_zone(segments, places, expert, tables)
    literal = tuple(index for index in places if index not in (layer, expert))
    return _Plan(layer, expert, literal)


def _counts_experts(before: Sequence[str]) -> bool:
    """Whether a number after these segments is an expert's: `experts.0`, `experts.down_projs.0`."""
    listed = len(before) > 1 and before[-1].endswith(_LISTED)
    name = before[-2] if listed else before[-1] if before else ""
    return "expert" in name and "shared" not in name


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
