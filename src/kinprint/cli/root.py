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
from kinprint.cli.environment import check_environment
from kinprint.cli.language import language
from kinprint.cli.sentences import sentence
from kinprint.errors import InternalError, KinprintError, SystemFailed, printable
from kinprint.version import __version__

# Name, where its command object lives, and the line that `kinprint --help` shows.
_COMMANDS = {
    "inspect": ("kinprint.cli.inspect:command", "What a model holds, without downloading it."),
    "plan": ("kinprint.cli.plan:command", "Bytes and requests a reading would cost."),
    "compare": ("kinprint.cli.compare:command", "Was one of two models derived from the other?"),
    "matrix": ("kinprint.cli.matrix:command", "The same question for all pairs of models."),
    "report": ("kinprint.cli.report:command", "A result drawn again from its JSON, offline."),
    "study": ("kinprint.cli.study:command", "Compare models by named studies."),
    "reproduce": (
        "kinprint.cli.reproduce:command",
        "A public dispute's analyses, done again.",
    ),
    "demo": ("kinprint.cli.demo:command", "Compare small models that come with kinprint."),
    "mirror": ("kinprint.mirror.command:mirror_command", "Serve a folder of models like the Hub."),
    "cache": ("kinprint.cli.cache:command", "Show or clear what was read before."),
    "extensions": ("kinprint.cli.extensions:command", "What other packages add to kinprint."),
}
DEBUG = "KINPRINT_DEBUG"
FAILED, STOPPED = 2, 130


class _Commands(click.Group):
    """A group that imports a command when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module, _, name = _COMMANDS[cmd_name][0].partition(":")
        found = getattr(import_module(module), name)
        assert isinstance(found, click.Command)
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in _COMMANDS.items()])


@click.command(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="kinprint")
@click.option("--debug", is_flag=True, help="Show the traceback of whatever goes wrong.")
def _kinprint(debug: bool) -> None:
    """Was this model derived from that one?

    kinprint reads a few megabytes of weights where they lie, on the Hub, in a folder, in an
    object store, and says what they show. MODEL is org/name, org/name@revision, hf://…,
    the address of a model page, a folder, a file, or an https:// address.
    """
    if debug:
        os.environ[DEBUG] = "1"  # worker processes hear of it too


def run(arguments: list[str] | None = None) -> int:
    """Run the command line; the exit code."""
    _prepare_streams()
    try:
        code = _run(arguments)
    except BaseException as error:
        code = 0 if _reader_gone(error) else _tell(error)
    _flush()
    return code


def _run(arguments: list[str] | None) -> int:
    check_environment()
    code: Any = _kinprint(arguments, standalone_mode=False)
    return code if isinstance(code, int) else 0


def _reader_gone(error: BaseException) -> bool:
    """Whether nobody reads our output any more, as after `head`; rich exits because of it."""
    told = error.__context__ if isinstance(error, SystemExit) else error
    return isinstance(told, BrokenPipeError)


def _tell(error: BaseException) -> int:
    """Say what ended the command, in one sentence; the exit code that it deserves."""
    if os.environ.get(DEBUG):
        import traceback

        _say("".join(traceback.format_exception(error)).rstrip())
    match error:
        case click.Abort() | KeyboardInterrupt():
            _say(text.say("cli.stopped", language()))
            return STOPPED
        case click.ClickException():
            error.show()
        case InternalError():
            _say_fault(error)
        case KinprintError():
            _say(f"kinprint: {sentence(error)}")
        case OSError():
            _say(f"kinprint: {sentence(SystemFailed(cause=error))}")
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
