"""Documents of models that never were, from plain to hostile, for the tests of pages."""

from __future__ import annotations

import math
import random

import msgspec

from kinprint.lineage.tests.menu import menu
from kinprint.records import Component, Level, PartState, Relation, Status, Tier
from kinprint.report.build.comparison import verdict_part
from kinprint.report.schema import (
    AmountPart,
    Asked,
    Claim,
    ComparisonDocument,
    ControlPart,
    CoveragePart,
    EvidencePart,
    EvidenceShort,
    FileDigest,
    KindPart,
    LayerPair,
    LinkPart,
    Made,
    MapCell,
    OpenParts,
    PlanPart,
    ReadPart,
    SeedMetric,
    SettingRow,
    SharedMap,
    SharedTokens,
    Statements,
    Subject,
    Tokenizer,
    VerdictPart,
)
from kinprint.report.statements import Reading, spoken
from kinprint.report.translation import Translator
from tests.report.kin_documents import found_verdict

RELATIONS = tuple(Relation)
HOSTILE = (
    "<script>window.hacked=1</script>",
    '"><img src=x onerror="window.hacked=2">',
    "{{7*7777}}{% for x in y %}",
    "evil\u202egnp.exe\u2066\x00\x1b[31m",
    "</style></script><svg onload=window.hacked=3>",
    "javascript:window.hacked=4",
    "n" * 10_000,
    "{a}{p}{0}%s",
    "",
)
_ROLES = (
    "norm_in", "q", "k", "v", "o", "norm_post_attn", "norm_pre_ffn", "gate", "up", "down",
    "router", "norm_post_ffn",
)  # fmt: skip


def comparison(relation: str = "derived", depth: int = 6, seed: int = 0) -> ComparisonDocument:
    """Two models with every part of a document filled in."""
    relation = Relation(relation)
    chance = random.Random(seed)
    related = relation not in ("no-evidence", "untestable")
    log10_p = -433.2 if related else -0.21
    verdict = found_verdict(relation, log10_p, depth)
    said = spoken(verdict, ("org/elder-7b", "org/younger-7b"), Reading(Level.STANDARD, (1, 2)))
    translator = Translator()
    return ComparisonDocument(
        a="org/elder-7b",
        b="org/younger-7b",
        models=[_subject("elder-7b", "2025-03-02"), _subject("younger-7b", "2025-11-20")],
        verdict=verdict_part(verdict, said, translator),
        evidence=_evidence(related, relation == "untestable", depth, chance),
        controls=[
            ControlPart(
                model="org/elder-7b",
                control="other/stranger-7b",
                evidence=[
                    EvidenceShort(
                        test=one.name, status=Status.OK, log10_p=-chance.random(), effect=0.01
                    )
                    for one in menu()
                ],
            )
        ],
        shared=SharedMap(
            depths=(depth, depth),
            layers=[LayerPair(a=at, b=at, quality=0.8 if related else 0.1) for at in range(depth)],
            cells=_cells(depth, 0.7 if related else 0.0, chance),
            alignment="by number",
        ),
        seeds=[
            SeedMetric(
                role=role, a=at, b=at, n=4096,
                cosine=0.985 + 0.01 * chance.random(),
                pearson=chance.gauss(0.8 if related else 0.01, 0.02),
                relative_l2=0.1 + 0.1 * chance.random(),
            )
            for role in ("norm_in", "norm_pre_ffn")
            for at in range(depth)
        ],
        configuration=[
            SettingRow(name="hidden_size", a="4096", b="4096"),
            SettingRow(name="rope_theta", a="10000.0", b="1000000.0"),
            SettingRow(name="tie_word_embeddings", a="false"),
        ],
        tokens=SharedTokens(a=128_000, b=151_552, common=96_000, same_ids=12),
        asked=Asked(
            level=Level.STANDARD, alpha=1e-6, budget=64_000_000, controls=["other/stranger-7b"]
        ),
        plan=PlanPart(stages_read=1, stages=2, bytes_at_most=9_000_000, left_out=["routers"]),
        notes=["org/elder-7b: read from the first of two sets of weights"],
        labels=["NOT the real model: a sparse replica made by kinprint"],
        translations=translator.kept,
        made=Made(
            kinprint="0.1.0", python="3.11.2", numpy="2.3.4", scipy="1.16.3",
            command="kinprint compare org/elder-7b@1a2b org/younger-7b@3c4d -o report.html",
        ),
        read=ReadPart(bytes=4_200_000, requests=31, seconds=2.5),
    )  # fmt: skip


def hostile(relation: str, names: tuple[str, str], layers: int = 40) -> ComparisonDocument:
    """A document in which every text was written by somebody who means harm."""
    one, two = names
    plain = comparison(relation)
    digest = FileDigest(path=two, bytes=1, sha256=one)
    subjects = [
        Subject(
            given=name, name=name, title=name, kind=name, commit=name, published=name,
            changed=name, architecture=name, formats=[name], files=3, bytes=9, digests=[digest],
            tokenizer=Tokenizer(file=name, kind=name, tokens=7),
            claims=[Claim(where=name, model=name, relation=name)],
        )
        for name in names
    ]  # fmt: skip
    evidence = [
        msgspec.structs.replace(
            part, test=name, group=name, bound=name, reason=name, roles=[name], details={name: 1.0}
        )
        for part, name in zip(plain.evidence, names * len(plain.evidence), strict=False)
    ]
    silent = [
        msgspec.structs.replace(part, status=status)
        for part, status in zip(evidence, (Status.NEEDS, Status.GUARDED), strict=False)
    ]
    return msgspec.structs.replace(
        plain,
        a=one,
        b=two,
        models=subjects,
        evidence=[*evidence, *silent],
        verdict=msgspec.structs.replace(
            plain.verdict,
            summary=one,
            statements=Statements(link=two, what=one, kind=two, amount=one, coverage=two),
            parts=[
                msgspec.structs.replace(part, tower=name, reason=name, tests=[name])
                for part, name in zip(plain.verdict.parts, names * layers, strict=False)
            ],
            kind=KindPart(relation=Relation(relation), reasons=[one, two]),
            coverage=CoveragePart(
                power={one: 0.1, two: 0.2},
                open=[
                    OpenParts(
                        state=PartState.NOT_READ, component=Component.HEAD, tower=one, reason=two
                    )
                ],
                missing=[one],
            ),
        ),
        controls=[ControlPart(model=one, control=two)],
        shared=SharedMap(
            depths=(layers, layers),
            layers=[LayerPair(a=at, b=at) for at in range(layers)],
            cells=[
                MapCell(role=name, a=at, b=at, likeness=0.5)
                for at in range(layers)
                for name in names
            ],
            alignment=one,
        ),
        seeds=[
            SeedMetric(role=one, a=at, b=at, cosine=0.9, pearson=None) for at in range(layers)
        ],
        configuration=[SettingRow(name=one, a=two, b=one), SettingRow(name=two, a=one, b=one)],
        asked=Asked(level=Level.STANDARD, alpha=1e-6, base=one, controls=[two]),
        plan=PlanPart(stages_read=1, stages=1, left_out=[one]),
        notes=[one, two],
        labels=[two, one],
        made=Made(kinprint=one, python=two, numpy=one, scipy=two, command=one),
    )  # fmt: skip


def hollow(relation: str) -> ComparisonDocument:
    """A document whose numbers are all none and whose lists are all empty."""
    plain = comparison(relation)
    evidence = [
        EvidencePart(
            test="U1.blocks", tier=Tier.EXACT, group="", status=Status.OK, log10_p=None,
            null=[None] * 5, details={"spread": None},
        ),
        EvidencePart(test="S1", tier=Tier.CALIBRATED, group="none", status=Status.OK, log10_p=None),
    ]  # fmt: skip
    return ComparisonDocument(
        a="",
        b="",
        models=[Subject(given="", name="", title="", kind="") for _ in range(2)],
        verdict=VerdictPart(
            relation=Relation(relation),
            summary="",
            statements=Statements(link="", what="", kind="", amount="", coverage=""),
            link=LinkPart(log10_p=None, alpha=1e-6),
            kind=KindPart(relation=Relation(relation)),
            amount=AmountPart(),
            coverage=CoveragePart(),
        ),
        evidence=evidence,
        shared=SharedMap(depths=(0, 0)),
        seeds=[SeedMetric(role="norm_in", a=0, b=0, cosine=None, pearson=None)],
        asked=Asked(level=Level.QUICK, alpha=1e-6),
        plan=PlanPart(),
        made=plain.made,
        read=ReadPart(bytes=0, requests=0, seconds=0.0),
    )  # fmt: skip


def _subject(title: str, published: str) -> Subject:
    return Subject(
        given=f"org/{title}", name=f"org/{title}", title=title, kind="hub", commit="c0ffee" * 6,
        published=published, changed="2025-12-01", architecture="LlamaForCausalLM",
        formats=["safetensors"], files=4, bytes=14_000_000_000,
        digests=[
            FileDigest(path=f"model-{at}-of-4.safetensors", bytes=3_500_000_000, sha256="ab" * 32)
            for at in range(1, 5)
        ],
        tokenizer=Tokenizer(file="tokenizer.json", kind="BPE", tokens=128_000),
        claims=[Claim(where="README.md: base_model", model="org/elder-7b", relation="finetune")],
    )  # fmt: skip


def _evidence(related: bool, mute: bool, depth: int, chance: random.Random) -> list[EvidencePart]:
    found = []
    for at, entry in enumerate(menu("standard")):
        if mute or at % 5 == 4:
            found.append(
                EvidencePart(
                    test=entry.name, tier=Tier.EXACT, group=entry.test.group, status=Status.NEEDS,
                    log10_p=0.0, reason="models of different width",
                )
            )  # fmt: skip
            continue
        log10_p = -(7.0 + 20 * at) if related else -chance.random()
        counts = entry.name.endswith(("fixed", "aligned"))
        spread = 1.0 + at
        null = [
            float(chance.randrange(5)) if counts else chance.gauss(0, spread) for _ in range(200)
        ]
        found.append(
            EvidencePart(
                test=entry.name, tier=Tier.EXACT, group=entry.test.group, status=Status.OK,
                log10_p=log10_p,
                adjusted=min(0.0, log10_p - math.log10(entry.share)), share=entry.share,
                statistic=(30.0 * spread if related else spread), effect=0.8 if related else 0.01,
                n=2048, bound="fixed points" if counts else "signs", floor=-2000.0, null=[*null],
                roles=["gate", "up", "down"], layers=[-1, *range(depth)],
                learnt=entry.test.family == "E1", details={"pairs": 2048.0} if counts else {},
            )
        )  # fmt: skip
    known = [0.01 * at for at in range(27)]
    found.append(
        EvidencePart(
            test="Q.known", tier=Tier.CALIBRATED, group="none", status=Status.OK, log10_p=-1.4,
            statistic=0.7 if related else 0.1, effect=0.7, n=27, bound="conformal", null=[*known],
        )
    )  # fmt: skip
    return found


def _cells(depth: int, likeness: float, chance: random.Random) -> list[MapCell]:
    inside = [
        MapCell(
            role=role, a=at, b=at, chance=0.016, count=64,
            likeness=max(-1.0, min(chance.gauss(likeness, 0.05 + 0.1 * at / depth), 1.0)),
        )
        for at in range(depth)
        for role in _ROLES
    ]  # fmt: skip
    return [*inside, MapCell(role="embed", a=-1, b=-1, likeness=likeness, chance=0.02, count=4096)]
