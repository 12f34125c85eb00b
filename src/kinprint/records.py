"""The values that cross rooms: small, frozen, and free of behaviour that does I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

import msgspec

ALPHA = 1e-6
"""The chance of calling strangers related, unless somebody asks for another."""


class Relation(StrEnum):
    """How two models are related, as far as the evidence goes; never who copied from whom."""

    IDENTICAL = "identical"
    DERIVED = "derived"
    PARTIAL = "partial"
    SAME_INIT = "same-init"
    DEPENDENT = "dependent"
    NO_EVIDENCE = "no-evidence"
    UNTESTABLE = "untestable"


class Level(StrEnum):
    """How much of each model a comparison reads; a later level reads more."""

    QUICK = "quick"
    STANDARD = "standard"
    DEEP = "deep"


class Tier(StrEnum):
    """What a piece of evidence rests on.

    Exact: a p-value from symmetry, the only kind that decides. Calibrated: a rank among known
    strangers. Rule: a size without a p-value that tells kinds of relation apart.
    """

    EXACT = "exact"
    CALIBRATED = "calibrated"
    RULE = "rule"


class Status(StrEnum):
    """Whether a test gave a result, or why it has none."""

    OK = "ok"
    NEEDS = "needs"
    GUARDED = "guarded"
    UNDEFINED = "undefined"


@dataclass(frozen=True, slots=True)
class ModelRef:
    """Which model a user meant, and the exact state of it that is being read.

    `given` is what was typed; `name` is its canonical spelling; `commit` pins the
    state and is empty where the place has no notion of one; `path` is the file or
    folder inside it that was pointed at, empty for the whole.
    """

    given: str
    kind: str
    name: str
    commit: str = ""
    path: str = ""


@dataclass(frozen=True, slots=True)
class Commit:
    """One entry of a repository's history, as its host tells it."""

    id: str
    date: str
    title: str


@dataclass(frozen=True, slots=True)
class FileEntry:
    """One file of a model as its source lists it.

    `key` names the content for the cache: a sha256 where the source knows it, else
    whatever pins the bytes (commit and path, entity tag and length); None means that
    nothing pins them. `local` is where the file lies on this machine, if it does: such
    files are read in place and never cached.
    """

    path: str
    size: int
    sha256: str | None = None
    key: str | None = None
    local: str | None = None


@dataclass(frozen=True, slots=True, order=True)
class ByteRange:
    """Bytes `start` to `stop`, the last one excluded."""

    start: int
    stop: int

    @property
    def size(self) -> int:
        """Number of bytes."""
        return self.stop - self.start


class TensorSpec(msgspec.Struct, frozen=True):
    """Where a tensor lies and how its numbers are written.

    `shape` is in row-major order whatever the format's own habit. `offset` counts from
    the start of `file`. `strides`, in elements, is set only where the stored order is
    not row-major (views in PyTorch archives); such tensors are read whole. A large model
    has tens of thousands of these, which is why this record is the quick kind.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    file: str
    offset: int
    nbytes: int
    strides: tuple[int, ...] | None = None

    @property
    def count(self) -> int:
        """Number of elements."""
        total = 1
        for size in self.shape:
            total *= size
        return total


@dataclass(frozen=True, slots=True)
class Header:
    """What a weight file says about itself: its tensors and its own metadata.

    `extent` is how many bytes of the file had to be known to say so.
    """

    format: str
    tensors: tuple[TensorSpec, ...]
    metadata: Mapping[str, object] = field(default_factory=dict)
    extent: int = 0


@dataclass(frozen=True, slots=True)
class Slice:
    """A part of one tensor, the unit that everything above asks for.

    The tensor is seen as a matrix: the last axis gives the columns, all others the
    rows. Nothing set means the whole tensor; `rows` takes whole rows, with `columns`
    only those of each row; `elements` takes single numbers by flat index and excludes
    the other two. The result of reading has one axis for elements, else two, except
    that the whole tensor keeps its shape.
    """

    tensor: TensorSpec
    rows: range | tuple[int, ...] | None = None
    columns: range | None = None
    elements: range | tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Cost:
    """What reading costs, known before it is spent or counted while it is."""

    bytes: int = 0
    requests: int = 0
    seconds: float = 0.0

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.bytes + other.bytes,
            self.requests + other.requests,
            self.seconds + other.seconds,
        )


@dataclass(frozen=True, slots=True)
class Progress:
    """How far reading has come, for whoever shows progress.

    `kind` is "plan" when more became known to be needed, "bytes" when some arrived.
    """

    kind: str
    done_bytes: int = 0
    total_bytes: int = 0
    done_requests: int = 0
    total_requests: int = 0


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """How the statistic of a test scatters by chance, and how it grows with an effect.

    `deviation` is its standard deviation under the null; an effect of one adds `slope` to it and
    `widening`² to the null's variance. `nulls.power` makes the smallest effect of it that the
    test would have seen.
    """

    deviation: float
    slope: float
    widening: float


@dataclass(frozen=True, slots=True)
class Evidence:
    """What one test of dependence found.

    `test` is its name, `group` the relabellings or flips that it compares with, `bound` what
    bounds its p-value and `floor` the least log10 p that the group allows. `effect` is on the
    scale of a correlation. `null` is a sample of the statistic under the null, for a picture.
    `status` is "ok", or why there is no p-value ("needs", "guarded", "undefined"), with the
    `reason` in words; log10_p is then 0. `tier` is "exact", "calibrated" (a rank among strangers)
    or "rule" (no p-value: it tells kinds of relation apart). `learnt` marks
    parameters that start at a constant, so that what they share was learnt together.
    `sensitivity` is there where the test can say how small an effect it would have seen.
    """

    test: str
    tier: str
    group: str
    status: str
    log10_p: float = 0.0
    statistic: float | None = None
    effect: float | None = None
    n: int = 0
    bound: str = ""
    floor: float = 0.0
    null: tuple[float, ...] = ()
    roles: tuple[str, ...] = ()
    layers: tuple[int, ...] = ()
    reason: str = ""
    learnt: bool = False
    details: tuple[tuple[str, float], ...] = ()
    sensitivity: Sensitivity | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """The relation of two models as the evidence has it, and how sure that is.

    `relation` is identical, derived, partial, same-init, dependent, no-evidence or
    untestable. `log10_p` is combined over the menu that was fixed in advance. `roles` are
    those that a partial relation rests on; `power` the smallest shared effect, by test, that
    would have been seen; `reasons` the steps that led here, as keys for the words.
    """

    relation: str
    log10_p: float
    alpha: float
    roles: tuple[str, ...] = ()
    power: tuple[tuple[str, float], ...] = ()
    reasons: tuple[str, ...] = ()
