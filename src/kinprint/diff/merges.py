"""Given a child and the models it may be merged from: which merge made it?

Tensors are streamed. A first pass sums products, from which the weights of the nearest mixture and
their intervals come, and keeps a sample. Recipes are proposed from these and tried on the sample;
the one that is believed is carried out on every number, and the share that it gives bit by bit is
its proof. TIES and DARE need what whole task vectors hold: then tensors are streamed once more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kinprint import text
from kinprint.diff.merge_family import Family
from kinprint.diff.merge_recipe import passthrough_yaml, recipe_yaml
from kinprint.diff.merge_records import GroupFinding, TensorFinding, Unmerging
from kinprint.diff.merge_tensors import Tensor, precision_of, stored_blocks, tensor_blocks
from kinprint.diff.passthrough import Passed, may_be_slices, passed_through
from kinprint.errors import KinprintError
from kinprint.lineage.reading.parts import component_of
from kinprint.measure.dropping import dropped_sums, random_sums, trimmed_sums, with_scales
from kinprint.measure.masks import MagnitudeCounts, Magnitudes
from kinprint.measure.merge_fitting import (
    BELIEVED,
    SURE,
    Sampled,
    any_mixture,
    best,
    mixed,
    path,
    precisions,
    rank,
    reordered,
    score,
)
from kinprint.measure.merging import Precision, rounded, task_vectors
from kinprint.measure.mixtures import Mixture, Products, dependent_columns, mixture_of
from kinprint.measure.recipes import Facts, Recipe, Settings, agreeing
from kinprint.model.model import Floats
from kinprint.reader.decode import as_float32
from kinprint.records import (
    Component,
    MergeDoubt,
    MergeMethod,
    MergeOutcome,
    MergeStatus,
    Step,
)

Tell = Callable[[Step, str, int, int], None]
_SAMPLED = 1 << 21  # numbers of all tensors together that recipes are tried on
_LEAST = 4096  # of each tensor
_SLIGHT = 0.01  # a weight below this may be none
_SOME_EQUAL = 0.05  # of the numbers: a base that was not named has as many of its own left
_MOST_PARENTS = 4  # whose task vectors are looked at together
_PROVABLE = 0.99  # of the numbers must be in a format that a recipe can be held against


class _Measured(Struct):
    """What the first pass found of a tensor.

    `equal` counts by source the numbers that are the child's after rounding to a format that merges
    are written in, `exact` those that are as they are stored, `either` those of any source.
    """

    tensor: Tensor
    columns: tuple[int, ...]
    products: Products
    equal: dict[int, int]
    exact: dict[int, int]
    either: int
    child: Floats
    sources: tuple[Floats, ...]

    @property
    def likeness(self) -> Products:
        """Sums that tell what the child resembles: of gains, which are near one in any model, what
        they differ by from their mean. A mixture mixes that as well."""
        if component_of(self.tensor.address.role) is not Component.NORMS:
            return self.products
        found = Products(len(self.columns))
        found.add([one - one.mean() for one in self.sources], self.child - self.child.mean())
        return found


def unmerge_models(family: Family, tell: Tell | None = None) -> Unmerging:
    """Say which merge made the child.

    A source that lacks tensors would take them away from what a recipe is held against. So the
    others are looked at first, without those that lack many. Then all, on what all of them have:
    a recipe without these was refuted by the rest.
    """
    family.child.checkpoint.fetcher.ensure(family.wants())
    kept = family.fitting
    needed = 1 if family.base is not None else 2
    if needed <= len(kept) < len(family.sources) and family.base in (None, *kept):
        others = [at for at in range(len(family.sources)) if at not in kept]
        found = _unmerged(family.only(kept), tell)
        fewer = replace(found, aside=tuple(family.refs[1 + at] for at in others))
        if fewer.outcome is not MergeOutcome.UNDECIDED:
            return fewer
        every = _unmerged(family, tell)
        return every if every.uses(others) else fewer
    return _unmerged(family, tell)


def _unmerged(family: Family, tell: Tell | None) -> Unmerging:
    if not family.sampled:
        passed = passed_through(family.child, family.sources, family.tensors)
        if passed is not None and not _is_copy(family, passed):
            return _passed(family, passed)
    measured, rest = [], []
    for number, tensor in enumerate(family.tensors):
        if tell is not None:
            tell(Step.MEASURING, tensor.name, number + 1, len(family.tensors))
        found = _measure(family, tensor)
        if isinstance(found, _Measured):
            measured.append(found)
        else:
            rest.append(found)
    return _decided(family, measured, rest)


def _is_copy(family: Family, passed: Passed) -> bool:
    """Whether one source has all layers of the child, and no other."""
    (first, *others) = passed.slices
    own = family.child.layers()
    same = not others and (first.first, first.last) == (own[0], own[-1])
    return same and _as_deep(family, first.source)


def _as_deep(family: Family, source: int) -> bool:
    return family.sources[source].layers() == family.child.layers()


def _passed(family: Family, passed: Passed) -> Unmerging:
    findings = tuple(
        TensorFinding(
            tensor.name, tensor.address, tensor.numbers, MergeStatus.MEASURED, read=tensor.read,
            equal=tensor.numbers, origin=origin,
        )
        for tensor, origin in zip(family.tensors, passed.origins, strict=True)
    )  # fmt: skip
    total = sum(tensor.numbers for tensor in family.tensors)
    names = _names(family)
    stored = precision_of(family.tensors[0].parts[0])
    yaml = passthrough_yaml(passed.slices, names, stored)
    return Unmerging(
        child=family.refs[0], sources=family.refs[1:], base=family.base,
        typed_base=family.base, outcome=MergeOutcome.RECIPE, doubt=None,
        methods=(MergeMethod.PASSTHROUGH,), recipe=None, yaml=yaml, copied=None, weights=(),
        residual=None, equal=total, compared=total, tensors=findings, roles=(), layers=(),
        labels=_labels(family),
    )  # fmt: skip


def _labels(family: Family) -> tuple[text.Message, ...]:
    return tuple(
        one for model in (family.child, *family.sources) for one in model.checkpoint.labels
    )


def _names(family: Family) -> list[str]:
    return [ref.given for ref in family.refs[1:]]


def _measure(family: Family, tensor: Tensor) -> _Measured | TensorFinding:
    """Sums and a sample of one tensor; a row with its reason where there are none."""
    own = TensorFinding(tensor.name, tensor.address, tensor.numbers, tensor.status, tensor.reason)
    columns = tensor.available
    left_out = tensor.status in (MergeStatus.UNREADABLE, MergeStatus.NOT_READ)
    if left_out or not columns or not tensor.numbers:
        return own
    products = Products(len(columns))
    equal, exact = dict.fromkeys(columns, 0), dict.fromkeys(columns, 0)
    each = max(_LEAST, _SAMPLED // len(family.tensors))
    step = max(1, tensor.read // each)
    kept: list[list[Floats]] = [[] for _ in range(len(columns) + 1)]
    precision, either = tensor.precision, 0
    try:
        for stored, others in stored_blocks(family.child, family.sources, tensor, columns):
            child, *sources = map(as_float32, (stored, *others))
            if not all(bool(np.isfinite(one).all()) for one in (child, *sources)):
                reason = text.message("unmerge.reason.not-finite")
                return replace(own, status=MergeStatus.NOT_FINITE, reason=reason)
            products.add(sources, child)
            some_has = np.zeros(child.shape, bool)
            for at, source, other in zip(columns, sources, others, strict=True):
                as_stored = other == stored
                exact[at] += int(as_stored.sum())
                some_has |= as_stored
                if precision is not None:
                    as_rounded = rounded(source, precision) == child
                    equal[at] += int(as_rounded.sum())
                    some_has |= as_rounded
            either += int(some_has.sum())
            for some, one in zip(kept, (child, *sources), strict=True):
                some.append(one[::step].copy())
    except KinprintError as error:
        return replace(own, status=MergeStatus.UNREADABLE, reason=error.message)
    whole = [np.concatenate(some) for some in kept]
    return _Measured(tensor, columns, products, equal, exact, either, whole[0], tuple(whole[1:]))


def _finding(found: _Measured, free: Container[int | None]) -> TensorFinding:
    tensor = found.tensor
    mixture = _mixture(found.likeness, found.columns, free)
    return TensorFinding(
        tensor.name, tensor.address, tensor.numbers, tensor.status, tensor.reason,
        mixture.weights, mixture.residual, read=tensor.read,
    )  # fmt: skip


def _mixture(products: Products, columns: Sequence[int], free: Container[int | None]) -> Mixture:
    """The mixture of some sources, weights numbered as the sources are."""
    found = mixture_of(products, [at for at, column in enumerate(columns) if column in free])
    weights = tuple(
        replace(one, columns=tuple(columns[at] for at in one.columns)) for one in found.weights
    )
    return replace(found, weights=weights)


def _decided(
    family: Family, measured: Sequence[_Measured], rest: Sequence[TensorFinding]
) -> Unmerging:
    blank = _blank(family, measured, rest, (family.base,))
    full = _whole(family, measured)
    if not measured:
        return replace(blank, doubt=MergeDoubt.NOTHING_COMPARABLE)
    equalled = _equalled(family, measured)
    if copied := [at for at in equalled if _has_all(family, measured, at)]:
        own = _with_equal(blank, measured, copied[0])
        return replace(own, outcome=MergeOutcome.COPY, copied=copied[0])
    if equalled:
        return replace(_with_equal(blank, measured, equalled[0]), doubt=MergeDoubt.COPIED_PART)
    if full and not any(one.child.any() for one in full):
        return replace(blank, doubt=MergeDoubt.ONLY_ZEROS)
    usable = [one for one in full if one.tensor.precision is not None]
    # A recipe that gives the norms says nothing about matrices that are stored otherwise.
    numbers = [sum(one.tensor.numbers for one in some) for some in (usable, full)]
    if not usable or numbers[0] < _PROVABLE * numbers[1]:
        return replace(
            blank, doubt=MergeDoubt.OTHER_FORMAT if full else MergeDoubt.NOTHING_COMPARABLE
        )
    found = _taken_by_tensor(family, usable) or _explained(family, usable)
    free = {found.base, *(() if found.recipe is None else found.recipe.subtracted)}
    told = blank if free == {family.base} else _blank(family, measured, rest, free)
    told = replace(told, base=found.base, dependent=found.dependent)
    if found.recipe is None:
        told = replace(told, outcome=found.outcome, doubt=found.doubt)
        undecided = found.outcome is MergeOutcome.UNDECIDED
        return _from_several(usable, told) if undecided else told
    return _proved(family, usable, found, told)


def _whole(family: Family, measured: Sequence[_Measured]) -> list[_Measured]:
    """Tensors that all sources have."""
    return [one for one in measured if len(one.columns) == len(family.sources)]


def _blank(
    family: Family,
    measured: Sequence[_Measured],
    rest: Sequence[TensorFinding],
    free: Container[int | None],
) -> Unmerging:
    """Weights, those of sources that are `free` below zero too, and nothing said about them."""
    full = _whole(family, measured)
    pooled = _pooled(full, family, free)
    own = {one.tensor.name: _finding(one, free) for one in measured}
    own |= {one.name: one for one in rest}
    return Unmerging(
        child=family.refs[0], sources=family.refs[1:], base=family.base,
        typed_base=family.base, outcome=MergeOutcome.UNDECIDED, doubt=None, methods=(),
        recipe=None, yaml="", copied=None,
        weights=() if pooled is None else pooled.weights,
        residual=None if pooled is None else pooled.residual,
        equal=0, compared=0, tensors=tuple(own[one.name] for one in family.tensors),
        roles=tuple(_groups(full, family, free, by_role=True)),
        layers=tuple(_groups(full, family, free, by_role=False)), labels=_labels(family),
        sampled=family.sampled,
    )  # fmt: skip


def _equalled(family: Family, measured: Sequence[_Measured]) -> list[int]:
    """Sources that equal the child in all tensors that both have, as they are or rounded, where
    every source has some of these."""
    if not _whole(family, measured):
        return []
    return [
        at
        for at in range(len(family.sources))
        if all(_agreeing(one, at) == one.tensor.read for one in measured if at in one.columns)
    ]


def _has_all(family: Family, measured: Sequence[_Measured], source: int) -> bool:
    """Whether a source was held against every tensor of the child, and has no layer more."""
    complete = len(measured) == sum(1 for one in family.tensors if one.numbers)
    every = complete and all(source in one.available for one in family.tensors)
    return every and (family.sampled or _as_deep(family, source))


def _agreeing(one: _Measured, source: int) -> int:
    """Numbers of a tensor that are those of a source, as they are or rounded to its format: an
    adapter's child is not rounded to the format of its base."""
    return max(one.equal[source], one.exact[source])


def _with_equal(blank: Unmerging, measured: Sequence[_Measured], source: int) -> Unmerging:
    """With what equals a source counted, and said to be from there."""
    own = [one for one in measured if source in one.columns]
    equal = {one.tensor.name: _agreeing(one, source) for one in own}
    total = sum(one.tensor.read for one in own)
    return replace(
        blank, equal=total, compared=total,
        rounded=any(one.exact[source] < one.tensor.read for one in own),
        tensors=tuple(
            replace(one, equal=equal[one.name], origin=(source, one.address.layer))
            if one.name in equal
            else one
            for one in blank.tensors
        ),
    )  # fmt: skip


def _from_several(usable: Sequence[_Measured], told: Unmerging) -> Unmerging:
    """With the doubt that each number is that of some source, where no one source has them all.

    Which source it is may depend on anything: no sum and no rule of magnitudes tells it.
    """
    compared = sum(one.tensor.read for one in usable)
    equal = sum(one.either for one in usable)
    most = max(sum(_agreeing(one, at) for one in usable) for at in usable[0].columns)
    if not most < BELIEVED * compared <= equal:
        return told
    own = {one.tensor.name: one.either for one in usable}
    tensors = tuple(replace(one, equal=own.get(one.name)) for one in told.tensors)
    return replace(
        told, doubt=MergeDoubt.FROM_SEVERAL, equal=equal, compared=compared, tensors=tensors
    )


def _pooled(
    measured: Sequence[_Measured], family: Family, free: Container[int | None]
) -> Mixture | None:
    if not measured:
        return None
    total = _of_all_rows(measured[0])
    for one in measured[1:]:
        total = total + _of_all_rows(one)
    return _mixture(total, range(len(family.sources)), free)


def _of_all_rows(one: _Measured) -> Products:
    """Sums over a tensor as large as those of all its rows are likely to be."""
    found = Products(len(one.columns))
    seen = one.likeness
    found.groups, found.size = seen.groups * (one.tensor.numbers / max(seen.size, 1)), seen.size
    return found


def _groups(
    measured: Sequence[_Measured], family: Family, free: Container[int | None], *, by_role: bool
) -> Iterable[GroupFinding]:
    members: dict[str | int | None, list[_Measured]] = {}
    for one in measured:
        address = one.tensor.address
        if by_role:
            members.setdefault(address.role, []).append(one)
        elif address.layer is not None and not address.tower:
            members.setdefault(address.layer, []).append(one)
    for key, some in members.items():
        found = _pooled(some, family, free)
        assert found is not None
        role, layer = (key, None) if isinstance(key, str) else (None, key)
        yield GroupFinding(role, layer, found.weights, found.residual)


class _Explanation(Struct, frozen=True):
    """What the samples tell; a recipe comes with the methods that do as well, and its facts.

    `rank` is its place among recipes of other sources, `dependent` says that there are some.
    """

    outcome: MergeOutcome
    base: int | None
    doubt: MergeDoubt | None = None
    recipe: Recipe | None = None
    methods: tuple[MergeMethod, ...] = ()
    facts: tuple[Facts, ...] = ()
    rank: tuple[float, ...] = ()
    dependent: bool = False


def _taken_by_tensor(family: Family, usable: Sequence[_Measured]) -> _Explanation | None:
    """Every tensor as some source has it, as weights of one and zero by filter give it, and slices
    of layers where these were not looked for in whole tensors.

    No number tells of such a recipe: each is that of a source. It is held against all of them. Of
    sources that have the same tensor the one that has most of the child is taken.
    """
    having = [[at for at in one.columns if one.equal[at] == one.tensor.read] for one in usable]
    numbers: Counter[int] = Counter()
    for one, some in zip(usable, having, strict=True):
        numbers.update(dict.fromkeys(some, one.tensor.numbers))
    taken = [max(some, key=lambda at: (numbers[at], -at), default=None) for some in having]
    parents = tuple(sorted({at for at in taken if at is not None}))
    if None in taken or len(parents) < 2:
        return None
    settings = tuple(Settings(tuple(float(at == one) for at in parents)) for one in taken)
    formats = {one.tensor.precision for one in usable}
    stored = next(iter(formats)) if len(formats) == 1 else Precision.FLOAT32
    assert stored is not None
    recipe = Recipe(MergeMethod.LINEAR, parents, settings, stored, normalize=True)
    methods = [MergeMethod.LINEAR]
    if len(parents) == 2:
        methods.append(MergeMethod.SLERP)
    if family.sampled and may_be_slices([one.tensor for one in usable], having):
        methods.append(MergeMethod.PASSTHROUGH)
    facts = tuple(_sampled(one).facts for one in usable)
    return _Explanation(MergeOutcome.RECIPE, None, None, recipe, tuple(methods), facts)


def _explained(family: Family, usable: Sequence[_Measured]) -> _Explanation:
    """Look for a recipe of sources that are independent of each other."""
    choices = _independent(family, usable)
    found = [_explained_by(family, usable, chosen) for chosen in choices]
    outcomes = (MergeOutcome.RECIPE, MergeOutcome.OTHER, MergeOutcome.UNDECIDED)
    best_of_all = min(found, key=lambda one: (outcomes.index(one.outcome), one.rank))
    return replace(best_of_all, dependent=len(choices) > 1)


def _independent(family: Family, usable: Sequence[_Measured]) -> list[tuple[int, ...]]:
    """All sources; where some are sums of others, every choice that leaves out one of these."""
    total = sum((one.products for one in usable[1:]), usable[0].products)
    found: list[tuple[int, ...]] = []
    open_ = [tuple(range(len(family.sources)))]
    while open_:
        some = open_.pop(0)
        places = dependent_columns(total.of(some))
        fewer = [some[:at] + some[at + 1 :] for at in reversed(places) if some[at] != family.base]
        open_ += [one for one in fewer if one not in open_]
        if not fewer:
            found.append(some)
    return found


def _explained_by(
    family: Family, usable: Sequence[_Measured], chosen: tuple[int, ...]
) -> _Explanation:
    """Sums first, then task vectors over the base or over what may be one."""
    samples = [_sampled(one) for one in usable]
    sources = _active(usable, chosen)
    parents = tuple(at for at in sources if at != family.base)
    known = [at for at in chosen if at != family.base]
    bases = [family.base] if family.base is not None else [None, *_possible_bases(usable, known)]
    for base in bases:
        others = tuple(at for at in parents if at != base)
        if found := _sums(samples, others, base):
            return found
    if family.sampled:  # TIES, DARE and the angle of slerp are of whole tensors
        return _Explanation(MergeOutcome.UNDECIDED, family.base, MergeDoubt.SAMPLED)
    if len(sources) > 1 and score(any_mixture(samples, sources), samples).believed:
        return _Explanation(MergeOutcome.OTHER, family.base)
    for base in bases:
        others = tuple(at for at in parents if at != base)
        if base is None or not 0 < len(others) <= _MOST_PARENTS:
            continue
        if found := _task_vectors(family, usable, samples, others, base):
            return found
    doubt = MergeDoubt.NO_BASE if len(bases) == 1 and family.base is None else MergeDoubt.NO_RECIPE
    return _Explanation(MergeOutcome.UNDECIDED, family.base, doubt)


def _sums(
    samples: Sequence[Sampled], parents: tuple[int, ...], base: int | None
) -> _Explanation | None:
    """Recipes under which each tensor is one sum of its parents."""
    if not parents or (base is None and len(parents) < 2):
        return None
    recipes = list(mixed(samples, parents, base))
    tried = best(recipes, samples)
    if (not tried or tried[0].score.share < 1) and (others := reordered(recipes, samples)):
        tried = best([*recipes, *others], samples)
    if not tried:
        return None
    methods = [one.recipe.method for one in tried]
    first = tried[0]
    normalized = first.recipe.method is MergeMethod.LINEAR and first.recipe.normalize
    if normalized and base is None and first.score.share < 1:
        methods.append(MergeMethod.TASK_ARITHMETIC)  # over whatever base it gives the same sums
    facts = tuple(one.facts for one in samples)
    return _Explanation(
        MergeOutcome.RECIPE, first.recipe.base, None, first.recipe, tuple(methods), facts,
        rank(first),
    )  # fmt: skip


def _task_vectors(
    family: Family,
    usable: Sequence[_Measured],
    samples: Sequence[Sampled],
    parents: tuple[int, ...],
    base: int,
) -> _Explanation | None:
    """Recipes that keep some numbers of task vectors: TIES, DARE, or another of that kind."""
    facts = tuple(_magnitudes(family, one, parents, base, samples) for one in usable)
    samples = [replace(one, facts=own) for one, own in zip(samples, facts, strict=True)]
    if tried := best(trimmed_sums(samples, parents, base), samples):
        return _Explanation(
            MergeOutcome.RECIPE, base, None, tried[0].recipe, (MergeMethod.TIES,), facts,
            rank(tried[0]),
        )  # fmt: skip
    dropped = dropped_sums(samples, parents, base)
    if dropped is None or not dropped.believed:
        return None
    for recipe in random_sums(samples, parents, base, dropped) if dropped.at_random else ():
        scaled = with_scales(recipe, samples, dropped.factors) if recipe.rescale else samples
        if tried := best([recipe], scaled):
            facts = tuple(one.facts for one in scaled)
            return _Explanation(
                MergeOutcome.RECIPE, base, None, recipe, (recipe.method,), facts, rank(tried[0])
            )
    return None if dropped.at_random else _Explanation(MergeOutcome.OTHER, base)


def _sampled(one: _Measured) -> Sampled:
    tensor = one.tensor
    stored = tensor.precision
    assert stored is not None
    places = tensor.counterparts[one.columns[0]]
    assert places is not None
    parents = precision_of(places[0]) or Precision.FLOAT32
    layer = None if tensor.address.tower else tensor.address.layer
    return Sampled(one.child, one.sources, parents, one.products, Facts(stored), layer)


def _active(measured: Sequence[_Measured], chosen: Sequence[int]) -> tuple[int, ...]:
    """Sources that the child has something of, in some tensors at least."""
    found = []
    mixtures = [mixture_of(one.products.of(chosen)) for one in measured]
    for place, at in enumerate(chosen):
        clear = sum(
            one.tensor.numbers
            for one, mixture in zip(measured, mixtures, strict=True)
            if abs(mixture.coefficients[place]) > SURE * mixture.spread[place] + _SLIGHT
        )
        if clear > _SOME_EQUAL * sum(one.tensor.numbers for one in measured):
            found.append(at)
    return tuple(found)


def _possible_bases(measured: Sequence[_Measured], parents: Sequence[int]) -> list[int]:
    """Parents that may be the base: one that was subtracted, those left as they are in places."""
    if len(parents) < 2:
        return []
    total = sum((one.products for one in measured[1:]), measured[0].products)
    mixture = mixture_of(total.of(parents))
    size = sum(one.tensor.read for one in measured)
    shares = {at: sum(one.equal[at] for one in measured) / size for at in parents}
    subtracted = [
        at
        for place, at in enumerate(parents)
        if mixture.coefficients[place] < -SURE * mixture.spread[place] - _SLIGHT
    ]
    left = sorted((at for at in parents if shares[at] > _SOME_EQUAL), key=lambda at: -shares[at])
    return list(dict.fromkeys((*subtracted, *left)))


def _magnitudes(
    family: Family,
    one: _Measured,
    parents: Sequence[int],
    base: int,
    samples: Sequence[Sampled],
) -> Facts:
    """What trimming needs to know of a tensor: how large the numbers of its task vectors are."""
    stored = one.tensor.precision
    assert stored is not None
    formats = dict.fromkeys((*precisions(samples), Precision.FLOAT32))
    counts = {precision: [MagnitudeCounts() for _ in parents] for precision in formats}
    for _, sources in tensor_blocks(family.child, family.sources, one.tensor, (*parents, base)):
        for precision, counters in counts.items():
            vectors = task_vectors(sources[-1], sources[:-1], precision)
            for counter, vector in zip(counters, vectors, strict=True):
                counter.add(vector)
    magnitudes: Mapping[Precision, tuple[Magnitudes, ...]] = {
        precision: tuple(counter.done() for counter in counters)
        for precision, counters in counts.items()
    }
    return Facts(stored, magnitudes=magnitudes)


def _proved(
    family: Family, usable: Sequence[_Measured], found: _Explanation, blank: Unmerging
) -> Unmerging:
    """Carry a recipe out on every number; what it gives bit by bit is its proof."""
    recipe = found.recipe
    assert recipe is not None
    equal: dict[str, int] = {}
    settings: dict[str, Settings] = {}
    for one, own, known in zip(usable, recipe.settings, found.facts, strict=True):
        if recipe.method is MergeMethod.SLERP:
            known = replace(known, coefficients=path(one.products, recipe.parents, own))
        blocks = tensor_blocks(family.child, family.sources, one.tensor, one.columns)
        equal[one.tensor.name] = sum(
            int(agreeing(recipe, own, known, sources, child).equal.sum())
            for child, sources in blocks
        )
        settings[one.tensor.name] = own
    tensors = tuple(
        replace(one, equal=equal.get(one.name), settings=settings.get(one.name))
        for one in blank.tensors
    )
    compared = sum(one.tensor.read for one in usable)
    told = replace(blank, tensors=tensors, equal=sum(equal.values()), compared=compared)
    if told.equal < BELIEVED * compared:
        return replace(told, doubt=MergeDoubt.PROOF_FAILED)
    names = [one.tensor.name for one in usable]
    layers = [one.tensor.address.layer for one in usable]
    stored = max(usable, key=lambda one: one.tensor.numbers).tensor.precision
    yaml = recipe_yaml(recipe, _names(family), names, layers, stored)
    return replace(
        told, outcome=MergeOutcome.RECIPE, methods=found.methods, recipe=recipe, yaml=yaml
    )
