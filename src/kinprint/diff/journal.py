"""What a full diff has found so far, on disk, so that one that was interrupted goes on.

    ASSETS/kinprint/diffs/v1/KEY    one line a tensor: its record as JSON

A line is appended in one write when a tensor is done, and the file is removed with the last. The
key pins both models (files on this machine by path, length and time of change, others by what pins
their content), the version, and how parts correspond. Whatever cannot be read or written is done
again: the journal saves time, and decides nothing.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from kinprint.diff.pairing import TensorPair
from kinprint.diff.results import TensorChange
from kinprint.model.model import Model
from kinprint.records import TensorStatus
from kinprint.source.assets import assets_folder
from kinprint.version import __version__

_FOLDER = ("diffs", "v1")
_LEAST = 1 << 30  # numbers: smaller diffs are done again in no time


class Journal:
    """Records of tensors that were compared, by their names in both models."""

    def __init__(self, a: Model, b: Model, pairs: Sequence[TensorPair]) -> None:
        numbers = sum(pair.matched[0] * pair.matched[1] for pair in pairs if pair.matched)
        self._file: Path | None = None
        self._known: dict[tuple[str | None, ...], TensorChange] = {}
        if numbers < _LEAST:
            return
        with contextlib.suppress(OSError):
            folder = assets_folder().joinpath(*_FOLDER)
            folder.mkdir(parents=True, exist_ok=True)
            self._file = folder / _key(a, b, pairs)
            self._known = {_name(one): one for one in _read(self._file)}

    def get(self, described: TensorChange) -> TensorChange | None:
        """The record of a tensor that was compared before."""
        return self._known.get(_name(described))

    def add(self, change: TensorChange) -> None:
        """Keep the record of a tensor."""
        if self._file is None or change.status is not TensorStatus.COMPARED:
            return
        with contextlib.suppress(OSError), self._file.open("ab") as file:
            file.write(b"\n" + msgspec.json.encode(change))

    def done(self) -> None:
        """Forget all: the diff is at its end."""
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._file.unlink(missing_ok=True)


def _name(one: TensorChange) -> tuple[str | None, ...]:
    """What tells a tensor apart: its names, and what part of them it is."""
    return one.a, one.b, one.role, str(one.expert)


def _read(file: Path) -> Iterator[TensorChange]:
    """Whole lines; a torn one spoils nothing that follows."""
    if not file.is_file():
        return
    for line in file.read_bytes().split(b"\n"):
        if not line:
            continue
        with contextlib.suppress(msgspec.MsgspecError, ValueError):
            yield _DECODER.decode(line)


def _no_message(kind: type, value: object) -> object:
    raise ValueError(f"a record that was compared has no {kind.__name__}: {value!r}")


_DECODER = msgspec.json.Decoder(TensorChange, dec_hook=_no_message)


def _key(a: Model, b: Model, pairs: Sequence[TensorPair]) -> str:
    """A digest of all that a record depends on."""
    found = hashlib.sha256(__version__.encode())
    for model in (a, b):
        checkpoint = model.checkpoint
        for path in checkpoint.shards:
            entry = checkpoint.files[path]
            pinned = entry.key or entry.sha256 or ""
            if entry.local is not None:
                stat = Path(entry.local).stat()
                pinned = f"{entry.local} {stat.st_size} {stat.st_mtime_ns}"
            found.update(f"{path} {pinned}\n".encode("utf-8", "surrogateescape"))
        found.update(f"{model.name}\n".encode("utf-8", "surrogateescape"))
    for pair in pairs:
        names = (place.weight.name if place is not None else "" for place in (pair.a, pair.b))
        found.update(f"{' '.join(names)}\n".encode("utf-8", "surrogateescape"))
        for match in (pair.rows, pair.columns):
            if match is not None:
                for array in (match.a, match.b, match.signs):
                    found.update(b"" if array is None else array.tobytes())
    return found.hexdigest()
