"""`kinprint plan`: what a reading would cost, before any of it is spent."""

from __future__ import annotations

import click

import kinprint
from kinprint.cli.commands import command, option
from kinprint.cli.language import language, say
from kinprint.cli.output import form_option, write_json
from kinprint.cli.reading import name_failure, reading_options
from kinprint.errors import KinprintError, printable


@command("plan")
@click.argument("models", nargs=-1, required=True, metavar="MODEL...")
@option("--tensors", multiple=True, metavar="PATTERN")
@form_option
@reading_options
def plan(
    models: tuple[str, ...], tensors: tuple[str, ...], format: str, reader: kinprint.Reader
) -> int:
    """Show what reading tensors of models would cost."""
    from kinprint.report.costs import cost_message

    failed, total = 0, kinprint.Cost()
    for model in models:
        try:
            found = kinprint.plan(model, tensors or None, reader=reader, language=language())
        except KinprintError as error:
            failed = name_failure(error, model)
            continue
        total += found.cost
        if format == "json":
            write_json(found)
            continue
        cost = say("cli.plan.in-place") if found.local else cost_message(found.cost).say(language())
        name = printable(model)
        if not found.tensors:
            click.echo(say("cli.plan.no-norms", model=name))
            continue
        key = "cli.plan.model" if tensors else "cli.plan.norms"
        click.echo(say(key, model=name, count=found.tensors, cost=cost))
    if format == "text" and total.requests:
        click.echo(say("cli.plan.total", cost=cost_message(total), spent=cost_message(reader.cost)))
    return failed
