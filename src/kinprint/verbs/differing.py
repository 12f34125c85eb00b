"""Say what changed from one model to another."""

from __future__ import annotations

import os
from collections.abc import Callable

from kinprint.diff.compare import diff_models
from kinprint.records import Progress
from kinprint.report.build.diff import diff_document
from kinprint.report.results.diff import Diff
from kinprint.report.schema import settled
from kinprint.verbs.reader import Meter, ModelName, Reader, fetcher_of, reading


def diff(
    a: ModelName,
    b: ModelName,
    *,
    base: ModelName | None = None,
    budget: int | str | None = None,
    cache: bool = True,
    progress: Callable[[Progress], None] | None = None,
    reader: Reader | None = None,
    language: str = "en",
) -> Diff:
    """Say what changed from one model to another, tensor by tensor, and how.

    Every tensor of both is read whole, block by block, so that memory stays small.

    Parameters
    ----------
    a, b : str or path
        The models, the earlier one first, named as for `compare`.
    base, budget, cache, progress, reader, language
        As for `compare`.

    Returns
    -------
    Diff
        What became of each tensor, how parts correspond, and which operations that shows.

    Raises
    ------
    BadReference, SourceError, FormatError, BudgetExceeded
        As for `compare`.

    Examples
    --------
    >>> import kinprint, kinprint.demo
    >>> zoo = kinprint.demo.FOLDER / "zoo"
    >>> found = kinprint.diff(zoo / "base-a", zoo / "a-cpt")
    >>> found.totals.equal < found.totals.compared
    True
    """
    under = None if base is None else os.fspath(base)
    with reading(reader, budget, cache, progress) as own:
        meter = Meter(own)
        found = diff_models(os.fspath(a), os.fspath(b), fetcher_of(own), under)
        return Diff(settled(diff_document(found, meter.cost)), language)
