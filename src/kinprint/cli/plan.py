"""`kinprint plan`: what a reading would cost, before any of it is spent."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import click

from kinprint.cli.reading import ReadingOptions, fetcher_for, reading_options
from kinprint.errors import BadOption
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
def command(models: tuple[str, ...], tensors: str, form: str, reading: ReadingOptions) -> None:
    """Show the bytes and requests that reading tensors of each MODEL would cost.

    The list of files, the index and the headers are read to know this, and kept; what was
    read before costs nothing again.
    """
    from kinprint.reader.checkpoint import open_checkpoints
    from kinprint.records import Slice

    with fetcher_for(reading) as fetcher:
        total = Cost()
        for checkpoint in open_checkpoints(models, fetcher):
            names = _matching(checkpoint, tensors)
            slices = [Slice(spec) for spec in checkpoint.tensors(names).values()]
            plans = checkpoint.plan(slices)
            cost = sum((plan.cost for plan in plans), Cost())
            total += cost
            if form == "json":
                _write(checkpoint, names, cost)
            else:
                given = checkpoint.ref.given
                click.echo(f"{given}: {len(names)} tensors, {describe(plans)}")
        spent = fetcher.spent
        if form == "text":
            click.echo(f"in all {_cost_in_words(total)}; knowing this took {_cost_in_words(spent)}")


def describe(plans: Iterable[FilePlan]) -> str:
    """Bytes and requests of some plans, in words."""
    return _cost_in_words(sum((plan.cost for plan in plans), Cost()))


def _cost_in_words(cost: Cost) -> str:
    from kinprint.reader.sizes import in_words

    return f"{in_words(cost.bytes)} in {cost.requests} requests"


def _matching(checkpoint: Checkpoint, pattern: str) -> list[str]:
    names = [name for name in checkpoint.names() if fnmatchcase(name, pattern)]
    if not names:
        cause = f"no tensor of {checkpoint.ref.given} has such a name"
        raise BadOption(option="--tensors", value=pattern, cause=cause)
    return names


def _write(checkpoint: Checkpoint, names: list[str], cost: Cost) -> None:
    import msgspec

    row: dict[str, Any] = {
        "schema": SCHEMA,
        "model": checkpoint.ref.given,
        "commit": checkpoint.ref.commit or None,
        "tensors": len(names),
        "bytes": cost.bytes,
        "requests": cost.requests,
    }
    sys.stdout.buffer.write(msgspec.json.encode(row) + b"\n")
