"""Which numbers of task vectors does a child have? Recipes of TIES and DARE, from a sample.

Trimming keeps the largest numbers of a task vector: a number that stayed as the base has it tells
that all its vectors are below their limits. Dropping at random leaves each number one of the sums
of some of the vectors, whatever their magnitudes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from kinprint.measure.masks import choices, subset_sums, usual_ratio
from kinprint.measure.merge_fitting import (
    BELIEVED,
    COARSE,
    FEWEST,
    SURE,
    Sampled,
    precisions,
    shortened,
    simple_weights,
)
from kinprint.measure.merging import Precision, add_task_vectors, rounded, task_vectors
from kinprint.measure.recipes import Recipe, Settings, scaling_format, steps
from kinprint.records import MergeMethod

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
Mask = NDArray[np.bool_]

_ALL = 0.98  # of a task vector: nothing was dropped
_MISSED = 2.0  # rounding steps by which sums of kept numbers miss at most, as a rule
_OFF = 0.02  # by which a short weight or density may differ from what was measured
_FLAT = 0.05  # by which keeping at random may seem to depend on magnitude


class _Elements(Struct, frozen=True):
    """Numbers of all samples in a row: what was added to the base, and the task vectors."""

    added: Floats
    vectors: tuple[Floats, ...]
    step: Floats
    tensor: NDArray[np.int64]
    ranks: tuple[Doubles, ...]
    sharp: tuple[Mask, ...]


def _elements(samples: Sequence[Sampled], parents: Sequence[int], base: int) -> _Elements:
    added, step, tensor = [], [], []
    vectors: list[list[Floats]] = [[] for _ in parents]
    ranks: list[list[Doubles]] = [[] for _ in parents]
    sharp: list[list[Mask]] = [[] for _ in parents]
    for number, one in enumerate(samples):
        under = one.sources[base]
        own = task_vectors(under, [one.sources[at] for at in parents], Precision.FLOAT32)
        added.append(one.child - under)
        # The widest step that any choice of vectors may lead to: it tells nothing of the choice.
        widest = np.abs(under) + np.sum([np.abs(vector) for vector in own], axis=0)
        step.append(steps(2 * widest, one.facts.stored))
        tensor.append(np.full(one.child.size, number))
        for at, vector in enumerate(own):
            low, high = one.facts.magnitudes[Precision.FLOAT32][at].ranks(vector)
            size = one.facts.magnitudes[Precision.FLOAT32][at].size
            vectors[at].append(vector)
            ranks[at].append((low + high + 1) / (2 * size))
            sharp[at].append((high - low) < 0.02 * size)
    return _Elements(
        np.concatenate(added),
        tuple(np.concatenate(one) for one in vectors),
        np.concatenate(step),
        np.concatenate(tensor),
        tuple(np.concatenate(one) for one in ranks),
        tuple(np.concatenate(one) for one in sharp),
    )


def trimmed_sums(samples: Sequence[Sampled], parents: Sequence[int], base: int) -> Iterator[Recipe]:
    """Recipes that keep the largest numbers of task vectors, and of these one sign."""
    found = _elements(shortened(samples, 1 << 19), parents, base)
    densities = [_density(found, at) for at in range(len(parents))]
    for rounding in (2, 3):
        short = tuple(min(1.0, round(one, rounding)) for one in densities)
        if short == (1.0,):  # all of one task vector is a plain sum
            continue
        for weights, normalize, scale in _consensus_weights(found, short):
            for precision in precisions(samples):
                yield Recipe(
                    MergeMethod.TIES, tuple(parents), (Settings(weights, short),) * len(samples),
                    precision, base, normalize, scale,
                )  # fmt: skip


def _density(found: _Elements, at: int) -> float:
    """The share of a task vector that was kept: numbers that stayed as they were have low ranks."""
    clear = (np.abs(found.vectors[at]) > 4 * found.step) & found.sharp[at]
    ranks = np.sort(found.ranks[at][clear & (found.added == 0)])
    if ranks.size < FEWEST:
        return 1.0
    cut = ranks.size // 500
    return float(ranks[cut] - (1 - ranks[cut]) * cut / ranks.size)


def _consensus_weights(
    found: _Elements, densities: Sequence[float]
) -> Iterator[tuple[tuple[float, ...], bool, float]]:
    """Weights, whether they are normalised, and lambda, from numbers whose signs agree."""
    count = len(densities)
    kept = [rank < density for rank, density in zip(found.ranks, densities, strict=True)]
    edge = np.logical_or.reduce(
        [
            np.abs(rank - density) < 0.01
            for rank, density in zip(found.ranks, densities, strict=True)
        ]
    ) & (np.array(densities).min() < 1)
    signs = [np.sign(vector) * mask for vector, mask in zip(found.vectors, kept, strict=True)]
    one_sign = np.abs(np.sum(signs, axis=0)) == np.sum([np.abs(sign) for sign in signs], axis=0)
    usable = one_sign & ~edge & np.logical_and.reduce(found.sharp)
    alone = []
    for at in range(count):
        rest = [kept[to] for to in range(count) if to != at]
        free = ~np.logical_or.reduce(rest) if rest else True
        fit = _fit(found, usable & kept[at] & free, (at,))
        alone.append(None if fit is None else fit[0])
    known = [one for one in alone if one is not None]
    everywhere = usable & np.logical_or.reduce(kept)
    fit = _fit(found, everywhere, tuple(range(count)), kept)
    if fit is not None:
        values, errors = fit
        for weights, _ in simple_weights(values, errors, False):
            yield weights, False, 1.0
    pairs = _fit(found, usable & np.logical_and.reduce(kept), tuple(range(count)))
    if pairs is None:
        return
    values, errors = pairs
    total = float(np.mean(known)) if known else float(values.sum())
    for scale in dict.fromkeys(round(total, digits) for digits in (1, 2, 3)):
        if abs(scale - total) <= COARSE * total and scale > 0:
            for weights, _ in simple_weights(values / values.sum(), errors / values.sum(), True):
                yield weights, True, scale


def _fit(
    found: _Elements,
    where: Mask,
    columns: Sequence[int],
    kept: Sequence[Mask] | None = None,
) -> tuple[Doubles, Doubles] | None:
    """Least squares of what was added on task vectors, and the errors that rounding leaves."""
    if int(where.sum()) < FEWEST:
        return None
    table = np.stack(
        [found.vectors[at][where] * (1 if kept is None else kept[at][where]) for at in columns]
    ).astype(np.float64)
    gram = table @ table.T
    if np.linalg.cond(gram) > 1e10:
        return None
    values = np.asarray(
        np.linalg.solve(gram, table @ found.added[where].astype(np.float64)), np.float64
    )
    left = found.added[where] - values @ table
    if float(np.median(np.abs(left) / found.step[where])) > _MISSED:
        return None
    # Most numbers are right; a few that are not must not make the rest look uncertain.
    typical = float(np.median(np.abs(left))) * 1.5
    return values, np.sqrt(np.diag(np.linalg.inv(gram))) * max(typical, 1e-9)


class Dropped(Struct, frozen=True):
    """A child of which each number has some of the task vectors, and which of them is at random.

    Attributes
    ----------
    factors : by tensor and parent, what a kept number was multiplied by.
    densities : the share of each task vector that was kept.
    share : numbers that are one of the sums, of those where the sums differ clearly.
    count : how many these are.
    slope : by how much keeping depends on the rank of the magnitude, the most over parents.
    both : how often two vectors of unlike signs were both kept, over what chance would do.
    """

    factors: Doubles
    densities: tuple[float, ...]
    share: float
    count: int
    slope: float
    both: float | None

    @property
    def believed(self) -> bool:
        """Whether numbers are made of kept and dropped ones, by whatever rule."""
        some = min(self.densities) < _ALL
        return some and self.share >= BELIEVED and self.count >= 10 * FEWEST

    @property
    def at_random(self) -> bool:
        """Whether what was dropped depends on nothing, and signs decide always or never."""
        fair = self.both is None or self.both < 0.1 or 0.9 < self.both < 1.1
        return self.slope < _FLAT and fair


def dropped_sums(samples: Sequence[Sampled], parents: Sequence[int], base: int) -> Dropped | None:
    """Look for sums of task vectors, each kept or dropped number by number."""
    found = _elements(samples, parents, base)
    count = len(parents)
    usual = []
    for at in range(count):
        clear = np.abs(found.vectors[at]) > 8 * found.step
        ratio = usual_ratio(found.added[clear], found.vectors[at][clear])
        if ratio is None:
            return None
        usual.append(ratio)
    factors = np.tile(np.array(usual), (len(samples), 1))
    chosen, eligible, near = _classified(found, factors)
    for _ in range(2):
        factors = _refined(found, factors, chosen, eligible & near)
        chosen, eligible, near = _classified(found, factors)
    if not eligible.any():
        return None
    like = [np.sign(vector) for vector in found.vectors]
    agree = np.logical_and.reduce([sign == like[0] for sign in like])
    use = eligible & near
    densities = tuple(
        float(one[use & agree].mean()) if (use & agree).any() else 1.0 for one in chosen
    )
    slope = max(
        _slope(found.ranks[at][use & agree], chosen[at][use & agree]) for at in range(count)
    )
    both = None
    if count > 1:
        unlike = use & (like[0] == -like[1])
        expected = densities[0] * densities[1]
        if unlike.sum() >= FEWEST and expected > 0:
            both = float((chosen[0] & chosen[1])[unlike].mean()) / expected
    return Dropped(
        factors, densities, float(near[eligible].mean()), int(eligible.sum()), slope, both
    )


def random_sums(
    samples: Sequence[Sampled], parents: Sequence[int], base: int, found: Dropped
) -> Iterator[Recipe]:
    """Recipes that keep numbers at random; without rescaling first, which has fewer settings."""
    one_sign = found.both is not None and found.both < 0.5
    method = MergeMethod.DARE_TIES if one_sign else MergeMethod.DARE_LINEAR
    usual = np.median(found.factors, axis=0)
    exact = np.array(found.densities)
    for rescale, units in ((False, (0.05, 0.01, 0.001, 0.0001)), (True, (0.05, 0.01))):
        weights = usual * exact if rescale else usual
        for unit in units:
            short = np.round(np.round(weights / unit) * unit, 4)
            step = max(unit, 0.01)
            densities = np.round(np.round(exact / step) * step, 4)
            if bool(
                (np.abs(short - weights) > _OFF).any() or (np.abs(densities - exact) > _OFF).any()
            ):
                continue
            settings = Settings(tuple(short.tolist()), tuple(densities.tolist()))
            for precision in precisions(samples):
                yield Recipe(
                    method, tuple(parents), (settings,) * len(samples), precision, base,
                    rescale=rescale,
                )  # fmt: skip


def with_scales(recipe: Recipe, samples: Sequence[Sampled], factors: Doubles) -> list[Sampled]:
    """Samples that know what the kept numbers of each vector were multiplied by before its weight.

    The sum of what was kept is not known to the last bit, for some numbers are as near to one sum
    as to another; the numbers that have one vector alone tell the factor itself.
    """
    return [
        replace(one, facts=replace(one.facts, scales=_scales(recipe, settings, one, own)))
        for one, settings, own in zip(samples, recipe.settings, factors.tolist(), strict=True)
    ]


def _scales(
    recipe: Recipe, settings: Settings, one: Sampled, factors: Sequence[float]
) -> tuple[float, ...]:
    assert recipe.base is not None
    under = one.sources[recipe.base]
    vectors = task_vectors(under, [one.sources[at] for at in recipe.parents], recipe.precision)
    nearest = np.abs(subset_sums(vectors, factors) - (one.child - under)).argmin(axis=0)
    options = list(choices(len(vectors)))
    work = scaling_format(recipe.precision)
    found = []
    for at, vector in enumerate(vectors):
        alone = nearest == options.index(tuple(to == at for to in range(len(vectors))))
        alone &= np.abs(vector) > 2 * steps(one.child, one.facts.stored)
        weight = (settings.weights[at],)
        factor = _likely_factor(one.child[alone], under[alone], vector[alone], one.facts.stored)
        scale = (factors[at] if factor is None else factor) / settings.weights[at]
        best, most = scale, -1
        for candidate in _neighbours(scale, work):
            scaled = rounded(rounded(vector[alone] * np.float32(candidate), work), recipe.precision)
            merged = add_task_vectors(under[alone], [scaled], weight, recipe.precision)
            right = int((rounded(merged, one.facts.stored) == one.child[alone]).sum())
            if right > most:
                best, most = candidate, right
        found.append(best)
    return tuple(found)


def _likely_factor(child: Floats, base: Floats, vector: Floats, stored: Precision) -> float | None:
    """The factor that agrees with most numbers: each allows those that round to the child."""
    if not child.size:
        return None
    reach = 0.5 * steps(child, stored).astype(np.float64)
    added = child.astype(np.float64) - base
    ends = np.sort(np.stack([(added - reach) / vector, (added + reach) / vector]), axis=0)
    places = np.concatenate([ends[0], ends[1]])
    changes = np.concatenate([np.ones(child.size), -np.ones(child.size)])
    order = np.argsort(places, kind="stable")
    at = int(np.argmax(np.cumsum(changes[order])))
    return float(places[order[at]] + places[order[min(at + 1, order.size - 1)]]) / 2


def _neighbours(value: float, precision: Precision) -> list[float]:
    """A number in a format, and the nearest ones on both sides."""
    centre = float(rounded(np.array(value, np.float32), precision))
    step = float(steps(np.array([centre], np.float32), precision)[0])
    return [centre + count * step for count in (0, -1, 1, -2, 2, -3, 3)]


def _classified(found: _Elements, factors: Doubles) -> tuple[list[Mask], Mask, Mask]:
    """Which vectors each number has, whether its sums differ clearly, and whether it is one."""
    count = factors.shape[1]
    scaled = [factors[found.tensor, at] * vector for at, vector in enumerate(found.vectors)]
    sums = subset_sums([np.asarray(one, np.float32) for one in scaled], [1.0] * count)
    apart = np.abs(sums - found.added)
    nearest = apart.argmin(axis=0)
    options = np.array(list(choices(count)))
    chosen = [options[nearest, at] for at in range(count)]
    gaps = np.diff(np.sort(sums, axis=0), axis=0).min(axis=0)
    largest = np.max(np.abs(np.stack(scaled)), axis=0)
    # A calculation in a short format rounds three times; factors are known to some percent.
    reach = 2 * found.step + 0.02 * largest
    eligible = gaps > 4 * reach
    return chosen, eligible, np.asarray(apart.min(axis=0) <= reach)


def _refined(
    found: _Elements,
    factors: Doubles,
    chosen: Sequence[Mask],
    use: Mask,
) -> Doubles:
    """Factors of each tensor from the numbers that have one vector alone; others stay."""
    better = factors.copy()
    for at in range(factors.shape[1]):
        others = [one for to, one in enumerate(chosen) if to != at]
        alone = use & chosen[at] & ~np.logical_or.reduce([*others, np.zeros(use.shape, bool)])
        vector = found.vectors[at].astype(np.float64) * alone
        squares = np.bincount(found.tensor, vector * vector, len(factors))
        products = np.bincount(found.tensor, vector * found.added, len(factors))
        enough = np.bincount(found.tensor[alone], minlength=len(factors)) >= FEWEST
        better[enough, at] = products[enough] / squares[enough]
        if enough.any():
            better[~enough, at] = np.median(better[enough, at])
    return better


def _slope(ranks: Doubles, kept: Mask) -> float:
    """How much the chance to be kept changes from the largest number to the smallest, for sure."""
    spread = float(ranks.std()) if ranks.size else 0.0
    if kept.size < FEWEST or spread == 0:
        return 0.0
    slope = abs(float(np.polyfit(ranks, kept.astype(float), 1)[0]))
    return max(0.0, slope - SURE * float(kept.std()) / spread / float(np.sqrt(kept.size)))
