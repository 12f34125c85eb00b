"""Which of several tensors that claim one place in a model has it, and where the others go.

Files may hold more than a model: averages of training, a teacher, or tensors that were put there
to confuse. Nothing of it is loaded, and all of it has names like those of the model. Whoever
claims a place must fit the configuration; of those that do, tiny ones give way, then those whose
place no architecture of this family uses, then the smaller. No rule asks for an order of tensors.

Another stack of layers becomes a tower of its own, with what lies beside its layers; single
tensors lose their meaning and are known by their names. Towers for pictures and sound may be
several in one model, such as two encoders that see the same picture, and a tower may have stages
that are counted; none of them is a rival.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct, field

from kinprint.model.names.patterns import Pattern, Patterns, Series, plain_parts
from kinprint.model.names.tables import Ending, Tables, Word
from kinprint.model.names.towers import (
    BESIDE,
    PROJECTOR,
    Stack,
    Towers,
    common_length,
    is_inside,
    root_of,
)
from kinprint.model.names.words import WordFinder
from kinprint.records import Role, bias_of
from kinprint.text import Message, message

Claim = tuple[str, int | None]
"""A role and a layer."""
Allowed = Callable[[Series, Word], int]
"""How many numbers of a series have a place in the configured model, if it is what a word says."""
Words = dict[int, Word | None]
Endings = Mapping[int, Ending | None]

# Stacks and tensors with less than this share of what the largest rival has are tiny: a stack as
# large as the model makes the file twice as long, and parts of a fused matrix differ by more.
_FULL_STACK, _FULL_TENSOR = 1 / 4, 1 / 16
_TINY_STACK = 1 / 64  # in towers of which models have several
# Towers that such stacks make: what compares them grows with the square.
_MOST_BESIDE = 8
_OF_THE_TEXT = (None, "encoder", "decoder")  # towers that the configuration's sizes are about
_NO_CLAIM = (Role.OTHER, Role.BIAS, Role.NORM_OTHER)
_FUSED = {
    Role.QKV: ("q", "k", "v"),
    Role.GATE_UP: ("gate", "up"),
    Role.EXPERT_GATE_UP: ("expert_gate", "expert_up"),
    Role.SHARED_GATE_UP: ("shared_gate", "shared_up"),
}
_NUMBERS = re.compile(r"[._]?\d+")


class _Claimant(Struct, frozen=True):
    """A pattern that claims places.

    `fitting` counts its numbers that the configuration allows, `module` is the part of the block
    that it lies in, empty for the block itself and for what holds nothing larger.
    """

    pattern: Pattern
    word: Word
    claims: frozenset[Claim]
    fitting: int
    module: str = ""

    def is_sibling(self, other: _Claimant) -> bool:
        """Whether two patterns are copies that a model counts: both have the place, told by name.

        Some norms are counted from the second on, and modules of one block may have norms each.
        """
        ours, theirs = (_counted(one.pattern.parts) for one in (self, other))
        if not self.word.role.startswith("norm"):
            return ours == theirs
        apart = self.module != other.module
        return apart or _NUMBERS.sub("", ours) == _NUMBERS.sub("", theirs)


class _Tower(Struct):
    """Stacks of layers that lie together, and the places that they have."""

    name: str | None
    root: Stack
    stacks: list[Stack] = field(default_factory=list)
    claims: set[Claim] = field(default_factory=set)

    def may_hold(self, stack: Stack, claims: frozenset[Claim], norms: bool) -> bool:
        """Whether a stack lies here and claims no place that is taken.

        Those of `norms` alone may be shared, and always with stacks counted like this one: blocks
        of convolutions have no others.
        """
        if stack[: len(self.root)] != self.root:
            return False
        taken = self.claims & claims
        if norms or self.has_sibling(stack):
            taken = {claim for claim in taken if not claim[0].startswith("norm")}
        return not taken

    def has_sibling(self, stack: Stack) -> bool:
        """Whether a stack that differs by its number alone lies here."""
        return any(_counted(one) == _counted(stack) for one in self.stacks)


def split_rivals(
    found: Patterns,
    words: Words,
    endings: Endings,
    towers: Towers,
    finder: WordFinder,
    allowed: Allowed,
) -> list[Message]:
    """Give every place to one claimant; says which others there were.

    Parameters
    ----------
    found : all patterns of a model, and the series in them.
    words, endings, towers : what each pattern was found to be; words and towers of those that
        lose are changed.
    finder : knows the tables and the model's family.
    allowed : asks the configuration.
    """
    roles = {
        id(pattern): claimed
        for pattern in found.patterns
        if (claimed := _claimed(pattern, words[id(pattern)], endings[id(pattern)]))
    }
    if not _is_contested([one for one in found.patterns if id(one) in roles], roles, towers):
        return []
    claimants = _claimants(found, roles, words, towers, allowed)
    notes = []
    for tower in sorted({towers[key] for key in roles}, key=str):
        own = [one for one in claimants if towers[id(one.pattern)] == tower]
        stacks, said = _split_stacks(own, found.patterns, towers, tower, finder)
        notes += said
        if tower not in _kept(finder.tables):
            continue
        by_stack: dict[Stack, list[_Claimant]] = defaultdict(list)
        for one in own:
            if towers[id(one.pattern)] == tower:
                by_stack[one.pattern.stack].append(one)
        for stack in sorted(by_stack):
            notes += _settle_stack(by_stack[stack], found.patterns, words, finder, stacks)
    return notes


def _kept(tables: Tables) -> set[str | None]:
    """Towers of one stack each; pictures and sound may have several beside each other."""
    return {None, *tables.towers_with_roles}


def _claimed(pattern: Pattern, word: Word | None, ending: Ending | None) -> tuple[str, ...]:
    """Roles that a pattern claims, fused ones one by one."""
    if word is None or word.role in _NO_CLAIM or pattern.adapter is not None:
        return ()
    roles = _FUSED.get(word.role, (str(word.role),))
    if ending is None or ending.role is None:
        return roles
    return tuple(map(bias_of, roles)) if ending.role is Role.BIAS else ()


def _is_contested(
    patterns: Iterable[Pattern], roles: Mapping[int, tuple[str, ...]], towers: Towers
) -> bool:
    """Whether any two patterns claim one role of a tower: told without looking at layers."""
    seen: set[tuple[str | None, bool, str]] = set()
    for pattern in patterns:
        for role in roles[id(pattern)]:
            key = towers[id(pattern)], pattern.layered, role
            if key in seen:
                return True
            seen.add(key)
    return False


def _claimants(
    found: Patterns,
    roles: Mapping[int, tuple[str, ...]],
    words: Words,
    towers: Towers,
    allowed: Allowed,
) -> list[_Claimant]:
    layers: dict[int, set[int | None]] = defaultdict(set)
    fitting: dict[int, int] = defaultdict(int)
    for series in found.series:
        key = id(series.pattern)
        word = words[key]
        if key not in roles or word is None:
            continue
        layers[key].add(series.layer)
        if towers[key] in _OF_THE_TEXT:
            fitting[key] += allowed(series, word)
    modules = {
        (one.stack, one.parts[:1])
        for one in found.patterns
        if one.layered and len(one.parts) > 1 and len(one.shape) > 1 and min(one.shape) > 1
    }
    claimants = []
    for pattern in found.patterns:
        key, word = id(pattern), words[id(pattern)]
        if key in roles and word is not None:
            claims = frozenset((role, layer) for role in roles[key] for layer in layers[key])
            module = pattern.parts[0] if (pattern.stack, pattern.parts[:1]) in modules else ""
            numbers = fitting.get(key, 0 if towers[key] in _OF_THE_TEXT else pattern.numbers)
            claimants.append(_Claimant(pattern, word, claims, numbers, module))
    return claimants


def _split_stacks(
    claimants: Sequence[_Claimant],
    patterns: Sequence[Pattern],
    towers: Towers,
    tower: str | None,
    finder: WordFinder,
) -> tuple[list[Stack], list[Message]]:
    """Make towers of stacks whose places are taken; gives those that stay, the first one first."""
    layered: dict[Stack, list[_Claimant]] = defaultdict(list)
    for one in claimants:
        if one.pattern.layered:
            layered[one.pattern.stack].append(one)
    fitting = {stack: sum(one.fitting for one in some) for stack, some in layered.items()}
    numbers = {s: sum(one.pattern.numbers for one in some) for s, some in layered.items()}
    most = max(fitting.values(), default=0)
    known = {place: at for at, place in enumerate(finder.stacks)}

    def rank(stack: Stack) -> tuple[bool, int, int, int, Stack]:
        tiny = fitting[stack] < _FULL_STACK * most
        usual = known.get(".".join(stack), len(known))
        return tiny, usual, -fitting[stack], -numbers[stack], stack

    kept = _kept(finder.tables)
    several = tower not in kept
    main = _Tower(tower, ())
    found = [main]
    rivals = []
    for stack in sorted(layered, key=rank):
        claims = frozenset(claim for one in layered[stack] for claim in one.claims)
        usual = several and fitting[stack] >= _TINY_STACK * most
        holding = (one for one in found if one.may_hold(stack, claims, norms=usual))
        here = next(holding, main if usual and tower == PROJECTOR else None)
        stage = any(one.has_sibling(stack) for one in found)
        if here is None and (usual or stage) and len(found) > _MOST_BESIDE:
            here = found[-1]
        if here is None:
            root = root_of(stack, [placed for one in found for placed in one.stacks])
            if usual and root == ("model",):  # everything lies there
                root = stack[:2]
            name = _free_name((root, stack), {*kept, *towers.values()}, "" if usual else BESIDE)
            here = _Tower(name, root)
            found.append(here)
            rivals += [] if usual or stage else [here]
        here.stacks.append(stack)
        here.claims |= claims
    # Places inside of others come first: what lies there is theirs.
    moved = {
        one.name: _move(one, patterns, towers, tower, () if one not in rivals else claimants)
        for one in sorted(found[1:], key=lambda one: -len(one.root))
    }
    told = [(".".join(one.stacks[0]), moved[one.name], one.name) for one in rivals]
    return main.stacks, list(_stack_notes(main, told))


def _free_name(places: Iterable[Stack], taken: Collection[str | None], ending: str) -> str:
    """A name for a tower: the first that no other tower has, else the last."""
    names = [".".join(place) + ending for place in places]
    return next((name for name in names if name not in taken), names[-1])


def _stack_notes(main: _Tower, rivals: Sequence[tuple[str, int, str | None]]) -> Iterator[Message]:
    if not rivals:
        return
    other, _, tower = rivals[0]
    fields = {
        "kept": ".".join(main.stacks[0]),
        "other": other,
        "tensors": sum(tensors for _, tensors, _ in rivals),
        "tower": tower,
    }
    if len(rivals) == 1:
        yield message("note.rival-stack", **fields)
    else:
        yield message("note.rival-stacks", stacks=len(rivals), **fields)


def _move(
    to: _Tower,
    patterns: Sequence[Pattern],
    towers: Towers,
    tower: str | None,
    claimants: Sequence[_Claimant],
) -> int:
    """Move the tensors of a tower there; what `claimants` alone give the model stays."""
    outside: set[Claim] = set()
    claims: dict[int, frozenset[Claim]] = {}
    for one in claimants:
        claims[id(one.pattern)] = one.claims
        if not is_inside(one.pattern, to.root):
            outside |= one.claims
    moved = 0
    for pattern in patterns:
        key = id(pattern)
        if towers[key] != tower:
            continue
        if pattern.layered:
            moves = pattern.stack in to.stacks
        else:
            moves = is_inside(pattern, to.root) and claims.get(key, frozenset()) <= outside
        if moves:
            towers[key] = to.name
            moved += pattern.tensors
    return moved


def _settle_stack(
    claimants: Sequence[_Claimant],
    patterns: Sequence[Pattern],
    words: Words,
    finder: WordFinder,
    stacks: Sequence[Stack],
) -> list[Message]:
    """Give each place of one stack, or outside of all, to one pattern or to siblings."""
    by_claim: dict[Claim, list[_Claimant]] = defaultdict(list)
    for one in claimants:
        for claim in one.claims if one.word.role is not Role.SSM else ():
            by_claim[claim].append(one)
    contested = {
        id(one.pattern): one
        for some in by_claim.values()
        for one in some
        if not all(one.is_sibling(other) for other in some)
    }
    if not contested:
        return []
    main = stacks[0] if stacks else ()
    most = {
        key: max(other.fitting for claim in one.claims for other in by_claim[claim])
        for key, one in contested.items()
    }

    def rank(one: _Claimant) -> tuple[object, ...]:
        tiny = one.fitting < _FULL_TENSOR * most[id(one.pattern)]
        usual = _usual(one, main, finder)
        return tiny, *usual, -one.fitting, -one.pattern.numbers, one.pattern.text

    holders: dict[Claim, _Claimant] = {}
    losers: list[tuple[_Claimant, _Claimant]] = []
    lost: set[tuple[bool, Stack, Stack]] = set()
    for one in sorted(contested.values(), key=rank):
        taken = [holders[claim] for claim in sorted(one.claims, key=str) if claim in holders]
        winner = next((holder for holder in taken if not one.is_sibling(holder)), None)
        if winner is None:
            holders |= dict.fromkeys(one.claims, one)
            continue
        lost.add((one.pattern.layered, one.pattern.stack, one.pattern.parts))
        losers.append((one, winner))
    for pattern in patterns:  # biases and scales go with their weights
        if (pattern.layered, pattern.stack, pattern.parts) in lost and not _holds(holders, pattern):
            words[id(pattern)] = Word(Role.OTHER)
    return list(_tensor_notes(losers))


def _tensor_notes(losers: Sequence[tuple[_Claimant, _Claimant]]) -> Iterator[Message]:
    if not losers:
        return
    other, kept = (one.pattern.text for one in losers[0])
    fields = {"kept": kept, "other": other}
    tensors = sum(one.pattern.tensors for one, _ in losers)
    if len(losers) == 1:
        yield message("note.rival-tensors", tensors=tensors, **fields)
    else:
        yield message("note.rival-names", names=len(losers), tensors=tensors, **fields)


def _holds(holders: Mapping[Claim, _Claimant], pattern: Pattern) -> bool:
    return any(holder.pattern is pattern for holder in holders.values())


def _usual(one: _Claimant, main: Stack, finder: WordFinder) -> tuple[int, ...]:
    """How usual a name is for what it claims to be: smaller is more so.

    In layers the family's own parts come first. Outside, heads lie at the top and all else where
    the layers do. Then the tables of names have an order.
    """
    pattern = one.pattern
    order = _order(one.word, plain_parts(pattern.parts), finder.tables)
    if pattern.layered:
        marked = any(pattern.part in marks for marks in finder.family.marks)
        return 0 if marked else 1, order, len(pattern.parts)
    near = 0 if one.word.role is Role.LM_HEAD else common_length(pattern.parts, main)
    return -near, len(pattern.parts), order


def _order(word: Word, parts: Sequence[str], tables: Tables) -> int:
    """The place of the longest known end of a name among all names of its meaning."""
    for table in (*tables.zone_words.values(), tables.block, tables.top):
        names = [name for name, meaning in table.items() if meaning.role is word.role]
        for start in range(len(parts)):
            if (tail := ".".join(parts[start:])) in names:
                return names.index(tail)
    return len(tables.top)


def _counted(places: Iterable[str]) -> str:
    """Segments of a name in which all numbers look the same."""
    return re.sub(r"\d+", "0", ".".join(places))
