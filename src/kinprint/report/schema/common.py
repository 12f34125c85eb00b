"""What several kinds of documents have in common: models, what was asked, how it was made."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Self

from msgspec import Meta, Struct

from kinprint.records import Cost, Level, Status

Count = Annotated[int, Meta(ge=0, le=2**53 - 1)]
"""A number of things; limits are held against files, not against what is made here."""
Layer = Annotated[int, Meta(ge=-1, le=2**31 - 1)]
"""The number of a layer, -1 outside the layers."""
LogP = Annotated[float, Meta(le=0, ge=-1e12)]
"""log10 of a p-value."""
Alpha = Annotated[float, Meta(gt=0, lt=1)]
Likeness = Annotated[float, Meta(ge=-2, le=2)]
Share = Annotated[float, Meta(ge=0, le=1)]
Translations = dict[str, dict[str, str]]
"""By language, what English texts of the document (reasons, notes, labels) read in it."""


class FileDigest(Struct, frozen=True, kw_only=True):
    """A weight file and what pins its content."""

    path: str
    bytes: Count
    sha256: str | None = None


class Claim(Struct, frozen=True, kw_only=True):
    """What somebody declared about a model's origin: a claim, never evidence.

    `where` is the file and field that says so, `relation` its word for it ("finetune",
    "quantized", "adapter", "merge"; empty where it has none), `model` what it names.
    """

    where: str
    model: str
    relation: str = ""


class Tokenizer(Struct, frozen=True, kw_only=True):
    """A tokenizer as its files tell it; `tokens` is None where it was not read."""

    file: str
    kind: str = ""
    tokens: Count | None = None
    bytes: Count | None = None
    sha256: str | None = None


class Subject(Struct, frozen=True, kw_only=True):
    """One of the models: which state of it was read, and what it says about itself.

    `published` and `changed` are dates as the host tells them. `digests` lists weight files,
    the first of many; `files` counts all of them, `bytes` is their size together, `read` how much
    of that was read.
    """

    given: str
    name: str
    title: str
    kind: str
    commit: str | None = None
    published: str | None = None
    changed: str | None = None
    architecture: str | None = None
    formats: list[str] = []
    files: Count = 0
    bytes: Count = 0
    read: Count = 0
    digests: list[FileDigest] = []
    tokenizer: Tokenizer | None = None
    claims: list[Claim] = []

    @property
    def called(self) -> str:
        """Its name for people; of a folder, the end of its path that tells it apart."""
        return self.title if self.kind == "local" else self.name


class EvidenceShort(Struct, frozen=True, kw_only=True):
    """A test's result in a list of many pairs."""

    test: str
    status: Status
    log10_p: LogP | None
    effect: float | None = None


class Asked(Struct, frozen=True, kw_only=True):
    """What the user asked for."""

    level: Level
    alpha: Alpha
    budget: Count | None = None
    seed: Count = 0
    base: str | None = None
    given: str | None = None
    controls: list[str] = []


class Made(Struct, frozen=True, kw_only=True):
    """With what a document was made, so that another can make it again.

    `scipy` is empty where SciPy took no part.
    """

    kinprint: str
    python: str
    numpy: str
    scipy: str
    command: str

    @property
    def versions(self) -> str:
        """All versions in a row, which every language reads alike."""
        always = f"kinprint {self.kinprint}, Python {self.python}, NumPy {self.numpy}"
        return f"{always}, SciPy {self.scipy}" if self.scipy else always


class TensorRead(Struct, frozen=True, kw_only=True):
    """What was read of one stored tensor.

    `ranges` has the bytes of the file, the last one of a range excluded, as "0-512 1024-1536".
    """

    file: str
    tensor: str
    ranges: str
    sha256: str


class SampleRead(Struct, frozen=True, kw_only=True):
    """What was read of a model or of one of its towers, so that another can read the same."""

    tower: str = ""
    sha256: str
    tensors: list[TensorRead] = []


class ReadPart(Struct, frozen=True, kw_only=True):
    """What reading took, and when it was: the one part that differs from run to run."""

    bytes: Count
    requests: Count
    seconds: float
    date: str = ""
    answered: str = ""

    @classmethod
    def of(cls, cost: Cost) -> Self:
        """What a document says of a cost."""
        return cls(
            bytes=cost.bytes,
            requests=cost.requests,
            seconds=round(float(cost.seconds), 3),
            date=datetime.now(UTC).date().isoformat(),
        )

    @property
    def day(self) -> str:
        """The day on which what a document says was found."""
        return self.answered or self.date

    @property
    def cost(self) -> Cost:
        """The same as a record."""
        return Cost(self.bytes, self.requests, self.seconds)
