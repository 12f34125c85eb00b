"""`kinprint report`: a result's JSON file, drawn again without reading a weight."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kinprint.cli.language import language, say
from kinprint.cli.showing import print_lines, show_result
from kinprint.errors import FileMissing, printable

if TYPE_CHECKING:
    from kinprint.report.schema import StudyDocument

_MOST = 512 * 1024 * 1024  # bytes; the JSON of a matrix of a thousand models is smaller


@click.command("report")
@click.argument("file", metavar="RESULT.json")
@click.option(
    "-o",
    "--output",
    multiple=True,
    metavar="PATH",
    help="Draw it to this file: .json, .html, .md, .csv, .png or .svg, or all of them to a "
    "folder; may be given more than once.",
)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text")
def command(file: str, output: tuple[str, ...], form: str) -> None:
    """Show a result again from its JSON file, and write it in other forms with -o.

    RESULT.json is what `compare`, `matrix` and `study run` write with -o; - reads it from
    stdin. Nothing else is read, and the same JSON gives the same files, byte for byte.
    """
    from kinprint.report.outputs import decode_result, outputs, write_outputs
    from kinprint.report.schema import StudyDocument

    wanted = outputs(output)
    found = decode_result(_content(file), printable(file))
    if not isinstance(found, StudyDocument):
        show_result(found, form, wanted)
        return
    write_outputs(found, wanted, language())
    _show_study(found, form)
    for one in wanted:
        click.echo(say(f"written to {one.path}", f"{one.path}에 썼습니다"))


def _content(file: str) -> bytes:
    if file == "-":
        return sys.stdin.buffer.read(_MOST)
    path = Path(file)
    inside = path / "result.json"  # the folder that -o made will do as well
    path = inside if inside.is_file() else path
    if not path.is_file():
        raise FileMissing(name=str(path.parent), path=path.name)
    with path.open("rb") as opened:
        return opened.read(_MOST)


def _show_study(found: StudyDocument, form: str) -> None:
    from kinprint.cli.output import write_line
    from kinprint.report.views.terminal.study import study_lines

    if form == "json":
        write_line(found)
        return
    print_lines(study_lines(found, language()))
