"""Open a model, see what it holds, and say what reading some of it would cost."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from kinprint import text
from kinprint.errors import BadOption
from kinprint.model.inspection import inspect_checkpoint
from kinprint.model.opening import need_adapter, open_model
from kinprint.model.places import word_of
from kinprint.reader.checkpoint import Checkpoint, open_checkpoint
from kinprint.reader.formats.registry import SAFETENSORS
from kinprint.records import Cost, Progress, Slice, is_bias
from kinprint.report.build.inspection import inspection_document
from kinprint.report.results.inspection import Inspection
from kinprint.report.schema import ReadingPlanDocument, StageCost
from kinprint.verbs.reader import Meter, ModelName, Reader, fetcher_of, reading, written_name

if TYPE_CHECKING:
    from kinprint.report.results.plan import Plan
    from kinprint.verbs.model import Model

_NORMS = "norms"  # the tensors whose cost `plan` tells unless others are asked for


def open(
    model: ModelName,
    *,
    base: ModelName | None = None,
    budget: int | str | None = None,
    cache: bool = True,
    progress: Callable[[Progress], None] | None = None,
    reader: Reader | None = None,
    language: str = "en",
) -> Model:
    """Open a model by name, path or address; its headers are read, and no weight.

    Parameters
    ----------
    model : str or path
        The model, named as for `compare`.
    base, budget, cache, progress, reader, language
        As for `compare`. The budget is for all that the model reads.

    Returns
    -------
    Model
        Its tensors by meaning. It is a context manager, which ends what it is reading.

    Raises
    ------
    BadReference
        The name names no model.
    SourceError
        The model cannot be reached or read.
    FormatError
        Its files are not what they claim to be.
    BudgetExceeded
        Its headers cost more than the budget.

    Examples
    --------
    >>> import kinprint, kinprint.demo
    >>> with kinprint.open(kinprint.demo.FOLDER / "zoo" / "base-a") as model:
    ...     model.read("q", layer=0, rows=range(2)).shape
    (2, 128)
    """
    from kinprint.verbs.model import Model

    own = Reader(budget=budget, cache=cache, progress=progress) if reader is None else reader
    under = written_name(base)
    try:
        opened = open_model(open_checkpoint(os.fspath(model), fetcher_of(own)), under)
        need_adapter([opened], under)
    except BaseException:
        if reader is None:
            own.close()
        raise
    return Model(opened, own, owned=reader is None, language=language)


def inspect(
    model: ModelName,
    *,
    budget: int | str | None = None,
    cache: bool = True,
    progress: Callable[[Progress], None] | None = None,
    reader: Reader | None = None,
    language: str = "en",
) -> Inspection:
    """Say what a model holds, from its headers and small files alone.

    An adapter is shown without its base.

    Parameters
    ----------
    model : str or path
        The model, named as for `compare`.
    budget, cache, progress, reader, language
        As for `compare`.

    Returns
    -------
    Inspection
        Architecture, dimensions, tensors, number formats and files.

    Raises
    ------
    BadReference, SourceError, FormatError, BudgetExceeded
        As for `open`.

    Examples
    --------
    >>> import kinprint, kinprint.demo
    >>> kinprint.inspect(kinprint.demo.FOLDER / "zoo" / "base-a").geometry.hidden
    128
    """
    with reading(reader, budget, cache, progress) as own:
        meter = Meter(own)
        found = inspect_checkpoint(open_checkpoint(os.fspath(model), fetcher_of(own)))
        return Inspection(inspection_document(found, meter.cost), language)


def plan(
    model: ModelName,
    tensors: str | Sequence[str] | None = None,
    *,
    budget: int | str | None = None,
    cache: bool = True,
    progress: Callable[[Progress], None] | None = None,
    reader: Reader | None = None,
    language: str = "en",
) -> Plan:
    """Say what reading tensors of a model would cost; headers are read to know it.

    `plan_comparison`, `plan_study` and `plan_inspection` say the same of other readings.

    Parameters
    ----------
    model : str or path
        The model, named as for `compare`.
    tensors : str or sequence of str, optional
        Which tensors, as shell patterns for their stored names; norms, whatever they are called,
        unless something is given.
    budget, cache, progress, reader, language
        As for `compare`.

    Returns
    -------
    Plan
        Bytes and requests; what was read before costs nothing again.

    Raises
    ------
    BadOption
        No tensor has such a name.
    BadReference, SourceError, FormatError, BudgetExceeded
        As for `open`.

    Examples
    --------
    >>> import kinprint, kinprint.demo
    >>> kinprint.plan(kinprint.demo.FOLDER / "zoo" / "base-a", "*down_proj*").tensors
    6
    """
    patterns = (tensors,) if isinstance(tensors, str) else tuple(tensors or ())
    with reading(reader, budget, cache, progress) as own:
        meter = Meter(own)
        checkpoint = open_checkpoint(os.fspath(model), fetcher_of(own))
        names = _norms(checkpoint) if tensors is None else _matching(checkpoint, patterns)
        found = checkpoint.plan([Slice(spec) for spec in checkpoint.tensors(names).values()])
        cost = sum((one.cost for one in found), Cost())
        what = _NORMS if tensors is None else " ".join(patterns)
        return _plan(checkpoint, what, len(names), cost, meter.cost, language)


def plan_inspection(
    model: ModelName,
    *,
    budget: int | str | None = None,
    cache: bool = True,
    progress: Callable[[Progress], None] | None = None,
    reader: Reader | None = None,
    language: str = "en",
) -> Plan:
    """Say what `inspect` would cost: the headers of all weight files.

    Parameters
    ----------
    model : str or path
        The model, named as for `compare`.
    budget, cache, progress, reader, language
        As for `compare`.

    Returns
    -------
    Plan
        Bytes and requests; `at_least` where no index of safetensors says how long headers are.

    Raises
    ------
    BadReference, SourceError, FormatError, BudgetExceeded
        As for `open`.

    Examples
    --------
    >>> import kinprint, kinprint.demo
    >>> kinprint.plan_inspection(kinprint.demo.FOLDER / "zoo" / "base-a").at_least
    False
    """
    with reading(reader, budget, cache, progress) as own:
        meter = Meter(own)
        checkpoint = open_checkpoint(os.fspath(model), fetcher_of(own))
        found = fetcher_of(own).plan(checkpoint.header_wants())
        cost = sum((one.cost for one in found), Cost())
        return _plan(checkpoint, "headers", None, cost, meter.cost, language)


def _plan(
    checkpoint: Checkpoint, what: str, tensors: int | None, cost: Cost, spent: Cost, language: str
) -> Plan:
    from kinprint.report.results.plan import Plan

    ref = checkpoint.ref
    # Only an index of safetensors says beforehand how long headers are.
    told = checkpoint.format == SAFETENSORS and checkpoint.index is not None
    document = ReadingPlanDocument(
        model=ref.given,
        commit=ref.commit or None,
        what=what,
        tensors=tensors,
        bytes=cost.bytes,
        requests=cost.requests,
        at_least=tensors is None and not told and ref.kind != "local",
        spent=StageCost.of(spent),
    )
    return Plan(document, language, local=ref.kind == "local", files=len(checkpoint.shards))


def _norms(checkpoint: Checkpoint) -> list[str]:
    """Gains of the norms, of towers too."""
    tensors = inspect_checkpoint(checkpoint).tensor_map.tensors
    words = ((one.spec.name, word_of(one.role) or "") for one in tensors)
    return [name for name, word in words if word.startswith("norm") and not is_bias(word)]


def _matching(checkpoint: Checkpoint, patterns: Sequence[str]) -> list[str]:
    names = [name for name in checkpoint.names() if any(fnmatchcase(name, one) for one in patterns)]
    if not names:
        cause = text.message("cause.plan.no-tensor", model=checkpoint.ref.given)
        raise BadOption(option="tensors", value=" ".join(patterns), cause=cause)
    return names
