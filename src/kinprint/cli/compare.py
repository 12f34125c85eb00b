"""`kinprint compare`: was one of two models derived from the other? `kinprint matrix`: of many,
which are kin? Each model is read once, and both share options, showing and exit codes.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import click

import kinprint
from kinprint import text
from kinprint.cli.commands import Choice, Real, Whole, command, option
from kinprint.cli.language import language, say
from kinprint.cli.output import (
    form_option,
    given_models,
    print_lines,
    refuse_beside_plan,
    show,
    write_json,
)
from kinprint.cli.reading import device_option, name_failure, reading_options, seed_option
from kinprint.errors import BadOption, UsageError, printable
from kinprint.records import ALPHA, Level, Relation

_CODES = {
    Relation.IDENTICAL: 1,
    Relation.SAME_WEIGHTS: 1,
    Relation.DERIVED: 1,
    Relation.PARTIAL: 1,
    Relation.LAUNDERED: 1,
    Relation.SAME_INIT: 3,
    Relation.DEPENDENT: 3,
    Relation.UNTESTABLE: 3,
    Relation.NO_EVIDENCE: 0,
}


def comparing_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add what both commands ask for; where to write is checked before anything is read.

    What the verbs take is handed over as `settings`, the reader among them.
    """

    @reading_options
    @option("--level", type=Choice([one.value for one in Level]), default=Level.STANDARD.value)
    @option(
        "--alpha",
        metavar="P",
        type=Real(0, 1, min_open=True, max_open=True),
        default=ALPHA,
    )
    @seed_option
    @option("--base", metavar="MODEL")
    @form_option
    @option("--exit-code", is_flag=True)
    @option("-o", "--output", multiple=True, metavar="PATH")
    @option("--dry-run", is_flag=True)
    @functools.wraps(function)
    def wrapper(
        *arguments: Any,
        reader: kinprint.Reader,
        level: str,
        alpha: float,
        seed: int,
        base: str | None,
        output: tuple[str, ...],
        **named: Any,
    ) -> Any:
        if named["dry_run"]:
            refuse_beside_plan(output, exit_code=named["exit_code"])
        if output:
            from kinprint.report.outputs import outputs

            read = (*named["models"], *named.get("controls", ()), named.get("given"), base)
            outputs(output, models=given_models(*read))
        asked = {"level": level, "alpha": alpha, "seed": seed, "base": base}
        settings = {**asked, "reader": reader, "language": language()}
        return function(*arguments, settings=settings, output=output, **named)

    return wrapper


@command("compare")
@click.argument("models", nargs=-1, required=True, metavar="A B [MODEL...]")
@option("--control", "controls", multiple=True, metavar="MODEL")
@option("--given", metavar="MODEL")
@option("--direction", is_flag=True)
@option("--jobs", metavar="N", type=Whole(min=1))
@option("--no-hash", is_flag=True)
@device_option
@comparing_options
def compare(
    models: tuple[str, ...],
    controls: tuple[str, ...],
    given: str | None,
    direction: bool,
    jobs: int | None,
    no_hash: bool,
    **options: Any,
) -> int:
    """Compare two models, or all pairs of more."""
    if len(models) < 2:
        cause = text.message("cause.comparison.too-few")
        raise BadOption(option="models", value=models[0], cause=cause)
    if len(models) == 2:
        return compare_two(models[0], models[1], controls, given, direction, not no_hash, **options)
    if given is not None:
        cause = text.message("cause.given.two-models")
        raise BadOption(option="given", value=given, cause=cause)
    for asked, key in ((direction, "direction"), (no_hash, "no-hash")):
        if asked:
            fields = {"count": len(models), "given": " ".join(models)}
            raise UsageError(cause=text.message(f"cli.usage.{key}", **fields))
    if controls:
        cause = text.message("cause.comparison.controls-for-two")
        raise BadOption(option="controls", value=controls[0], cause=cause)
    return compare_all(models, jobs, **options)


@command("matrix")
@click.argument("models", nargs=-1, required=True, metavar="MODEL...")
@option("--jobs", metavar="N", type=Whole(min=1))
@comparing_options
def matrix(models: tuple[str, ...], jobs: int | None, **options: Any) -> int:
    """Compare all pairs of models."""
    return compare_all(models, jobs, **options)


def compare_two(
    a: str,
    b: str,
    controls: Sequence[str],
    given: str | None,
    direction: bool,
    hashes: bool,
    *,
    format: str,
    exit_code: bool,
    output: Sequence[str],
    dry_run: bool,
    settings: dict[str, Any],
) -> int:
    """Compare two models, show and write what was found; the exit code."""
    if dry_run:
        return show_plan((a, b, *controls, *([given] if given else [])), format, settings)
    kept = format == "json" or bool(output)  # a terminal shows the answer alone
    found = kinprint.compare(
        a, b, controls=controls, given=given, direction=direction,
        hashes=hashes and kept, details=kept, **settings,
    )  # fmt: skip
    show(found, format, output)
    if found.answered and format != "json":  # JSON says so itself
        click.echo(say("cli.compare.answered", date=found.answered), err=True)
    first, second = ((one.kind, one.name, one.commit) for one in found.document.models)
    if first == second:
        click.echo(say("cli.compare.one-model", a=printable(a), b=printable(b)), err=True)
    return code_for([found.relation]) if exit_code else 0


def compare_all(
    models: Sequence[str],
    jobs: int | None,
    *,
    format: str,
    exit_code: bool,
    output: Sequence[str],
    dry_run: bool,
    settings: dict[str, Any],
) -> int:
    """Compare all pairs of models, show and write what was found; the exit code."""
    if dry_run:
        return show_plan(models, format, settings)
    found = kinprint.matrix(models, jobs=jobs, **settings)
    show(found, format, output)
    if format == "json" or not sys.stdout.isatty():  # else the same terminal has just said so
        for one in found.failures:
            name_failure(one.error, one.given)
    if found.failures:
        return 2
    return code_for(found.relations) if exit_code else 0


def code_for(relations: Iterable[Relation]) -> int:
    """The code for what was found: 1 if any are related, 3 if any are undecided, else 0."""
    codes = {_CODES[relation] for relation in relations}
    return 1 if 1 in codes else max(codes, default=0)


def show_plan(models: Sequence[str], format: str, settings: dict[str, Any]) -> int:
    """Show what comparing would cost."""
    return show_costs(kinprint.plan_comparison(models, **settings), format)


def show_costs(found: kinprint.Plan, format: str) -> int:
    """Show what reading would cost."""
    from kinprint.report.costs import cost_message
    from kinprint.report.schema import PlanDocument
    from kinprint.report.views.terminal.comparison import plan_lines

    if format == "json":
        write_json(found)
        return 0
    assert isinstance(found.document, PlanDocument)
    print_lines(plan_lines(found.document, language()))
    click.echo(say("cli.plan.spent", cost=cost_message(found.spent).say(language())))
    return 0
