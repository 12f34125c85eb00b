"""What was done to a model: a list of operations, in the order in which they are likeliest.

Each rests on what tensors and their correspondence show, and says so. What numbers cannot tell
apart is one operation: more training is a fine-tune where it changed little, continued pre-training
where it changed much, and undecided between the two limits.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from kinprint.diff.pairing import Correspondence
from kinprint.diff.results import OperationFound, TensorChange
from kinprint.measure.low_rank import HIGHEST
from kinprint.records import Component, Operation, TensorStatus
from kinprint.text import joined, message, words


@dataclass(frozen=True, slots=True)
class Sizes:
    """How large a model is, where it has such parts: units are those of a feed-forward, queries
    rows of its query matrix."""

    layers: int
    channels: int | None
    units: int | None
    expert_units: int | None
    queries: int | None
    tokens: int | None


ALIKE = 0.3
"""The least cosine of tensors of which one became the other; unrelated ones have 0.02."""
_UNLIKE = 0.12  # the most of those that do not
_MOST = 0.8  # of tensors that must show the same
_WHITE = 0.95  # in the middle of all matrices: noise has 0.98, training at most 0.91
_FINETUNED, _CONTINUED = 0.15, 0.35  # relative changes, in the middle of all matrices
_ZEROED, _ONLY = 0.05, 1.02  # of the numbers; times as many changed where nothing else did
_SAME_DIRECTION = 0.99999  # cosine of tensors that differ by a factor
_KEPT_TOKENS = 0.98  # of a vocabulary that was extended or cut
# Relative errors of quantised weights by bits: twice those of rounding normal numbers to a grid
# with a scale for 128 of them (largest 3.0 standard deviations).
_COARSEST = {1: 1.0, 2: 0.9, 3: 0.5, 4: 0.3, 5: 0.15, 6: 0.08, 8: 0.08}


def find_operations(
    tensors: Sequence[TensorChange],
    known: Correspondence,
    sizes: tuple[Sizes, Sizes],
    *,
    sampled: bool = False,
) -> tuple[OperationFound, ...]:
    """Operations that together make the second model of the first; none where nothing is alike.

    Of a component of which some rows were read nobody knows that it was kept as it was.
    """
    if known.turned is not None:
        turn = known.turned
        fields = {"alike": turn.alike, "count": turn.units, "cosine": turn.cosine}
        evidence = message("diff.operation.rotated", **fields)
        turned = OperationFound(Operation.ROTATED, evidence)
        if turn.alike >= _MOST:
            return (turned,)
        return turned, _trained(math.sqrt(max(0.0, 2.0 * (1.0 - turn.cosine))))
    compared = [one for one in tensors if one.status is TensorStatus.COMPARED and one.numbers > 1]
    alike = [one for one in compared if _is_alike(one)]
    if not alike:
        return ()
    return (
        *_structure(known, sizes, compared),
        *_replaced(compared),
        *(() if sampled else _frozen(compared, alike)),
        *_numbers(alike),
    )


def _is_alike(one: TensorChange) -> bool:
    return one.equal or (one.cosine is not None and one.cosine >= ALIKE)


def _structure(
    known: Correspondence, sizes: tuple[Sizes, Sizes], compared: Sequence[TensorChange]
) -> Iterator[OperationFound]:
    a, b = sizes
    if any(expert is None for expert in known.experts.values()):
        count = len({expert for _, expert in known.experts})
        yield _found(Operation.UPCYCLED, "upcycled", count=count)
    if b.layers != a.layers:
        kind = Operation.EXPANDED_DEPTH if b.layers > a.layers else Operation.PRUNED_DEPTH
        yield _found(kind, "depth", before=a.layers, after=b.layers)
    for what in ("channels", "units", "expert_units"):
        before, after = getattr(a, what), getattr(b, what)
        if before and after and before != after:
            kind = Operation.EXPANDED_WIDTH if after > before else Operation.PRUNED_WIDTH
            yield _found(kind, what.removeprefix("expert_"), before=before, after=after)
    if a.queries and b.queries and b.queries < a.queries:
        yield _found(Operation.PRUNED_HEADS, "heads", before=a.queries, after=b.queries)
    yield from _vocabulary(known, a, b, compared)
    yield from _renamed(known, a, b)


def _renamed(known: Correspondence, a: Sizes, b: Sizes) -> Iterator[OperationFound]:
    """Channels, units and heads of equal number that changed places."""
    moved = []
    if known.channels is not None and a.channels == b.channels:
        moved.append("channels")
    if known.units and a.units == b.units:
        moved.append("units")
    if known.queries or known.groups:
        moved.append("heads")
    if moved:
        what = joined((words(f"diff.permuted.{one}") for one in moved), ", ")
        yield OperationFound(Operation.PERMUTED, message("diff.operation.permuted", what=what))


def _vocabulary(
    known: Correspondence, a: Sizes, b: Sizes, compared: Sequence[TensorChange]
) -> Iterator[OperationFound]:
    if known.tokens is None or not known.spelt or not a.tokens or not b.tokens:
        return
    shared = len(known.tokens.a)
    kind = Operation.TRANSPLANTED_VOCABULARY
    if shared >= _KEPT_TOKENS * a.tokens and b.tokens > a.tokens:
        kind = Operation.EXPANDED_VOCABULARY
    elif shared >= _KEPT_TOKENS * b.tokens and b.tokens < a.tokens:
        kind = Operation.REDUCED_VOCABULARY
    yield _found(kind, "vocabulary", before=a.tokens, after=b.tokens, shared=shared)


def _by_component(compared: Sequence[TensorChange]) -> dict[Component, list[TensorChange]]:
    groups: dict[Component, list[TensorChange]] = {}
    for one in compared:
        if one.component is not None and len(one.shape) > 1:
            groups.setdefault(one.component, []).append(one)
    return groups


def _replaced(compared: Sequence[TensorChange]) -> Iterator[OperationFound]:
    """Components of which nothing is left."""
    replaced = tuple(
        component
        for component, some in _by_component(compared).items()
        if _share(some, lambda one: one.cosine is not None and abs(one.cosine) < _UNLIKE) >= _MOST
    )
    if replaced:
        yield _found(Operation.REPLACED, "replaced", replaced)


def _frozen(
    compared: Sequence[TensorChange], alike: Sequence[TensorChange]
) -> Iterator[OperationFound]:
    """Components that nothing happened to, where something happened to others."""
    groups = _by_component(compared)
    frozen = tuple(each for each, some in groups.items() if all(one.equal for one in some))
    if frozen and not all(one.equal for one in alike):
        yield _found(Operation.FROZEN, "frozen", frozen)


def _numbers(alike: Sequence[TensorChange]) -> Iterator[OperationFound]:
    """What happened to the numbers of tensors that are alike."""
    changed = [one for one in alike if not one.equal]
    matrices = [one for one in changed if len(one.shape) > 1]
    recast = Counter((one.a_format, one.b_format) for one in alike if one.a_format != one.b_format)
    coarser = [one for one in changed if _is_rounded(one)]
    if changed and _share(changed, _is_rounded) < _MOST:
        yield from _changes([one for one in matrices if not _is_rounded(one)] or changed)
    if recast or coarser:
        yield from _stored_otherwise(alike, coarser)


def _is_rounded(one: TensorChange) -> bool:
    """Whether a tensor changed no more than the format that it is stored in now would change it.

    Formats that carry errors on from column to column (GPTQ) are no rounding of single numbers.
    """
    if one.rounding is not None:
        return one.rounding.coarser == "b"
    packed = one.b_format not in _FLOATS and one.a_format != one.b_format
    if not packed or one.b_bits is None or one.relative is None:
        return False
    return one.relative.value <= _COARSEST.get(one.b_bits, 0.0)


def _changes(matrices: Sequence[TensorChange]) -> Iterator[OperationFound]:
    """What changed numbers beyond the way they are stored."""
    zeroed = [one for one in matrices if one.zeroed >= _ZEROED]
    if len(zeroed) >= _MOST * len(matrices):
        share = median(one.zeroed for one in zeroed)
        yield _found(Operation.PRUNED_NUMBERS, "zeroed", share=share)
        if all(one.changed and one.changed.value <= _ONLY * one.zeroed for one in zeroed):
            return
    relative = median(one.relative.value for one in matrices if one.relative is not None)
    if all((one.cosine or 0.0) >= _SAME_DIRECTION for one in matrices):
        scale = median(one.scale or 1.0 for one in matrices)
        yield _found(Operation.SCALED, "scaled", scale=scale)
        return
    spread = [one.directions for one in matrices if one.directions is not None]
    if spread:
        adapter = _adapter(matrices)
        if adapter is not None:
            yield adapter
            return
        whiteness = median(one.whiteness for one in spread)
        if whiteness >= _WHITE:
            yield _found(Operation.NOISE, "noise", relative=relative, whiteness=whiteness)
            return
        yield _trained(relative)
        return
    yield _found(Operation.CHANGED, "changed", relative=relative)


def _adapter(matrices: Sequence[TensorChange]) -> OperationFound | None:
    """An update of one rank in nearly all matrices that are large enough to show it."""
    spread = [(min(one.shape), one.directions) for one in matrices if one.directions is not None]
    ranks = Counter(one.rank for _, one in spread if one.rank is not None)
    if not ranks:
        return None
    rank = ranks.most_common(1)[0][0]
    able = [one.rank for size, one in spread if rank <= HIGHEST * size]
    count = able.count(rank)
    if count < _MOST * len(able):
        return None
    evidence = message("diff.operation.adapter", rank=rank, count=count, of=len(able))
    return OperationFound(Operation.ADAPTER, evidence, rank=rank)


def _trained(relative: float) -> OperationFound:
    """More training, by how much it changed."""
    kind = Operation.TRAINED
    if relative < _FINETUNED:
        kind = Operation.FINETUNE
    elif relative > _CONTINUED:
        kind = Operation.CONTINUED
    return _found(kind, "trained", relative=relative)


def _stored_otherwise(
    alike: Sequence[TensorChange], coarser: Sequence[TensorChange]
) -> Iterator[OperationFound]:
    """Casts and quantisations, by the format that most numbers of the second model have."""
    numbers: Counter[str] = Counter()
    for one in alike:
        if one.b_format is not None and (one.a_format != one.b_format or one in coarser):
            numbers[one.b_format] += one.numbers
    if not numbers:
        return
    name = numbers.most_common(1)[0][0]
    of_it = [one for one in alike if one.b_format == name]
    bits = of_it[0].b_bits
    grids = Counter(one.rounding.bits for one in of_it if one.rounding is not None)
    if name in _FLOATS:
        grid = grids.most_common(1)[0][0] if grids else None
        if grid is not None and bits is not None and grid < bits:  # rounded, and stored as floats
            evidence = message("diff.operation.grid", bits=grid, format=name)
            yield OperationFound(Operation.QUANTIZED, evidence, format=None, bits=grid)
            return
        before = next((one.a_format for one in of_it if one.a_format != name), name)
        if before != name:
            evidence = message("diff.operation.cast", before=before, after=name)
            yield OperationFound(Operation.CAST, evidence, format=name, bits=bits)
        return
    evidence = message("diff.operation.quantized", format=name, bits=bits)
    yield OperationFound(Operation.QUANTIZED, evidence, format=name, bits=bits)


_FLOATS = ("F64", "F32", "BF16", "F16")


def _share(tensors: Sequence[TensorChange], holds: Callable[[TensorChange], bool]) -> float:
    """The share of tensors for which something holds, by their numbers."""
    total = sum(one.numbers for one in tensors)
    return sum(one.numbers for one in tensors if holds(one)) / max(total, 1)


def _found(
    kind: Operation, key: str, components: tuple[Component, ...] = (), **fields: object
) -> OperationFound:
    if components:
        names = (words(f"verdict.part.{component}") for component in components)
        fields["components"] = joined(names, ", ")
    return OperationFound(kind, message(f"diff.operation.{key}", **fields), components)
