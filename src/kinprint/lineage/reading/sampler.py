"""From models to samples: planned first, one reading a stage for all models, within a budget.

What is read of a model depends on it, on level, seed and its part of a budget; models only come
together for the sake of one reading. A comparison asks for stages one after the other and stops
when the answer is clear; what has been read is kept, and the samples of each stage hold all of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future
from functools import cached_property

import numpy as np

from kinprint.errors import FormatError
from kinprint.lineage.reading.assembly import ReadPiece, assemble, sha256_of
from kinprint.lineage.reading.deciding import part_sizes
from kinprint.lineage.reading.levels import LevelPlan, level_plan
from kinprint.lineage.reading.plan import PieceKey, ReadingPlan, Stage, plan_reading
from kinprint.lineage.reading.sample import (
    Embedding,
    Extent,
    Floats,
    Indices,
    Sample,
    SampleRecord,
)
from kinprint.lineage.reading.tokens import ChosenTokens, all_tokens, choose_tokens
from kinprint.lineage.reading.tower import Piece, Tower, could_match, towers_of, unclaimed_parts
from kinprint.mapped import keep
from kinprint.model.model import Model, wants_of
from kinprint.model.places import Address
from kinprint.model.tokens import Vocabulary
from kinprint.reader.fetch import Fetcher, Want, joined_wants
from kinprint.records import ByteRange, Component, Cost, Level, Part
from kinprint.text import Message, message
from kinprint.workers import Threads

_NO_STAGE = Stage(())
_WORTH_A_THREAD = 1 << 20  # bytes; fewer are digested before another thread has woken


class TowerReader:
    """One tower under reading: its plan, and what has been read of it so far."""

    def __init__(self, tower: Tower, plan: ReadingPlan, level: Level) -> None:
        self.tower, self.plan = tower, plan
        self._more = level is not Level.DEEP or bool(plan.left_out)
        self.vocabulary: Vocabulary | None = None
        self._pieces: dict[PieceKey, ReadPiece] = {}
        self._tables: dict[Address, Embedding] = {}
        self._chosen: dict[int, ChosenTokens] = {}
        self._record = SampleRecord(tower.label, "", ())

    @cached_property
    def _sizes(self) -> dict[Part, Extent]:
        return part_sizes(self.tower, more=self._more)

    def stage(self, number: int) -> Stage:
        """What is read in a stage, counted from 0; nothing after the last."""
        stages = self.plan.stages
        return stages[number] if number < len(stages) else _NO_STAGE

    def parts(self, first: int) -> Iterator[Part]:
        """Parts of which something is read in a stage, counted from 0, or in a later one."""
        for stage in self.plan.stages[first:]:
            for piece in stage.pieces:
                part = self.tower.weights.get(piece.address)
                if part is not None:
                    yield part
            if stage.tokens is not None:
                yield Part(Component.EMBEDDING, tower=self.tower.label)
                if stage.tokens.head:
                    yield Part(Component.HEAD, tower=self.tower.label)

    def wants(self, number: int) -> list[Want]:
        """All bytes of a stage that are known beforehand, a tokenizer among them."""
        stage = self.stage(number)
        readings = [each for piece in stage.pieces for each in self.tower.readings(piece)]
        wants = wants_of(readings)
        spelled = stage.tokens is not None and stage.tokens.spelled
        whole = self.plan.whole and number == 0 and self.tower.first
        if spelled or whole:
            wants += _tokenizer_wants(self.tower)
        return wants

    def choose(self, number: int, parsed: dict[bytes, Vocabulary]) -> list[Want]:
        """Choose a stage's tokens, now that the tokenizer is there; the bytes that they need."""
        stage = self.stage(number)
        if self.tower.embedding is None:
            return []
        if (self.plan.whole and number == 0) or (stage.tokens and stage.tokens.spelled):
            self._read_vocabulary(parsed)
        if stage.tokens is None:
            return []
        self._chosen[number] = choose_tokens(
            self.tower, self.tower.embedding, stage.tokens, self.vocabulary
        )
        pieces = self._token_pieces(number)
        return wants_of(reading for piece in pieces for reading in self.tower.readings(piece))

    def take(self, number: int, beside: Executor) -> None:
        """Keep a stage's numbers, and the rows of its tokens; digests are made beside."""
        stage = self.stage(number)
        for piece, read in read_pieces(self.tower, stage.pieces, beside):
            self._pieces[piece.address, piece.inputs] = read
        if self.plan.whole and number == 0 and self.tower.embedding is not None:
            self._keep_whole_tables()
        for piece, read in read_pieces(self.tower, self._token_pieces(number), beside):
            chosen = self._chosen[number]
            assert piece.rows is not None
            place = {token: row for row, token in enumerate(piece.rows)}
            rows = keep(read.values[[place[token] for token in chosen.ids]])
            ids = np.array(chosen.ids, np.int64)
            self._tables[piece.address] = Embedding(chosen.names, ids, rows, read.read)

    def forget(self) -> None:
        """Hold no numbers any more; those of the last sample are its own."""
        self._pieces.clear()
        self._tables.clear()

    def sample(self) -> Sample:
        """The tower as far as it has been read."""
        tables = self._tables
        embedding, head = (
            None if address is None else tables.get(address)
            for address in (self.tower.embedding, self.tower.head)
        )
        sample = assemble(self.tower, self._sizes, self._pieces, embedding, head)
        self._record = SampleRecord(sample.tower, sample.key, sample.read)
        return sample

    def record(self) -> SampleRecord:
        """What was read for the last sample."""
        return self._record

    def _token_pieces(self, number: int) -> list[Piece]:
        tokens, chosen = self.stage(number).tokens, self._chosen.get(number)
        if tokens is None or chosen is None or not chosen.ids:
            return []
        tables = [self.tower.embedding, self.tower.head if tokens.head else None]
        ids = tuple(sorted(chosen.ids))
        return [Piece(address, ids) for address in tables if address is not None]

    def _keep_whole_tables(self) -> None:
        """All tokens of a model that was read whole."""
        if self.vocabulary is None:
            return
        for address in (self.tower.embedding, self.tower.head):
            piece = None if address is None else self._pieces.get((address, False))
            if address is None or piece is None:  # whole numbers are no weights
                continue
            chosen = all_tokens(self.vocabulary, len(piece.values))
            if chosen.ids:
                ids = np.array(chosen.ids, np.int64)
                rows = _rows_of(piece.values, ids)
                self._tables[address] = Embedding(chosen.names, ids, rows, piece.read)

    def _read_vocabulary(self, parsed: dict[bytes, Vocabulary]) -> None:
        if self.vocabulary is None:
            try:
                self.vocabulary = self.tower.model.vocabulary(parsed)
            except FormatError as error:  # a comparison of embeddings is lost, no more
                self.tower.notes.append(error.message)


class Sampler:
    """Reads some models for a comparison: their plans, and what has been read so far.

    Parameters
    ----------
    models
        What is compared; the first two are the pair, where there are controls.
    level
        How much to read.
    limit
        The most bytes that each model may cost, opening included; None for the level's own.
    seed
        Moves the places of what is read.
    """

    def __init__(
        self, models: Sequence[Model], level: Level, limit: int | None = None, seed: int = 0
    ) -> None:
        plan = level_plan(level, seed)
        self.models: tuple[tuple[TowerReader, ...], ...] = tuple(
            _readers(model, plan, limit, level) for model in models
        )
        self._parsed: dict[bytes, Vocabulary] = {}
        self._stages_read = 0
        self._unclaimed: dict[int, Mapping[Part, int]] = {}

    @property
    def readers(self) -> tuple[TowerReader, ...]:
        """The towers of all models."""
        return tuple(reader for model in self.models for reader in model)

    @property
    def stages(self) -> int:
        """How many stages there are; at least one, if it reads nothing."""
        return max(1, *(len(reader.plan.stages) for reader in self.readers))

    @property
    def whole(self) -> tuple[bool, ...]:
        """Of each model, whether everything is read."""
        return tuple(all(reader.plan.whole for reader in model) for model in self.models)

    def covered(self, place: int) -> bool:
        """Whether something was read of every tensor that a model stores."""
        return not self.outside(place) and not self._refused(place)

    def outside(self, place: int) -> tuple[str, ...]:
        """Tensors that a model stores and of which nothing was read, by name.

        Those that cannot be read have a remark of their own.
        """
        model = self.models[place]
        read = {one.tensor for reader in model for one in reader.record().tensors}
        stored = frozenset().union(*(reader.tower.model.stored for reader in model))
        return tuple(sorted(stored - read - self._refused(place)))

    def _refused(self, place: int) -> frozenset[str]:
        """Tensors of a model that cannot be read, by name."""
        return frozenset(
            one.weight.spec.name
            for reader in self.models[place]
            for one in reader.tower.places.values()
            if one.weight.refusal is not None
        )

    @property
    def bytes(self) -> int:
        """The most that all stages cost, headers included."""
        return sum(reader.plan.bytes for reader in self.readers)

    @property
    def left_out(self) -> tuple[Message, ...]:
        """What the budget did not allow of main towers, each once; of others parts say it."""
        return tuple(dict.fromkeys(one for main, *_ in self.models for one in main.plan.left_out))

    @property
    def notes(self) -> tuple[Message, ...]:
        """Remarks on how models were read."""
        return tuple(note for reader in self.readers for note in reader.tower.notes)

    @property
    def vocabularies(self) -> list[Vocabulary | None]:
        """The vocabularies that were read; those that were not needed stay unread."""
        return [main.vocabulary for main, *_ in self.models]

    @property
    def read(self) -> tuple[tuple[SampleRecord, ...], ...]:
        """What has been read of each model, tower by tower."""
        return tuple(tuple(reader.record() for reader in model) for model in self.models)

    def unclaimed(self, place: int) -> Mapping[Part, int]:
        """Parts of a model that belong to no tower that is read, with how many numbers they have.

        Blocks that no test is made for, and what stands alone beside a tower.
        """
        if place not in self._unclaimed:
            self._unclaimed[place] = unclaimed_parts([one.tower for one in self.models[place]])
        return self._unclaimed[place]

    def tower_pairs(self, one: int, other: int) -> tuple[tuple[int, int], ...]:
        """Places of the towers of two models that meet; the main towers come first."""
        ours, theirs = ([each.tower for each in self.models[at]] for at in (one, other))
        return tuple(
            (at, to)
            for at, tower in enumerate(ours)
            for to, partner in enumerate(theirs)
            if could_match(tower, partner)
        )

    def unread(self, stages: int) -> frozenset[Part]:
        """Parts of the first two models that the stages after so many would read of either."""
        return frozenset(
            part for model in self.models[:2] for reader in model for part in reader.parts(stages)
        )

    def costs(self) -> tuple[Cost, ...]:
        """What each stage would still cost; tokens at their most, until they are known."""
        costs: list[Cost] = []
        wants: list[Want] = []
        before = Cost()
        for number in range(self.stages):
            own_wants = [want for reader in self.readers for want in reader.wants(number)]
            wants += joined_wants(own_wants)  # what earlier stages read is known to later ones
            plans = self._fetcher.plan(wants)
            total = sum((plan.cost for plan in plans), Cost())
            rows = sum(self._token_bytes(reader, number) for reader in self.readers)
            tokens = Cost(rows, -(-rows // self._fetcher.policy.part))
            own = Cost(total.bytes - before.bytes, total.requests - before.requests)
            costs.append(own + tokens)
            before = total
        return tuple(costs)

    def samples(self, stage: int) -> list[Sample]:
        """The main towers as they are after a stage, counted from 0; what is missing is read."""
        return [main for main, *_ in self.towers(stage)]

    def towers(self, stage: int) -> list[tuple[Sample, ...]]:
        """All towers of each model, the main one first, as they are after a stage."""
        for number in range(self._stages_read, min(stage + 1, self.stages)):
            self._fetch(number)
            with Threads(1, "kinprint-digests") as beside:
                for reader in self.readers:
                    reader.take(number, beside)
            self._stages_read = number + 1
        return [tuple(reader.sample() for reader in model) for model in self.models]

    def each_model(self) -> Iterator[tuple[Sample, ...]]:
        """All towers of one model after another, read to the last stage and held no longer."""
        for number in range(self.stages):
            self._fetch(number)
        for model in self.models:
            with Threads(1, "kinprint-digests") as beside:
                for reader in model:
                    for number in range(self.stages):
                        reader.take(number, beside)
            yield tuple(reader.sample() for reader in model)
            for reader in model:
                reader.forget()

    @property
    def _fetcher(self) -> Fetcher:
        return self.readers[0].tower.model.checkpoint.fetcher

    @staticmethod
    def _token_bytes(reader: TowerReader, number: int) -> int:
        tokens = reader.stage(number).tokens
        if tokens is None or reader.tower.model.checkpoint.ref.kind == "local":
            return 0
        return tokens.bytes * (2 if tokens.head else 1)

    def _fetch(self, number: int) -> None:
        """One sweep for what is known beforehand, one for the tokens that are known after it."""
        self._fetcher.ensure(
            joined_wants([want for reader in self.readers for want in reader.wants(number)])
        )
        of_tokens = [
            want for reader in self.readers for want in reader.choose(number, self._parsed)
        ]
        self._fetcher.ensure(joined_wants(of_tokens))


def _readers(
    model: Model, plan: LevelPlan, limit: int | None, level: Level
) -> tuple[TowerReader, ...]:
    towers = towers_of(model)
    plans = plan_reading(towers, plan, limit)
    return tuple(TowerReader(*both, level) for both in zip(towers, plans, strict=True))


def read_pieces(
    tower: Tower, pieces: Sequence[Piece], beside: Executor
) -> list[tuple[Piece, ReadPiece]]:
    """Pieces with their numbers and what was read for them.

    A digest takes as long as the reading, and leaves the interpreter alone: where there is much to
    digest, it is made beside. What has not begun when all is read is made here, from the other end.
    """
    values: list[Floats] = []
    coming: list[Future[str] | None] = []
    for piece in pieces:
        values.append(_numbers(tower, piece))
        much = values[-1].nbytes >= _WORTH_A_THREAD
        coming.append(beside.submit(sha256_of, values[-1]) if much else None)
    digests = [
        sha256_of(numbers) if digest is None or digest.cancel() else digest.result()
        for numbers, digest in zip(reversed(values), reversed(coming), strict=True)
    ]
    return [
        (piece, ReadPiece.of(tower, piece, numbers, digest, _stored(tower, piece)))
        for piece, numbers, digest in zip(pieces, values, reversed(digests), strict=True)
    ]


def _numbers(tower: Tower, piece: Piece) -> Floats:
    """The numbers of a piece; those that are none are noted."""
    arrays: list[Floats] = [reading.take() for reading in tower.readings(piece)]
    values = arrays[0]
    if piece.inputs:
        joined = arrays[0] if len(arrays) == 1 else np.concatenate(arrays, axis=1)
        values = np.ascontiguousarray(joined.T)
    if not np.isfinite(values).all():
        name = tower.places[piece.address].weight.name
        tower.notes.append(message("note.not-finite", model=tower.name, name=name))
    return keep(values)


def _rows_of(table: Floats, ids: Indices) -> Floats:
    """Rows of a table by ascending numbers; consecutive ones stay where they are."""
    first, stop = int(ids[0]), int(ids[-1]) + 1
    return table[first:stop] if stop - first == len(ids) else keep(table[ids])


def _stored(tower: Tower, piece: Piece) -> Floats | None:
    """The numbers of a piece as they are stored, where these are less by one."""
    first = tower.readings(piece)[0]
    return keep(first.take_without_offset()) if first.offset else None


def _tokenizer_wants(tower: Tower) -> list[Want]:
    choice, checkpoint = tower.tokenizer, tower.model.checkpoint
    if choice is None or choice.in_header:
        return []
    files = [checkpoint.files[path] for path in (choice.path, *choice.companions)]
    return [Want(checkpoint.source, file, (ByteRange(0, file.size),)) for file in files]
