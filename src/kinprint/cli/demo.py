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

from kinprint.cli.language import language, say
from kinprint.cli.loopback import loopback_hub
from kinprint.cli.showing import cost_line, print_lines
from kinprint.demo import FOLDER, PAIRS, History, KnownPair
from kinprint.errors import printable
from kinprint.records import Cost

if TYPE_CHECKING:
    from kinprint.report.results import ComparisonResult

_OPENING = (
    "Four small language models whose history is known, served on this machine as the "
    "Hub serves models, and read over HTTP Range.",
    "내력이 알려진 작은 언어 모델 네 개를 이 컴퓨터에서 Hub와 같은 방식으로 제공하고 HTTP Range로 "
    "읽습니다.",
)
_HISTORIES = {
    History.DESCENDANT: (
        "A descendant: {a} after as much training again, on other languages.",
        "파생 모델: {a} 모델을 다른 언어로 처음만큼 더 학습시켰습니다.",
    ),
    History.LAUNDERED: (
        "A laundered copy: {a}, tuned, then rotated, renumbered and rescaled until no number "
        "is left in its place.",
        "위장한 사본: {a} 모델을 조금 더 학습시킨 뒤, 회전하고 순서와 크기를 바꾸어 제자리에 남은 "
        "숫자가 하나도 없게 했습니다.",
    ),
    History.STRANGER: (
        "A stranger: the data of {a} in the same order, from another random seed.",
        "무관한 모델: {a} 모델과 같은 데이터를 같은 순서로 학습했지만 난수 시드가 다릅니다.",
    ),
}
_COSINE = ("cosine of their norms: {cosine:.4f}", "norm 코사인: {cosine:.4f}")
_REPORT = ("report: {file}", "보고서: {file}")
_CLOSING = (
    "The cosine is above {least:.3f} for all three: it cannot tell a copy from a stranger. "
    "The p-value can: it bounds how often models trained apart would agree as closely.",
    "코사인은 셋 다 {least:.3f}보다 커서 사본과 무관한 모델을 가려내지 못합니다. p-값은 "
    "가려냅니다. 따로 학습한 모델이 이만큼 일치할 확률의 상한이기 때문입니다.",
)
_INDENT = "  "
_COMPARING = ("comparing {a} and {b}", "{a}, {b} 비교 중")
_AGAIN = ("by hand: kinprint compare {a} {b}", "직접 해 보기: kinprint compare {a} {b}")


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
    _print(*_OPENING)
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
    _print(*_CLOSING, least=_rounded_down(min(cosines)))
    click.echo()
    click.echo(cost_line(Cost(spent.bytes, spent.requests, time.monotonic() - started)))
    a, b = (shlex.quote(str(FOLDER / name)) for name in (PAIRS[0].a, PAIRS[0].b))
    click.echo(printable(say(*_AGAIN).format(a=a, b=b), 2000))


def _print_pair(pair: KnownPair, found: ComparisonResult, cosine: float, file: Path) -> None:
    from kinprint.report.relations import SIGNS
    from kinprint.report.terminal import WIDTH, wrapped

    verdict = found.document.verdict
    click.echo()
    _print(*_HISTORIES[pair.history], a=_title(pair.a))
    colour = f"bold {SIGNS[verdict.relation].terminal}"
    summary = say(verdict.summary, verdict.summary_ko)
    lines = wrapped(summary, width=WIDTH - len(_INDENT))
    print_lines((_INDENT + line, colour) for line in lines)
    click.echo(_INDENT + say(*_COSINE).format(cosine=cosine))
    click.echo(_INDENT + say(*_REPORT).format(file=printable(str(file), 1000)))


def _print(english: str, korean: str, **fields: object) -> None:
    from kinprint.report.terminal import wrapped

    for line in wrapped(say(english, korean).format(**fields)):
        click.echo(line)


@contextmanager
def _working(pair: KnownPair) -> Iterator[None]:
    """Say on a terminal what is being done, while it is being done."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    doing = say(*_COMPARING).format(a=_title(pair.a), b=_title(pair.b))
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
