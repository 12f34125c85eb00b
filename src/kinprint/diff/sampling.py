"""A diff from a few megabytes: some rows of some tensors, chosen before the first is read.

Vectors are read whole, unless they are very long. Of matrices a few short runs of rows are read,
drawn by chance, one in each equal part, so that the runs tell how far the whole may lie from them.
Where tokens were matched, runs are drawn among those that both models have. Layers are taken evenly
over the depth until the allowance is spent; what is left out says so.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kinprint.diff.changes import centred_cosine, described, grid_beside, rounding_of, summable
from kinprint.diff.pairing import TensorPair
from kinprint.diff.results import Estimate, Rounding, TensorChange
from kinprint.errors import KinprintError, attempt
from kinprint.measure.change import ChangeSums, unfolded_sums
from kinprint.measure.sampling import RUN, sample_rows, student_reach
from kinprint.model.model import Model, Reading, Rows, wants_of
from kinprint.reader.decode import Array
from kinprint.reader.extents import bridge, union
from kinprint.reader.fetch import Fetcher, Want
from kinprint.records import Cost, TensorStatus
from kinprint.text import message

ALLOWANCE = 24_000_000
"""Bytes of weights that a sampled diff reads of both models together, unless told otherwise."""
ROWS = 32
"""Rows of a matrix that are read, in runs."""
_VECTOR, _RUNS = 1 << 17, 8  # numbers of a vector that are read, and in how many runs of a longer


class Drawn(Struct, frozen=True):
    """Rows of a tensor that are read; so many in a `run` were drawn together."""

    rows: Rows
    run: int


def drawn_rows(height: int, width: int, seed: int) -> Drawn:
    """Some short runs of a matrix, all of a vector, and a few long runs of one that is very long.

    A vector is one column.
    """
    count, run = (ROWS, RUN) if width > 1 else (_VECTOR, _VECTOR // _RUNS)
    return Drawn(sample_rows(height, count, seed, run), run)


class _Piece(Struct, frozen=True, eq=False):
    """Rows of two tensors to be read, numbered among those that correspond."""

    at: int
    pair: TensorPair
    drawn: Drawn
    readings: tuple[Reading, Reading]


class SamplePlan:
    """What a sampled diff reads, known before the first byte."""

    def __init__(
        self, a: Model, b: Model, pairs: Sequence[TensorPair], allowance: int, seed: int = 0
    ) -> None:
        self._pairs = pairs
        self._fetcher: Fetcher = a.checkpoint.fetcher
        self.pieces: list[_Piece] = []
        spent = 0
        for at in _order(pairs):
            piece = _piece(a, b, pairs[at], at, seed)
            cost = 0 if piece is None else _bytes_of(piece)
            if piece is not None and spent + cost <= allowance:
                self.pieces.append(piece)
                spent += cost
        gap = self._fetcher.policy.gap
        while self.pieces and bridged(self.wants, gap) > allowance:
            # Whatever lies between two ranges that are read at once is paid for as well.
            del self.pieces[-max(1, len(self.pieces) // 8) :]

    @property
    def wants(self) -> list[Want]:
        """All bytes of it."""
        return wants_of(reading for piece in self.pieces for reading in piece.readings)

    @property
    def cost(self) -> Cost:
        """What reading it takes."""
        return sum((plan.cost for plan in self._fetcher.plan(self.wants)), Cost())

    def changes(self) -> Iterator[TensorChange]:
        """What became of each tensor, as far as its rows tell."""
        self._fetcher.ensure(self.wants)
        read = {piece.at: piece for piece in self.pieces}
        for at, pair in enumerate(self._pairs):
            told = described(pair)
            if told.status is TensorStatus.COMPARED and at not in read:
                reason = message("diff.reason.not-read")
                yield replace(told, status=TensorStatus.NOT_READ, reason=reason)
            elif told.status is TensorStatus.COMPARED:
                found = attempt(_sampled, told, read[at])
                if isinstance(found, KinprintError):
                    found = replace(told, status=TensorStatus.UNREADABLE, reason=found.message)
                yield found
            else:
                yield told


def _order(pairs: Sequence[TensorPair]) -> list[int]:
    """Places of pairs that can be compared: vectors first, then matrices evenly over the layers."""
    able = [at for at, pair in enumerate(pairs) if pair.matched is not None]
    layers = sorted({pairs[at].address.layer or 0 for at in able})
    turn = {layers[at]: place for place, at in enumerate(spread(len(layers)))}

    def key(at: int) -> tuple[bool, int, int, int]:
        address, shape = pairs[at].address, pairs[at].matched or (0, 0)
        return shape[1] > 1, address.expert or 0, turn[address.layer or 0], at

    return sorted(able, key=key)


def spread(count: int) -> list[int]:
    """Places from 0 to `count` in an order in which every beginning is spread out."""
    bits = max(1, (count - 1).bit_length())
    turned = (int(f"{at:0{bits}b}"[::-1], 2) for at in range(1 << bits))
    return [at for at in turned if at < count]


def _piece(a: Model, b: Model, pair: TensorPair, at: int, seed: int) -> _Piece | None:
    if described(pair).status is not TensorStatus.COMPARED:
        return None
    assert pair.a is not None and pair.b is not None and pair.matched is not None
    assert pair.columns is None  # a sample matches layers and tokens
    drawn = drawn_rows(*pair.matched, seed)
    ours: Rows = drawn.rows
    theirs: Rows = drawn.rows
    if pair.rows is not None:
        some = list(drawn.rows)
        ours, theirs = (tuple(one[some].tolist()) for one in (pair.rows.a, pair.rows.b))
    return _Piece(at, pair, drawn, (a.reading(pair.a, ours), b.reading(pair.b, theirs)))


def _bytes_of(piece: _Piece) -> int:
    wants = wants_of(piece.readings)
    return sum(span.size for want in wants for span in want.ranges)


def bridged(wants: Sequence[Want], gap: int) -> int:
    """Bytes that reading takes where nothing was read before; the same wherever a model lies."""
    return sum(span.size for want in wants for span in bridge(union(want.ranges), (), gap))


@np.errstate(over="ignore", invalid="ignore")
def _sampled(told: TensorChange, piece: _Piece) -> TensorChange:
    assert piece.pair.matched is not None
    height, width = piece.pair.matched
    rows = len(piece.drawn.rows)
    x, y = (summable(one.take_stored()).reshape(rows, width) for one in piece.readings)
    rounding = None if np.array_equal(x, y) else rounding_of(piece.pair, x, y)
    return change_of_rows(told, x, y, rows / max(height, 1), piece.drawn.run, rounding)


def change_of_rows(
    told: TensorChange, x: Array, y: Array, share: float, run: int, rounding: Rounding | None
) -> TensorChange:
    """A record completed by what some rows of a tensor say.

    Parameters
    ----------
    told : what is known of the tensor beside its numbers.
    x, y : its rows before and after; so many in a `run` were drawn together.
    share : which part of the tensor they are.
    rounding : that one is the other rounded.
    """
    runs = [
        unfolded_sums(x[at : at + run], y[at : at + run]) for at in range(0, max(len(x), 1), run)
    ]
    total = runs[0]
    for one in runs[1:]:
        total = total + one
    return replace(
        told,
        read=total.numbers,
        changed=_estimate(total, runs, share, "changed"),
        relative=_estimate(total, runs, share, "relative"),
        largest=total.largest,
        scale=total.scale,
        cosine=total.cosine,
        centred=centred_cosine(x.reshape(-1, 1), y.reshape(-1, 1)) if len(told.shape) < 2 else None,
        broken=total.broken,
        zeroed=total.zeroed / max(total.numbers, 1),
        filled=total.filled / max(total.numbers, 1),
        zeros=total.zeros / max(total.numbers, 1),
        rounding=rounding,
        grid=grid_beside(x, y, rounding) if len(told.shape) > 1 else None,
    )


def _estimate(total: ChangeSums, runs: Sequence[ChangeSums], share: float, name: str) -> Estimate:
    """A number for the whole matrix with its bounds, by leaving out each run of rows in turn.

    As `measure.sampling.sampled_interval`; where no run differs the bounds are as wide as one more
    run that differs in all would make them.
    """
    value = float(getattr(total, name))
    if share >= 1 or len(runs) < 3 or not math.isfinite(value):
        return Estimate(value)
    count = len(runs)
    left = [float(getattr(_without(total, run), name)) for run in runs]
    error = math.sqrt((count - 1) * float(np.var(left)) * (1 - share))
    reach = student_reach(count - 1) * error
    most = 1.0 if name == "changed" else math.inf
    if value == 0.0:
        # The rule of three: nothing among n runs leaves up to 3/n of them at 95 %.
        return Estimate(0.0, 0.0, min(most, 3.0 / count) if name == "changed" else None)
    return Estimate(value, max(0.0, value - reach), min(most, value + reach))


def _without(total: ChangeSums, run: ChangeSums) -> ChangeSums:
    return replace(
        total,
        numbers=total.numbers - run.numbers,
        equal=total.equal - run.equal,
        a_squares=max(total.a_squares - run.a_squares, 0.0),
        squares=max(total.squares - run.squares, 0.0),
    )
