"""Sizes as people write them: 64MB, 1.5 GiB, 12,345 bytes."""

from __future__ import annotations

import re

from kinprint import text
from kinprint.errors import BadOption

_UNITS = {
    "": 1, "b": 1,
    "k": 10**3, "kb": 10**3, "kib": 2**10,
    "m": 10**6, "mb": 10**6, "mib": 2**20,
    "g": 10**9, "gb": 10**9, "gib": 2**30,
    "t": 10**12, "tb": 10**12, "tib": 2**40,
}  # fmt: skip
_SIZE = r"^\s*([0-9]{1,15}(?:\.[0-9]{1,9})?)\s*([a-zA-Z]*)\s*$"


def parse_size(given: str, option: str) -> int:
    """Bytes in a size such as 64MB, given for `option`."""
    found = re.match(_SIZE, given)
    if found is None or found.group(2).lower() not in _UNITS:
        raise BadOption(option=option, value=given, cause=text.message("cause.option.size"))
    return int(float(found.group(1)) * _UNITS[found.group(2).lower()])


def in_words(nbytes: int) -> str:
    """A size with three digits and a decimal unit, as the Hub shows sizes."""
    value, unit = float(nbytes), "B"
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if abs(value) < 1000 or unit == "TB":
            break
        value /= 1000
    if unit == "B":
        return f"{nbytes} B"
    return f"{value:.3g} {unit}" if value < 999.5 else f"{value:.0f} {unit}"


def round_up(nbytes: int) -> str:
    """The next size that a person would type, at least `nbytes`."""
    for unit, name in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if nbytes >= unit:
            return f"{-(-nbytes // unit)}{name}"
    return f"{nbytes}B"
