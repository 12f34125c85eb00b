"""`kinprint study`: named comparisons of models, with what each can and cannot show."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kinprint import text
from kinprint.cli.asking import check_against, request_of
from kinprint.cli.language import language, say
from kinprint.cli.output import write_line
from kinprint.cli.reading import (
    ReadingOptions,
    fetcher_for,
    reading_options,
    report_failure,
)
from kinprint.cli.showing import print_lines
from kinprint.errors import KinprintError, printable

if TYPE_CHECKING:
    from kinprint.model.model import Model
    from kinprint.reader.fetch import Fetcher
    from kinprint.records import Cost
    from kinprint.studies.study import Request, Study
    from kinprint.text import Words

LIST_SCHEMA, PLAN_SCHEMA = "kinprint.studies/1", "kinprint.study-plan/1"


@click.group("study")
def command() -> None:
    """Run a named study of models; `kinprint study list` names them all.

    A study measures and reaches no verdict; each says what it can and cannot show.
    """


@command.command("list")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text")
def list_studies(form: str) -> None:
    """Name all studies: what each compares, and how many models it takes."""
    from kinprint.studies.registry import studies

    found, faults = list(studies().values()), studies().faults
    if form == "json":
        entries: dict[str, Any] = {"studies": [_entry(study) for study in found]}
        if faults:
            entries["faults"] = [str(fault) for fault in faults]
        write_line({"schema": LIST_SCHEMA, **entries})
        return
    from kinprint.report.views.terminal.layout import WIDTH, paragraph, wrapped

    first = max(len(study.name) for study in found)
    second = max(len(study.code) for study in found)
    third = max(len(_count(study)) for study in found)
    for study in found:
        head = f"{study.name:<{first}}  {study.code:<{second}}  {_count(study):>{third}}  "
        room = WIDTH - len(head)
        for number, line in enumerate(wrapped(_spoken(study.title), width=room)):
            click.echo((head if number == 0 else " " * len(head)) + line)
    click.echo()
    click.echo(
        say(
            "The third column is the number of models. `kinprint study show NAME` says more.",
            "셋째 열은 모델 수입니다. 자세한 설명은 `kinprint study show NAME`으로 보십시오.",
        )
    )
    for fault in faults:
        click.echo(paragraph(printable(fault.say(language()), 1000), ""))


@command.command("show")
@click.argument("name")
def show(name: str) -> None:
    """Say what the study NAME compares, shows and cannot show, and by which measures."""
    from kinprint.measure.measures import measures
    from kinprint.report.views.terminal.layout import paragraph
    from kinprint.studies.registry import study_named

    study = study_named(name)
    click.echo(f"{study.name} ({study.code}): {_spoken(study.title)}")
    for key, words in (
        ("report.study.shows", study.shows),
        ("report.study.cannot", study.cannot),
    ):
        click.echo(f"\n{text.say(key, language())}")
        click.echo(paragraph(_spoken(words), "  "))
    own = say("all layers", "모든 레이어")
    facts = [
        (say("Models", "모델"), _count(study)),
        (say("Tensors", "텐서"), ", ".join(study.roles)),
        (say("Layers", "레이어"), ", ".join(map(str, study.layers)) or own if study.roles else ""),
        (say("Tokenizers", "토크나이저"), say("are read", "읽음") if study.vocabulary else ""),
    ]
    click.echo()
    for title, told in facts:
        if told:
            click.echo(paragraph(f"{title}: {told}", ""))
    known = measures()
    for measure in study.measures:
        if measure in known:
            entry = known[measure]
            words_of = f"{measure}: {entry.title[language()]}. {entry.trap[language()]}"
            click.echo(paragraph(words_of, "  "))


@command.command("run")
@click.argument("name")
@click.argument("models", nargs=-1, metavar="MODEL...")
@click.option("--layers", metavar="LIST", help="Layers to look at, such as 0-45 or 10,20,30.")
@click.option("--roles", metavar="LIST", help="Tensors to look at, such as norm_in,k,v.")
@click.option("--measures", metavar="LIST", help="Measures to take, such as cosine,pearson.")
@click.option("--rows", type=click.IntRange(min=1), help="Rows of a matrix to sample.  [16]")
@click.option("--full", is_flag=True, help="Read matrices whole instead of sampling rows.")
@click.option("--seed", type=click.IntRange(min=0), default=0, help="Chooses the rows.  [0]")
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write data, tables, pictures and a page to read to this folder.",
)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text")
@click.option("--base", metavar="MODEL", help="What an adapter stands on.")
@click.option("--dry-run", is_flag=True, help="Show what reading would cost, and stop.")
@reading_options
def run(
    name: str,
    models: tuple[str, ...],
    form: str,
    base: str | None,
    dry_run: bool,
    output: Path | None,
    reading: ReadingOptions,
    **asked: Any,
) -> int:
    """Run the study NAME on each MODEL, and print what came out.

    Nothing is written unless a folder is given with -o. With --format json, one object.
    """
    from kinprint.studies.registry import study_named

    study = study_named(name)
    request = request_of(**asked)
    started = time.monotonic()
    with fetcher_for(reading) as fetcher:
        opened, failed = _open(models, fetcher, base)
        if failed:
            return failed
        check_against(request, opened)
        if dry_run:
            _print_plan(study, opened, request, fetcher, form)
        else:
            _carry_out(study, opened, request, fetcher, form, output, started)
    return 0


def _carry_out(
    study: Study,
    models: Sequence[Model],
    request: Request,
    fetcher: Fetcher,
    form: str,
    output: Path | None,
    started: float,
) -> None:
    from kinprint.records import Cost
    from kinprint.report.build.study import study_document
    from kinprint.report.outputs import write_folder
    from kinprint.report.schema import settled
    from kinprint.report.views.terminal.study import study_lines
    from kinprint.studies.running import run_studies

    (result,) = run_studies([study], models, request)
    spent = fetcher.spent
    cost = Cost(spent.bytes, spent.requests, time.monotonic() - started)
    refs = [model.checkpoint.ref for model in models]
    document = settled(study_document(result, study, request, refs, cost))
    if output is not None:
        write_folder(document, output)
    if form == "json":
        write_line(document)
        return
    print_lines(study_lines(document, language()))
    click.echo(_cost_line(cost))
    if output is not None:
        page = output / ("README.ko.md" if language() == "ko" else "README.md")
        click.echo(say(f"written to {page}", f"{page}에 썼습니다"))


def _print_plan(
    study: Study, models: Sequence[Model], request: Request, fetcher: Fetcher, form: str
) -> None:
    from kinprint.cli.plan import cost_in_words
    from kinprint.studies.running import plan_studies

    cost = plan_studies([study], models, request)
    spent = fetcher.spent
    if form == "json":
        write_line(
            {
                "schema": PLAN_SCHEMA,
                "study": study.name,
                "models": [model.checkpoint.ref.given for model in models],
                "bytes": cost.bytes,
                "requests": cost.requests,
                "spent": {"bytes": spent.bytes, "requests": spent.requests},
            }
        )
        return
    if all(model.checkpoint.ref.kind == "local" for model in models):
        click.echo(f"{study.name}: " + say("read in place", "있는 자리에서 바로 읽습니다"))
        return
    words, known = cost_in_words(cost), cost_in_words(spent)
    click.echo(
        f"{study.name}: {words}" + say("; knowing this took ", "; 알아보는 데 든 양: ") + known
    )


def _open(models: Sequence[str], fetcher: Fetcher, base: str | None) -> tuple[list[Model], int]:
    """All models, their headers read side by side; those that fail are named on stderr."""
    from kinprint.model.opening import open_model
    from kinprint.reader.checkpoint import open_checkpoint
    from kinprint.reader.fetch import side_by_side

    def open_one(given: str) -> Model | KinprintError:
        try:
            return open_model(open_checkpoint(given, fetcher), base)
        except KinprintError as error:
            return error

    found: list[Model] = []
    said: set[str] = set()
    failed = 0
    for given, one in zip(models, side_by_side(open_one, models), strict=True):
        if not isinstance(one, KinprintError):
            found.append(one)
        elif str(one) not in said:  # a budget is spent for all of them at once
            said.add(str(one))
            failed = report_failure(one, given)
    return found, failed


def _count(study: Study) -> str:
    if study.most is None:
        return f"{study.least}+"
    return str(study.least) if study.least == study.most else f"{study.least}-{study.most}"


def _spoken(words: Words) -> str:
    return printable(words.ko if language() == "ko" else words.en, 5000)


def _entry(study: Study) -> dict[str, Any]:
    return {
        "name": study.name,
        "code": study.code,
        "title": _both(study.title),
        "shows": _both(study.shows),
        "cannot": _both(study.cannot),
        "models": {"least": study.least, "most": study.most},
        "roles": study.roles,
        "layers": study.layers,
        "measures": study.measures,
        "vocabulary": study.vocabulary,
    }


def _both(words: Words) -> dict[str, str]:
    return {"en": words.en, "ko": words.ko}


def _cost_line(cost: Cost) -> str:
    from kinprint.cli.plan import cost_in_words

    if not cost.requests:
        place = say("nothing was read over the network", "네트워크로 읽은 것은 없습니다")
        return f"{place}, {cost.seconds:.1f} s"
    return f"{say('read', '읽은 양:')} {cost_in_words(cost)}, {cost.seconds:.1f} s"
