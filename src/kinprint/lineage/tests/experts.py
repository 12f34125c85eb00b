"""The test on experts (E5): do router rows and experts of equal number belong together?"""

from __future__ import annotations

import numpy as np

from kinprint.lineage.pair import Pair, common_blocks
from kinprint.lineage.tests.menu import MenuEntry
from kinprint.lineage.tests.outcome import silent, spoken
from kinprint.nulls.blocks import block_permutation
from kinprint.records import Evidence


def expert_blocks(pair: Pair, entry: MenuEntry) -> Evidence:
    """E5: do experts of equal number resemble each other more than their neighbours do?

    Layers are paired by number, and the basis is the one in which units matched best.
    """
    supply = pair.supply(entry.group)
    mine, theirs = supply.first.prepared, supply.second.prepared
    x, y = mine.routers, theirs.routers
    layers = [one for one in x.keys() & y.keys() if len(x[one]) == len(y[one]) > 1]
    if not layers:
        return silent(entry, "needs", "routers of both models over equally many experts")
    if supply.refusal:
        return silent(entry, "guarded", supply.refusal)
    aligned = pair.units(supply.first, supply.second)
    if aligned is None and mine.width != theirs.width:
        return silent(entry, "needs", "a residual map between the two models")
    tables, sizes, diagonal = [], [], []
    for layer in sorted(layers):
        rows = x[layer] if aligned is None else aligned.residual.carry(x[layer])
        index = np.arange(len(rows))
        blocks = common_blocks(index, index)
        tables.append(blocks.products(rows, y[layer]))
        sizes.append(blocks.sizes)
        diagonal.append(float(np.einsum("ed,ed->e", rows, y[layer]).mean()))
    result = block_permutation(np.concatenate(tables), np.concatenate(sizes), pair.seed)
    return spoken(entry, result, roles=("router",), layers=layers, effect=float(np.mean(diagonal)))
