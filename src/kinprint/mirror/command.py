"""`kinprint mirror`: the command line of the mirror, light enough to be always loaded.

The server and what it needs are imported when the command runs, not when it is named.
"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from kinprint.errors import KinprintError


@click.command("mirror")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    default=8000,
    show_default=True,
    type=click.IntRange(0, 65535),
    help="Port of the hub; 0 takes any free one.",
)
@click.option(
    "--storage-port", default=0, type=click.IntRange(0, 65535), help="Port of its storage."
)
@click.option("--token", help="Token that opens gated and private models.")
@click.option("--guest-token", help="Valid token that opens neither.")
@click.option("--gated", multiple=True, metavar="MODEL", help="Gate a model, or a glob of them.")
@click.option("--private", multiple=True, metavar="MODEL", help="Hide a model from strangers.")
@click.option(
    "--latency-ms", default=0.0, type=click.FloatRange(0), help="Delay before each answer."
)
@click.option("--mbit", type=click.FloatRange(0, min_open=True), help="Megabits/s a connection.")
@click.option(
    "--fault",
    "faults",
    multiple=True,
    metavar="KIND[,NAME=VALUE…]",
    help="Fail on purpose, e.g. status=503,where=*.safetensors,times=2.",
)
@click.option(
    "--address-ttl",
    default=3600.0,
    show_default=True,
    help="Seconds for which a storage address is valid.",
)
@click.option(
    "--hash-limit-gib",
    default=4.0,
    show_default=True,
    type=click.FloatRange(0),
    help="Larger files get no sha256.",
)
def mirror_command(
    folder: Path,
    host: str,
    port: int,
    storage_port: int,
    token: str | None,
    guest_token: str | None,
    gated: tuple[str, ...],
    private: tuple[str, ...],
    latency_ms: float,
    mbit: float | None,
    faults: tuple[str, ...],
    address_ttl: float,
    hash_limit_gib: float,
) -> None:
    """Serve a FOLDER of models over the Hugging Face Hub's protocol.

    FOLDER/name and FOLDER/org/name are models; name@branch is another branch of one. Point
    HF_ENDPOINT at the address that is printed, and any client of the Hub reads from here.
    """
    from kinprint.mirror.faults import parse_fault
    from kinprint.mirror.server import MirrorServer, serve

    serve(
        MirrorServer(
            folder,
            host=host,
            port=port,
            storage_port=storage_port,
            token=token,
            guest_token=guest_token,
            gated=gated,
            private=private,
            latency=latency_ms / 1e3,
            bandwidth=None if mbit is None else mbit * 1e6 / 8,
            faults=[parse_fault(text) for text in faults],
            address_ttl=address_ttl,
            hash_limit=int(hash_limit_gib * (1 << 30)),
        )
    )


def main() -> None:
    """Run the command alone, for `python -m kinprint.mirror`."""
    try:
        mirror_command.main(prog_name="python -m kinprint.mirror")
    except KinprintError as error:
        print(error, file=sys.stderr)
        sys.exit(error.exit_code)
