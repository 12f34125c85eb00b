"""From `.po` to `.mo`: run when a package is built, and in a checkout when a source has changed.

`python -m kinprint.text.compiling` sorts all sources by key and compiles them; it needs Babel,
which is no dependency of an installed package.
"""

from __future__ import annotations

import io
import os
import tempfile
from pathlib import Path

FOLDER = Path(__file__).with_name("catalogues")


def compile_catalogue(source: Path, compiled: Path) -> None:
    """Compile one catalogue; other processes see the old one or the new one, never a half."""
    from babel.messages.mofile import write_mo
    from babel.messages.pofile import read_po

    with source.open("rb") as file:
        catalogue = read_po(file, locale=source.stem, abort_invalid=True)
    handle, name = tempfile.mkstemp(dir=compiled.parent, suffix=".part")
    with os.fdopen(handle, "wb") as file:
        write_mo(file, catalogue)
    Path(name).chmod(0o644)
    Path(name).replace(compiled)


def compile_all(folder: Path = FOLDER) -> list[Path]:
    """Compile every catalogue of a folder; the files written."""
    sources = sorted(folder.glob("*.po"))
    for source in sources:
        compile_catalogue(source, source.with_suffix(".mo"))
    return [source.with_suffix(".mo") for source in sources]


def sort_sources(folder: Path = FOLDER) -> None:
    """Write every source anew with its keys in order, so that changes are easy to compare."""
    from babel.messages.pofile import read_po, write_po

    for source in sorted(folder.glob("*.po")):
        header = source.read_text("utf-8").partition("\n\n")[0]
        with source.open("rb") as file:
            catalogue = read_po(file, locale=source.stem, abort_invalid=True)
        body = io.BytesIO()
        write_po(body, catalogue, width=0, omit_header=True, sort_output=True, ignore_obsolete=True)
        source.write_text(f"{header}\n\n{body.getvalue().decode().strip()}\n", "utf-8")


if __name__ == "__main__":
    sort_sources()
    compile_all()
