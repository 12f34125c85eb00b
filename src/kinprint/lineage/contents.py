"""Tensors whose names nobody knows: are they the same, by shape and content?

Where names say nothing, no test knows what belongs to what. Equal numbers still tell: rows of every
tensor are read, at its start, in the middle, at its end and between, and tensors of one shape that
hold the same numbers there are the same tensor under another name. It finds copies, casts and
quantised copies, and nothing that was changed. Where the names of one of the models are known, they
say which part a tensor is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from math import prod

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kinprint.lineage.kind import HALF, amount_of
from kinprint.lineage.parts.equality import INFORMATION
from kinprint.lineage.parts.findings import order
from kinprint.lineage.reading.assembly import sha256_of
from kinprint.lineage.reading.deciding import part_sizes
from kinprint.lineage.reading.tower import towers_of
from kinprint.measure.computed import computed, right_angled
from kinprint.measure.equal_rows import Floats, constant
from kinprint.measure.rounding import Equality, equality
from kinprint.model.model import Model
from kinprint.model.opening import open_model
from kinprint.model.places import Weight
from kinprint.model.quantised import float_rows, needed
from kinprint.reader.decode import Array, as_float32, is_single
from kinprint.reader.plan import plan_file
from kinprint.records import (
    SINGLE,
    Amount,
    Component,
    Part,
    PartFinding,
    PartState,
    Reason,
    Relation,
    Slice,
    Verdict,
    VerdictReason,
)

_ROWS = 3  # of a tensor are read at least, if it has as many
_COLUMNS = 256  # numbers of a row that are compared
_FEWEST = 16  # numbers of a tensor that is worth a look: shorter ones are equal by accident
_RUN = 8  # neighbouring rows that tell a computed table
_SPARE = 1_000_000  # bytes of a budget that are left where rows are read to tell one
_PROBED = 8  # tensors of which they are read at most
_ALIKE = 0.5  # correlation of what may be the same tensor in a coarser format


Places = Callable[[tuple[int, ...]], tuple[int, ...]]
"""Numbers of the rows to read of a tensor of some shape."""


class _Tensor(Struct, frozen=True):
    """A tensor of a model: its name, its shape, and the rows that were read of it.

    `rounded` is the digest of what is stored of them where single precision has not all of it.
    """

    name: str
    shape: tuple[int, ...]
    rows: Floats
    rounded: str

    @property
    def varies(self) -> bool:
        """Whether it is no constant."""
        return bool(self.rows.std() > 0)


class _Contents(Struct, frozen=True):
    """The tensors of a model, and those that the other model holds too, by name.

    `flat` are those that are constants in the other model, if need be after rounding; `constants`
    are those that are so in this one, which are not among the others.
    """

    model: Model
    tensors: Mapping[str, _Tensor]
    same: Mapping[str, Equality]
    flat: Container[str]
    constants: Mapping[str, _Tensor]

    @classmethod
    def of(cls, model: Model, ours: Sequence[_Tensor], theirs: Sequence[_Tensor]) -> _Contents:
        """What a model holds of the tensors of another: constants say nothing by themselves."""
        own, others = ({one.name: one for one in some if one.varies} for some in (ours, theirs))
        same = _found(own, others)
        constants = [one for one in theirs if constant(one.rows)]
        flat = {
            name
            for name, one in own.items()
            if name not in same
            and any(one.shape == to.shape and equality(one.rows, to.rows).same for to in constants)
        }
        return cls(model, own, same, flat, {one.name: one for one in ours if not one.varies})

    @property
    def complete(self) -> bool:
        """Whether all of them are in the other model."""
        return all(name in self.same or name in self.flat for name in self.tensors)

    @property
    def coarser(self) -> bool:
        """Whether some of them are the same only after rounding."""
        return any(one.bits is not None for one in self.same.values())

    @property
    def share(self) -> float:
        """The share of its numbers that is."""
        sizes = {name: prod(one.shape) for name, one in self.tensors.items()}
        return sum(sizes[name] for name in self.same) / max(sum(sizes.values()), 1)

    @property
    def read(self) -> float:
        """The share of its numbers that were read."""
        return sum(one.rows.size for one in self.tensors.values()) / max(
            sum(prod(one.shape) for one in self.tensors.values()), 1
        )


def same_contents(a: Model, b: Model, alpha: float, most: int | None = None) -> Verdict | None:
    """The verdict on two models by the contents of their tensors.

    None where no tensor is the same, or where reading would cost more than `most` bytes.
    """
    if a.adapter_checkpoint or b.adapter_checkpoint:
        return None
    if most is not None:
        checkpoints = a.checkpoint, b.checkpoint
        most -= sum(one.all_headers_bytes - one.known_bytes for one in checkpoints)
        if most < 0:
            return None
    first, second = (
        one if one.checkpoint.complete else open_model(one.checkpoint) for one in (a, b)
    )
    if most is not None and _least_cost(first) + _least_cost(second) > most:
        return None
    cost = _cost(first) + _cost(second)
    if most is not None and cost > most:
        return None
    ours, theirs = _tensors(first), _tensors(second)
    both = _Contents.of(first, ours, theirs), _Contents.of(second, theirs, ours)
    known = _link(both[0], len(ours) * len(theirs), None if most is None else most - cost)
    if known is None:
        return None
    named = max(both, key=lambda one: len(_parts_by_tensor(one.model)))
    parts = tuple(_findings(named, probe=most is None or most - cost > _SPARE))
    if named is both[1]:
        parts = tuple(map(_of_second, parts))
    share = min(one.share for one in both)
    read = min(one.read for one in both)
    amount = Amount(linked=share, likeness=1.0, read=read)
    taken = share
    if parts:
        amount = amount_of(parts)
        taken = share if amount.layers is None else min(share, amount.layers)
        if share < amount.linked:  # the other model has more, of which no part is known here
            amount = replace(amount, linked=share, layers=None)
    relation = Relation.DERIVED if taken > HALF else Relation.PARTIAL
    reasons = [VerdictReason.SAME_CONTENTS if parts else VerdictReason.SAME_CONTENTS_UNNAMED]
    if both[0].complete and both[1].complete:
        relation = Relation.SAME_WEIGHTS
        if both[0].coarser or both[1].coarser:
            reasons.insert(0, VerdictReason.SAME_AFTER_ROUNDING)
    return Verdict(
        relation,
        known,
        alpha,
        parts,
        amount,
        reasons=tuple(reasons),
    )


def _of_second(finding: PartFinding) -> PartFinding:
    """A part of the second model, by whose names all are called; the first may not have it."""
    if finding.partner is not None:
        return finding
    return replace(finding, partner=finding.part, of_second=True)


def _link(contents: _Contents, tried: int, left: int | None) -> float | None:
    """The log10 p of the matrix that tells most, paid for all that were tried; None without one.

    Tables that are computed are the same in strangers. A sine runs along the columns of a table of
    positions, so that neighbouring rows are read of what would be the link, within what is left.
    """
    least = INFORMATION + math.log10(max(tried, 1))
    linking = {
        contents.tensors[name].rows.tobytes(): (-one.information, name)
        for name, one in contents.same.items()
        if one.exact and one.information >= least and _is_matrix(contents.model.weights[name])
    }
    for information, name in sorted(linking.values())[:_PROBED]:
        if _is_computed(contents.tensors[name].rows):
            continue
        weight = contents.model.weights[name]
        cost = _slice_cost(contents.model, _slices(weight, _neighbours))
        if left is not None and cost > left:
            continue
        left = None if left is None else left - cost
        if not _is_computed(_rows(contents.model, weight, _neighbours)):
            return information + math.log10(max(tried, 1))
    return None


def _is_computed(rows: Floats) -> bool:
    return computed(rows) or right_angled(rows)


def _cost(model: Model) -> int:
    """Bytes that reading a model's tensors takes."""
    return _slice_cost(model, [part for parts in _asked(model).values() for part in parts])


def _least_cost(model: Model) -> int:
    """Bytes of the numbers that are read, without what lies between: quick, for many tensors."""
    bits = 0
    for one in model.weights.values():
        if _worth_a_look(one):
            *outer, columns = _shape(one)
            numbers = min(prod(outer), _ROWS) * min(columns, _COLUMNS)
            bits += numbers * (one.format.bits or 1)
    return bits // 8


def _slice_cost(model: Model, slices: Iterable[Slice]) -> int:
    """Bytes that slices cost where nothing was read before, wherever the model lies."""
    policy, wants = model.checkpoint.fetcher.policy, model.checkpoint.wants(slices)
    plans = (plan_file(one.entry.path, one.ranges, (), one.entry.size, policy) for one in wants)
    return sum(plan.cost.bytes for plan in plans)


def _asked(model: Model) -> dict[str, tuple[Slice, ...]]:
    """What is read of each tensor, by name."""
    weights = model.weights.values()
    return {one.name: tuple(_slices(one, _places)) for one in weights if _worth_a_look(one)}


def _tensors(model: Model) -> list[_Tensor]:
    """Rows of every tensor but the shortest, which say nothing."""
    asked = _asked(model)
    slices = [part for parts in asked.values() for part in parts]
    arrays = iter(model.checkpoint.read(slices, as_stored=True))
    found = []
    for name, parts in asked.items():
        weight, read = model.weights[name], [next(arrays) for _ in parts]
        shape = _shape(weight)
        rows = _as_rows(weight, _places(shape), read)
        if np.isfinite(rows).all():
            found.append(_Tensor(weight.name, shape, rows, _rounded(weight, read)))
    return found


def _rows(model: Model, weight: Weight, places: Places) -> Floats:
    read = model.checkpoint.read(list(_slices(weight, places)), as_stored=True)
    return _as_rows(weight, places(_shape(weight)), list(read))


def _as_rows(weight: Weight, places: tuple[int, ...], read: Sequence[Array]) -> Floats:
    if weight.quantised is not None:
        rows = float_rows(weight.quantised, places, read)
    else:
        rows = as_float32(np.concatenate(read))
    return rows[:, :_COLUMNS]


def _rounded(weight: Weight, read: Sequence[Array]) -> str:
    """The digest of what is stored, where single precision has not all of it."""
    if weight.quantised is not None or all(map(is_single, read)):
        return ""
    return sha256_of(np.concatenate(read))


def _worth_a_look(weight: Weight) -> bool:
    known = weight.refusal is None and weight.spec.strides is None
    packed = weight.quantised is not None and weight.quantised.shape is None
    return known and not packed and prod(_shape(weight)) >= _FEWEST


def _is_matrix(weight: Weight) -> bool:
    """Whether equal numbers are a link: vectors and whole numbers may be computed, not learnt.

    Frequencies of rotary positions and numbers of positions are the same in strangers.
    """
    computed = weight.quantised is None and weight.spec.dtype.startswith(("I", "U", "BOOL"))
    return sum(size > 1 for size in _shape(weight)) > 1 and not computed


def _shape(weight: Weight) -> tuple[int, ...]:
    quantised = None if weight.quantised is None else weight.quantised.shape
    return weight.spec.shape if quantised is None else quantised


def _slices(weight: Weight, places: Places) -> Iterator[Slice]:
    shape = _shape(weight)
    if weight.quantised is not None:
        yield from needed(weight.quantised, places(shape))
    else:
        columns = range(min(shape[-1], _COLUMNS))
        yield Slice(weight.spec, rows=places(shape), columns=columns)


def _places(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Numbers of the rows to read, the same in all tensors of a shape."""
    height = prod(shape[:-1])
    between = np.random.default_rng(height).integers(height, size=2).tolist()
    return tuple(sorted({0, height // 2, height - 1, *between}))


def _neighbours(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Numbers of some rows in the middle that follow each other."""
    height = prod(shape[:-1])
    start = max(0, height // 2 - _RUN)
    return tuple(range(start, min(start + _RUN, height)))


def _found(ours: Mapping[str, _Tensor], theirs: Mapping[str, _Tensor]) -> dict[str, Equality]:
    """Tensors that have their like among the others, and how these agree."""
    by_shape = {
        shape: list(some)
        for shape, some in groupby(
            sorted(theirs.values(), key=lambda one: one.shape), key=lambda one: one.shape
        )
    }
    directions = {shape: _directions(some) for shape, some in by_shape.items()}
    found: dict[str, Equality] = {}
    for one in ours.values():
        if one.shape not in by_shape:
            continue
        alike = directions[one.shape] @ _directions([one])[0]
        best = int(alike.argmax())
        if alike[best] < _ALIKE:
            continue
        other = by_shape[one.shape][best]
        agreement = equality(one.rows, other.rows)
        if agreement.equal or (agreement.same and agreement.information >= INFORMATION):
            if one.rounded != other.rounded:
                agreement = replace(agreement, equal=False, bits=agreement.bits or SINGLE)
            found[one.name] = agreement
    return found


def _directions(tensors: Sequence[_Tensor]) -> Floats:
    flat = np.stack([one.rows.reshape(-1) for one in tensors])
    flat = flat - flat.mean(axis=1, keepdims=True)
    return np.asarray(flat / np.linalg.norm(flat, axis=1, keepdims=True), np.float32)


def _parts_by_tensor(model: Model) -> dict[str, set[Part]]:
    """What the tensors of a model are parts of, as far as their names say."""
    parts: dict[str, set[Part]] = {}
    for tower in towers_of(model):
        for address, part in tower.weights.items():
            parts.setdefault(tower.places[address].weight.name, set()).add(part)
    return parts


def _findings(contents: _Contents, probe: bool) -> Iterator[PartFinding]:
    """What is known about each part of the model whose names are known.

    Computed tables among its other tensors count for nothing, nor does what may be one where no
    more rows may be read to tell.
    """
    formula = set(_computed_names(contents) if probe else _other_matrices(contents))
    silent = {**contents.constants, **{name: contents.tensors[name] for name in formula}}
    telling = {name: one for name, one in contents.tensors.items() if name not in formula}
    members: dict[Part, list[str]] = {}
    for name, parts in _parts_by_tensor(contents.model).items():
        for part in parts:
            members.setdefault(part, []).append(name)
    sizes = {
        part: extent.weights
        for tower in towers_of(contents.model)
        for part, extent in part_sizes(tower).items()
    }
    for part in sorted(members, key=order):
        names = members[part]
        speaking = [telling[one] for one in names if one in telling]
        without = [silent[one] for one in names if one in silent]
        yield _finding(part, speaking, without, contents.same, sizes.get(part, 0))


def _computed_names(contents: _Contents) -> Iterator[str]:
    """Equal tables outside the known roles that a formula gives, or that are too many to tell."""
    for number, name in enumerate(_other_matrices(contents)):
        weight = contents.model.weights[name]
        if number >= _PROBED or _is_computed(_rows(contents.model, weight, _neighbours)):
            yield name


def _other_matrices(contents: _Contents) -> Iterator[str]:
    """Equal matrices outside the known roles."""
    parts = _parts_by_tensor(contents.model)
    for name in contents.same:
        only = {one.component for one in parts.get(name, ())} == {Component.OTHER}
        if only and _is_matrix(contents.model.weights[name]):
            yield name


def _finding(
    part: Part,
    tensors: Sequence[_Tensor],
    silent: Sequence[_Tensor],
    same: Mapping[str, Equality],
    weights: int,
) -> PartFinding:
    found = [one for one in tensors if one.name in same]
    bits = [bits for one in found if (bits := same[one.name].bits) is not None]
    read = min(sum(one.rows.size for one in (*tensors, *silent)) / max(weights, 1), 1.0)
    if not found:
        state = PartState.NOT_COMPARABLE if tensors or silent else PartState.NOT_READ
        without = Reason.PART_SILENT if silent else Reason.PART_NOT_READ
        reason = Reason.PART_NOT_FOUND if tensors else without
        return PartFinding(part, None, state, reason=reason.message(), weights=weights, read=read)
    whole = PartState.ROUNDED if bits else PartState.EQUAL
    return PartFinding(
        part,
        part,
        whole if len(found) == len(tensors) else PartState.SHARED,
        likeness=None if bits else 1.0,
        learnt=True,
        share=sum(prod(one.shape) for one in found) / sum(prod(one.shape) for one in tensors),
        bits=min(bits, default=None) if len(found) == len(tensors) else None,
        weights=weights,
        read=read,
    )
