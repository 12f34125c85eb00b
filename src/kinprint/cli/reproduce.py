"""`kinprint reproduce`: a public dispute's analyses, done again, with the published numbers."""

from __future__ import annotations

from pathlib import Path

import click

import kinprint
from kinprint.cli.commands import Whole, command, option
from kinprint.cli.language import language, say
from kinprint.cli.output import saved
from kinprint.cli.reading import reading_options, seed_option, show_progress
from kinprint.errors import printable


@command("reproduce")
@click.argument("name")
@option("-o", "--output", metavar="FOLDER", type=Path)
@option("--replica", is_flag=True)
@option("--keep-going", is_flag=True)
@option("--revisions", metavar="FILE", type=Path)
@option("--rows", metavar="N", type=Whole(min=1), default=16)
@seed_option
@reading_options
def reproduce(
    name: str,
    output: Path | None,
    replica: bool,
    keep_going: bool,
    revisions: Path | None,
    rows: int,
    seed: int,
    reader: kinprint.Reader,
) -> int:
    """Do the analyses of a public dispute again."""
    from kinprint.report.outputs import outputs
    from kinprint.report.views.reproduction import DATA

    folder = output if output is not None else Path("out") / name
    outputs([f"{folder}/"], data=DATA)
    found = kinprint.reproduce(
        name,
        replica=replica,
        revisions=revisions,
        rows=rows,
        seed=seed,
        reader=reader,
        language=language(),
    )
    files: list[Path] = []
    with saved(lambda: files.extend(found.save(f"{folder}/", progress=show_progress))):
        _print(found, folder, len(files))
    return 2 if found.missing and not keep_going else 0


def _print(found: kinprint.Reproduction, folder: Path, files: int) -> None:
    from kinprint.report.costs import size_in_words

    counts = {str(status): count for status, count in found.counts.items()}
    numbers = {
        "studies": len(found.studies),
        "models": len(found.models),
        "numbers": len(found.numbers),
        "measured": counts.get("measured", 0),
        "construction": counts.get("by construction", 0),
        "undetermined": counts.get("not determined", 0),
        "other": counts.get("other pairs", 0),
        "lacking": counts.get("not in the replica", 0) + counts.get("not found", 0),
    }
    click.echo(say("cli.reproduce.counts", **numbers))
    for name, reason in found.missing.items():
        click.echo(f"{printable(name)}: {printable(reason, 300)}", err=True)
    if found.missing:
        click.echo(say("cli.reproduce.lost", models=printable(", ".join(found.missing), 300)))
    cost = found.cost
    size = size_in_words(cost.bytes)
    click.echo(say("cli.reproduce.read", size=size, count=cost.requests, seconds=cost.seconds))
    if files:
        click.echo(say("cli.reproduce.files", count=files, folder=folder))
