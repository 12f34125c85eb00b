"""`kinprint unmerge`: which merge of some models made another?"""

from __future__ import annotations

from typing import Any

import click

import kinprint
from kinprint import text
from kinprint.cli.commands import command, option
from kinprint.cli.language import language, say
from kinprint.cli.output import form_option, given_models, refuse_beside_plan, show, write_json
from kinprint.cli.reading import reading_options, seed_option
from kinprint.errors import UsageError, printable


@command("unmerge")
@click.argument("child", metavar="CHILD")
@click.argument("parents", nargs=-1, required=True, metavar="PARENT...")
@option("--base", metavar="MODEL")
@option("--sample", is_flag=True)
@seed_option
@form_option
@option("-o", "--output", multiple=True, metavar="PATH")
@option("--dry-run", is_flag=True)
@reading_options
def unmerge(
    child: str,
    parents: tuple[str, ...],
    base: str | None,
    sample: bool,
    seed: int,
    format: str,
    output: tuple[str, ...],
    dry_run: bool,
    reader: kinprint.Reader,
) -> int:
    """Show which merge made a model."""
    if seed and not sample:
        raise UsageError(cause=text.message("cli.usage.seed"))
    if dry_run:
        refuse_beside_plan(output)
    kinprint.Unmerged.check(output, given_models(child, *parents, base))
    asked: dict[str, Any] = {"base": base, "sample": sample, "seed": seed, "reader": reader}
    if dry_run:
        plan = kinprint.plan_unmerge(child, parents, language=language(), **asked)
        return _show_plan(plan, format)
    show(kinprint.unmerge(child, parents, language=language(), **asked), format, output)
    return 0


def _show_plan(plan: kinprint.Plan, format: str) -> int:
    from kinprint.report.costs import cost_message

    if format == "json":
        write_json(plan)
        return 0
    cost = say("cli.plan.in-place") if plan.local else cost_message(plan.cost).say(language())
    models = ", ".join(printable(one) for one in plan.models)
    click.echo(say("cli.plan.together", models=models, count=plan.tensors, cost=cost))
    click.echo(say("cli.plan.spent", cost=cost_message(plan.spent).say(language())))
    return 0
