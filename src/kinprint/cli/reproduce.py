"""`kinprint reproduce`: a public dispute's analyses, done again, with the published numbers."""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

import kinprint
from kinprint import text
from kinprint.cli.commands import Whole, command, option
from kinprint.cli.language import say
from kinprint.cli.reading import reading_options
from kinprint.errors import BadOption, KinprintError, printable
from kinprint.mirror.loopback import loopback_hub
from kinprint.verbs.reader import fetcher_of

if TYPE_CHECKING:
    from kinprint.model.model import Model
    from kinprint.reader.fetch import Fetcher
    from kinprint.report.views.reproduction import Reproduced
    from kinprint.studies.reproduction import Reproduction


@command("reproduce")
@click.argument("name")
@option("-o", "--output", metavar="FOLDER", type=Path)
@option("--replica", is_flag=True)
@option("--revisions", metavar="FILE", type=Path)
@option("--rows", metavar="N", type=Whole(min=1), default=16)
@option("--seed", metavar="N", type=Whole(min=0), default=0)
@reading_options
def reproduce(
    name: str,
    output: Path | None,
    replica: bool,
    revisions: Path | None,
    rows: int,
    seed: int,
    reader: kinprint.Reader,
) -> None:
    """Do the analyses of a public dispute again."""
    from kinprint.studies.reproduction import reproduction

    what = reproduction(name)
    folder = output if output is not None else Path("out") / name
    pinned = _pinned(revisions, what)
    with _place(replica, what):
        done = _run(what, fetcher_of(reader), pinned, replica, rows, seed)
    from kinprint.report.views.reproduction import write_reproduction

    written = write_reproduction(done, folder)
    _print(done, folder, len(written))


@contextlib.contextmanager
def _place(replica: bool, what: Reproduction) -> Iterator[None]:
    """Where the models are: on the Hub, or built now and served by this machine."""
    if not replica:
        yield
        return
    from kinprint.replica.build import build_replicas

    click.echo(say("cli.reproduce.building"), err=True)
    names = [what.replicas.get(key, repository) for key, repository in what.models.items()]
    with tempfile.TemporaryDirectory() as built:
        build_replicas(Path(built), names)
        with loopback_hub(Path(built)):
            yield


def _pinned(file: Path | None, what: Reproduction) -> dict[str, str]:
    """Commits to read, by the model's short name."""
    if file is None:
        return {}
    try:
        told = json.loads(file.read_text("utf-8"))
        found = {name: told[name]["commit"] for name in what.models if name in told}
    except (ValueError, KeyError, TypeError, AttributeError):
        cause = text.message("cause.reproduce.revisions")
        raise BadOption(option="revisions", value=str(file), cause=cause) from None
    return {name: commit for name, commit in found.items() if isinstance(commit, str)}


def _run(
    what: Reproduction,
    fetcher: Fetcher,
    pinned: Mapping[str, str],
    replica: bool,
    rows: int,
    seed: int,
) -> Reproduced:
    from kinprint.report.views.reproduction import Reproduced
    from kinprint.studies.reproduction.published import compare_published
    from kinprint.studies.running import run_tasks
    from kinprint.studies.study import Request

    models, missing = open_all(what, fetcher, pinned, replica=replica)
    tasks = what.tasks(models, Request(rows=rows, seed=seed))
    results = dict(zip(tasks, run_tasks(list(tasks.values())), strict=True))
    return Reproduced(
        what,
        tasks,
        results,
        compare_published(results, what.numbers, replica),
        {name: model.checkpoint.ref for name, model in models.items()},
        missing,
        replica,
        fetcher.spent,
    )


def open_all(
    what: Reproduction, fetcher: Fetcher, pinned: Mapping[str, str], *, replica: bool
) -> tuple[dict[str, Model], dict[str, str]]:
    """All models side by side; one that cannot be had is named, unless nothing works without."""
    from kinprint.model.opening import open_model
    from kinprint.reader.checkpoint import open_checkpoint
    from kinprint.reader.fetch import side_by_side

    def opened(name: str) -> Model | KinprintError:
        repository = what.replicas.get(name) if replica else None
        place = repository or what.models[name]
        commit = f"@{pinned[name]}" if name in pinned else ""
        try:
            return open_model(open_checkpoint(place + commit, fetcher))
        except KinprintError as error:
            if name in what.needed:
                raise
            return error

    found = dict(zip(what.models, side_by_side(opened, list(what.models)), strict=True))
    missing = {name: str(one) for name, one in found.items() if isinstance(one, KinprintError)}
    return {name: one for name, one in found.items() if not isinstance(one, KinprintError)}, missing


def _print(done: Reproduced, folder: Path, files: int) -> None:
    from collections import Counter

    from kinprint.reader.sizes import in_words

    counted = Counter(str(one.status) for one in done.numbers)
    counts = {
        "studies": len(done.results),
        "models": len(done.sources),
        "numbers": len(done.numbers),
        "measured": counted["measured"],
        "construction": counted["by construction"],
        "undetermined": counted["not determined"],
        "lacking": counted["not in the replica"] + counted["not found"],
    }
    click.echo(say("cli.reproduce.counts", **counts))
    for name, reason in done.missing.items():
        click.echo(f"{printable(name)}: {printable(reason, 300)}", err=True)
    cost = done.cost
    size = in_words(cost.bytes)
    click.echo(say("cli.reproduce.read", size=size, count=cost.requests, seconds=cost.seconds))
    click.echo(say("cli.reproduce.files", count=files, folder=folder))
