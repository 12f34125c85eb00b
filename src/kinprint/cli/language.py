"""Which language to speak: Korean where the user's environment is Korean, else English."""

from __future__ import annotations

import os


def language() -> str:
    """Give "ko" or "en", from KINPRINT_LANG or the usual locale variables."""
    for name in ("KINPRINT_LANG", "LC_ALL", "LC_MESSAGES", "LANG"):
        value = os.environ.get(name, "")
        if value:
            return "ko" if value.lower().startswith("ko") else "en"
    return "en"
