"""Fingerprints as Parquet files, and back.

A row is a range of bytes: which source, which file, where it starts. All else about the model is
JSON in the file's metadata, so that a reader of Parquet sees both. A fingerprint is named by the
digest of what it says, which does not depend on how Parquet packs it; whoever reads one holds it
against that digest.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from hashlib import sha256
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import numpy as np

from kinprint import text
from kinprint.atlas.fingerprint import Fingerprint
from kinprint.atlas.keys import FIRST, SECOND, TowerKeys
from kinprint.errors import EntryBroken, MissingExtra
from kinprint.lineage.about.claims import Claim
from kinprint.records import Commit, FileEntry, ModelRef
from kinprint.source.recorded import Piece, Recorded

if TYPE_CHECKING:
    import pyarrow

_FORM, _NUMBER = "kinprint.fingerprint", 1
SCHEMA = f"{_FORM}/{_NUMBER}"
"""The form of a fingerprint. Another number is another form, which is told and left out: files are
never changed, so that an older form would be read beside this one, and not rewritten."""
_KEY = b"kinprint"


_LARGEST = 1 << 28  # bytes of a file when it is unpacked; fingerprints have a twentieth of that
REFUSALS = (
    OSError, ValueError, TypeError, LookupError, NotImplementedError, MemoryError,
    RecursionError, msgspec.MsgspecError,
)  # fmt: skip
"""What pyarrow and msgspec raise about files that are no good, and what is checked here."""
_Number = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]


class _File(msgspec.Struct, frozen=True):
    path: str
    size: _Number
    sha256: str | None = None


class _Source(msgspec.Struct, frozen=True):
    given: str
    ref: ModelRef
    files: list[_File]
    history: list[Commit]


class _Tower(msgspec.Struct, frozen=True):
    tower: str
    width: _Number
    depth: _Number
    first: bytes
    second: bytes


class _About(msgspec.Struct, frozen=True, kw_only=True):
    schema: str
    seed: _Number
    architecture: str
    config: str
    tokenizer: str
    claims: list[Claim]
    towers: list[_Tower]
    sources: Annotated[list[_Source], msgspec.Meta(min_length=1)]


class _Version(msgspec.Struct):
    schema: str = ""


_read_about = msgspec.json.Decoder(_About).decode  # made once: see `source/repository.py`
_read_version = msgspec.json.Decoder(_Version).decode


def parquet() -> Any:
    """The library that reads and writes Parquet."""
    try:
        import pyarrow.parquet
    except ImportError:
        feature = text.message("cause.extra.atlas")
        raise MissingExtra(feature=feature, extra="atlas") from None
    return pyarrow.parquet


def encoded(one: Fingerprint) -> tuple[str, bytes]:
    """The digest of a fingerprint, and its file."""
    about = _about(one)
    rows = list(_rows(one))
    return _digest(about, rows), written(_table(rows).replace_schema_metadata({_KEY: about}))


def decoded(raw: bytes, name: str, place: str) -> Fingerprint:
    """The fingerprint in a file; an error where that is broken, or another than its name says."""
    about = _said(io.BytesIO(raw), name, place)
    try:
        rows = _read_rows(raw)
        if _digest(about, rows) == name:
            return _fingerprint(_read_about(about), rows)
    except REFUSALS:
        raise _broken(name, place, text.message("cause.atlas.no-fingerprint")) from None
    raise _broken(name, place, text.message("cause.atlas.digest"))


def keys_in(file: Any, name: str, place: str) -> tuple[TowerKeys, ...]:
    """What the model in an open file is searched by; of the file its end is read alone."""
    try:
        return _keys(_read_about(_said(file, name, place)))
    except REFUSALS:
        raise _broken(name, place, text.message("cause.atlas.no-fingerprint")) from None


def _said(file: Any, name: str, place: str) -> bytes:
    """What a file says about its model, in a form that is known."""
    try:
        about: bytes = (parquet().read_schema(file).metadata or {})[_KEY]
        version = _read_version(about).schema
    except REFUSALS:
        raise _broken(name, place, text.message("cause.atlas.no-fingerprint")) from None
    if version != SCHEMA:
        form, _, number = version.partition("/")
        newer = form == _FORM and number.isdecimal() and int(number) > _NUMBER
        key = "cause.atlas.newer" if newer else "cause.atlas.schema"
        raise _broken(name, place, text.message(key, found=version, known=SCHEMA))
    return about


def _broken(name: str, place: str, cause: text.Message) -> EntryBroken:
    return EntryBroken(place=place, entry=name, cause=cause)


def written(table: pyarrow.Table) -> bytes:
    """A table as a Parquet file."""
    raw = io.BytesIO()
    parquet().write_table(table, raw, compression="zstd")
    return raw.getvalue()


def listing_digest(files: tuple[FileEntry, ...]) -> str:
    """A digest of the paths, lengths and hashes of files."""
    lines = sorted(f"{one.path}\n{one.size}\n{one.sha256 or ''}\n" for one in files)
    return sha256("".join(lines).encode("utf-8", "surrogateescape")).hexdigest()


Row = tuple[int, str, int, bytes]


def _rows(one: Fingerprint) -> Iterator[Row]:
    for number, source in enumerate(one.sources):
        for path, pieces in source.pieces.items():
            for piece in pieces:
                yield number, path, piece.start, piece.data


def _table(rows: list[Row]) -> pyarrow.Table:
    parquet()
    import pyarrow

    schema = _row_schema()
    columns = [
        pyarrow.array([row[at] for row in rows], type=field.type) for at, field in enumerate(schema)
    ]
    return pyarrow.table(columns, schema=schema)


def _row_schema() -> pyarrow.Schema:
    import pyarrow

    kinds = (pyarrow.int16(), pyarrow.string(), pyarrow.int64(), pyarrow.large_binary())
    return pyarrow.schema(zip(("source", "file", "start", "data"), kinds, strict=True))


def _read_rows(raw: bytes) -> list[Row]:
    """The rows of a file, which is of the right form and not larger unpacked than one can be."""
    file = parquet().ParquetFile(io.BytesIO(raw))
    groups = [file.metadata.row_group(at) for at in range(file.metadata.num_row_groups)]
    if not file.schema_arrow.equals(_row_schema()):
        raise ValueError("other columns")
    if sum(group.total_byte_size for group in groups) > _LARGEST:
        raise ValueError("too large")
    table = file.read()
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def _digest(about: bytes, rows: list[Row]) -> str:
    found = sha256(about)
    for source, path, start, data in rows:
        found.update(f"\n{source} {path} {start} {len(data)}\n".encode("utf-8", "surrogateescape"))
        found.update(data)
    return found.hexdigest()


def _about(one: Fingerprint) -> bytes:
    return msgspec.json.encode(
        _About(
            schema=SCHEMA,
            seed=one.seed,
            architecture=one.architecture,
            config=one.config,
            tokenizer=one.tokenizer,
            claims=list(one.claims),
            towers=[
                _Tower(key.tower, key.width, key.depth, key.first.tobytes(), key.second.tobytes())
                for key in one.towers
            ],
            sources=[
                _Source(
                    source.given,
                    source.ref,
                    [_File(file.path, file.size, file.sha256) for file in source.files],
                    list(source.history),
                )
                for source in one.sources
            ],
        )
    )


def _fingerprint(about: _About, rows: list[Row]) -> Fingerprint:
    pieces: list[dict[str, list[Piece]]] = [{} for _ in about.sources]
    sizes = [{file.path: file.size for file in source.files} for source in about.sources]
    for source, path, start, data in rows:
        if not 0 <= source < len(sizes) or path not in sizes[source]:
            raise ValueError("a piece of no file")
        known = pieces[source].setdefault(path, [])
        if not (known[-1].stop if known else 0) <= start <= sizes[source][path] - len(data):
            raise ValueError("a piece out of place")
        known.append(Piece(start, data))
    return Fingerprint(
        seed=about.seed,
        architecture=about.architecture,
        config=about.config,
        tokenizer=about.tokenizer,
        claims=tuple(about.claims),
        towers=_keys(about),
        sources=tuple(
            Recorded(
                source.given,
                source.ref,
                tuple(FileEntry(file.path, file.size, file.sha256) for file in source.files),
                tuple(source.history),
                {path: tuple(found) for path, found in own.items()},
            )
            for source, own in zip(about.sources, pieces, strict=True)
        ),
    )


def _keys(about: _About) -> tuple[TowerKeys, ...]:
    return tuple(
        TowerKeys(one.tower, one.width, one.depth, _key(one.first, FIRST), _key(one.second, SECOND))
        for one in about.towers
    )


def _key(raw: bytes, lengths: tuple[int, ...]) -> np.ndarray[Any, np.dtype[np.int8]]:
    found = np.frombuffer(raw, np.int8)
    if len(found) != sum(lengths):
        raise ValueError("a key has another length")
    return found
