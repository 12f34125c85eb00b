"""What a model is built on, as a document."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Mapping
from typing import Any

from kinprint.atlas.fingerprint import LEVEL
from kinprint.atlas.identify import FAMILY, Identified, Relative, is_named
from kinprint.atlas.store import Entry
from kinprint.errors import KinprintError
from kinprint.lineage.about.claims import Claim
from kinprint.lineage.power import seen_from_everywhere
from kinprint.records import Cost, DeclaredState, Level, ModelRef, Verdict
from kinprint.report import schema
from kinprint.report.build.common import made_with, titled
from kinprint.report.build.comparison import part_row
from kinprint.report.translation import Translator
from kinprint.titles import full_titles, public_name

Titles = Mapping[ModelRef, str]


def identify_document(found: Identified, place: str, cost: Cost) -> schema.IdentifyDocument:
    """An identification as a document; `place` is the atlas, `cost` what the run took."""
    one = found.model
    linked = [*found.parents, *found.descendants, *found.relatives]
    refs = [
        one.ref,
        *(each.entry.ref for each in linked),
        *(entry.ref for entry, _ in found.unlinked),
        *(entry.ref for entry in found.same),
    ]
    titles = dict(zip(refs, full_titles(refs), strict=True))
    translator = Translator()
    claims = [claim.model for claim in one.claims]
    parents, descendants, relatives = (
        [_relative(each, found, titles, claims, translator) for each in some]
        for some in (found.parents, found.descendants, found.relatives)
    )
    atlas = public_name(place)
    command = ["kinprint", "identify", public_name(one.ref.given, titles[one.ref])]
    command += ["--atlas", atlas]
    return schema.IdentifyDocument(
        model=schema.AtlasModel(**_named(one.ref, titles), architecture=one.architecture),
        atlas=atlas,
        searched=found.searched,
        compared=len(linked) + len(found.unlinked),
        family=FAMILY,
        alpha=found.alpha,
        seed=one.seed,
        parents=parents,
        descendants=descendants,
        relatives=relatives,
        unlinked=[
            _unlinked(entry, verdict, _level(entry, found), titles)
            for entry, verdict in found.unlinked
        ],
        declared=declared_parts(found.declared),
        same=[schema.AtlasModel(**atlas_model(entry, titles)) for entry in found.same],
        other_seeds=found.other_seeds,
        left_out=[
            *_left_out(found.failed, translator),
            *(
                schema.LeftOutPart(
                    entry=str(error.fields["entry"]), reason=translator.said(error.message)
                )
                for error in found.broken
            ),
        ],
        not_deep=_left_out(found.not_deep, translator),
        labels=translator.all_said(titled(found.labels, refs, [titles[ref] for ref in refs])),
        translations=translator.kept,
        made=made_with(shlex.join(command)),
        read=schema.ReadPart.of(cost),
    )


def _relative(
    one: Relative,
    found: Identified,
    titles: Titles,
    claims: list[str],
    translator: Translator,
) -> schema.RelativePart:
    verdict = one.verdict
    return schema.RelativePart(
        **atlas_model(one.entry, titles),
        level=_level(one.entry, found),
        relation=verdict.relation,
        reasons=[reason.value for reason in verdict.reasons],
        log10_p=known_p(one.log10_p),
        likeness=float(f"{one.likeness:.7g}"),
        direction=one.direction,
        weight=None if one.weight is None else float(f"{one.weight:.7g}"),
        tied=one.tied,
        declared=any(is_named(claim, one.entry.ref) for claim in claims),
        parts=[part_row(part, translator) for part in verdict.parts],
    )


def known_p(log10_p: float) -> float | None:
    """A p-value of a link, where it has one."""
    return log10_p if math.isfinite(log10_p) and log10_p < 0 else None


def declared_parts(
    declared: Iterable[tuple[Claim, DeclaredState]],
) -> list[schema.DeclaredPart]:
    """Origins that a model declares, and what became of them."""
    return [
        schema.DeclaredPart(
            claim=schema.Claim(where=claim.where, model=claim.model, relation=claim.relation),
            state=state,
        )
        for claim, state in declared
    ]


def _level(entry: Entry, found: Identified) -> Level:
    return Level.DEEP if entry.id in found.read_deep else LEVEL


def _unlinked(entry: Entry, verdict: Verdict, level: Level, titles: Titles) -> schema.UnlinkedPart:
    effect, test = seen_from_everywhere(verdict)
    return schema.UnlinkedPart(
        **atlas_model(entry, titles),
        level=level,
        relation=verdict.relation,
        test=test,
        effect=effect,
    )


def _left_out(
    some: Iterable[tuple[Entry, KinprintError]], translator: Translator
) -> list[schema.LeftOutPart]:
    return [
        schema.LeftOutPart(
            entry=entry.id, name=entry.ref.name, reason=translator.said(error.message)
        )
        for entry, error in some
    ]


def atlas_model(entry: Entry, titles: Titles) -> dict[str, Any]:
    """The fields of a model as an atlas knows it; where a folder lies is not told to readers."""
    ref = entry.ref
    given = ref.name if ref.kind == "local" else ref.given
    named = {**_named(ref, titles), "given": given}
    return {**named, "architecture": entry.architecture, "entry": entry.id}


def _named(ref: ModelRef, titles: Titles) -> dict[str, Any]:
    return {
        "given": ref.given,
        "name": ref.name,
        "title": titles[ref],
        "kind": ref.kind,
        "commit": ref.commit or None,
    }
