"""`kinprint study`: named comparisons of models, with what each can and cannot show."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click

import kinprint
from kinprint import text
from kinprint.cli.commands import Command, Group, Whole, option
from kinprint.cli.language import language, say
from kinprint.cli.output import (
    form_option,
    given_models,
    print_cost,
    print_lines,
    print_written,
    refuse_beside_plan,
    saved,
    write_json,
    write_line,
)
from kinprint.cli.reading import device_option, name_failure, reading_options, seed_option
from kinprint.errors import BadOption, printable

_MOST_LAYERS = 10_000
_RANGE = re.compile(r"\s*(\d{1,5})\s*(?:-\s*(\d{1,5})\s*)?", re.ASCII)


@click.group("study", cls=Group)
def study() -> None:
    """Run named studies of models."""


@study.command("list", cls=Command, key=("study", "list"))
@form_option
def list_studies(format: str) -> None:
    """Name all studies."""
    found = list(kinprint.list_studies().values())
    if format == "json":
        from kinprint.report.build.study import studies_document
        from kinprint.report.schema import encode_line

        write_line(encode_line(studies_document(found)))
        return
    from kinprint.report.views.terminal.layout import paragraph
    from kinprint.text.lines import WIDTH, wrapped

    first = max(len(one.name) for one in found)
    second = max(len(one.code) for one in found)
    third = max(len(_count(one)) for one in found)
    for one in found:
        head = f"{one.name:<{first}}  {one.code:<{second}}  {_count(one):>{third}}  "
        room = WIDTH - len(head)
        for number, line in enumerate(wrapped(_said(one.title), width=room)):
            click.echo((head if number == 0 else " " * len(head)) + line)
    click.echo()
    click.echo(say("cli.study.listed"))
    for extension in kinprint.installed_extensions(language()):
        if extension.group == "kinprint.studies" and extension.fault is not None:
            click.echo(paragraph(printable(extension.fault, 1000), ""))


@study.command("show", cls=Command, key=("study", "show"))
@click.argument("name")
def show_study(name: str) -> None:
    """Say what a study compares, shows and cannot show."""
    from kinprint.report.views.terminal.layout import paragraph

    chosen = kinprint.find_study(name)
    click.echo(f"{chosen.name} ({chosen.code}): {_said(chosen.title)}")
    told = {"report.study.shows": chosen.shows, "report.study.cannot": chosen.cannot}
    for title, words in told.items():
        click.echo(f"\n{say(title)}")
        click.echo(paragraph(_said(words), "  "))
    click.echo()
    layers = ", ".join(map(str, chosen.layers)) or say("cli.study.all-layers")
    facts = [
        ("cli.study.models", _count(chosen)),
        ("cli.study.tensors", ", ".join(chosen.roles)),
        ("cli.study.layers", layers if chosen.roles else ""),
        ("cli.study.tokenizers", say("cli.study.are-read") if chosen.vocabulary else ""),
    ]
    for key, value in facts:
        if value:
            click.echo(paragraph(say(key, value=value), ""))
    known = kinprint.list_measures()
    for measure in filter(known.__contains__, chosen.measures):
        title, trap = known[measure].title[language()], known[measure].trap[language()]
        click.echo(paragraph(f"{measure}: {title}. {trap}", "  "))


@study.command("run", cls=Command, key=("study", "run"))
@click.argument("name")
@click.argument("models", nargs=-1, metavar="MODEL...")
@option("--layers", metavar="LIST")
@option("--roles", metavar="LIST")
@option("--measures", metavar="LIST")
@option("--rows", metavar="N", type=Whole(min=1), show_default="16")
@option("--full", is_flag=True)
@seed_option
@option("-o", "--output", metavar="FOLDER")
@form_option
@option("--base", metavar="MODEL")
@option("--dry-run", is_flag=True)
@device_option
@reading_options
def run(
    name: str,
    models: tuple[str, ...],
    layers: str | None,
    roles: str | None,
    measures: str | None,
    rows: int | None,
    full: bool,
    output: str | None,
    format: str,
    dry_run: bool,
    **asked: Any,
) -> int:
    """Run a study on models, and print what came out."""
    if full and rows is not None:
        cause = text.message("cause.study.rows-and-full")
        raise BadOption(option="rows", value=rows, cause=cause)
    if dry_run:
        refuse_beside_plan(output)
    if output is not None:
        from kinprint.report.outputs import outputs

        outputs([f"{output}/"], models=given_models(*models, asked["base"]))
    asked |= {
        "layers": None if layers is None else _layers(layers),
        "roles": None if roles is None else _names(roles, "roles"),
        "measures": None if measures is None else _names(measures, "measures"),
        "language": language(),
    }
    if full or rows is not None:
        asked["rows"] = rows
    if dry_run:
        _show_plan(kinprint.plan_study(name, *models, **asked), name, format)
        return 0
    found = kinprint.study(name, *models, **asked)
    _show(found, format, None if output is None else f"{output}/")
    for one in found.failures:
        name_failure(one.error, one.given)
    return 2 if len(found.models) < len(models) else 0  # some were set aside


def _show(found: kinprint.StudyResult, format: str, output: str | None) -> None:
    from kinprint.report.views.terminal.study import study_lines

    with saved(lambda: found.save(output) if output is not None else None) as written:
        if format == "json":
            write_json(found)
            return
        print_lines(study_lines(found.document, language()))
        print_cost(found.cost)
        if output is not None and written:
            from kinprint.report.files import readme

            print_written([Path(output) / readme(language())])


def _show_plan(found: kinprint.Plan, name: str, format: str) -> None:
    from kinprint.report.costs import cost_message

    if format == "json":
        write_json(found)
    elif found.local:
        click.echo(say("cli.plan.study-in-place", study=name))
    else:
        costs = {"cost": cost_message(found.cost), "spent": cost_message(found.spent)}
        click.echo(say("cli.plan.study", study=name, **costs))


def _names(given: str, option: str) -> tuple[str, ...]:
    found = tuple(dict.fromkeys(part.strip() for part in given.split(",") if part.strip()))
    if not found:
        raise BadOption(option=option, value=given, cause=text.message("cause.study.names"))
    return found


def _layers(given: str) -> tuple[int, ...]:
    """Layers in a list of numbers and ranges, both ends included."""
    found: dict[int, None] = {}
    for part in given.split(","):
        ends = _RANGE.fullmatch(part)
        first = int(ends[1]) if ends else 0
        last = int(ends[2] or ends[1]) if ends else -1
        if not first <= last <= first + _MOST_LAYERS:
            cause = text.message("cause.study.layers")
            raise BadOption(option="layers", value=given, cause=cause)
        found.update(dict.fromkeys(range(first, last + 1)))
    return tuple(found)


def _count(one: kinprint.Study) -> str:
    if one.most is None:
        return f"{one.least}+"
    return str(one.least) if one.least == one.most else f"{one.least}-{one.most}"


def _said(words: text.Words) -> str:
    return printable(words[language()], 5000)
