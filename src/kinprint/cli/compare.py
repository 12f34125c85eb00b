"""`kinprint compare`: was one of two models derived from the other? And of many: which are kin?"""

from __future__ import annotations

from typing import Any

import click

from kinprint import text
from kinprint.cli.commands import Whole, command, option
from kinprint.cli.comparing import compare_all, compare_two, comparing_options
from kinprint.errors import BadOption


@command("compare")
@click.argument("models", nargs=-1, required=True, metavar="A B [MODEL...]")
@option("--control", "controls", multiple=True, metavar="MODEL")
@option("--jobs", metavar="N", type=Whole(min=1))
@comparing_options
def compare(
    models: tuple[str, ...], controls: tuple[str, ...], jobs: int | None, **options: Any
) -> int:
    """Compare two models, or all pairs of more."""
    if len(models) < 2:
        cause = text.message("cause.comparison.too-few")
        raise BadOption(option="models", value=models[0], cause=cause)
    if len(models) == 2:
        return compare_two(models[0], models[1], controls, **options)
    if controls:
        cause = text.message("cause.comparison.controls-for-two")
        raise BadOption(option="controls", value=controls[0], cause=cause)
    return compare_all(models, jobs, **options)
