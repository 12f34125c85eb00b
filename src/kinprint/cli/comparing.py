"""What `compare` and `matrix` have in common: options, exit codes, writing what was found."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kinprint.cli.language import say
from kinprint.cli.output import write_line
from kinprint.cli.reading import ReadingOptions, report_failure
from kinprint.errors import KinprintError
from kinprint.records import Cost

if TYPE_CHECKING:
    from kinprint.comparison import Settings

_CODES = {"identical": 1, "derived": 1, "partial": 1, "no-evidence": 0}
_UNSURE = 3
_LEVELS = ("quick", "standard", "deep")


def comparing_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add what both commands ask for, the level and how sure to be handed over as `settings`."""

    @click.option(
        "--level",
        type=click.Choice(_LEVELS),
        default="standard",
        show_default=True,
        help="How much to read: norms of a few layers, also rows, or all that may help.",
    )
    @click.option(
        "--alpha",
        type=click.FloatRange(0, 1, min_open=True, max_open=True),
        default=1e-6,
        show_default=True,
        help="The chance of calling strangers related.",
    )
    @click.option("--seed", type=click.IntRange(min=0), default=0, help="Draws samples.  [0]")
    @click.option("--base", metavar="MODEL", help="What an adapter stands on.")
    @click.option("--format", "form", type=click.Choice(["text", "json"]), default="text")
    @click.option("--exit-code", is_flag=True, help="Exit with 1 if related, 3 if undecided.")
    @click.option(
        "-o",
        "--output",
        type=click.Path(dir_okay=False, path_type=Path),
        help="Write the JSON document to this file too.",
    )
    @click.option("--dry-run", is_flag=True, help="Show what reading would cost, and stop.")
    @functools.wraps(function)
    def wrapper(
        *args: Any,
        level: str,
        alpha: float,
        seed: int,
        base: str | None,
        reading: ReadingOptions,
        **options: Any,
    ) -> Any:
        from kinprint.comparison import Settings
        from kinprint.reader.sizes import parse_size

        budget = None if reading.budget is None else parse_size(reading.budget, "--budget")
        settings = Settings(level, alpha, budget, seed, base)
        try:
            return function(*args, settings=settings, reading=reading, **options)
        except KinprintError as error:
            notes = getattr(error, "__notes__", [])
            if not notes:
                raise
            return report_failure(error, notes[0])

    return wrapper


def code_for(relations: Iterable[str]) -> int:
    """The code for what was found: 1 if any are related, 3 if any are undecided, else 0."""
    codes = {_CODES.get(relation, _UNSURE) for relation in relations}
    return 1 if 1 in codes else max(codes, default=0)


def write_found(
    document: dict[str, Any], lines: Iterable[str], form: str, output: Path | None, cost: Cost
) -> None:
    """Print what was found in the form asked for, and to a file if one was named."""
    if output is not None:
        import msgspec

        output.write_bytes(msgspec.json.format(msgspec.json.encode(document)) + b"\n")
    if form == "json":
        write_line(document)
        return
    for line in lines:
        click.echo(line)
    click.echo(cost_line(cost))
    if output is not None:
        click.echo(say(f"written to {output}", f"{output}에 썼습니다"))


def cost_line(cost: Cost) -> str:
    """What was read and how long it took."""
    from kinprint.cli.plan import cost_in_words

    if not cost.requests:
        place = say("nothing was read over the network", "네트워크로 읽은 것은 없습니다")
        return f"{place}, {cost.seconds:.1f} s"
    return f"{say('read', '읽은 양:')} {cost_in_words(cost)}, {cost.seconds:.1f} s"


def print_prospect(
    given: Iterable[str], settings: Settings, reading: ReadingOptions, form: str
) -> None:
    """Show what comparing would cost."""
    from kinprint.cli.language import language
    from kinprint.cli.reading import fetcher_for
    from kinprint.comparison import foresee
    from kinprint.report.comparison import plan_document, plan_lines

    with fetcher_for(reading) as fetcher:
        found = foresee(tuple(given), fetcher, settings)
        spent = fetcher.spent
    if form == "json":
        write_line(plan_document(found, spent))
        return
    for line in plan_lines(found, language()):
        click.echo(line)
    click.echo(say("knowing this: ", "알아보는 데: ") + cost_line(spent))
