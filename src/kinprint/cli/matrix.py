"""`kinprint matrix`: all pairs of some models, each model read once."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kinprint.cli.comparing import code_for, comparing_options, print_prospect, write_found
from kinprint.cli.language import language
from kinprint.cli.reading import ReadingOptions, fetcher_for, reading_options
from kinprint.records import Cost

if TYPE_CHECKING:
    from kinprint.comparison import Settings


@click.command("matrix")
@click.argument("models", nargs=-1, required=True, metavar="MODEL...")
@click.option("--jobs", type=click.IntRange(min=1), help="Processes to compare in.  [one a core]")
@reading_options
@comparing_options
def command(
    models: tuple[str, ...],
    jobs: int | None,
    form: str,
    exit_code: bool,
    output: Path | None,
    dry_run: bool,
    settings: Settings,
    reading: ReadingOptions,
) -> int:
    """Say of all pairs of MODELs whether they share weights.

    A level's bytes are for a pair; here each model may cost half of them. With --exit-code:
    1 if any pair is related, else 3 if any is undecided, else 0.
    """
    started = time.monotonic()
    if dry_run:
        print_prospect(models, settings, reading, form)
        return 0
    from kinprint.comparison import compare_all
    from kinprint.report.comparison import matrix_document, matrix_lines

    with fetcher_for(reading) as fetcher:
        found = compare_all(models, fetcher, settings, jobs or _cores())
    cost = Cost(found.cost.bytes, found.cost.requests, time.monotonic() - started)
    lines = matrix_lines(found, language())
    write_found(matrix_document(found, cost), lines, form, output, cost)
    return code_for(one.verdict.relation for one in found.pairs) if exit_code else 0


def _cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
