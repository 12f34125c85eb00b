"""`kinprint report`: a result's JSON file, drawn again without reading a weight."""

from __future__ import annotations

import sys

import click

import kinprint
from kinprint.cli.commands import command, option
from kinprint.cli.language import language
from kinprint.cli.output import form_option, show
from kinprint.errors import printable

_MOST = 512 * 1024 * 1024  # bytes; the JSON of a matrix of a thousand models is smaller


@command("report")
@click.argument("file", metavar="RESULT.json")
@option("-o", "--output", multiple=True, metavar="PATH")
@form_option
def report(file: str, output: tuple[str, ...], format: str) -> None:
    """Show a result again from its JSON file."""
    given = sys.stdin.buffer.read(_MOST) if file == "-" else file
    found = kinprint.report(given, language(), name=printable(file))
    show(found, format, output, cost=False)
