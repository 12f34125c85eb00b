"""Are two models the very same? Told by digests of their files before any weight is read, or by
what was read of them."""

from __future__ import annotations

import functools
import hashlib
import math
from pathlib import Path

import numpy as np

from kinprint.lineage.parts.tensors import at_equal_numbers, compared, tensor_sizes
from kinprint.lineage.reading.sample import Sample
from kinprint.lineage.tests.registry import LineageTest, register
from kinprint.model.opening import is_adapter
from kinprint.reader.checkpoint import Checkpoint
from kinprint.reader.formats.registry import GGUF
from kinprint.records import (
    Evidence,
    FileEntry,
    Group,
    Reason,
    Relation,
    Status,
    Tier,
    Verdict,
    VerdictReason,
)

_BITS = 256
_LONGEST = 256 * 1024 * 1024  # local files up to this length are hashed; others are compared
_HEADERS_ALONE = 1024 * 1024  # a file up to this length may be a header without any number
_PLACES, _GLANCE = 16, 4096  # of a file, and bytes at each, that are looked at before it is hashed

_FILES = register(LineageTest("files", Tier.EXACT, Group.NONE))
SAME_FILES = Evidence(
    test=_FILES.name,
    tier=_FILES.tier,
    group=_FILES.group,
    status=Status.OK,
    log10_p=-_BITS * math.log10(2),
    bound="collision of sha256",
    floor=-_BITS * math.log10(2),
    effect=1.0,
    reason=Reason.SAME_FILES.message(),
)


def same_files(a: Checkpoint, b: Checkpoint) -> bool:
    """Whether both models' weight files are equal, as far as that costs nothing to know.

    Sources tell the sha256 of large files; short local files are hashed here. Adapters are
    only equal if what they stand on is, so they are not judged by their own files; nor is a model
    that lacks some of its files, or one whose files hold no numbers: such shells of one
    architecture are equal whoever wrote them.
    """
    lacking = a.lacks_files or b.lacks_files
    if lacking or not _equal_files(a, b) or any(map(_names_base_elsewhere, (a, b))):
        return False
    return _holds_numbers(a)


def _equal_files(a: Checkpoint, b: Checkpoint) -> bool:
    ours, theirs = (_weight_files(model) for model in (a, b))
    if sorted(file.size for file in ours) != sorted(file.size for file in theirs):
        return False
    if all(map(_same_local_file, ours, theirs)):
        return True
    if all(map(_is_hashed_here, (*ours, *theirs))):
        looks = [sorted(map(_glance, files)) for files in (ours, theirs)]
        if looks[0] != looks[1]:
            return False
    digests = [sorted(map(digest_of, files)) for files in (ours, theirs)]
    return "" not in digests[0] and digests[0] == digests[1]


def same_files_verdict(alpha: float) -> Verdict:
    """The verdict on two models with equal weight files."""
    reasons = (VerdictReason.SAME_FILES,)
    return Verdict(Relation.IDENTICAL, SAME_FILES.log10_p, alpha, reasons=reasons)


def same_numbers(a: Sample, b: Sample) -> bool:
    """Whether two models that were read whole hold the same numbers at the same places."""
    ours, theirs = a.stored_gains, b.stored_gains
    gains = ((ours[at], theirs[at]) for at in ours.keys() & theirs.keys())
    stored = all(np.array_equal(one, other, equal_nan=True) for one, other in gains)
    return a.key == b.key and bool(a.norms or a.units) and stored


def equal_as_read(a: Sample, b: Sample) -> bool:
    """Whether two models have the same tensors, and the same numbers wherever both were read."""
    if a.parts.keys() != b.parts.keys():
        return False
    if any(tensor_sizes(a, part) != tensor_sizes(b, part) for part in a.parts):
        return False
    tensors = (one for part in a.parts for one in compared(a, b, part, part, stored=True))
    rows = (at_equal_numbers(*both) for _, both in tensors)
    told = False
    for one, other in rows:
        if not np.array_equal(one, other, equal_nan=True):
            return False
        told = told or one.size > 0
    return told


def _weight_files(model: Checkpoint) -> list[FileEntry]:
    files = [model.files[shard] for shard in model.shards]
    return files + [file for component in model.components for file in _weight_files(component)]


def _holds_numbers(model: Checkpoint) -> bool:
    """Whether there is any number in its weight files; headers of short ones are read to tell."""
    if any(file.size > _HEADERS_ALONE for file in _weight_files(model)):
        return True
    models = (model, *model.components)
    return any(spec.count for one in models for spec in one.tensors().values())


def _names_base_elsewhere(model: Checkpoint) -> bool:
    """Whether it is an adapter whose base its weight files do not name; those of GGUF do."""
    return model.format != GGUF and is_adapter(model)


def _same_local_file(first: FileEntry, second: FileEntry) -> bool:
    if first.local is None or second.local is None:
        return False
    return Path(first.local).samefile(second.local)


def digest_of(entry: FileEntry) -> str:
    """The sha256 of a file, empty where it is not known and not cheap."""
    if not _is_hashed_here(entry):
        return entry.sha256 or ""
    return _sha256(*_as_it_is(entry))


def _is_hashed_here(entry: FileEntry) -> bool:
    return entry.sha256 is None and entry.local is not None and entry.size <= _LONGEST


def _glance(entry: FileEntry) -> bytes:
    """Some bytes of a local file: most that differ do in these, and need not be hashed."""
    return _few_bytes(*_as_it_is(entry), entry.size)


def _as_it_is(entry: FileEntry) -> tuple[Path, int]:
    """A local file and when it was changed."""
    assert entry.local is not None
    path = Path(entry.local)
    return path, path.stat().st_mtime_ns


@functools.lru_cache(1024)
def _few_bytes(path: Path, changed: int, size: int) -> bytes:
    with path.open("rb") as file:
        places = range(0, max(size, 1), max(size // _PLACES, _GLANCE))
        return b"".join(file.read(_GLANCE) for at in places if file.seek(at) == at)


@functools.lru_cache(4096)
def _sha256(path: Path, changed: int) -> str:
    """The sha256 of a local file as it was at a time; a model of many pairs is hashed once."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
