"""`kinprint diff`: what changed from one model to another, and how."""

from __future__ import annotations

import click

import kinprint
from kinprint.cli.commands import command, option
from kinprint.cli.compare import show
from kinprint.cli.language import language
from kinprint.cli.output import form_option
from kinprint.cli.reading import reading_options


@command("diff")
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@option("--base", metavar="MODEL")
@form_option
@option("-o", "--output", multiple=True, metavar="PATH")
@reading_options
def diff(
    a: str,
    b: str,
    base: str | None,
    format: str,
    output: tuple[str, ...],
    reader: kinprint.Reader,
) -> int:
    """Show what changed from one model to another."""
    if output:
        from kinprint.report.outputs import outputs

        outputs(output, "paths")
    found = kinprint.diff(a, b, base=base, reader=reader, language=language())
    show(found, format, output)
    return 0
