"""Results read back from what was saved."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from kinprint.report.results.comparison import Comparison, Matrix
from kinprint.report.results.diff import Diff
from kinprint.report.results.identify import Identification
from kinprint.report.results.reading import read_result
from kinprint.report.results.result import read_file
from kinprint.report.results.study import StudyResult
from kinprint.report.results.tree import FamilyTree
from kinprint.report.results.unmerge import Unmerged


def report(
    given: str | os.PathLike[str] | bytes | Mapping[str, Any],
    language: str = "en",
    *,
    name: str | None = None,
) -> Comparison | Matrix | StudyResult | Diff | Unmerged | Identification | FamilyTree:
    """Read a result back, to look at and to save in other forms; nothing else is read.

    Parameters
    ----------
    given : str, path, bytes or mapping
        The JSON file of a result or the folder that holds it, the bytes of such a file, or what
        `to_dict` gave.
    language : str
        What the result is to speak, such as "en" or "ko".
    name : str, optional
        What errors call the file, where it is given as bytes.

    Returns
    -------
    Comparison, Matrix, StudyResult, Diff, Unmerged, Identification or FamilyTree
        The same as when it was computed; what is drawn from it is the same, byte for byte.

    Raises
    ------
    FileMissing
        There is no such file.
    FormatError
        It holds no result.

    Examples
    --------
    >>> import kinprint, kinprint.demo
    >>> zoo = kinprint.demo.FOLDER / "zoo"
    >>> found = kinprint.compare(zoo / "base-a", zoo / "base-b", level="quick")
    >>> kinprint.report(found.to_dict()) == found
    True
    """
    if isinstance(given, Mapping):
        import msgspec

        raw, called = msgspec.json.encode(dict(given)), "to_dict()"
    elif isinstance(given, bytes):
        raw, called = given, "bytes"
    else:
        raw, called = read_file(given), os.fspath(given)
    return read_result(raw, name or called, language)
