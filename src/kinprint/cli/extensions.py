"""`kinprint extensions`: what other packages add, and what is wrong with it."""

from __future__ import annotations

import json

import click
from msgspec.structs import asdict

import kinprint
from kinprint.cli.commands import command
from kinprint.cli.language import language, say
from kinprint.cli.output import form_option
from kinprint.errors import printable

SCHEMA = "kinprint.extensions/1"


@command("extensions")
@form_option
def extensions(format: str) -> None:
    """List what other packages add."""
    if format == "json":
        listed = [asdict(one) for one in kinprint.installed_extensions()]
        click.echo(json.dumps({"schema": SCHEMA, "extensions": listed}, ensure_ascii=False))
        return
    found = kinprint.installed_extensions(language())
    for one in found:
        fault = "" if one.fault is None else f": {one.fault}"
        click.echo(printable(f"{one.group:<22} {one.name} ({one.package}){fault}"))
    if not found:
        click.echo(say("cli.extensions.none"))
