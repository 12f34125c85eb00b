"""Errors as the command line says them: in the user's language, with its own names of options."""

from __future__ import annotations

from kinprint.cli.language import language
from kinprint.errors import KinprintError

# Parameters that are no option of the same name; names in capitals are left as they are.
_NAMES = {
    "a": "MODEL",
    "cache=False": "--no-cache",
    "controls": "--control",
    "faults": "--fault",
    "file": "RESULT.json",
    "folder": "FOLDER",
    "models": "MODEL",
    "name": "NAME",
    "paths": "-o",
}


def sentence(error: KinprintError) -> str:
    """What an error says to somebody who typed a command."""
    return error.spelled(option_name).sentence(language())


def option_name(parameter: str) -> str:
    """How the command line calls a parameter of the library."""
    if parameter in _NAMES:
        return _NAMES[parameter]
    return (
        f"--{parameter.replace('_', '-')}"
        if parameter.isidentifier() and parameter.islower()
        else parameter
    )
