"""`kinprint compare`: was one of two models derived from the other? And of many: which are kin?"""

from __future__ import annotations

from typing import Any

import click

from kinprint.cli.comparing import comparing_options, run_all, run_pair
from kinprint.cli.reading import reading_options
from kinprint.errors import BadOption


@click.command("compare")
@click.argument("models", nargs=-1, required=True, metavar="A B [MODEL...]")
@click.option(
    "--control",
    "controls",
    multiple=True,
    metavar="MODEL",
    help="A model known to be unrelated, to calibrate with; may be given more than once.",
)
@click.option("--jobs", type=click.IntRange(min=1), help="Processes for many.  [one a core]")
@reading_options
@comparing_options
def command(
    models: tuple[str, ...], controls: tuple[str, ...], jobs: int | None, **options: Any
) -> int:
    """Say whether models A and B share weights, and how often chance would do that.

    The order of A and B makes no difference: what is found is a common origin, not a
    direction. With three models or more, all pairs are compared, as `matrix` does. With
    --exit-code: 0 no evidence, 1 related, 3 undecided.
    """
    if len(models) < 2:
        raise BadOption(option="MODEL", value=models[0], cause="a comparison takes two or more")
    if len(models) > 2:
        if controls:
            cause = "controls calibrate two models; give two, or no --control"
            raise BadOption(option="--control", value=controls[0], cause=cause)
        return run_all(models, jobs, **options)
    return run_pair(models[0], models[1], controls, **options)
