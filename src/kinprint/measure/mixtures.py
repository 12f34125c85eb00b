"""Which mixture of some arrays is another one? Least squares from sums of products.

Sums are taken in float64 in one pass, in sixteen groups of neighbouring numbers. Weights come from
all of them; how far they vary when one group is left out (the jackknife) is their uncertainty, so
that whatever the residual is made of, rounding or training, tells by itself how sure a weight is.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]

GROUPS = 16
_STUDENT = 2.131  # the 97.5 % quantile of Student's t with 15 degrees of freedom
_EQUAL = 1e-13  # of the squares: columns that differ by less are one column
_SINGULAR = 1e-14  # of the largest eigenvalue
_ANYTHING = 1e3  # standard error of a weight of which the numbers say nothing
_INVOLVED = 1e-6  # of the largest entry: columns that depend on each other
_UNTOLD, _AS_SURE = 0.25, 4.0  # spread of a difference that says nothing, over that of the sum


class Products:
    """Sums of products of some columns and a target, the target last."""

    def __init__(self, columns: int) -> None:
        self.groups: Doubles = np.zeros((GROUPS, columns + 1, columns + 1))
        self.size = 0

    def add(self, columns: Sequence[Floats], target: Floats) -> None:
        """Count a block; its numbers are dealt to the groups in runs."""
        table = np.stack([np.ravel(one) for one in (*columns, target)]).astype(np.float64)
        edges = np.linspace(0, table.shape[1], GROUPS + 1).astype(int)
        for group, (start, stop) in enumerate(pairwise(edges)):
            part = table[:, start:stop]
            self.groups[group] += part @ part.T
        self.size += table.shape[1]

    def of(self, columns: Sequence[int]) -> Products:
        """The sums of some of the columns, in the order given."""
        kept = [*columns, self.groups.shape[1] - 1]
        found = Products(len(columns))
        found.groups, found.size = self.groups[:, kept][:, :, kept], self.size
        return found

    def __add__(self, other: Products) -> Products:
        found = Products(self.groups.shape[1] - 1)
        found.groups, found.size = self.groups + other.groups, self.size + other.size
        return found

    @property
    def total(self) -> Doubles:
        """Sums over all groups."""
        return np.asarray(self.groups.sum(axis=0))

    def cosine(self, one: int, other: int) -> float:
        """Of the angle between two columns; 0 where one of them is zero."""
        total = self.total
        scale = float(np.sqrt(total[one, one] * total[other, other]))
        return float(total[one, other]) / scale if scale else 0.0


class Weight(Struct, frozen=True):
    """What a column, or some that cannot be told apart, adds to the target.

    `low` and `high` are the ends of the 95 % interval.
    """

    columns: tuple[int, ...]
    value: float
    low: float
    high: float


class Mixture(Struct, frozen=True):
    """The mixture nearest to a target.

    Attributes
    ----------
    weights : a weight a column, or a group of columns that cannot be told apart: equal ones, those
        of which one is a sum of the others, and those of which only the sum of the weights shows.
    coefficients : by column, without the limit that none is negative; columns that are equal share.
    spread : standard errors of the coefficients.
    residual : the part of the target's squares that the weights leave, between 0 and 1; None where
        the target is zero.
    """

    weights: tuple[Weight, ...]
    coefficients: tuple[float, ...]
    spread: tuple[float, ...]
    residual: float | None


def dependent_columns(products: Products) -> list[int]:
    """Some columns of which each is a sum of the others, or none where all are needed."""
    return next(iter(_dependent(_unseen(products.total))), [])


def mixture_of(products: Products, free: Sequence[int] = ()) -> Mixture:
    """Weights that are not negative, but for columns that are `free` to be."""
    total = products.total
    count = total.shape[0] - 1
    equal = _equal_columns(total)
    first = sorted({group[0] for group in equal})
    kept = [*first, count]
    own = {column: group for group in equal for column in group}
    needed = np.ix_(kept, kept)
    coefficients = _solve(total[needed])
    left_out = _solve((total - products.groups)[:, *needed])
    share = (GROUPS - 1) / GROUPS
    deviations = left_out - left_out.mean(axis=0)
    covariance = share * deviations.T @ deviations
    unseen = _unseen(total[needed])
    unbound = [first.index(own[one][0]) for one in free]
    values = coefficients
    if unseen.size or np.delete(coefficients, unbound).min(initial=0.0) < 0:
        values = _limited(total[needed], unbound)
    groups = _joined([*_untold(covariance), *_dependent(unseen)])
    covariance += _ANYTHING**2 * unseen @ unseen.T
    weights = []
    for group in groups:
        direction = np.zeros(len(first))
        direction[list(group)] = 1
        reach = _STUDENT * float(np.sqrt(max(0.0, direction @ covariance @ direction)))
        columns = tuple(sorted(one for at in group for one in own[first[at]]))
        value, centre = float(direction @ values), float(direction @ coefficients)
        weights.append(
            Weight(columns, value, min(value, centre - reach), max(value, centre + reach))
        )
    errors = np.sqrt(np.diag(covariance))
    at = {one: first.index(own[one][0]) for one in range(count)}
    return Mixture(
        tuple(weights),
        tuple(float(coefficients[at[one]]) / len(own[one]) for one in range(count)),
        tuple(float(errors[at[one]]) for one in range(count)),
        _residual(total[needed], values),
    )


def _equal_columns(total: Doubles) -> list[tuple[int, ...]]:
    groups: list[list[int]] = []
    for column in range(total.shape[0] - 1):
        for group in groups:
            a = group[0]
            apart = total[a, a] + total[column, column] - 2 * total[a, column]
            if apart <= _EQUAL * max(total[a, a], total[column, column]):
                group.append(column)
                break
        else:
            groups.append([column])
    return [tuple(group) for group in groups]


def _solve(total: Doubles) -> Doubles:
    """Least squares without limits, one problem or several; directions that the columns do not
    have stay zero."""
    tiny = np.finfo(float).tiny
    gram, target = total[..., :-1, :-1], total[..., :-1, -1]
    scale = np.sqrt(np.maximum(np.diagonal(gram, axis1=-2, axis2=-1), tiny))
    values, vectors = np.linalg.eigh(gram / (scale[..., :, None] * scale[..., None, :]))
    known = values > _SINGULAR * np.maximum(values[..., -1:], tiny)
    inverse = np.where(known, 1 / np.where(known, values, 1), 0)
    along = np.einsum("...ij,...i->...j", vectors, target / scale) * inverse
    return np.asarray(np.einsum("...ij,...j->...i", vectors, along) / scale)


def _unseen(total: Doubles) -> Doubles:
    """Changes of the weights that leave the sum as it is, a column each: their length is one."""
    gram = total[:-1, :-1]
    scale = np.sqrt(np.maximum(np.diag(gram), np.finfo(float).tiny))
    values, vectors = np.linalg.eigh(gram / np.outer(scale, scale))
    unknown = values <= _SINGULAR * max(float(values[-1]), np.finfo(float).tiny)
    found = vectors[:, unknown] / scale[:, None]
    return np.asarray(found / np.sqrt(np.square(found).sum(axis=0)))


def _dependent(unseen: Doubles) -> list[list[int]]:
    """Columns that change together without a trace."""
    sizes = np.abs(unseen)
    return [np.flatnonzero(one > _INVOLVED * one.max()).tolist() for one in sizes.T]


def _joined(groups: Sequence[Sequence[int]]) -> list[list[int]]:
    """Groups that have a column in common as one."""
    found: list[set[int]] = []
    for group in map(set, groups):
        others = [one for one in found if not one & group]
        found = [*others, group.union(*(one for one in found if one & group))]
    return sorted(sorted(one) for one in found)


def _limited(total: Doubles, free: Sequence[int]) -> Doubles:
    """Least squares with coefficients that are not negative, but for the free ones."""
    from scipy.optimize import nnls

    gram, target = total[:-1, :-1], total[:-1, -1]
    scale = np.sqrt(np.maximum(np.diag(gram), np.finfo(float).tiny))
    values, vectors = np.linalg.eigh(gram / np.outer(scale, scale))
    known = values > _SINGULAR * max(float(values[-1]), np.finfo(float).tiny)
    root = np.sqrt(values[known])
    factor = root[:, None] * vectors[:, known].T
    right = vectors[:, known].T @ (target / scale) / root
    found, _ = nnls(np.hstack([factor, -factor[:, list(free)]]), right)
    count = gram.shape[0]
    for at, column in enumerate(free):
        found[column] -= found[count + at]
    return np.asarray(found[:count] / scale)


def _residual(total: Doubles, values: Doubles) -> float | None:
    gram, target, square = total[:-1, :-1], total[:-1, -1], float(total[-1, -1])
    if square <= 0:
        return None
    left = square - 2 * float(values @ target) + float(values @ gram @ values)
    return float(min(1.0, max(0.0, left / square)))


def _untold(covariance: Doubles) -> list[list[int]]:
    """Columns of which only the sum of the weights is known, together; others alone."""
    groups: list[list[int]] = []
    for column in range(covariance.shape[0]):
        for group in groups:
            a = group[0]
            own = covariance[a, a] + covariance[column, column]
            apart = own - 2 * covariance[a, column]
            both = own + 2 * covariance[a, column]
            if apart > _UNTOLD**2 and apart > _AS_SURE**2 * both:
                group.append(column)
                break
        else:
            groups.append([column])
    return groups
