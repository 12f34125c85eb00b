"""`kinprint reproduce`: a public dispute's analyses, done again, with the published numbers."""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kinprint.cli.language import say
from kinprint.cli.loopback import loopback_hub
from kinprint.cli.reading import ReadingOptions, fetcher_for, reading_options
from kinprint.errors import BadOption, KinprintError, printable

if TYPE_CHECKING:
    from kinprint.model.model import Model
    from kinprint.reader.fetch import Fetcher
    from kinprint.records import Cost
    from kinprint.report.views.reproduction import Reproduced
    from kinprint.studies.reproduction import Reproduction


@click.command("reproduce")
@click.argument("name")
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for everything.  [out/NAME]",
)
@click.option(
    "--replica",
    is_flag=True,
    help="Offline, on sparse replicas made from the published figures; not the real models.",
)
@click.option(
    "--revisions",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Read the commits that an earlier run wrote to revisions.json.",
)
@click.option("--rows", type=click.IntRange(min=1), default=16, help="Rows of a matrix.  [16]")
@click.option("--seed", type=click.IntRange(min=0), default=0, help="Chooses the rows.  [0]")
@reading_options
def command(
    name: str,
    output: Path | None,
    replica: bool,
    revisions: Path | None,
    rows: int,
    seed: int,
    reading: ReadingOptions,
) -> None:
    """Do the analyses of a public dispute again: NAME is solar-vs-glm.

    Every study, table and figure of the three analyses, under the names of their files, with
    the published number and the difference beside every number.
    """
    from kinprint.studies.reproduction import reproduction

    what = reproduction(name)
    folder = output if output is not None else Path("out") / name
    pinned = _pinned(revisions, what)
    with _place(replica, what), fetcher_for(reading) as fetcher:
        done = _run(what, fetcher, pinned, replica, rows, seed)
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

    click.echo(
        say(
            "Building sparse replicas of the models; these are NOT the real models.",
            "모델의 희소 복제본을 만듭니다. 실제 모델이 아닙니다.",
        ),
        err=True,
    )
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
        cause = "it is not what `kinprint reproduce` writes to revisions.json"
        raise BadOption(option="--revisions", value=str(file), cause=cause) from None
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

    counted: Any = Counter(one.status for one in done.numbers)
    click.echo(
        say(
            f"{len(done.results)} studies of {len(done.sources)} models; of "
            f"{len(done.numbers):,} published numbers {counted['measured']:,} measured, "
            f"{counted['by construction']:,} by construction, "
            f"{counted['not determined']:,} not determined, "
            f"{counted['not in the replica'] + counted['not found']:,} not found.",
            f"모델 {len(done.sources)}개에 대한 연구 {len(done.results)}건. 발표된 수치 "
            f"{len(done.numbers):,}개 가운데 측정 {counted['measured']:,}, 재구성에 쓰인 값 "
            f"{counted['by construction']:,}, 정해지지 않음 {counted['not determined']:,}, "
            f"측정값 없음 {counted['not in the replica'] + counted['not found']:,}.",
        )
    )
    for name, reason in done.missing.items():
        click.echo(f"{printable(name)}: {printable(reason, 300)}", err=True)
    cost: Cost = done.cost
    click.echo(
        say(
            f"Read {in_words(cost.bytes)} in {cost.requests:,} requests, {cost.seconds:.1f} s.",
            f"{in_words(cost.bytes)}를 요청 {cost.requests:,}번, {cost.seconds:.1f}초에 읽음.",
        )
    )
    click.echo(say(f"{files} files in {folder}", f"{folder}에 파일 {files}개"))
