"""Which of two linked models came first: what each trace says, and what they say together.

A link has no direction, and everything that tells one can be arranged: digits filled in, tokens cut
off, a log or a date written anew. So one trace alone decides nothing: two of different kind must
say the same, and none may contradict. What a model declares about its origin is shown elsewhere
and never counted here.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from msgspec import Struct

from kinprint import text
from kinprint.lineage.about.description import commit_dates, first_bytes
from kinprint.lineage.compare import algebra_for
from kinprint.lineage.opening import open_all, read_headers, sampler_of
from kinprint.lineage.parts.tensors import at_equal_numbers, compared
from kinprint.lineage.preparation import Prepared
from kinprint.lineage.reading.sample import Floats, Sample
from kinprint.lineage.results import Settings
from kinprint.measure.drift import log_size
from kinprint.measure.rounding import coarser
from kinprint.model.tokens import Vocabulary
from kinprint.reader.checkpoint import Checkpoint
from kinprint.reader.fetch import Fetcher, Want
from kinprint.records import ByteRange, Component, Precedence, Role, Trace
from kinprint.text import Message

AGREEING = 2
"""Traces of different kind that must say the same."""
_STATE = "trainer_state.json"
_HEAD = 64 * 1024  # bytes of a log that are read
_STEP = re.compile(rb'"global_step"\s*:\s*(\d{1,12})')
_LOGGED = 4  # entries of two logs that must be the same, numbers of a loss among them
_DATE = 10  # letters of a date without the time of day
_GROWN = 0.03  # of the logarithm of the mean square


class TraceFound(Struct, frozen=True):
    """What one trace says: which it is, which model it puts first, and in words."""

    trace: Trace
    speaks: Precedence
    says: Message

    @property
    def swapped(self) -> TraceFound:
        """The same with the models exchanged."""
        first = self.speaks.swapped
        return TraceFound(self.trace, first, _said(self.trace, first, **self.says.fields))


class Direction(Struct, frozen=True):
    """Which of two models came first, and everything that was found about it.

    Attributes
    ----------
    answer : what the traces that count say together.
    traces : what each says; those that say nothing are left out.
    """

    answer: Precedence
    traces: tuple[TraceFound, ...] = ()

    def first_by(self, trace: Trace) -> Precedence | None:
        """Which model one trace puts first; None where there is no such trace."""
        return next((one.speaks for one in self.traces if one.trace is trace), None)

    @property
    def swapped(self) -> Direction:
        """The same with the models exchanged."""
        return Direction(self.answer.swapped, tuple(one.swapped for one in self.traces))


class TrainingLog(Struct, frozen=True):
    """What the state of a trainer, left beside the weights, says: steps, and the first entries."""

    steps: int
    entries: tuple[str, ...]


def direction_of(
    a: str, b: str, fetcher: Fetcher, settings: Settings, beside: int = 0
) -> Direction:
    """Look for traces of who came first in two models, from the first stage of the level.

    Parameters
    ----------
    a, b : the models.
    fetcher : reads, within its budget; what was read before is not read again.
    settings : how much to read.
    beside : how many models are read within the same budget beside the two.
    """
    checkpoints = open_all([a, b], fetcher, settings)
    sampler = sampler_of(read_headers(checkpoints, settings, beside), settings, beside)
    with algebra_for(settings.level):
        ours, theirs = sampler.samples(0)
        found = [
            rounding(_rows(ours, theirs)),
            *_beside_weights(checkpoints, sampler.vocabularies[:2]),
            drift(_log_sizes(ours, theirs)),
        ]
    return _told(found)


def direction_beside_weights(
    checkpoints: Sequence[Checkpoint], vocabularies: Sequence[Vocabulary | None]
) -> Direction:
    """The same from what lies beside the weights alone: it costs the beginning of two logs."""
    return _told(_beside_weights(checkpoints, vocabularies))


def _beside_weights(
    checkpoints: Sequence[Checkpoint], vocabularies: Sequence[Vocabulary | None]
) -> list[TraceFound | None]:
    return [
        vocabulary(*vocabularies),
        training(*map(_log, checkpoints)),
        dates(*(commit_dates(one)[0] for one in checkpoints)),
    ]


def _told(found: Iterable[TraceFound | None]) -> Direction:
    traces = tuple(one for one in found if one is not None)
    return Direction(weighed(traces), traces)


def weighed(traces: Sequence[TraceFound]) -> Precedence:
    """What traces say together: two that agree, and none that contradicts."""
    said = [one.speaks for one in traces if one.trace.counted]
    for answer in (Precedence.A_FIRST, Precedence.B_FIRST):
        if said.count(answer) >= AGREEING and answer.swapped not in said:
            return answer
    return Precedence.UNDECIDED


def rounding(tensors: Iterable[tuple[Floats, Floats]]) -> TraceFound | None:
    """Whether one model holds the other's numbers rounded: it can be made from the other, while the
    digits that it lost cannot be told from it, only filled in."""
    places: list[int] = []
    for x, y in tensors:
        if np.array_equal(x, y):
            continue
        place = coarser(x, y)
        if place is None:
            return None
        places.append(place)
    if not places or len(set(places)) > 1:
        return None
    first = Precedence.B_FIRST if places[0] == 0 else Precedence.A_FIRST
    return TraceFound(Trace.ROUNDING, first, _said("rounding", first))


def first_by_rounding(a: Sample, b: Sample) -> Precedence | None:
    """Which of two models holds the numbers that the other holds rounded, as far as both were
    read."""
    found = rounding(_rows(a, b))
    return None if found is None else found.speaks


def vocabulary(a: Vocabulary | None, b: Vocabulary | None) -> TraceFound | None:
    """Whether one vocabulary is the other with tokens added behind it."""
    if a is None or b is None:
        return None
    for first, short, long in ((Precedence.A_FIRST, a, b), (Precedence.B_FIRST, b, a)):
        known = _trimmed(short.tokens)
        added = len(_trimmed(long.tokens)) - len(known)
        if known and added > 0 and long.tokens[: len(known)] == known:
            says = _said("vocabulary", first, count=added)
            return TraceFound(Trace.VOCABULARY, first, says)
    return None


def training(a: TrainingLog | None, b: TrainingLog | None) -> TraceFound | None:
    """Whether both logs are of one run, which has gone further in one of them."""
    if a is None or b is None or a.steps == b.steps:
        return None
    shared = min(len(a.entries), len(b.entries))
    if shared < _LOGGED or a.entries[:shared] != b.entries[:shared]:
        return None
    first = Precedence.A_FIRST if a.steps < b.steps else Precedence.B_FIRST
    steps = sorted((a.steps, b.steps))
    says = _said("training", first, fewer=steps[0], more=steps[1])
    return TraceFound(Trace.TRAINING, first, says)


def dates(a: str | None, b: str | None) -> TraceFound | None:
    """Which was published first, by the day; hosts tell it, and whoever publishes may set it."""
    days = [(one or "")[:_DATE] for one in (a, b)]
    if not all(days) or days[0] == days[1]:
        return None
    first = Precedence.A_FIRST if days[0] < days[1] else Precedence.B_FIRST
    early, late = sorted(days)
    return TraceFound(Trace.DATES, first, _said("dates", first, early=early, late=late))


def drift(pairs: Sequence[tuple[float, float]]) -> TraceFound | None:
    """Whether matrices are larger in one model: long training made them so, and so do noise and
    scaling, while averages are smaller than what they were made from."""
    if not pairs:
        return None
    grown = float(np.mean([other - one for one, other in pairs]))
    if abs(grown) < _GROWN:
        return None
    first = Precedence.A_FIRST if grown > 0 else Precedence.B_FIRST
    percent = f"{100 * (np.exp(abs(grown) / 2) - 1):.1f} %"
    return TraceFound(Trace.DRIFT, first, _said("drift", first, share=percent))


def parsed_log(raw: bytes) -> TrainingLog | None:
    """The steps and the first entries of a trainer's state, from its first bytes."""
    step = _STEP.search(raw)
    if step is None:
        return None
    start = raw.find(b"[", raw.find(b'"log_history"'))
    entries: list[str] = []
    at, decoder = start + 1, json.JSONDecoder()
    words = raw.decode("utf-8", "replace")
    while start >= 0 and at < len(words):
        at += len(words[at:]) - len(words[at:].lstrip(" \t\r\n,"))
        try:
            entry, at = decoder.raw_decode(words, at)
        except (ValueError, RecursionError):
            break
        if not isinstance(entry, dict):
            break
        if "loss" in entry:  # entries without one, such as that of the end, tell no run
            entries.append(json.dumps(entry, sort_keys=True))
    return TrainingLog(int(step[1]), tuple(entries))


def _said(trace: str, first: Precedence, **fields: object) -> Message:
    return text.message(f"report.direction.{trace}.{first}", **fields)


def _trimmed(tokens: tuple[bytes | None, ...]) -> tuple[bytes | None, ...]:
    """Tokens without unused numbers at the end."""
    end = len(tokens)
    while end and tokens[end - 1] is None:
        end -= 1
    return tokens[:end]


def log_wants(checkpoints: Sequence[Checkpoint]) -> list[Want]:
    """What is read of logs that lie beside the weights."""
    found = ((one, one.files.get(_log_path(one))) for one in checkpoints)
    return [
        Want(one.source, entry, (ByteRange(0, min(entry.size, _HEAD)),))
        for one, entry in found
        if entry is not None and entry.size
    ]


def _log(checkpoint: Checkpoint) -> TrainingLog | None:
    return parsed_log(first_bytes(checkpoint, _log_path(checkpoint), _HEAD))


def _log_path(checkpoint: Checkpoint) -> str:
    return posixpath.join(checkpoint.choice.weights.folder, _STATE)


def _rows(a: Sample, b: Sample) -> Iterator[tuple[Floats, Floats]]:
    """Rows that were read of both models, at equal places: of matrices, tables and norms.

    A model that holds another's numbers rounded has no others in place of these.
    """
    for part in a.parts:
        if part.component is Component.OTHER or part not in b.parts:
            continue
        for _, (ours, theirs) in compared(a, b, part, part):
            x, y = at_equal_numbers(ours, theirs)
            if x.shape == y.shape and x.size:
                yield x, y


def _log_sizes(a: Sample, b: Sample) -> list[tuple[float, float]]:
    """How large matrices of both models are that read a stream behind a norm."""
    models = [Prepared(one) for one in (a, b)]
    found = []
    for part in a.parts:
        if part.layer is None or part not in b.parts or a.width != b.width:
            continue
        attention = part.component is Component.ATTENTION
        if not attention and part.component is not Component.FEED_FORWARD:
            continue
        gains = [
            one.attention_gain(part.layer) if attention else one.feed_forward_gain(part.layer)
            for one in models
        ]
        for name, (ours, theirs) in compared(a, b, part, part):
            if name in (Role.Q, Role.K, Role.V, Role.GATE, Role.UP):
                x, y = log_size(ours[1], gains[0]), log_size(theirs[1], gains[1])
                if x is not None and y is not None:
                    found.append((x, y))
    return found
