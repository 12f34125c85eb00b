"""What commands print: JSON for machines, lines with colours for people."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import kinprint
from kinprint import text
from kinprint.cli.commands import Choice, option
from kinprint.cli.language import language, say
from kinprint.errors import UsageError, printable

if TYPE_CHECKING:
    from kinprint.report.results.result import Result
    from kinprint.report.views.terminal.layout import Line

    Shown = (
        kinprint.Comparison
        | kinprint.Matrix
        | kinprint.Diff
        | kinprint.Unmerged
        | kinprint.Identification
        | kinprint.FamilyTree
        | kinprint.StudyResult
    )

form_option = option("--format", type=Choice(["text", "json"]), default="text")
"""How to print a result, handed over as `format`."""


def write_json(found: Result[Any]) -> None:
    """Write the JSON of a result as one line; names that are no text stay escaped."""
    from kinprint.report.schema import encode_line

    try:
        line = encode_line(found.document)
    except UnicodeEncodeError:
        line = json.dumps(found.to_dict()).encode("ascii")
    write_line(line)


def write_line(line: bytes) -> None:
    """Write one line of JSON."""
    out = getattr(sys.stdout, "buffer", None)
    if out is not None:
        out.write(line + b"\n")
        out.flush()


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


def print_cost(cost: kinprint.Cost) -> None:
    """Print what was read and how long it took."""
    from kinprint.report.costs import cost_line

    click.echo(cost_line(cost, language()))


def given_models(*names: str | None) -> list[str]:
    """The models that a command was given, those of options that were not given left out."""
    return [name for name in names if name is not None]


def refuse_beside_plan(output: object, *, exit_code: bool = False) -> None:
    """Refuse what only a result has: a plan is written nowhere and has no code."""
    for given, asked in (("-o", output), ("--exit-code", exit_code)):
        if asked:
            raise UsageError(cause=text.message("cli.usage.dry-run", given=given))


def print_written(places: Sequence[str | os.PathLike[str]]) -> None:
    """Name files and folders that were written."""
    for place in places:
        click.echo(say("cli.written", place=printable(str(Path(place)), 1000)))


def show(found: Shown, format: str, output: Sequence[str], *, cost: bool = True) -> None:
    """Write the files that were asked for, then print a result in the form asked for.

    What reading it took is told unless that was long ago.
    """
    # What writes files is loaded where there are any.
    with saved(lambda: found.save(*output) if output else None) as written, reader_may_leave():
        if format == "json":
            write_json(found)
            return
        print_lines(_lines(found))
        if cost:
            print_cost(found.cost)
        if written:
            print_written(output)


def _lines(found: Shown) -> Iterator[Line]:
    """A result as people read it."""
    match found:
        case kinprint.Comparison():
            from kinprint.report.views.terminal.comparison import comparison_lines

            return comparison_lines(found.document, language())
        case kinprint.Matrix():
            from kinprint.report.views.terminal.comparison import matrix_lines

            return matrix_lines(found.document, language())
        case kinprint.Diff():
            from kinprint.report.views.terminal.diff import diff_lines

            return diff_lines(found.document, language())
        case kinprint.Unmerged():
            from kinprint.report.views.terminal.unmerge import unmerge_lines

            return unmerge_lines(found.document, language())
        case kinprint.Identification():
            from kinprint.report.views.terminal.identify import identify_lines

            return identify_lines(found.document, language())
        case kinprint.FamilyTree():
            from kinprint.report.views.terminal.tree import tree_lines

            return tree_lines(found.document, language())
        case kinprint.StudyResult():
            from kinprint.report.views.terminal.study import study_lines

            return study_lines(found.document, language())


@contextlib.contextmanager
def saved(save: Callable[[], object]) -> Iterator[bool]:
    """Save a result before it is shown, and show it in any case: what failed is told afterwards.

    The block is told whether it was saved.
    """
    try:
        save()
    except Exception as error:
        yield False
        raise error
    else:
        yield True


@contextlib.contextmanager
def reader_may_leave() -> Iterator[None]:
    """Go on when nobody reads the output any more: the exit code is still to be told."""
    try:
        yield
    except BrokenPipeError:
        sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115
    except SystemExit as error:  # rich ends the process instead
        if not isinstance(error.__context__, BrokenPipeError):
            raise
