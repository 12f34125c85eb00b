"""What was read of a model, and a source that answers with that alone.

A recorder notes which bytes of which files were handed out. The source made from its notes answers
the same questions with the same bytes, so that whatever read the model once can do so again without
its files. What was not read then is not there, and is never made up.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from contextlib import suppress
from threading import Lock

from msgspec import Struct
from msgspec.structs import replace

from kinprint.errors import FileMissing, KinprintError, NotRecorded
from kinprint.records import ByteRange, Commit, Cost, FileEntry, ModelRef
from kinprint.source.protocol import Source

_COMMITS = 50  # of a history that are kept: one page of the Hub's


class Piece(Struct, frozen=True):
    """Bytes of a file from `start` on."""

    start: int
    data: bytes

    @property
    def stop(self) -> int:
        """Where they end."""
        return self.start + len(self.data)


class Recorded(Struct, frozen=True):
    """What was read of one source.

    Attributes
    ----------
    given
        The name it was opened by.
    ref
        Which model it is, with the state that was read.
    files
        All files that it listed, and those that were read beside them.
    history
        Commits up to that state, without their titles.
    pieces
        By path what was read, in order and disjoint.
    """

    given: str
    ref: ModelRef
    files: tuple[FileEntry, ...]
    history: tuple[Commit, ...]
    pieces: Mapping[str, tuple[Piece, ...]]


class Recorder:
    """Notes what is handed out. Safe to call from many threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._opened: dict[int, tuple[str, Source]] = {}
        self._entries: dict[tuple[int, str], FileEntry] = {}
        self._pieces: dict[tuple[int, str], list[Piece]] = {}

    def opened(self, given: str, source: Source) -> None:
        """A source was opened."""
        with self._lock:
            self._opened[id(source)] = given, source

    def note(self, source: Source, entry: FileEntry, span: ByteRange, data: bytes) -> None:
        """Bytes of a file were handed out."""
        place = id(source), entry.path
        with self._lock:
            self._entries[place] = entry
            self._pieces.setdefault(place, []).append(Piece(span.start, data))

    def recorded(self) -> tuple[Recorded, ...]:
        """What was read of each source, in the order of their opening."""
        return tuple(self._of(given, source) for given, source in self._opened.values())

    def _of(self, given: str, source: Source) -> Recorded:
        own = [(path, pieces) for (at, path), pieces in self._pieces.items() if at == id(source)]
        files = {entry.path: entry for entry in source.files()}
        files |= {path: self._entries[id(source), path] for path, _ in own}
        history: tuple[Commit, ...] = ()
        with suppress(KinprintError):
            history = tuple(replace(one, title="") for one in source.history()[:_COMMITS])
        return Recorded(
            given,
            source.ref,
            tuple(files[path] for path in sorted(files)),
            history,
            {path: joined(pieces) for path, pieces in sorted(own)},
        )


def joined(pieces: Sequence[Piece]) -> tuple[Piece, ...]:
    """The same bytes in order, each once; those that touch are one piece."""
    found: list[tuple[int, bytearray]] = []
    for piece in sorted(pieces, key=lambda one: one.start):
        if found and piece.start <= (end := found[-1][0] + len(found[-1][1])):
            found[-1][1].extend(piece.data[end - piece.start :])
        elif piece.data:
            found.append((piece.start, bytearray(piece.data)))
    return tuple(Piece(start, bytes(data)) for start, data in found)


class RecordedSource:
    """A source that holds what was read of another, and nothing else."""

    def __init__(self, recorded: Recorded) -> None:
        self.recorded = recorded
        self.ref = recorded.ref
        self._files = {
            one.path: FileEntry(one.path, one.size, one.sha256, held=True) for one in recorded.files
        }
        self._starts = {
            path: [piece.start for piece in pieces] for path, pieces in recorded.pieces.items()
        }

    @property
    def spent(self) -> Cost:
        """Nothing: all of it is in memory."""
        return Cost()

    def files(self) -> tuple[FileEntry, ...]:
        """All files that the model had."""
        return tuple(self._files.values())

    def find(self, path: str) -> FileEntry | None:
        """The file at `path`, if there was one."""
        return self._files.get(path)

    def read(self, path: str, span: ByteRange) -> bytes:
        """Exactly the bytes of `span`, where they were read then."""
        if path not in self._files:
            raise FileMissing(name=self.ref.name, path=path)
        if span.start >= span.stop:
            return b""
        at = bisect_right(self._starts.get(path, []), span.start) - 1
        piece = self.recorded.pieces[path][at] if at >= 0 else None
        if piece is None or piece.stop < span.stop:
            raise NotRecorded(name=self.ref.name, path=path, start=span.start, stop=span.stop)
        return piece.data[span.start - piece.start : span.stop - piece.start]

    def history(self) -> tuple[Commit, ...]:
        """Commits up to the state that was read."""
        return self.recorded.history

    def changes(self) -> Mapping[str, Commit]:
        """Nobody asked for them."""
        return {}

    def overhead(self, path: str) -> int:
        """No request is ever needed."""
        return 0
