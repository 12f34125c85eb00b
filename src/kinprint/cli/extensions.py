"""`kinprint extensions`: what other packages add, and what is wrong with it."""

from __future__ import annotations

import json
from importlib import import_module

import click

from kinprint import extensions, text
from kinprint.cli.language import language
from kinprint.errors import printable

SCHEMA = "kinprint.extensions/1"

# The groups of entry points, and what their objects are.
_KINDS = {
    extensions.FORMATS: "kinprint.reader.formats.registry:Format",
    extensions.SOURCES: "kinprint.source.opening:SourceKind",
    extensions.ARCHITECTURES: "kinprint.model.architectures:Architecture",
    extensions.MEASURES: "kinprint.measure.measures:Measure",
    extensions.STUDIES: "kinprint.studies.study:Study",
    extensions.TESTS: "kinprint.lineage.tests.registry:LineageTest",
    extensions.EXPORTS: "kinprint.report.exports:Export",
}


@click.command("extensions")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text")
def command(form: str) -> int:
    """List what other packages add: formats, sources, measures, studies, tests and more.

    Each is loaded to see whether it can be used.
    """
    found = [(group, one) for group in _KINDS for one in _extensions(group)]
    if form == "json":
        listed = [
            {
                "group": group,
                "name": one.name,
                "package": one.package,
                "object": one.value,
                "fault": None if one.fault is None else str(one.fault),
            }
            for group, one in found
        ]
        click.echo(json.dumps({"schema": SCHEMA, "extensions": listed}, ensure_ascii=False))
        return 0
    for group, one in found:
        said = "" if one.fault is None else ": " + one.fault.say(language())
        click.echo(printable(f"{group:<22} {one.name} ({one.package}){said}"))
    if not found:
        click.echo(text.say("cli.extensions.none", language()))
    return 0


def _extensions(group: str) -> tuple[extensions.Extension[object], ...]:
    module, _, name = _KINDS[group].partition(":")
    kind: type[object] = getattr(import_module(module), name)
    return extensions.extensions(group, kind)
