"""Comparison and matrix documents of models that never were, for pages, tables and pictures."""

from __future__ import annotations

from functools import cache

import numpy as np

from kinprint.lineage.tests.menu import menu
from kinprint.records import (
    Amount,
    Component,
    Level,
    Part,
    PartFinding,
    PartState,
    Reason,
    Relation,
    Status,
    Tier,
    Verdict,
    VerdictReason,
)
from kinprint.report.build.comparison import statements_part, verdict_part
from kinprint.report.schema import (
    AmountPart,
    Asked,
    Claim,
    ComparisonDocument,
    EvidencePart,
    EvidenceShort,
    LayerPair,
    Made,
    MapCell,
    MatrixDocument,
    Merge,
    PairPart,
    PlanPart,
    ReadPart,
    SeedMetric,
    SettingRow,
    SharedMap,
    SharedTokens,
    Subject,
    Unread,
)
from kinprint.report.statements import Reading, headline, spoken
from kinprint.report.translation import Translator

HOSTILE = "<script>alert(1)<b>|`[x](javascript:1)\u202e"
ASKED = Asked(level=Level.STANDARD, alpha=1e-6)
MADE = Made(
    kinprint="0.1.0", python="3.11.2", numpy="2.3.4", scipy="1.16.3",
    command="kinprint compare org/one org/two -o report.html",
)  # fmt: skip
READ = ReadPart(bytes=4_200_000, requests=31, seconds=2.5)
REASONS = {
    Relation.IDENTICAL: (VerdictReason.SAME_FILES,),
    Relation.SAME_WEIGHTS: (VerdictReason.SAME_AFTER_ROUNDING,),
    Relation.DERIVED: (VerdictReason.LEARNT_TOGETHER,),
    Relation.PARTIAL: (VerdictReason.PARTS_EQUAL, VerdictReason.LAYERS_UNSHARED),
    Relation.LAUNDERED: (),
    Relation.SAME_INIT: (VerdictReason.LEARNT_APART,),
    Relation.DEPENDENT: (VerdictReason.LEARNT_APART, VerdictReason.ARRANGED),
    Relation.NO_EVIDENCE: (VerdictReason.NOTHING_FOUND,),
    Relation.UNTESTABLE: (VerdictReason.NOTHING_TESTABLE,),
}
STATES = {
    Relation.SAME_WEIGHTS: PartState.ROUNDED,
    Relation.DERIVED: PartState.SHARED,
    Relation.PARTIAL: PartState.SHARED,
    Relation.SAME_INIT: PartState.SHARED,
    Relation.DEPENDENT: PartState.SHARED,
}
"""The state of linked parts; parts of other relations are not comparable."""
RELATIONS = tuple(Relation)


def subject(name: str) -> Subject:
    """A model of the Hub with a claim about its origin."""
    claims = [Claim(where="README.md: base_model", model="org/elder", relation="finetune")]
    return Subject(
        given=name, name=name, title=name.rpartition("/")[2], kind="hub", commit="c" * 40,
        architecture="LlamaForCausalLM", formats=["safetensors"], files=2, bytes=3_000_000,
        claims=claims,
    )  # fmt: skip


def comparison(
    relation: str = "derived", one: str = "org/one", two: str = "org/two"
) -> ComparisonDocument:
    """Two models with every part of a document filled in."""
    relation = Relation(relation)
    related = relation not in ("no-evidence", "untestable")
    log10_p = -120.5 if related else -0.2
    translator = Translator()
    verdict = found_verdict(relation, log10_p)
    said = spoken(verdict, (one, two), Reading(Level.STANDARD, (1, 2)))
    return ComparisonDocument(
        a=one,
        b=two,
        models=[subject(one), subject(two)],
        verdict=verdict_part(verdict, said, translator),
        evidence=evidence(related),
        shared=SharedMap(
            depths=(6, 6),
            layers=[LayerPair(a=at, b=at, quality=0.7) for at in range(6)],
            cells=[
                MapCell(
                    role=role, a=at, b=at, likeness=0.9 if related else 0.01, chance=0.02, count=9
                )
                for role in ("norm_in", "q", "up")
                for at in range(6)
            ],
            alignment="by number",
        ),
        seeds=[
            SeedMetric(
                role="norm_in", a=at, b=at, cosine=0.99, pearson=None if at == 2 else 0.8, n=128
            )
            for at in range(6)
        ],
        configuration=[SettingRow(name="hidden_size", a="128", b="128")],
        tokens=SharedTokens(a=4096, b=4096, common=4096, same_ids=4096),
        asked=ASKED,
        plan=PlanPart(stages_read=1, stages=2, bytes_at_most=9_000_000, left_out=["routers"]),
        notes=["org/one: read from the first of two sets of weights"],
        translations=translator.kept,
        made=MADE,
        read=READ,
    )  # fmt: skip


def found_verdict(relation: Relation, log10_p: float, layers: int = 6) -> Verdict:
    """A verdict on two models of some layers; of what is partly shared only norms are."""
    state = STATES.get(relation, PartState.NOT_COMPARABLE)
    only_norms = relation is Relation.PARTIAL
    components = (Component.NORMS, Component.ATTENTION, Component.FEED_FORWARD)
    places = [Part(component, layer) for layer in range(layers) for component in components]
    parts = tuple(
        _part(part, PartState.NOT_COMPARABLE if only_norms and part.layer else state, relation)
        for part in (Part(Component.EMBEDDING), *places)
    )
    amount = Amount(0.75, 0.8, 0.97, 0.25) if relation in STATES else Amount(0.0, 0.0, None, 0.25)
    power = () if relation is Relation.UNTESTABLE else (("U1.blocks", 0.043), ("E1.blocks", 0.3))
    missing = (Reason.NORM_GAINS.message(),) if relation is Relation.UNTESTABLE else ()
    known = () if relation is Relation.IDENTICAL else parts
    return Verdict(relation, log10_p, 1e-6, known, amount, power, REASONS[relation], missing)


def _part(part: Part, state: PartState, relation: Relation) -> PartFinding:
    linked = state.linked
    return PartFinding(
        part, part, state, likeness=0.97 if linked else None, log10_p=-30.0 if linked else None,
        learnt=relation is not Relation.SAME_INIT if linked else None,
        bits=8 if state is PartState.ROUNDED else None,
        reason=None if linked else Reason.PART_UNITS_RENAMED.message(),
        tests=("U1.blocks",), weights=1_000_000, read=0.25, needs=None if linked else 34_000_000,
    )  # fmt: skip


def evidence(related: bool) -> list[EvidencePart]:
    """One part for each test of the menu: spoken, silent, and one without a null."""
    chance = np.random.default_rng(0)
    found = []
    for at, entry in enumerate(menu("standard")):
        if at % 5 == 4:
            found.append(
                EvidencePart(
                    test=entry.name, tier=Tier.EXACT, group=entry.test.group, status=Status.NEEDS,
                    log10_p=0.0, reason="routers of both models",
                )
            )  # fmt: skip
            continue
        null = [round(float(value), 4) for value in chance.normal(0, 1 + at, 200)]
        null = [] if at == 7 else null
        found.append(
            EvidencePart(
                test=entry.name, tier=Tier.EXACT, group=entry.test.group, status=Status.OK,
                log10_p=-9.5 * at if related else -0.1 * at, adjusted=-8.0, share=entry.share,
                statistic=30.0 * (at + 1) if related else 0.4, effect=0.8 if related else 0.01,
                n=128, bound="signs", floor=-40.0, null=[*null, None] if null else [],
                roles=["up"], layers=[0, 3],
            )
        )  # fmt: skip
    return found


@cache
def matrix(count: int = 7, family: int = 3, unread: int = 1, seed: int = 0) -> MatrixDocument:
    """So many models in families of `family`, the relations of a family taken in turn."""
    chance = np.random.default_rng(seed)
    names = [
        f"org-{at // family}/model-{'abcdefghij'[at % 10]}-{at:02d}-{(7, 13, 70)[at % 3]}b-chat"
        for at in range(count)
    ]
    pairs = []
    translator = Translator()
    translator.keep("There is no model.", {"ko": "모델이 없습니다."})
    likeness = np.zeros((count, count))
    for a in range(count):
        for b in range(a + 1, count):
            kin = a // family == b // family
            kinds = ("derived", "derived", "partial", "same-init", "identical", "dependent")
            turn = kinds[(a + 2 * b) % len(kinds)]
            relation = turn if kin else "untestable" if (a * b) % 97 == 96 else "no-evidence"
            likeness[a, b] = round(float(chance.uniform(0.5, 1)), 3) if kin else 0.02
            log10_p = round(float(-chance.uniform(50, 5000)), 2) if kin else -0.1
            pairs.append(
                _pair(names[a], names[b], relation, log10_p, float(likeness[a, b]), translator)
            )
    return MatrixDocument(
        models=[subject(name) for name in names],
        pairs=pairs,
        order=list(range(count)),
        tree=_tree(count, family, likeness),
        unread=[Unread(given=f"org/gone-{at}", error="There is no model.") for at in range(unread)],
        asked=ASKED,
        translations=translator.kept,
        made=MADE,
        read=READ,
    )


def _pair(
    a: str, b: str, relation: str, log10_p: float, likeness: float, translator: Translator
) -> PairPart:
    kind = Relation(relation)
    verdict, linked = found_verdict(kind, log10_p), likeness > 0.1
    summary, statements = translator.words(headline(verdict, (a, b))), None
    if linked:  # of strangers a matrix has no more than a headline
        said = spoken(verdict, (a, b), Reading(Level.STANDARD))
        statements = statements_part(said, translator)
    return PairPart(
        a=a, b=b, relation=kind, log10_p=log10_p, likeness=likeness,
        summary=summary, statements=statements,
        components=list(verdict.linked), reasons=list(verdict.reasons), strongest="U1.blocks",
        amount=AmountPart(linked=0.5 if linked else 0.0, likeness=likeness if linked else None),
        evidence=[
            EvidenceShort(test="U1.blocks", status=Status.OK, log10_p=log10_p, effect=likeness)
        ],
    )  # fmt: skip


def _tree(count: int, family: int, likeness: np.ndarray) -> list[Merge]:
    """Families joined one model after the other, then with one another."""
    merges: list[Merge] = []
    tops: list[int] = []
    for start in range(0, count, family):
        top = start
        for at in range(start + 1, min(start + family, count)):
            height = round(1 - float(likeness[start, at]) + 0.05 * (at - start), 4)
            merges.append(Merge(one=top, other=at, height=height))
            top = count + len(merges) - 1
        tops.append(top)
    top = tops[0]
    for at, other in enumerate(tops[1:]):
        merges.append(Merge(one=top, other=other, height=1.0 + 0.001 * at))
        top = count + len(merges) - 1
    return merges
