"""Tables of rules that come with the package: written in TOML, read as JSON.

To parse the TOML that one command asks for takes a few dozen milliseconds, JSON hardly one. So
every table is compiled when a package is built, or installed from a checkout, to a file beside it
that says which text it was made from. One that was made from another is passed over, as after a
change; `python -m kinprint.tables` compiles all of them anew.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from zlib import crc32

FOLDER = Path(__file__).parent


def read_table(source: Path) -> dict[str, Any]:
    """What a table holds."""
    written = source.read_bytes()
    try:
        made_from, table = json.loads(_compiled(source).read_bytes())
    except (OSError, ValueError, TypeError):
        made_from, table = None, {}
    if made_from == crc32(written) and isinstance(table, dict):
        return table
    import tomllib

    return tomllib.loads(written.decode("utf-8"))


def compile_tables(folder: Path = FOLDER) -> list[Path]:
    """Compile every table of a folder and those inside; the files written."""
    import tomllib

    found = []
    for source in sorted(folder.rglob("*.toml")):
        written = source.read_bytes()
        table = tomllib.loads(written.decode("utf-8"))
        _compiled(source).write_text(json.dumps([crc32(written), table]), encoding="utf-8")
        found.append(_compiled(source))
    return found


def _compiled(source: Path) -> Path:
    return source.with_name(f"{source.name}.json")


if __name__ == "__main__":
    compile_tables()
