"""Which merge gives these numbers? Recipes are proposed from sums and tried on a sample.

A recipe is only proposed where the mixture has its form, and only believed where it gives the
child's numbers bit by bit: a child that was trained after it was merged has the weights of a
merge, and none of its bits.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from math import gcd

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from kinprint.measure.merging import COLLINEAR, Precision, slerp_coefficients
from kinprint.measure.mixtures import Mixture, Products, mixture_of
from kinprint.measure.recipes import Facts, Recipe, Settings, agreeing
from kinprint.records import MergeMethod

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]

BELIEVED = 0.99
"""Numbers of a sample that a recipe must give bit by bit, of all and of those no parent has."""
_FEW = 1 << 14  # numbers that many recipes are tried on
_LIKELY = 0.9  # of few numbers
_HALF = 0.5  # of few: what the right recipe gives in a wrong order, in short formats too
_ORDERED = range(3, 6)  # parents that are put in every order
_NEAR = 0.9995  # of all numbers: what is farther off was changed afterwards
FEWEST = 100  # telling numbers, else nothing is said
SURE = 5.0  # standard errors
_FINE, COARSE = 2e-5, 4e-3  # of a weight: what rounding may move it by, and rounding to bfloat16
_UNEVEN = 3e-4  # by which weights of tensors of one recipe may differ
_ROUGH, _AROUND = 0.03, 1  # by which rounding of small changes moves weights, and in hundredths
_STEPS = 4  # of a format by which most numbers of a light tune differ from its base
_TWENTIETHS = tuple(round(0.05 * one, 2) for one in range(1, 20))
_VALUES = 3  # values that the tensors of a layer have under the filters that recipes use
_SCALES = (1.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.1, 1.2, 1.5, 2.0)  # usual lambdas
_SHORT = 4  # digits of a weight beside a lambda; longer ones are as well written without it


class Sampled(Struct, frozen=True):
    """Numbers of one tensor: of the child, of every source at the same places, and what is known.

    `layer` is None outside the layers.
    """

    child: Floats
    sources: tuple[Floats, ...]
    parents: Precision
    products: Products
    facts: Facts
    layer: int | None = None


class Score(Struct, frozen=True):
    """How many numbers a recipe gives: of all, and of those that no source has at that place.

    `near` are those that it gives or misses by a rounding step, `count` those that tell.
    """

    share: float
    telling: float
    near: float
    count: int

    @property
    def believed(self) -> bool:
        """Whether the recipe gives the child."""
        given = min(self.share, self.telling) >= BELIEVED and self.near >= _NEAR
        return given and self.count >= FEWEST


class Tried(Struct, frozen=True):
    """A recipe and how it did."""

    recipe: Recipe
    score: Score


def score(recipe: Recipe, samples: Sequence[Sampled], least: float = BELIEVED) -> Score:
    """Try a recipe on samples, each with its own settings; none if it gives less than `least`."""
    right = told = near = size = telling = 0
    allowed = (1 - least) * sum(one.child.size for one in samples)
    for one, settings in zip(samples, recipe.settings, strict=True):
        if size - right > allowed:
            return Score(0.0, 0.0, 0.0, 0)
        facts = _facts_for(recipe, settings, one)
        agree = agreeing(recipe, settings, facts, one.sources, one.child)
        novel = _telling(recipe, one)
        right, size = right + int(agree.equal.sum()), size + novel.size
        near += int(agree.near.sum())
        told, telling = told + int((agree.equal & novel).sum()), telling + int(novel.sum())
    return Score(right / max(size, 1), told / max(telling, 1), near / max(size, 1), telling)


def _telling(recipe: Recipe, one: Sampled) -> NDArray[np.bool_]:
    """Numbers that tell of a recipe: those that no source has.

    A trimmed task vector of weight one leaves none; there it tells which numbers it moved.
    """
    if recipe.method is MergeMethod.TIES and len(recipe.parents) == 1:
        assert recipe.base is not None
        return np.asarray(one.sources[recipe.parents[0]] != one.sources[recipe.base])
    return np.asarray(np.logical_and.reduce([one.child != source for source in one.sources]))


def _facts_for(recipe: Recipe, settings: Settings, one: Sampled) -> Facts:
    if recipe.method is not MergeMethod.SLERP:
        return one.facts
    return replace(one.facts, coefficients=path(one.products, recipe.parents, settings))


def path(products: Products, parents: tuple[int, ...], settings: Settings) -> tuple[float, float]:
    """What slerp multiplies its parents by: of the angle between them, or as measured.

    Tools sum the angle in float32, whose error the child of a long format shows; there the
    coefficients themselves are known better than any sum.
    """
    assert settings.t is not None
    first, second = parents
    expected = slerp_coefficients(settings.t, products.cosine(first, second))
    found = mixture_of(products.of(parents))
    sharp = all(
        SURE * error < abs(value - wanted) < _UNEVEN
        for value, error, wanted in zip(found.coefficients, found.spread, expected, strict=True)
    )
    return (found.coefficients[0], found.coefficients[1]) if sharp else expected


def best(recipes: Iterable[Recipe], samples: Sequence[Sampled]) -> list[Tried]:
    """Recipes that give the child and cannot be told apart by it, one a method, best first.

    Of recipes of one method that do equally well the shortest is taken.
    """
    proposed = list(dict.fromkeys(recipes))
    for numbers, most in ((_FEW, 24), (1 << 18, 6)):
        few = shortened(samples, numbers)
        tried = [Tried(recipe, score(recipe, few, _LIKELY)) for recipe in proposed]
        proposed = []
        for method in dict.fromkeys(one.recipe.method for one in tried):
            own = [one for one in tried if one.recipe.method is method]
            proposed += [
                one.recipe for one in sorted(own, key=rank)[:most] if one.score.share > _LIKELY
            ]
    tried = [Tried(recipe, score(recipe, samples)) for recipe in proposed]
    tried = [one for one in tried if one.score.believed]
    kept: dict[MergeMethod, Tried] = {}
    for one in sorted(tried, key=rank):
        if 1 - one.score.share <= 3 * (
            1 - tried[0].score.share if not kept else 1 - next(iter(kept.values())).score.share
        ):
            kept.setdefault(one.recipe.method, one)
    return list(kept.values())


def reordered(recipes: Iterable[Recipe], samples: Sequence[Sampled]) -> list[Recipe]:
    """The likeliest recipes of sums, with their parents in the orders that give most.

    Of three or more the order makes a difference, since sums are rounded on the way. There are so
    many that they are tried on the largest tensors alone.
    """
    places = _largest(samples, _FEW)
    few = shortened([samples[at] for at in places], _FEW)

    def likely(some: Iterable[Recipe], least: float, most: int) -> Iterator[Recipe]:
        found: dict[MergeMethod, list[Tried]] = {}
        for one in some:
            own = replace(one, settings=tuple(one.settings[at] for at in places))
            if (rated := score(own, few, least)).share > least:
                found.setdefault(one.method, []).append(Tried(one, rated))
        for tried in found.values():
            yield from (one.recipe for one in sorted(tried, key=rank)[:most])

    several = dict.fromkeys(one for one in recipes if len(one.parents) in _ORDERED)
    orders = (each for one in likely(several, _HALF, 8) for each in _in_every_order(one))
    return list(likely(orders, _LIKELY, 48))


def _largest(samples: Sequence[Sampled], numbers: int) -> list[int]:
    """Places of the largest tensors that have so many numbers together, or of all."""
    order = sorted(range(len(samples)), key=lambda at: -samples[at].child.size)
    before = itertools.accumulate((samples[at].child.size for at in order), initial=0)
    return [at for at, known in zip(order, before, strict=False) if known < numbers]


def _in_every_order(recipe: Recipe) -> Iterator[Recipe]:
    for order in itertools.permutations(range(len(recipe.parents))):
        moved = {
            one: replace(one, weights=tuple(one.weights[at] for at in order))
            for one in set(recipe.settings)
        }
        yield replace(
            recipe,
            parents=tuple(recipe.parents[at] for at in order),
            settings=tuple(moved[one] for one in recipe.settings),
        )


def rank(one: Tried) -> tuple[float, float, float]:
    """Where a recipe comes among others: the one that gives most, then the shortest, is first."""
    first = one.recipe.settings[0]
    return -one.score.share, first.digits + (one.recipe.scale != 1), abs(sum(first.weights) - 1)


def shortened(samples: Sequence[Sampled], numbers: int) -> list[Sampled]:
    """Fewer numbers of each tensor, for many tries."""
    step = max(1, sum(one.child.size for one in samples) // numbers)
    return [
        replace(
            one, child=one.child[::step], sources=tuple(source[::step] for source in one.sources)
        )
        if one.child.size > 4096
        else one
        for one in samples
    ]


def mixed(samples: Sequence[Sampled], parents: Sequence[int], base: int | None) -> Iterator[Recipe]:
    """Recipes under which each tensor is one sum of its parents, and of the base."""
    own = tuple(parents)
    values, errors = _coefficients(samples, own)
    relative = _sums_to_one(values, errors)
    for settings, loose in _settings(samples, values, errors, relative):
        yield from _linear(samples, own, settings, relative, loose)
    if len(own) == 2:
        yield from _slerp(samples, (own[0], own[1]), values, errors)
    sources = own if base is None else (*own, base)
    if len(sources) == 2 and _light(samples, sources):
        for weight in _TWENTIETHS:
            pair = (Settings((weight, round(1 - weight, 2))),) * len(samples)
            yield from _linear(samples, sources, pair, True, False)
    if base is None:
        return
    if relative:
        yield from _task_arithmetic(samples, own, base, values, errors)
    values, errors = _coefficients(samples, sources)
    if _sums_to_one(values, errors):
        yield from _task_arithmetic(samples, own, base, values, errors)
        for settings, loose in _settings(samples, values, errors, True):
            yield from _linear(samples, sources, settings, True, loose)


def _light(samples: Sequence[Sampled], sources: Sequence[int]) -> bool:
    """Whether two sources differ by few steps of the child's format: rounding hides weights."""
    largest = max(samples, key=lambda one: one.child.size)
    digits = {Precision.BFLOAT16: 8, Precision.FLOAT16: 11}.get(largest.facts.stored)
    if digits is None:
        return False
    first, second = (largest.sources[at] for at in sources)
    apart = np.abs(first - second) > _STEPS * 2.0**-digits * np.abs(first)
    return bool(apart.mean() < 0.5)


def any_mixture(samples: Sequence[Sampled], sources: Sequence[int]) -> Recipe:
    """The nearest sum of sources in every tensor, whatever its weights."""
    values, _ = _coefficients(samples, sources)
    settings = tuple(Settings(tuple(row)) for row in values.tolist())
    return Recipe(MergeMethod.LINEAR, tuple(sources), settings, Precision.FLOAT32)


def _task_arithmetic(
    samples: Sequence[Sampled],
    parents: tuple[int, ...],
    base: int,
    values: Doubles,
    errors: Doubles,
) -> Iterator[Recipe]:
    count = len(parents)
    for scale in _SCALES:
        own = values[:, :count] / scale, errors[:, :count] / scale
        for settings, _ in _settings(samples, *own, False, exactly=scale != 1):
            if scale != 1 and settings[0].digits > _SHORT * count:
                continue
            for precision in precisions(samples):
                yield Recipe(
                    MergeMethod.TASK_ARITHMETIC, parents, settings, precision, base, scale=scale
                )  # fmt: skip


def _sums_to_one(values: Doubles, errors: Doubles) -> bool:
    return abs(float(_pooled(values, errors).sum()) - 1) <= _ROUGH


def _coefficients(samples: Sequence[Sampled], columns: Sequence[int]) -> tuple[Doubles, Doubles]:
    """Coefficients and their errors by tensor; where they cannot be told apart, those of others."""
    found: list[Mixture] = [mixture_of(one.products.of(columns)) for one in samples]
    values = np.array([one.coefficients for one in found])
    errors = np.array([one.spread for one in found])
    told = np.array([len(one.weights) == len(columns) for one in found])
    if told.any() and not told.all():
        values[~told] = _pooled(values[told], errors[told])
        errors[~told] = 1.0
    return values, errors


def _pooled(values: Doubles, errors: Doubles) -> Doubles:
    weight = 1 / (errors**2 + 1e-10)
    return np.asarray((values * weight).sum(axis=0) / weight.sum(axis=0))


def _settings(
    samples: Sequence[Sampled],
    values: Doubles,
    errors: Doubles,
    relative: bool,
    *,
    exactly: bool = False,
) -> Iterator[tuple[tuple[Settings, ...], bool]]:
    """Weights as a recipe may have them: the same for all tensors, else by layer and filter.

    `relative` weights may be multiplied by anything; `exactly` those are wanted that were
    measured. The flag says that weights were taken for rounded ones, which calculations in short
    formats use.
    """
    pooled = _pooled(values, errors)
    # Where changes are a step or two, rounding is no noise: measured weights are off.
    for weights in () if exactly else rough_weights(pooled, relative):
        for loose in (False, True):
            yield (Settings(weights),) * len(samples), loose
    if bool((np.abs(values - pooled) <= SURE * errors + _UNEVEN).all()):
        deviation = 1 / np.sqrt((1 / (errors**2 + 1e-10)).sum(axis=0))
        for weights, loose in simple_weights(pooled, deviation, relative):
            yield (Settings(weights),) * len(samples), loose
        return
    if not _regular(samples, values, errors):
        return
    for fine, loose in ((_FINE, False), (_UNEVEN, False), (_FINE, True)):
        yield _by_tensor(samples, values, errors, fine, loose), loose


def simple_weights(
    values: Doubles, errors: Doubles, relative: bool
) -> Iterator[tuple[tuple[float, ...], bool]]:
    """Weights with few digits that are near enough to measured ones, simplest first."""
    seen = set()
    for loose in (False, True):
        reach = SURE * errors + _FINE + (COARSE * np.abs(values) if loose else 0)
        for digits in range(1, 7):
            short = np.round(values, digits)
            if bool((np.abs(short - values) <= reach).all()):
                seen.add(tuple(short.tolist()))
                yield tuple(short.tolist()), loose
                if digits > 3 or not loose:
                    break
    yield tuple(np.round(values, 8).tolist()), False
    if not relative or values.min() <= 0:
        return
    for whole in range(2, 21):
        ratio = values / values.sum() * whole
        near = np.round(ratio)
        if bool((np.abs(near - ratio) <= (SURE * errors + _FINE) * whole).all()) and near.min() > 0:
            yield tuple((near / gcd(*near.astype(int).tolist())).tolist()), False
            break
    for largest in np.arange(0.05, 1.05, 0.05):
        scaled = np.round(values / values.max() * largest, 2)
        ratio = scaled / max(scaled.sum(), 1e-9) * values.sum()
        if bool((np.abs(ratio - values) <= SURE * errors + COARSE).all()):
            yield tuple(scaled.tolist()), True


def rough_weights(values: Doubles, relative: bool) -> Iterator[tuple[float, ...]]:
    """Weights of two digits about measured ones."""
    near = np.round(values, 2)
    shifts = [one / 100 for one in range(-_AROUND, _AROUND + 1)]
    free = len(values) - 1 if relative else len(values)
    for moved in itertools.product(shifts, repeat=min(free, 2)):
        found = near.copy()
        found[: len(moved)] += moved
        if relative:
            found[-1] = 1 - found[:-1].sum()
        yield tuple((np.round(found, 2) + 0.0).tolist())


def _by_tensor(
    samples: Sequence[Sampled], values: Doubles, errors: Doubles, fine: float, loose: bool
) -> tuple[Settings, ...]:
    """Weights of each tensor; those of which less is known have what others of the layer have, or
    others elsewhere.

    Rounding errors do not all come from chance: `fine` is what they may have moved a weight by
    beside its standard errors.
    """
    found: dict[int, tuple[float, ...]] = {}
    for at in sorted(range(len(samples)), key=lambda at: float(errors[at].max())):
        beside = [found[to] for to in found if samples[to].layer == samples[at].layer]
        reach = SURE * float(errors[at].max()) + fine
        for known in (beside, set(found.values())):
            apart = {one: float(np.abs(values[at] - one).max()) for one in known}
            if apart and min(apart.values()) <= reach:
                found[at] = min(apart, key=lambda one: (apart[one], one))
                break
        else:
            found[at] = _nearest(values[at], errors[at], fine, loose)
    return tuple(Settings(found[at]) for at in range(len(samples)))


def _nearest(values: Doubles, errors: Doubles, fine: float, loose: bool) -> tuple[float, ...]:
    reach = np.minimum(SURE * errors, 0.02) + fine + (COARSE * np.abs(values) if loose else 0)
    for digits in range(1, 6):
        short = np.round(values, digits)
        if bool((np.abs(short - values) <= reach).all()):
            return tuple((short + 0.0).tolist())  # a zero without a sign
    return tuple(np.round(values, 7).tolist())


def _regular(samples: Sequence[Sampled], values: Doubles, errors: Doubles) -> bool:
    """Whether tensors of one layer share weights, as they do under a recipe with filters."""
    layers: dict[int, list[int]] = {}
    for at, one in enumerate(samples):
        if one.layer is not None:
            layers.setdefault(one.layer, []).append(at)
    for members in layers.values():
        groups: list[int] = []
        for at in sorted(members, key=lambda at: float(errors[at].max())):
            if not any(
                bool(
                    (
                        np.abs(values[at] - values[to])
                        <= SURE * (errors[at] + errors[to]) + _UNEVEN
                    ).all()
                )
                for to in groups
            ):
                groups.append(at)
        if len(groups) > _VALUES and len(groups) > len(members) // 3:
            return False
    return bool(layers)


def precisions(samples: Sequence[Sampled]) -> list[Precision]:
    """Number formats a calculation may have had: of the child, of the parents, the longest."""
    largest = max(samples, key=lambda one: one.products.size)
    return list(dict.fromkeys((largest.facts.stored, Precision.FLOAT32, largest.parents)))


def _linear(
    samples: Sequence[Sampled],
    parents: tuple[int, ...],
    settings: tuple[Settings, ...],
    normalize: bool,
    loose: bool,
) -> Iterator[Recipe]:
    if any(min(one.weights) < 0 for one in settings):
        return
    for precision in precisions(samples):
        for fused in (True, False):
            if loose and (fused or precision is Precision.FLOAT32):
                continue
            yield Recipe(
                MergeMethod.LINEAR, parents, settings, precision, normalize=normalize, fused=fused
            )  # fmt: skip


def _slerp(
    samples: Sequence[Sampled], parents: tuple[int, int], values: Doubles, errors: Doubles
) -> Iterator[Recipe]:
    cosines = np.array([one.products.cosine(*parents) for one in samples])
    ways = np.array(
        [_way(row[0], row[1], cosine) for row, cosine in zip(values, cosines, strict=True)]
    )
    expected = np.array(
        [slerp_coefficients(t, cosine) for t, cosine in zip(ways, cosines, strict=True)]
    )
    if bool((np.abs(expected - values) > SURE * errors + _UNEVEN).any()):
        return
    spread = errors.max(axis=1, keepdims=True)
    for settings, _ in _settings(samples, ways[:, None], spread, False):
        paths = tuple(Settings(t=one.weights[0] + 0.0) for one in settings)
        for precision in precisions(samples)[:2]:
            yield Recipe(MergeMethod.SLERP, parents, paths, precision, parents[0])


def _way(first: float, second: float, cosine: float) -> float:
    """How far along the way from one tensor to another their mixture is."""
    if abs(cosine) > COLLINEAR:
        return second
    angle = float(np.arccos(np.clip(cosine, -1, 1)))
    return float(np.arctan2(second * np.sin(angle), first + second * cosine)) / angle
