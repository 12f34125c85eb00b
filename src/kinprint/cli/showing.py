"""Results on the terminal: colours where there is a terminal that wants them, else plain lines."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import click

from kinprint.cli.language import language, say
from kinprint.cli.output import write_line
from kinprint.errors import printable
from kinprint.records import Cost

if TYPE_CHECKING:
    from kinprint.report.outputs import Output
    from kinprint.report.schema import ComparisonDocument, MatrixDocument
    from kinprint.report.views.terminal.layout import Line


def show_result(
    document: ComparisonDocument | MatrixDocument, form: str, wanted: Sequence[Output]
) -> None:
    """Write the files that were asked for, then print the result in the form asked for."""
    from kinprint.report.outputs import write_outputs

    write_outputs(document, wanted, language())
    if form == "json":
        write_line(document)
        return
    print_lines(_lines(document))
    read = document.read
    click.echo(cost_line(Cost(read.bytes, read.requests, read.seconds)))
    for one in wanted:
        shown = printable(str(one.path), 1000)
        click.echo(say(f"written to {shown}", f"{shown}에 썼습니다"))


def print_lines(lines: Iterable[Line]) -> None:
    """Print lines, each with its look; text alone where nobody would see looks."""
    if not sys.stdout.isatty():
        for line in lines:
            click.echo(line.text)
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, soft_wrap=True)  # rich itself honours NO_COLOR
    for line in lines:
        console.print(Text(line.text, line.look))


def cost_line(cost: Cost) -> str:
    """What was read and how long it took."""
    from kinprint.cli.plan import cost_in_words

    if not cost.requests:
        place = say("nothing was read over the network", "네트워크로 읽은 것은 없습니다")
        return f"{place}, {cost.seconds:.1f} s"
    return f"{say('read', '읽은 양:')} {cost_in_words(cost)}, {cost.seconds:.1f} s"


def _lines(document: ComparisonDocument | MatrixDocument) -> Iterator[Line]:
    from kinprint.report.schema import ComparisonDocument
    from kinprint.report.views.terminal.comparison import comparison_lines, matrix_lines

    if isinstance(document, ComparisonDocument):
        return comparison_lines(document, language())
    return matrix_lines(document, language())
