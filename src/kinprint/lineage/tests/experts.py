"""The test on experts (E5): do router rows and experts of equal number belong together?"""

from __future__ import annotations

import numpy as np

from kinprint.lineage.alignment.blocks import equal_blocks
from kinprint.lineage.alignment.residual import IDENTITY
from kinprint.lineage.pair import Pair
from kinprint.lineage.tests.conditions import granted_alignment, unless_untrusted
from kinprint.lineage.tests.registry import Basis, LineageTest, Needs, NoResult, lineage_test
from kinprint.nulls.blocks import block_permutation
from kinprint.nulls.masks import masked
from kinprint.records import Component, Evidence, Group, Reason, Status


@lineage_test(
    "E5.blocks", group=Group.EXPERT, component=Component.FEED_FORWARD, basis=Basis.OPEN,
    needs=Needs.ALIGNMENT,
)  # fmt: skip
def expert_blocks(pair: Pair, test: LineageTest) -> Evidence:
    """Do experts of equal number resemble each other more than their neighbours do?

    Layers are paired by number, and the basis is the one in which units matched best.
    """
    ours, theirs = (side.prepared.routers for side in pair.sides)
    layers = [at for at in ours.keys() & theirs.keys() if len(ours[at]) == len(theirs[at]) > 1]
    if not layers:
        raise NoResult(Reason.ROUTERS)
    layers = [
        at for at in layers if not all(masked(one[at], whole_rows=True) for one in (ours, theirs))
    ]
    if not layers:
        raise NoResult(Reason.BOTH_MASKED, Status.GUARDED)
    alignment = granted_alignment(pair, test.group)
    first, second = alignment.first.prepared, alignment.second.prepared
    matching = alignment.feed_forwards
    if matching is None and first.width != second.width:
        raise NoResult(Reason.RESIDUAL_MAP)
    residual = IDENTITY if matching is None else matching.residual
    tables, sizes, likeness = [], [], []
    for layer in sorted(layers):
        x, y = residual.carry(first.routers[layer]), second.routers[layer]
        blocks = equal_blocks(np.ones(len(x), bool))
        tables.append(blocks.products(x, y))
        sizes.append(blocks.sizes)
        likeness.append(float(np.einsum("ed,ed->e", x, y).mean()))
    unit = 1.0 if residual is IDENTITY else None
    result = block_permutation(np.concatenate(tables), np.concatenate(sizes), pair.null_seed, unit)
    effect = float(np.mean(likeness))
    found = test.evidence(result, roles=("router",), layers=layers, effect=effect)
    return unless_untrusted(test, found, alignment)
