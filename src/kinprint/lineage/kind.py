"""What kind of relation two linked models have: read from their parts, never from a p-value.

| relation       | what it needs                                                               |
|----------------|-----------------------------------------------------------------------------|
| `identical`    | equal files, or all numbers of both models read and equal                   |
| `same-weights` | every part that was read is equal, or equal after rounding; some of each    |
|                | kind of matrices was read; neither model has parts or towers of its own     |
| `derived`      | parts were taken over, with more than half of the weights of the layers     |
|                | read; parts that differ in size are counted in the model that has fewer,    |
|                | what only one model has as not taken over                                   |
| `partial`      | parts were taken over, with no more than that                               |
| `same-init`    | linked parts, none of them taken over: the gains that feed them were learnt |
|                | apart; feed-forwards more alike than strangers' can be made, and no more    |
|                | than one initialisation leaves trained models                               |
| `dependent`    | linked, and nothing tells which of the above                                |

A part was taken over if its numbers are equal or if it is more alike than one initialisation leaves
it (`taken_over.py` has the limits). Taken over is taken over, however little that is: one copied
layer in a stranger is `partial`. Who copied is never said.

That labels agree does not need a common origin: whoever holds both models can number the units of
his own after those of the other, turn its residual stream and mix its values.
`parts/arranged.py` has what that reaches between strangers; below it the relation stays
`dependent`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct

from kinprint.lineage.parts.taken_over import APART_GAINS, MATRICES, UNITS, as_a_whole
from kinprint.records import (
    LONE_TOWERS,
    Amount,
    Component,
    Part,
    PartFinding,
    PartState,
    Reason,
    Relation,
    VerdictReason,
)

HALF = 0.5
"""The share of the weights of the layers from which on a model was derived rather than given some
parts: above attention alone, below feed-forwards alone."""


_ONE_HAS = (
    Reason.PART_MISSING,
    Reason.PART_ONLY_THERE,
    Reason.PART_UNANSWERED,
    Reason.PART_UNREAD_HERE,
    *LONE_TOWERS,
)
_MANY_EXPERTS = 7  # all of them are among the shared half of a model's once in a hundred times


class Kind(Struct, frozen=True):
    """A relation of linked models, and the steps that led to it."""

    relation: Relation
    reasons: tuple[VerdictReason, ...]


def kind_of_relation(parts: Sequence[PartFinding], arranged: float) -> Kind:
    """The relation of two linked models; the first rule that applies decides.

    Parameters
    ----------
    parts
        What is known about each part.
    arranged
        The mean likeness that those of the feed-forwards which are linked can be given without a
        common weight.
    """
    read = [one for one in parts if one.state is not PartState.NOT_READ]
    if _all_equal(parts, read):
        rounded = any(one.state is PartState.ROUNDED for one in read)
        reason = VerdictReason.SAME_AFTER_ROUNDING if rounded else VerdictReason.SAME_NUMBERS
        return Kind(Relation.SAME_WEIGHTS, (reason,))
    linked = [one for one in read if one.state.linked]
    if any(one.learnt for one in linked):
        return _taken_over(parts, read)
    untrained = {one.untrained for one in linked if one.untrained}
    if untrained:
        return Kind(Relation.DEPENDENT, tuple(sorted(untrained)))
    if {one.part.component for one in linked} == {Component.NORMS}:
        return Kind(Relation.DEPENDENT, (VerdictReason.NORMS_ARRANGED,))
    learnt_apart = [one for one in linked if one.learnt is False]
    open_ = [one for one in linked if one.learnt is None and one.part.component in MATRICES]
    gains = [one.gains for one in open_ if one.gains is not None]
    if gains and sum(gains) / len(gains) <= APART_GAINS:
        return Kind(Relation.DEPENDENT, (VerdictReason.LEARNT_APART, VerdictReason.MATRICES_ALIKE))
    units = [one for one in learnt_apart or open_ if one.part.component in UNITS]
    as_arranged = sum(map(as_a_whole, units)) <= arranged * len(units)
    if not learnt_apart:
        arranged_too = (VerdictReason.ARRANGED,) if gains and units and as_arranged else ()
        return Kind(Relation.DEPENDENT, (VerdictReason.LEARNT_SILENT, *arranged_too))
    if as_arranged:
        return Kind(Relation.DEPENDENT, (VerdictReason.LEARNT_APART, VerdictReason.ARRANGED))
    return Kind(Relation.SAME_INIT, (VerdictReason.LEARNT_APART,))


def _all_equal(parts: Sequence[PartFinding], read: Sequence[PartFinding]) -> bool:
    """Whether everything read is equal and in its place, with some of each kind of matrices.

    What only one model has makes them different, read or not; a head may be the embedding again.
    """
    needed = (*MATRICES, Component.EMBEDDING)
    kinds = {one.part.component for one in parts if one.part.component in needed}
    moved = any(one.partner is not None and _place(one.partner) != _place(one.part) for one in read)
    complete = bool(kinds) and kinds <= {one.part.component for one in read}
    alone = any(
        one.reason is not None
        and one.reason.key in _ONE_HAS
        and one.part.component != Component.HEAD
        for one in parts
    )
    return only_equal(read) and complete and not moved and not alone


def _place(part: Part) -> tuple[int | None, int | None]:
    return part.layer, part.expert


def only_equal(parts: Sequence[PartFinding]) -> bool:
    """Whether every part that was read is equal, if need be after rounding."""
    read = [one for one in parts if one.state is not PartState.NOT_READ]
    return bool(read) and all(one.state.same for one in read)


def _taken_over(parts: Sequence[PartFinding], read: Sequence[PartFinding]) -> Kind:
    """Parts were taken over: so much that the whole was, or only these."""
    equal = any(one.state.same for one in read)
    reason = VerdictReason.PARTS_EQUAL if equal else VerdictReason.LEARNT_TOGETHER
    layers = [one for one in read if one.part.component in MATRICES and one.read > 0]
    taken = [one for one in layers if one.state.linked and one.learnt]
    share = _of_smaller(taken, layers)
    if share is None:
        return Kind(Relation.PARTIAL, (reason, VerdictReason.LAYERS_NOT_READ))
    if share > HALF:
        if (_of_smaller(taken, [*layers, *_unread_experts(parts, read)]) or 0.0) <= HALF:
            return Kind(Relation.PARTIAL, (reason, VerdictReason.EXPERTS_NOT_READ))
        return Kind(Relation.DERIVED, (reason,))
    return Kind(Relation.PARTIAL, (reason, VerdictReason.LAYERS_UNSHARED))


def _unread_experts(parts: Sequence[PartFinding], read: Sequence[PartFinding]) -> list[PartFinding]:
    """Experts for which the few that were read do not speak.

    Some experts of one model can be put into another. Its norms and its attention are its own
    then: where none of what was read of them is linked, a few experts are not taken for all.
    """
    experts = [one for one in read if one.part.component is Component.EXPERT]
    beside = [one for one in read if one.part.component in (Component.NORMS, Component.ATTENTION)]
    if len(experts) >= _MANY_EXPERTS or not beside or any(one.state.linked for one in beside):
        return []
    return [
        one
        for one in parts
        if one.part.component is Component.EXPERT and one.state is PartState.NOT_READ
    ]


def amount_of(parts: Sequence[PartFinding], hidden: int = 0) -> Amount:
    """How much of what was read is linked at least, in either model, and how alike that is.

    `hidden` are weights that belong to no part that is known.
    """
    read = [one for one in parts if one.state is not PartState.NOT_READ and one.read > 0]
    layers = [one for one in read if one.part.component in MATRICES]
    linked = [one for one in read if one.state.linked]
    known = [one for one in linked if one.likeness is not None]
    weights = sum(one.weights for one in known)
    return Amount(
        linked=_sure(linked, read) or 0.0,
        layers=_sure([one for one in layers if one.state.linked], layers),
        likeness=sum((one.likeness or 0.0) * one.weights for one in known) / weights
        if weights
        else None,
        read=sum(one.weights * one.read for one in parts)
        / max(sum(one.weights for one in parts) + hidden, 1),
    )


def _of_smaller(some: Sequence[PartFinding], of: Sequence[PartFinding]) -> float | None:
    """The share of linked numbers where parts of both are counted in the model that has fewer: what
    was pruned or widened is all there."""
    sizes = _total(of, lambda one: one.weights), _total(of, _partner_size)
    linked = sum(min(one.sure * one.counted, one.fewest) for one in some)
    return linked / min(sizes) if min(sizes) else None


def _partner_size(finding: PartFinding) -> int:
    return finding.partner_weights or finding.weights


def _sure(some: Sequence[PartFinding], of: Sequence[PartFinding]) -> float | None:
    total = _total(of, lambda one: one.counted)
    return sum(one.counted * one.sure for one in some) / total if total else None


def _total(findings: Sequence[PartFinding], size: Callable[[PartFinding], int]) -> int:
    """How many numbers some parts have, by the `size` of a finding.

    A part of which nothing is linked stands beside its like in the other model, and the larger of
    both counts: by number, or where layers and experts have moved, whichever are left over.
    """
    met = {None, *(one.partner for one in findings if one.state.linked)}
    total = 0
    left: dict[tuple[str, Component], list[int]] = {}
    for one in findings:
        if not one.of_second and (one.state.linked or one.partner not in met):
            total += size(one)
        else:
            alike = one.part.tower, one.part.component
            left.setdefault(alike, [0, 0])[one.of_second] += one.weights
    return total + sum(map(max, left.values()))
