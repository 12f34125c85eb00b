"""What is read of each model, stage by stage, within a budget: decided before the first byte.

Nothing here looks at a weight. The choice depends on shapes, lengths and the level alone, so
that stopping early, or reading little, says nothing about what the weights will show.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from kinprint import text
from kinprint.lineage.reading.levels import WIDTH, LevelPlan, Step, StepKind, token_window
from kinprint.lineage.reading.steps import STEPS, all_pieces
from kinprint.lineage.reading.tower import Piece, Tower, bytes_of
from kinprint.model.places import Address
from kinprint.records import ByteRange
from kinprint.text import Message

SPREAD_TOKENS = 64
"""Of a vocabulary that was read, so many tokens are chosen by their spelling, wherever they lie."""
_OTHERS = 4  # towers beside the main one have this part of a budget together
_HELD = 1 << 28  # numbers that a step may bring into memory, a gibibyte of them
_APART = 16 * 1024  # bytes that each of these may bring beyond its own row

PieceKey = tuple[Address, bool]
"""A tensor, and whether its rows are counted along its inputs."""
_PlannedKey = tuple[str, PieceKey]  # of a tower


class TokenRows(Struct, frozen=True):
    """Rows of the embedding to read in a stage.

    Attributes
    ----------
    count
        How many tokens with low numbers.
    spelled
        Whether the vocabulary is read too. If not, tokens are known by number, and only to a model
        with the same tokenizer file.
    bytes
        What the rows of one table may cost.
    head
        Whether rows of the output head are read for the same tokens.
    shift
        Moves which they are.
    """

    count: int
    spelled: bool
    bytes: int
    head: bool = False
    shift: int = 0


class Stage(Struct, frozen=True):
    """What is read of a model at once: pieces, and tokens where they are to be read."""

    pieces: tuple[Piece, ...]
    tokens: TokenRows | None = None


class ReadingPlan(Struct, frozen=True):
    """What is read of one tower.

    Attributes
    ----------
    stages
        What is read in each stage.
    whole
        Whether everything is read.
    bytes
        What all of it costs; the headers of the model are counted with its main tower.
    left_out
        What the budget did not allow.
    """

    stages: tuple[Stage, ...]
    whole: bool
    bytes: int
    left_out: tuple[Message, ...] = ()


class _Budget(Struct):
    """Bytes that may still be read, and what could not be paid.

    Where it is open, everything can be paid, and `remaining` is what extras may still take.
    """

    remaining: int
    open: bool = False
    left_out: list[Message] = field(default_factory=list)

    def pay(self, price: int, what: Message) -> bool:
        """Take a price off, if there is enough left."""
        if price > self.remaining and not self.open:
            self.left_out.append(what)
            return False
        self.remaining -= price
        return True


def plan_reading(
    towers: Sequence[Tower], level: LevelPlan, limit: int | None = None
) -> tuple[ReadingPlan, ...]:
    """Decide what to read of each tower of a model.

    Parameters
    ----------
    towers
        The towers of one model, the main one first.
    level
        What the level reads, and its bytes for two models together.
    limit
        A lower limit in bytes for this model; None where there is none. What opening it took
        counts.
    """
    main, *others = towers
    most = level.limit(limit)
    free = _free(towers, level, limit)
    if not main.partial and _whole_cost(towers) <= free:
        costs = [tower.whole_bytes for tower in towers]
        costs[0] += main.opening_bytes + main.tokenizer_bytes
        return tuple(
            ReadingPlan((Stage(all_pieces(tower)),), True, cost)
            for tower, cost in zip(towers, costs, strict=True)
        )
    planner = _Planner(level, _Budget(free, most is None))
    each = max(free, 0) // _OTHERS // max(len(others), 1)
    besides = [planner.plan(tower, each) for tower in others]
    first = planner.plan(main)
    unlimited = not main.partial and _whole_cost(towers) <= _free(towers, level)
    if main.model.cut_short or unlimited:
        # All steps may fit where the whole does not: more would be read without the limit.
        first = replace(first, left_out=(*first.left_out, text.message("note.left-out.whole")))
    # Headers that are longer than a limit were refused before; lists are estimated.
    opening = min(main.opening_bytes, most) if most is not None else main.opening_bytes
    return replace(first, bytes=first.bytes + opening), *besides


def _free(towers: Sequence[Tower], level: LevelPlan, limit: int | None = None) -> int:
    """Bytes for the weights of a model, within a limit; without one, up to which it is whole."""
    most = level.limit(limit)
    return (level.whole if most is None else most) - towers[0].opening_bytes


def _whole_cost(towers: Sequence[Tower]) -> int:
    return sum(tower.whole_bytes for tower in towers) + towers[0].tokenizer_bytes


class _Basket(Struct, frozen=True):
    """Pieces of a model that are read together, and what that costs.

    Gaps between pieces are read through, so that whole files are priced, not what is added: each
    anew only when something is added in it.
    """

    pieces: dict[_PlannedKey, Piece] = field(default_factory=dict)
    cost: int = 0
    _files: dict[str, dict[_PlannedKey, Sequence[ByteRange]]] = field(default_factory=dict)

    def with_more(self, tower: Tower, pieces: Sequence[Piece]) -> _Basket:
        """The same with some pieces more, each in place of what was there of its tensor."""
        more = {_key(tower, piece): piece for piece in pieces}
        files = dict(self._files)
        changed: set[str] = set()
        for key, piece in more.items():
            before = tower.spans(self.pieces[key]) if key in self.pieces else {}
            spans = tower.spans(piece)
            for file in {**before, **spans}:
                if file not in changed:
                    changed.add(file)
                    files[file] = dict(files.get(file, {}))
                files[file].pop(key, None)
                if file in spans:
                    files[file][key] = spans[file]
        gap = tower.model.checkpoint.fetcher.policy.gap
        cost = self.cost
        for file in changed:
            cost += bytes_of(files[file].values(), gap)
            cost -= bytes_of(self._files.get(file, {}).values(), gap)
        return _Basket(self.pieces | more, cost, files)


class _Planner:
    """Plans the towers of one model after another, within what is left of a budget."""

    def __init__(self, level: LevelPlan, budget: _Budget) -> None:
        self._level, self._budget = level, budget
        self._planned = _Basket()
        self._cost = 0

    def plan(self, tower: Tower, most: int | None = None) -> ReadingPlan:
        """What is read of a tower, for so many bytes at most if that is said."""
        whole = self._budget
        before = whole.remaining if most is None else min(most, whole.remaining)
        budget = _Budget(before, whole.open and most is None)
        stages = [Stage(())] * self._level.stages
        for step in self._level.steps:
            stage = stages[step.stage - 1]
            if step.kind is StepKind.EMBEDDING:
                tokens = _pay_tokens(tower, step, self._level, budget) or stage.tokens
                stage = replace(stage, tokens=tokens)
            else:
                pay = self._pay_rest if step.kind is StepKind.REST else self._pay_step
                stage = replace(stage, pieces=(*stage.pieces, *pay(tower, step, budget)))
            stages[step.stage - 1] = stage
        spent = before - budget.remaining
        whole.remaining -= spent
        read = tuple(stage for stage in stages if stage.pieces or stage.tokens is not None)
        return ReadingPlan(read, False, spent, tuple(dict.fromkeys(budget.left_out)))

    def _pay_step(self, tower: Tower, step: Step, budget: _Budget) -> list[Piece]:
        """What a step adds, in fewer layers where all would cost too much."""
        most = budget.remaining // 2 if step.extra else budget.remaining
        limited = step.extra or not budget.open
        layers = step.layers
        while True:
            fewer = msgspec.structs.replace(step, layers=layers)
            fresh = self._fresh(tower, STEPS[step.kind](tower, fewer, self._level))
            both = self._planned.with_more(tower, fresh)
            cost = both.cost if fresh else self._cost
            price = max(cost - self._cost, 0)
            if price <= most or not limited or layers < 2:
                break
            layers //= 2
        if not fresh or (step.extra and price > most):
            return []
        if sum(map(tower.numbers, fresh)) > _HELD:
            budget.left_out.append(_left_out(step.kind))
            return []
        if not budget.pay(price, _left_out(step.kind)):
            return []
        self._planned, self._cost = both, max(cost, self._cost)
        return fresh

    def _pay_rest(self, tower: Tower, step: Step, budget: _Budget) -> list[Piece]:
        """Some rows of what no step has reached, as far as the budget goes: each tells alone."""
        taken = []
        for piece in STEPS[step.kind](tower, step, self._level):
            if _key(tower, piece) in self._planned.pieces:
                continue
            both = self._planned.with_more(tower, [piece])
            price = max(both.cost - self._cost, 0)
            if tower.numbers(piece) <= _HELD and budget.pay(price, _left_out(step.kind)):
                taken.append(piece)
                self._planned, self._cost = both, max(both.cost, self._cost)
        return taken

    def _fresh(self, tower: Tower, wanted: Sequence[Piece]) -> list[Piece]:
        """Pieces that hold more than what was planned before."""
        fresh = []
        for piece in wanted:
            before = self._planned.pieces.get(_key(tower, piece))
            known = before is not None and (
                before.rows is None
                or (piece.rows is not None and set(piece.rows) <= set(before.rows))
            )
            if not known:
                fresh.append(piece)
        return fresh


def _key(tower: Tower, piece: Piece) -> _PlannedKey:
    return tower.label, (piece.address, piece.inputs)


def _pay_tokens(tower: Tower, step: Step, level: LevelPlan, budget: _Budget) -> TokenRows | None:
    """Tokens to read, if the tokenizer is short enough to be read or known by its digest."""
    table = tower.embedding
    if table is None or tower.tokenizer is None:
        return None
    spelled = tower.tokenizer_bytes <= step.tokenizers
    if not spelled and not tower.tokenizer_digest:
        budget.left_out.append(_left_out(step.kind))
        return None
    wanted = tower.width + tower.width // 8 if step.tokens == WIDTH else step.tokens
    count = min(wanted, tower.length(table))
    low = token_window(count, tower.length(table), level.shift)
    price = tower.cost([Piece(table, tuple(low))])
    if spelled:
        price += SPREAD_TOKENS * (tower.cost([Piece(table, (0,))]) + _APART)
    price = min(price, tower.cost([Piece(table)]))
    vocabulary = tower.tokenizer_bytes if spelled else 0
    if not budget.pay(price + vocabulary, _left_out(step.kind)):
        return None
    # A gap between the two tables may be read through.
    twice = price + tower.model.checkpoint.fetcher.policy.gap
    head = tower.head is not None and (budget.open or twice <= budget.remaining // 2)
    budget.remaining -= twice if head else 0
    return TokenRows(count, spelled, price, head, level.shift)


def _left_out(kind: StepKind) -> Message:
    return text.message(f"note.left-out.{kind}")
