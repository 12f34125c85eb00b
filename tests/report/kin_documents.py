"""Comparison and matrix documents of models that never were, for pages, tables and pictures."""

from __future__ import annotations

import numpy as np

from kinprint.lineage.tests.menu import menu
from kinprint.records import Component, Level, Relation, Status, Tier, Verdict
from kinprint.report.answer import summary_of, sureness_of
from kinprint.report.schema import (
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
    VerdictPart,
)

HOSTILE = "<script>alert(1)<b>|`[x](javascript:1)\u202e"
ASKED = Asked(level=Level.STANDARD, alpha=1e-6)
MADE = Made(
    kinprint="0.1.0", python="3.11.2", numpy="2.3.4", scipy="1.16.3",
    command="kinprint compare org/one org/two -o report.html",
)  # fmt: skip
READ = ReadPart(bytes=4_200_000, requests=31, seconds=2.5)
REASONS = {
    "identical": ["same-files"],
    "same-weights": ["same-numbers"],
    "derived": ["learnt-together"],
    "laundered": ["matrices-alike"],
    "partial": ["norms-shared"],
    "same-init": ["learnt-apart"],
    "dependent": ["learnt-silent", "matrices-weak"],
    "no-evidence": ["nothing-found"],
    "untestable": ["nothing-testable"],
}
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
    linked = (
        (Component.NORMS,)
        if relation is Relation.PARTIAL
        else (Component.NORMS, Component.ATTENTION)
    )
    reasons = REASONS[relation]
    verdict = Verdict(relation, log10_p, 1e-6, linked, (("U1.blocks", 0.043),))
    titles = [name.rpartition("/")[2] for name in (one, two)]
    return ComparisonDocument(
        a=one,
        b=two,
        models=[subject(one), subject(two)],
        verdict=VerdictPart(
            relation=relation, log10_p=log10_p, alpha=1e-6, roles=list(linked), reasons=reasons,
            summary=summary_of(verdict, titles[0], titles[1], "en"),
            summary_ko=summary_of(verdict, titles[0], titles[1], "ko"),
            sureness=sureness_of(verdict, "en"), sureness_ko=sureness_of(verdict, "ko"),
            power=dict(verdict.power),
        ),
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
        made=MADE,
        read=READ,
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


def matrix(count: int = 7, family: int = 3, unread: int = 1, seed: int = 0) -> MatrixDocument:
    """So many models in families of `family`, the relations of a family taken in turn."""
    chance = np.random.default_rng(seed)
    names = [
        f"org-{at // family}/model-{'abcdefghij'[at % 10]}-{at:02d}-{(7, 13, 70)[at % 3]}b-chat"
        for at in range(count)
    ]
    pairs = []
    likeness = np.zeros((count, count))
    for a in range(count):
        for b in range(a + 1, count):
            kin = a // family == b // family
            kinds = ("derived", "derived", "partial", "same-init", "identical", "dependent")
            turn = kinds[(a + 2 * b) % len(kinds)]
            relation = turn if kin else "untestable" if (a * b) % 97 == 96 else "no-evidence"
            likeness[a, b] = round(float(chance.uniform(0.5, 1)), 3) if kin else 0.02
            log10_p = round(float(-chance.uniform(50, 5000)), 2) if kin else -0.1
            pairs.append(_pair(names[a], names[b], relation, log10_p, float(likeness[a, b])))
    return MatrixDocument(
        models=[subject(name) for name in names],
        pairs=pairs,
        order=list(range(count)),
        tree=_tree(count, family, likeness),
        unread=[
            Unread(given=f"org/gone-{at}", error="There is no model.", error_ko="모델이 없습니다.")
            for at in range(unread)
        ],
        asked=ASKED,
        made=MADE,
        read=READ,
    )


def _pair(a: str, b: str, relation: str, log10_p: float, likeness: float) -> PairPart:
    linked = (Component.NORMS, Component.ATTENTION) if likeness > 0.1 else ()
    verdict = Verdict(Relation(relation), log10_p, 1e-6, linked)
    titles = [name.rpartition("/")[2] for name in (a, b)]
    return PairPart(
        a=a, b=b, relation=Relation(relation), log10_p=log10_p, likeness=likeness,
        summary=summary_of(verdict, titles[0], titles[1], "en"),
        summary_ko=summary_of(verdict, titles[0], titles[1], "ko"),
        roles=list(linked), reasons=REASONS[relation], strongest="U1.blocks",
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
