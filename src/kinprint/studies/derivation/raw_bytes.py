"""Which tensors and files are stored alike, bit by bit, and how much of that is chance.

Equal bits at equal places are what copying leaves; a number format with few values near one
leaves some too, so the share that chance gives stands beside every share.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from kinprint import text
from kinprint.measure.stored import bit_equal_share
from kinprint.studies.catalogue import Procedure, Study
from kinprint.studies.charts import Bar, Bars
from kinprint.studies.derivation.pairwise import (
    A,
    B,
    Row,
    addresses,
    items_for,
    rounded,
    rows_for,
    stored_type,
)
from kinprint.studies.pairing import all_layers, spread, tell_gaps, wanted_roles
from kinprint.studies.results import Cell, Fact, Result, Table
from kinprint.studies.scene import Floats, Item, Scene
from kinprint.studies.titles import role_title
from kinprint.text import Words

DTYPE_MISMATCH = "dtype_mismatch"


@dataclass(frozen=True, slots=True)
class _Bits:
    """One pair of tensors: whether all that was read is equal, and what share of it is."""

    row: Row
    status: str
    reason: str
    identical: bool | None = None
    share: float | None = None
    by_chance: float | None = None
    constant: bool | None = None


def _needs(study: Study, scene: Scene) -> list[Item]:
    return items_for(scene, addresses(scene, wanted_roles(scene, study.roles), all_layers(scene)))


def _run(study: Study, scene: Scene) -> Result:
    wanted = addresses(scene, wanted_roles(scene, study.roles), all_layers(scene))
    found = [_bits(row) for row in rows_for(scene, wanted, ("max_abs_diff",))]
    files = _files(scene)
    table = _table(found)
    facts = _facts(found, files)
    return Result(
        study.name,
        scene.names,
        (table, files),
        facts,
        (_chart(found),),
        (*_findings(facts, files), *tell_gaps(table.column("status"))),
        scene.labels,
    )


def _bits(row: Row) -> _Bits:
    x, y = row.a.values, row.b.values
    if not row.found.ok or x is None or y is None:
        return _Bits(row, row.found.status, row.found.reason)
    types = stored_type(row.a), stored_type(row.b)
    if types[A] != types[B]:
        return _Bits(row, DTYPE_MISMATCH, f"{types[A]} against {types[B]}")
    share = bit_equal_share(x, y)
    constant = bool(np.ptp(x) == 0 and np.ptp(y) == 0)
    return _Bits(row, row.found.status, "", share == 1.0, share, _by_chance(x, y), constant)


def _by_chance(x: Floats, y: Floats) -> float:
    """Share of equal elements to expect if one of the two were shuffled: Σ pₓ(v)·p_y(v)."""
    values, counts = np.unique(x.reshape(-1).view(np.uint32), return_counts=True)
    others, theirs = np.unique(y.reshape(-1).view(np.uint32), return_counts=True)
    _, here, there = np.intersect1d(values, others, assume_unique=True, return_indices=True)
    return float((counts[here] / x.size) @ (theirs[there] / y.size))


def _table(found: Iterable[_Bits]) -> Table:
    columns = (
        "role", "layer", "expert", "key_A", "key_B", "status", "identical", "equal_share",
        "equal_share_by_chance", "constant", "sample", "dtype_A", "dtype_B", "reason",
    )  # fmt: skip
    rows = tuple(
        (
            one.row.role,
            one.row.layer,
            one.row.first.address.expert,
            *one.row.keys,
            one.status,
            one.identical,
            one.share,
            one.by_chance,
            one.constant,
            one.row.found.sample,
            stored_type(one.row.a),
            stored_type(one.row.b),
            one.reason,
        )
        for one in found
    )
    title = text.words("study.raw-bytes.table.tensors")
    return Table("raw_bytes", title, columns, rows)


def _files(scene: Scene) -> Table:
    """Files of the first model whose content the second has too, and those that cannot tell."""
    theirs = {one.sha256: one for one in scene.models[B].checkpoint.files.values() if one.sha256}
    rows: list[tuple[Cell, ...]] = []
    shards = set(scene.models[A].checkpoint.shards)
    for path, entry in sorted(scene.models[A].checkpoint.files.items()):
        twin = theirs.get(entry.sha256) if entry.sha256 else None
        if twin is None and path not in shards:
            continue
        equal = twin is not None if entry.sha256 and theirs else None
        other = twin.path if twin is not None else ""
        rows.append((path, other, entry.size, entry.sha256 or "", equal))
    title = text.words("study.raw-bytes.table.files")
    return Table("equal_files", title, ("file_A", "file_B", "size", "sha256", "equal"), tuple(rows))


def _facts(found: Sequence[_Bits], files: Table) -> dict[str, Fact]:
    known = [one for one in found if one.share is not None]
    varied = [one for one in known if not one.constant]
    equal = files.column("equal")
    return {
        "tensors": len(found),
        "compared": len(known),
        "identical": sum(bool(one.identical) for one in known),
        "identical_and_constant": sum(bool(one.identical and one.constant) for one in known),
        "equal_share_mean": spread(one.share for one in varied).mean,
        "equal_share_by_chance_mean": spread(one.by_chance for one in varied).mean,
        "sampled": any(one.row.a.sampled for one in known),
        "files_equal": sum(one is True for one in equal),
        "files_without_hash": sum(one is None for one in equal),
    }


def _chart(found: Sequence[_Bits]) -> Bars:
    bars: list[Bar] = []
    for role in dict.fromkeys(one.row.role for one in found):
        group = [one for one in found if one.row.role == role]
        seen, chance = spread(one.share for one in group), spread(one.by_chance for one in group)
        title = role_title(role)
        bars.append(Bar(title, seen.mean, seen.deviation, "pair"))
        label = text.words("study.raw-bytes.by-chance", role=title)
        bars.append(Bar(label, chance.mean, chance.deviation, "random"))
    return Bars(
        "raw_bytes",
        text.words("study.raw-bytes.chart"),
        text.words("study.raw-bytes.axis"),
        tuple(bars),
        y_range=(0.0, 1.0),
    )


def _findings(facts: dict[str, Fact], files: Table) -> tuple[Words, ...]:
    if not facts["compared"]:
        return ()
    share, chance = facts["equal_share_mean"], facts["equal_share_by_chance_mean"]
    told = [
        text.words(
            "study.raw-bytes.finding.equal",
            identical=facts["identical"],
            compared=facts["compared"],
            constant=facts["identical_and_constant"],
            share=rounded(share if isinstance(share, float) else None, 4),
            chance=rounded(chance if isinstance(chance, float) else None, 4),
        )
    ]
    if facts["sampled"]:
        told.append(text.words("study.raw-bytes.finding.sampled"))
    if facts["files_without_hash"]:
        told.append(text.words("study.raw-bytes.finding.no-hashes"))
    return tuple(told)


BYTES = Procedure(_needs, _run)
