"""`kinprint cache`: what was read before, how much disk it takes, and how to be rid of it."""

from __future__ import annotations

import click

import kinprint
from kinprint.cli.commands import Command, Group
from kinprint.cli.language import say
from kinprint.errors import printable


@click.command("cache", cls=Group, invoke_without_command=True)
@click.pass_context
def cache(ctx: click.Context) -> None:
    """Show what was read before and kept."""
    if ctx.invoked_subcommand is not None:
        return
    from kinprint.report.costs import size_in_words

    contents = kinprint.cached()
    for model in contents.models:
        name, size = printable(model.name), f"{size_in_words(model.disk_bytes):>9}"
        click.echo(say("cli.cache.model", size=size, name=name, count=model.files))
    if contents.answers:
        size = f"{size_in_words(contents.answers_bytes):>9}"
        click.echo(say("cli.cache.answers", size=size, count=contents.answers))
    size = f"{size_in_words(contents.disk_bytes):>9}"
    click.echo(say("cli.cache.total", size=size, folder=printable(str(contents.folder), 1000)))


@cache.command("clear", cls=Command, key=("cache", "clear"))
def clear() -> None:
    """Remove everything that was kept."""
    from kinprint.report.costs import size_in_words

    click.echo(say("cli.cache.freed", size=size_in_words(kinprint.clear_cache())))
