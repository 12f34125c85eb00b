"""Which tensors and files are stored alike, bit by bit, and how much of that is chance.

Equal bits at equal places are what copying leaves; a number format with few values near one
leaves some too, so the share that chance gives stands beside every share.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from msgspec import Struct

from kinprint import text
from kinprint.measure.stored import bit_equal_share
from kinprint.model.places import Address
from kinprint.studies.charts import Bar, Bars
from kinprint.studies.derivation.pairwise import (
    A,
    B,
    TensorPair,
    addresses,
    bar_beside_chance,
    compare_at,
    tensors_at,
)
from kinprint.studies.results import Fact, Output, RowStatus, Table
from kinprint.studies.study import Floats, Procedure, StudyInput, TensorRows
from kinprint.studies.summary import rounded, spread
from kinprint.text import Words
from kinprint.titles import role_title


class _Bits(Struct, frozen=True):
    """One pair of tensors: whether all that was read is equal, and what share of it is."""

    pair: TensorPair
    status: RowStatus
    reason: str
    identical: bool | None = None
    share: float | None = None
    by_chance: float | None = None
    constant: bool | None = None


def _addresses(inputs: StudyInput) -> Iterator[Address]:
    return addresses(inputs, inputs.roles, inputs.own_layers())


def _needs(inputs: StudyInput) -> list[TensorRows]:
    return tensors_at(inputs, _addresses(inputs))


def _run(inputs: StudyInput) -> Output:
    found = [_bits(pair) for pair in compare_at(inputs, _addresses(inputs), ("max_abs_diff",))]
    table, file_table = _tensor_table(found), _file_table(inputs)
    facts = _facts(found, file_table, _without_hash(inputs))
    return Output((table, file_table), facts, (_chart(found),), (*_findings(facts), *table.gaps))


def _bits(pair: TensorPair) -> _Bits:
    x, y = pair.a.values, pair.b.values
    if pair.a.origin is not None or pair.b.origin is not None:
        return _Bits(pair, RowStatus.NOT_IN_REPLICA, text.sentence("study.reason.made-up-values"))
    if not pair.comparison.ok or x is None or y is None:
        return _Bits(pair, pair.status, pair.comparison.reason)
    if pair.a.dtype != pair.b.dtype:
        types = text.sentence("study.reason.against", a=pair.a.dtype, b=pair.b.dtype)
        return _Bits(pair, RowStatus.DTYPE_MISMATCH, types)
    share = bit_equal_share(x, y)
    constant = bool(np.ptp(x) == 0 and np.ptp(y) == 0)
    return _Bits(pair, pair.status, "", share == 1.0, share, _by_chance(x, y), constant)


def _by_chance(x: Floats, y: Floats) -> float:
    """Share of equal elements to expect if one of the two were shuffled: Σ pₓ(v)·p_y(v)."""
    values, counts = np.unique(x.reshape(-1).view(np.uint32), return_counts=True)
    others, theirs = np.unique(y.reshape(-1).view(np.uint32), return_counts=True)
    _, here, there = np.intersect1d(values, others, assume_unique=True, return_indices=True)
    return float((counts[here] / x.size) @ (theirs[there] / y.size))


def _tensor_table(found: Iterable[_Bits]) -> Table:
    columns = (
        "role", "layer", "expert", "key_A", "key_B", "status", "identical", "equal_share",
        "equal_share_by_chance", "constant", "sample", "dtype_A", "dtype_B", "reason",
    )  # fmt: skip
    rows = tuple(
        (
            one.pair.role,
            one.pair.layer,
            one.pair.first.address.expert,
            one.pair.a.name,
            one.pair.b.name,
            one.status,
            one.identical,
            one.share,
            one.by_chance,
            one.constant,
            one.pair.comparison.sample,
            one.pair.a.dtype,
            one.pair.b.dtype,
            one.reason,
        )
        for one in found
    )
    return Table("raw_bytes", text.words("study.raw-bytes.table.tensors"), columns, rows)


def _file_table(inputs: StudyInput) -> Table:
    """Files of the first model whose content the second has too, by their sha256."""
    mine, other = (inputs.models[at].checkpoint for at in (A, B))
    theirs = {one.sha256: one for one in other.files.values() if one.sha256}
    rows = tuple(
        (path, theirs[entry.sha256].path, entry.size, entry.sha256)
        for path, entry in sorted(mine.files.items())
        if entry.sha256 in theirs
    )
    title = text.words("study.raw-bytes.table.files")
    return Table("equal_files", title, ("file_A", "file_B", "size", "sha256"), rows)


def _without_hash(inputs: StudyInput) -> int:
    """Weight files of either model of which it is not known whether the other has the same."""
    return sum(
        not checkpoint.files[path].sha256
        for checkpoint in (inputs.models[at].checkpoint for at in (A, B))
        for path in checkpoint.shards
    )


def _facts(found: Sequence[_Bits], files: Table, unknown: int) -> dict[str, Fact]:
    known = [one for one in found if one.share is not None]
    varied = [one for one in known if not one.constant]
    return {
        "tensors": len(found),
        "compared": len(known),
        "identical": sum(bool(one.identical) for one in known) if known else None,
        "identical_and_constant": sum(bool(one.identical and one.constant) for one in known),
        "equal_share_mean": spread(one.share for one in varied).mean,
        "equal_share_by_chance_mean": spread(one.by_chance for one in varied).mean,
        "sampled": any(one.pair.a.sampled for one in known),
        "files_equal": len(files.rows),
        "files_without_hash": unknown,
    }


def _chart(found: Sequence[_Bits]) -> Bars:
    bars: list[Bar] = []
    for role in dict.fromkeys(one.pair.role for one in found):
        group = [one for one in found if one.pair.role == role]
        bars += bar_beside_chance(
            role,
            spread(one.share for one in group),
            text.words("study.raw-bytes.by-chance", role=role_title(role)),
            spread(one.by_chance for one in group),
        )
    return Bars(
        "raw_bytes",
        text.words("study.raw-bytes.chart"),
        text.words("study.raw-bytes.axis"),
        tuple(bars),
        y_range=(0.0, 1.0),
    )


def _findings(facts: dict[str, Fact]) -> list[Words]:
    if not facts["compared"]:
        return []
    found = [
        text.words(
            "study.raw-bytes.finding.equal",
            identical=facts["identical"],
            compared=facts["compared"],
            constant=facts["identical_and_constant"],
            share=rounded(facts["equal_share_mean"], 4),
            chance=rounded(facts["equal_share_by_chance_mean"], 4),
        )
    ]
    if facts["sampled"]:
        found.append(text.words("study.raw-bytes.finding.sampled"))
    if facts["files_without_hash"]:
        found.append(text.words("study.raw-bytes.finding.no-hashes"))
    return found


BYTES = Procedure(_needs, _run)
