"""Named studies of models, and the studies of a public dispute done again."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from kinprint import text
from kinprint.errors import BadOption, KinprintError, attempt
from kinprint.measure.measures import Measure
from kinprint.measure.measures import measures as known_measures
from kinprint.model.model import Model
from kinprint.model.opening import need_adapter, open_for_tokens, open_model
from kinprint.reader.checkpoint import open_checkpoint
from kinprint.reader.fetch import side_by_side
from kinprint.records import Progress, Role
from kinprint.report.build.study import study_document
from kinprint.report.results.result import Failure
from kinprint.report.results.study import StudyResult
from kinprint.report.schema import StageCost, StudyPlanDocument, settled
from kinprint.studies.registry import studies as known_studies
from kinprint.studies.registry import study_named
from kinprint.studies.running import Task, plan_studies, run_tasks
from kinprint.studies.study import Request, Study
from kinprint.verbs.reader import (
    Meter,
    ModelName,
    Reader,
    checked_seed,
    fetcher_of,
    reading,
    written_name,
)

if TYPE_CHECKING:
    from kinprint.report.results.plan import Plan

ROWS = 16
"""Rows of a matrix that a study samples unless somebody asks for more or all."""


def list_studies() -> Mapping[str, Study]:
    """All named studies.

    Returns
    -------
    mapping of str to Study
        By name, in the order in which the analyses made them.

    Examples
    --------
    >>> import kinprint
    >>> kinprint.list_studies()["same-layer"].least
    2
    """
    return known_studies()


def find_study(name: str) -> Study:
    """One of the named studies.

    Parameters
    ----------
    name : str
        Its name.

    Returns
    -------
    Study
        What it compares, shows and cannot show.

    Raises
    ------
    BadOption
        There is no such study; the error names the nearest.

    Examples
    --------
    >>> import kinprint
    >>> kinprint.find_study("same-layer").code
    'C3'
    """
    return study_named(name)


def list_measures() -> Mapping[str, Measure]:
    """All measures that studies take.

    Returns
    -------
    mapping of str to Measure
        By name, each with its formula, what leaves it unchanged and how it misleads.

    Examples
    --------
    >>> import kinprint
    >>> kinprint.list_measures()["cosine"].range
    (-1.0, 1.0)
    """
    return known_measures()


def study(
    name: str,
    *models: ModelName,
    layers: Iterable[int] | None = None,
    roles: Iterable[str] | None = None,
    measures: Iterable[str] | None = None,
    rows: int | None = ROWS,
    seed: int = 0,
    base: ModelName | None = None,
    budget: int | str | None = None,
    cache: bool = True,
    progress: Callable[[Progress], None] | None = None,
    reader: Reader | None = None,
    language: str = "en",
) -> StudyResult:
    """Run a named study of models; `kinprint.list_studies` names them all.

    A study measures and reaches no verdict; each says what it can and cannot show. A model that
    cannot be opened is set aside, as long as enough remain for the study.

    Parameters
    ----------
    name : str
        The study.
    *models : str or path
        The models, named as for `compare`.
    layers : iterable of int, optional
        Layers to look at; those of the study if None.
    roles : iterable of str, optional
        Tensors to look at, such as "norm_in" or "k"; those of the study if None.
    measures : iterable of str, optional
        Measures to take, such as "cosine"; those of the study if None.
    rows : int, optional
        Rows of a matrix to sample; None reads matrices whole.
    seed : int
        Chooses the rows.
    base, budget, cache, progress, reader, language
        As for `compare`.

    Returns
    -------
    StudyResult
        Tables, facts, pictures and findings.

    Raises
    ------
    BadOption
        There is no such study, role, layer or measure, or too few models.
    BadReference, SourceError, FormatError
        Too few models can be opened; this is what the first one failed with.
    BudgetExceeded
        Reading costs more than allowed.

    Examples
    --------
    >>> import kinprint, kinprint.demo
    >>> zoo = kinprint.demo.FOLDER / "zoo"
    >>> found = kinprint.study("same-layer", zoo / "base-a", zoo / "base-b", layers=[3])
    >>> found.statuses
    {'ok': 1}
    """
    chosen, request = study_named(name), _request(layers, roles, measures, rows, seed)
    with reading(reader, budget, cache, progress) as own:
        meter = Meter(own)
        opened, failures = _open(chosen, request, models, own, base)
        _check_against(request, opened if chosen.tensors else [])
        absent = (
            text.words("study.common.unavailable", model=one.given, error=one.error.message)
            for one in failures
        )
        (result,) = run_tasks([Task(chosen, tuple(opened), request, notes=tuple(absent))])
        refs = [model.checkpoint.ref for model in opened]
        document = settled(study_document(result, chosen, request, refs, meter.cost))
    return StudyResult(document, language, failures=failures)


def plan_study(
    name: str,
    *models: ModelName,
    layers: Iterable[int] | None = None,
    roles: Iterable[str] | None = None,
    measures: Iterable[str] | None = None,
    rows: int | None = ROWS,
    seed: int = 0,
    base: ModelName | None = None,
    budget: int | str | None = None,
    cache: bool = True,
    progress: Callable[[Progress], None] | None = None,
    reader: Reader | None = None,
    language: str = "en",
) -> Plan:
    """Say what a study would cost; headers and tokenizers are read to know it, and no weight.

    Parameters
    ----------
    name, *models, layers, roles, measures, rows, seed
        As for `study`.
    base, budget, cache, progress, reader, language
        As for `compare`.

    Returns
    -------
    Plan
        Bytes and requests.

    Raises
    ------
    BadOption, BadReference, SourceError, FormatError, BudgetExceeded
        As for `study`.

    Examples
    --------
    >>> import kinprint, kinprint.demo
    >>> zoo = kinprint.demo.FOLDER / "zoo"
    >>> kinprint.plan_study("same-layer", zoo / "base-a", zoo / "base-b").local
    True
    """
    from kinprint.report.results.plan import Plan

    chosen, request = study_named(name), _request(layers, roles, measures, rows, seed)
    with reading(reader, budget, cache, progress) as own:
        meter = Meter(own)
        opened, _ = _open(chosen, request, models, own, base)
        _check_against(request, opened if chosen.tensors else [])
        cost = plan_studies([chosen], opened, request)
        spent = meter.cost
    refs = [model.checkpoint.ref for model in opened]
    document = StudyPlanDocument(
        study=chosen.name,
        models=[ref.given for ref in refs],
        bytes=cost.bytes,
        requests=cost.requests,
        spent=StageCost.of(spent),
    )
    return Plan(document, language, local=all(ref.kind == "local" for ref in refs))


def _request(
    layers: Iterable[int] | None,
    roles: Iterable[str] | None,
    measures: Iterable[str] | None,
    rows: int | None,
    seed: int,
) -> Request:
    """What was asked for; values that make no sense are refused with a hint."""
    named = None if measures is None else tuple(measures)
    if named is not None:
        _check_names(named, known_measures(), "measures")
    asked = None if roles is None else tuple(roles)
    if asked is not None:
        _check_names(asked, [role.value for role in Role], "roles")
    return Request(
        layers=None if layers is None else tuple(layers),
        roles=asked,
        measures=named,
        rows=rows,
        seed=checked_seed(seed),
    )


def _check_against(request: Request, models: Sequence[Model]) -> None:
    """Refuse roles and layers that no model has; what some have is a matter of rows."""
    if not models:
        return
    if request.roles is not None:
        known = sorted({address.role for model in models for address in model.places})
        _check_names(request.roles, known, "roles")
    if request.layers is not None:
        depths = sorted({layer for model in models for layer in model.layers()})
        if depths and not set(request.layers) & set(depths):
            ends = {"first": depths[0], "last": depths[-1]}
            cause = text.message("cause.study.no-such-layer", **ends)
            value = request.layers[0] if request.layers else ""
            raise BadOption(option="layers", value=value, cause=cause)


def _check_names(names: Sequence[str], known: Iterable[str], option: str) -> None:
    possible = list(known)
    for name in names:
        if name in possible:
            continue
        from difflib import get_close_matches

        near = get_close_matches(name, possible, n=1)
        if near:
            cause = text.message("cause.name.nearest", near=near[0])
        else:
            listed = ", ".join(possible[:12]) + (", …" if len(possible) > 12 else "")
            cause = text.message("cause.name.choose", known=listed)
        raise BadOption(option=option, value=name, cause=cause)


def _open(
    study: Study,
    request: Request,
    models: Sequence[ModelName],
    reader: Reader,
    base: ModelName | None,
) -> tuple[list[Model], tuple[Failure, ...]]:
    """Models that can be opened, their headers read side by side, and those that cannot."""
    fetcher, under = fetcher_of(reader), written_name(base)
    few_experts = not _asks_for_experts(study, request)
    opening = partial(open_model, few_experts=few_experts) if study.tensors else open_for_tokens

    def open_one(given: str) -> Model | Failure:
        checkpoint = partial(open_checkpoint, given, fetcher, indexed=study.tensors)
        found = attempt(lambda: opening(checkpoint(), under))
        return Failure(given, found) if isinstance(found, KinprintError) else found

    found = side_by_side(open_one, [os.fspath(one) for one in models])
    opened = [one for one in found if isinstance(one, Model)]
    failed = tuple(one for one in found if isinstance(one, Failure))
    if failed and len(opened) < max(study.least, 1):
        failed[0].error.add_note(failed[0].given)
        raise failed[0].error
    if not failed:  # one that could not be opened may be the adapter
        need_adapter(opened, under)
    return opened, failed


def _asks_for_experts(study: Study, request: Request) -> bool:
    """Whether a study may look at experts, or at routers, which are held against their number.

    Studies of other packages may look at whatever they like.
    """
    roles = study.roles if request.roles is None else request.roles
    own = isinstance(study.procedure, str) and study.procedure.startswith("kinprint.")
    return not (own and roles) or any(role.startswith(("router", "expert_")) for role in roles)
