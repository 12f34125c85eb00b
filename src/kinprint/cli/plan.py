"""`kinprint plan`: what a reading would cost, before any of it is spent."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import click

from kinprint.cli.output import write_line
from kinprint.cli.reading import (
    ReadingOptions,
    fetcher_for,
    reading_options,
    report_failure,
)
from kinprint.errors import BadOption, KinprintError, printable
from kinprint.records import Cost

if TYPE_CHECKING:
    from kinprint.reader.checkpoint import Checkpoint
    from kinprint.reader.plan import FilePlan

SCHEMA = "kinprint.plan/1"


@click.command("plan")
@click.argument("models", nargs=-1, required=True, metavar="MODEL...")
@click.option(
    "--tensors",
    default="*norm*.weight",
    show_default=True,
    metavar="PATTERN",
    help="Tensors to read, as a shell pattern.",
)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text")
@reading_options
def command(models: tuple[str, ...], tensors: str, form: str, reading: ReadingOptions) -> int:
    """Show the bytes and requests that reading tensors of each MODEL would cost.

    The list of files, the index and the headers are read to know this, and kept; what was
    read before costs nothing again.
    """
    from kinprint.reader.checkpoint import open_checkpoint
    from kinprint.records import Slice

    failed = 0
    with fetcher_for(reading) as fetcher:
        total = Cost()
        for model in models:
            try:
                checkpoint = open_checkpoint(model, fetcher)
                names = _matching(checkpoint, tensors)
                plans = checkpoint.plan([Slice(s) for s in checkpoint.tensors(names).values()])
            except KinprintError as error:
                failed = report_failure(error, model)
                continue
            cost = sum((plan.cost for plan in plans), Cost())
            total += cost
            if form == "json":
                write_plan(checkpoint, tensors, cost, len(names))
            else:
                click.echo(f"{printable(model)}: {len(names)} tensors, {describe(plans)}")
        if form == "text":
            known = _cost_in_words(fetcher.spent)
            click.echo(f"in all {_cost_in_words(total)}; knowing this took {known}")
    return failed


def describe(plans: Iterable[FilePlan]) -> str:
    """Bytes and requests of some plans, in words."""
    return _cost_in_words(sum((plan.cost for plan in plans), Cost()))


def _cost_in_words(cost: Cost) -> str:
    from kinprint.reader.sizes import in_words

    return f"{in_words(cost.bytes)} in {cost.requests} requests"


def _matching(checkpoint: Checkpoint, pattern: str) -> list[str]:
    names = [name for name in checkpoint.names() if fnmatchcase(name, pattern)]
    if not names:
        cause = (
            f"no tensor of {checkpoint.ref.given} has such a name; `kinprint inspect` lists them"
        )
        raise BadOption(option="--tensors", value=pattern, cause=cause)
    return names


def write_plan(checkpoint: Checkpoint, what: str, cost: Cost, tensors: int | None = None) -> None:
    """The JSON form of a plan."""
    write_line(
        {
            "schema": SCHEMA,
            "model": checkpoint.ref.given,
            "commit": checkpoint.ref.commit or None,
            "what": what,
            "tensors": tensors,
            "bytes": cost.bytes,
            "requests": cost.requests,
        }
    )
