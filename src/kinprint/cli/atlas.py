"""`kinprint atlas`: fingerprints of many models, kept, searched, verified, passed on."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import click

import kinprint
from kinprint import text
from kinprint.cli.commands import Command, Group, Whole, option
from kinprint.cli.language import language, say
from kinprint.cli.output import form_option, show, write_line
from kinprint.cli.reading import SEED, name_failure, reading_options, seed_option, show_progress
from kinprint.errors import UsageError, printable
from kinprint.records import Standing

_SEEDS = 5  # so many are named at most


@click.command("atlas", cls=Group)
def atlas() -> None:
    """Keep fingerprints of many models."""


def _command(name: str) -> Callable[[Callable[..., Any]], click.Command]:
    """Make a command of the group that takes the place of an atlas."""

    def made(function: Callable[..., Any]) -> click.Command:
        with_place = option("--atlas", "place", metavar="PLACE")(form_option(function))
        return atlas.command(name, cls=Command, key=("atlas", name))(with_place)

    return made


def _where_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say which processes do the work."""
    on_cluster = option("--cluster", metavar="ADDRESS")(function)
    return option("--jobs", metavar="N", type=Whole(min=1))(on_cluster)


@_command("add")
@click.argument("models", nargs=-1, required=True, metavar="MODEL...")
@seed_option
@option("--base", metavar="MODEL")
@_where_options
@reading_options
def add(**asked: Any) -> int:
    """Add models."""
    return _build(search=None, limit=1, **asked)


@_command("build")
@click.argument("models", nargs=-1, metavar="[SOURCE...]")
@option("--search", metavar="WORDS")
@option("--limit", metavar="N", type=Whole(min=1), default=100)
@seed_option
@option("--base", metavar="MODEL")
@_where_options
@reading_options
def build(**asked: Any) -> int:
    """Add all models of lists, of folders, and of a search of the Hub."""
    if not asked["models"] and asked["search"] is None:
        cause = text.message("cause.atlas.nothing-to-add", option="search")
        raise UsageError(cause=cause)
    return _build(**asked)


def _build(
    place: str | None,
    models: tuple[str, ...],
    search: str | None,
    limit: int,
    seed: int,
    base: str | None,
    jobs: int | None,
    cluster: str | None,
    format: str,
    reader: kinprint.Reader,
) -> int:
    into = kinprint.Atlas(place)
    found = into.build(
        models,
        search=search,
        limit=limit,
        seed=seed,
        base=base,
        jobs=jobs,
        cluster=cluster,
        reader=reader,
    )
    failed = [one for one in found if one.error is not None]
    if format == "json":
        _write_json(
            {"given": one.given, "entry": one.id or None, "there": one.there, "bytes": one.bytes,
             "replaced": one.replaced, "error": None if one.error is None else str(one.error)}
            for one in found
        )  # fmt: skip
    else:
        from kinprint.report.costs import size_in_words

        for one in found:
            if one.error is None:
                key = "replaced" if one.replaced else "there" if one.there else "added"
                name = printable(one.given, 1000)
                size = size_in_words(one.bytes)
                fields = {} if key == "there" else {"size": size}
                click.echo(say(f"cli.atlas.{key}", name=name, **fields))
        if search is not None:
            count = sum(one.searched for one in found)
            click.echo(say("cli.atlas.searched", words=printable(search), count=count))
        counts = {"added": len(found) - len(failed), "failed": len(failed)}
        click.echo(say("cli.atlas.built", **counts, models=into.contents().models))
    for one in failed:
        assert one.error is not None
        name_failure(one.error, one.given)
    return 2 if failed else 0


@_command("search")
@click.argument("model", metavar="MODEL")
@option("-n", "--count", metavar="N", type=Whole(min=1), default=10)
@seed_option
@option("--base", metavar="MODEL")
@reading_options
def search(
    place: str | None,
    model: str,
    count: int,
    seed: int,
    base: str | None,
    format: str,
    reader: kinprint.Reader,
) -> None:
    """Rank the models of an atlas by their keys."""
    found = kinprint.Atlas(place).search(model, count, seed=seed, base=base, reader=reader)
    if format == "json":
        _write_json(_entry(one) for one in found)
        return
    for one in found:
        name = printable(one.name, 1000)
        click.echo(say("cli.atlas.match", likeness=f"{one.likeness:6.3f}", name=name))
    click.echo(say("cli.atlas.ranked"))


@_command("tree")
@option("--shortlist", metavar="N", type=Whole(min=1), default=8)
@option("--seed", metavar="N", type=SEED)
@option("--declared", metavar="FILE")
@option("-o", "--output", multiple=True, metavar="PATH")
@_where_options
def tree(
    place: str | None,
    shortlist: int,
    seed: int | None,
    declared: str | None,
    jobs: int | None,
    cluster: str | None,
    output: tuple[str, ...],
    format: str,
) -> int:
    """Show who was made from whom."""
    kinprint.FamilyTree.check(output)
    found = kinprint.Atlas(place).tree(
        seed=seed,
        shortlist=shortlist,
        declared=declared,
        jobs=jobs,
        cluster=cluster,
        progress=show_progress,
        language=language(),
    )
    show(found, format, output)
    if not found.document.models:
        tell_empty(place, seed)
    return 2 if found.document.left_out or found.document.failed else 0


@_command("stats")
@option("--declared", metavar="FILE")
def stats(place: str | None, declared: str | None, format: str) -> int:
    """Show what an atlas holds."""
    found = kinprint.Atlas(place).contents(declared=declared)
    if format == "json":
        _write_json(
            [{"place": found.place, "models": found.models, "declared": found.declared,
              "architectures": dict(found.architectures), "broken": len(found.faults)}]
        )  # fmt: skip
    else:
        for name, count in found.architectures.items():
            kind = printable(name) or say("cli.atlas.no-architecture")
            click.echo(say("cli.atlas.architecture", count=f"{count:>7}", name=kind))
        where = printable(found.place, 1000)
        click.echo(
            say("cli.atlas.total", models=found.models, declared=found.declared, place=where)
        )
    return _tell_faults(found.faults)


@_command("verify")
def verify(place: str | None, format: str) -> int:
    """Hold fingerprints against their models."""
    found = kinprint.Atlas(place).verify(progress=show_progress)
    if format == "json":
        _write_json(
            {"entry": one.id, "name": one.name, "standing": one.standing.value,
             "error": None if one.error is None else str(one.error)}
            for one in found
        )  # fmt: skip
    else:
        for one in found:
            name = printable(one.name or one.id, 1000)
            click.echo(say(f"cli.atlas.standing.{one.standing}", name=name))
    for one in found:
        if one.error is not None:
            name_failure(one.error, one.name or one.id)
    return 0 if all(one.standing is Standing.RIGHT for one in found) else 2


@_command("pull")
@click.argument("source", metavar="PLACE")
def pull(place: str | None, source: str, format: str) -> int:
    """Take over the fingerprints of another atlas."""
    return _pass_on(source, place, format)


@_command("export")
@click.argument("target", metavar="PLACE")
def export(place: str | None, target: str, format: str) -> int:
    """Put all fingerprints into another atlas."""
    return _pass_on(place, target, format)


def tell_empty(place: str | None, seed: int | None) -> None:
    """Say what to do about an atlas in which nothing could be compared."""
    atlas = kinprint.Atlas(place)
    where, seeds = printable(atlas.place, 1000), sorted({one.seed for one in atlas.entries()})
    if seed is None or seed in seeds or not seeds:
        click.echo(say("cli.atlas.empty", place=where), err=True)
        return
    options = " / ".join(f"--seed {one}" for one in seeds[:_SEEDS])
    click.echo(say("cli.atlas.other-seeds", place=where, options=options), err=True)


def _pass_on(source: str | None, target: str | None, format: str) -> int:
    into = kinprint.Atlas(target)
    taken, faults = into.pull(kinprint.Atlas(source).place)
    if format == "json":
        _write_json([{"place": into.place, "taken": taken, "broken": len(faults)}])
    else:
        click.echo(say("cli.atlas.taken", count=taken, place=printable(into.place, 1000)))
    return _tell_faults(faults)


def _tell_faults(faults: Iterable[kinprint.KinprintError]) -> int:
    code = 0
    for error in faults:
        name_failure(error, str(error.fields.get("entry", "")))
        code = 2
    return code


def _entry(one: kinprint.AtlasEntry) -> dict[str, object]:
    return {
        "entry": one.id, "given": one.given, "name": one.name, "commit": one.commit or None,
        "seed": one.seed, "architecture": one.architecture, "claims": list(one.claims),
        "likeness": one.likeness,
    }  # fmt: skip


def _write_json(rows: Iterable[dict[str, object]]) -> None:
    """A line of JSON a row."""
    from kinprint.report.schema import encode_line

    for row in rows:
        write_line(encode_line(row))
