"""From models to samples: planned first, one reading a stage for all models, within a budget.

A comparison asks for stages one after the other and stops when the answer is clear; what has
been read is kept, and the samples of each stage hold all of it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kinprint.errors import BudgetExceeded, FormatError
from kinprint.lineage.reading.assembly import ReadPiece, assemble
from kinprint.lineage.reading.levels import Grid, level_plan
from kinprint.lineage.reading.plan import PieceKey, ReadingPlan, Stage, TokenRows, plan_reading
from kinprint.lineage.reading.sample import Embedding, Floats, Sample
from kinprint.lineage.reading.tower import Piece, Tower, tower_of
from kinprint.model.model import Model, Reading, wants_of
from kinprint.model.places import Address
from kinprint.model.tokens import Vocabulary, align
from kinprint.reader.fetch import Fetcher, Want
from kinprint.records import ByteRange, Cost, Level

_RUN = 64  # tokens that lie side by side, where any tokens will do

TokenIds = dict[int, list[int]]
"""Numbers of the chosen tokens by the place of the model."""


class Sampler:
    """Reads some models for a comparison: a plan, and what has been read so far.

    Parameters
    ----------
    models
        What is compared; the first two are the pair, where there are controls.
    level
        How much to read.
    budget
        The most bytes that all of it may cost, headers included; None for the level's own.
    """

    def __init__(self, models: Sequence[Model], level: Level, budget: int | None = None) -> None:
        self.towers: tuple[Tower, ...] = tuple(map(tower_of, models))
        self.plan: ReadingPlan = plan_reading(self.towers, level_plan(level), budget)
        self._pieces: tuple[dict[PieceKey, ReadPiece], ...] = tuple({} for _ in models)
        self._embeddings: list[Embedding | None] = [None for _ in models]
        self._vocabularies: dict[int, Vocabulary | None] = {}
        self._parsed: dict[bytes, Vocabulary] = {}
        self._stages_read = 0

    @property
    def stages(self) -> int:
        """How many stages there are; at least one, if it reads nothing."""
        return max(len(self.plan.stages), 1)

    @property
    def whole(self) -> bool:
        """Whether everything of all models is read."""
        return all(self.plan.whole)

    @property
    def vocabularies(self) -> list[Vocabulary | None]:
        """The vocabularies that were read; those that were not needed stay unread."""
        return [self._vocabularies.get(at) for at in range(len(self.towers))]

    def costs(self) -> tuple[Cost, ...]:
        """What each stage would still cost; tokens are estimated until they are known."""
        costs: list[Cost] = []
        wants: list[Want] = []
        before = Cost()
        for number, stage in enumerate(self.plan.stages):
            wants += self._wants(stage, number)
            plans = self._fetcher.plan(_joined(wants))
            total = sum((plan.cost for plan in plans), Cost())
            rows = self._token_bytes(stage)
            tokens = Cost(rows, -(-rows // self._fetcher.policy.part))
            own = Cost(total.bytes - before.bytes, total.requests - before.requests)
            costs.append(own + tokens)
            before = total
        return tuple(costs)

    def samples(self, stage: int) -> list[Sample]:
        """All samples as they are after a stage, counted from 0; what is missing is read."""
        while self._stages_read <= min(stage, len(self.plan.stages) - 1):
            self._read(self._stages_read)
            self._stages_read += 1
        return list(map(assemble, self.towers, self._pieces, self._embeddings))

    @property
    def _fetcher(self) -> Fetcher:
        return self.towers[0].model.checkpoint.fetcher

    def _token_bytes(self, stage: Stage) -> int:
        if stage.tokens is None:
            return 0
        remote = [
            tower
            for tower, whole in zip(self.towers, self.plan.whole, strict=True)
            if not whole and tower.model.checkpoint.ref.kind != "local"
        ]
        return sum(stage.tokens.count * tower.row_bytes for tower in remote)

    def _read(self, number: int) -> None:
        stage = self.plan.stages[number]
        self._fetcher.ensure(_joined(self._wants(stage, number)))
        for tower, wanted, pieces in zip(self.towers, stage.pieces, self._pieces, strict=True):
            for piece in wanted:
                pieces[piece.address, piece.inputs] = ReadPiece(piece.rows, _rows(tower, piece))
        if number == 0:
            for at, whole in enumerate(self.plan.whole):
                if whole:
                    self._embeddings[at] = self._whole_embedding(at)
        if stage.tokens is not None:
            self._read_tokens(stage.tokens)

    def _wants(self, stage: Stage, number: int) -> list[Want]:
        """All bytes of a stage that are known beforehand, tokenizers among them."""
        readings: list[Reading] = []
        tokenizers: list[Want] = []
        by_spelling = stage.tokens is not None and not stage.tokens.by_id
        for at, tower in enumerate(self.towers):
            readings += [each for piece in stage.pieces[at] for each in tower.readings(piece)]
            if (self.plan.whole[at] and number == 0) or by_spelling:
                tokenizers += _tokenizer_wants(tower)
        return wants_of(readings) + tokenizers

    def _vocabulary(self, at: int) -> Vocabulary | None:
        if at not in self._vocabularies:
            tower = self.towers[at]
            try:
                self._vocabularies[at] = tower.model.vocabulary(self._parsed)
            except FormatError as error:  # a comparison of embeddings is lost, no more
                tower.notes.append(error.message)
                self._vocabularies[at] = None
        return self._vocabularies[at]

    def _whole_embedding(self, at: int) -> Embedding | None:
        """All tokens of a model that was read whole; of equal spellings the first."""
        tower = self.towers[at]
        vocabulary = self._vocabulary(at)
        if tower.embedding is None or vocabulary is None:
            return None
        rows = self._pieces[at][tower.embedding, False].values
        numbers: dict[bytes, int] = {}
        for number, token in enumerate(vocabulary.tokens[: len(rows)]):
            if token is not None and number not in vocabulary.special:
                numbers.setdefault(token, number)
        ids = np.array(list(numbers.values()), np.int64)
        return Embedding(tuple(numbers), ids, rows[ids]) if numbers else None

    def _read_tokens(self, tokens: TokenRows) -> None:
        """Rows of tokens that all models share, read at once."""
        some = [at for at, whole in enumerate(self.plan.whole) if not whole]
        choose = self._tokens_by_number if tokens.by_id else self._tokens_by_spelling
        names, ids = choose(tokens.count)
        if not names:
            return
        pieces = {at: Piece(self._embedding_of(at), tuple(sorted(ids[at]))) for at in some}
        readings = [each for at in some for each in self.towers[at].readings(pieces[at])]
        try:
            self._fetcher.ensure(_joined(wants_of(readings)))
        except BudgetExceeded as error:  # tokens lie further apart than was estimated
            self.towers[some[0]].notes.append(error.message)
            return
        for at in some:
            rows = _rows(self.towers[at], pieces[at])
            place = {number: row for row, number in enumerate(sorted(ids[at]))}
            order = [place[number] for number in ids[at]]
            self._embeddings[at] = Embedding(names, np.array(ids[at], np.int64), rows[order])

    def _tokens_by_number(self, count: int) -> tuple[tuple[bytes, ...], TokenIds]:
        """Tokens of one and the same tokenizer: any will do, so runs of them are read."""
        height = min(self._heights)
        runs = Grid(max(height // _RUN, 1)).first(-(-count // _RUN))
        chosen = [run * _RUN + at for run in runs for at in range(min(_RUN, height))][:count]
        names = tuple(f"#{number}".encode() for number in chosen)
        return names, dict.fromkeys(range(len(self.towers)), chosen)

    def _tokens_by_spelling(self, count: int) -> tuple[tuple[bytes, ...], TokenIds]:
        """Tokens that all tokenizers have, those with low numbers first: they lie close."""
        first, *others = (self._vocabulary(at) for at in range(len(self.towers)))
        if first is None:
            return (), {}
        height, *heights = self._heights
        # Numbers of a token in each of the models so far, by its number in the first.
        shared = {at: [at] for at in range(min(first.size, height)) if at not in first.special}
        for height, other in zip(heights, others, strict=True):
            if other is None:
                return (), {}
            pairs = align(first, other)
            partner = dict(zip(pairs.a.tolist(), pairs.b.tolist(), strict=True))
            shared = {
                at: [*numbers, partner[at]]
                for at, numbers in shared.items()
                if partner.get(at, height) < height
            }

        def low(numbers: list[int]) -> tuple[int, list[int], bytes]:
            """Low numbers first, whichever model was named first."""
            return max(numbers), sorted(numbers), first.tokens[numbers[0]] or b""

        chosen = sorted(shared.values(), key=low)[:count]
        names = tuple(first.tokens[numbers[0]] or b"" for numbers in chosen)
        return names, {at: [numbers[at] for numbers in chosen] for at in range(len(self.towers))}

    @property
    def _heights(self) -> list[int]:
        """Rows of each embedding."""
        return [tower.length(self._embedding_of(at)) for at, tower in enumerate(self.towers)]

    def _embedding_of(self, at: int) -> Address:
        embedding = self.towers[at].embedding
        assert embedding is not None
        return embedding


def _rows(tower: Tower, piece: Piece) -> Floats:
    arrays = [reading.take() for reading in tower.readings(piece)]
    if not piece.inputs:
        return arrays[0]
    return np.ascontiguousarray(np.concatenate(arrays, axis=1).T)


def _tokenizer_wants(tower: Tower) -> list[Want]:
    choice, checkpoint = tower.tokenizer, tower.model.checkpoint
    if choice is None or choice.in_header:
        return []
    files = [checkpoint.files[path] for path in (choice.path, *choice.companions)]
    return [Want(checkpoint.source, file, (ByteRange(0, file.size),)) for file in files]


def _joined(wants: Sequence[Want]) -> list[Want]:
    """One want a file."""
    joined: dict[tuple[int, str], Want] = {}
    for want in wants:
        key = id(want.source), want.entry.path
        ranges = joined[key].ranges if key in joined else ()
        joined[key] = Want(want.source, want.entry, (*ranges, *want.ranges))
    return list(joined.values())
