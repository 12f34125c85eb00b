"""`kinprint matrix`: all pairs of some models, each model read once."""

from __future__ import annotations

from typing import Any

import click

from kinprint.cli.comparing import comparing_options, run_all
from kinprint.cli.reading import reading_options


@click.command("matrix")
@click.argument("models", nargs=-1, required=True, metavar="MODEL...")
@click.option("--jobs", type=click.IntRange(min=1), help="Processes to compare in.  [one a core]")
@reading_options
@comparing_options
def command(models: tuple[str, ...], jobs: int | None, **options: Any) -> int:
    """Say of all pairs of MODELs whether they share weights.

    A level's bytes are for a pair; here each model may cost half of them. With --exit-code:
    1 if any pair is related, else 3 if any is undecided, else 0.
    """
    return run_all(models, jobs, **options)
