"""What is read of each model, stage by stage, within a budget: decided before the first byte.

Nothing here looks at a weight. The choice depends on shapes, lengths and the level alone, so
that stopping early, or reading little, says nothing about what the weights will show.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from kinprint.lineage.reading.levels import (
    WIDTH,
    Level,
    Step,
)
from kinprint.lineage.reading.steps import STEPS, whole_parts
from kinprint.lineage.reading.tower import Part, Tower

_SHORT = 1_000_000  # tokenizers up to this length are read; servers tell no digest of them
_WASTE = 1.25  # tokens lie scattered: what reading them brings beyond the rows themselves


@dataclass(frozen=True, slots=True)
class Tokens:
    """Rows of the embedding to read in a stage, of tokens that all models share.

    With `by_id` tokens are known by their number, because all tokenizers are one file.
    """

    count: int
    by_id: bool


@dataclass(frozen=True, slots=True)
class Stage:
    """One sweep: parts of each tower, and tokens where they are to be read."""

    parts: tuple[tuple[Part, ...], ...]
    tokens: Tokens | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """All sweeps of a comparison and the bytes they cost, headers included.

    `whole` says of each tower whether everything is read; `left_out` names the steps that
    the budget did not allow.
    """

    stages: tuple[Stage, ...]
    whole: tuple[bool, ...]
    bytes: int
    left_out: tuple[str, ...] = ()


@dataclass(slots=True)
class _Allowance:
    """What may still be spent."""

    left: int
    left_out: list[str] = field(default_factory=list)

    def pay(self, price: int, what: str) -> bool:
        if price > self.left:
            self.left_out.append(what)
            return False
        self.left -= price
        return True


def plan_reading(towers: Sequence[Tower], level: Level, budget: int | None = None) -> Plan:
    """Decide what to read; `budget` is for all models together, headers included."""
    each = level.budget // 2 if budget is None else min(level.budget // 2, budget // len(towers))
    allowance = _Allowance(each * len(towers) - sum(one.known_bytes for one in towers))
    whole = []
    for one in towers:
        price = one.whole_bytes + one.tokenizer_bytes
        fits = one.known_bytes + price <= each and not one.partial
        whole.append(fits and allowance.pay(price, f"all of {one.name}"))
    stages: list[Stage] = []
    taken: list[dict[object, Part]] = [{} for _ in towers]
    some = [at for at, all_of_it in enumerate(whole) if not all_of_it]
    for number in range(1, level.stages + 1):
        parts: list[list[Part]] = [
            list(whole_parts(one)) if all_of_it and number == 1 else []
            for one, all_of_it in zip(towers, whole, strict=True)
        ]
        tokens = None
        for step in level.steps if some else ():
            if step.stage != number:
                continue
            if step.what == "embedding":
                tokens = _pay_tokens(towers, some, step, allowance) or tokens
                continue
            fresh = _affordable(towers, some, step, level, taken, allowance)
            for at, new in enumerate(fresh):
                parts[at] += new
                taken[at].update({(part.address, part.inputs): part for part in new})
        if any(parts) or tokens is not None:
            stages.append(Stage(tuple(map(tuple, parts)), tokens))
    spent = each * len(towers) - allowance.left
    return Plan(tuple(stages), tuple(whole), spent, tuple(dict.fromkeys(allowance.left_out)))


def _affordable(
    towers: Sequence[Tower],
    some: Sequence[int],
    step: Step,
    level: Level,
    taken: Sequence[Mapping[object, Part]],
    allowance: _Allowance,
) -> list[list[Part]]:
    """What a step adds for each model, in fewer layers where all would cost too much."""
    layers = step.layers
    while True:
        few = msgspec.structs.replace(step, layers=layers)
        wanted = STEPS[step.what](towers, some, few, level)
        fresh = [_fresh(mine, wanted.get(at, [])) for at, mine in enumerate(taken)]
        price = sum(map(_price, towers, fresh, taken))
        if price <= (allowance.left // 2 if step.extra else allowance.left) or layers < 2:
            break
        layers //= 2
    if step.extra and price > allowance.left // 2:  # tokens may cost more than they were priced at
        return [[] for _ in towers]
    if any(fresh) and allowance.pay(price, step.what):
        return fresh
    return [[] for _ in towers]


def _price(one: Tower, fresh: Sequence[Part], mine: Mapping[object, Part]) -> int:
    """What parts cost beyond all that was taken before; gaps between them are read through."""
    if not fresh:
        return 0
    both = dict(mine)
    both.update({(part.address, part.inputs): part for part in fresh})
    return max(one.cost(list(both.values())) - one.cost(list(mine.values())), 0)


def _fresh(mine: Mapping[object, Part], wanted: Sequence[Part]) -> list[Part]:
    """Parts that hold more than what was taken before."""
    found = []
    for part in wanted:
        before = mine.get((part.address, part.inputs))
        known = before is not None and (
            before.rows is None or (part.rows is not None and set(part.rows) <= set(before.rows))
        )
        if not known:
            found.append(part)
    return found


def _pay_tokens(
    towers: Sequence[Tower], some: Sequence[int], step: Step, allowance: _Allowance
) -> Tokens | None:
    """Tokens to read, if the tokenizers are one file or short enough to be read."""
    if any(one.embedding is None or one.tokenizer is None for one in towers):
        return None
    longest = max(one.tokenizer_bytes for one in towers)
    digests = {one.tokenizer_digest for one in towers} if longest > _SHORT else {""}
    by_id = len(digests) == 1 and "" not in digests and len(some) == len(towers)
    if not by_id and longest > step.tokenizers:
        allowance.left_out.append("embedding")
        return None
    width = max(one.width for one in towers)
    count = width + width // 8 if step.tokens == WIDTH else int(step.tokens)
    price = 0
    for at in some:
        one = towers[at]
        rows = min(count, one.length(one.embedding)) if one.embedding is not None else 0
        price += int(_WASTE * one.row_bytes * rows) + (0 if by_id else one.tokenizer_bytes)
    return Tokens(count, by_id) if allowance.pay(price, "embedding") else None
