"""Results on the terminal: colours where there is a terminal that wants them, else plain lines."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import click

from kinprint.cli.language import language, say
from kinprint.cli.output import write_line
from kinprint.errors import printable
from kinprint.records import Cost

if TYPE_CHECKING:
    from kinprint.report.outputs import Drawn, Output

_PAIR = re.compile(r" (identical|derived|partial|same-init|dependent|untestable) +(?:[\d.^-]+|–)$")


def show_result(document: Drawn, form: str, wanted: Sequence[Output]) -> None:
    """Write the files that were asked for, then print the result in the form asked for."""
    from kinprint.report.outputs import write_outputs

    write_outputs(document, wanted, language())
    if form == "json":
        write_line(document)
        return
    print_lines(_styled(document))
    read = document.read
    click.echo(cost_line(Cost(read.bytes, read.requests, read.seconds)))
    for one in wanted:
        shown = printable(str(one.path), 1000)
        click.echo(say(f"written to {shown}", f"{shown}에 썼습니다"))


def print_lines(lines: Iterable[tuple[str, str]]) -> None:
    """Print lines, each with a style; text without styles where nobody would see them."""
    if not sys.stdout.isatty():
        for line, _ in lines:
            click.echo(line)
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, soft_wrap=True)  # rich itself honours NO_COLOR
    for line, style in lines:
        console.print(Text(line, style))


def cost_line(cost: Cost) -> str:
    """What was read and how long it took."""
    from kinprint.cli.plan import cost_in_words

    if not cost.requests:
        place = say("nothing was read over the network", "네트워크로 읽은 것은 없습니다")
        return f"{place}, {cost.seconds:.1f} s"
    return f"{say('read', '읽은 양:')} {cost_in_words(cost)}, {cost.seconds:.1f} s"


def _styled(document: Drawn) -> Iterator[tuple[str, str]]:
    """The lines of a document: the sentence in the colour of its relation, asides faint."""
    from kinprint.report.comparison_lines import comparison_lines, matrix_lines
    from kinprint.report.documents import ComparisonDocument
    from kinprint.report.relations import SIGNS
    from kinprint.report.terminal import wrapped

    spoken = language()
    if isinstance(document, ComparisonDocument):
        verdict = document.verdict
        summary = verdict.summary_ko if spoken == "ko" else verdict.summary
        sentence = len(wrapped(printable(summary, 1000)))
        for at, line in enumerate(comparison_lines(document, spoken)):
            colour = f"bold {SIGNS[verdict.relation].terminal}" if at < sentence else ""
            yield line, colour or _aside(line)
        return
    for line in matrix_lines(document, spoken):
        found = _PAIR.search(line)
        yield line, SIGNS[found.group(1)].terminal if found else _aside(line)


def _aside(line: str) -> str:
    if line.startswith("! "):
        return "bold yellow"
    return "dim" if line.startswith(("- ", "  silent", "  test ", "  검정")) else ""
