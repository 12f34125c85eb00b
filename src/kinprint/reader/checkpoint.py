"""A model's weights as named tensors, read by slices.

Opening costs the list of files and the small files beside the weights. Headers are read
for the shards that are asked about, all at once, and tensors for the slices asked for,
all at once: one round trip each, however many there are.
"""

from __future__ import annotations

import contextlib
import posixpath
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from kinprint import text
from kinprint.errors import (
    AccessRefused,
    BadConfig,
    BadHeader,
    BadIndex,
    NetworkError,
    PartsMissing,
    TensorMissing,
    TensorUnknown,
    naming,
)
from kinprint.reader.assemble import assemble
from kinprint.reader.decode import Array, widen
from kinprint.reader.extents import total
from kinprint.reader.fetch import Fetcher, Want, side_by_side
from kinprint.reader.formats.shard_index import (
    INDEX_LIMIT,
    Promises,
    ShardIndex,
    check_names,
    check_promises,
    parse_index,
)
from kinprint.reader.jsonfile import parse_object
from kinprint.reader.origins import LABEL, UNKNOWN, Origin, origins
from kinprint.reader.plan import FilePlan, ReadPolicy, slice_bytes
from kinprint.reader.weights import Choice, are_numbered, choose_weights
from kinprint.records import ByteRange, FileEntry, Header, ModelRef, Slice, TensorSpec
from kinprint.source import Source
from kinprint.source.local import read_local

_NUMBERED = re.compile(r"-(\d{3,6})-of-(\d{3,6})\.[a-z]+$")
_LARGEST_CONFIG = 4 * 1024 * 1024
_MARGIN = 4  # a header may be longer by this part than all before it, and is read at once still
_ENOUGH = 2  # headers that tell how long the others are


class Checkpoint:
    """One model's weights, wherever they lie."""

    def __init__(
        self, source: Source, fetcher: Fetcher, *, indexed: bool = True, focus: str | None = None
    ) -> None:
        """Open what `source` holds; without `indexed` no index that can be done without.

        Which files are the model does not depend on that: shards that number themselves from the
        first to the last are, where an index could name no other weight file; elsewhere the index
        says, and is read. The index of a large mixture of experts is longer than the headers of the
        few shards that a quick look needs. One on this machine costs nothing, and files are held
        against it. `focus` is a file or folder to open instead of the one that was asked for.
        """
        self.source = source
        self.fetcher = fetcher
        fetcher.register(source)
        self.files: dict[str, FileEntry] = {entry.path: entry for entry in source.files()}
        self.choice: Choice = choose_weights(
            self.ref.name, self.files.values(), self.ref.path if focus is None else focus
        )
        self.notes: list[text.Message] = []
        self.labels: list[text.Message] = []  # what the weights are not, as those of replicas
        self._origins: dict[str, Mapping[str, Origin] | None] = {}  # by the shard of a replica
        self.components: tuple[Checkpoint, ...] = tuple(
            Checkpoint(source, fetcher, indexed=indexed, focus=folder)
            for folder in self.choice.components
        )
        self._headers: dict[str, Header] = {}
        self._first_reads: dict[str, Sequence[ByteRange]] = {}  # what was asked for at first
        self.config: dict[str, Any] = {}
        self._config_bytes = 0
        self.index: ShardIndex | None = None
        self._promised: ShardIndex | None = None  # what files are held against, if it is known
        self.lacks_files = False  # that its index names: nobody knows what they hold
        self._open_small_files(indexed)
        self.shards: tuple[str, ...] = self._shards()

    @property
    def ref(self) -> ModelRef:
        """Which model this is, pinned."""
        return self.source.ref

    @property
    def format(self) -> str:
        """The format of the weight files."""
        return self.choice.weights.format

    def names(self) -> tuple[str, ...]:
        """Names of all tensors; an index tells them without any header."""
        if self.index is not None:
            return tuple(self.index.weight_map)
        return tuple(self.tensors())

    def tensors(self, names: Iterable[str] | None = None) -> dict[str, TensorSpec]:
        """Where tensors lie: all of them, or those named."""
        if names is None:
            return self.tensors_in(self.shards)
        if self.index is None:
            everything = self.tensors()
            return {name: self._need(everything, name) for name in names}
        wanted = {name: self._shard_of(name) for name in names}
        self.load_headers(dict.fromkeys(wanted.values()))
        by_shard = {
            shard: {spec.name: spec for spec in self._headers[shard].tensors}
            for shard in set(wanted.values())
        }
        for name, shard in wanted.items():
            if name not in by_shard[shard]:
                raise TensorMissing(tensor=name, file=shard, promised=self.index.path)
        return {name: by_shard[shard][name] for name, shard in wanted.items()}

    def tensors_in(self, shards: Sequence[str]) -> dict[str, TensorSpec]:
        """Where the tensors of some weight files lie; the other files are left alone.

        A tensor that several files have is that of the file which the index names. Where no index
        was read, copies in files that are left alone are not known.
        """
        shards = tuple(dict.fromkeys(shards))
        self.load_headers(shards)
        specs = [spec for shard in shards for spec in self._headers[shard].tensors]
        found = {spec.name: spec for spec in specs}
        once = len(found) == len(specs)
        if once and (self.index is None or len(shards) == len(self.shards)):
            return found
        return self._at_home(specs)

    def _at_home(self, specs: Sequence[TensorSpec]) -> dict[str, TensorSpec]:
        """Tensors by name, less the copies of what the index names in another file that has it."""
        index = self.index or self._fetch_index()
        home = {} if index is None else index.weight_map
        named = {home.get(spec.name) for spec in specs}
        homes = [shard for shard in self.shards if shard in named]
        self.load_headers(homes)
        held = {shard: {spec.name for spec in self._headers[shard].tensors} for shard in homes}
        found: dict[str, TensorSpec] = {}
        for spec in specs:
            shard = home.get(spec.name, spec.file)
            if shard != spec.file and spec.name in held.get(shard, ()):
                continue
            if spec.name in found:
                also = found[spec.name].file
                cause = text.message("cause.weights.twice", tensor=spec.name, file=also)
                raise BadHeader(file=spec.file, cause=cause)
            found[spec.name] = spec
        return found

    @property
    def complete(self) -> bool:
        """Whether the headers of all weight files have been read; no model that lacks some is."""
        return not self.lacks_files and len(self._headers) == len(self.shards)

    @property
    def known_bytes(self) -> int:
        """About how much had to be read to know what is known: index, configuration, headers.

        The same wherever the model lies, so that a budget cuts the same way everywhere.
        """
        index = self.files[self.index.path].size if self.index is not None else 0
        index += self._config_bytes
        headers = [
            max(header.extent, total(self._first_reads[shard]))
            for shard, header in self._headers.items()
        ]
        return index + sum(headers)

    def came_with_header(self, tensor: TensorSpec) -> int:
        """How much of a tensor was read along with the header of its file; nothing of what an
        adapter brings, whose files are not these."""
        start, stop = tensor.offset, tensor.offset + tensor.nbytes
        reads = self._first_reads.get(tensor.file, ())
        return sum(max(min(stop, one.stop) - max(start, one.start), 0) for one in reads)

    @property
    def all_headers_bytes(self) -> int:
        """About how much that would be if the headers of all weight files were read."""
        return self.known_bytes + self.unread_bytes(self.shards)

    def unread_bytes(self, shards: Iterable[str]) -> int:
        """About how much more that would be with the headers of `shards`.

        Without an index they may be as long as the longest that is known.
        """
        wants = self._first_wants(shard for shard in shards if shard not in self._headers)
        least = self._likely if self.index is None else 0
        return sum(max(total(want.ranges), min(least, want.entry.size)) for want in wants)

    def headers(self) -> Mapping[str, Header]:
        """Headers of all weight files, by path."""
        self.load_headers(self.shards)
        return {shard: self._headers[shard] for shard in self.shards}

    def header(self, shard: str) -> Header:
        """The header of one weight file."""
        self.load_headers([shard])
        return self._headers[shard]

    def header_wants(self) -> list[Want]:
        """What `headers` would ask for first."""
        unread = [shard for shard in self.shards if shard not in self._headers]
        return self._first_wants(unread)

    def load_headers(self, shards: Iterable[str]) -> None:
        """Read the headers of `shards` that are not known yet, all at once."""
        unread = [shard for shard in dict.fromkeys(shards) if shard not in self._headers]
        if not unread:
            return
        wants = self._first_wants(unread)
        parsed = self.fetcher.each(wants, lambda want: self._parse(want.entry.path))
        self._first_reads.update({want.entry.path: want.ranges for want in wants})
        self._headers.update(zip(unread, parsed, strict=True))
        check = self.choice.weights.kind.check_parts
        if check is not None and len(self.shards) > 1 and self.complete:
            check(self._headers)

    def plan(self, slices: Sequence[Slice]) -> tuple[FilePlan, ...]:
        """What `read` would cost for the same slices."""
        return self.fetcher.plan(self.wants(slices))

    def wants(self, slices: Iterable[Slice]) -> list[Want]:
        """The bytes that slices need, file by file."""
        ranges: dict[str, list[ByteRange]] = {}
        for part in slices:
            ranges.setdefault(part.tensor.file, []).extend(slice_bytes(part))
        return [Want(self.source, self.files[path], tuple(spans)) for path, spans in ranges.items()]

    def read(self, slices: Sequence[Slice], *, as_stored: bool = False) -> list[Array]:
        """The numbers of each slice; short floats widened to float32 unless `as_stored`."""
        self.fetcher.ensure(self.wants(slices))
        return self.read_there(slices, as_stored=as_stored)

    def read_there(self, slices: Sequence[Slice], *, as_stored: bool = False) -> list[Array]:
        """The same, of slices whose bytes are there; a byte that is not is read by itself."""
        arrays = (assemble(part, self._take(part.tensor.file)) for part in slices)
        return [array if as_stored else widen(array) for array in arrays]

    def __repr__(self) -> str:
        where = f"{self.ref.name}@{self.ref.commit[:12]}".rstrip("@")
        return f"<Checkpoint {where}: {self.format}, {len(self.shards)} file(s)>"

    def _take(self, path: str) -> Callable[[ByteRange], bytes]:
        entry = self.files[path]
        return lambda span: self.fetcher.take(self.source, entry, span)

    def _open_small_files(self, indexed: bool) -> None:
        weights = self.choice.weights
        config = self._find_config(weights.folder)
        needed = weights.index is not None and (indexed or not self.choice.counted)
        index = self._index_entry() if needed else None
        self.fetcher.ensure(
            Want(self.source, entry, (ByteRange(0, entry.size),))
            for entry in (config, index)
            if entry is not None
        )
        if config is not None:
            try:
                self.config = parse_object(config.path, self.read_file(config.path))
            except BadConfig as error:  # weights can be read without it
                self.notes.append(error.message)
        if index is not None:
            self.index = self._promised = self._fetch_index()
        elif weights.index is not None:
            self._promised = self._index_beside(self.files[weights.index])

    def _index_entry(self) -> FileEntry | None:
        """The index, if there is one; an absurd one is refused before it is fetched."""
        index = self.choice.weights.index
        if index is None:
            return None
        if self.files[index].size > INDEX_LIMIT:
            raise BadIndex(file=index, cause=text.message("cause.index.too-large"))
        return self.files[index]

    def _fetch_index(self) -> ShardIndex | None:
        entry = self._index_entry()
        return None if entry is None else parse_index(entry.path, self.read_file(entry.path))

    def _index_beside(self, entry: FileEntry) -> ShardIndex | None:
        """An index to hold files against and look nothing up in; None if it must be fetched."""
        if entry.local is None or entry.size > INDEX_LIMIT:
            return None
        try:
            return parse_index(entry.path, read_local(entry.local, ByteRange(0, entry.size)))
        except BadIndex as error:  # shards number themselves
            self.notes.append(error.message)
            return None

    def _find_config(self, folder: str) -> FileEntry | None:
        """The configuration beside the weights, or at the root; nobody must have one.

        Original releases of Llama and Mistral call it params.json.
        """
        names = (posixpath.join(folder, name) for name in ("config.json", "params.json"))
        for path in dict.fromkeys((*names, "config.json")):
            with contextlib.suppress(NetworkError, AccessRefused):
                entry = self.source.find(path)
                if entry is not None and entry.size > _LARGEST_CONFIG:
                    self.notes.append(text.message("note.large-configuration", path=path))
                elif entry is not None:
                    self.files[path] = entry
                    self._config_bytes = entry.size
                    return entry
        return None

    def read_file(self, path: str) -> bytes:
        """A small file of the model, whole."""
        entry = self.files[path]
        return self.fetcher.view(self.source, entry).read(0, entry.size)

    def read_files(self, paths: Sequence[str]) -> dict[str, bytes]:
        """Small files of the model, whole, read side by side."""
        self.fetch_files(paths)
        return {path: self.read_file(path) for path in paths}

    def fetch_files(self, paths: Sequence[str]) -> None:
        """Make small files available, without holding them."""
        entries = [self.files[path] for path in paths]
        self.fetcher.ensure(
            Want(self.source, entry, (ByteRange(0, entry.size),)) for entry in entries
        )

    def _shards(self) -> tuple[str, ...]:
        weights = self.choice.weights
        if self._promised is None:
            return self._complete(weights.shards)
        named = tuple(dict.fromkeys(self._promised.weight_map.values()))
        if len(weights.shards) == 1 and weights.shards[0] not in named:
            # Who loads a model takes a single file of its name first, whatever an index says.
            self.notes.append(text.message("note.other-index", path=self._promised.path))
            self.index = self._promised = None
            return self._complete(weights.shards)
        unlisted = [shard for shard in named if shard not in self.files]
        for shard, entry in zip(unlisted, side_by_side(self.source.find, unlisted), strict=True):
            if entry is not None:
                self.files[shard] = entry
        known = weights.shards if self.choice.counted else self.files
        there = {shard for shard in named if shard in known}
        absent = [shard for shard in named if shard not in there]
        shards = tuple(sorted({*weights.shards, *there}))
        if absent:
            first, more = absent[0], len(absent) - 1
            key = "cause.weights.missing-several" if more else "cause.weights.missing-file"
            missing = text.message(key, first=first, more=more)
            if not are_numbered(weights.shards):
                raise PartsMissing(name=self.ref.name, missing=missing)
            self.notes.append(text.message("note.files-absent", missing=missing))
            self.lacks_files = True
        beside = len(set(weights.shards) - set(named))
        if not absent and not self.choice.counted:
            if beside:
                self.notes.append(text.message("note.files-outside-index", files=beside))
            return tuple(sorted(there))
        if beside:
            self.notes.append(text.message("note.files-beyond-index", files=beside))
        if beside or absent:  # what does not name these files is nothing to look tensors up in
            self.index = None
        return shards

    def _complete(self, shards: tuple[str, ...]) -> tuple[str, ...]:
        """Shards that number themselves must all be there, unless one was pointed at."""
        numbers = {int(n): int(count) for shard in shards for n, count in _NUMBERED.findall(shard)}
        count = max(numbers.values(), default=0)
        missing = sorted(set(range(1, count + 1)) - set(numbers))
        if missing and self.ref.path == shards[0] and not self.choice.weights.kind.whole:
            self.notes.append(text.message("note.one-of-several", files=count))
        elif missing:
            shown = ", ".join(map(str, missing[:5])) + (", …" if len(missing) > 5 else "")
            parts = text.message("cause.weights.missing-numbers", numbers=shown, files=count)
            raise PartsMissing(name=self.ref.name, missing=parts)
        return shards

    @property
    def _likely(self) -> int:
        """How much brings a header that is about as long as the longest known; 0 before any."""
        longest = max((header.extent for header in self._headers.values()), default=0)
        return longest and longest + longest // _MARGIN + self.fetcher.policy.first_slack

    @property
    def _policy(self) -> ReadPolicy:
        """How headers are read: those of one model's shards are about equally long.

        One alone does not tell: the first shard may hold nothing but an embedding. Of longer ones
        what is missing is read when the file has said how long its header is.
        """
        policy = self.fetcher.policy
        if len(self._headers) < _ENOUGH:
            return policy
        return replace(policy, first_read=min(policy.first_read, self._likely))

    def _first_wants(self, shards: Iterable[str]) -> list[Want]:
        policy, kind = self._policy, self.choice.weights.kind
        promised = self.index.shards if self.index is not None else {}
        entries = {shard: self.files[shard] for shard in shards}
        return [
            Want(self.source, entry, kind.first_ranges(entry.size, promised.get(shard), policy))
            for shard, entry in entries.items()
        ]

    def _parse(self, shard: str) -> Header:
        """The header of a weight file; an error notes of which model it is."""
        with naming(self.ref.given):
            return self._parse_unnamed(shard)

    def _parse_unnamed(self, shard: str) -> Header:
        view = self.fetcher.view(self.source, self.files[shard])
        header = self.choice.weights.kind.parse(view)
        check_names(shard, [spec.name for spec in header.tensors])
        if isinstance(said := header.metadata.get(LABEL), str):
            self._origins[shard] = origins(header.metadata)
            label = label_of(said)
            if label not in self.labels:
                self.labels.append(label)
        if self._promised is not None and shard in self._promised.shards:
            self._note_promises(shard, check_promises(self._promised, shard, header))
        return header

    def _note_promises(self, shard: str, found: Promises) -> None:
        """Say what an index names and a shard lacks, and the other way round."""
        if found.missing:
            fields = {"file": shard, "tensor": found.missing[0], "count": len(found.missing)}
            self.notes.append(text.message("note.tensors-missing", **fields))
        if found.beyond:
            beyond = text.message(
                "note.tensors-outside-index", file=shard, tensors=len(found.beyond)
            )
            self.notes.append(beyond)

    def origin_of(self, spec: TensorSpec) -> Origin | None:
        """Where the numbers of a tensor of a replica come from; None for any other model."""
        if spec.file not in self._origins:
            return None
        listed = self._origins[spec.file]
        return UNKNOWN if listed is None else listed.get(spec.name)

    def lacks(self, spec: TensorSpec) -> bool:
        """Whether it is a hole in a replica: there by its name and shape alone."""
        listed = self._origins.get(spec.file)
        return listed is not None and spec.name not in listed

    def _shard_of(self, name: str) -> str:
        assert self.index is not None
        try:
            return self.index.weight_map[name]
        except KeyError:
            raise self._unknown(name, self.index.weight_map) from None

    def _need(self, found: Mapping[str, TensorSpec], name: str) -> TensorSpec:
        try:
            return found[name]
        except KeyError:
            raise self._unknown(name, found) from None

    def _unknown(self, name: str, known: Iterable[str]) -> TensorUnknown:
        from difflib import get_close_matches

        near = get_close_matches(name, known, n=1)
        nearest = near[0] if near else text.message("cause.tensor.nothing-near")
        return TensorUnknown(name=self.ref.name, tensor=name, near=nearest)


def label_of(said: str) -> text.Message:
    """What a weight file says it is not; in all languages where kinprint itself wrote it."""
    known = text.message("note.label.replica")
    return known if said == str(known) else text.message("note.label.other", label=said)


def open_checkpoint(given: str, fetcher: Fetcher, *, indexed: bool = True) -> Checkpoint:
    """Open the model that `given` names; its index only if it is wanted."""
    return Checkpoint(fetcher.open(given), fetcher, indexed=indexed)
