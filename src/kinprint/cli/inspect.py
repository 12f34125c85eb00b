"""`kinprint inspect`: what a model holds, from its headers alone."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import click

from kinprint.cli.language import language
from kinprint.cli.output import count_of, write_line
from kinprint.cli.reading import (
    ReadingOptions,
    fetcher_for,
    reading_options,
    report_failure,
)
from kinprint.errors import KinprintError, printable
from kinprint.records import Cost
from kinprint.text import Message

if TYPE_CHECKING:
    from kinprint.model.inspection import Inspection
    from kinprint.reader.fetch import Fetcher

_WARNINGS = 5


@click.command("inspect")
@click.argument("models", nargs=-1, required=True, metavar="MODEL...")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text")
@click.option("--dry-run", is_flag=True, help="Show what reading the headers would cost.")
@reading_options
def command(models: tuple[str, ...], form: str, dry_run: bool, reading: ReadingOptions) -> int:
    """Show architecture, dimensions, tensors, number formats and files of each MODEL.

    Only headers and small files are read. With --format json, one object a model, one a
    line. A model that cannot be read is named on stderr; the others are shown all the same.
    """
    failed = 0
    with fetcher_for(reading) as fetcher:
        for number, model in enumerate(models):
            try:
                if dry_run:
                    _show_cost(model, fetcher, form)
                else:
                    _show(model, fetcher, form, first=number == 0)
            except KinprintError as error:
                failed = report_failure(error, model)
    return failed


def _show_cost(model: str, fetcher: Fetcher, form: str) -> None:
    from kinprint.cli.plan import describe, write_plan
    from kinprint.reader.checkpoint import open_checkpoint
    from kinprint.reader.formats.registry import SAFETENSORS

    checkpoint = open_checkpoint(model, fetcher)
    plans = fetcher.plan(checkpoint.header_wants())
    if form == "json":
        write_plan(checkpoint, "headers", sum((plan.cost for plan in plans), Cost()))
        return
    # Only safetensors say beforehand how long their headers are.
    least = "" if checkpoint.format == SAFETENSORS else "at least "
    files = count_of(len(checkpoint.shards), "file")
    click.echo(f"{printable(model)}: {least}{describe(plans)} for the headers of {files}")


def _show(model: str, fetcher: Fetcher, form: str, *, first: bool) -> None:
    from kinprint.model.inspection import inspect_checkpoint
    from kinprint.reader.checkpoint import open_checkpoint

    started = time.monotonic()
    checkpoint = open_checkpoint(model, fetcher)
    found = inspect_checkpoint(checkpoint)
    source = checkpoint.source.spent
    spent = Cost(source.bytes, source.requests, time.monotonic() - started)
    if form == "json":
        from kinprint.report.build.inspection import inspection_document

        write_line(inspection_document(found, spent))
        return
    if not first:
        click.echo()
    _print(found, spent)


def _print(found: Inspection, spent: Cost) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    def shown(text: str | Message) -> str:
        said = text.say(language()) if isinstance(text, Message) else text
        return escape(printable(said))

    from kinprint.model.inspection import group_tensors
    from kinprint.reader.sizes import in_words

    terminal = sys.stdout.isatty()
    console = Console(highlight=False, soft_wrap=not terminal, width=None if terminal else 160)
    commit = f" at {found.ref.commit[:12]}" if found.ref.commit else ""
    console.print(f"[bold]{shown(found.ref.name)}[/bold]{shown(commit)}")
    for label in found.model.checkpoint.labels:
        console.print(f"[bold red]{shown(label)}[/bold red]")
    summary = Table(box=None, pad_edge=False, show_header=False)
    summary.add_column(style="dim")
    summary.add_column(overflow="fold")
    for title, text in _summary(found):
        summary.add_row(title, shown(text))
    console.print(summary)
    console.print()
    table = Table(box=None, pad_edge=False, header_style="dim")
    for title in ("tensor", "role", "shape", "dtype", "count"):
        table.add_column(title, justify="right" if title == "count" else "left", overflow="fold")
    for group in group_tensors(found.tensor_map):
        shape = " × ".join(map(str, group.shape)) or "scalar"
        table.add_row(
            shown(group.pattern), shown(group.role), shape, group.dtype, f"{group.count:,}"
        )
    console.print(table)
    warnings = found.tensor_map.warnings
    for warning in warnings[:_WARNINGS]:
        console.print(f"warning: {shown(warning)}")
    if len(warnings) > _WARNINGS:
        console.print(f"{len(warnings) - _WARNINGS} more warnings are in --format json")
    for other in found.model.checkpoint.choice.others:
        console.print(f"not read: {shown(other.label)} (another set of weights in the same place)")
    for note in found.model.checkpoint.notes:
        console.print(f"note: {shown(note)}")
    if found.ref.kind != "local":
        cost = f"{in_words(spent.bytes)} of {in_words(found.nbytes)}"
        requests = count_of(spent.requests, "request")
        console.print(f"[dim]read {cost} in {requests}, {spent.seconds:.1f} s[/dim]")


def _summary(found: Inspection) -> list[tuple[str, str]]:
    """What a model is, a line each: family, sizes, and what is unusual about its storage."""
    from kinprint.reader.sizes import in_words

    shape = found.geometry
    names = found.tensor_map.family
    family = " ".join(filter(None, (shape.architecture, f"({shape.family})" * bool(shape.family))))
    heads = [
        f"{shape.heads}" if shape.heads else "",
        f"{shape.kv_heads} for keys and values" if shape.kv_heads else "",
        f"{shape.head_dim} wide" if shape.head_dim else "",
    ]
    widths = [
        f"hidden {shape.hidden:,}" if shape.hidden else "",
        f"feed-forward {shape.feed_forward:,}" if shape.feed_forward else "",
        f"vocabulary {shape.vocabulary:,}" if shape.vocabulary else "",
        "head tied to the embedding" if found.tensor_map.tied and _has_head(found) else "",
    ]
    experts = [
        f"{shape.experts}" if shape.experts else "",
        f"{shape.experts_active} active" if shape.experts_active else "",
    ]
    unknown = found.tensor_map.unknown
    size = f"{found.format}, {count_of(len(found.shards), 'file')}, {in_words(found.nbytes)}"
    lines = [
        ("family", f"{family or 'no configuration that says'}, names as in {names}"),
        ("weights", size),
        ("", f"{found.parameters:,} parameters, {count_of(len(found.tensors), 'tensor')}"),
        ("numbers", _shares(found)),
        ("layers", str(shape.layers or len(found.model.layers()) or "")),
        ("widths", ", ".join(filter(None, widths))),
        ("heads", ", ".join(filter(None, heads))),
        ("experts", ", ".join(filter(None, experts))),
        ("fused", "; ".join(f"{what} ({count})" for what, count in found.fused.items())),
        ("quantised", _quantised(found)),
        ("adapter", _adapter(found)),
        ("tokenizer", _tokenizer(found)),
        ("unknown", f"{count_of(len(unknown), 'tensor')}, such as {unknown[0]}" if unknown else ""),
    ]
    return [(title, text) for title, text in lines if text]


def _has_head(found: Inspection) -> bool:
    """Whether the architecture predicts tokens at all; unknown ones are taken to."""
    name = found.geometry.architecture
    return name is None or any(word in name for word in ("LM", "Generation", "PreTraining"))


def _quantised(found: Inspection) -> str:
    scheme = found.quantisation
    if scheme is None:
        return ""
    if scheme.refusal:
        return f"{scheme.refusal}, which this version does not read"
    parts = [f"{words} ({count_of(count, 'weight')})" for words, count in found.quantised.items()]
    return f"{scheme.method}: {'; '.join(parts)}" if parts else scheme.method


def _adapter(found: Inspection) -> str:
    if found.refusal:
        return f"cannot be merged: {found.refusal}"
    adapter = found.adapter
    if adapter is None:
        return ""
    revision = f"@{adapter.revision}" if adapter.revision else ""
    base = f"{adapter.base}{revision}" if adapter.base else "a base that it does not name"
    return f"{adapter.summary.say(language())}: {count_of(len(adapter.pieces), 'update')} to {base}"


def _tokenizer(found: Inspection) -> str:
    choice = found.tokenizer
    if choice is None:
        return ""
    if choice.in_header:
        return "in the weights' own header"
    from kinprint.reader.sizes import in_words

    size = found.model.checkpoint.files[choice.path].size
    return f"{choice.path}, {in_words(size)} (not read)"


def _shares(found: Inspection) -> str:
    whole = max(sum(found.dtypes.values()), 1)
    parts = [(name, 100 * count / whole) for name, count in found.dtypes.items()]
    return ", ".join(
        f"{name} {share:.3g} %" if share >= 0.01 else f"{name} < 0.01 %" for name, share in parts
    )
