"""What several commands print alike: JSON for machines, counts for people."""

from __future__ import annotations

import json
import sys
from typing import Any


def write_line(document: Any) -> None:
    """Write one object, a dict or a document; names that are no text are escaped, not lost."""
    import msgspec

    from kinprint.report.schema.encoding import encode_line, plain

    try:
        line = encode_line(document)
    except UnicodeEncodeError:
        line = json.dumps(msgspec.to_builtins(document, enc_hook=plain)).encode("ascii")
    out = getattr(sys.stdout, "buffer", None)
    if out is not None:
        out.write(line + b"\n")
        out.flush()


def count_of(number: int, thing: str) -> str:
    """Such as "1 file" and "1,200 files"."""
    return f"{number:,} {thing}{'s' * (number != 1)}"
