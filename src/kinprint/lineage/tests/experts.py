"""The test on experts (E5): do router rows and experts of equal number belong together?"""

from __future__ import annotations

import numpy as np

from kinprint.lineage.alignment.residual import IDENTITY
from kinprint.lineage.pair import Pair, common_blocks
from kinprint.lineage.tests.registry import (
    Basis,
    LineageTest,
    Needs,
    Scale,
    lineage_test,
)
from kinprint.nulls.blocks import block_permutation
from kinprint.records import Evidence, Group, Part, Reason, Status


@lineage_test(
    "E5.blocks", group=Group.EXPERT, part=Part.FEED_FORWARD, scale=Scale.CORRELATION,
    basis=Basis.OPEN, needs=Needs.ALIGNMENT,
)  # fmt: skip
def expert_blocks(pair: Pair, test: LineageTest) -> Evidence:
    """E5: do experts of equal number resemble each other more than their neighbours do?

    Layers are paired by number, and the basis is the one in which units matched best.
    """
    supply = pair.supply(test.group)
    mine, theirs = supply.first.prepared, supply.second.prepared
    x, y = mine.routers, theirs.routers
    layers = [one for one in x.keys() & y.keys() if len(x[one]) == len(y[one]) > 1]
    if not layers:
        return test.no_result(Reason.ROUTERS)
    if supply.refusal:
        return test.no_result(supply.refusal, Status.GUARDED)
    aligned = pair.units(supply.first, supply.second)
    if aligned is None and mine.width != theirs.width:
        return test.no_result(Reason.RESIDUAL_MAP)
    tables, sizes, diagonal = [], [], []
    for layer in sorted(layers):
        rows = x[layer] if aligned is None else aligned.residual.carry(x[layer])
        index = np.arange(len(rows))
        blocks = common_blocks(index, index)
        tables.append(blocks.products(rows, y[layer]))
        sizes.append(blocks.sizes)
        diagonal.append(float(np.einsum("ed,ed->e", rows, y[layer]).mean()))
    as_stored = aligned is None or aligned.residual is IDENTITY
    unit = 1.0 if as_stored else None
    result = block_permutation(np.concatenate(tables), np.concatenate(sizes), pair.seed, unit)
    return test.evidence(result, roles=("router",), layers=layers, effect=float(np.mean(diagonal)))
