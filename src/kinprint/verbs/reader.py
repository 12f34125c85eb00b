"""Reading for several calls: one budget, one cache, one set of connections."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self

from kinprint import text
from kinprint.device import Device, computing_on, find_device
from kinprint.errors import BadOption
from kinprint.reader.cache import Cache
from kinprint.reader.fetch import Fetcher
from kinprint.reader.sizes import parse_size
from kinprint.records import LARGEST_SEED, Cost, Progress, Step

ModelName = str | os.PathLike[str]
"""How a model is named: see `compare`."""


class Reader:
    """Reads models for several calls, under one budget and over the same connections, and says
    where they are computed.

    Every verb reads with a reader of its own unless it is given one. It is a context manager.

    Parameters
    ----------
    budget : int or str, optional
        Most bytes of weights and headers that all calls together may read, as a number or in
        words such as "64MB". Nothing is read that would exceed it.
    cache : bool
        Whether to take what was read before from the cache, and to keep what is read.
    progress : callable, optional
        Called with a `Progress` whenever more was planned or read, from any thread.
    device : str
        "cpu", or "gpu" for full diffs, spectra and matching on a graphics card, which needs
        `kinprint[gpu]`. Results are the same within rounding.

    Raises
    ------
    BadOption
        The budget is no size, or there is no such device.
    MissingExtra
        A graphics card was asked for, and what computes on it is not installed.

    Examples
    --------
    >>> import kinprint, kinprint.demo
    >>> zoo = kinprint.demo.FOLDER / "zoo"
    >>> with kinprint.Reader(budget="64MB") as reader:
    ...     a = kinprint.inspect(zoo / "base-a", reader=reader)
    ...     b = kinprint.inspect(zoo / "base-b", reader=reader)
    >>> a.parameters == b.parameters
    True
    >>> reader.cost.requests  # files on this machine are read in place
    0
    """

    def __init__(
        self,
        *,
        budget: int | str | None = None,
        cache: bool = True,
        progress: Callable[[Progress], None] | None = None,
        device: str = Device.CPU,
    ) -> None:
        self._device = find_device(device)
        self._budget = parse_size(budget, "budget") if isinstance(budget, str) else budget
        self._cached, self._progress = cache, progress
        self._fetcher = Fetcher(
            cache=Cache.default() if cache else None, budget=self._budget, on_progress=progress
        )

    @property
    def budget(self) -> int | None:
        """Most bytes that may be read, None where there is no limit."""
        return self._budget

    @property
    def cost(self) -> Cost:
        """Bytes, requests and seconds since the reader was made."""
        return self._fetcher.spent

    def again(self) -> Reader:
        """Another reader of the same kind, which begins to count anew.

        Returns
        -------
        Reader
            With the same budget and progress; its cache is where the settings of the Hub's
            tools now say.

        Examples
        --------
        >>> import kinprint
        >>> kinprint.Reader(budget="1MB").again().budget
        1000000
        """
        return Reader(
            budget=self._budget, cache=self._cached, progress=self._progress, device=self._device
        )

    def close(self) -> None:
        """Begin nothing more. What was read stays in the cache."""
        self._fetcher.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def fetcher_of(reader: Reader) -> Fetcher:
    """What carries out the reading, for the rooms below."""
    return reader._fetcher


def device_of(reader: Reader) -> Device:
    """What computes for a reader."""
    return reader._device


def uses_cache(reader: Reader) -> bool:
    """Whether a reader uses the cache, for readers of its kind in other processes."""
    return reader._cached


def teller(reader: Reader) -> Callable[[Step, str, int, int], None]:
    """What says to whoever shows progress that a step of a long run begins.

    It takes the step, of what, and which of how many it is, zero where that is not known.
    """

    def tell(step: Step, what: str, number: int, count: int) -> None:
        if reader._progress is not None:
            reader._progress(Progress("step", step=step, what=what, number=number, count=count))

    return tell


def written_name(given: ModelName | None) -> str | None:
    """The name of a model or a place as it was given; None where none was."""
    return None if given is None else os.fspath(given)


def checked_seed(seed: int) -> int:
    """A seed, refused before anything is read if no JSON file could name it."""
    if not 0 <= seed <= LARGEST_SEED:
        cause = text.message("cause.option.between", least=0, most=LARGEST_SEED)
        raise BadOption(option="seed", value=seed, cause=cause)
    return seed


class Meter:
    """What one call costs, of all that its reader reads."""

    def __init__(self, reader: Reader) -> None:
        self._reader, self._before, self._started = reader, reader.cost, time.monotonic()

    @property
    def cost(self) -> Cost:
        """Bytes, requests and seconds since the call began."""
        now = self._reader.cost
        return Cost(
            now.bytes - self._before.bytes,
            now.requests - self._before.requests,
            time.monotonic() - self._started,
        )


@contextmanager
def reading(
    reader: Reader | None,
    budget: int | str | None,
    cache: bool,
    progress: Callable[[Progress], None] | None,
) -> Iterator[Reader]:
    """The reader that was given, or one made for a single call."""
    if reader is None:
        with Reader(budget=budget, cache=cache, progress=progress) as own:
            yield own
        return
    if budget is not None or not cache or progress is not None:
        given = "budget" if budget is not None else "progress" if cache else "cache"
        raise BadOption(option=given, value="…", cause=text.message("cause.reader.has-its-own"))
    with computing_on(reader._device):
        yield reader
