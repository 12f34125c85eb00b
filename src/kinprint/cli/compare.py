"""`kinprint compare`: was one of two models derived from the other?"""

from __future__ import annotations

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


@click.command("compare")
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@click.option(
    "--control",
    "controls",
    multiple=True,
    metavar="MODEL",
    help="A model known to be unrelated, to calibrate with; may be given more than once.",
)
@reading_options
@comparing_options
def command(
    a: str,
    b: str,
    controls: tuple[str, ...],
    form: str,
    exit_code: bool,
    output: Path | None,
    dry_run: bool,
    settings: Settings,
    reading: ReadingOptions,
) -> int:
    """Say whether models A and B share weights, and how often chance would do that.

    The order of A and B makes no difference: what is found is a common origin, not a
    direction. With --exit-code: 0 no evidence, 1 related, 3 undecided.
    """
    started = time.monotonic()
    if dry_run:
        print_prospect((a, b, *controls), settings, reading, form)
        return 0
    from kinprint.comparison import compare_models
    from kinprint.report.comparison import comparison_document, comparison_lines

    with fetcher_for(reading) as fetcher:
        found = compare_models(a, b, fetcher, settings, controls)
    cost = Cost(found.cost.bytes, found.cost.requests, time.monotonic() - started)
    lines = comparison_lines(found, language())
    write_found(comparison_document(found, cost), lines, form, output, cost)
    return code_for([found.verdict.relation]) if exit_code else 0
