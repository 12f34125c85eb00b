"""What was done to a model: a list of operations, in the order in which they are likeliest.

Each rests on what tensors and their correspondence show, and says so. What numbers cannot tell
apart is one operation: more training is a fine-tune where it changed little, continued pre-training
where it changed much, and undecided between the two limits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from statistics import median
from typing import Any

from msgspec import Struct

from kinprint.diff.pairing import Correspondence
from kinprint.diff.results import OperationFound, TensorChange
from kinprint.measure.low_rank import HIGHEST
from kinprint.model.model import Model
from kinprint.model.places import Address
from kinprint.records import (
    Component,
    Operation,
    PartFinding,
    PartState,
    Role,
    Side,
    TensorStatus,
)
from kinprint.text import joined, message, words


class Sizes(Struct, frozen=True):
    """How large a model is, where it has such parts: units are those of a feed-forward, queries
    and keys rows of these matrices."""

    layers: int
    channels: int | None
    units: int | None
    expert_units: int | None
    experts: int | None
    queries: int | None
    keys: int | None
    tokens: int | None

    @classmethod
    def of(cls, model: Model) -> Sizes:
        """How large a model is, by its tensors."""
        layer = next(iter(model.layers()), None)

        def size(
            role: Role, axis: int, at: int | None = None, expert: int | None = None
        ) -> int | None:
            place = model.places.get(Address(role, at, expert))
            shape = None if place is None else place.shape
            return None if shape is None or len(shape) <= axis else shape[axis]

        numbers = [
            one.expert for one in model.places if one.role == Role.EXPERT_UP and not one.tower
        ]
        units = (size(Role.EXPERT_UP, 0, at, 0) for at in model.layers())
        return cls(
            len(model.layers()),
            size(Role.EMBED, 1) or size(Role.UP, 1, layer),
            size(Role.UP, 0, layer),
            next(filter(None, units), None),
            max((one for one in numbers if one is not None), default=-1) + 1 or None,
            size(Role.Q, 0, layer),
            size(Role.K, 0, layer),
            size(Role.EMBED, 0),
        )


ALIKE = 0.3
"""The least cosine of tensors of which one became the other; unrelated ones have 0.02."""
_MOST = 0.8  # of tensors that must show the same
_WHITE = 0.95  # in the middle of all matrices: noise has 0.98, training at most 0.91
_FINETUNED, _CONTINUED = 0.15, 0.35  # relative changes, in the middle of all matrices
_ZEROED, _ONLY = 0.05, 1.02  # of the numbers; times as many changed where nothing else did
_DENSE = 0.3  # of the numbers that an adapter or noise changes at least: rounding spares some
_FACTOR, _BESIDE = 1e-3, 0.1  # how well factors agree, and what a factor may leave unexplained
_UNDONE = 0.02  # how far a factor may be from undoing the other: rounding leaves 0.004
_LEAST_FACTOR = 0.01  # of a factor from one; smaller ones are in what rounding changes
_LARGEST = 1.2  # relative change, in the middle, that training or noise makes: strangers have 1.41
_SPARED, _BY_ROUNDING = (
    0.15,
    4.0,
)  # of the numbers that stay, and where rounding undoes some, more
_REMOVED, _EXACTLY = 0.1, 0.02  # how far a change may be from what taking out directions gives
_FEWEST_ADAPTED = 3  # matrices: editors of single facts change one or two by a low rank
_KEPT_TOKENS = 0.98  # of a vocabulary that was extended or cut
# Relative errors that quantising makes at most, by bits: about twice those of rounding normal
# numbers to a grid with a scale for 128 of them (largest 3.0 standard deviations).
_COARSEST = {1: 1.0, 2: 0.6, 3: 0.35, 4: 0.2, 5: 0.1, 6: 0.05, 8: 0.03}
_TABLES = (Component.EMBEDDING, Component.HEAD, Component.OTHER)
_FLOATS = ("F64", "F32", "BF16", "F16")


def without_trace(parts: Sequence[PartFinding]) -> frozenset[Component]:
    """Components of which no part has a trace, though a copy would have been seen."""
    states: dict[Component, set[PartState]] = {}
    for one in parts:
        states.setdefault(one.part.component, set()).add(one.state)
    return frozenset(each for each, some in states.items() if some == {PartState.NO_TRACE})


def find_operations(
    tensors: Sequence[TensorChange],
    known: Correspondence,
    sizes: tuple[Sizes, Sizes],
    gone: Collection[Component] = (),
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
    sampled
        Whether only some rows were read: nobody knows then that a component was kept as it was.
    """
    if known.turned is not None:
        turn = known.turned
        fields = {"alike": turn.alike, "count": turn.units, "cosine": turn.cosine}
        return (OperationFound(Operation.ROTATED, message("diff.operation.rotated", **fields)),)
    compared = [one for one in tensors if one.status is TensorStatus.COMPARED and one.numbers > 1]
    alike = [one for one in compared if is_alike(one)]
    if not alike:
        return ()
    vectors = _unlike_vectors(compared)
    emptied, unlike = _layers_without_likeness(compared)
    alike = [one for one in alike if one.tower or one.layer not in emptied | unlike]
    return (
        *_upcycled(tensors),
        *_structure(known, sizes, compared),
        *_replaced(compared, gone),
        *_layers(emptied, unlike),
        *(() if sampled else _frozen(tensors, [*alike, *vectors])),
        *_numbers(alike, compared),
        *([_found(Operation.CHANGED, "vectors-unlike", count=len(vectors))] if vectors else ()),
    )


def is_alike(one: TensorChange) -> bool:
    """Whether a tensor may have become another: unrelated ones are never so alike."""
    cosine = one.cosine if one.centred is None else one.centred
    return one.equal or (cosine is not None and cosine >= ALIKE)


def _unlike_vectors(compared: Sequence[TensorChange]) -> list[TensorChange]:
    """Vectors that are not alike; none where matrices are not either, which says more."""
    if not all(map(is_alike, _matrices(compared))):
        return []
    return [one for one in compared if len(one.shape) < 2 and not is_alike(one)]


def _structure(
    known: Correspondence, sizes: tuple[Sizes, Sizes], compared: Sequence[TensorChange]
) -> Iterator[OperationFound]:
    a, b = sizes
    if b.layers != a.layers:
        kind = Operation.EXPANDED_DEPTH if b.layers > a.layers else Operation.PRUNED_DEPTH
        yield _found(kind, "depth", before=a.layers, after=b.layers)
    else:
        moved = [one for one in compared if one.layer != one.from_layer and len(one.shape) > 1]
        each_once = len(set(known.layers.values())) == len(known.layers)
        if moved and _share(moved, is_alike) >= _MOST:
            if each_once and not _in_order(_matrices(compared)):
                yield _found(Operation.REORDERED, "reordered")
            elif not each_once:
                pairs = sorted({(one.layer, one.from_layer) for one in moved if is_alike(one)})
                copies = ", ".join(f"{of}→{to}" for to, of in pairs)
                yield _found(Operation.CHANGED, "layers-copied", layers=copies)
    for what in ("channels", "units", "expert_units", "experts"):
        before, after = getattr(a, what), getattr(b, what)
        if before and after and before != after:
            kind = Operation.EXPANDED_WIDTH if after > before else Operation.PRUNED_WIDTH
            yield _found(kind, what.removeprefix("expert_"), before=before, after=after)
    if a.queries and b.queries and b.queries < a.queries:
        yield _found(Operation.PRUNED_HEADS, "heads", before=a.queries, after=b.queries)
    each = [one.queries / one.keys for one in sizes if one.queries and one.keys]
    if a.keys != b.keys and len(set(each)) == 2:  # no head was removed with its keys
        yield _found(Operation.CHANGED, "keys", before=a.keys, after=b.keys)
    yield from _vocabulary(known, a, b)
    yield from _renamed(known, a, b)


def _in_order(tensors: Sequence[TensorChange]) -> bool:
    """Whether layers stand in the order that they had, whatever numbers they have now."""
    pairs = {
        (one.tower, one.layer, one.from_layer)
        for one in tensors
        if one.layer is not None and one.from_layer is not None and is_alike(one)
    }
    following = pairwise(sorted(pairs))
    return all(one[0] != other[0] or one[2] < other[2] for one, other in following)


def _upcycled(tensors: Sequence[TensorChange]) -> Iterator[OperationFound]:
    """Experts that come from feed-forwards, of all that the second model has."""
    experts = [one for one in tensors if one.expert is not None and one.b is not None]
    made = {(one.layer, one.expert) for one in experts if one.from_expert is None and one.a}
    alike = {(one.layer, one.expert) for one in experts if one.a and is_alike(one)}
    if made and len(made & alike) >= _MOST * len(made):
        of = len({(one.layer, one.expert) for one in experts})
        yield _found(Operation.UPCYCLED, "upcycled", count=len(made & alike), of=of)


def _layers_without_likeness(
    compared: Sequence[TensorChange],
) -> tuple[frozenset[int], frozenset[int]]:
    """Layers of the text model whose matrices all became zero, and those of which none is alike;
    none where that is so of all."""
    groups: dict[int, list[TensorChange]] = {}
    for one in compared:
        if one.layer is not None and not one.tower and len(one.shape) > 1:
            groups.setdefault(one.layer, []).append(one)
    emptied = {at for at, some in groups.items() if all(_is_emptied(one) for one in some)}
    unlike = {
        at for at, some in groups.items() if at not in emptied and not any(map(is_alike, some))
    }
    if len(emptied | unlike) == len(groups):
        return frozenset(), frozenset()
    return frozenset(emptied), frozenset(unlike)


def _is_emptied(one: TensorChange) -> bool:
    return one.zeroed > 0 and one.zeroed + one.zeros >= 1


def _layers(emptied: Collection[int], unlike: Collection[int]) -> Iterator[OperationFound]:
    if emptied:
        yield _found(Operation.PRUNED_NUMBERS, "layers-zero", layers=_numbered(emptied))
    if unlike:
        yield _found(Operation.CHANGED, "layers-unlike", layers=_numbered(unlike))


def _matrices(tensors: Iterable[TensorChange]) -> list[TensorChange]:
    return [one for one in tensors if len(one.shape) > 1]


def _numbered(layers: Collection[int]) -> str:
    return ", ".join(map(str, sorted(layers)))


def _renamed(known: Correspondence, a: Sizes, b: Sizes) -> Iterator[OperationFound]:
    """Channels, units, heads and experts of equal number that changed places or signs."""
    moved = []
    if known.channels is not None and a.channels == b.channels:
        moved.append("channels")
    if known.units and a.units == b.units:
        moved.append("units")
    if known.queries or known.groups:
        moved.append("heads")
    if any(source not in (None, expert) for (_, expert), source in known.experts.items()):
        moved.append("experts")
    tokens = known.tokens if known.spelt else None
    if tokens is not None and len(tokens.a) >= _KEPT_TOKENS * max(tokens.before, tokens.after):
        moved.append("tokens")
    if moved:
        what = joined((words(f"diff.permuted.{one}") for one in moved), ", ")
        yield OperationFound(Operation.PERMUTED, message("diff.operation.permuted", what=what))


def _vocabulary(known: Correspondence, a: Sizes, b: Sizes) -> Iterator[OperationFound]:
    if known.tokens is None or not known.spelt or not a.tokens or not b.tokens:
        return
    shared = len(known.tokens.a)
    if shared >= _KEPT_TOKENS * max(a.tokens, b.tokens):
        return  # the same tokens in another order
    kind = Operation.TRANSPLANTED_VOCABULARY
    if shared >= _KEPT_TOKENS * a.tokens and b.tokens > a.tokens:
        kind = Operation.EXPANDED_VOCABULARY
    elif shared >= _KEPT_TOKENS * b.tokens and b.tokens < a.tokens:
        kind = Operation.REDUCED_VOCABULARY
    yield _found(kind, "vocabulary", before=a.tokens, after=b.tokens, shared=shared)


def _by_component(tensors: Sequence[TensorChange]) -> dict[Component, list[TensorChange]]:
    groups: dict[Component, list[TensorChange]] = {}
    for one in tensors:
        if one.component is not None:
            groups.setdefault(one.component, []).append(one)
    return groups


def _replaced(
    compared: Sequence[TensorChange], gone: Collection[Component]
) -> Iterator[OperationFound]:
    """Components of which nothing is left.

    Numbers at equal places do not tell that: a copy may have been renumbered in a way that was not
    undone here. So a comparison must say it too.
    """
    replaced = tuple(
        component
        for component, some in _by_component(_matrices(compared)).items()
        if component in gone and not any(is_alike(one) for one in some)
    )
    if replaced:
        yield _found(Operation.REPLACED, "replaced", replaced)


def _frozen(
    tensors: Sequence[TensorChange], told: Sequence[TensorChange]
) -> Iterator[OperationFound]:
    """Components with matrices that nothing happened to, where something happened to others: not
    to one of their vectors either, and every tensor has a partner whose numbers were read."""
    frozen = tuple(
        each
        for each, some in _by_component(tensors).items()
        if all(one.equal for one in some) and _matrices(some)
    )
    if frozen and not all(one.equal for one in told):
        yield _found(Operation.FROZEN, "frozen", frozen)


def _numbers(
    alike: Sequence[TensorChange], compared: Sequence[TensorChange]
) -> Iterator[OperationFound]:
    """What happened to the numbers of tensors that are alike, of all that were compared."""
    changed = [one for one in alike if one.relative is not None and one.relative.value > 0]
    unexplained = [one for one in changed if not _is_rounded(one) and not _was_coarser(one)]
    unseen = [one for one in alike if not one.equal and one.read >= one.numbers]
    if unseen and not changed:
        yield _found(Operation.CHANGED, "not-in-size", count=len(unseen))
    if _size(unexplained) > (1 - _MOST) * _size(changed):
        yield from _changes(unexplained, _matrices(alike), _matrices(compared))
    elif any(_was_coarser(one) for one in changed):
        known = all(one.rounding is not None for one in _matrices(changed) if _was_coarser(one))
        yield _found(Operation.CHANGED, "was-coarser" if known else "was-coarser-perhaps-more")
    yield from _stored_otherwise(alike)


def _is_rounded(one: TensorChange) -> bool:
    """Whether a tensor changed no more than the format that it is stored in now would change it.

    Formats that carry errors on from column to column (GPTQ) are no rounding of single numbers.
    """
    if one.rounding is not None:
        return one.rounding.coarser is Side.B
    packed = one.b_format not in _FLOATS and one.a_format != one.b_format
    if not packed or one.b_bits is None or one.relative is None or _was_coarser(one):
        return False
    return one.relative.value <= _COARSEST.get(one.b_bits, 0.0)


def _was_coarser(one: TensorChange) -> bool:
    """Whether the first model holds a tensor more coarsely than the second."""
    if one.rounding is not None:
        return one.rounding.coarser is Side.A
    if one.a_bits is None or one.b_bits is None or one.relative is None or not _packed(one):
        return False
    finer = one.a_bits < one.b_bits or one.b_format in _FLOATS
    return finer and one.relative.value <= _COARSEST.get(one.a_bits, 0.0)


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
        explained = set(map(id, rescaled.tensors))
        changed = [one for one in changed if id(one) not in explained]
    touched = [one for one in changed if len(one.shape) > 1]
    if not changed:
        return
    if not touched:
        relative = median(one.relative.value for one in changed if one.relative is not None)
        key = "vectors" if matrices else "vectors-alone"
        yield _found(Operation.CHANGED, key, relative=relative, count=len(changed))
        return
    relative = median(one.relative.value for one in touched if one.relative is not None)
    counts: dict[str, Any] = {"relative": relative, "count": len(touched), "of": len(matrices)}
    if _share(touched, lambda one: one.zeroed >= _ZEROED) >= _MOST:
        share = median(one.zeroed for one in touched)
        if all(one.changed and one.changed.value <= _ONLY * one.zeroed for one in touched):
            yield _found(Operation.PRUNED_NUMBERS, "zeroed", share=share)
        else:  # pruned and trained, or levels of a grid
            yield _found(Operation.CHANGED, "zeroed-and-changed", share=share, **counts)
        return
    if all(_is_multiple(one) for one in touched):
        scales = [one.scale for one in touched if one.scale is not None]
        if max(scales) - min(scales) <= _FACTOR * abs(max(scales)):
            yield _found(Operation.SCALED, "scaled", scale=median(scales), **counts)
        else:
            yield _found(Operation.CHANGED, "multiples", **counts)
        return
    adapter = _adapter(touched) if _is_dense(touched) else None
    adapter = adapter or _adapter_in_some_roles(touched)
    if adapter is None:
        yield _in_all_directions(touched, counts, _is_of_blocks(touched, compared))
        return
    others = [one for one in touched if one.role in adapter.other_roles]
    if _is_removal([one for one in touched if one.role not in adapter.other_roles]):
        removed = [one for one in touched if _is_removal([one])]
        yield _found(Operation.CHANGED, "removed", **{**counts, **_counted(removed)})
        others = [one for one in touched if not _is_removal([one])]
        trained = _is_of_blocks(others, compared)
    else:
        yield adapter.operation
        trained = True  # beside an adapter, whatever else it was saved with
    if others:
        yield _in_all_directions(others, {**counts, **_counted(others)}, trained)
    vectors = [one for one in changed if len(one.shape) < 2 and one.relative is not None]
    if vectors:
        yield _found(Operation.CHANGED, "vectors-beside", **_counted(vectors))


def _counted(tensors: Sequence[TensorChange]) -> dict[str, Any]:
    relative = median(one.relative.value for one in tensors if one.relative is not None)
    return {"relative": relative, "count": len(tensors)}


def _is_dense(matrices: Sequence[TensorChange]) -> bool:
    """Whether nearly all matrices changed in as many numbers as an adapter, noise or training
    changes, and it is known how."""
    known = any(one.directions is not None for one in matrices)
    return known and _count(matrices, _is_changed_densely) >= _MOST * len(matrices)


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
    """Whether either model has a tensor in a quantised format: small changes are lost in it."""
    return one.a_format not in _FLOATS or one.b_format not in _FLOATS


def _is_of_blocks(matrices: Sequence[TensorChange], compared: Sequence[TensorChange]) -> bool:
    """Whether matrices are most of those in the parts of layers that differ, in some component.

    Training moves all matrices of an attention or a feed-forward. What changes two that undo each
    other, or finds one that is alike among strangers, does not. Tables of tokens or places that
    changed alone may have been replaced, cut or divided by their lengths.
    """
    found = set(map(_place, matrices))
    blocks: dict[tuple[object, ...], list[TensorChange]] = {}
    for one in compared:
        table = one.layer is None and one.component in _TABLES and not one.tower
        if not table:
            key = one.tower, one.component, one.layer, one.expert
            blocks.setdefault(key, []).append(one)
    shares: dict[tuple[object, ...], list[bool]] = {}
    for (tower, component, *_), some in blocks.items():
        if not all(one.equal for one in some):
            most = 2 * _count(some, lambda one: _place(one) in found) > len(some)
            shares.setdefault((tower, component), []).append(most)
    return any(2 * sum(some) >= len(some) for some in shares.values())


def _place(one: TensorChange) -> tuple[object, ...]:
    return one.role, one.tower, one.layer, one.expert, one.b


def _is_removal(matrices: Sequence[TensorChange], within: float = _REMOVED) -> bool:
    """Whether what changed is at right angles to what is left: directions were taken out.

    The first model then lies along the change by just the size of that.
    """
    known = [
        (1.0 - one.scale) / one.relative.value**2
        for one in matrices
        if one.scale is not None and one.relative is not None and one.relative.value > 0
    ]
    return bool(known) and abs(median(known) - 1.0) <= within


def _in_all_directions(
    matrices: Sequence[TensorChange], counts: dict[str, Any], trained: bool
) -> OperationFound:
    """Noise or training; undecided where neither is the likely reading, or too few were read.

    `trained` says that what changed is what training would have changed.
    """
    throughout = _count(matrices, _is_changed_throughout) >= _MOST * len(matrices)
    if not _is_dense(matrices) or not throughout or counts["relative"] > _LARGEST:
        return _found(Operation.CHANGED, "changed", **counts)
    whiteness = median(one.directions.whiteness for one in matrices if one.directions is not None)
    if whiteness >= _WHITE:
        return _found(Operation.NOISE, "noise", whiteness=whiteness, **counts)
    exact = _count(matrices, lambda one: _is_removal([one], _EXACTLY))
    if exact >= _MOST * len(matrices):
        return _found(Operation.CHANGED, "removed", **counts)
    if not trained:
        return _found(Operation.CHANGED, "changed", **counts)
    kind = Operation.TRAINED
    if counts["relative"] < _FINETUNED:
        kind = Operation.FINETUNE
    elif counts["relative"] > _CONTINUED:
        kind = Operation.CONTINUED
    return _found(kind, "trained", **counts)


class _Rescaled(Struct, frozen=True):
    """Units that were multiplied where they read and divided where they send, and their tensors."""

    operation: OperationFound
    tensors: tuple[TensorChange, ...]


def _rescaled(changed: Sequence[TensorChange]) -> _Rescaled | None:
    """Feed-forwards whose units have factors of their own that undo each other."""
    places: dict[tuple[str, int | None, int | None], dict[str, TensorChange]] = {}
    for one in changed:
        role = one.role.removeprefix("expert_")
        places.setdefault((one.tower, one.layer, one.expert), {})[role] = one
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


class _Adapter(Struct, frozen=True):
    """A merged adapter, and roles that it was not trained in, though their matrices changed."""

    operation: OperationFound
    other_roles: frozenset[str] = frozenset()


def _adapter_in_some_roles(matrices: Sequence[TensorChange]) -> _Adapter | None:
    """Updates of one rank in some roles, where those of others have none: adapters are put on
    roles, and whatever is trained beside them is trained whole."""
    ranks = Counter(rank for rank in map(_rank, matrices) if rank is not None)
    if not ranks:
        return None
    rank, count = ranks.most_common(1)[0]
    roles = _ranks_by_role(matrices, rank)
    adapted = {role for role, some in roles.items() if some.count(rank) >= _MOST * len(some)}
    others = _without_rank(roles)
    if count < _FEWEST_ADAPTED or adapted | others != roles.keys():
        return None
    of = sum(map(len, roles.values()))
    evidence = message("diff.operation.adapter", rank=rank, count=count, of=of)
    return _Adapter(OperationFound(Operation.ADAPTER, evidence, rank=rank), others)


def _ranks_by_role(matrices: Sequence[TensorChange], rank: int) -> dict[str, list[int | None]]:
    """Ranks of changes, of matrices that are large enough to show one."""
    roles: dict[str, list[int | None]] = {}
    for one in matrices:
        if one.directions is not None and rank <= HIGHEST * min(one.shape):
            roles.setdefault(one.role, []).append(_rank(one))
    return roles


def _rank(one: TensorChange) -> int | None:
    """The rank of a change, where it is clearly lower than rows and columns that changed at all:
    some that were replaced have a rank too, their number."""
    if one.directions is None or one.directions.rank is None or one.changed is None:
        return None
    rank = one.directions.rank
    return rank if rank <= HIGHEST * one.changed.value * min(one.shape) else None


def _without_rank(roles: Mapping[str, Sequence[int | None]]) -> frozenset[str]:
    return frozenset(role for role, some in roles.items() if set(some) == {None})


def _adapter(matrices: Sequence[TensorChange]) -> _Adapter | None:
    """Updates of low rank in nearly all matrices that are large enough to show it."""
    spread = [(min(one.shape), _rank(one)) for one in matrices if one.directions is not None]
    ranks = Counter(rank for _, rank in spread if rank is not None)
    if not ranks:
        return None
    rank = ranks.most_common(1)[0][0]
    able = [one for size, one in spread if rank <= HIGHEST * size]
    others = _without_rank(_ranks_by_role(matrices, rank))
    low = [one for one in able if one is not None]
    if len(low) < _MOST * len(able):
        return None
    fields = {"count": len(low), "of": len(able)}
    kind = Operation.ADAPTER if len(able) >= _FEWEST_ADAPTED else Operation.CHANGED
    if low.count(rank) >= _MOST * len(able):
        evidence = message("diff.operation.adapter", rank=rank, **fields)
        return _Adapter(OperationFound(kind, evidence, rank=rank), others)
    common = {one for one, times in Counter(low).items() if times >= 0.1 * len(low)}
    if sum(one in common for one in low) < _MOST * len(able):
        return None
    several = ", ".join(map(str, sorted(common)))
    evidence = message("diff.operation.adapter-ranks", ranks=several, **fields)
    return _Adapter(OperationFound(kind, evidence, rank=max(common)), others)


def _stored_otherwise(alike: Sequence[TensorChange]) -> Iterator[OperationFound]:
    """Casts and quantisations, by the format that most numbers of the second model have.

    Vectors count only where there are no matrices: GGUF files keep them in single precision.
    """
    numbers: Counter[str] = Counter()
    alike = [one for one in alike if len(one.shape) > 1] or alike
    for one in alike:
        rounded = one.rounding is not None and one.rounding.coarser is Side.B
        if one.b_format is not None and (one.a_format != one.b_format or rounded):
            numbers[one.b_format] += one.numbers
    if not numbers:
        return
    name = numbers.most_common(1)[0][0]
    of_it = [one for one in alike if one.b_format == name]
    bits, before = (
        of_it[0].b_bits,
        next((one.a_format for one in of_it if one.a_format != name), name),
    )
    known = [one.rounding for one in of_it if one.rounding is not None]
    grids = Counter(one.bits for one in known if one.coarser is Side.B)
    grid = grids.most_common(1)[0][0] if grids else None
    if name in _FLOATS and grid is not None and bits is not None and grid < bits:
        evidence = message("diff.operation.grid", bits=grid, format=name)
        yield OperationFound(Operation.QUANTIZED, evidence, bits=grid)
    elif name in _FLOATS or any(_was_coarser(one) or one.equal for one in of_it if _packed(one)):
        if before != name:
            evidence = message("diff.operation.cast", before=before, after=name)
            yield OperationFound(Operation.CAST, evidence, format=name, bits=bits)
    else:
        packed = [one for one in of_it if len(one.shape) > 1 and not one.equal]
        key = "quantized-besides"
        if packed and all(one.rounding is not None for one in packed):
            key = "quantized"
        elif all(_is_rounded(one) for one in packed):
            key = "quantized-perhaps-more"
        evidence = message(f"diff.operation.{key}", format=name, bits=bits)
        yield OperationFound(Operation.QUANTIZED, evidence, format=name, bits=bits)


def _packed(one: TensorChange) -> bool:
    """Whether the first model has a tensor in a quantised format already."""
    return one.a_format is not None and one.a_format not in _FLOATS


def _count(tensors: Sequence[TensorChange], holds: Callable[[TensorChange], bool]) -> int:
    return sum(map(holds, tensors))


def _size(tensors: Sequence[TensorChange]) -> int:
    return sum(one.numbers for one in tensors)


def _share(tensors: Sequence[TensorChange], holds: Callable[[TensorChange], bool]) -> float:
    """The share of tensors for which something holds, by their numbers."""
    return _size([one for one in tensors if holds(one)]) / max(_size(tensors), 1)


def _found(
    kind: Operation, key: str, components: tuple[Component, ...] = (), **fields: object
) -> OperationFound:
    if components:
        names = (words(f"verdict.part.{component}") for component in components)
        fields["components"] = joined(names, ", ")
    return OperationFound(kind, message(f"diff.operation.{key}", **fields), components)
