"""Comparisons, matrices and plans as documents.

Records become fields, relations sentences, and numbers that are none become null.
"""

from __future__ import annotations

import math
import platform
import shlex
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import msgspec

from kinprint import text
from kinprint.lineage.about.description import Description
from kinprint.lineage.charge import Charge
from kinprint.lineage.results import Comparison, ComparisonPlan, Matrix, PairVerdict, Settings
from kinprint.lineage.sharing.map import LayerMap, NormLikeness
from kinprint.nulls.monte_carlo import deviations
from kinprint.records import ALPHA, Agreement, Cost, Evidence, Level, ModelRef, Relation, Verdict
from kinprint.report import schema
from kinprint.report.answer import summary_of, sureness_of
from kinprint.report.translation import Translator
from kinprint.text.catalogue import FIRST
from kinprint.titles import full_titles, short_titles
from kinprint.version import __version__

_WITH_FIELDS = {FIRST, "ko"}  # languages that this version of the schema has fields for


def comparison_document(found: Comparison, cost: Cost) -> schema.ComparisonDocument:
    """A comparison as a document; `cost` is what the run took as a whole."""
    settings = found.settings
    names = [found.a.given, found.b.given]
    titles = full_titles((found.a, found.b))
    translator = Translator()
    return schema.ComparisonDocument(
        a=found.a.given,
        b=found.b.given,
        models=_subjects((found.a, found.b), found.subjects, translator),
        verdict=_verdict(found.verdict, titles, translator),
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
        asked=_asked(settings, found.strangers),
        plan=schema.PlanPart(
            stages_read=found.stages[0],
            stages=found.stages[1],
            bytes_at_most=found.limit,
            left_out=translator.all_said(found.left_out),
        ),
        notes=translator.all_said(found.notes),
        labels=translator.all_said(found.labels),
        translations=translator.kept,
        made=_made("compare", names, settings, found.strangers),
        read=schema.ReadPart.of(cost),
    )


def matrix_document(found: Matrix, cost: Cost) -> schema.MatrixDocument:
    """All pairs as a document."""
    names = [ref.given for ref in found.models] + [one.given for one in found.unread]
    titles = full_titles(found.models)
    translator = Translator()
    return schema.MatrixDocument(
        models=_subjects(found.models, found.subjects, translator),
        pairs=[_pair(found, one, titles, translator) for one in found.pairs],
        order=list(found.order),
        tree=_told(found.tree, list[schema.Merge]),
        unread=[
            schema.Unread(
                given=one.given,
                error=_kept(one.error.sentence, translator),
                error_ko=one.error.sentence("ko"),
            )
            for one in found.unread
        ],
        failed=[
            schema.FailedPair(
                a=found.models[one.a].given,
                b=found.models[one.b].given,
                error=_kept(one.error.sentence, translator),
                error_ko=one.error.sentence("ko"),
            )
            for one in found.failed
        ],
        asked=_asked(found.settings),
        notes=translator.all_said(found.notes),
        labels=translator.all_said(found.labels),
        translations=translator.kept,
        made=_made("matrix", names, found.settings),
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
    refs: Sequence[ModelRef], told: Sequence[Description], translator: Translator
) -> list[schema.Subject]:
    described = list(told) or [Description() for _ in refs]
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
            digests=[
                schema.FileDigest(path=each.path, bytes=each.size, sha256=each.sha256)
                for each in one.digests
            ],
            tokenizer=_told(one.tokenizer, schema.Tokenizer | None),
            claims=_told(one.claims, list[schema.Claim]),
        )
        for ref, title, one in zip(refs, short_titles(refs), described, strict=True)
    ]


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


def _verdict(verdict: Verdict, titles: Sequence[str], translator: Translator) -> schema.VerdictPart:
    a, b = titles
    return schema.VerdictPart(
        relation=Relation(verdict.relation),
        log10_p=_log_p(verdict.log10_p),
        alpha=float(verdict.alpha),
        summary=_kept(partial(summary_of, verdict, a, b), translator),
        summary_ko=summary_of(verdict, a, b, "ko"),
        sureness=_kept(partial(sureness_of, verdict), translator),
        sureness_ko=sureness_of(verdict, "ko"),
        roles=list(verdict.linked),
        power={name: float(size) for name, size in verdict.power if math.isfinite(size)},
        reasons=_reasons(verdict),
    )


def _kept(say: Callable[[str], str], translator: Translator) -> str:
    """A sentence in English; the translator keeps those in languages without a field."""
    english = say(FIRST)
    others = set(text.languages()) - _WITH_FIELDS
    translator.keep(english, {language: say(language) for language in sorted(others)})
    return english


def _reasons(verdict: Verdict) -> list[str]:
    """The steps that led to a relation, then parts and needs that it names, after their step."""
    unshared = (f"unshared:{part}" for part in verdict.unshared)
    missing = (f"missing:{needed}" for needed in verdict.missing)
    return [*verdict.reasons, *unshared, *missing]


def _pair(
    found: Matrix, one: PairVerdict, titles: Sequence[str], translator: Translator
) -> schema.PairPart:
    a, b = found.models[one.a], found.models[one.b]
    spoken = [each for each in one.evidence if each.status == "ok"]
    strongest = min(spoken, key=lambda each: (each.tier != "exact", each.log10_p), default=None)
    say = partial(summary_of, one.verdict, titles[one.a], titles[one.b])
    return schema.PairPart(
        a=a.given,
        b=b.given,
        relation=Relation(one.verdict.relation),
        log10_p=_log_p(one.verdict.log10_p),
        summary=_kept(say, translator),
        summary_ko=say("ko"),
        roles=list(one.verdict.linked),
        reasons=_reasons(one.verdict),
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
        deviations=_number(deviations(one.statistic, one.null)),
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


def _asked(settings: Settings, controls: Sequence[str] = ()) -> schema.Asked:
    return schema.Asked(
        level=Level(settings.level),
        alpha=float(settings.alpha),
        budget=settings.budget,
        seed=settings.seed,
        base=settings.base,
        controls=list(controls),
    )


def _made(
    verb: str, names: Sequence[str], settings: Settings, controls: Sequence[str] = ()
) -> schema.Made:
    return schema.Made(
        kinprint=__version__,
        python=platform.python_version(),
        numpy=_version("numpy"),
        scipy=_version("scipy"),
        command=_command(verb, names, settings, controls),
    )


def _command(verb: str, names: Sequence[str], settings: Settings, controls: Sequence[str]) -> str:
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
        words += ["--base", settings.base]
    for control in controls:
        words += ["--control", control]
    guard = ["--"] if any(name.startswith("-") for name in names) else []
    return shlex.join([*words, *guard, *names])


@cache
def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _log_p(value: float | None) -> float | None:
    found = _number(value)
    return None if found is None else min(found, 0.0)


def _number(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)
