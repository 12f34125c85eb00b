"""`kinprint diff`: what changed from one model to another, and how."""

from __future__ import annotations

from typing import Any

import click

import kinprint
from kinprint import text
from kinprint.cli.commands import command, option
from kinprint.cli.compare import show_costs
from kinprint.cli.language import language
from kinprint.cli.output import form_option, given_models, refuse_beside_plan, show
from kinprint.cli.reading import device_option, reading_options, seed_option
from kinprint.errors import UsageError


@command("diff")
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@option("--sample", is_flag=True)
@option("--full", is_flag=True)
@seed_option
@option("--given", metavar="MODEL")
@option("--parent", "parents", multiple=True, metavar="MODEL")
@option("--base", metavar="MODEL")
@option("--dry-run", is_flag=True)
@form_option
@option("-o", "--output", multiple=True, metavar="PATH")
@device_option
@reading_options
def diff(
    a: str,
    b: str,
    sample: bool,
    full: bool,
    seed: int,
    given: str | None,
    parents: tuple[str, ...],
    base: str | None,
    dry_run: bool,
    format: str,
    output: tuple[str, ...],
    reader: kinprint.Reader,
) -> int:
    """Show what changed from one model to another."""
    if sample and full:
        raise UsageError(cause=text.message("cli.usage.sample-and-full"))
    if dry_run:
        refuse_beside_plan(output)
    if output:
        from kinprint.report.outputs import outputs

        outputs(output, models=given_models(a, b, *parents, given, base))
    chosen = sample if sample or full else None
    asked: dict[str, Any] = {"sample": chosen, "seed": seed, "given": given, "base": base}
    asked |= {"parents": parents, "reader": reader}
    if dry_run:
        return show_costs(kinprint.plan_diff(a, b, language=language(), **asked), format)
    show(kinprint.diff(a, b, language=language(), **asked), format, output)
    return 0
