"""`kinprint inspect`: what a model holds, from its headers alone."""

from __future__ import annotations

import sys

import click

import kinprint
from kinprint.cli.commands import command, option
from kinprint.cli.language import language, say
from kinprint.cli.output import form_option, write_json
from kinprint.cli.reading import name_failure, reading_options
from kinprint.errors import KinprintError, printable

_WIDTH = 160  # where nobody says how wide lines may be


@command("inspect")
@click.argument("models", nargs=-1, required=True, metavar="MODEL...")
@form_option
@option("--dry-run", is_flag=True)
@reading_options
def inspect(models: tuple[str, ...], format: str, dry_run: bool, reader: kinprint.Reader) -> int:
    """Show what models hold."""
    failed = 0
    for number, model in enumerate(models):
        try:
            if dry_run:
                plan = kinprint.plan_inspection(model, reader=reader, language=language())
                _show_plan(plan, model, format)
            else:
                found = kinprint.inspect(model, reader=reader, language=language())
                _show(found, format, first=number == 0)
        except KinprintError as error:
            failed = name_failure(error, model)
    return failed


def _show_plan(plan: kinprint.Plan, model: str, format: str) -> None:
    from kinprint.report.costs import cost_message

    if format == "json":
        write_json(plan)
        return
    key = "cli.plan.headers-at-least" if plan.at_least else "cli.plan.headers"
    click.echo(say(key, model=printable(model), cost=cost_message(plan.cost), count=plan.files))


def _show(found: kinprint.Inspection, format: str, *, first: bool) -> None:
    if format == "json":
        write_json(found)
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from kinprint.report.views.inspection import inspection_view

    def shown(given: str) -> str:
        return escape(printable(given))

    view = inspection_view(found.document, language())
    terminal = sys.stdout.isatty()
    console = Console(highlight=False, soft_wrap=not terminal, width=None if terminal else _WIDTH)
    if not first:
        console.print()
    console.print(f"[bold]{shown(view.title)}[/bold]")
    for label in view.labels:
        console.print(f"[bold red]{shown(label)}[/bold red]")
    traits = Table(box=None, pad_edge=False, show_header=False)
    traits.add_column(style="dim")
    traits.add_column(overflow="fold")
    for name, said in view.traits:
        traits.add_row(name, shown(said))
    console.print(traits)
    console.print()
    tensors = Table(box=None, pad_edge=False, header_style="dim")
    for name in view.columns:
        last = name == view.columns[-1]
        tensors.add_column(name, justify="right" if last else "left", overflow="fold")
    for row in view.rows:
        tensors.add_row(*map(shown, row))
    console.print(tensors)
    for remark in view.remarks:
        console.print(shown(remark))
    if view.cost:
        console.print(f"[dim]{shown(view.cost)}[/dim]")
