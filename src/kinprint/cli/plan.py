"""`kinprint plan`: what a reading would cost, before any of it is spent."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import click

from kinprint.cli.output import count_of, write_line
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
    multiple=True,
    default=("*norm*.weight",),
    show_default=True,
    metavar="PATTERN",
    help="Tensors to read, as a shell pattern; may be given more than once.",
)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text")
@reading_options
def command(
    models: tuple[str, ...], tensors: tuple[str, ...], form: str, reading: ReadingOptions
) -> int:
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
                write_plan(checkpoint, " ".join(tensors), cost, len(names))
            else:
                price = "read in place" if checkpoint.ref.kind == "local" else describe(plans)
                click.echo(f"{printable(model)}: {count_of(len(names), 'tensor')}, {price}")
        if form == "text" and total.requests:
            known = cost_in_words(fetcher.spent)
            click.echo(f"in all {cost_in_words(total)}; knowing this took {known}")
    return failed


def describe(plans: Iterable[FilePlan]) -> str:
    """Bytes and requests of some plans, in words."""
    return cost_in_words(sum((plan.cost for plan in plans), Cost()))


def cost_in_words(cost: Cost) -> str:
    """Such as "12 kB in 3 requests"."""
    from kinprint.reader.sizes import in_words

    return f"{in_words(cost.bytes)} in {count_of(cost.requests, 'request')}"


def _matching(checkpoint: Checkpoint, patterns: tuple[str, ...]) -> list[str]:
    names = [
        name
        for name in checkpoint.names()
        if any(fnmatchcase(name, pattern) for pattern in patterns)
    ]
    if not names:
        cause = (
            f"no tensor of {checkpoint.ref.given} has such a name; `kinprint inspect` lists them"
        )
        raise BadOption(option="--tensors", value=" ".join(patterns), cause=cause)
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
            "spent": {
                "bytes": checkpoint.source.spent.bytes,
                "requests": checkpoint.source.spent.requests,
            },
        }
    )
