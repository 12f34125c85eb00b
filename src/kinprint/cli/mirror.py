"""`kinprint mirror`: a folder of models, served as the Hub serves them."""

from __future__ import annotations

from pathlib import Path

import click

from kinprint import text
from kinprint.cli.commands import Real, Whole, command, option
from kinprint.cli.language import say
from kinprint.errors import BadOption

_PORTS = Whole(0, 65535)


@command("mirror")
@click.argument("folder", type=Path)
@option("--host", metavar="ADDRESS", default="127.0.0.1")
@option("--port", metavar="N", default=8000, type=_PORTS)
@option("--storage-port", metavar="N", default=0, type=_PORTS)
@option("--token", metavar="TOKEN")
@option("--guest-token", metavar="TOKEN")
@option("--gated", multiple=True, metavar="MODEL")
@option("--private", multiple=True, metavar="MODEL")
@option("--latency-ms", metavar="MS", default=0.0, type=Real(0))
@option("--mbit", metavar="N", type=Real(0, min_open=True))
@option("--fault", "faults", multiple=True, metavar="KIND[,NAME=VALUE…]")
@option("--address-ttl", metavar="SECONDS", default=3600.0, type=Real(0))
@option("--hash-limit-gib", metavar="GIB", default=4.0, type=Real(0))
def mirror(
    folder: Path,
    latency_ms: float,
    mbit: float | None,
    faults: tuple[str, ...],
    hash_limit_gib: float,
    **settings: object,
) -> None:
    """Serve a folder of models over the Hub's protocol."""
    from kinprint.mirror import MirrorServer, parse_fault

    server = MirrorServer(
        folder,
        latency=latency_ms / 1e3,
        bandwidth=None if mbit is None else mbit * 1e6 / 8,
        faults=[parse_fault(given) for given in faults],
        hash_limit=int(hash_limit_gib * (1 << 30)),
        **settings,  # type: ignore[arg-type]
    )
    names = server.library.ids()
    if not names:
        cause = text.message("cause.mirror.no-models")
        raise BadOption(option="folder", value=server.library.root, cause=cause)
    server.bind()
    shown = ", ".join(names[:5]) + (", …" if len(names) > 5 else "")
    root = server.library.root
    click.echo(say("cli.mirror.serving", count=len(names), folder=root, names=shown), err=True)
    click.echo(f"export HF_ENDPOINT={server.endpoint}", err=True)
    click.echo(say("cli.mirror.exposed" if server.exposed else "cli.mirror.local"), err=True)
    try:
        server.run()
    except KeyboardInterrupt:
        click.echo(say("cli.mirror.stopped"), err=True)
