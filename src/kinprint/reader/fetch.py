"""Carries out a plan: many connections, each byte once, within the budget.

The fetcher knows sources, the cache and the budget; it knows nothing of tensors. Bytes
of pinned files go to the cache and are taken from there; those of files that nothing pins
stay in memory, and so do those that the cache cannot take because it is not ours to write to;
local files are read in place and cost nothing.
"""

from __future__ import annotations

import os
import time
from bisect import bisect_right, insort
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, wait
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Lock, Semaphore, local
from typing import Any, TypeVar

from msgspec import Struct

from kinprint import text
from kinprint.errors import BudgetExceeded, CacheBroken
from kinprint.reader.cache import Cache
from kinprint.reader.extents import ExtentSet, subtract, union
from kinprint.reader.formats.view import FileView
from kinprint.reader.plan import FilePlan, ReadPolicy, plan_file
from kinprint.reader.sizes import in_words, round_up
from kinprint.records import ByteRange, Cost, FileEntry, Progress
from kinprint.source import Source, open_source
from kinprint.source.local import read_local
from kinprint.source.recorded import RecordedSource, Recorder
from kinprint.source.stopping import check, until
from kinprint.workers import Threads

_A = TypeVar("_A")
_T = TypeVar("_T")
_Place = tuple[int, str]
_TRIES = 4
_HASHED_AT_ONCE = 4 * 1024 * 1024


class Want(Struct, frozen=True):
    """All ranges of one file that somebody is going to look at; one want a file."""

    source: Source
    entry: FileEntry
    ranges: tuple[ByteRange, ...]


class _Memory:
    """Bytes of files that cannot be cached on disk, for the life of a fetcher."""

    def __init__(self) -> None:
        self._parts: dict[_Place, dict[int, bytes]] = {}
        self._cover: dict[_Place, ExtentSet] = {}
        self._starts: dict[_Place, list[int]] = {}
        self._lock = Lock()

    def known(self, place: _Place) -> tuple[ByteRange, ...]:
        with self._lock:
            cover = self._cover.get(place)
            return cover.ranges() if cover is not None else ()

    def write(self, place: _Place, start: int, data: bytes) -> None:
        with self._lock:
            parts = self._parts.setdefault(place, {})
            if start not in parts:
                insort(self._starts.setdefault(place, []), start)
            if len(data) >= len(parts.get(start, b"")):
                parts[start] = data
            self._cover.setdefault(place, ExtentSet()).add(ByteRange(start, start + len(data)))

    def read(self, place: _Place, span: ByteRange) -> bytes | None:
        with self._lock:
            cover = self._cover.get(place)
            if cover is None or not cover.covers(span):
                return None
            parts, starts = self._parts[place], self._starts[place]
            result, at, index = bytearray(), span.start, bisect_right(starts, span.start) - 1
            while at < span.stop and index < len(starts):
                start = starts[index]
                piece = parts[start][max(at - start, 0) : span.stop - start]
                if start <= at and piece:
                    result += piece
                    at += len(piece)
                index += 1
            return bytes(result) if at >= span.stop else None


class Fetcher:
    """Reads ranges from any number of sources through one pool of connections."""

    def __init__(
        self,
        *,
        cache: Cache | None = None,
        policy: ReadPolicy | None = None,
        budget: int | None = None,
        on_progress: Callable[[Progress], None] | None = None,
    ) -> None:
        self.policy = policy or ReadPolicy()
        self._cache = cache
        self._budget = budget
        self._on_progress = on_progress
        self._memory = _Memory()
        self._recorder: Recorder | None = None
        self._recorded: dict[str, RecordedSource] = {}
        self._unwritable = False  # the cache can be read at most
        # Twice as many threads as connections: while some store or parse what has come,
        # others keep the connections busy.
        self._connections = Semaphore(self.policy.connections)
        self._pool = Threads(2 * self.policy.connections, "kinprint-read")
        self._lock = Lock()
        self._closed = Event()
        self._worker = local()
        self._sources: dict[int, Source] = {}
        self._started = time.monotonic()
        self._reserved = 0
        self._totals = [0, 0, 0, 0]  # bytes done and planned, requests done and planned

    def __enter__(self) -> Fetcher:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    @property
    def spent(self) -> Cost:
        """Bytes, requests and seconds since the fetcher was made."""
        total = sum((source.spent for source in self._sources.values()), Cost())
        return Cost(total.bytes, total.requests, time.monotonic() - self._started)

    def close(self) -> None:
        """Begin nothing more; what is stored stays, and nobody waits for a slow server.

        Jobs that have not begun end as such: a pool that drops them wakes nobody who waits.
        """
        self._closed.set()
        self._pool.shutdown(wait=False)

    def open(self, given: str) -> Source:
        """The source that `given` names; a recorded one in place of it, where there is one."""
        source = self._recorded.get(given) or open_source(given)
        if self._recorder is not None:
            self._recorder.opened(given, source)
        return source

    @contextmanager
    def recording(self) -> Iterator[Recorder]:
        """Note every byte that is handed out, and every source that is opened."""
        recorder = Recorder()
        before, self._recorder = self._recorder, recorder
        try:
            yield recorder
        finally:
            self._recorder = before

    def replay(self, sources: Mapping[str, RecordedSource]) -> None:
        """Open recorded sources from now on where one of these names is asked for."""
        self._recorded.update(sources)

    def has_recorded(self, given: str) -> bool:
        """Whether a recorded source is opened in place of what `given` names."""
        return given in self._recorded

    def register(self, source: Source) -> None:
        """Count a source's costs from now on."""
        self._sources[id(source)] = source

    @property
    def sources(self) -> tuple[Source, ...]:
        """All sources that were registered: nothing else was read."""
        return tuple(self._sources.values())

    def plan(self, wants: Iterable[Want]) -> tuple[FilePlan, ...]:
        """What `ensure` would read for the same wants."""
        return tuple(plan for _, plan in self._plans(wants))

    def ensure(self, wants: Iterable[Want]) -> None:
        """Make all wanted ranges available, reading what is missing, all at once."""
        plans = self._plans(wants)
        self._announce(plans)
        if getattr(self._worker, "busy", False):  # a job waiting for its own pool would hang
            for want, plan in plans:
                self._read_parts(want, plan.reads)
            return
        self._finish([self._submit(want, (part,)) for want, plan in plans for part in plan.reads])

    def each(self, wants: Sequence[Want], action: Callable[[Want], _T]) -> list[_T]:
        """Do something with each file as soon as its ranges are there, the rest still coming.

        What is there already is done here: threads would do nothing but wait for each other.
        """
        # Each file by itself: of two that are equal, none can wait for the other.
        plans = [plan for want in wants for plan in self._plans([want])]
        self._announce(plans)
        reads = {id(want): plan.reads for want, plan in plans}
        coming = [self._submit(want, reads[id(want)], action) for want, _ in plans]
        try:
            there = {id(want): action(want) for want in wants if id(want) not in reads}
        except BaseException:
            _cancel(coming)
            raise
        done = dict(zip(reads, self._finish(coming), strict=True))
        return [(done if id(want) in done else there)[id(want)] for want in wants]

    def _submit(
        self,
        want: Want,
        parts: Sequence[ByteRange],
        action: Callable[[Want], _T] | None = None,
    ) -> Future[_T]:
        def job() -> Any:
            self._worker.busy = True
            try:
                with until(self._closed):
                    check()
                    self._read_parts(want, parts)
                    return action(want) if action is not None else None
            finally:
                self._worker.busy = False

        return self._pool.submit(job)

    def _finish(self, futures: Sequence[Future[_T]]) -> list[_T]:
        """Wait for jobs; at the first failure drop those that have not begun."""
        try:
            finished, _ = wait(futures, return_when=FIRST_EXCEPTION)
            for future in finished:
                future.result()
            return [future.result() for future in futures]
        except BaseException:
            _cancel(futures)
            raise

    def view(self, source: Source, entry: FileEntry) -> FileView:
        """The file as format parsers see it; bytes not yet there are read on demand."""
        return FileView(entry, lambda start, stop: self.take(source, entry, ByteRange(start, stop)))

    def take(self, source: Source, entry: FileEntry, span: ByteRange) -> bytes:
        """The bytes of `span`, from where they are stored or, failing that, read now."""
        data = self._taken(source, entry, span)
        if self._recorder is not None:
            self._recorder.note(source, entry, span, data)
        return data

    def _taken(self, source: Source, entry: FileEntry, span: ByteRange) -> bytes:
        if entry.local is not None:
            return read_local(entry.local, span)
        if entry.held:
            return source.read(entry.path, span)
        for _ in range(_TRIES):  # the cache may be cleared, or found damaged, under our feet
            data = self._stored(source, entry, span)
            if data is not None:
                return data
            self.ensure([Want(source, entry, (span,))])
        cause = text.message("cause.cache.does-not-stay")
        raise CacheBroken(folder=_folder(self._cache), cause=cause)

    def digest(self, entry: FileEntry) -> str | None:
        """The sha256 of a file: as its source tells it, or of a file on this machine read whole.

        Progress tells of the bytes, the cost does not. None where neither is to be had, and of
        files with holes, which stand in for others.
        """
        if entry.sha256 is not None or entry.local is None:
            return entry.sha256
        from hashlib import sha256

        found = sha256()
        try:
            with Path(entry.local).open("rb", buffering=0) as file:
                if _has_holes(file.fileno(), entry.size):
                    return None
                self._report("plan", requests=1, nbytes=entry.size, planned=True)
                while piece := file.read(_HASHED_AT_ONCE):
                    if self._closed.is_set():
                        return None
                    found.update(piece)
                    self._report("bytes", requests=0, nbytes=len(piece))
        except OSError:
            return None
        self._report("bytes", requests=1, nbytes=0)
        return found.hexdigest()

    def expect(self, nbytes: int) -> None:
        """Tell whoever watches of bytes that somebody is going to work through."""
        self._report("plan", requests=0, nbytes=nbytes, planned=True)

    def handled(self, nbytes: int) -> None:
        """Tell that some of them are done."""
        self._report("bytes", requests=0, nbytes=nbytes)

    def _announce(self, plans: Sequence[tuple[Want, FilePlan]]) -> None:
        """Hold what is going to be read against the budget, and say it."""
        cost = sum((plan.cost for _, plan in plans), Cost())
        if cost.requests:
            self._reserve(cost)
            reads = sum(len(plan.reads) for _, plan in plans)
            self._report("plan", requests=reads, nbytes=cost.bytes, planned=True)

    def _plans(self, wants: Iterable[Want]) -> list[tuple[Want, FilePlan]]:
        """What is missing, file by file; files that lack nothing are left out.

        Two files with the same content are one: it is read from the first.
        """
        plans: list[tuple[Want, FilePlan]] = []
        coming: dict[object, tuple[ByteRange, ...]] = {}
        for want in wants:
            self.register(want.source)
            source, entry = want.source, want.entry
            if entry.local is not None or entry.held:
                continue
            content = _content(source, entry)
            wanted = union(want.ranges)
            known = union((*self._known(source, entry, wanted), *coming.get(content, ())))
            if subtract(wanted, known):
                overhead = source.overhead(entry.path)
                plan = plan_file(entry.path, wanted, known, entry.size, self.policy, overhead)
                coming[content] = (*coming.get(content, ()), *plan.reads)
                plans.append((want, plan))
        return plans

    def _reserve(self, cost: Cost) -> None:
        """Refuse, before reading, what would go beyond the budget."""
        with self._lock:
            needed = self._reserved + cost.bytes
            if self._budget is not None and needed > self._budget:
                raise BudgetExceeded(
                    needed=in_words(needed),
                    requests=cost.requests,
                    budget=in_words(self._budget),
                    suggested=round_up(needed),
                )
            self._reserved = needed

    def _read_parts(self, want: Want, parts: Sequence[ByteRange]) -> None:
        for part in parts:
            with self._connections:
                check()
                data = want.source.read(want.entry.path, part)
            if not self._kept(want, part.start, data):
                self._memory.write(_content(want.source, want.entry), part.start, data)
            self._report("bytes", requests=1, nbytes=len(data))

    def _kept(self, want: Want, start: int, data: bytes) -> bool:
        """Whether the cache has taken some bytes; one that cannot be written to is not asked again.

        A full disk is told: the user chose it, and has room to make.
        """
        if self._cache is None or want.entry.key is None or self._unwritable:
            return False
        try:
            self._cache.write(want.entry, start, data, want.source.ref.name)
        except CacheBroken:
            self._unwritable = True
        return not self._unwritable

    def _known(
        self, source: Source, entry: FileEntry, wanted: Sequence[ByteRange]
    ) -> tuple[ByteRange, ...]:
        here = self._memory.known(_content(source, entry))
        if self._cache is None or entry.key is None:
            return here
        return union((*self._cache.known(entry, wanted), *here))

    def _stored(self, source: Source, entry: FileEntry, span: ByteRange) -> bytes | None:
        content = _content(source, entry)
        if self._cache is not None and entry.key is not None:
            data = self._cache.read(entry, span)
            if data is not None or not self._unwritable:
                return data
            for known in self._cache.known(entry, (span,)):
                part = ByteRange(max(known.start, span.start), min(known.stop, span.stop))
                if (piece := self._cache.read(entry, part)) is not None:
                    self._memory.write(content, part.start, piece)
        return self._memory.read(content, span)

    def _report(self, kind: str, *, requests: int, nbytes: int, planned: bool = False) -> None:
        if self._on_progress is None:
            return
        with self._lock:
            at = 1 if planned else 0
            self._totals[at] += nbytes
            self._totals[2 + at] += requests
            done_bytes, total_bytes, done_requests, total_requests = self._totals
            event = Progress(kind, done_bytes, total_bytes, done_requests, total_requests)
        self._on_progress(event)


def _has_holes(file: int, size: int) -> bool:
    """Whether parts of an open file were never written, where the system can tell."""
    if not size or not hasattr(os, "SEEK_HOLE"):
        return False
    hole = os.lseek(file, 0, os.SEEK_HOLE)
    os.lseek(file, 0, os.SEEK_SET)
    return hole < size


def _cancel(futures: Iterable[Future[Any]]) -> None:
    for future in futures:
        future.cancel()


def joined_wants(wants: Sequence[Want]) -> list[Want]:
    """One want a file."""
    joined: dict[tuple[int, str], Want] = {}
    for want in wants:
        key = id(want.source), want.entry.path
        ranges = joined[key].ranges if key in joined else ()
        joined[key] = Want(want.source, want.entry, (*ranges, *want.ranges))
    return list(joined.values())


def side_by_side(action: Callable[[_A], _T], items: Sequence[_A]) -> list[_T]:
    """Do the same with several items at once; the first failure ends the waiting."""
    if len(items) < 2:
        return [action(item) for item in items]
    pool = Threads(min(16, len(items)), "kinprint-side")
    try:
        return list(pool.map(action, items))
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _content(source: Source, entry: FileEntry) -> _Place:
    """What is the same for files with the same content, as far as that is known."""
    return (0, entry.key) if entry.key is not None else (id(source), entry.path)


def _folder(cache: Cache | None) -> str | text.Message:
    return str(cache.folder) if cache is not None else text.message("cause.cache.memory")
