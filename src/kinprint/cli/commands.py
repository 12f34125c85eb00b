"""Commands and options whose words stand in the catalogues, and whose mistakes are sentences.

The help of a command has the key `help.` and its name (`help.study.run`), that of an option the
same with the name of its parameter, or `help.option.` and that name where several commands share
it; the line in a list of commands has `cli.command.`. `{default}` in the help of an option is
what it is when nothing is given.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import click

from kinprint import text
from kinprint.cli.language import say
from kinprint.errors import BadOption, UsageError
from kinprint.text.lines import WIDTH, columns_of, padded, wrapped

DEBUG = "KINPRINT_DEBUG"
_HELP_NAMES = ["-h", "--help"]
_WIDEST = 30  # columns for the names of options beside what they do


class Option(click.Option):
    """An option that knows its words."""

    def words(self, key: str) -> str:
        """What it does, for the command of this key."""
        own = f"help.{key}.{self.name}"
        said = own if text.knows(own) else f"help.option.{self.name}"
        if not text.field_names(said):
            return say(said)
        shown = self.show_default if isinstance(self.show_default, str) else self.default
        known = isinstance(shown, str | int | float)  # else click has a mark of its own there
        return say(said, default=shown if known else "").removesuffix("  []")

    def spelling(self) -> str:
        """Its names and the kind of value it takes."""
        names = ", ".join((*self.opts, *self.secondary_opts))
        return names if self.is_flag else f"{names} {self.metavar or self._choices()}"

    def _choices(self) -> str:
        choices = getattr(self.type, "choices", ())
        return f"[{'|'.join(choices)}]" if choices else "VALUE"


class Command(click.Command):
    """A command whose help stands in the catalogues under `key`: the names that lead to it."""

    def __init__(self, *arguments: Any, key: Sequence[str] | None = None, **named: Any) -> None:
        named.setdefault("context_settings", {"help_option_names": _HELP_NAMES})
        super().__init__(*arguments, **named)
        self.key = ".".join((self.name or "",) if key is None else key)
        self.params.append(debug_option(hidden=bool(self.key)))

    def get_short_help_str(self, limit: int = 45) -> str:
        """The line in a list of commands."""
        return say(f"cli.command.{self.key}")

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write everything there is to know about the command."""
        formatter.write("\n".join(self.help_lines(ctx)))

    def help_lines(self, ctx: click.Context) -> list[str]:
        """Usage, what the command does, its options."""
        pieces = [piece for param in self.get_params(ctx) for piece in param.get_usage_pieces(ctx)]
        usage = " ".join((ctx.command_path, say("cli.usage.options"), *pieces, *self.more_pieces()))
        lines = wrapped(f"{say('cli.usage')} {usage}", "  ")
        for paragraph in say(f"help.{self.key or 'kinprint'}").split("\n\n"):
            lines += ["", *(f"  {line}" for line in wrapped(paragraph, width=WIDTH - 2))]
        options = [one for one in self.params if isinstance(one, Option) and not one.hidden]
        rows = [(one.spelling(), one.words(self.key)) for one in options]
        rows.append((", ".join(_HELP_NAMES), say("help.option.help")))
        return [*lines, "", *_table(say("cli.options"), rows)]

    def more_pieces(self) -> tuple[str, ...]:
        """What else the usage line has after options and arguments."""
        return ()

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Understand what was typed; what is too much is named."""
        extra, ctx.allow_extra_args = ctx.allow_extra_args, True
        try:
            rest = super().parse_args(ctx, args)
        except click.UsageError as error:
            error.ctx = error.ctx or ctx  # click does not say whose value is missing
            raise
        ctx.allow_extra_args = extra
        if rest and not extra and not ctx.resilient_parsing:
            _refuse(ctx, "cli.usage.too-many", given=" ".join(rest))
        return rest


class Group(Command, click.Group):
    """A command with commands of its own."""

    def more_pieces(self) -> tuple[str, ...]:
        """The command to be run, which comes last."""
        return (say("cli.usage.command"),)

    def help_lines(self, ctx: click.Context) -> list[str]:
        """As for every command, then the commands."""
        rows = [(name, self.short_help_of(ctx, name)) for name in self.list_commands(ctx)]
        return [*super().help_lines(ctx), "", *_table(say("cli.commands"), rows)]

    def short_help_of(self, ctx: click.Context, name: str) -> str:
        """The line about one of its commands."""
        return say(f"cli.command.{f'{self.key}.{name}' if self.key else name}")

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that was typed."""
        name = str(args[0])
        if not ctx.resilient_parsing and self.get_command(ctx, name) is None:
            from difflib import get_close_matches

            near = get_close_matches(name, self.list_commands(ctx), 1)
            if near:
                _refuse(ctx, "cli.usage.no-such-command-near", given=name, near=near[0])
            _refuse(ctx, "cli.usage.no-such-command", given=name)
        return super().resolve_command(ctx, args)


class Choice(click.Choice[str]):
    """One of some words."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The word, or a sentence that names all."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            refuse_value(param, value, "cause.option.choice", choices=", ".join(self.choices))


class Whole(click.IntRange):
    """A whole number, not below the least."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number, or a sentence that names its limits."""
        try:
            return int(super().convert(value, param, ctx))
        except click.BadParameter:
            if self.max is None:
                refuse_value(param, value, "cause.option.whole", least=self.min)
            refuse_value(param, value, "cause.option.between", least=self.min, most=self.max)


class Real(click.FloatRange):
    """A number between limits, or above one."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """The number, or a sentence that names its limits."""
        try:
            return float(super().convert(value, param, ctx))
        except click.BadParameter:
            if self.max is not None:
                refuse_value(param, value, "cause.option.between", least=self.min, most=self.max)
            key = "cause.option.above" if self.min_open else "cause.option.at-least"
            refuse_value(param, value, key, least=self.min)


def refuse_value(
    param: click.Parameter | None, value: object, key: str, **fields: object
) -> NoReturn:
    """Say that an option cannot have a value."""
    name = "" if param is None else param.name or ""
    raise BadOption(option=name, value=value, cause=text.message(key, **fields)) from None


def command(name: str, **named: Any) -> Callable[[Callable[..., Any]], Command]:
    """Make a command of a function."""
    return click.command(name, cls=Command, **named)


def option(*names: str, **named: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add an option to a command."""
    return click.option(*names, cls=Option, **named)


def debug_option(*, hidden: bool) -> Option:
    """`--debug`, which every command takes; the first help page alone speaks of it."""

    def switch(ctx: click.Context, param: click.Parameter, value: bool) -> None:
        if value:
            os.environ[DEBUG] = "1"  # worker processes hear of it too

    return Option(
        ["--debug"], is_flag=True, expose_value=False, is_eager=True, hidden=hidden, callback=switch
    )


def usage_sentence(error: click.UsageError) -> str:
    """What is wrong with what was typed."""
    where = {"command": "kinprint" if error.ctx is None else error.ctx.command_path}
    match error:
        case click.NoSuchOption(option_name=name):
            if near := list(error.possibilities or ()):
                return say("cli.usage.no-such-option-near", given=name, near=near[0], **where)
            return say("cli.usage.no-such-option", given=name, **where)
        case click.MissingParameter(param=click.Parameter() as param):
            named = param.metavar or (param.name or "").upper()
            return say("cli.usage.missing", given=named, **where)
        case click.BadOptionUsage(option_name=name):
            flags = [] if error.ctx is None else error.ctx.command.params
            is_flag = any(name in one.opts and getattr(one, "is_flag", False) for one in flags)
            key = "cli.usage.takes-no-value" if is_flag else "cli.usage.needs-value"
            return say(key, given=name, **where)
    return error.format_message()


def _refuse(ctx: click.Context, key: str, **fields: object) -> NoReturn:
    raise UsageError(cause=text.message(key, command=ctx.command_path, **fields))


def _table(title: str, rows: list[tuple[str, str]]) -> list[str]:
    """Names and what they mean, side by side; a long name has a line of its own."""
    first = 2 + max(columns_of(name) for name, _ in rows if columns_of(name) < _WIDEST)
    lines = [title]
    for name, words in rows:
        said = wrapped(words, width=WIDTH - first - 2)
        if columns_of(name) >= _WIDEST:
            lines.append(f"  {name}")
        else:
            lines.append(f"  {padded(name, first)}{said.pop(0)}")
        lines += [" " * (first + 2) + line for line in said]
    return lines
