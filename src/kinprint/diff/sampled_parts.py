"""What changed, as far as the samples of a comparison tell: nothing more is read for it.

Rows that a comparison has read of both models at equal places are what `diff --sample` would read
of them, and are judged by the same rules.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from msgspec import Struct

from kinprint.diff.changes import described, rounding_of
from kinprint.diff.findings import is_alike
from kinprint.diff.given import token_rows
from kinprint.diff.operations import find_operations, with_trace, without_trace
from kinprint.diff.pairing import Correspondence, TensorPair
from kinprint.diff.results import OperationFound, TensorChange
from kinprint.diff.sampling import change_of_rows
from kinprint.diff.structure import Sizes
from kinprint.lineage.parts.tensors import Rows, at_equal_numbers, compared
from kinprint.lineage.reading.parts import TABLES
from kinprint.lineage.results import Comparison, Material
from kinprint.model.model import Model
from kinprint.model.places import Address, Place
from kinprint.records import (
    FEED_FORWARDS,
    Component,
    Part,
    PartFinding,
    PartState,
    Role,
    TensorStatus,
)

_RUNS = 8  # that the rows of a tensor are cut into, for its intervals
_LOOKED_AT = 1 << 12  # numbers that tell whether a tensor was rounded


class SampledChanges(Struct, frozen=True):
    """Operations that samples show, and tensors that are alike in them."""

    operations: tuple[OperationFound, ...]
    tensors: tuple[TensorChange, ...]


def changes_of(found: Comparison) -> SampledChanges | None:
    """What changed from the first model to the second; None where no weight was read.

    Means something where weights were taken over.
    """
    material = found.material
    if material is None:
        return None
    tensors = tuple(
        change
        for one in found.verdict.parts
        if not one.part.tower and one.partner is not None
        for change in _changes(material, one, one.partner)
    )
    a, b = material.models
    gone = without_trace(found.verdict.parts)
    linked = with_trace(found.verdict.parts)
    sizes = Sizes.of(a), Sizes.of(b)
    known = Correspondence(linked_layers(found))
    operations = find_operations(tensors, known, sizes, gone, linked, sampled=True)
    return SampledChanges(operations, tuple(one for one in tensors if _is_told(one)))


def linked_layers(found: Comparison) -> dict[tuple[str, int], int]:
    """For layers of the second model, that of the first which most weights of it are linked with,
    or else the nearest that a search has found."""
    layers = {}
    if found.shared is not None:
        layers = {("", one.b): one.a for one in found.shared.layers if one.quality}
    votes: dict[int, Counter[int]] = {}
    for one in found.verdict.parts:
        here, there = one.part, one.partner
        if not one.state.linked or here.tower or here.component is Component.NORMS:
            continue
        if here.layer is not None and there is not None and there.layer is not None:
            votes.setdefault(there.layer, Counter())[here.layer] += one.weights
    for layer, some in votes.items():
        # Of layers that are equal the one of the same number counts.
        layers["", layer] = max(some, key=lambda at: (some[at], at == layer))
    return layers


def _is_told(one: TensorChange) -> bool:
    """Whether a tensor is alike, and rows that were read tell of the others."""
    bounded = one.changed is not None and one.changed.high is not None
    return is_alike(one) and (bounded or one.read >= one.numbers)


def _changes(material: Material, one: PartFinding, partner: Part) -> Iterator[TensorChange]:
    """Tensors of two parts that were read at equal places."""
    a, b = material.models
    for name, (ours, theirs) in _rows(material, one.part, partner):
        pair = TensorPair(_place(a, name, one.part), _place(b, name, partner))
        told = None if pair.a is None or pair.b is None else described(pair)
        x, y = at_equal_numbers(ours, theirs)
        if told is None or told.status is not TensorStatus.COMPARED or x.shape != y.shape:
            continue
        if not x.size:
            continue
        rows, rounding = max(1, _LOOKED_AT // x.shape[1]), None
        if one.state is PartState.ROUNDED:
            rounding = rounding_of(pair, x[:rows], y[:rows])
        share = min(1.0, x.size / max(told.numbers, 1))
        runs = 1 if share == 1 else _RUNS
        yield change_of_rows(told, x, y, share, -(-len(x) // runs), rounding)


def _rows(material: Material, part: Part, partner: Part) -> Iterator[tuple[str, tuple[Rows, Rows]]]:
    a, b = material.samples
    if part.component not in TABLES:
        yield from compared(a, b, part, partner)
        return
    tables = token_rows(a, part.component), token_rows(b, partner.component)
    if tables[0] is not None and tables[1] is not None:
        role = Role.EMBED if part.component is Component.EMBEDDING else Role.LM_HEAD
        yield role, (tables[0], tables[1])


def _place(model: Model, name: str, part: Part) -> Place | None:
    for prefix in FEED_FORWARDS:
        place = model.places.get(Address(prefix + name, part.layer, part.expert, part.tower))
        if place is not None:
            return place
    return None
