"""How far a model is from others and from mixtures of them, by numbers that lie at equal places.

Distances, the nearest weighted sum, and sums in which each number is taken from one or the other.
What follows from them is said elsewhere.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from kinprint.lineage.parts.taken_over import MATRICES
from kinprint.lineage.parts.tensors import tensors_of
from kinprint.lineage.reading.sample import Floats, Indices, Sample

_CLEARLY = 3.0  # standard deviations
_PRESENT = 0.9  # of a model's numbers that another must have at the same places
# Of a merge that drops or trims changes: the least share of numbers that are the base's, scattered
# half as much as by chance; changes that storage has not rounded much, as shares of the number, and
# the least count of them; of these the share that has one ratio, by times of what ratios nearby
# have; and the square of the distance to a parent, as a share of that to the base. Ratios are
# counted in steps of 2 %. In TIES and DARE merges of the zoo 0.34 and more have one ratio, ten
# times what lies nearby; of others at most 0.14, twice that.
_LEFT_ALONE, _SCATTERED, _SHOWN, _ENOUGH = 0.02, 0.5, 2.0**-5, 2000
_ONE_RATIO, _SHARPLY, _APART = 0.1, 5.0, 0.1
_RATIOS = np.exp(np.arange(-150, 151) * 0.02)
_ROWS, _NUMBERS = 32, 2**18  # rows of a tensor, and numbers in all, that mixtures are fitted to

Tensor = tuple[Indices, Floats]
Part = tuple[object, ...]


class Fit:
    """A model's numbers beside those of others, column by column.

    Others that lack many of the model's places are not in it; places that one of the rest lacks are
    left out. `strange` are of each other model the parts (component, layer, expert) of the model
    that nothing links with it.
    """

    def __init__(
        self, model: Sample, others: Sequence[Sample], strange: Sequence[Collection[Part]]
    ) -> None:
        own = _numbers(model)
        target = _aligned(own, own)
        step = max(len(target) // _NUMBERS, 1)
        columns = {at: _aligned(own, _numbers(other))[::step] for at, other in enumerate(others)}
        present = {
            at: one
            for at, one in columns.items()
            if one.size and np.isfinite(one).mean() >= _PRESENT
        }
        table = np.stack([*present.values(), target[::step]], axis=1)
        whole = np.isfinite(table).all(axis=1)
        table = table[whole]
        sizes = [rows.size for _, rows in own.values()]
        self._parts = [place[:3] for place in own]
        self._part = np.repeat(np.arange(len(own)), sizes)[::step][whole]
        self._strange = strange
        self._table, self._products = table, table.T @ table
        self._place = {at: number for number, at in enumerate(present)}

    def __contains__(self, one: int) -> bool:
        return one in self._place

    def behind(self, far: int, near: int, cosine: float) -> bool:
        """Whether of two others one is farther from the model, and by so much that the cosine
        between the ways from the near one to the model and to the far one does not explain it.

        Let u lead from the near one to the model, v to the far one: |u - v|^2 - |u|^2 =
        |v|^2 - 2 u.v. The model is as far from both where the cosine of u and v is |v| / 2|u|:
        where v is short, chance and habits of training reach that. Parts that one of them does not
        have in common with the model count in neither: zeros are nearer to anything than numbers.
        """
        if far not in self or near not in self:
            return False
        target, one, other = -1, self._place[far], self._place[near]
        table = self._table[self._shared(far, near)]
        way, apart = (table[:, at] - table[:, other] for at in (target, one))
        own, between = way @ way, apart @ apart
        excess = between - 2.0 * way @ apart
        return bool(excess > 2.0 * cosine * np.sqrt(own * between))

    def _shared(self, *others: int) -> NDArray[np.bool_]:
        """Of all places those in parts that the model has in common with all of some others."""
        strange = {part for at in others for part in self._strange[at]}
        return np.array([part not in strange for part in self._parts], bool)[self._part]

    def made_from_copy(self, one: int | None, original: int | None, copy: int) -> bool:
        """Whether one of the models (None is the model itself) is nearer to a rounded copy of an
        original than to that, and by more than rounding explains.

        Let u lead from the original to the one, and e, the rounding errors, to the copy: |u|^2 -
        |u - e|^2 = 2 u.e - |e|^2. Errors have the signs of fair coins, so that this is -|e|^2 for
        what was made from the original, and +|e|^2 for what was made from the copy, give or take
        2 sqrt(sum u^2 e^2).
        """
        if not all(at is None or at in self for at in (one, original, copy)):
            return False
        own, start, end = (
            self._table[:, -1 if at is None else self._place[at]] for at in (one, original, copy)
        )
        way, errors = own - start, end - start
        by_chance = 2.0 * np.sqrt(np.square(way * errors).sum())
        return bool(errors @ (2.0 * way - errors) > _CLEARLY * by_chance)

    def sum_of_parts(self, candidates: Collection[int]) -> list[int]:
        """Others of which the model has numbers here and there, the one that it has most of first:
        one that it leaves alone most often, and at least two from whose way to that one it has
        one share in many places. None where there are no such two."""
        others = {at: self._table[:, self._place[at]] for at in candidates if at in self}
        model = self._table[:, -1]
        kept = {at: model == one for at, one in others.items()}
        base = max(kept, key=lambda at: np.count_nonzero(kept[at]), default=None)
        if base is None or not _is_scattered(kept[base]):
            return []
        least = _APART * self._square(self._place[base], -1)
        change = model - others[base]
        found = [
            at
            for at, one in others.items()
            if at != base
            and self._square(self._place[at], -1) >= least
            and _has_one_ratio(change, one - others[base], others[base])
        ]
        most = sorted([base, *found], key=lambda at: -np.count_nonzero(kept[at]))
        return most if len(found) > 1 else []

    def _square(self, one: int, other: int) -> float:
        """The square of the distance between two columns."""
        products = self._products
        found = products[one, one] + products[other, other] - 2.0 * products[one, other]
        return max(float(found), 0.0)

    def weights(self, chosen: Sequence[int], of: int | None = None) -> list[float]:
        """The weights of the mixture of some columns that is nearest to the model, or to another
        column."""
        at, to = [self._place[one] for one in chosen], -1 if of is None else self._place[of]
        solved = np.linalg.lstsq(self._products[np.ix_(at, at)], self._products[at, to], rcond=None)
        return [float(one) for one in solved[0]]

    @cached_property
    def rounding(self) -> float:
        """The share of the target's square that storing it in few digits adds to any distance."""
        target, square = self._table[:, -1], self._products[-1, -1]
        with np.errstate(over="ignore"):
            shorts = (target.astype(kind) for kind in (ml_dtypes.bfloat16, np.float16, np.float32))
            stored = next(one for one in shorts if np.array_equal(one.astype(np.float64), target))
            steps = np.spacing(np.abs(stored)).astype(np.float64)
        return float(np.square(steps).sum() / 12.0 / square) if square > 0 else 0.0

    def left(self, chosen: Sequence[int]) -> float:
        """The share of the target's square that neither the nearest mixture explains nor that the
        mixture was rounded."""
        at = [self._place[one] for one in chosen]
        square = self._products[-1, -1]
        explained = float(np.dot(self.weights(chosen), self._products[at, -1]))
        return max(1.0 - explained / square - self.rounding, 0.0) if square > 0 else 1.0


def _is_scattered(kept: NDArray[np.bool_]) -> bool:
    """Whether some numbers were left alone here and there, and not whole tensors."""
    share = kept.mean() if len(kept) else 0.0
    turns = np.mean(kept[1:] != kept[:-1]) if share > 0 else 0.0
    return bool(share >= _LEFT_ALONE and turns >= _SCATTERED * 2 * share * (1 - share))


def _has_one_ratio(
    part: NDArray[np.float64], whole: NDArray[np.float64], size: NDArray[np.float64]
) -> bool:
    """Whether many changes are one multiple of others, which stands out."""
    shown = _SHOWN * np.abs(size)
    large = (np.abs(part) > shown) & (np.abs(whole) > shown)
    count = int(np.count_nonzero(large))
    if count < _ENOUGH:
        return False
    found, _ = np.histogram(part[large] / whole[large], _RATIOS)
    at = int(found.argmax())
    share = found[max(at - 1, 0) : at + 2].sum() / count
    nearby = 3 * np.median(found[max(at - 12, 0) : at + 13]) / count
    return bool(share >= max(_ONE_RATIO, _SHARPLY * nearby))


def _numbers(sample: Sample) -> dict[tuple[object, ...], Tensor]:
    """Some rows of the matrices of a tower, with their numbers, by layer and name."""
    found: dict[tuple[object, ...], Tensor] = {}
    for part in sample.parts:
        if part.component in MATRICES:
            for (name, inputs), (index, rows) in tensors_of(sample, part).items():
                if rows.ndim == 2 and np.isfinite(rows[:_ROWS]).all():
                    place = part.component, part.layer, part.expert, name, inputs
                    found[place] = index[:_ROWS], rows[:_ROWS]
    return found


def _aligned(
    own: Mapping[tuple[object, ...], Tensor], theirs: Mapping[tuple[object, ...], Tensor]
) -> NDArray[np.float64]:
    """Numbers of another model at the places of a model's own; NaN where it has none there."""
    columns = []
    for place, (index, rows) in own.items():
        numbers, values = theirs.get(place, (index[:0], rows[:0]))
        same = np.array_equal(numbers, index) and values.shape == rows.shape
        columns.append(values.reshape(-1) if same else np.full(rows.size, np.nan))
    return np.concatenate(columns or [np.empty(0)]).astype(np.float64)
