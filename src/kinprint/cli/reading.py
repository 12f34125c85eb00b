"""What commands that read have in common: options, a fetcher, and progress on a terminal."""

from __future__ import annotations

import functools
import logging
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import click

from kinprint.cli.language import language
from kinprint.errors import FormatError, KinprintError, printable
from kinprint.records import Progress


@dataclass(frozen=True, slots=True)
class ReadingOptions:
    """How a command may read."""

    budget: str | None
    cache: bool


def reading_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add --budget and --no-cache to a command, handed over as `reading`."""

    @click.option("--budget", metavar="SIZE", help="Read at most this much, such as 64MB.")
    @click.option("--no-cache", is_flag=True, help="Neither use nor fill the cache.")
    @functools.wraps(function)
    def wrapper(*args: Any, budget: str | None, no_cache: bool, **options: Any) -> Any:
        return function(*args, reading=ReadingOptions(budget, not no_cache), **options)

    return wrapper


@contextmanager
def fetcher_for(reading: ReadingOptions) -> Iterator[Any]:
    """A fetcher as the options say, with a progress line where stderr is a terminal."""
    from kinprint.reader.cache import Cache
    from kinprint.reader.fetch import Fetcher
    from kinprint.reader.sizes import parse_size

    if "HF_DEBUG" not in os.environ and "HF_HUB_VERBOSITY" not in os.environ:
        # One sentence at the end says what went wrong; the client's own lines can be asked for.
        logging.getLogger("huggingface_hub").setLevel(logging.ERROR)
    budget = parse_size(reading.budget, "--budget") if reading.budget is not None else None
    cache = Cache.default() if reading.cache else None
    with (
        _progress() as on_progress,
        Fetcher(cache=cache, budget=budget, on_progress=on_progress) as fetcher,
    ):
        yield fetcher


@contextmanager
def _progress() -> Iterator[Callable[[Progress], None] | None]:
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, TextColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("reading"), BarColumn(), DownloadColumn(), TextColumn("{task.fields[n]}"))
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("reading", total=None, n="")

        def show(event: Progress) -> None:
            requests = f"{event.done_requests}/{event.total_requests} requests"
            bar.update(task, completed=event.done_bytes, total=event.total_bytes, n=requests)

        yield show


def report_failure(error: KinprintError, model: str) -> int:
    """Say what is wrong with one of several models; the exit code that it deserves."""
    about = f"{printable(model)}: " if isinstance(error, FormatError) else ""
    click.echo(f"kinprint: {about}{error.sentence(language())}", err=True)
    return error.exit_code
