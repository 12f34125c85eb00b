"""Comparisons, matrices and plans as documents.

Records become fields, relations sentences, and numbers that are none become null.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from kinprint.errors import option_name
from kinprint.lineage.about.description import Description
from kinprint.lineage.charge import Charge
from kinprint.lineage.reading.sample import SampleRecord
from kinprint.lineage.results import Comparison, ComparisonPlan, Matrix, PairVerdict, Settings
from kinprint.records import (
    ALPHA,
    Agreement,
    Amount,
    ByteRange,
    Component,
    Cost,
    Evidence,
    Level,
    ModelRef,
    Part,
    PartFinding,
    PartState,
    Relation,
    Verdict,
)
from kinprint.report import schema
from kinprint.report.build.beyond import beyond_part
from kinprint.report.build.common import made_with, titled
from kinprint.report.build.diff import changes_part
from kinprint.report.build.direction import direction_part
from kinprint.report.parts import needed_bytes
from kinprint.report.statements import Reading, Spoken, spoken
from kinprint.report.translation import Translator
from kinprint.titles import full_titles, public_name, short_titles

if TYPE_CHECKING:
    from kinprint.diff.direction import Direction
    from kinprint.diff.given import Beyond
    from kinprint.diff.sampled_parts import SampledChanges
    from kinprint.lineage.sharing.map import LayerMap, NormLikeness


def comparison_document(
    found: Comparison,
    cost: Cost,
    beyond: Beyond | None = None,
    direction: Direction | None = None,
    changes: SampledChanges | None = None,
) -> schema.ComparisonDocument:
    """A comparison as a document; `cost` is what the run took as a whole.

    `beyond` is what the models share beyond a base and `direction` which came first, where these
    were asked; `changes` is what changed, as far as the samples tell.
    """
    settings = found.settings
    refs = found.a, found.b
    titles = full_titles(refs)
    translator = Translator()
    given = None if beyond is None else beyond.base.given
    return schema.ComparisonDocument(
        a=found.a.given,
        b=found.b.given,
        models=_subjects(refs, titles, found.subjects, translator, found.read),
        verdict=verdict_part(
            found.verdict,
            spoken(
                found.verdict,
                titles,
                Reading(
                    settings.level,
                    found.stages,
                    found.left_out,
                    seed=settings.seed,
                    limited=settings.budget is not None,
                ),
            ),
            translator,
        ),
        evidence=[_evidence(one, found.charge, translator) for one in found.evidence],
        controls=[
            schema.ControlPart(
                model=one.model, control=one.control, evidence=_in_short(one.evidence)
            )
            for one in found.controls
        ],
        shared=None if found.shared is None else _shared(found.shared, translator),
        seeds=[_seed(one) for one in found.norms],
        configuration=_told(found.configuration, list[schema.SettingRow]),
        tokens=_told(found.tokens, schema.SharedTokens | None),
        beyond=None if beyond is None else beyond_part(beyond, titles, translator),
        direction=None if direction is None else direction_part(direction, titles, translator),
        changes=None if changes is None else changes_part(changes, translator),
        asked=_asked(settings, found.strangers, given),
        plan=schema.PlanPart(
            stages_read=found.stages[0],
            stages=found.stages[1],
            bytes_at_most=found.limit,
            left_out=translator.all_said(found.left_out),
        ),
        samples=_samples(found.read),
        notes=translator.all_said(titled(found.notes, refs, titles)),
        labels=translator.all_said(titled(found.labels, refs, titles)),
        translations=translator.kept,
        made=_made("compare", _public(refs, titles), settings, found.strangers, given),
        read=schema.ReadPart.of(cost),
    )


def matrix_document(found: Matrix, cost: Cost) -> schema.MatrixDocument:
    """All pairs as a document."""
    titles = full_titles(found.models)
    lost = [public_name(one.given) for one in found.unread]
    translator = Translator()
    return schema.MatrixDocument(
        models=_subjects(found.models, short_titles(found.models), found.subjects, translator),
        pairs=[_pair(found, one, titles, translator) for one in found.pairs],
        order=list(found.order),
        tree=_told(found.tree, list[schema.Merge]),
        false_links=found.false_links,
        unread=[
            schema.Unread(
                given=one.given,
                error=translator.kept_in_all(one.error.spelled(option_name).sentence),
            )
            for one in found.unread
        ],
        failed=[
            schema.FailedPair(
                a=found.models[one.a].given,
                b=found.models[one.b].given,
                error=translator.kept_in_all(one.error.spelled(option_name).sentence),
            )
            for one in found.failed
        ],
        asked=_asked(found.settings),
        samples=_samples(found.read),
        notes=translator.all_said(titled(found.notes, found.models, titles)),
        labels=translator.all_said(titled(found.labels, found.models, titles)),
        translations=translator.kept,
        made=_made("matrix", [*_public(found.models, titles), *lost], found.settings),
        read=schema.ReadPart.of(cost),
    )


def plan_document(found: ComparisonPlan, spent: Cost) -> schema.PlanDocument:
    """What a comparison would cost; `spent` is what knowing it took."""
    translator = Translator()
    return schema.PlanDocument(
        models=[ref.given for ref in found.models],
        bytes=found.cost.bytes,
        requests=found.cost.requests,
        stages=[schema.StageCost.of(one) for one in found.stages],
        bytes_at_most=found.limit,
        left_out=translator.all_said(found.left_out),
        translations=translator.kept,
        asked=_asked(found.settings),
        spent=schema.StageCost.of(spent),
    )


def _subjects(
    refs: Sequence[ModelRef],
    titles: Sequence[str],
    told: Sequence[Description],
    translator: Translator,
    read: Sequence[Sequence[SampleRecord]] = (),
) -> list[schema.Subject]:
    described = list(told) or [Description() for _ in refs]
    bytes_read = [_bytes_read(one) for one in read] or [0 for _ in refs]
    return [
        schema.Subject(
            given=ref.given,
            name=ref.name,
            title=title,
            kind=ref.kind,
            commit=ref.commit or None,
            published=one.published,
            changed=one.changed,
            architecture=one.architecture,
            formats=[translator.said(name) for name in one.formats],
            files=one.files,
            bytes=one.bytes,
            read=min(amount, one.bytes),
            digests=[
                schema.FileDigest(path=each.path, bytes=each.size, sha256=each.sha256)
                for each in one.digests
            ],
            tokenizer=_told(one.tokenizer, schema.Tokenizer | None),
            claims=_told(one.claims, list[schema.Claim]),
        )
        for ref, title, one, amount in zip(refs, titles, described, bytes_read, strict=True)
    ]


def _bytes_read(samples: Sequence[SampleRecord]) -> int:
    return sum(span.size for one in samples for tensor in one.tensors for span in tensor.ranges)


def _public(refs: Sequence[ModelRef], titles: Sequence[str]) -> list[str]:
    """Models as a command may name them that others read."""
    return [public_name(ref.given, title) for ref, title in zip(refs, titles, strict=True)]


def _shared(found: LayerMap, translator: Translator) -> schema.SharedMap:
    return schema.SharedMap(
        depths=found.depths,
        layers=_told(found.layers, list[schema.LayerPair]),
        cells=[
            schema.MapCell(
                role=one.role,
                a=one.a,
                b=one.b,
                likeness=_short(one.likeness),
                chance=None if one.chance is None else _short(one.chance),
                count=one.count,
            )
            for one in found.cells
        ],
        alignment=", ".join(translator.all_said(found.alignment)),
    )


def _seed(one: NormLikeness) -> schema.SeedMetric:
    return schema.SeedMetric(
        role=one.role,
        a=one.a,
        b=one.b,
        cosine=_number(one.cosine),
        pearson=_number(one.pearson),
        relative_l2=_number(one.relative_l2),
        n=one.n,
    )


def _short(value: float) -> float:
    """Six digits: a map has hundreds of numbers, and chance blurs the third."""
    return float(f"{value:.6g}")


def _told(record: object, kind: Any) -> Any:
    """A record of the comparison as the part of a document that has the same fields."""
    return msgspec.convert(record, kind, from_attributes=True)


def verdict_part(verdict: Verdict, said: Spoken, translator: Translator) -> schema.VerdictPart:
    """A verdict and what is said of it, as a document has them."""
    relation = Relation(verdict.relation)
    return schema.VerdictPart(
        relation=relation,
        summary=translator.words(said.summary),
        statements=statements_part(said, translator),
        link=schema.LinkPart(log10_p=_log_p(verdict.log10_p), alpha=float(verdict.alpha)),
        parts=[part_row(one, translator) for one in verdict.parts],
        kind=schema.KindPart(relation=relation, reasons=list(verdict.reasons)),
        amount=_amount(verdict.amount),
        coverage=schema.CoveragePart(
            read=_share(verdict.amount.read),
            power={name: _short(size) for name, size in verdict.power if math.isfinite(size)},
            open=_open_parts(verdict.parts, translator),
            missing=translator.all_said(verdict.missing),
            needs=_needed(verdict.parts),
        ),
    )


def statements_part(said: Spoken, translator: Translator) -> schema.Statements:
    """The five statements, as a document has them."""
    return schema.Statements(
        link=translator.words(said.link),
        what=translator.words(said.what),
        kind=translator.words(said.kind),
        amount=translator.words(said.amount),
        coverage=translator.words(said.coverage),
    )


def part_row(one: PartFinding, translator: Translator) -> schema.PartRow:
    """What is known about one part, as documents have it."""
    part, partner = one.part, one.partner
    return schema.PartRow(
        tower=part.tower,
        component=part.component,
        layer=part.layer,
        expert=part.expert,
        partner=None if partner is None else _place(partner),
        state=one.state,
        share=_share(one.sure),
        likeness=None if _number(one.likeness) is None else _short(float(one.likeness or 0.0)),
        log10_p=_log_p(one.log10_p),
        learnt=one.learnt,
        bits=one.bits,
        reason=translator.said(one.reason),
        tests=list(one.tests),
        weights=one.counted,
        read=_share(one.read),
        needs=one.needs,
        of_second=one.of_second,
    )


def _place(part: Part) -> schema.PlacePart:
    return schema.PlacePart(
        component=part.component, layer=part.layer, expert=part.expert, tower=part.tower
    )


def _amount(amount: Amount) -> schema.AmountPart:
    return schema.AmountPart(
        linked=_share(amount.linked),
        layers=None if amount.layers is None else _share(amount.layers),
        likeness=None if amount.likeness is None else _short(amount.likeness),
        read=_share(amount.read),
    )


def _open_parts(findings: Sequence[PartFinding], translator: Translator) -> list[schema.OpenParts]:
    """Parts about which nothing can be said, by component and reason."""
    found: dict[tuple[PartState, str, Component, str], list[PartFinding]] = {}
    for one in findings:
        if one.state in (PartState.NOT_COMPARABLE, PartState.NOT_READ):
            key = one.state, one.part.tower, one.part.component, translator.said(one.reason)
            found.setdefault(key, []).append(one)
    return [
        schema.OpenParts(
            state=state,
            component=component,
            layers=sorted({one.part.layer for one in parts if one.part.layer is not None}),
            tower=tower,
            reason=reason,
            weights=sum(one.weights for one in parts),
            needs=_needed(parts),
        )
        for (state, tower, component, reason), parts in found.items()
    ]


def _needed(findings: Sequence[PartFinding]) -> int | None:
    """Bytes that would decide what is open, as far as they are known."""
    return needed_bytes(one for one in findings if not one.state.linked)


def _samples(read: Sequence[Sequence[SampleRecord]]) -> list[list[schema.SampleRead]]:
    return [
        [
            schema.SampleRead(
                tower=sample.tower,
                sha256=sample.sha256,
                tensors=[
                    schema.TensorRead(
                        file=one.file,
                        tensor=one.tensor,
                        ranges=_ranges(one.ranges),
                        sha256=one.sha256,
                    )
                    for one in sample.tensors
                ],
            )
            for sample in model
        ]
        for model in read
    ]


def _ranges(ranges: Sequence[ByteRange]) -> str:
    return " ".join(f"{one.start}-{one.stop}" for one in ranges)


def _pair(
    found: Matrix, one: PairVerdict, titles: Sequence[str], translator: Translator
) -> schema.PairPart:
    a, b = found.models[one.a], found.models[one.b]
    found_by = [each for each in one.evidence if each.status == "ok"]
    strongest = min(found_by, key=lambda each: (each.tier != "exact", each.log10_p), default=None)
    said = spoken(
        one.verdict,
        (titles[one.a], titles[one.b]),
        Reading(found.settings.level, seed=found.settings.seed),
    )
    return schema.PairPart(
        a=a.given,
        b=b.given,
        relation=Relation(one.verdict.relation),
        log10_p=_log_p(one.verdict.log10_p),
        summary=translator.words(said.summary),
        statements=statements_part(said, translator) if one.verdict.relation.linked else None,
        components=list(one.verdict.linked),
        reasons=list(one.verdict.reasons),
        amount=_amount(one.verdict.amount),
        strongest=None if strongest is None else strongest.test,
        likeness=_short(one.likeness),
        evidence=_in_short(one.evidence),
    )


def _evidence(one: Evidence, charge: Charge, translator: Translator) -> schema.EvidencePart:
    return schema.EvidencePart(
        test=one.test,
        tier=one.tier,
        group=one.group,
        status=one.status,
        log10_p=_log_p(one.log10_p),
        adjusted=_log_p(charge.adjusted(one)),
        share=charge.share(one.test),
        statistic=_number(one.statistic),
        effect=_number(one.effect),
        n=int(one.n),
        bound=one.bound,
        floor=_log_p(one.floor),
        null=[_number(value) for value in one.null],
        roles=list(one.roles),
        layers=list(one.layers),
        reason=translator.said(one.reason),
        learnt=one.learnt,
        details=_details(one),
    )


def _details(one: Evidence) -> dict[str, float | None]:
    """Further numbers of a test by name, those that rules read among them."""
    fields = (
        *((f"layer {layer}", likeness) for layer, likeness in one.by_layer),
        ("quality", one.alignment_quality),
        ("spread", one.gain_spread),
        *(() if one.agreement is None else _agreement(one.agreement)),
    )
    known = (*one.details, *((name, float(value)) for name, value in fields if value is not None))
    return {name: _number(value) for name, value in known}


def _agreement(one: Agreement) -> tuple[tuple[str, float | None], ...]:
    """The numbers of what agrees that no relabelling can change."""
    return (
        ("agreeing", one.count),
        ("low", one.interval[0]),
        ("high", one.interval[1]),
        ("limit", one.limit),
        ("strangers", one.strangers),
        ("largest of strangers", one.largest),
        ("width of strangers", one.width),
        ("other layers", one.control),
        ("log10 p if strangers agreed in nine of ten", one.nine_of_ten),
    )


def _in_short(evidence: Iterable[Evidence]) -> list[schema.EvidenceShort]:
    return [
        schema.EvidenceShort(
            test=one.test,
            status=one.status,
            log10_p=_log_p(one.log10_p),
            effect=_number(one.effect),
        )
        for one in evidence
    ]


def _asked(
    settings: Settings, controls: Sequence[str] = (), given: str | None = None
) -> schema.Asked:
    return schema.Asked(
        level=Level(settings.level),
        alpha=float(settings.alpha),
        budget=settings.budget,
        seed=settings.seed,
        base=settings.base,
        given=given,
        controls=list(controls),
    )


def _made(
    verb: str,
    names: Sequence[str],
    settings: Settings,
    controls: Sequence[str] = (),
    given: str | None = None,
) -> schema.Made:
    command = _command(verb, names, settings, controls, given)
    return made_with(command, grouped=verb == "matrix")


def _command(
    verb: str,
    names: Sequence[str],
    settings: Settings,
    controls: Sequence[str],
    given: str | None,
) -> str:
    """The command that asks for the same again, quoted for a shell; defaults are left out."""
    words = ["kinprint", verb]
    if settings.level != Level.STANDARD:
        words += ["--level", settings.level]
    if settings.alpha != ALPHA:
        words += ["--alpha", repr(settings.alpha)]
    if settings.budget is not None:
        words += ["--budget", str(settings.budget)]
    if settings.seed:
        words += ["--seed", str(settings.seed)]
    if settings.base is not None:
        words += ["--base", public_name(settings.base)]
    if given is not None:
        words += ["--given", public_name(given)]
    for control in controls:
        words += ["--control", public_name(control)]
    guard = ["--"] if any(name.startswith("-") for name in names) else []
    return shlex.join([*words, *guard, *names])


def _log_p(value: float | None) -> float | None:
    found = _number(value)
    return None if found is None else min(found, 0.0)


def _share(value: float) -> float:
    """A share with six digits; only what is all of something is one."""
    rounded = min(max(float(f"{value:.6g}"), 0.0), 1.0)
    return 0.999999 if rounded == 1.0 and value < 1 else rounded


def _number(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)
