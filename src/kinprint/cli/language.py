"""How commands speak: the language of the user's environment, where there is a catalogue for it.

Errors name options as the command line spells them.
"""

from __future__ import annotations

import os
import re

from kinprint import text
from kinprint.errors import KinprintError

_VARIABLES = ("KINPRINT_LANG", "LC_ALL", "LC_MESSAGES", "LANG")
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


def language() -> str:
    """The code of a language, such as "ko", from KINPRINT_LANG or the usual variables."""
    value = next(filter(None, (os.environ.get(name, "") for name in _VARIABLES)), "")
    code = re.split(r"[_.\-@]", value)[0].lower()
    return code if code in text.languages() else text.languages()[0]


def say(key: str, /, **fields: object) -> str:
    """A sentence of the catalogues in the user's language."""
    return text.say(key, language(), **fields)


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
