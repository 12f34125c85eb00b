"""Tables of results for the library of data frames that is installed."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from kinprint import text
from kinprint.errors import BadOption, MissingLibrary
from kinprint.studies.results import Table

if TYPE_CHECKING:
    import pandas
    import polars

LIBRARIES = ("pandas", "polars")


def frame(table: Table, library: str | None = None) -> pandas.DataFrame | polars.DataFrame:
    """A table as a data frame of a library, or of the first that is installed."""
    if library is not None and library not in LIBRARIES:
        cause = text.message("cause.option.choice", choices=", ".join(LIBRARIES))
        raise BadOption(option="library", value=library, cause=cause)
    wanted = LIBRARIES if library is None else (library,)
    found = next((name for name in wanted if find_spec(name) is not None), None)
    if found is None:
        raise MissingLibrary(libraries=" / ".join(wanted), install=f"pip install {wanted[0]}")
    columns = {name: [row[at] for row in table.rows] for at, name in enumerate(table.columns)}
    module = import_module(found)
    # Columns of polars have one type: where rows differ in it, the widest is taken.
    return (
        module.DataFrame(columns) if found == "pandas" else module.DataFrame(columns, strict=False)
    )
