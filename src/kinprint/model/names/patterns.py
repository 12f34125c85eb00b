"""Names cut into what repeats and what is looked up: stack, layer, expert, part, ending.

A model has tens of thousands of names and a few hundred patterns; everything that thinks
works on patterns, and only numbers are read from each name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from kinprint.model.names.tables import Ending, Tables
from kinprint.records import TensorSpec

# No model has ten digits of layers; longer numbers are part of a name.
_NUMBER = re.compile(r"\.(?:expert_)?([0-9]{1,9})(?=\.|$)")
_LAYER, _EXPERT = "#", "@"
# Segments that training tools put into names, anywhere: they wrap what is already there.
_WRAPPERS = re.compile(
    r"(?<![^.])(?:_orig_mod|_fsdp_wrapped_module|_checkpoint_wrapped_module|base_layer)\."
)
_ADAPTED = ("lora_", "plora_", "ia3_", "hada_", "lokr_", "oft_", "vera_")


@dataclass(slots=True)
class Pattern:
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


@dataclass(slots=True)
class Patterns:
    """The patterns of a model, and each tensor's pattern, layer and expert."""

    patterns: list[Pattern] = field(default_factory=list)
    places: list[tuple[Pattern, int | None, int | None]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Plan:
    """Which of a name's numbers is the layer, which the expert; the others are spelled out."""

    layer: int | None
    expert: int | None
    literal: tuple[int, ...]


def plain_parts(parts: Sequence[str]) -> list[str]:
    """Parts without numbers, since a part's meaning seldom depends on which copy it is."""
    return [part for part in parts if not is_number(part) and part != _EXPERT]


def is_number(part: str) -> bool:
    """Say whether a segment is a number by which copies are told apart."""
    return part.isascii() and part.isdigit() and len(part) < 10


def unwrapped(name: str) -> str:
    """A name as it was before tools for training wrapped the modules it leads through."""
    return _WRAPPERS.sub("", name)


def read_patterns(tensors: Sequence[TensorSpec], tables: Tables) -> Patterns:
    """Find the patterns of all names in one pass."""
    result = Patterns()
    plans: dict[str, _Plan] = {}
    known: dict[tuple[str, tuple[str, ...], bool], Pattern] = {}
    marked = _marked_modules(tensors, tables)
    for spec in tensors:
        # A star stands for a number from here on, so that one in a name must not.
        pieces = _NUMBER.split(f".{unwrapped(spec.name).replace('*', '?')}")
        numbers = pieces[1::2]
        starred = ".*".join(pieces[::2])[1:]
        plan = plans.get(starred)
        if plan is None:
            plan = plans[starred] = _plan(starred, tables)
        literal = tuple([numbers[index] for index in plan.literal])
        inside = bool(marked) and _inside(spec.name, marked)
        key = (starred, literal, inside)
        pattern = known.get(key)
        if pattern is None:
            pattern = known[key] = _pattern(starred, plan, literal, inside, spec, tables)
            result.patterns.append(pattern)
        count = 1
        for size in spec.shape:
            count *= size
        pattern.numbers += count
        pattern.tensors += 1
        result.places.append(
            (
                pattern,
                None if plan.layer is None else int(numbers[plan.layer]),
                None if plan.expert is None else int(numbers[plan.expert]),
            )
        )
    return result


def _marked_modules(tensors: Sequence[TensorSpec], tables: Tables) -> set[str]:
    """Modules that hold a state-space parameter, whatever their own name is."""
    marks = tables.state_space_marks
    found = set()
    for spec in tensors:
        module, _, last = spec.name.rpartition(".")
        if last.lower() in marks:
            found.add(module)
    return found


def _inside(name: str, modules: set[str]) -> bool:
    for _ in range(3):
        name = name.rpartition(".")[0]
        if name in modules:
            return True
    return False


def _plan(starred: str, tables: Tables) -> _Plan:
    """Tell a name's numbers apart by the segment before each."""
    segments = starred.lower().split(".")
    places = [index for index, segment in enumerate(segments) if segment == "*"]
    layer = expert = None
    for order, index in enumerate(places):
        before = segments[index - 1] if index else ""
        if layer is None and (before in tables.containers or before in tables.containers_named):
            layer = order
        elif expert is None and "expert" in before and "shared" not in before:
            expert = order
    if layer is None:
        layer = _layer_by_zone(segments, places, expert, tables)
    literal = tuple(order for order in range(len(places)) if order not in (layer, expert))
    return _Plan(layer, expert, literal)


def _layer_by_zone(
    segments: Sequence[str], places: Sequence[int], expert: int | None, tables: Tables
) -> int | None:
    """In an unknown container, the first number that a part of a block follows."""
    for order, index in enumerate(places):
        if order != expert and any(part in tables.zones for part in segments[index + 1 :]):
            return order
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
    spelled = iter(literal)
    order = 0
    place = None
    for index, segment in enumerate(segments):
        if segment != "*":
            continue
        if order == plan.layer:
            segments[index], place = _LAYER, index
        elif order == plan.expert:
            segments[index] = _EXPERT
        else:
            segments[index] = next(spelled)
        order += 1
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
        if part.startswith(_ADAPTED):
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
