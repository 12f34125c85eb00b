"""A dispute done again, as a document."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kinprint.errors import KinprintError
from kinprint.records import Cost, ModelRef
from kinprint.report import schema
from kinprint.studies.reproduction.published import ComparedNumber


def reproduction_document(
    name: str,
    sources: Mapping[str, ModelRef],
    missing: Mapping[str, KinprintError],
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
        models={
            key: schema.SourcePart(
                given=ref.given, name=ref.name, kind=ref.kind, commit=ref.commit or None
            )
            for key, ref in sources.items()
        },
        missing={key: error.message.words() for key, error in missing.items()},
        studies=tuple(studies),
        numbers=tuple(
            schema.NumberPart(
                analysis=one.published.seed,
                number=one.published.key,
                published=one.published.text,
                found=one.found,
                status=one.status,
                source=one.published.source,
            )
            for one in numbers
        ),
        read=schema.ReadPart(
            bytes=cost.bytes, requests=cost.requests, seconds=round(cost.seconds, 3)
        ),
    )
