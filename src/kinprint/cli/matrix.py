"""`kinprint matrix`: all pairs of some models, each model read once."""

from __future__ import annotations

from typing import Any

import click

from kinprint.cli.commands import Whole, command, option
from kinprint.cli.comparing import compare_all, comparing_options


@command("matrix")
@click.argument("models", nargs=-1, required=True, metavar="MODEL...")
@option("--jobs", metavar="N", type=Whole(min=1))
@comparing_options
def matrix(models: tuple[str, ...], jobs: int | None, **options: Any) -> int:
    """Compare all pairs of models."""
    return compare_all(models, jobs, **options)
