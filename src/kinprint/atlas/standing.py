"""Does a fingerprint hold the bytes of the model that it names, as that is now?"""

from __future__ import annotations

from collections.abc import Iterator
from random import SystemRandom

from kinprint.atlas.fingerprint import Fingerprint
from kinprint.lineage.identity import digest_of
from kinprint.records import ByteRange, FileEntry, Standing
from kinprint.source import Source
from kinprint.source.recorded import Piece, Recorded

PROBES = 8
"""Ranges of a fingerprint that are read again to verify it."""
_PROBED = 64 * 1024  # bytes of a range that are


def standing_of(one: Fingerprint, source: Source, *, whole: bool = False) -> Standing:
    """How a fingerprint stands to what lies at the place of its model.

    Parameters
    ----------
    one : the fingerprint.
    source : the model in the state that the fingerprint names.
    whole : whether all that it holds of files on this machine is read again, and these are hashed.
    """
    recorded = one.sources[0]
    otherwise = Standing.FORGED if recorded.ref.commit else Standing.CHANGED
    found = {file.path: source.find(file.path) for file in recorded.files}
    if not all(_fits(file, found[file.path], whole) for file in recorded.files):
        return otherwise
    all_of_it = whole and source.ref.kind == "local"
    for path, piece in _pieces(recorded) if all_of_it else _probes(recorded):
        if source.read(path, ByteRange(piece.start, piece.stop)) != piece.data:
            return otherwise
    return Standing.RIGHT


def _fits(then: FileEntry, now: FileEntry | None, hashed: bool) -> bool:
    """Whether a file has the length and the digest that it had."""
    if now is None or now.size != then.size:
        return False
    digest = now.sha256 or (digest_of(now) if hashed and then.sha256 else "")
    return not digest or not then.sha256 or digest == then.sha256


def _pieces(recorded: Recorded) -> Iterator[tuple[str, Piece]]:
    return ((path, piece) for path, some in recorded.pieces.items() for piece in some)


def _probes(recorded: Recorded) -> Iterator[tuple[str, Piece]]:
    """Some ranges of what was read; which that are nobody can know beforehand."""
    chance, pieces = SystemRandom(), list(_pieces(recorded))
    for path, piece in chance.sample(pieces, min(PROBES, len(pieces))):
        start = chance.randrange(max(len(piece.data) - _PROBED, 0) + 1)
        yield path, Piece(piece.start + start, piece.data[start : start + _PROBED])
