"""What is read of each model, stage by stage, within a budget: decided before the first byte.

Nothing here looks at a weight. The choice depends on shapes, lengths and the level alone, so
that stopping early, or reading little, says nothing about what the weights will show.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from kinprint import text
from kinprint.lineage.reading.levels import WIDTH, LevelPlan, Step, StepKind
from kinprint.lineage.reading.steps import STEPS, all_pieces
from kinprint.lineage.reading.tower import Piece, Tower
from kinprint.model.places import Address
from kinprint.text import Message

SPREAD_TOKENS = 64
"""Of a vocabulary that was read, so many tokens are chosen by their spelling, wherever they lie."""
_APART = 16 * 1024  # bytes that each of these may bring beyond its own row

PieceKey = tuple[Address, bool]
"""A tensor, and whether its rows are counted along its inputs."""


@dataclass(frozen=True, slots=True)
class TokenRows:
    """Rows of the embedding to read in a stage.

    Attributes
    ----------
    count
        How many tokens, those with the lowest numbers.
    spelled
        Whether the vocabulary is read too. If not, tokens are known by number, and only to a model
        with the same tokenizer file.
    bytes
        What the rows of one table may cost.
    head
        Whether rows of the output head are read for the same tokens.
    """

    count: int
    spelled: bool
    bytes: int
    head: bool = False


@dataclass(frozen=True, slots=True)
class Stage:
    """What is read of a model at once: pieces, and tokens where they are to be read."""

    pieces: tuple[Piece, ...]
    tokens: TokenRows | None = None


@dataclass(frozen=True, slots=True)
class ReadingPlan:
    """What is read of one model.

    Attributes
    ----------
    stages
        What is read in each stage.
    whole
        Whether everything is read.
    bytes
        What all of it costs, headers included.
    left_out
        What the budget did not allow.
    """

    stages: tuple[Stage, ...]
    whole: bool
    bytes: int
    left_out: tuple[Message, ...] = ()


@dataclass(slots=True)
class _Budget:
    """Bytes that may still be read, and what could not be paid."""

    remaining: int
    left_out: list[Message] = field(default_factory=list)

    def pay(self, price: int, what: Message) -> bool:
        """Take a price off, if there is enough left."""
        if price > self.remaining:
            self.left_out.append(what)
            return False
        self.remaining -= price
        return True


def plan_reading(tower: Tower, level: LevelPlan, limit: int | None = None) -> ReadingPlan:
    """Decide what to read of a model.

    Parameters
    ----------
    tower
        What is compared.
    level
        What the level reads, and its bytes for two models together.
    limit
        A lower limit in bytes for this model; None where there is none. Headers that have been
        read count.
    """
    most = level.budget // 2 if limit is None else min(level.budget // 2, limit)
    budget = _Budget(most - tower.known_bytes)
    if _pay_whole(tower, budget):
        stage = Stage(all_pieces(tower))
        return ReadingPlan((stage,), True, most - budget.remaining)
    stages: list[Stage] = []
    planned: dict[PieceKey, Piece] = {}
    for number in range(1, level.stages + 1):
        pieces: list[Piece] = []
        tokens = None
        for step in level.steps:
            if step.stage != number:
                continue
            if step.kind is StepKind.EMBEDDING:
                tokens = _pay_tokens(tower, step, budget) or tokens
                continue
            new = _pay_step(tower, step, level, planned, budget)
            pieces += new
            planned.update(_by_key(new))
        if pieces or tokens is not None:
            stages.append(Stage(tuple(pieces), tokens))
    spent = most - budget.remaining
    return ReadingPlan(tuple(stages), False, spent, tuple(dict.fromkeys(budget.left_out)))


def _pay_whole(tower: Tower, budget: _Budget) -> bool:
    """Whether everything of a model is read: it fits into its budget."""
    price = tower.whole_bytes + tower.tokenizer_bytes
    if tower.partial or price > budget.remaining:
        return False
    budget.remaining -= price
    return True


def _pay_step(
    tower: Tower,
    step: Step,
    level: LevelPlan,
    planned: Mapping[PieceKey, Piece],
    budget: _Budget,
) -> list[Piece]:
    """What a step adds, in fewer layers where all would cost too much."""
    most = budget.remaining // 2 if step.extra else budget.remaining
    layers = step.layers
    while True:
        wanted = STEPS[step.kind](tower, msgspec.structs.replace(step, layers=layers), level)
        fresh = _fresh(planned, wanted)
        price = _price(tower, fresh, planned)
        if price <= most or layers < 2:
            break
        layers //= 2
    if not fresh or (step.extra and price > most):
        return []
    return fresh if budget.pay(price, _left_out(step.kind)) else []


def _price(tower: Tower, fresh: Sequence[Piece], planned: Mapping[PieceKey, Piece]) -> int:
    """What pieces cost beyond all that was planned before; gaps between them are read through."""
    if not fresh:
        return 0
    both = {**planned, **_by_key(fresh)}
    return max(tower.cost(list(both.values())) - tower.cost(list(planned.values())), 0)


def _fresh(planned: Mapping[PieceKey, Piece], wanted: Sequence[Piece]) -> list[Piece]:
    """Pieces that hold more than what was planned before."""
    fresh = []
    for piece in wanted:
        before = planned.get((piece.address, piece.inputs))
        known = before is not None and (
            before.rows is None or (piece.rows is not None and set(piece.rows) <= set(before.rows))
        )
        if not known:
            fresh.append(piece)
    return fresh


def _by_key(pieces: Sequence[Piece]) -> dict[PieceKey, Piece]:
    return {(piece.address, piece.inputs): piece for piece in pieces}


def _pay_tokens(tower: Tower, step: Step, budget: _Budget) -> TokenRows | None:
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
    price = tower.cost([Piece(table, tuple(range(count)))])
    if spelled:
        price += SPREAD_TOKENS * (tower.cost([Piece(table, (0,))]) + _APART)
    price = min(price, tower.cost([Piece(table)]))
    vocabulary = tower.tokenizer_bytes if spelled else 0
    if not budget.pay(price + vocabulary, _left_out(step.kind)):
        return None
    head = tower.head is not None and price <= budget.remaining // 2
    budget.remaining -= price if head else 0
    return TokenRows(count, spelled, price, head)


def _left_out(kind: StepKind) -> Message:
    return text.message(f"note.left-out.{kind}")
