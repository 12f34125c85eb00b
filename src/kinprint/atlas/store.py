"""Where fingerprints are kept: a folder, or any place that fsspec can write to.

    ATLAS/fingerprints/ID.parquet    all that was read of a model
          index/NAME.parquet         what a search looks at: a row a tower, of one model or of many

A file is written once, under the digest of what it holds, and never changed: two that add one model
write the same file, two that add different models write different files, and nothing is locked. On
a disk a file is written under another name and renamed; object stores show it when it is complete.
What is read of a folder again takes the place of what was read of it before, which goes: a folder
has no history, and what it held then is found nowhere.
The index can be made from the fingerprints at any time, and is where it lacks one. The part of it
that comes with a model is named after the state of the model, where that is pinned: whoever asks
for a state finds it at once, before the parts are made one.
"""

from __future__ import annotations

import errno
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kinprint import text
from kinprint.atlas.encoding import (
    REFUSALS,
    decoded,
    encoded,
    keys_in,
    listing_digest,
    parquet,
    written,
)
from kinprint.atlas.fingerprint import Fingerprint
from kinprint.atlas.keys import FIRST, TowerKeys
from kinprint.errors import (
    AtlasBroken,
    AtlasFull,
    EntryBroken,
    KinprintError,
    MissingExtra,
    system_cause,
)
from kinprint.lineage.about.claims import Claim
from kinprint.records import ModelRef
from kinprint.source.assets import assets_folder

if TYPE_CHECKING:
    import pyarrow

_ENTRIES, _INDEX, _ENDING = "fingerprints", "index", ".parquet"
_NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT})
_TAIL = 256 * 1024  # bytes that a driver reads at once to get at the end of a file
_MANY = 64  # files of the index from which on they are made one
_read_claims = msgspec.json.Decoder(list[Claim]).decode


class State(Struct, frozen=True, array_like=True):
    """What is known of a fingerprint before anything is read: a state of a model, and the seed."""

    name: str
    commit: str
    path: str
    seed: int

    @classmethod
    def of(cls, ref: ModelRef, seed: int) -> State | None:
        """The state of a model; None where no commit pins it."""
        return cls(ref.name, ref.commit, ref.path, seed) if ref.commit else None

    @property
    def digest(self) -> str:
        """The name of the part of an index that comes with it."""
        return sha256(msgspec.json.encode(self)).hexdigest()


class Folder(Struct, frozen=True, array_like=True):
    """A folder on some machine, or a file in it, read with a seed."""

    given: str
    path: str
    seed: int

    @classmethod
    def of(cls, ref: ModelRef, seed: int) -> Folder | None:
        """The folder of a model; None where it lies elsewhere, or a commit pins it."""
        return cls(ref.given, ref.path, seed) if ref.kind == "local" and not ref.commit else None


class Entry(Struct, frozen=True):
    """A model of an atlas, as its index has it.

    Attributes
    ----------
    id
        The digest of its fingerprint, by which it is read.
    ref
        Which model it is, and which state of it was read.
    seed
        Chose which rows were read.
    architecture
        What it calls its architecture.
    files
        A digest of the paths, lengths and hashes of its files.
    claims
        Models that it names as its origin.
    """

    id: str
    ref: ModelRef
    seed: int
    architecture: str
    files: str
    claims: tuple[Claim, ...]


class Index(Struct, frozen=True):
    """What a search looks at, a row a tower; models are numbered by their order of names.

    Attributes
    ----------
    rows
        The table.
    owners
        Of each row the number of its model.
    firsts
        Of each model its first row.
    keys
        The first key of each row.
    """

    rows: pyarrow.Table
    owners: NDArray[np.int64]
    firsts: NDArray[np.int64]
    keys: NDArray[np.int8]

    def __len__(self) -> int:
        """How many models there are."""
        return len(self.firsts)

    def entry(self, number: int) -> Entry:
        """A model by its number."""
        row = self.rows.slice(int(self.firsts[number]), 1).to_pylist()[0]
        ref = ModelRef(row["given"], row["kind"], row["name"], row["commit"], row["path"])
        try:
            claims = tuple(_read_claims(row["claims"]))
        except REFUSALS:  # an index of strangers; the fingerprint says it rightly
            claims = ()
        return Entry(row["id"], ref, row["seed"], row["architecture"], row["files"], claims)

    def column(self, name: str) -> list[Any]:
        """One thing about all models."""
        found: list[Any] = self.rows.column(name).take(self.firsts).to_pylist()
        return found

    def entries(self) -> list[Entry]:
        """All models."""
        return [self.entry(number) for number in range(len(self))]


class Atlas:
    """Fingerprints in one place.

    Parameters
    ----------
    place
        A folder, or an address that fsspec can open; a folder beside the cache if None. It need not
        exist yet.
    """

    def __init__(self, place: str | None = None) -> None:
        self.place = place if place is not None else str(assets_folder("atlas", "v1"))
        self._named = place is not None
        if "://" not in self.place and Path(self.place).expanduser().is_file():
            raise AtlasBroken(place=self.place, cause=text.message("cause.system.ENOTDIR"))

    @property
    def address(self) -> str:
        """Its place for processes with other folders: a path is told from its root."""
        return self.place if "://" in self.place else str(Path(self.place).expanduser().absolute())

    def to_read(self) -> Atlas:
        """The same for who only reads: a folder that was named and is not there is a mistake."""
        if self._named and "://" not in self.place and not Path(self.address).is_dir():
            raise AtlasBroken(place=self.place, cause=text.message("cause.system.ENOENT"))
        return self

    def add(self, one: Fingerprint) -> str:
        """Keep a fingerprint; its digest. One that is there, and whole, is not written again."""
        name, raw = encoded(one)
        if not self._is_whole(name):
            state = State.of(one.ref, one.seed)
            part = name if state is None else state.digest
            self._write(_INDEX, part, written(_index_table([(name, one)])))
            self._write(_ENTRIES, name, raw)  # last: what is there can be found
        return name

    def _is_whole(self, name: str) -> bool:
        try:
            return self.has(name) and bool(self.read(name).sources)
        except EntryBroken:
            return False

    def states(self) -> dict[State, str]:
        """Fingerprints of pinned states, as far as the index has them.

        Nothing is written, so that many can ask while others add.
        """
        present = self._listed(_ENTRIES)
        found: dict[State, str] = {}
        for _, table in self._parts():
            columns = (table.column(one).to_pylist() for one in (*State.__struct_fields__, "id"))
            for *state, one in zip(*columns, strict=True):
                if one in present and state[1]:
                    found[State(*state)] = one
        return found

    def folders(self) -> dict[Folder, list[str]]:
        """Fingerprints of folders, which no commit pins, as far as the index has them."""
        found: dict[Folder, list[str]] = {}
        names = ("kind", "commit", "id", *Folder.__struct_fields__)
        for _, table in self._parts():
            columns = (table.column(one).to_pylist() for one in names)
            for kind, commit, one, *place in zip(*columns, strict=True):
                if kind == "local" and not commit:
                    found.setdefault(Folder(*place), []).append(one)
        return found

    def replace(self, one: Fingerprint, earlier: Iterable[str]) -> bool:
        """Let a fingerprint of a folder, which is here, stand for earlier ones; whether there were.

        An adapter on another base is another model.
        """
        name, replaced = encoded(one)[0], False
        for other in {*earlier} - {name}:
            if self.has(other) and self._bases(other) in (None, _bases(one)):
                self._ask(lambda files, place: files.rm_file(place), _ENTRIES, other)
                replaced = True
        return replaced

    def _bases(self, name: str) -> list[str] | None:
        """What an adapter was read with; None where its fingerprint is broken."""
        try:
            return _bases(self.read(name))
        except EntryBroken:
            return None

    def newly_added(self, state: State) -> str | None:
        """The fingerprint of a pinned state, if its part of the index still stands alone."""
        if not self._exists(_INDEX, state.digest):
            return None
        table = self._part(state.digest)
        name = str(table.column("id")[0]) if table is not None and len(table) else ""
        return name if name and self.has(name) else None

    def _parts(self) -> Iterator[tuple[str, pyarrow.Table]]:
        """All parts of the index that can be read, by their names."""
        for name in sorted(self._listed(_INDEX)):
            table = self._part(name)
            if table is not None:
                yield name, table

    def _part(self, name: str) -> pyarrow.Table | None:
        """A part of the index; None where it is damaged, or was made one with others just now."""
        try:
            return _read_index(self._read(_INDEX, name))
        except AtlasBroken as error:
            if isinstance(error.__cause__, FileNotFoundError):
                return None
            raise

    def names(self) -> set[str]:
        """Digests of all fingerprints; an error where there are none."""
        found = self._listed(_ENTRIES)
        if not found:
            cause = text.message("cause.atlas.no-fingerprints")
            raise AtlasBroken(place=self.place, cause=cause)
        return found

    def has(self, name: str) -> bool:
        """Whether there is a fingerprint with a digest."""
        return self._exists(_ENTRIES, name)

    def read(self, name: str) -> Fingerprint:
        """The fingerprint with a digest; an error where it is broken or another."""
        return decoded(self._read(_ENTRIES, name), name, self.place)

    def keys(self, name: str) -> tuple[TowerKeys, ...]:
        """What a model is searched by; little of its file is read."""

        def read(files: Any, place: str) -> tuple[TowerKeys, ...]:
            with files.open(place, "rb", block_size=_TAIL) as file:
                return keys_in(file, name, self.place)

        found: tuple[TowerKeys, ...] = self._ask(read, _ENTRIES, name)
        return found

    def index(self) -> tuple[Index, tuple[EntryBroken, ...]]:
        """What a search looks at, and which fingerprints are broken.

        Where the index lacks fingerprints they are read, and put into it.
        """
        parquet()
        faults: list[EntryBroken] = []
        parts = dict(self._parts())
        tables = list(parts.values())
        present = self._listed(_ENTRIES)
        indexed = {name for table in tables for name in table.column("id").to_pylist()}
        missing: list[tuple[str, Fingerprint]] = []
        for name in sorted(present - indexed):
            try:
                missing.append((name, self.read(name)))
            except EntryBroken as error:
                faults.append(error)
        if missing:
            tables.append(_index_table(missing))
        index = _joined(tables, present)
        if missing or len(parts) > _MANY:
            self._compact(index, parts)
        return index, tuple(faults)

    def take_from(self, other: Atlas) -> tuple[int, tuple[EntryBroken, ...]]:
        """Take over all fingerprints of another atlas; how many were new, and which are broken.

        Each is held against its digest before it is kept.
        """
        taken, faults = 0, []
        for name in sorted(other.names() - self._listed(_ENTRIES)):
            try:
                self.add(other.read(name))
                taken += 1
            except EntryBroken as error:
                faults.append(error)
        return taken, tuple(faults)

    def _compact(self, index: Index, parts: Iterable[str]) -> None:
        """Make one file of an index; whoever cannot write here searches all the same."""
        name = sha256("".join(index.rows.column("id").to_pylist()).encode()).hexdigest()
        try:
            self._write(_INDEX, name, written(index.rows))
            for part in parts:
                if part != name:
                    self._ask(lambda files, place: files.rm_file(place), _INDEX, part)
        except AtlasBroken:
            return

    @cached_property
    def _files(self) -> tuple[Any, str]:
        try:
            from fsspec.core import url_to_fs

            files, root = url_to_fs(self.place)
        except ImportError:
            scheme = self.place.partition("://")[0]
            feature = text.message("cause.extra.scheme", scheme=scheme)
            raise MissingExtra(feature=feature, extra="storage") from None
        except Exception as error:  # drivers raise what they like about odd addresses
            raise AtlasBroken(place=self.place, cause=str(error)) from None
        return files, str(root).rstrip("/")

    def _listed(self, folder: str) -> set[str]:
        """Names of the files in a folder of the atlas, without those that are being written."""

        def names(files: Any, place: str) -> list[str]:
            files.invalidate_cache()
            return (
                [str(one) for one in files.ls(place, detail=False)] if files.exists(place) else []
            )

        found = (one.rpartition("/")[2] for one in self._ask(names, folder))
        return {name.removesuffix(_ENDING) for name in found if name.endswith(_ENDING)}

    def _exists(self, folder: str, name: str) -> bool:
        def exists(files: Any, place: str) -> bool:
            files.invalidate_cache()
            return bool(files.exists(place))

        return bool(self._ask(exists, folder, name))

    def _read(self, folder: str, name: str) -> bytes:
        raw: bytes = self._ask(lambda files, place: files.cat_file(place), folder, name)
        return raw

    def _write(self, folder: str, name: str, raw: bytes) -> None:
        def write(files: Any, place: str) -> None:
            if files.protocol != ("file", "local"):
                files.pipe_file(place, raw)
                return
            files.makedirs(place.rpartition("/")[0], exist_ok=True)
            draft = f"{place}.{token_hex(8)}"
            try:
                files.pipe_file(draft, raw)
                files.mv(draft, place)
            except BaseException:
                if files.exists(draft):
                    files.rm_file(draft)
                raise

        try:
            self._ask(write, folder, name)
        except AtlasBroken as error:
            if isinstance(error.__cause__, OSError) and error.__cause__.errno in _NO_SPACE:
                raise AtlasFull(place=self.place, bytes=len(raw)) from None
            raise

    def _ask(self, action: Callable[[Any, str], Any], *path: str) -> Any:
        """Have the driver do something, and turn its failures into sentences."""
        files, root = self._files
        place = "/".join((root, *path)) + (_ENDING if len(path) > 1 else "")
        try:
            return action(files, place)
        except KinprintError:
            raise
        except OSError as error:
            raise AtlasBroken(place=self.place, cause=system_cause(error)) from error
        except Exception as error:  # drivers raise what their client library raises
            cause = str(error).strip() or type(error).__name__
            raise AtlasBroken(place=self.place, cause=cause) from error


def _bases(one: Fingerprint) -> list[str]:
    """What an adapter was read with, as it was named."""
    return [source.given for source in one.sources[1:]]


def _index_table(added: Iterable[tuple[str, Fingerprint]]) -> pyarrow.Table:
    parquet()
    import pyarrow

    rows: list[dict[str, object]] = []
    for name, one in added:
        ref = one.ref
        model = {
            "id": name, "given": ref.given, "kind": ref.kind, "name": ref.name,
            "commit": ref.commit, "path": ref.path, "seed": one.seed,
            "architecture": one.architecture, "files": listing_digest(one.sources[0].files),
            "claims": msgspec.json.encode(one.claims).decode(),
        }  # fmt: skip
        rows += [
            {**model, "tower": key.tower, "width": key.width, "depth": key.depth,
             "key": key.first.tobytes()}
            for key in one.towers
        ]  # fmt: skip
    return pyarrow.Table.from_pylist(rows, schema=index_schema())


def index_schema() -> pyarrow.Schema:
    """The columns of an index."""
    import pyarrow

    words = ("id", "given", "kind", "name", "commit", "path", "architecture", "files", "claims")
    numbers = ("seed", "width", "depth")
    return pyarrow.schema(
        [(name, pyarrow.string()) for name in (*words, "tower")]
        + [(name, pyarrow.int64()) for name in numbers]
        + [("key", pyarrow.binary(sum(FIRST)))]
    )


def _read_index(raw: bytes) -> pyarrow.Table | None:
    """A part of an index; None where it is none, or has other columns: it is then made again."""
    try:
        table = parquet().read_table(io.BytesIO(raw))
    except REFUSALS:
        return None
    if not table.schema.equals(index_schema()) or any(one.null_count for one in table.columns):
        return None
    return table


def _joined(tables: Sequence[pyarrow.Table], present: set[str]) -> Index:
    """One table of all models that are there, each once, in the order of names."""
    import pyarrow

    rows = pyarrow.concat_tables([index_schema().empty_table(), *tables])
    ids = np.array(rows.column("id").to_pylist(), dtype=object)
    towers = rows.column("tower").to_pylist()
    names = rows.column("name").to_pylist()
    seen: set[tuple[str, str]] = set()
    kept: list[int] = []
    for at, place in enumerate(zip(ids, towers, strict=True)):
        if place[0] in present and place not in seen:
            seen.add(place)
            kept.append(at)
    kept.sort(key=lambda at: (names[at], ids[at], at))
    rows = rows.take(pyarrow.array(kept, pyarrow.int64()))
    ids = ids[kept]
    new = np.array([at == 0 or ids[at] != ids[at - 1] for at in range(len(ids))], bool)
    raw = b"".join(rows.column("key").to_pylist())
    return Index(
        rows,
        np.cumsum(new, dtype=np.int64) - 1,
        np.flatnonzero(new).astype(np.int64),
        np.frombuffer(raw, np.int8).reshape(len(ids), sum(FIRST)),
    )
