"""What commands that read have in common: options, a fetcher, and progress on a terminal."""

from __future__ import annotations

import functools
import logging
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any

import click

from kinprint.cli.language import say
from kinprint.cli.sentences import sentence
from kinprint.errors import FormatError, InternalError, KinprintError, printable
from kinprint.records import Progress

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

    from kinprint.reader.fetch import Fetcher


@dataclass(frozen=True, slots=True)
class ReadingOptions:
    """How a command may read."""

    budget: str | None
    cache: bool


def reading_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add --budget and --no-cache to a command, handed over as `reading`."""

    @click.option(
        "--budget",
        metavar="SIZE",
        help="Read at most this much of weights and headers, such as 64MB.",
    )
    @click.option("--no-cache", is_flag=True, help="Neither use nor fill the cache.")
    @functools.wraps(function)
    def wrapper(*args: Any, budget: str | None, no_cache: bool, **options: Any) -> Any:
        return function(*args, reading=ReadingOptions(budget, not no_cache), **options)

    return wrapper


@contextmanager
def fetcher_for(reading: ReadingOptions) -> Iterator[Fetcher]:
    """A fetcher as the options say, with a progress line where stderr is a terminal."""
    from huggingface_hub.utils import logging as hub_logging

    from kinprint.reader.cache import Cache
    from kinprint.reader.fetch import Fetcher
    from kinprint.reader.sizes import parse_size

    if "HF_DEBUG" not in os.environ and "HF_HUB_VERBOSITY" not in os.environ:
        # One sentence at the end says what went wrong; the client's own lines can be asked for.
        hub_logging.set_verbosity(logging.ERROR)
    budget = parse_size(reading.budget, "--budget") if reading.budget is not None else None
    cache = Cache.default() if reading.cache else None
    on_progress = _LINE.show if sys.stderr.isatty() else None
    try:
        with Fetcher(cache=cache, budget=budget, on_progress=on_progress) as fetcher:
            yield fetcher
    finally:
        _LINE.clear()


class _ProgressLine:
    """One line on a terminal, there only while something is being read."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._bar: Bar | None = None

    def show(self, event: Progress) -> None:
        """Draw the line anew; take it away when all that was planned is done."""
        with self._lock:
            if event.done_requests >= event.total_requests:
                self._stop()
                return
            if self._bar is None:
                self._bar = _new_bar()
            count = f"{event.done_requests}/{event.total_requests}"
            requests = say(f"{count} requests", f"요청 {count}")
            self._bar.update(
                self._bar.task_ids[0],
                completed=event.done_bytes,
                total=event.total_bytes,
                requests=requests,
            )

    def clear(self) -> None:
        """Take the line away, so that something can be printed."""
        with self._lock:
            self._stop()

    def _stop(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


_LINE = _ProgressLine()


def _new_bar() -> Bar:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn(say("reading", "읽는 중")),
        BarColumn(bar_width=20),
        DownloadColumn(),
        TextColumn("{task.fields[requests]}"),
        TimeRemainingColumn(compact=True),
        TextColumn(say("left", "남음")),
    )
    bar = Bar(*columns, console=Console(stderr=True), transient=True)
    bar.add_task("reading", total=None, requests="")
    bar.start()
    return bar


def report_failure(error: KinprintError, model: str) -> int:
    """Say what is wrong with one of several models; the exit code that it deserves."""
    _LINE.clear()
    about = f"{printable(model)}: " if isinstance(error, FormatError | InternalError) else ""
    click.echo(f"kinprint: {about}{sentence(error)}", err=True)
    if isinstance(error, InternalError) and os.environ.get("KINPRINT_DEBUG"):
        click.echo(error.trace.rstrip(), err=True)
    return error.exit_code
