"""`kinprint demo`: the answers for a descendant, a laundered copy and a stranger, over a mirror."""

from __future__ import annotations

import math
import shlex
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kinprint import text
from kinprint.cli.language import language, say
from kinprint.cli.loopback import loopback_hub
from kinprint.cli.showing import cost_line, print_lines
from kinprint.demo import FOLDER, PAIRS, KnownPair
from kinprint.errors import printable
from kinprint.records import Cost

if TYPE_CHECKING:
    from kinprint.report.results import ComparisonResult

_INDENT = "  "


@click.command("demo")
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("out/demo"),
    show_default=True,
    help="Folder for the reports and their data.",
)
def command(output: Path) -> None:
    """Compare small models that come with kinprint: a descendant, a disguised copy, a stranger.

    A mirror of the Hub is started on this machine; nothing leaves it, and the cache and
    the settings of your own Hub tools are left alone.
    """
    from kinprint.report.outputs import outputs

    files = {pair: output / f"{pair.history}.html" for pair in PAIRS}
    outputs(files.values())  # a place where nothing can be written is refused before the work
    with loopback_hub(FOLDER):
        _run(files)


def _run(files: dict[KnownPair, Path]) -> None:
    import kinprint

    started = time.monotonic()
    _print("demo.opening")
    cosines: list[float] = []
    spent = Cost()
    for pair, file in files.items():
        with _working(pair):
            # Not plain names: a folder zoo/base-a where the user stands would be taken for one.
            found = kinprint.compare(f"hf://{pair.a}", f"hf://{pair.b}", language=language())
            found.save(file, file.with_suffix(".json"))
        cosines.append(_norm_cosine(found))
        spent = Cost(spent.bytes + found.cost.bytes, spent.requests + found.cost.requests)
        _print_pair(pair, found, cosines[-1], file)
    click.echo()
    _print("demo.closing", least=_rounded_down(min(cosines)))
    click.echo()
    click.echo(cost_line(Cost(spent.bytes, spent.requests, time.monotonic() - started)))
    a, b = (shlex.quote(str(FOLDER / name)) for name in (PAIRS[0].a, PAIRS[0].b))
    click.echo(printable(text.say("demo.by_hand", language(), a=a, b=b), 2000))


def _print_pair(pair: KnownPair, found: ComparisonResult, cosine: float, file: Path) -> None:
    from kinprint.report.views.terminal.layout import WIDTH, Line, answer_look, wrapped

    verdict = found.document.verdict
    click.echo()
    _print(f"demo.history.{pair.history}", a=_title(pair.a))
    look = answer_look(verdict.relation)
    summary = say(verdict.summary, verdict.summary_ko)
    lines = wrapped(summary, width=WIDTH - len(_INDENT))
    print_lines(Line(_INDENT + line, look) for line in lines)
    click.echo(_INDENT + text.say("demo.cosine", language(), cosine=cosine))
    click.echo(_INDENT + text.say("demo.report", language(), file=printable(str(file), 1000)))


def _print(key: str, **fields: object) -> None:
    """A sentence of the catalogue, in lines of the terminal's width."""
    from kinprint.report.views.terminal.layout import wrapped

    for line in wrapped(text.say(key, language(), **fields)):
        click.echo(line)


@contextmanager
def _working(pair: KnownPair) -> Iterator[None]:
    """Say on a terminal what is being done, while it is being done."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    doing = text.say("demo.comparing", language(), a=_title(pair.a), b=_title(pair.b))
    with Console(stderr=True).status(doing):
        yield


def _norm_cosine(found: ComparisonResult) -> float:
    """The raw cosine of norm vectors, averaged over all that both models have."""
    known = [one.cosine for one in found.document.seeds if one.cosine is not None]
    return statistics.fmean(known)


def _rounded_down(cosine: float) -> float:
    """A bound that holds: rounding to the nearest could exceed the number."""
    return math.floor(1000 * cosine) / 1000


def _title(name: str) -> str:
    return name.rpartition("/")[2]
