"""What was done to a model: a list of operations, in the order in which they are likeliest.

Each rests on what tensors and their correspondence show, and says so. What numbers cannot tell
apart is one operation: more training is a fine-tune where it changed little, continued pre-training
where it changed much, and undecided between the two limits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from statistics import median
from typing import Any

from msgspec import Struct

from kinprint.diff.adapters import adapter_in_all, adapter_in_some
from kinprint.diff.findings import (
    MOST,
    count_of,
    found,
    is_alike,
    is_featureless,
    matrices_of,
    size_of,
    without,
)
from kinprint.diff.pairing import Correspondence
from kinprint.diff.results import OperationFound, TensorChange
from kinprint.diff.storage import (
    FLOATS,
    is_beyond_format,
    is_hardly_more,
    is_rounded,
    stored_otherwise,
    was_coarser,
)
from kinprint.diff.structure import (
    Linked,
    Sizes,
    kept_as_it_was,
    lost_layers,
    replaced,
    resized,
    unlike_layers,
    upcycled,
)
from kinprint.records import (
    Component,
    Operation,
    PartFinding,
    PartState,
    Role,
    TensorStatus,
    feed_forward_of,
    plain_role,
)
from kinprint.text import message

_WHITE = 0.95  # in the middle of all matrices: noise has 0.98, training at most 0.91
_LEAST_WHITE = 0.9  # of a matrix among those of noise, which has 0.92 and more
_HIDES = 0.25  # of a change, in squares' roots, that rounding makes: more hides its directions
_FINETUNED, _CONTINUED = 0.15, 0.35  # relative changes, in the middle of all matrices
_ZEROED, _ONLY = 0.05, 1.02  # of the numbers; times as many changed where nothing else did
_LEVEL = 0.5  # of the numbers, more than the zero level of a grid of two bits takes
_DENSE = 0.3  # of the numbers that an adapter or noise changes at least: rounding spares some
_FACTOR, _BESIDE = 1e-3, 0.1  # how well factors agree, and what a factor may leave unexplained
_UNDONE = 0.02  # how far a factor may be from undoing the other: rounding leaves 0.004
_LEAST_FACTOR = 0.01  # of a factor from one; smaller ones are in what rounding changes
_MOSTLY = 0.5  # of the units: where fewer agree, more than the basis changed
_LARGEST = 1.2  # relative change, in the middle, that training or noise makes: strangers have 1.41
_SPARED = 0.15  # of the numbers that stay where all were changed
_BY_ROUNDING = 4.0  # times the relative error of rounding: numbers more that stay by it
_REMOVED = 0.1  # how far a change may be from what taking out directions gives
_LEFT = 0.1  # of what chance puts in directions: 0.004 is left after taking out, 0.3 and more else
_HIDDEN = 4.0  # times the squared errors of rounding: 3 were seen where directions were taken out
_SEVERAL, _LEAST_SHARE, _MOST_SHARE = 4, 0.05, 0.95  # matrices, and shares that are told from all
_UNEVEN = 0.25  # how far factors of rows are apart where few were copied: training leaves 0.12
_SAME_SHARE = 0.03  # how far shares are apart: 0.015 in averages, 0.1 and more after training
_TRAINING = (Operation.FINETUNE, Operation.TRAINED, Operation.CONTINUED)
_TABLES = (Component.EMBEDDING, Component.HEAD, Component.OTHER)


def without_trace(parts: Sequence[PartFinding]) -> frozenset[Component]:
    """Components of which no part has a trace, though a copy would have been seen."""
    states: dict[Component, set[PartState]] = {}
    for one in parts:
        states.setdefault(one.part.component, set()).add(one.state)
    return frozenset(each for each, some in states.items() if some == {PartState.NO_TRACE})


def with_trace(parts: Sequence[PartFinding]) -> frozenset[Component]:
    """Components of which something is in both models."""
    return frozenset(one.part.component for one in parts if one.state.linked)


def find_operations(
    tensors: Sequence[TensorChange],
    known: Correspondence,
    sizes: tuple[Sizes, Sizes],
    gone: Collection[Component] = (),
    linked: Collection[Component] = (),
    *,
    sampled: bool = False,
) -> tuple[OperationFound, ...]:
    """Operations that together make the second model of the first; none where nothing is alike.

    Parameters
    ----------
    tensors, known, sizes
        What became of tensors, how parts correspond, and how large the models are.
    gone
        Components of which a comparison says that a copy would have been seen and was not.
    linked
        Components of which a comparison has found something in both models.
    sampled
        Whether only some rows were read: nobody knows then that a component was kept as it was.
    """
    if known.turned is not None:
        turn = known.turned
        fields: dict[str, Any] = {"alike": turn.alike, "count": turn.units, "cosine": turn.cosine}
        key = "rotated" if turn.alike >= _MOSTLY else "rotated-changed"
        return (found(Operation.ROTATED, key, **fields),)
    broken = [one for one in tensors if one.broken]
    compared = [one for one in tensors if one.status is TensorStatus.COMPARED and one.numbers > 1]
    compared = [one for one in compared if not one.broken or one.broken < one.read]
    alike = [one for one in compared if is_alike(one)]
    if not alike:
        return tuple(_not_finite(broken))
    vectors = _unlike_vectors(compared)
    unlike = unlike_layers(compared)
    kept = {(one.tower, one.layer) for one in matrices_of(alike)}
    alike += [one for one in compared if is_featureless(one) and (one.tower, one.layer) in kept]
    alike = [one for one in alike if one.tower or one.layer not in unlike]
    return (
        *upcycled(tensors),
        *resized(known, sizes, Linked(compared, linked, sampled)),
        *replaced(tensors, gone),
        *lost_layers(unlike),
        *_not_finite(broken),
        *(() if sampled else kept_as_it_was(tensors, [*alike, *vectors, *broken])),
        *_numbers(alike, compared),
        *([found(Operation.CHANGED, "vectors-unlike", count=len(vectors))] if vectors else ()),
    )


def _not_finite(broken: Sequence[TensorChange]) -> Iterator[OperationFound]:
    """Numbers that no sum holds: whatever is said of the others, these are none of them."""
    if broken:
        count = sum(one.broken for one in broken)
        yield found(Operation.NOT_FINITE, "not-finite", count=count, tensors=len(broken))


def _unlike_vectors(compared: Sequence[TensorChange]) -> list[TensorChange]:
    """Vectors that are not alike; none where matrices are not either, which says more."""
    if not all(map(is_alike, matrices_of(compared))):
        return []
    vectors = [one for one in compared if len(one.shape) < 2 and not is_featureless(one)]
    return [one for one in vectors if not is_alike(one)]


def _numbers(
    alike: Sequence[TensorChange], compared: Sequence[TensorChange]
) -> Iterator[OperationFound]:
    """What happened to the numbers of tensors that are alike, of all that were compared."""
    changed = [one for one in alike if one.relative is not None and one.relative.value > 0]
    unexplained = [one for one in changed if not is_rounded(one) and not was_coarser(one)]
    finite = [one for one in alike if not one.broken]
    unseen = [one for one in finite if not one.equal and one.read >= one.numbers]
    if unseen and not changed:
        yield found(Operation.CHANGED, "not-in-size", count=len(unseen))
    if size_of(unexplained) > (1 - MOST) * size_of(changed):
        if not matrices_of(changed):  # a few gains may be other ones rounded by accident
            unexplained = changed
        yield from _changes(unexplained, matrices_of(alike), matrices_of(compared))
    elif coarser := [one for one in changed if was_coarser(one)]:
        coarser = matrices_of(coarser) or coarser
        of = len(matrices_of(alike) or alike)
        known = [one.rounding.bits for one in coarser if one.rounding is not None]
        if len(known) == len(coarser):
            bits = Counter(known).most_common(1)[0][0]
            count = len(coarser)
            yield found(Operation.ROUNDED_BEFORE, "was-coarser", count=count, of=of, bits=bits)
        else:
            yield found(Operation.CHANGED, "was-coarser-perhaps-more")
    elif beyond := [one for one in matrices_of(unexplained) if is_beyond_format(one)]:
        of = len(matrices_of(alike))
        yield found(Operation.CHANGED, "beyond-format", of=of, **_counted(beyond))
    yield from stored_otherwise(alike)


def _changes(
    changed: Sequence[TensorChange],
    matrices: Sequence[TensorChange],
    compared: Sequence[TensorChange],
) -> Iterator[OperationFound]:
    """What changed numbers beyond the way they are stored; `matrices` are all that are alike, of
    those `compared`."""
    rescaled = _rescaled(changed)
    if rescaled is not None:
        yield rescaled.operation
        changed = without(changed, rescaled.tensors)
    touched = matrices_of(changed)
    if not changed:
        return
    if not touched:
        relative = median(one.relative.value for one in changed if one.relative is not None)
        key = "vectors" if matrices else "vectors-alone"
        yield found(Operation.CHANGED, key, relative=relative, count=len(changed))
        return
    of = len(matrices)
    zeroed = [one for one in touched if _has_more_zeros(one)]
    yield from _zeroed(zeroed, of)
    left = without(touched, zeroed)
    multiples = [one for one in left if _is_multiple(one)]
    yield from _multiplied(multiples, of)
    left = without(left, multiples)
    removed = [one for one in left if _is_removal(one)]
    if removed:
        yield found(Operation.CHANGED, "removed", of=of, **_counted(removed))
        left = without(left, removed)
        if hidden := [one for one in left if _may_be_removal(one)]:
            yield found(Operation.CHANGED, "changed", of=of, **_counted(hidden))
            left = without(left, hidden)
    adapter = adapter_in_all(left) if _is_dense(left) else None
    adapter = adapter or adapter_in_some(left)
    if adapter is not None:
        yield adapter.operation
        left = list(adapter.others)
    filled = [one for one in left if _had_more_zeros(one)]
    if filled:  # by pruning what the first model holds, or before the second was trained
        share = median(one.filled for one in filled)
        yield found(Operation.CHANGED, "filled", of=of, share=share, **_counted(filled))
    noise = _noise(without(left, filled))
    if noise:
        yield _in_all_directions(noise, of, trained=False)
    left = without(left, [*filled, *noise])
    if left and (zeroed or filled or noise) and all(map(_is_table, left)):
        yield found(Operation.CHANGED, "tables-beside", **_counted(left))
    elif left:
        trained = adapter is not None or _is_of_blocks(left, without(compared, noise))
        whole = _in_all_directions(left, of, trained=trained)
        if whole.kind in _TRAINING:
            for some in _of_one_share(left):
                yield _in_all_directions(some, of, trained=trained)
        else:
            yield whole
    vectors = [one for one in changed if len(one.shape) < 2 and one.relative is not None]
    if vectors and (adapter is not None or removed):
        yield found(Operation.CHANGED, "vectors-beside", **_counted(vectors))


def _has_more_zeros(one: TensorChange) -> bool:
    """Whether numbers became zero that no level of a grid made so."""
    return one.zeroed >= (_ZEROED if one.grid is None else _LEVEL)


def _zeroed(matrices: Sequence[TensorChange], of: int) -> Iterator[OperationFound]:
    """Numbers that became zero: by pruning alone, or beside training, or as a level of a grid."""
    pruned = [one for one in matrices if one.changed and one.changed.value <= _ONLY * one.zeroed]
    if pruned:
        share = median(one.zeroed for one in pruned)
        count = len(pruned)
        yield found(Operation.PRUNED_NUMBERS, "zeroed", count=count, of=of, share=share)
    if others := without(matrices, pruned):
        share = median(one.zeroed for one in others)
        yield found(Operation.CHANGED, "zeroed-and-changed", of=of, share=share, **_counted(others))


def _multiplied(matrices: Sequence[TensorChange], of: int) -> Iterator[OperationFound]:
    """Matrices that were multiplied, by one factor or each by its own."""
    scales = [one.scale for one in matrices if one.scale is not None]
    if not scales:
        return
    counts = {"count": len(matrices), "of": of}
    if max(scales) - min(scales) <= _FACTOR * abs(max(scales)):
        yield found(Operation.SCALED, "scaled", (), scale=median(scales), **counts)
    else:
        yield found(Operation.CHANGED, "multiples", (), **counts)


def _had_more_zeros(one: TensorChange) -> bool:
    """Whether numbers were zero and are not any more, that no level of a grid had made so."""
    return one.filled >= (_ZEROED if one.a_format in FLOATS else _LEVEL)


def _counted(tensors: Sequence[TensorChange]) -> dict[str, Any]:
    relative = median(one.relative.value for one in tensors if one.relative is not None)
    return {"relative": relative, "count": len(tensors)}


def _is_dense(matrices: Sequence[TensorChange]) -> bool:
    """Whether nearly all matrices changed in as many numbers as an adapter, noise or training
    changes, and it is known how."""
    known = any(one.directions is not None for one in matrices)
    return known and count_of(matrices, _is_changed_densely) >= MOST * len(matrices)


def _is_changed_densely(one: TensorChange) -> bool:
    return one.changed is not None and one.changed.value >= _DENSE


def _is_changed_throughout(one: TensorChange) -> bool:
    """Whether numbers changed everywhere, and no factor of each row or column explains it.

    Where rows were replaced and others kept, more numbers stay than rounding leaves as they were.
    """
    if not _is_changed_densely(one) or one.row_factors or one.column_factors:
        return False
    if one.changed is None or one.rounding_errors is None or _on_a_grid(one):
        return True
    stayed = 1.0 - one.changed.value - one.zeros
    return stayed <= _SPARED + _BY_ROUNDING * one.rounding_errors


def _on_a_grid(one: TensorChange) -> bool:
    """Whether either model has a tensor on a coarse grid: small changes are lost in it."""
    return one.grid is not None or one.a_format not in FLOATS or one.b_format not in FLOATS


def _is_of_blocks(matrices: Sequence[TensorChange], compared: Sequence[TensorChange]) -> bool:
    """Whether matrices are most of those in the parts of layers that differ, in some component.

    Training moves all matrices of an attention or a feed-forward. What changes two that undo each
    other, or finds one that is alike among strangers, does not. Tables of tokens or places that
    changed alone may have been replaced, cut or divided by their lengths.
    """
    found = set(map(_place, matrices))
    blocks: dict[tuple[object, ...], list[TensorChange]] = {}
    for one in compared:
        if not _is_table(one):
            key = one.tower, one.component, one.layer, one.expert
            blocks.setdefault(key, []).append(one)
    shares: dict[tuple[object, ...], list[bool]] = {}
    for (tower, component, *_), some in blocks.items():
        if not all(one.equal for one in some):
            most = 2 * count_of(some, lambda one: _place(one) in found) > len(some)
            shares.setdefault((tower, component), []).append(most)
    return any(2 * sum(some) >= len(some) for some in shares.values())


def _is_table(one: TensorChange) -> bool:
    """Whether a matrix of the text model is in no layer: tokens, places, and the like."""
    return one.layer is None and one.component in _TABLES and not one.tower


def _place(one: TensorChange) -> tuple[object, ...]:
    return one.role, one.tower, one.layer, one.expert, one.b


def _is_removal(one: TensorChange) -> bool:
    """Whether directions were taken out: what changed is at right angles to what is left, and
    nothing of that lies in them.

    An adapter that is taken off again is at right angles too, but the model that it was trained on
    has as much in its directions as in others.
    """
    if one.left is None or one.left > _LEFT or one.scale is None or one.relative is None:
        return False
    along = (1.0 - one.scale) / one.relative.value**2
    return abs(along - 1.0) <= _REMOVED and _is_changed_throughout(one)


def _may_be_removal(one: TensorChange) -> bool:
    """Whether rounding hides what is left in the directions of a change."""
    errors = one.rounding_errors
    return one.left is not None and errors is not None and one.left <= _HIDDEN * errors**2


def _noise(matrices: Sequence[TensorChange]) -> list[TensorChange]:
    """Matrices whose change has no direction, nearly all of a role or of a layer.

    A single one may be so by chance, as one that is near its initial value is when it is averaged
    with another. Rounding hides the directions of small changes: where others have some, it is not
    told from noise.
    """
    known = [one for one in matrices if one.directions is not None]
    if not known or _whiteness(known) < _WHITE:
        known = [one for one in known if (one.rounding_errors or 0.0) <= _HIDES]
    groups: dict[tuple[object, ...], list[TensorChange]] = {}
    for one in known:
        for key in ((one.tower, one.role), (one.tower, one.layer)):
            groups.setdefault(key, []).append(one)
    white = {key for key, some in groups.items() if _whiteness(some) >= _WHITE}
    return [
        one
        for one in known
        if white & {(one.tower, one.role), (one.tower, one.layer)}
        and _whiteness([one]) >= _LEAST_WHITE
    ]


def _whiteness(matrices: Sequence[TensorChange]) -> float:
    """How white changes are, in the middle."""
    return median(one.directions.whiteness for one in matrices if one.directions is not None)


def _of_one_share(matrices: Sequence[TensorChange]) -> Iterator[list[TensorChange]]:
    """Matrices apart by components where those of one hold one share of others, and the rest."""
    components: dict[tuple[object, ...], list[TensorChange]] = {}
    for one in matrices:
        components.setdefault((one.tower, one.component), []).append(one)
    shared = [some for some in components.values() if _is_share(some)]
    yield from shared
    if left := without(matrices, [one for some in shared for one in some]):
        yield left


def _is_share(matrices: Sequence[TensorChange]) -> bool:
    return _are_one_share([one.scale for one in matrices if one.scale is not None])


def _in_all_directions(
    matrices: Sequence[TensorChange], of: int, *, trained: bool
) -> OperationFound:
    """Noise or training; undecided where neither is the likely reading, or too few were read.

    `trained` says that what changed is what training would have changed.
    """
    counts = {"of": of, **_counted(matrices)}
    throughout = count_of(matrices, _is_changed_throughout) >= MOST * len(matrices)
    if not _is_dense(matrices) or not throughout or counts["relative"] > _LARGEST:
        return found(Operation.CHANGED, "changed", **counts)
    if 2 * count_of(matrices, is_hardly_more) > len(matrices):
        return found(Operation.CHANGED, "beyond-format", **counts)
    whiteness = _whiteness(matrices)
    if whiteness >= _WHITE:
        return found(Operation.NOISE, "noise", whiteness=whiteness, **counts)
    if not trained or _is_uneven(matrices):
        return found(Operation.CHANGED, "changed", **counts)
    if _is_share(matrices):
        share = median(one.scale for one in matrices if one.scale is not None)
        return found(Operation.CHANGED, "averaged", share=share, **counts)
    if _are_one_share([one.cosine**2 / one.scale for one in matrices if one.cosine and one.scale]):
        return found(Operation.CHANGED, "changed", **counts)  # the first may be an average
    kind = Operation.TRAINED
    if counts["relative"] < _FINETUNED:
        kind = Operation.FINETUNE
    elif counts["relative"] > _CONTINUED:
        kind = Operation.CONTINUED
    return found(kind, "trained", **counts)


def _is_uneven(matrices: Sequence[TensorChange]) -> bool:
    """Whether some units or heads are copies and others have nothing in common.

    Rows of rare tokens are copies after any training.
    """
    layers = (one for one in matrices if one.component not in _TABLES)
    known = [one.uneven for one in layers if one.uneven is not None]
    return bool(known) and median(known) > _UNEVEN


def _are_one_share(shares: Sequence[float]) -> bool:
    """Whether matrices hold the same share of others, and clearly less than all of them.

    What an average with an unrelated model leaves of each is the weight that it has in it.
    Training leaves more of some than of others.
    """
    if len(shares) < _SEVERAL or not _LEAST_SHARE <= median(shares) <= _MOST_SHARE:
        return False
    return max(abs(one - median(shares)) for one in shares) <= _SAME_SHARE


class _Rescaled(Struct, frozen=True):
    """Units that were multiplied where they read and divided where they send, and their tensors."""

    operation: OperationFound
    tensors: tuple[TensorChange, ...]


def _rescaled(changed: Sequence[TensorChange]) -> _Rescaled | None:
    """Feed-forwards whose units have factors of their own that undo each other."""
    places: dict[tuple[str, str, int | None, int | None], dict[str, TensorChange]] = {}
    for one in changed:
        key = one.tower, feed_forward_of(one.role), one.layer, one.expert
        places.setdefault(key, {})[plain_role(one.role)] = one
    tensors: list[TensorChange] = []
    factors: list[float] = []
    for some in places.values():
        up, down = some.get(Role.UP), some.get(Role.DOWN)
        if up is None or down is None:
            continue
        both = list(zip(up.row_factors, down.column_factors, strict=False))
        if both and all(abs(one * other - 1) <= _UNDONE for one, other in both):
            bias = some.get(f"{Role.UP}.bias")
            tensors += [up, down, *(() if bias is None else (bias,))]
            factors += [one for one, _ in both]
    if not tensors:
        return None
    fields = {"count": len([one for one in tensors if one.row_factors])}
    evidence = message("diff.operation.rescaled", low=min(factors), high=max(factors), **fields)
    return _Rescaled(OperationFound(Operation.RESCALED, evidence), tuple(tensors))


def _is_multiple(one: TensorChange) -> bool:
    """Whether a matrix was multiplied by a factor, and next to nothing else is seen beside it."""
    if one.scale is None or one.cosine is None or one.relative is None:
        return False
    beside = max(0.0, 1.0 - one.cosine**2) ** 0.5
    return one.relative.value >= _LEAST_FACTOR and beside <= _BESIDE * one.relative.value
