"""Where many small pieces of work are done: here, in processes, or on a Dask cluster.

A pool takes a task and what it is to be done for, and gives results as they come. It takes from
what is given only as much as it can soon begin, so it may be endless. An error of the tree that
ends one piece is its result; what concerns all of them (`errors.attempt`) is raised, and nothing
more is begun. Outside this process a task is pickled for every piece: it should be small, and may
be done twice, when whoever did it dies before telling.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import CancelledError, Future
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from typing import Any, Protocol, TypeVar

from kinprint import text
from kinprint.algebra import cores
from kinprint.errors import (
    BadOption,
    ClusterLost,
    ClusterUnfit,
    ClusterUnreachable,
    KinprintError,
    MissingExtra,
    WorkerDied,
    attempt,
)
from kinprint.workers import workers

T = TypeVar("T")
R = TypeVar("R")
CONNECTING = 10
"""Seconds in which a scheduler has to answer."""
PATIENCE = 300.0
"""Seconds that a cluster may be without any worker, while it starts or replaces them."""
_AHEAD = 2  # pieces that a cluster is given for each of its threads, one to do and one to come
_LEAST = 16  # pieces that it is given at once, so that it sees what there is to start workers for


class Pool(Protocol):
    """Does a task for each of many; gives each with its result, in the order of completion."""

    def __call__(
        self, task: Callable[[T], R], given: Iterable[T], /
    ) -> Iterator[tuple[T, R | KinprintError]]:
        """Begin."""
        ...


def pool_of(jobs: int | None = 1, cluster: str | None = None) -> Pool:
    """The pool that options ask for: a cluster, or so many processes; None is one for each core.

    One process is this one.
    """
    if cluster is not None:
        return on_cluster(cluster)
    count = cores() if jobs is None else jobs
    return here if count < 2 else in_processes(count)


def here(task: Callable[[T], R], given: Iterable[T], /) -> Iterator[tuple[T, R | KinprintError]]:
    """A pool that does one after another, in this process."""
    for one in given:
        yield one, attempt(task, one)


def in_processes(jobs: int) -> Pool:
    """A pool of processes of this machine.

    One that dies takes no other piece with it: what was being done is tried again, each alone.
    """

    def run(task: Callable[[T], R], given: Iterable[T], /) -> Iterator[tuple[T, R | KinprintError]]:
        source = iter(given)
        while lost := (yield from _until_one_dies(task, source, jobs)):
            for one in lost:
                if (yield from _until_one_dies(task, iter([one]), 1)):
                    yield one, WorkerDied(what=str(one))

    return run


def _until_one_dies(
    task: Callable[[T], R], source: Iterator[T], jobs: int
) -> Generator[tuple[T, R | KinprintError], None, list[T]]:
    """Results, until a process dies; returns what was handed out and not done by then."""
    lost: list[T] = []

    def while_all_live() -> Iterator[T]:
        for one in source:
            yield one
            if lost:
                return

    with workers(jobs) as pool:

        def submit(one: T) -> Future[R | KinprintError]:
            try:
                return pool.submit(attempt, task, one)
            except BrokenProcessPool as error:
                failed: Future[R | KinprintError] = Future()
                failed.set_exception(error)
                return failed

        for one, future in _as_done(submit, while_all_live(), lambda: jobs + 1):
            try:
                yield one, future.result()
            except BrokenProcessPool:
                lost.append(one)
    return lost


def on_cluster(address: str) -> Pool:
    """A pool of all workers of a Dask cluster.

    The scheduler gives what a dead worker had to do to another, a few times; what it gives up is
    then tried alone, because it may have waited behind what killed them. Whoever loses the
    scheduler is told so; what tasks have written by then stays.

    Parameters
    ----------
    address
        Of the scheduler, such as tcp://10.0.0.1:8786.
    """

    def run(task: Callable[[T], R], given: Iterable[T], /) -> Iterator[tuple[T, R | KinprintError]]:
        with _connected(address) as client:

            def submit(one: T) -> Any:
                return client.submit(attempt, task, one, pure=False)

            def most() -> int:
                threads: dict[str, int] = client.nthreads()
                return max(_AHEAD * sum(threads.values()), _LEAST)

            def idle() -> None:
                if not client.nthreads():
                    raise ClusterLost(address=address, cause=text.message("cause.cluster.empty"))

            suspects: list[T] = []
            for one, future in _as_done(submit, given, most, idle):
                if _died(future):
                    suspects.append(one)
                else:
                    yield one, future.result()
            for suspect in suspects:
                for one, future in _as_done(submit, [suspect], most, idle):
                    yield one, WorkerDied(what=str(one)) if _died(future) else future.result()

    return run


def _died(future: Any) -> bool:
    """Whether workers died again and again while they had this to do, and perhaps did another."""
    from distributed.scheduler import KilledWorker

    return isinstance(future.exception(), KilledWorker)


@contextmanager
def _connected(address: str) -> Iterator[Any]:
    """A client of a scheduler, while it can be reached; what goes wrong with it, as sentences."""
    try:
        import distributed
    except ImportError:
        feature = text.message("cause.extra.cluster")
        raise MissingExtra(feature=feature, extra="cluster") from None
    if not _is_address(address):
        cause = text.message("cause.cluster.address")
        raise BadOption(option="cluster", value=address, cause=cause)
    connect: Any = distributed.Client  # typed in part
    lost = (OSError, CancelledError, TimeoutError)  # those of `distributed` are of these kinds
    with _silence():
        try:
            client = connect(address, timeout=CONNECTING, set_as_default=False)
        except lost as error:
            raise ClusterUnreachable(address=address, cause=str(error)) from None
        try:
            yield client
        except KinprintError:
            raise
        except lost as error:
            raise ClusterLost(address=address, cause=str(error)) from None
        except Exception as error:  # what a worker cannot even begin, for want of a module
            told = f"{type(error).__name__}: {error}"
            raise ClusterUnfit(address=address, cause=told) from None
        finally:
            client.close(timeout=CONNECTING)


def _is_address(given: str) -> bool:
    """Whether a scheduler could be there; the library itself asks too late to go on after it."""
    from distributed.comm.addressing import get_address_host_port

    try:
        return 0 < int(get_address_host_port(given)[1]) < 1 << 16
    except ValueError:
        return False


@contextmanager
def _silence() -> Iterator[None]:
    """Keep what the library prints by itself from the terminal: errors say it in a sentence."""
    handlers = list(logging.getLogger("distributed").handlers)
    for one in handlers:
        one.addFilter(_nothing)
    try:
        yield
    finally:
        for one in handlers:
            one.removeFilter(_nothing)


def _nothing(record: logging.LogRecord) -> bool:
    return False


def _as_done(
    submit: Callable[[T], Any],
    given: Iterable[T],
    most: Callable[[], int],
    idle: Callable[[], None] = lambda: None,
) -> Iterator[tuple[T, Any]]:
    """Each with its future when that is done; at most `most()` are out at any time.

    `idle` is called when nothing was done for a while.
    """
    done: SimpleQueue[tuple[T, Any]] = SimpleQueue()
    out: dict[int, Any] = {}  # kept alive: a cluster forgets what nobody waits for

    def next_one() -> tuple[T, Any]:
        while True:
            try:
                one, future = done.get(timeout=PATIENCE)
            except Empty:
                idle()
                continue
            del out[id(future)]
            return one, future

    for one in given:
        future = submit(one)
        out[id(future)] = future
        future.add_done_callback(lambda future, one=one: done.put((one, future)))
        while len(out) >= most():
            yield next_one()
    while out:
        yield next_one()
