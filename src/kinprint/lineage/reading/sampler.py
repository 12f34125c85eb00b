"""From models to samples: planned first, one sweep a stage for all models, within a budget.

A comparison asks for stages one after the other and stops when the answer is clear; what has
been read is kept, and each stage's samples hold all of it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kinprint.errors import BudgetExceeded, FormatError
from kinprint.lineage.reading.assembly import Key, Taken, assemble
from kinprint.lineage.reading.levels import Grid, level_named
from kinprint.lineage.reading.plan import Plan, Stage, Tokens, plan_reading
from kinprint.lineage.reading.sample import Embedding, Floats, Sample
from kinprint.lineage.reading.tower import Part, Tower, tower_of
from kinprint.model.model import Model, Reading, wants_of
from kinprint.model.places import Address
from kinprint.model.tokens import Vocabulary, align
from kinprint.reader.fetch import Fetcher, Want
from kinprint.records import ByteRange, Cost

_RUN = 64  # tokens that lie side by side, where any tokens will do


class Sampler:
    """The reading of some models for a comparison: a plan, and what has been read so far."""

    def __init__(self, models: Sequence[Model], level: str, budget: int | None = None) -> None:
        self.towers: tuple[Tower, ...] = tuple(map(tower_of, models))
        self.plan: Plan = plan_reading(self.towers, level_named(level), budget)
        self._taken: tuple[dict[Key, Taken], ...] = tuple({} for _ in models)
        self._embeddings: list[Embedding | None] = [None for _ in models]
        self._vocabularies: dict[int, Vocabulary | None] = {}
        self._same: dict[bytes, Vocabulary] = {}
        self._done = 0

    @property
    def stages(self) -> int:
        """How many sweeps there are; at least one, if it reads nothing."""
        return max(len(self.plan.stages), 1)

    @property
    def whole(self) -> bool:
        """Whether everything of all models is read."""
        return all(self.plan.whole)

    def costs(self) -> tuple[Cost, ...]:
        """What each stage would still cost; tokens are estimated until they are known."""
        found: list[Cost] = []
        before: list[Want] = []
        spent = Cost()
        for number, stage in enumerate(self.plan.stages):
            before += self._wants(stage, number)
            plans = self._fetcher.plan(_joined(before))
            total = sum((one.cost for one in plans), Cost())
            rows = self._token_bytes(stage)
            tokens = Cost(rows, -(-rows // self._fetcher.policy.part))
            found.append(Cost(total.bytes - spent.bytes, total.requests - spent.requests) + tokens)
            spent = total
        return tuple(found)

    def _token_bytes(self, stage: Stage) -> int:
        if stage.tokens is None:
            return 0
        remote = [
            one
            for one, whole in zip(self.towers, self.plan.whole, strict=True)
            if not whole and one.model.checkpoint.ref.kind != "local"
        ]
        return sum(stage.tokens.count * one.row_bytes for one in remote)

    def samples(self, stage: int) -> list[Sample]:
        """All samples as they are after a stage, reading what is missing."""
        while self._done <= min(stage, len(self.plan.stages) - 1):
            self._read(self._done)
            self._done += 1
        return [
            assemble(one, taken, embedding)
            for one, taken, embedding in zip(
                self.towers, self._taken, self._embeddings, strict=True
            )
        ]

    @property
    def _fetcher(self) -> Fetcher:
        return self.towers[0].model.checkpoint.fetcher

    def _read(self, number: int) -> None:
        stage = self.plan.stages[number]
        self._fetcher.ensure(_joined(self._wants(stage, number)))
        for one, parts, taken in zip(self.towers, stage.parts, self._taken, strict=True):
            for part in parts:
                taken[part.address, part.inputs] = Taken(part.rows, _take(one, part))
        if number == 0:
            for at, whole in enumerate(self.plan.whole):
                if whole:
                    self._embeddings[at] = self._whole_embedding(at)
        if stage.tokens is not None:
            self._read_tokens(stage.tokens)

    def _wants(self, stage: Stage, number: int) -> list[Want]:
        """All bytes of a stage that are known beforehand, tokenizers among them."""
        readings: list[Reading] = []
        wants: list[Want] = []
        for at, one in enumerate(self.towers):
            readings += [each for part in stage.parts[at] for each in one.readings(part)]
            shared = stage.tokens is not None and not stage.tokens.by_id
            if (self.plan.whole[at] and number == 0) or shared:
                wants += _tokenizer_wants(one)
        return wants_of(readings) + wants

    @property
    def vocabularies(self) -> list[Vocabulary | None]:
        """The vocabularies that were read; those that were not needed stay unread."""
        return [self._vocabularies.get(at) for at in range(len(self.towers))]

    def _vocabulary(self, at: int) -> Vocabulary | None:
        if at not in self._vocabularies:
            one = self.towers[at]
            try:
                self._vocabularies[at] = one.model.vocabulary(self._same)
            except FormatError as error:  # a comparison of embeddings is lost, no more
                one.notes.append(str(error))
                self._vocabularies[at] = None
        return self._vocabularies[at]

    def _whole_embedding(self, at: int) -> Embedding | None:
        """All tokens of a model that was read whole; of equal spellings the first."""
        one = self.towers[at]
        vocabulary = self._vocabulary(at)
        if one.embedding is None or vocabulary is None:
            return None
        rows = self._taken[at][one.embedding, False].values
        found: dict[bytes, int] = {}
        for number, token in enumerate(vocabulary.tokens[: len(rows)]):
            if token is not None and number not in vocabulary.special:
                found.setdefault(token, number)
        ids = np.array(list(found.values()), np.int64)
        return Embedding(tuple(found), ids, rows[ids]) if found else None

    def _read_tokens(self, tokens: Tokens) -> None:
        """Rows of tokens that all models share, in one sweep."""
        some = [at for at, whole in enumerate(self.plan.whole) if not whole]
        if tokens.by_id:
            names, ids = self._by_number(tokens.count)
        else:
            names, ids = self._shared(tokens.count)
        if not names:
            return
        parts = {at: Part(self._table(at), tuple(sorted(ids[at]))) for at in some}
        readings = [each for at in some for each in self.towers[at].readings(parts[at])]
        try:
            self._fetcher.ensure(_joined(wants_of(readings)))
        except BudgetExceeded as error:  # tokens lie further apart than was foreseen
            self.towers[some[0]].notes.append(str(error))
            return
        for at in some:
            rows = _take(self.towers[at], parts[at])
            place = {number: row for row, number in enumerate(sorted(ids[at]))}
            order = [place[number] for number in ids[at]]
            self._embeddings[at] = Embedding(names, np.array(ids[at], np.int64), rows[order])

    def _by_number(self, count: int) -> tuple[tuple[bytes, ...], dict[int, list[int]]]:
        """Tokens of one and the same tokenizer: any will do, so runs of them are read."""
        height = min(one.length(self._table(at)) for at, one in enumerate(self.towers))
        runs = Grid(max(height // _RUN, 1)).first(-(-count // _RUN))
        chosen = [run * _RUN + at for run in runs for at in range(min(_RUN, height))][:count]
        names = tuple(f"#{number}".encode() for number in chosen)
        return names, dict.fromkeys(range(len(self.towers)), chosen)

    def _shared(self, count: int) -> tuple[tuple[bytes, ...], dict[int, list[int]]]:
        """Tokens that all tokenizers have, those with low numbers first: they lie close."""
        known = [self._vocabulary(at) for at in range(len(self.towers))]
        first = known[0]
        if first is None:
            return (), {}
        heights = [one.length(self._table(at)) for at, one in enumerate(self.towers)]
        numbers = {at: [at] for at in range(min(first.size, heights[0])) if at not in first.special}
        for height, other in zip(heights[1:], known[1:], strict=True):
            if other is None:
                return (), {}
            pairs = align(first, other)
            partner = dict(zip(pairs.a.tolist(), pairs.b.tolist(), strict=True))
            numbers = {
                at: [*all_of, partner[at]]
                for at, all_of in numbers.items()
                if partner.get(at, height) < height
            }

        def low(all_of: list[int]) -> tuple[int, list[int], bytes]:
            """Low numbers first, whichever model was named first."""
            return max(all_of), sorted(all_of), first.tokens[all_of[0]] or b""

        chosen = sorted(numbers.values(), key=low)[:count]
        names = tuple(first.tokens[all_of[0]] or b"" for all_of in chosen)
        return names, {at: [all_of[at] for all_of in chosen] for at in range(len(self.towers))}

    def _table(self, at: int) -> Address:
        found = self.towers[at].embedding
        assert found is not None
        return found


def _take(one: Tower, part: Part) -> Floats:
    arrays = [reading.take() for reading in one.readings(part)]
    if not part.inputs:
        return arrays[0]
    return np.ascontiguousarray(np.concatenate(arrays, axis=1).T)


def _tokenizer_wants(one: Tower) -> list[Want]:
    choice, checkpoint = one.tokenizer, one.model.checkpoint
    if choice is None or choice.in_header:
        return []
    files = [checkpoint.files[path] for path in (choice.path, *choice.companions)]
    return [Want(checkpoint.source, file, (ByteRange(0, file.size),)) for file in files]


def _joined(wants: Sequence[Want]) -> list[Want]:
    """One want a file."""
    found: dict[tuple[int, str], Want] = {}
    for want in wants:
        key = id(want.source), want.entry.path
        before = found[key].ranges if key in found else ()
        found[key] = Want(want.source, want.entry, (*before, *want.ranges))
    return list(found.values())
