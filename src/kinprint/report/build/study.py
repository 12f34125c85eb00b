"""A study's result, the list of studies, and a dispute done again, as documents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from kinprint.records import Cost, ModelRef
from kinprint.report import schema
from kinprint.report.translation import Translator
from kinprint.studies.results import Cell, Result, Table
from kinprint.studies.study import Request, Study
from kinprint.text import Message, Sentence

if TYPE_CHECKING:
    from kinprint.studies.reproduction.published import ComparedNumber


def study_document(
    result: Result,
    study: Study,
    asked: Request | None = None,
    sources: Sequence[ModelRef] = (),
    cost: Cost | None = None,
) -> schema.StudyDocument:
    """A result with what it takes to read it: the study's words, what was asked, of whom.

    `cost` is what reading took, the one part that differs from run to run.
    """
    translator = Translator()
    return schema.StudyDocument(
        study=schema.StudyPart(
            name=study.name,
            code=study.code,
            title=study.title,
            shows=study.shows,
            cannot=study.cannot,
        ),
        models=result.models,
        labels=tuple(translator.all_said(result.labels)),
        sources=tuple(map(schema.SourcePart.of, sources)),
        asked=None if asked is None else _asked(asked),
        findings=result.findings,
        facts=dict(result.facts),
        statuses=result.statuses,
        tables=tuple(_table(one, translator) for one in result.tables),
        charts=result.charts,
        translations=translator.kept,
        read=None if cost is None else schema.ReadPart.of(cost),
    )


def _table(one: Table, translator: Translator) -> Table:
    """A table whose sentences are English text; the translator keeps the other languages."""

    def plain(value: Cell) -> Cell:
        return translator.said(value) if isinstance(value, Sentence) else value

    return replace(one, rows=tuple(tuple(map(plain, row)) for row in one.rows))


def _asked(request: Request) -> schema.StudyAsked:
    return schema.StudyAsked(
        layers=request.layers,
        roles=request.roles,
        measures=request.measures,
        rows=request.rows,
        seed=request.seed,
    )


def studies_document(found: Iterable[Study]) -> schema.StudiesDocument:
    """The list of studies as a document."""
    return schema.StudiesDocument(
        studies=tuple(
            schema.StudyEntry(
                name=one.name,
                code=one.code,
                title=one.title,
                shows=one.shows,
                cannot=one.cannot,
                models=schema.ModelCount(least=one.least, most=one.most),
                roles=one.roles,
                layers=one.layers,
                measures=one.measures,
                vocabulary=one.vocabulary,
            )
            for one in found
        )
    )


def reproduction_document(
    name: str,
    sources: Mapping[str, ModelRef],
    missing: Mapping[str, Message],
    studies: Iterable[str],
    numbers: Iterable[ComparedNumber],
    *,
    replica: bool,
    cost: Cost,
) -> schema.ReproductionDocument:
    """What was found, without the results of its studies; `cost` is what reading took."""
    return schema.ReproductionDocument(
        name=name,
        replica=replica,
        models={key: schema.SourcePart.of(ref) for key, ref in sources.items()},
        missing={key: why.words() for key, why in missing.items()},
        studies=tuple(studies),
        numbers=tuple(
            schema.NumberPart(
                analysis=one.published.seed,
                number=one.published.key,
                published=one.published.text,
                found=one.found,
                status=one.status,
                mark=one.mark,
                interval=one.interval,
                pairs=None if one.pairs is None else schema.PairsPart.of(one.pairs),
                source=one.published.cited,
            )
            for one in numbers
        ),
        read=schema.ReadPart.of(cost),
    )
