"""`kinprint cache`: what was read before, how much disk it takes, and how to be rid of it."""

from __future__ import annotations

import click

from kinprint.errors import printable


@click.group("cache", invoke_without_command=True)
@click.pass_context
def command(ctx: click.Context) -> None:
    """Show what was read before and kept; `kinprint cache clear` removes it."""
    if ctx.invoked_subcommand is not None:
        return
    from kinprint.reader.cache import Cache
    from kinprint.reader.sizes import in_words

    cache = Cache.default()
    models: dict[str, tuple[int, int]] = {}
    for item in cache.items():
        files, used = models.get(item.name, (0, 0))
        models[item.name] = (files + 1, used + item.disk_bytes)
    total = sum(used for _, used in models.values())
    for name, (files, used) in sorted(models.items(), key=lambda pair: -pair[1][1]):
        click.echo(f"{in_words(used):>9}  {printable(name)} ({files} file{'s' * (files != 1)})")
    click.echo(f"{in_words(total):>9}  in {cache.folder}")


@command.command("clear")
def clear() -> None:
    """Remove everything that was kept. Models are not touched; reading costs anew."""
    from kinprint.reader.cache import Cache
    from kinprint.reader.sizes import in_words
    from kinprint.source.listing import forget_all

    forget_all()
    click.echo(f"{in_words(Cache.default().clear())} freed.")
