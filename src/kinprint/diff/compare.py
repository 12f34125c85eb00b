"""Two models, and what changed from the first to the second."""

from __future__ import annotations

from collections.abc import Sequence

from kinprint.diff.changes import tensor_changes
from kinprint.diff.mapping import find_correspondence
from kinprint.diff.operations import Sizes, find_operations
from kinprint.diff.pairing import pair_tensors
from kinprint.diff.results import Diff, TensorChange
from kinprint.lineage.compare import compare_models
from kinprint.lineage.opening import labels_of, naming, note_about
from kinprint.lineage.results import Settings
from kinprint.model.model import Model
from kinprint.model.opening import open_model
from kinprint.model.places import Address
from kinprint.reader.checkpoint import Checkpoint, open_checkpoint
from kinprint.reader.fetch import Fetcher, side_by_side
from kinprint.records import Relation, Role

TAKEN_OVER = (
    Relation.IDENTICAL,
    Relation.SAME_WEIGHTS,
    Relation.DERIVED,
    Relation.PARTIAL,
    Relation.LAUNDERED,
)
"""Relations that say that one model has weights of the other."""
_MOSTLY_EQUAL = 0.5  # of the numbers of matrices may differ; of strangers 0.99 do


def diff_models(a: str, b: str, fetcher: Fetcher, base: str | None = None) -> Diff:
    """Say what changed from one model to another, tensor by tensor.

    Parameters
    ----------
    a, b
        The models, the earlier one first.
    fetcher
        Reads, within its budget.
    base
        The model that an adapter was trained on, where it does not say.
    """

    def opened(name: str) -> tuple[Checkpoint, Model]:
        with naming(name):
            checkpoint = open_checkpoint(name, fetcher)
            return checkpoint, open_model(checkpoint, base)

    (first, one), (second, other) = side_by_side(opened, [a, b])
    for model in (one, other):
        model.locate(list(model.places))
    relation = compare_models(a, b, fetcher, Settings(base=base), hashes=False).verdict.relation
    known = find_correspondence(one, other)
    pairs = pair_tensors(one, other, known)
    tensors = tuple(tensor_changes(one, other, pairs, turned=known.turned is not None))
    sizes = _sizes(one), _sizes(other)
    checkpoints = (first, second)
    return Diff(
        first.ref,
        second.ref,
        tensors,
        relation,
        find_operations(tensors, known, sizes) if _is_taken_over(relation, tensors) else (),
        known,
        sampled=False,
        cost=fetcher.spent,
        notes=tuple(
            dict.fromkeys(
                note_about(each.ref.name, note) for each in checkpoints for note in each.notes
            )
        ),
        labels=labels_of(checkpoints),
    )


def _is_taken_over(relation: Relation, tensors: Sequence[TensorChange]) -> bool:
    """Whether one model has weights of the other: a comparison says so, or most numbers are equal.

    A copy whose parts were all renumbered and flipped shows only when that is undone.
    """
    compared = [one for one in tensors if one.changed is not None and len(one.shape) > 1]
    numbers = sum(one.read for one in compared)
    changed = sum(one.read * one.changed.value for one in compared if one.changed is not None)
    return relation in TAKEN_OVER or (numbers > 0 and changed <= _MOSTLY_EQUAL * numbers)


def _sizes(model: Model) -> Sizes:
    """How large a model is, by its tensors."""
    layer = next(iter(model.layers()), None)

    def size(role: Role, axis: int, at: int | None = None, expert: int | None = None) -> int | None:
        place = model.places.get(Address(role, at, expert))
        shape = None if place is None else place.shape
        return None if shape is None or len(shape) <= axis else shape[axis]

    units = size(Role.UP, 0, layer) or size(Role.EXPERT_UP, 0, layer, 0)
    return Sizes(
        len(model.layers()),
        size(Role.EMBED, 1) or size(Role.UP, 1, layer),
        units,
        size(Role.Q, 0, layer),
        size(Role.EMBED, 0),
    )
