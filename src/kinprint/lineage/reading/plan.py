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

_SHORT = 1_000_000  # tokenizers up to this length are read; servers tell no digest of them
_WASTE = 1.25  # tokens lie scattered: what reading them brings beyond the rows themselves

PieceKey = tuple[Address, bool]
"""A tensor, and whether its rows are counted along its inputs."""


@dataclass(frozen=True, slots=True)
class TokenRows:
    """Rows of the embedding to read in a stage, of tokens that all models share.

    With `by_id` tokens are known by their number, because all tokenizers are one file.
    """

    count: int
    by_id: bool


@dataclass(frozen=True, slots=True)
class Stage:
    """What is read at once: pieces of each tower, and tokens where they are to be read."""

    pieces: tuple[tuple[Piece, ...], ...]
    tokens: TokenRows | None = None


@dataclass(frozen=True, slots=True)
class ReadingPlan:
    """What a comparison reads.

    Attributes
    ----------
    stages
        What is read in each stage.
    whole
        Of each tower, whether everything is read.
    bytes
        What all of it costs, headers included.
    left_out
        What the budget did not allow.
    """

    stages: tuple[Stage, ...]
    whole: tuple[bool, ...]
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


def plan_reading(towers: Sequence[Tower], level: LevelPlan, limit: int | None) -> ReadingPlan:
    """Decide what to read.

    Parameters
    ----------
    towers
        What is compared.
    level
        What the level reads, and its bytes for two models together.
    limit
        A lower limit in bytes, for all models together; None where there is none. Headers that
        have been read count.
    """
    each = level.budget // 2 if limit is None else min(level.budget // 2, limit // len(towers))
    budget = _Budget(each * len(towers) - sum(tower.known_bytes for tower in towers))
    whole = tuple(_pay_whole(tower, each, budget) for tower in towers)
    some = [at for at, all_of_it in enumerate(whole) if not all_of_it]
    stages: list[Stage] = []
    planned: list[dict[PieceKey, Piece]] = [{} for _ in towers]
    for number in range(1, level.stages + 1):
        pieces: list[list[Piece]] = [
            list(all_pieces(tower)) if all_of_it and number == 1 else []
            for tower, all_of_it in zip(towers, whole, strict=True)
        ]
        tokens = None
        for step in level.steps if some else ():
            if step.stage != number:
                continue
            if step.kind is StepKind.EMBEDDING:
                tokens = _pay_tokens(towers, some, step, budget) or tokens
                continue
            for at, new in enumerate(_pay_step(towers, some, step, level, planned, budget)):
                pieces[at] += new
                planned[at].update(_by_key(new))
        if any(pieces) or tokens is not None:
            stages.append(Stage(tuple(map(tuple, pieces)), tokens))
    spent = each * len(towers) - budget.remaining
    return ReadingPlan(tuple(stages), whole, spent, tuple(dict.fromkeys(budget.left_out)))


def _pay_whole(tower: Tower, each: int, budget: _Budget) -> bool:
    """Whether everything of a model is read: it fits into its part of the budget."""
    price = tower.whole_bytes + tower.tokenizer_bytes
    fits = tower.known_bytes + price <= each and not tower.partial
    return fits and budget.pay(price, text.message("note.left-out.model", model=tower.name))


def _pay_step(
    towers: Sequence[Tower],
    some: Sequence[int],
    step: Step,
    level: LevelPlan,
    planned: Sequence[Mapping[PieceKey, Piece]],
    budget: _Budget,
) -> list[list[Piece]]:
    """What a step adds for each model, in fewer layers where all would cost too much."""
    nothing: list[list[Piece]] = [[] for _ in towers]
    layers = step.layers
    while True:
        fewer = msgspec.structs.replace(step, layers=layers)
        wanted = STEPS[step.kind](towers, some, fewer, level)
        fresh = [_fresh(before, wanted.get(at, [])) for at, before in enumerate(planned)]
        price = sum(map(_price, towers, fresh, planned))
        if price <= (budget.remaining // 2 if step.extra else budget.remaining) or layers < 2:
            break
        layers //= 2
    if step.extra and price > budget.remaining // 2:  # tokens may cost more than their price
        return nothing
    return fresh if any(fresh) and budget.pay(price, _left_out(step.kind)) else nothing


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


def _pay_tokens(
    towers: Sequence[Tower], some: Sequence[int], step: Step, budget: _Budget
) -> TokenRows | None:
    """Tokens to read, if the tokenizers are one file or short enough to be read."""
    if any(tower.embedding is None or tower.tokenizer is None for tower in towers):
        return None
    longest = max(tower.tokenizer_bytes for tower in towers)
    digests = {tower.tokenizer_digest for tower in towers} if longest > _SHORT else {""}
    by_id = len(digests) == 1 and "" not in digests and len(some) == len(towers)
    if not by_id and longest > step.tokenizers:
        budget.left_out.append(_left_out(step.kind))
        return None
    width = max(tower.width for tower in towers)
    count = width + width // 8 if step.tokens == WIDTH else step.tokens
    price = 0
    for tower in (towers[at] for at in some):
        rows = min(count, tower.length(tower.embedding)) if tower.embedding is not None else 0
        price += int(_WASTE * tower.row_bytes * rows) + (0 if by_id else tower.tokenizer_bytes)
    return TokenRows(count, by_id) if budget.pay(price, _left_out(step.kind)) else None


def _left_out(kind: StepKind) -> Message:
    return text.message(f"note.left-out.{kind}")
