"""The `kinprint` command: finds the subcommand, and turns errors into sentences.

Results go to stdout, everything else to stderr. Exit codes: 0 it ran, 2 usage or I/O,
130 interrupted. Start-up stays quick because nothing is imported before it is needed.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

import click

from kinprint.cli.environment import check_environment
from kinprint.cli.language import language, say
from kinprint.errors import KinprintError, SystemFailed
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
}


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
def _kinprint() -> None:
    """Was this model derived from that one?

    kinprint reads a few megabytes of weights where they lie, on the Hub, in a folder, in an
    object store, and says what they show. MODEL is org/name, org/name@revision, hf://…,
    the address of a model page, a folder, a file, or an https:// address.
    """


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run the command line and exit."""
    _prepare_streams()
    try:
        check_environment()
        code: Any = _kinprint(arguments, standalone_mode=False)
    except click.ClickException as error:
        error.show()
        _leave(2)
    except (click.Abort, KeyboardInterrupt):
        _say(say("Stopped. What was read so far is kept.", "멈췄습니다. 읽은 것은 보관됩니다."))
        _leave(130)
    except KinprintError as error:
        _say(f"kinprint: {error.sentence(language())}")
        _leave(error.exit_code)
    except (BrokenPipeError, SystemExit):  # the reader of our output has gone, as `head` does
        _leave(0)
    except OSError as error:
        _say(f"kinprint: {SystemFailed(cause=error).sentence(language())}")
        _leave(2)
    _leave(code if isinstance(code, int) else 0)


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


def _leave(code: int) -> NoReturn:
    """End at once: threads may still wait for a slow server, and nobody waits for them."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)
