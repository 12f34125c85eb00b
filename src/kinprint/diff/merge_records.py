"""What is found about a merge: of every tensor, of roles and layers, and of the whole child."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Protocol, TypeVar

from msgspec import Struct

from kinprint.measure.mixtures import Weight
from kinprint.measure.recipes import Recipe, Settings
from kinprint.model.places import Address
from kinprint.records import MergeDoubt, MergeMethod, MergeOutcome, MergeStatus, ModelRef
from kinprint.text import Message


class Proved(Protocol):
    """A tensor of a child, here or in a document."""

    @property
    def status(self) -> MergeStatus:
        """Whether it was measured."""
        ...

    @property
    def equal(self) -> int | None:
        """Numbers that the recipe gives; None where it was not held against it."""
        ...


P = TypeVar("P", bound=Proved)


def left_out(tensors: Iterable[P]) -> list[P]:
    """Tensors that a recipe was not held against, though they were to be read."""
    return [one for one in tensors if one.equal is None and one.status is not MergeStatus.NOT_READ]


class TensorFinding(Struct, frozen=True):
    """One stored tensor of the child.

    Attributes
    ----------
    name, address, numbers : which, what it is, and how many numbers it has.
    status, reason : whether it was measured, and what is wrong with it or with a source.
    weights : of the nearest mixture, by source.
    residual : the part of its squares that the mixture leaves; None where it is zero.
    equal : numbers that the recipe gives bit by bit, or one source has; None without either.
    settings : what the recipe says of it.
    origin : the source and its layer that it was taken from as it is.
    read : how many of its numbers were read.
    """

    name: str
    address: Address
    numbers: int
    status: MergeStatus
    reason: Message | None = None
    weights: tuple[Weight, ...] = ()
    residual: float | None = None
    equal: int | None = None
    settings: Settings | None = None
    origin: tuple[int, int | None] | None = None
    read: int = 0


class GroupFinding(Struct, frozen=True):
    """The mixture nearest to all tensors of a role, or of a layer; see `TensorFinding`."""

    role: str | None
    layer: int | None
    weights: tuple[Weight, ...]
    residual: float | None


class Unmerging(Struct, frozen=True):
    """Which merge made a child.

    Attributes
    ----------
    child : the child.
    sources : the parents, and last the base if it is none of them.
    base : which of the sources the merge started from; None where there is none.
    typed_base : which of them was said to be that, if any was.
    outcome, doubt : what is known, and why no more is.
    methods : those that fit and cannot be told apart by the numbers, the recipe's first.
    recipe, yaml : the recipe, and the same as a file for mergekit.
    copied, rounded : the source that the child equals, and whether what equals a source does so
        only after rounding.
    weights, residual : of the mixture nearest to all tensors that every source has, together.
    equal, compared : numbers that the recipe gives bit by bit or one source has, or each of which
        some source has, of how many.
    tensors, roles, layers : the same in detail.
    labels : what models say they are not, as replicas do.
    sampled : whether some rows of tensors were read.
    dependent : whether some sources are sums of others, so that several recipes give the same.
    aside : models that were given and lack much of what the child and the others have.
    """

    child: ModelRef
    sources: tuple[ModelRef, ...]
    base: int | None
    typed_base: int | None
    outcome: MergeOutcome
    doubt: MergeDoubt | None
    methods: tuple[MergeMethod, ...]
    recipe: Recipe | None
    yaml: str
    copied: int | None
    weights: tuple[Weight, ...]
    residual: float | None
    equal: int
    compared: int
    tensors: tuple[TensorFinding, ...]
    roles: tuple[GroupFinding, ...]
    layers: tuple[GroupFinding, ...]
    labels: tuple[Message, ...] = ()
    sampled: bool = False
    rounded: bool = False
    dependent: bool = False
    aside: tuple[ModelRef, ...] = ()

    def uses(self, some: Container[int]) -> bool:
        """Whether a recipe was found that takes numbers of one of some sources."""
        if self.outcome is not MergeOutcome.RECIPE:
            return False
        if self.recipe is None:  # layers taken as they are
            return any(one.origin is not None and one.origin[0] in some for one in self.tensors)
        used = (*self.recipe.parents, self.recipe.base)
        return any(at is not None and at in some for at in used)

    @property
    def held(self) -> float:
        """The share of the child's numbers that are not in tensors left out of the proof."""
        left = sum(one.numbers for one in left_out(self.tensors))
        return 1 - left / max(sum(one.numbers for one in self.tensors), 1)
