"""Answers that were found once, kept on disk as long as asking again could give no other.

    ASSETS/kinprint/answers/v1/KEY    a digest, then a document as compressed JSON

A key names all that an answer follows from: the commits of both models with all their files, as
the Hub lists them, what was asked for, and the code and the libraries that answered. So nothing
ever has to be invalidated, as with the bytes that are kept (`reader/cache.py`): where any of these
changes, the old answer is not found. Models that nothing pins have no key, nor has any where
another package adds to this one. A file whose digest is wrong is no answer.
"""

from __future__ import annotations

import contextlib
import os
import platform
import shutil
import zlib
from collections.abc import Iterator, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path

import ml_dtypes
import msgspec
import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kinprint.device import Device
from kinprint.errors import CacheBroken, FormatError, system_cause
from kinprint.extensions import GROUPS, entry_points
from kinprint.lineage.results import Comparison, Settings
from kinprint.model.adapted import AdaptedModel
from kinprint.reader.checkpoint import Checkpoint
from kinprint.report.schema import ComparisonDocument, ReadPart, decode, encode_line
from kinprint.source.assets import assets_folder
from kinprint.verbs.reader import Meter
from kinprint.version import __version__

_Pin = tuple[str, str, str, str, str]
_DIGEST = sha256().digest_size


class Question(Struct, frozen=True):
    """What is asked of two models: all that an answer depends on."""

    models: tuple[_Pin, ...]
    settings: tuple[str, float, int]
    answered_by: tuple[str, ...]
    details: bool

    @classmethod
    def of(
        cls, models: Sequence[Checkpoint], settings: Settings, device: Device, details: bool
    ) -> Question | None:
        """What models are asked; None where something that the answer depends on is not pinned."""
        pins = [pin for model in models if (pin := _pin(model)) is not None]
        if len(pins) < len(models) or any(map(entry_points, GROUPS)):
            return None
        asked = str(settings.level), float(settings.alpha), settings.seed
        return cls(tuple(pins), asked, (*_code(), str(device)), details)

    @property
    def key(self) -> str:
        """A name for this question and no other."""
        return sha256(msgspec.json.encode(self)).hexdigest()


def _pin(model: Checkpoint) -> _Pin | None:
    """A model as it was named and as it is; None where it may become another of the same name."""
    ref, files = model.ref, sorted(model.files.values(), key=lambda file: file.path)
    if not ref.commit or any(file.key is None or file.local is not None for file in files):
        return None
    listed = msgspec.json.encode([(file.path, file.size, file.key) for file in files])
    return ref.given, ref.name, ref.path, ref.commit, sha256(listed).hexdigest()


@cache
def _code() -> tuple[str, ...]:
    """Who answers: this package, file by file as it lies on disk, and what it computes with."""
    files = sha256("\n".join(_files(str(Path(__file__).parent.parent))).encode()).hexdigest()
    libraries = np.__version__, ml_dtypes.__version__, platform.python_version()
    return __version__, files, *libraries, platform.machine()


def _files(folder: str) -> Iterator[str]:
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda one: one.name):
            if entry.is_file():
                about = entry.stat()
                yield f"{entry.path} {about.st_size} {about.st_mtime_ns}"
            elif entry.name != "__pycache__":
                yield from _files(entry.path)


def may_be_kept(found: Comparison) -> bool:
    """Whether asking again would give the same: nothing was lost, and no third model was read."""
    models = () if found.material is None else found.material.models
    adapted = any(isinstance(model, AdaptedModel) for model in models)
    return not adapted and all(subject.complete for subject in found.subjects)


class Answers:
    """Answers on disk. Safe to share between threads and processes: no file is ever changed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def default(cls) -> Answers:
        """Those in the Hugging Face assets folder (HF_HOME, HF_ASSETS_CACHE)."""
        return cls(assets_folder("answers", "v1"))

    def find(self, question: Question, meter: Meter) -> ComparisonDocument | None:
        """The answer to a question, if it is kept, with what it took to ask."""
        try:
            raw = (self.folder / question.key).read_bytes()
            if sha256(raw[_DIGEST:]).digest() != raw[:_DIGEST]:
                return None
            found = decode(zlib.decompress(raw[_DIGEST:]))
        except (OSError, zlib.error, FormatError):
            return None
        if not isinstance(found, ComparisonDocument):
            return None
        return replace(found, read=replace(ReadPart.of(meter.cost), answered=found.read.date))

    def keep(self, question: Question, document: ComparisonDocument) -> None:
        """Keep an answer; failing to is no failure, as it can be found again."""
        with contextlib.suppress(OSError, UnicodeEncodeError):
            data = zlib.compress(encode_line(document))
            place = self.folder / question.key
            draft = place.with_name(f"{place.name}.{os.urandom(8).hex()}")
            place.parent.mkdir(parents=True, exist_ok=True)
            try:
                draft.write_bytes(sha256(data).digest() + data)
                draft.replace(place)
            finally:
                draft.unlink(missing_ok=True)

    def sizes(self) -> list[int]:
        """The length of each answer."""
        try:
            with os.scandir(self.folder) as entries:
                return [entry.stat().st_size for entry in entries]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise CacheBroken(folder=str(self.folder), cause=system_cause(error)) from None

    def clear(self) -> int:
        """Forget all answers; how many bytes of disk that gave back."""
        freed = sum(self.sizes())
        shutil.rmtree(self.folder, ignore_errors=True)
        return freed
