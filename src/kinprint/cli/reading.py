"""What commands that read have in common: options, a reader, and progress on a terminal."""

from __future__ import annotations

import functools
import os
import sys
import time
from collections.abc import Callable
from threading import Lock
from typing import TYPE_CHECKING, Any

import click

import kinprint
from kinprint.cli.commands import DEBUG, Choice, Whole, option
from kinprint.cli.language import say, sentence
from kinprint.errors import FormatError, InternalError, KinprintError, printable
from kinprint.records import LARGEST_SEED, Progress, Step

if TYPE_CHECKING:
    from rich.progress import Progress as Bar


device_option = option("--device", type=Choice(["cpu", "gpu"]), default="cpu")
"""Where to compute, for commands with `reading_options`."""
SEED = Whole(min=0, max=LARGEST_SEED)
"""A seed, as large as JSON can hold."""
seed_option = option("--seed", metavar="N", type=SEED, default=0)
"""What chooses at random, handed over as `seed`."""
_MANY = (Step.MEASURING, Step.COMPUTING, Step.COMPARING, Step.NAMING, Step.DRAWING)
_SECONDS = 3.0  # between two lines about steps of one kind


def reading_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add --budget and --no-cache to a command, which gets a `reader` that keeps to them.

    A line tells how far reading has come, where stderr is a terminal; steps of a long run are
    told wherever it goes.
    """

    @option("--budget", metavar="SIZE")
    @option("--no-cache", is_flag=True)
    @functools.wraps(function)
    def wrapper(
        *arguments: Any, budget: str | None, no_cache: bool, device: str = "cpu", **named: Any
    ) -> Any:
        with kinprint.Reader(
            budget=budget, cache=not no_cache, progress=show_progress, device=device
        ) as reader:
            try:
                return function(*arguments, reader=reader, **named)
            finally:
                _LINE.clear()

    return wrapper


class _ProgressLine:
    """One line on a terminal, there only while something is being read; steps stay."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._bar: Bar | None = None
        self._step: tuple[Step | None, float] = (None, 0.0)

    def tell(self, event: Progress) -> None:
        """Say which step begins; of many short ones, one every few seconds."""
        with self._lock:
            step, since = self._step
            now = time.monotonic()
            many = event.step in _MANY
            if many and event.step is step and now - since < _SECONDS:
                return
            self._step = event.step, now
            self._stop()
            fields = {"what": event.what, "number": event.number, "count": event.count}
            click.echo(f"… {printable(say(f'cli.step.{event.step}', **fields), 300)}", err=True)

    def show(self, event: Progress) -> None:
        """Draw the line anew; take it away when all that was planned is done."""
        with self._lock:
            if event.done_requests >= event.total_requests:
                self._stop()
                return
            if self._bar is None:
                self._bar = _new_bar()
            count = f"{event.done_requests}/{event.total_requests}"
            self._bar.update(
                self._bar.task_ids[0],
                completed=event.done_bytes,
                total=event.total_bytes,
                requests=say("cli.progress.requests", done=count),
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


def show_progress(event: Progress) -> None:
    """Show how far a command has come."""
    if event.kind == "step":
        _LINE.tell(event)
    elif sys.stderr.isatty():
        _LINE.show(event)


def _new_bar() -> Bar:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn(say("cli.progress.reading")),
        BarColumn(bar_width=20),
        DownloadColumn(),
        TextColumn("{task.fields[requests]}"),
        TimeRemainingColumn(compact=True),
        TextColumn(say("cli.progress.left")),
    )
    bar = Bar(*columns, console=Console(stderr=True), transient=True)
    bar.add_task("reading", total=None, requests="")
    bar.start()
    return bar


def name_failure(error: KinprintError, model: str) -> int:
    """Say what is wrong with one of several models; the exit code that it deserves."""
    _LINE.clear()
    about = f"{printable(model)}: " if isinstance(error, FormatError | InternalError) else ""
    click.echo(f"kinprint: {about}{sentence(error)}", err=True)
    if isinstance(error, InternalError) and os.environ.get(DEBUG):
        click.echo(error.trace.rstrip(), err=True)
    return error.exit_code
