"""`kinprint report`: a result's JSON file, drawn again without reading a weight."""

from __future__ import annotations

import sys

import click

import kinprint
from kinprint.cli.atlas import show_tree
from kinprint.cli.commands import command, option
from kinprint.cli.compare import show
from kinprint.cli.identify import show_identified
from kinprint.cli.language import language
from kinprint.cli.output import form_option, print_lines, print_written, saved, write_json
from kinprint.cli.unmerge import show_unmerged
from kinprint.errors import printable

_MOST = 512 * 1024 * 1024  # bytes; the JSON of a matrix of a thousand models is smaller


@command("report")
@click.argument("file", metavar="RESULT.json")
@option("-o", "--output", multiple=True, metavar="PATH")
@form_option
def report(file: str, output: tuple[str, ...], format: str) -> None:
    """Show a result again from its JSON file."""
    from kinprint.report.outputs import outputs
    from kinprint.report.views.terminal.study import study_lines

    given = sys.stdin.buffer.read(_MOST) if file == "-" else file
    found = kinprint.report(given, language(), name=printable(file))
    if isinstance(found, kinprint.Unmerged):
        show_unmerged(found, format, output)
        return
    if isinstance(found, kinprint.Identification):
        show_identified(found, format, output)
        return
    if isinstance(found, kinprint.FamilyTree):
        show_tree(found, format, output)
        return
    outputs(output, "paths")
    if not isinstance(found, kinprint.StudyResult):
        show(found, format, output)
        return
    with saved(lambda: found.save(*output)) as written:
        if format == "json":
            write_json(found)
        else:
            print_lines(study_lines(found.document, language()))
        if written:
            print_written(output)
