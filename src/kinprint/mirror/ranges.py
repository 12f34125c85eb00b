"""Which bytes a Range header asks for: pure, and as RFC 9110 (section 14) has it."""

from __future__ import annotations

import re

from kinprint.records import ByteRange

# Nineteen digits hold any file size; a longer number is noise and is treated as such.
_SINGLE = re.compile(r"\s*bytes\s*=\s*(\d{0,19})\s*-\s*(\d{0,19})\s*", re.IGNORECASE)


class Unsatisfiable(Exception):
    """The range lies outside the file: status 416."""


def parse_range(header: str | None, size: int) -> ByteRange | None:
    """Turn a Range header into bytes of a file of `size`, or None for the whole file.

    The standard lets a server ignore what it does not understand, so several ranges,
    other units and malformed text all mean the whole file. Raises `Unsatisfiable`.
    """
    match = _SINGLE.fullmatch(header) if header else None
    if match is None:
        return None
    first, last = match.groups()
    if not first:
        if not last:
            return None
        length = min(int(last), size)
        if length == 0:
            raise Unsatisfiable
        return ByteRange(size - length, size)
    start = int(first)
    stop = int(last) + 1 if last else size
    if last and stop <= start:
        return None
    if start >= size:
        raise Unsatisfiable
    return ByteRange(start, min(stop, size))
