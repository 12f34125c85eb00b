"""The `kinprint` command: finds the subcommand, and turns errors into sentences.

Results go to stdout, everything else to stderr. Exit codes: 0 it ran, 2 usage, I/O or a fault
of kinprint itself, 130 interrupted. Start-up stays quick because nothing is imported before it
is needed.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from kinprint import text
from kinprint.algebra import begin_calmly
from kinprint.cli.commands import DEBUG, Group, Option, usage_sentence
from kinprint.cli.environment import check_environment, save_address_space
from kinprint.cli.language import language, sentence
from kinprint.errors import FormatError, InternalError, KinprintError, SystemFailed, printable
from kinprint.version import __version__

# Where each command lives; it is loaded when it is called.
_COMMANDS = {
    "inspect": "kinprint.cli.inspect",
    "plan": "kinprint.cli.plan",
    "compare": "kinprint.cli.compare",
    "matrix": "kinprint.cli.compare",
    "diff": "kinprint.cli.diff",
    "unmerge": "kinprint.cli.unmerge",
    "identify": "kinprint.cli.identify",
    "atlas": "kinprint.cli.atlas",
    "report": "kinprint.cli.report",
    "study": "kinprint.cli.study",
    "reproduce": "kinprint.cli.reproduce",
    "demo": "kinprint.cli.demo",
    "mirror": "kinprint.cli.mirror",
    "cache": "kinprint.cli.cache",
    "extensions": "kinprint.cli.extensions",
}
FAILED, STOPPED = 2, 130


class _Commands(Group):
    """A group that imports a command when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        found = getattr(import_module(_COMMANDS[cmd_name]), cmd_name)
        assert isinstance(found, click.Command)
        return found

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; that nobody reads its output any more, as after `head`, is no fault.

        click would make an exit of it that says nothing of its cause.
        """
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            return 0


@click.command("kinprint", cls=_Commands, key=())
@click.version_option(__version__, prog_name="kinprint", message="%(prog)s %(version)s", cls=Option)
def kinprint_command() -> None:
    """Find the command that was asked for."""


def run(arguments: list[str] | None = None) -> int:
    """Run the command line; the exit code."""
    _prepare_streams()
    try:
        code = _run(arguments)
    except BaseException as error:
        code = 0 if _is_harmless(error) else _tell(error)
    _flush()
    return code


def _run(arguments: list[str] | None) -> int:
    check_environment()
    save_address_space()  # first: where there is little room, no part of a command has many threads
    begin_calmly()
    code: Any = kinprint_command(arguments, standalone_mode=False)
    return code if isinstance(code, int) else 0


def _is_harmless(error: BaseException) -> bool:
    """Whether nobody reads our output any more, or all is said and done.

    rich exits where our output ends, click after it has completed words for a shell.
    """
    if isinstance(error, SystemExit):
        return error.code in (None, 0) or isinstance(error.__context__, BrokenPipeError)
    return isinstance(error, BrokenPipeError)


def _tell(error: BaseException) -> int:
    """Say what ended the command, in one sentence; the exit code that it deserves."""
    if os.environ.get(DEBUG):
        import traceback

        _say("".join(traceback.format_exception(error)).rstrip())
    match error:
        case click.Abort() | KeyboardInterrupt():
            _say(text.say("cli.stopped", language()))
            return STOPPED
        case click.exceptions.NoArgsIsHelpError():
            error.show()
        case click.UsageError():
            _say(f"kinprint: {usage_sentence(error)}")
        case InternalError():
            _say_fault(error)
        case KinprintError():
            # A file says little by itself: which of several models is it of?
            about = getattr(error, "__notes__", []) if isinstance(error, FormatError) else []
            _say(": ".join(("kinprint", *map(printable, about[:1]), sentence(error))))
        case OSError():
            _say(f"kinprint: {sentence(SystemFailed.of(error))}")
        case _:
            _say_fault(InternalError.of(error))
    return FAILED


def _say_fault(error: InternalError) -> None:
    cause = printable(str(error.fields["cause"]))
    _say(f"kinprint: {text.say('cli.internal-error', language(), cause=cause)}")


def _say(line: str) -> None:
    with contextlib.suppress(OSError):
        click.echo(line, err=True)


def _prepare_streams() -> None:
    """A terminal that cannot show × gets a ?, and a closed stdout swallows what is said."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
