"""The families of an atlas, as a document."""

from __future__ import annotations

import shlex
from collections import Counter
from typing import Any

from kinprint.atlas.edges import Edge
from kinprint.atlas.identify import FAMILY
from kinprint.atlas.tree import Link, Tree
from kinprint.records import Cost
from kinprint.report import schema
from kinprint.report.build.common import made_with, titled
from kinprint.report.build.direction import trace_rows
from kinprint.report.build.identify import atlas_model, declared_parts, known_p
from kinprint.report.translation import Translator
from kinprint.titles import full_titles, public_name


def tree_document(found: Tree, place: str, cost: Cost) -> schema.TreeDocument:
    """Families as a document; `place` is the atlas, `cost` what the run took."""
    entries = [each for node in found.nodes for each in (node.entry, *node.copies)]
    refs = list(dict.fromkeys(entry.ref for entry in entries))
    titles = dict(zip(refs, full_titles(refs), strict=True))
    named = [titles[node.entry.ref] for node in found.nodes]
    translator = Translator()
    effects = [one for one in found.effects if one is not None]
    atlas = public_name(place)
    return schema.TreeDocument(
        atlas=atlas,
        models=[
            schema.TreeModel(
                **atlas_model(node.entry, titles),
                copies=[schema.AtlasModel(**atlas_model(one, titles)) for one in node.copies],
                declared=declared_parts(node.declared),
            )
            for node in found.nodes
        ],
        families=[list(one) for one in found.families],
        edges=[_edge(one, named, translator) for one in found.edges],
        links=[schema.TreeLink(**_link(one)) for one in found.links],
        pairs=found.pairs,
        compared=found.compared,
        unlinked=len(found.effects),
        silent=len(found.effects) - len(effects),
        effect=max(effects, default=None),
        family=FAMILY,
        alpha=found.alpha,
        seed=found.seed,
        other_seeds=found.other_seeds,
        failed=[
            schema.TreeFailure(a=a, b=b, reason=translator.said(error.message))
            for (a, b), error in found.failed
        ],
        left_out=[
            schema.LeftOutPart(entry=entry, reason=translator.said(error.message))
            for entry, error in found.broken
        ],
        labels=translator.all_said(titled(found.labels, refs, [titles[ref] for ref in refs])),
        translations=translator.kept,
        made=made_with(shlex.join(["kinprint", "atlas", "tree", "--atlas", atlas]), grouped=True),
        read=schema.ReadPart.of(cost),
    )


def _edge(one: Edge, named: list[str], translator: Translator) -> schema.TreeEdge:
    return schema.TreeEdge(
        **_link(one),
        reasons=[reason.value for reason in one.verdict.reasons],
        basis=one.basis,
        votes=one.votes,
        traces=trace_rows(one.traces, {"a": named[one.a], "b": named[one.b]}, translator),
        weight=None if one.weight is None else float(f"{one.weight:.7g}"),
        declared=one.claim,
        parts=dict(Counter(part.state for part in one.verdict.parts)),
    )


def _link(one: Edge | Link) -> dict[str, Any]:
    return {
        "a": one.a,
        "b": one.b,
        "relation": one.verdict.relation,
        "log10_p": known_p(one.log10_p),
        "likeness": float(f"{one.likeness:.7g}"),
    }
