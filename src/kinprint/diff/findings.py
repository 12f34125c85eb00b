"""What all rules of operations ask of changed tensors, and how they say what they found."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from kinprint.diff.results import OperationFound, TensorChange
from kinprint.records import Component, Operation
from kinprint.text import joined, message, words

ALIKE = 0.3
"""The least cosine of tensors of which one became the other; unrelated ones have 0.02."""
MOST = 0.8
"""Of tensors that must show the same."""


def is_alike(one: TensorChange) -> bool:
    """Whether a tensor may have become another: unrelated ones are never so alike."""
    cosine = one.cosine if len(one.shape) > 1 else one.centred
    return one.equal or (cosine is not None and cosine >= ALIKE)


def is_featureless(one: TensorChange) -> bool:
    """Whether a vector is nearly one number in either model, and so like and unlike any other."""
    return len(one.shape) < 2 and one.centred is None and not one.equal


def matrices_of(tensors: Iterable[TensorChange]) -> list[TensorChange]:
    """Tensors that are no vectors."""
    return [one for one in tensors if len(one.shape) > 1]


def without(tensors: Iterable[TensorChange], some: Iterable[TensorChange]) -> list[TensorChange]:
    """Tensors that are not among some of them."""
    gone = set(map(id, some))
    return [one for one in tensors if id(one) not in gone]


def count_of(tensors: Sequence[TensorChange], holds: Callable[[TensorChange], bool]) -> int:
    """For how many tensors something holds."""
    return sum(map(holds, tensors))


def size_of(tensors: Sequence[TensorChange]) -> int:
    """How many numbers tensors have."""
    return sum(one.numbers for one in tensors)


def share_of(tensors: Sequence[TensorChange], holds: Callable[[TensorChange], bool]) -> float:
    """The share of tensors for which something holds, by their numbers."""
    return size_of([one for one in tensors if holds(one)]) / max(size_of(tensors), 1)


def found(
    kind: Operation, key: str, components: tuple[Component, ...] = (), **fields: object
) -> OperationFound:
    """An operation, with the sentence of a key."""
    if components:
        names = (words(f"verdict.part.{component}") for component in components)
        fields["components"] = joined(names, ", ")
    return OperationFound(kind, message(f"diff.operation.{key}", **fields), components)
