"""Tables as CSV files (RFC 4180): every row, every digit.

Text that a spreadsheet would take for a formula gets an apostrophe in front, because names
and tokens come from strangers; the JSON beside has it as it is.
"""

from __future__ import annotations

import csv
from io import StringIO

from kinprint.studies.results import Cell, Table

_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def sheet(table: Table) -> bytes:
    """A table as the bytes of a CSV file."""
    stream = StringIO()
    writer = csv.writer(stream, lineterminator="\r\n")
    writer.writerow([_cell(name) for name in table.columns])
    writer.writerows([_cell(value) for value in row] for row in table.rows)
    return stream.getvalue().encode("utf-8")


def _cell(value: Cell) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case float():
            return repr(value)
        case str():
            text = value.replace("\x00", "\\0")
            return f"'{text}" if text.startswith(_FORMULA) and not _is_number(text) else text
    return str(value)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
