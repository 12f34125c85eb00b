"""Which language to speak: Korean where the user's environment is Korean, else English."""

from __future__ import annotations

import os
import re

_KOREAN = re.compile(r"^ko([_.\-@].*)?$", re.IGNORECASE)


def language() -> str:
    """Give "ko" or "en", from KINPRINT_LANG or the usual locale variables."""
    for name in ("KINPRINT_LANG", "LC_ALL", "LC_MESSAGES", "LANG"):
        value = os.environ.get(name, "")
        if value:
            return "ko" if _KOREAN.match(value) else "en"
    return "en"


def say(english: str, korean: str) -> str:
    """The one of two texts that the user reads."""
    return korean if language() == "ko" else english
