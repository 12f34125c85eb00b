"""Say which merge made a model."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable

from kinprint import text
from kinprint.diff.merge_family import Family, open_family, sampled_family
from kinprint.diff.merges import unmerge_models
from kinprint.diff.sampling import ALLOWANCE
from kinprint.errors import BadOption
from kinprint.records import Cost, MergeStatus, Progress
from kinprint.report.build.unmerge import unmerge_document
from kinprint.report.results.plan import Plan
from kinprint.report.results.unmerge import Unmerged
from kinprint.report.schema import ReadingPlanDocument, StageCost, settled
from kinprint.verbs.reader import (
    Meter,
    ModelName,
    Reader,
    checked_seed,
    fetcher_of,
    reading,
    teller,
    written_name,
)

_WHAT = "unmerge"


def unmerge(
    child: ModelName,
    parents: Iterable[ModelName],
    *,
    base: ModelName | None = None,
    sample: bool = False,
    seed: int = 0,
    budget: int | str | None = None,
    cache: bool = True,
    progress: Callable[[Progress], None] | None = None,
    reader: Reader | None = None,
    language: str = "en",
) -> Unmerged:
    """Say which merge of some models made another, as a recipe that is proved bit by bit.

    Every tensor of all models is read whole, block by block, so that memory stays small, unless a
    sample is asked for. A method is only named where its recipe gives the child's numbers
    themselves: of a child that was trained after it was merged, or of which a parent is not given,
    none is.

    Parameters
    ----------
    child : str or path
        The model, named as for `compare`.
    parents : iterable of str or path
        Models that it may be merged from; some may have no part in it. Of one alone, layers can
        be repeated, left out or put in another order.
    base : str or path, optional
        The model that the parents were tuned from. Task arithmetic, TIES and DARE are sums over a
        base; without one, a parent that shows as the base is taken for it. An adapter that names no
        base that can be had stands on it, too.
    sample : bool
        Whether to read some rows of each tensor, a few megabytes in all. Averages and task
        arithmetic can be told from these; TIES, DARE, passthrough and most slerps cannot.
    seed : int
        Chooses which rows.
    budget, cache, progress, reader, language
        As for `compare`.

    Returns
    -------
    Unmerged
        The method, its recipe and proof, and weights with intervals by tensor, role and layer.

    Raises
    ------
    BadOption
        No parent is given, or an option has a value that makes no sense.
    BadReference, SourceError, FormatError, BudgetExceeded
        As for `compare`.

    Examples
    --------
    >>> import kinprint, kinprint.demo
    >>> zoo = kinprint.demo.FOLDER / "zoo"
    >>> found = kinprint.unmerge(zoo / "a-cpt", [zoo / "base-b", zoo / "a-cpt"])
    >>> found.outcome.value, found.share is None
    ('copy', True)
    """
    seed = checked_seed(seed)
    with reading(reader, budget, cache, progress) as own:
        meter = Meter(own)
        family = _family(child, parents, base, own)
        if sample:
            family = sampled_family(family, seed, _allowance(own))
        found = unmerge_models(family, teller(own))
        return Unmerged(settled(unmerge_document(found, meter.cost, seed)), language)


def plan_unmerge(
    child: ModelName,
    parents: Iterable[ModelName],
    *,
    base: ModelName | None = None,
    sample: bool = False,
    seed: int = 0,
    budget: int | str | None = None,
    cache: bool = True,
    progress: Callable[[Progress], None] | None = None,
    reader: Reader | None = None,
    language: str = "en",
) -> Plan:
    """Say what `unmerge` would cost; headers are read to know it, and no weight.

    Parameters
    ----------
    child, parents, base, sample, seed, budget, cache, progress, reader, language
        As for `unmerge`.

    Returns
    -------
    Plan
        Bytes and requests.

    Raises
    ------
    BadOption, BadReference, SourceError, FormatError, BudgetExceeded
        As for `unmerge`.

    Examples
    --------
    >>> import kinprint, kinprint.demo
    >>> zoo = kinprint.demo.FOLDER / "zoo"
    >>> plan = kinprint.plan_unmerge(zoo / "a-cpt", [zoo / "base-b", zoo / "base-a"])
    >>> plan.cost.bytes  # files on this machine are read in place
    0
    """
    seed = checked_seed(seed)
    with reading(reader, budget, cache, progress) as own:
        meter = Meter(own)
        family = _family(child, parents, base, own)
        if sample:
            family = sampled_family(family, seed, _allowance(own))
        found = fetcher_of(own).plan(family.wants())
        cost = sum((one.cost for one in found), Cost())
        ref = family.refs[0]
        local = all(one.checkpoint.ref.kind == "local" for one in (family.child, *family.sources))
        document = ReadingPlanDocument(
            model=ref.given,
            models=[one.given for one in family.refs],
            commit=ref.commit or None,
            what=_WHAT,
            tensors=sum(one.status is not MergeStatus.NOT_READ for one in family.tensors),
            bytes=cost.bytes,
            requests=cost.requests,
            spent=StageCost.of(meter.cost),
        )
        return Plan(document, language, local=local)


def _allowance(reader: Reader) -> int:
    """What samples may cost: a few megabytes, within what is left of a budget."""
    if reader.budget is None:
        return ALLOWANCE
    return min(ALLOWANCE, max(reader.budget - fetcher_of(reader).spent.bytes, 0))


def _family(
    child: ModelName, parents: Iterable[ModelName], base: ModelName | None, reader: Reader
) -> Family:
    given = [os.fspath(one) for one in parents]
    under = written_name(base)
    if not given:
        cause = text.message("cause.unmerge.too-few")
        raise BadOption(option="parents", value="", cause=cause)
    return open_family(os.fspath(child), given, under, fetcher_of(reader))
