"""A merge recipe as data, and which numbers of a child it gives, bit by bit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from kinprint.measure.masks import Magnitudes, Trimmed, choices, trimmed
from kinprint.measure.merging import (
    Precision,
    add_task_vectors,
    linear,
    rounded,
    slerp,
    task_vectors,
)
from kinprint.records import MergeMethod

Floats = NDArray[np.float32]
Mask = NDArray[np.bool_]


class Settings(Struct, frozen=True):
    """What a recipe says of one tensor: by parent, or the way from the first to the second."""

    weights: tuple[float, ...] = ()
    densities: tuple[float, ...] = ()
    t: float | None = None

    @property
    def digits(self) -> int:
        """How many digits it takes to write it down, zeros at either end not counted."""
        given = (*self.weights, *self.densities, *(() if self.t is None else (self.t,)))
        return sum(len(f"{one:.10g}".replace(".", "").strip("0")) for one in given)


class Recipe(Struct, frozen=True):
    """A merge that can be carried out.

    Attributes
    ----------
    method : how.
    parents : which of the sources are merged, in order.
    base : which of them the others' task vectors start from.
    settings : of each tensor, in order.
    precision : the number format of the calculation.
    normalize : whether a sum is divided by the sum of its weights.
    scale : what recipes call lambda.
    rescale : whether what is left of a task vector keeps the sum of its magnitudes.
    fused : whether linear sums are rounded once a term.
    """

    method: MergeMethod
    parents: tuple[int, ...]
    settings: tuple[Settings, ...]
    precision: Precision
    base: int | None = None
    normalize: bool = False
    scale: float = 1.0
    rescale: bool = False
    fused: bool = True

    @property
    def subtracted(self) -> frozenset[int]:
        """Parents that have a weight below zero somewhere."""
        return frozenset(
            at
            for own in self.settings
            for at, weight in zip(self.parents, own.weights, strict=False)
            if weight < 0
        )


class Facts(Struct, frozen=True):
    """What must be known of a whole tensor before a block of it can be merged.

    Attributes
    ----------
    stored : the number format of the child.
    coefficients : what slerp multiplies its two parents by.
    magnitudes : of each parent's task vector, by the format of the calculation.
    scales : what is left of each parent's task vector is multiplied by, where a recipe rescales.
    """

    stored: Precision
    coefficients: tuple[float, float] = (1.0, 0.0)
    magnitudes: Mapping[Precision, tuple[Magnitudes, ...]] = field(default_factory=dict)
    scales: tuple[float, ...] = ()


class Agreement(Struct, frozen=True):
    """Which numbers of a child a recipe gives bit by bit, and which to a rounding step."""

    equal: Mask
    near: Mask


def agreeing(
    recipe: Recipe, settings: Settings, facts: Facts, sources: Sequence[Floats], child: Floats
) -> Agreement:
    """Hold what a recipe gives against the child, both flat.

    Where a recipe leaves open which numbers are kept (at random, or among equal magnitudes at the
    limit of trimming), any choice that gives the number will do.
    """
    own = [sources[at] for at in recipe.parents]
    precision = recipe.precision
    if recipe.method is MergeMethod.LINEAR:
        weights = settings.weights
        merged = linear(own, weights, recipe.normalize, precision, fused=recipe.fused)
        return _held(merged, child, facts.stored)
    if recipe.method is MergeMethod.SLERP:
        first, second = (rounded(one, precision) for one in own)
        merged = rounded(slerp(first, second, facts.coefficients), precision)
        return _held(merged, child, facts.stored)
    assert recipe.base is not None
    base = sources[recipe.base]
    vectors = task_vectors(base, own, precision)
    limits = _limits(recipe, settings, facts, vectors)
    equal, near = np.zeros(child.shape, bool), np.zeros(child.shape, bool)
    either = np.logical_or.reduce([limit.either for limit in limits])
    where = np.arange(child.size)
    for chosen in choices(len(vectors)):
        kept = [
            vector[where] * (limit.kept[where] | (limit.either[where] & take))
            for vector, limit, take in zip(vectors, limits, chosen, strict=True)
        ]
        merged = add_task_vectors(
            base[where],
            [_rescaled(one, recipe, facts, at) for at, one in enumerate(kept)],
            settings.weights,
            precision,
            scale=recipe.scale,
            normalize=recipe.normalize,
            consensus=recipe.method in (MergeMethod.TIES, MergeMethod.DARE_TIES),
        )
        found = _held(merged, child[where], facts.stored)
        equal[where] |= found.equal
        near[where] |= found.near
        where = np.flatnonzero(either & ~equal)
        if not where.size:
            break
    return Agreement(equal, near)


def _held(merged: Floats, child: Floats, stored: Precision) -> Agreement:
    # Numbers are held against each other, not bits: a zero's sign is nobody's choice.
    given = rounded(merged, stored)
    reach = _STEPS[stored] * steps(np.maximum(np.abs(child), np.abs(given)), stored)
    return Agreement(given == child, np.abs(given - child) <= reach)


def steps(values: Floats, precision: Precision) -> Floats:
    """The distance from each number to the next in a format."""
    return np.asarray(np.ldexp(np.float32(1), np.frexp(np.abs(values))[1] - precision.bits))


# Steps by which rounding in another order may miss: sums of long formats are never that exact.
_STEPS = {Precision.FLOAT32: 8, Precision.BFLOAT16: 1, Precision.FLOAT16: 1}


def _limits(
    recipe: Recipe, settings: Settings, facts: Facts, vectors: Sequence[Floats]
) -> list[Trimmed]:
    shape = vectors[0].shape
    if recipe.method is MergeMethod.TIES:
        return [
            trimmed(magnitudes, vector, density)
            for magnitudes, vector, density in zip(
                facts.magnitudes[recipe.precision], vectors, settings.densities, strict=True
            )
        ]
    anything = Trimmed(
        np.full(shape, not recipe.method.random), np.full(shape, recipe.method.random)
    )
    return [anything] * len(vectors)


def _rescaled(kept: Floats, recipe: Recipe, facts: Facts, at: int) -> Floats:
    if not recipe.rescale:
        return kept
    work = scaling_format(recipe.precision)
    factor = rounded(np.array(facts.scales[at], np.float32), work)
    return rounded(rounded(kept * factor, work), recipe.precision)


def scaling_format(precision: Precision) -> Precision:
    """The number format of rescaling: PyTorch draws no Bernoulli numbers in float16 on a CPU."""
    return Precision.FLOAT32 if precision is Precision.FLOAT16 else precision
