"""What `compare` and `matrix` have in common: options, running, exit codes."""

from __future__ import annotations

import functools
import os
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click

from kinprint.cli.language import language, say
from kinprint.cli.output import write_line
from kinprint.cli.reading import ReadingOptions, fetcher_for, report_failure
from kinprint.cli.showing import cost_line, print_lines, show_result
from kinprint.errors import KinprintError
from kinprint.records import Cost, Relation

if TYPE_CHECKING:
    from kinprint.lineage.results import Settings
    from kinprint.report.outputs import Output

FAILED = 2
_LEVELS = ("quick", "standard", "deep")
_OUTPUT = (
    "Write the result to this file too: .json, .html, .md, .csv, .png or .svg, or all of them "
    "to a folder; may be given more than once."
)


def comparing_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add what both commands ask for; where to write is checked before anything is read.

    The level and how sure to be are handed over as `settings`, files as `wanted`.
    """

    @click.option(
        "--level",
        type=click.Choice(_LEVELS),
        default="standard",
        show_default=True,
        help="How much to read: norms of a few layers, also rows, or all that may help.",
    )
    @click.option(
        "--alpha",
        type=click.FloatRange(0, 1, min_open=True, max_open=True),
        default=1e-6,
        show_default=True,
        help="The chance of calling strangers related.",
    )
    @click.option("--seed", type=click.IntRange(min=0), default=0, help="Draws samples.  [0]")
    @click.option("--base", metavar="MODEL", help="What an adapter stands on.")
    @click.option("--format", "form", type=click.Choice(["text", "json"]), default="text")
    @click.option("--exit-code", is_flag=True, help="Exit with 1 if related, 3 if undecided.")
    @click.option("-o", "--output", multiple=True, metavar="PATH", help=_OUTPUT)
    @click.option("--dry-run", is_flag=True, help="Show what reading would cost, and stop.")
    @functools.wraps(function)
    def wrapper(
        *args: Any,
        level: str,
        alpha: float,
        seed: int,
        base: str | None,
        output: tuple[str, ...],
        reading: ReadingOptions,
        **options: Any,
    ) -> Any:
        from kinprint.lineage.results import Settings
        from kinprint.reader.sizes import parse_size

        wanted: tuple[Output, ...] = ()
        if output:
            from kinprint.report.outputs import outputs

            wanted = outputs(output)
        budget = None if reading.budget is None else parse_size(reading.budget, "--budget")
        settings = Settings(level, alpha, budget, seed, base)
        try:
            return function(*args, settings=settings, reading=reading, wanted=wanted, **options)
        except KinprintError as error:
            notes = getattr(error, "__notes__", [])
            if not notes:
                raise
            return report_failure(error, notes[0])

    return wrapper


def run_pair(
    a: str,
    b: str,
    controls: Sequence[str],
    *,
    form: str,
    exit_code: bool,
    wanted: Sequence[Output],
    dry_run: bool,
    settings: Settings,
    reading: ReadingOptions,
) -> int:
    """Compare two models, show and write what was found; the exit code."""
    started = time.monotonic()
    if dry_run:
        print_plan((a, b, *controls), settings, reading, form)
        return 0
    from kinprint.lineage.compare import compare_models
    from kinprint.report.relations import exit_code_for
    from kinprint.report.results import of_comparison

    with fetcher_for(reading) as fetcher:
        found = compare_models(a, b, fetcher, settings, controls)
    cost = Cost(found.cost.bytes, found.cost.requests, time.monotonic() - started)
    show_result(of_comparison(found, cost, language()).document, form, wanted)
    return exit_code_for([Relation(found.verdict.relation)]) if exit_code else 0


def run_all(
    models: Sequence[str],
    jobs: int | None,
    *,
    form: str,
    exit_code: bool,
    wanted: Sequence[Output],
    dry_run: bool,
    settings: Settings,
    reading: ReadingOptions,
) -> int:
    """Compare all pairs of models, show and write what was found; the exit code."""
    started = time.monotonic()
    if dry_run:
        print_plan(models, settings, reading, form)
        return 0
    from kinprint.lineage.matrix import compare_all
    from kinprint.report.relations import exit_code_for
    from kinprint.report.results import of_matrix

    with fetcher_for(reading) as fetcher:
        found = compare_all(models, fetcher, settings, jobs or _cores())
    cost = Cost(found.cost.bytes, found.cost.requests, time.monotonic() - started)
    show_result(of_matrix(found, cost, language()).document, form, wanted)
    if form == "json" or not sys.stdout.isatty():  # else the same terminal has just said so
        for one in found.unread:
            report_failure(one.error, one.given)
        for pair in found.failed:
            names = (found.models[at].given for at in (pair.a, pair.b))
            report_failure(pair.error, " × ".join(names))
    if found.unread or found.failed:
        return FAILED
    relations = (Relation(one.verdict.relation) for one in found.pairs)
    return exit_code_for(relations) if exit_code else 0


def print_plan(
    given: Iterable[str], settings: Settings, reading: ReadingOptions, form: str
) -> None:
    """Show what comparing would cost."""
    from kinprint.lineage.planning import plan_comparison
    from kinprint.report.build.comparison import plan_document
    from kinprint.report.views.terminal.comparison import plan_lines

    with fetcher_for(reading) as fetcher:
        found = plan_comparison(tuple(given), fetcher, settings)
        spent = fetcher.spent
    document = plan_document(found, spent)
    if form == "json":
        write_line(document)
        return
    print_lines(plan_lines(document, language()))
    click.echo(say("knowing this: ", "알아보는 데: ") + cost_line(spent))


def _cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
