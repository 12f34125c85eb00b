"""How commands speak: the language of the user's environment, where there is a catalogue for it.

Errors name options as the command line spells them.
"""

from __future__ import annotations

import os
import re

from kinprint import text
from kinprint.errors import KinprintError, option_name

_VARIABLES = ("KINPRINT_LANG", "LC_ALL", "LC_MESSAGES", "LANG")


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
