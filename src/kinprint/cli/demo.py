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

import click
from msgspec.structs import replace

import kinprint
from kinprint.cli.commands import command, option
from kinprint.cli.language import language, say
from kinprint.cli.output import print_cost, print_lines
from kinprint.demo import FOLDER, PAIRS, KnownPair
from kinprint.errors import printable
from kinprint.mirror.loopback import loopback_hub

_INDENT = "  "


@command("demo")
@option("-o", "--output", metavar="FOLDER", type=Path, default=Path("out/demo"))
def demo(output: Path) -> None:
    """Compare small models that come with kinprint."""
    from kinprint.report.outputs import check_folder, outputs

    check_folder(output, "output")
    files = {pair: output / f"{pair.history}.html" for pair in PAIRS}
    data = (file.with_suffix(".json") for file in files.values())
    outputs((*files.values(), *data), "output")  # what cannot be written is refused before the work
    with loopback_hub(FOLDER):
        _run(files)


def _run(files: dict[KnownPair, Path]) -> None:
    started = time.monotonic()
    _print("demo.opening")
    cosines: list[float] = []
    spent = kinprint.Cost()
    for pair, file in files.items():
        with _working(pair):
            # Not plain names: a folder zoo/base-a where the user stands would be taken for one.
            found = kinprint.compare(f"hf://{pair.a}", f"hf://{pair.b}", language=language())
            found.save(file, file.with_suffix(".json"))
        cosines.append(_norm_cosine(found))
        spent += found.cost
        _print_pair(pair, found, cosines[-1], file)
    click.echo()
    _print("demo.closing", least=_rounded_down(min(cosines)))
    click.echo()
    print_cost(replace(spent, seconds=time.monotonic() - started))
    a, b = (shlex.quote(str(FOLDER / name)) for name in (PAIRS[0].a, PAIRS[0].b))
    click.echo(printable(say("demo.by_hand", a=a, b=b), 2000))


def _print_pair(pair: KnownPair, found: kinprint.Comparison, cosine: float, file: Path) -> None:
    from kinprint.report.numbers import p_claim
    from kinprint.report.views.terminal.layout import Line, answer_look
    from kinprint.text.lines import WIDTH, wrapped

    click.echo()
    _print(f"demo.history.{pair.history}", a=_title(pair.a))
    look = answer_look(found.relation)
    lines = wrapped(found.summary, width=WIDTH - len(_INDENT))
    print_lines(Line(_INDENT + line, look) for line in lines)
    click.echo(_INDENT + say("demo.link", p=p_claim(found.log10_p)))
    click.echo(_INDENT + say("demo.cosine", cosine=cosine))
    click.echo(_INDENT + say("demo.report", file=printable(str(file), 1000)))


def _print(key: str, **fields: object) -> None:
    """A sentence of the catalogue, in lines of the terminal's width."""
    from kinprint.text.lines import wrapped

    for line in wrapped(say(key, **fields)):
        click.echo(line)


@contextmanager
def _working(pair: KnownPair) -> Iterator[None]:
    """Say on a terminal what is being done, while it is being done."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    doing = say("demo.comparing", a=_title(pair.a), b=_title(pair.b))
    with Console(stderr=True).status(doing):
        yield


def _norm_cosine(found: kinprint.Comparison) -> float:
    """The raw cosine of norm vectors, averaged over all that both models have."""
    known = [one.cosine for one in found.norms if one.cosine is not None]
    return statistics.fmean(known)


def _rounded_down(cosine: float) -> float:
    """A bound that holds: rounding to the nearest could exceed the number."""
    return math.floor(1000 * cosine) / 1000


def _title(name: str) -> str:
    return name.rpartition("/")[2]
