"""Answers that were found once, kept on disk as long as asking again could give no other.

    ASSETS/kinprint/answers/v1/KEY    a document as JSON, compressed with a checksum

A key names what an answer follows from: the commits of both models with all their files, as the Hub
lists them, what was asked for, and the code and the packages that answered. So nothing ever has to
be invalidated, as with the bytes that are kept (`reader/cache.py`): where any of these changes, the
old answer is not found, and goes when there are many newer ones. Models that nothing pins have no
key, nor has any where another package adds to this one. A file that is damaged, or lies under
another key than its own, is no answer.
"""

from __future__ import annotations

import contextlib
import os
import platform
import sys
import zlib
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from kinprint.device import Device
from kinprint.errors import CacheBroken, FormatError, system_cause
from kinprint.extensions import GROUPS, entry_points
from kinprint.lineage.results import Comparison, Settings
from kinprint.reader.checkpoint import Checkpoint
from kinprint.records import FileEntry
from kinprint.report.schema import ComparisonDocument, ReadPart, decode, encode_line
from kinprint.source.assets import assets_folder, remove_folder
from kinprint.verbs.reader import Meter
from kinprint.version import __version__

_ABOUT_A_PACKAGE = (".dist-info", ".egg-info")
_MOST = 500  # answers of some ten kilobytes each


class Question(Struct, frozen=True):
    """What is asked of two models: all that an answer depends on."""

    models: tuple[tuple[str, str, str, str], ...]
    settings: tuple[str, float, int]
    answered_by: tuple[str, ...]
    hashes: bool
    details: bool

    @classmethod
    def of(
        cls,
        models: Sequence[Checkpoint],
        settings: Settings,
        device: Device,
        *,
        hashes: bool,
        details: bool,
    ) -> Question | None:
        """What models are asked; None where something that the answer depends on is not pinned."""
        pins = [pin for model in models if (pin := _pin(model)) is not None]
        if len(pins) < len(models) or any(map(entry_points, GROUPS)) or not _CODE:
            return None
        asked = str(settings.level), float(settings.alpha), int(settings.seed)
        answered_by = (*_CODE, str(device))
        return cls(tuple(pins), asked, answered_by, bool(hashes), bool(details))

    @property
    def key(self) -> str:
        """A name for this question and no other."""
        return sha256(msgspec.json.encode(self)).hexdigest()


def _pin(model: Checkpoint) -> tuple[str, str, str, str] | None:
    """A model as it was named and as it is; None where it may become another of the same name."""
    ref, files = model.ref, sorted(model.files.values(), key=lambda file: file.path)
    if not ref.commit or any(file.key is None for file in files):
        return None
    try:
        listed = "\n".join(map(_pinned_file, files)).encode()
    except (OSError, UnicodeEncodeError):
        return None
    return ref.given, ref.name, ref.commit, sha256(listed).hexdigest()


def _pinned_file(file: FileEntry) -> str:
    """A file as the Hub lists it; one in the Hub's own cache, which is read there, as it lies."""
    lies = "" if file.local is None else _stamp(Path(file.local).stat())
    return f"{file.path} {file.size} {file.key} {lies}"


def _stamp(about: os.stat_result) -> str:
    """What changes when a file is written, whatever is done to its date afterwards."""
    return f"{about.st_ino} {about.st_size} {about.st_mtime_ns} {about.st_ctime_ns}"


def _code() -> tuple[str, ...]:
    """All that answers: this package, file by file as it lies on disk, what is installed, Python.

    Nothing where that cannot be told.
    """
    package = os.fsencode(Path(__file__).parent.parent)
    try:
        told = (
            b"\n".join(_files(package)),
            "\n".join(_packages()).encode("utf-8", "surrogateescape"),
        )
    except OSError:
        return ()
    digests = (sha256(one).hexdigest() for one in told)
    return __version__, *digests, platform.python_version(), platform.machine()


def _files(folder: bytes) -> Iterator[bytes]:
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda one: one.name):
            if entry.is_dir():
                if entry.name != b"__pycache__":
                    yield from _files(entry.path)
            else:
                try:
                    about = entry.stat()
                except FileNotFoundError:  # a link to nothing, as editors lock files
                    about = entry.stat(follow_symlinks=False)
                yield entry.path + b" " + _stamp(about).encode()


def _packages() -> list[str]:
    """What is installed, by name and version."""
    about: set[str] = set()
    for folder in sys.path:
        with contextlib.suppress(OSError), os.scandir(folder or ".") as entries:
            about |= {one.name for one in entries if one.name.endswith(_ABOUT_A_PACKAGE)}
    return sorted(about)


_CODE = _code()  # as it is when it is loaded: a process may go on with what has changed since


def may_be_kept(found: Comparison, models: Sequence[Checkpoint]) -> bool:
    """Whether asking again would give the same.

    Nothing was lost, no third model was read, and the code on disk is still that which answered.
    """
    sources = {id(model.source) for model in models}
    alone = all(id(source) in sources for source in models[0].fetcher.sources)
    return alone and all(one.complete for one in found.subjects) and _code() == _CODE


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
            data = zlib.decompress((self.folder / question.key).read_bytes())
            key, _, document = data.partition(b"\n")
            found = decode(document)
        except (OSError, zlib.error, FormatError):
            return None
        if key != question.key.encode() or not isinstance(found, ComparisonDocument):
            return None
        return replace(found, read=replace(ReadPart.of(meter.cost), answered=found.read.date))

    def keep(self, question: Question, document: ComparisonDocument) -> None:
        """Keep an answer; failing to is no failure, as it can be found again."""
        with contextlib.suppress(OSError, UnicodeEncodeError):
            data = zlib.compress(question.key.encode() + b"\n" + encode_line(document))
            place = self.folder / question.key
            draft = place.with_name(f"{place.name}.{os.urandom(8).hex()}")
            place.parent.mkdir(parents=True, exist_ok=True)
            try:
                draft.write_bytes(data)
                draft.replace(place)
            finally:
                draft.unlink(missing_ok=True)
            self._forget_the_oldest()

    def sizes(self) -> list[int]:
        """The length of each answer."""
        found = []
        try:
            for place in self.folder.iterdir():
                with contextlib.suppress(FileNotFoundError):
                    if not place.suffix:  # else somebody is writing it, or died meanwhile
                        found.append(place.stat().st_size)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise self._broken(error) from None
        return found

    def clear(self) -> int:
        """Forget all answers; how many bytes of disk that gave back."""
        freed = sum(self.sizes())
        try:
            remove_folder(self.folder)
        except OSError as error:
            raise self._broken(error) from None
        return freed

    def _forget_the_oldest(self) -> None:
        """Leave so many files, drafts of processes that died among them, the newest."""
        with os.scandir(self.folder) as entries:
            places = list(entries)
        if len(places) > _MOST:
            places.sort(key=lambda one: one.stat(follow_symlinks=False).st_mtime_ns)
            for place in places[:-_MOST]:
                with contextlib.suppress(OSError):
                    Path(place.path).unlink()

    def _broken(self, error: OSError) -> CacheBroken:
        return CacheBroken(folder=str(self.folder), cause=system_cause(error))
