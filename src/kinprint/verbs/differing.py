"""Say what changed from one model to another."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from kinprint.diff.compare import diff_models
from kinprint.diff.compare import plan_diff as plan
from kinprint.lineage.results import Settings
from kinprint.records import Progress
from kinprint.report.build.comparison import plan_document
from kinprint.report.build.diff import diff_document
from kinprint.report.results.diff import Diff
from kinprint.report.results.plan import Plan
from kinprint.report.schema import settled
from kinprint.verbs.reader import (
    Meter,
    ModelName,
    Reader,
    checked_seed,
    fetcher_of,
    reading,
    written_name,
)


def diff(
    a: ModelName,
    b: ModelName,
    *,
    sample: bool | None = None,
    seed: int = 0,
    given: ModelName | None = None,
    parents: Sequence[ModelName] = (),
    base: ModelName | None = None,
    budget: int | str | None = None,
    cache: bool = True,
    progress: Callable[[Progress], None] | None = None,
    reader: Reader | None = None,
    language: str = "en",
) -> Diff:
    """Say what changed from one model to another, tensor by tensor, and how.

    Every tensor of models on this machine is read whole, block by block, so that memory stays
    small; of models elsewhere some rows are, with intervals for the rest.

    Parameters
    ----------
    a, b : str or path
        The models, the earlier one first, named as for `compare`.
    sample : bool, optional
        Whether to read some rows of each tensor, a few megabytes in all. By default that is done
        where a model is not on this machine.
    seed : int
        Chooses which rows.
    given : str or path, optional
        A base that both were made from: the result says what they share beyond it, too.
    parents : sequence of str or path
        Models that one of the two may be a merge of, together with the other: as for `unmerge`, a
        merge is named where its recipe gives the numbers themselves.
    base, budget, cache, progress, reader, language
        As for `compare`.

    Returns
    -------
    Diff
        What became of each tensor, how parts correspond, and which operations that shows.

    Raises
    ------
    BadOption, BadReference, SourceError, FormatError, BudgetExceeded
        As for `compare`.

    Examples
    --------
    >>> import kinprint, kinprint.demo
    >>> zoo = kinprint.demo.FOLDER / "zoo"
    >>> found = kinprint.diff(zoo / "base-a", zoo / "a-cpt")
    >>> found.totals.equal < found.totals.compared
    True
    """
    with reading(reader, budget, cache, progress) as own:
        meter = Meter(own)
        settings = _settings(own.budget, seed, base)
        under = written_name(given)
        fetcher, merged = fetcher_of(own), [os.fspath(one) for one in parents]
        pair = os.fspath(a), os.fspath(b)
        found = diff_models(*pair, fetcher, settings, sample, under, merged)
        return Diff(settled(diff_document(found, meter.cost, settings)), language)


def plan_diff(
    a: ModelName,
    b: ModelName,
    *,
    sample: bool | None = None,
    seed: int = 0,
    given: ModelName | None = None,
    parents: Sequence[ModelName] = (),
    base: ModelName | None = None,
    budget: int | str | None = None,
    cache: bool = True,
    progress: Callable[[Progress], None] | None = None,
    reader: Reader | None = None,
    language: str = "en",
) -> Plan:
    """Say what `diff` would cost; headers are read to know it, and no weight.

    Parameters
    ----------
    a, b, sample, seed, given, parents, base, budget, cache, progress, reader, language
        As for `diff`.

    Returns
    -------
    Plan
        Bytes and requests: the stages of a comparison, then those of reading tensors.

    Raises
    ------
    BadOption, BadReference, SourceError, FormatError, BudgetExceeded
        As for `compare`.

    Examples
    --------
    >>> import kinprint, kinprint.demo
    >>> zoo = kinprint.demo.FOLDER / "zoo"
    >>> kinprint.plan_diff(zoo / "base-a", zoo / "a-cpt").cost.bytes
    0
    """
    with reading(reader, budget, cache, progress) as own:
        meter = Meter(own)
        settings = _settings(own.budget, seed, base)
        under = written_name(given)
        fetcher, merged = fetcher_of(own), [os.fspath(one) for one in parents]
        found = plan(os.fspath(a), os.fspath(b), fetcher, settings, sample, under, merged)
        return Plan(plan_document(found, meter.cost), language)


def _settings(budget: int | None, seed: int, base: ModelName | None) -> Settings:
    return Settings(budget=budget, seed=checked_seed(seed), base=written_name(base))
