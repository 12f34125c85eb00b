"""What two models share beyond a common base: by part, from the updates U = A - C and V = B - C.

Both models start from C, so that no labels are exchangeable and no symmetry gives a p-value: what
is said here is calibrated, and never borrows the p-value of a link. Tunes of one base that were
made apart on one text descend the same gradients and become alike, up to a cosine of 0.98 where
they were short: a part is only called near or shared above that, and a pair that is related but
less alike is called no more than alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kinprint import text
from kinprint.errors import BadOption
from kinprint.lineage.battery import gather_evidence
from kinprint.lineage.compare import algebra_for, charge_of
from kinprint.lineage.identity import same_files
from kinprint.lineage.lone_towers import ModelTowers, lone_towers
from kinprint.lineage.opening import open_all, read_headers, sampler_of
from kinprint.lineage.pair import Pair
from kinprint.lineage.parts.equality import INFORMATION
from kinprint.lineage.parts.survey import find_sharing
from kinprint.lineage.parts.tensors import TensorKey, along_both_axes
from kinprint.lineage.reading.parts import TABLES
from kinprint.lineage.reading.sample import Floats, Indices, Sample
from kinprint.lineage.reading.sampler import Sampler
from kinprint.lineage.results import Settings
from kinprint.lineage.side import Side
from kinprint.lineage.towers import compared_towers, joined_verdict, same_towers
from kinprint.lineage.verdict import decide
from kinprint.measure.equal_rows import arrangements
from kinprint.measure.rounding import equality
from kinprint.measure.updates import Overlap, Updates, overlap, updates
from kinprint.reader.fetch import Fetcher
from kinprint.records import BeyondState, Component, ModelRef, Part, PartFinding, Relation, Verdict
from kinprint.text import Message

Three = tuple[Floats, Floats, Floats]


SAME_UPDATE = 0.985
"""Cosine of two updates from which on they are one. Tunes that were made apart on one text reach
0.98 in another order, 0.96 in the same order at another rate."""
ALIKE = 0.25
"""Cosine from which on updates are as alike as training on one text makes them. Tunes on other
texts reach 0.14, and 0.19 where 16 rows of a tensor were read."""
IN_COMMON = 0.4
"""Share of the numbers that both changed by far from which on they are taken from one model. Tunes
that were made apart on one text reach 0.12."""
SUBSPACE = 0.95
"""Share of leading directions from which on they are those of one adapter, or of two that started
from one seed. Adapters of other seeds reach 0.29; all weights tuned at a small rate on one text
0.93."""
SAME_SCALE = (0.9, 1.1)
"""Between which the coefficient of a regression of one update on the other lies at one scale."""
FARTHEST = 1.2
"""Size of an update, as a share of the base, above which the part is another one."""
FEWEST_CHANGED = 64
"""Numbers that both models must have changed in a part."""
MOST_ROUNDING = 0.1
"""Share of the smaller update that rounding may have put into both where they are compared."""


class BeyondFinding(Struct, frozen=True):
    """What is known about one part, and from what.

    Attributes
    ----------
    part : the part of the base.
    state : what is known.
    updates : sums over what was read of it; None where nothing was.
    overlap : common directions of updates of low rank, over its tensors; None if none is.
    unchanged : which of the two models are what the base is.
    bits : of an equal part, the bits of the coarser model where that is a rounding of the other.
    reason : why it is not comparable or was not read.
    weights : how many numbers the part has.
    read : the share of them that was compared.
    """

    part: Part
    state: BeyondState
    updates: Updates | None = None
    overlap: Overlap | None = None
    unchanged: tuple[bool, bool] = (False, False)
    bits: int | None = None
    reason: Message | None = None
    weights: int = 0
    read: float = 0.0


class Beyond(Struct, frozen=True):
    """What two models share beyond a base.

    Attributes
    ----------
    base : the base, and which state of it was read.
    answer : what the parts say together; not comparable where the question has no answer.
    relations : of each model to the base.
    findings : what is known about each part.
    refused : the place of the model that has no update of the base, so that there is no answer.
    """

    base: ModelRef
    answer: BeyondState
    relations: tuple[Relation, Relation]
    findings: tuple[BeyondFinding, ...] = ()
    refused: int | None = None


def beyond_base(
    a: str, b: str, base: str, fetcher: Fetcher, settings: Settings, beside: int = 0
) -> Beyond:
    """Say what two models share beyond a base, from the samples of the level.

    Parameters
    ----------
    a, b : the models.
    base : the model that both were made from.
    fetcher : reads, within its budget; what was read before is not read again.
    settings : how much to read. A budget is for all models.
    beside : how many models are read within the same budget beside the three.

    Raises
    ------
    BadOption
        The base is one of the two.
    """
    checkpoints = open_all([a, b, base], fetcher, settings)
    for one in checkpoints[:2]:
        if one.ref == checkpoints[2].ref or same_files(one, checkpoints[2]):
            cause = text.message("cause.given.one-of-two")
            raise BadOption(option="given", value=base, cause=cause)
    sampler = sampler_of(read_headers(checkpoints, settings, beside), settings, beside)
    with algebra_for(settings.level):
        towers = sampler.towers(sampler.stages - 1)
        sides = [[Side(sample) for sample in model] for model in towers]
        verdicts = [_verdict(sampler, sides, place, settings) for place in (0, 1)]
        relations = verdicts[0].relation, verdicts[1].relation
        for place, relation in enumerate(relations):
            if relation in WITHOUT_UPDATE:
                answer = BeyondState.NOT_COMPARABLE
                return Beyond(checkpoints[2].ref, answer, relations, refused=place)
        findings = _findings(towers, [one.parts for one in verdicts])
    return Beyond(checkpoints[2].ref, summed_up(findings), relations, findings)


WITHOUT_UPDATE = (
    Relation.NO_EVIDENCE,
    Relation.UNTESTABLE,
    Relation.SAME_INIT,
    Relation.LAUNDERED,
)
"""Relations to the base of models that have no update of it, or none in its own basis."""


def _verdict(
    sampler: Sampler, sides: Sequence[Sequence[Side]], place: int, settings: Settings
) -> Verdict:
    """How the base, the third model, is related to one of the two; its parts come first."""
    ours, theirs = sides[2], sides[place]
    places = sampler.tower_pairs(2, place)
    charge = charge_of(settings, 1 / len(places))
    found = []
    for at, to in places:
        pair = Pair(ours[at], theirs[to], seed=settings.seed, level=settings.level)
        evidence = gather_evidence(pair)
        found.append((evidence, find_sharing(pair, ours[at], evidence, charge)))
    samples = [[side.prepared.stored for side in model] for model in (ours, theirs)]
    labels = [(samples[0][at].tower, samples[1][to].tower) for at, to in places]
    whole = sampler.whole[2] and sampler.whole[place]
    covered = whole and sampler.covered(2) and sampler.covered(place)
    equal = covered and same_towers(*samples)
    evidence, sharing = found[0]
    main = decide(evidence, charge, sharing, identical=equal)
    besides = compared_towers(labels[1:], found[1:], charge)
    base, other = (
        ModelTowers(some, sampler.unclaimed(at))
        for some, at in zip(samples, (2, place), strict=True)
    )
    return joined_verdict(main, sharing, besides, lone_towers(base, other, places))


def _findings(
    towers: Sequence[Sequence[Sample]], parts: Sequence[Sequence[PartFinding]]
) -> tuple[BeyondFinding, ...]:
    """Every part of the base with what the two models made of it."""
    known = [{sample.tower: sample for sample in model} for model in towers]
    partners = [
        {one.part: one.partner for one in some if one.state.linked and one.partner is not None}
        for some in parts
    ]
    found = []
    for base in towers[2]:
        for part, extent in base.parts.items():
            ours, theirs = (some.get(part, part) for some in partners)
            samples = [
                model.get(one.tower) for model, one in zip(known, (ours, theirs), strict=False)
            ]
            if samples[0] is None or samples[1] is None:
                reason = text.message("report.given.reason.missing")
                found.append(_open(part, BeyondState.NOT_COMPARABLE, reason, extent.weights))
                continue
            three = (samples[0], ours), (samples[1], theirs), (base, part)
            tensors = list(_common_rows(three))
            if not tensors and all(_was_read(*one) for one in three):
                reason = text.message("report.given.reason.shapes")
                found.append(_open(part, BeyondState.NOT_COMPARABLE, reason, extent.weights))
                continue
            found.append(finding_of(part, tensors, extent.weights))
    return tuple(_with_norms_beside(found))


def _open(part: Part, state: BeyondState, reason: Message, weights: int) -> BeyondFinding:
    return BeyondFinding(part, state, reason=reason, weights=weights)


def _was_read(sample: Sample, part: Part) -> bool:
    extent = sample.parts.get(part)
    return extent is not None and extent.read > 0


def _common_rows(three: Sequence[tuple[Sample, Part]]) -> Iterator[Three]:
    """Rows of tensors that were read of all three models, at equal places."""
    component = three[2][1].component
    if component in TABLES:
        tables = [token_rows(sample, component) for sample, _ in three]
        if all(table is not None for table in tables):
            yield from _at_equal_places({"": table} for table in tables if table)
        return
    axes = [along_both_axes(*one) for one in three]
    names: dict[str, TensorKey] = {}
    for key in axes[2]:  # along one axis of each tensor
        if all(key in one for one in axes):
            names.setdefault(key[0], key)
    yield from _at_equal_places({name: one[key] for name, key in names.items()} for one in axes)


def _at_equal_places(
    models: Iterator[Mapping[str, tuple[Indices, Floats]]],
) -> Iterator[Three]:
    ours, theirs, base = models
    for name, (numbers, rows) in base.items():
        (first, x), (second, y) = ours[name], theirs[name]
        places = np.intersect1d(np.intersect1d(first, second), numbers)
        if not len(places) or not x.shape[1:] == y.shape[1:] == rows.shape[1:]:
            continue
        a, b, c = (
            values[np.argsort(index)[np.searchsorted(np.sort(index), places)]]
            for index, values in ((first, x), (second, y), (numbers, rows))
        )
        yield a, b, c


def token_rows(sample: Sample, component: Component) -> tuple[Indices, Floats] | None:
    """Rows of a table by the spelling of their tokens."""
    table = sample.embedding if component is Component.EMBEDDING else sample.head
    if table is None:
        return None
    names, first = np.unique(table.names, return_index=True)
    return names, table.rows[first]


def finding_of(part: Part, tensors: Sequence[Three], weights: int = 0) -> BeyondFinding:
    """What three parts say, from rows of A, B and C at equal places.

    Parameters
    ----------
    part : the part of the base.
    tensors : of each tensor that was read, the rows of all three.
    weights : how many numbers the part has.
    """
    total = sum((updates(*three) for three in tensors), Updates())
    if not total.numbers:
        return _open(
            part, BeyondState.NOT_READ, text.message("report.given.reason.not-read"), weights
        )
    spaces = [
        one for a, b, c in tensors if len(c) > 1 and (one := overlap(a - c, b - c)) is not None
    ]
    finding = BeyondFinding(
        part,
        BeyondState.APART,
        total,
        _mean_overlap(spaces),
        weights=weights,
        read=min(total.numbers / max(weights, 1), 1.0),
    )
    unchanged = (_same(tensors, 0, 2) is not None, _same(tensors, 1, 2) is not None)
    if any(unchanged):
        return replace(finding, state=BeyondState.UNCHANGED, unchanged=unchanged)
    if max(total.sizes) > FARTHEST:
        reason = text.message("report.given.reason.far")
        return replace(finding, state=BeyondState.NOT_COMPARABLE, reason=reason)
    same = _same(tensors, 0, 1)
    if same is not None and not any(_informs(a) or _informs(b) for a, b, _ in tensors):
        reason = text.message("report.given.reason.constant")
        return replace(finding, state=BeyondState.NOT_COMPARABLE, reason=reason)
    one_update = abs(total.cosine or 0.0) >= SAME_UPDATE
    if same is not None and (same == 0 or one_update) and total.changed >= FEWEST_CHANGED:
        return replace(finding, state=BeyondState.EQUAL, bits=same or None)
    if total.rounded > MOST_ROUNDING:
        reason = text.message("report.given.reason.rounding")
        return replace(finding, state=BeyondState.NOT_COMPARABLE, reason=reason)
    if total.changed < FEWEST_CHANGED:
        reason = text.message("report.given.reason.few-changed")
        return replace(finding, state=BeyondState.NOT_COMPARABLE, reason=reason)
    if part.component is Component.NORMS:
        reason = text.message("report.given.reason.norms")
        return replace(finding, state=BeyondState.NOT_COMPARABLE, reason=reason)
    state = _state(total, finding.overlap)
    if state is BeyondState.ALIKE and total.fine > MOST_ROUNDING:
        reason = text.message("report.given.reason.rounding")
        return replace(finding, state=BeyondState.NOT_COMPARABLE, reason=reason)
    return replace(finding, state=state)


def _informs(rows: Floats) -> bool:
    """Whether equal numbers tell of a common source: anyone may set gains to one."""
    return arrangements(np.atleast_2d(rows)) >= INFORMATION


def _same(tensors: Sequence[Three], one: int, other: int) -> int | None:
    """Whether all tensors of two models are equal: 0 as stored, else the bits after rounding.

    What was tuned apart for a short time rounds to the same numbers of a coarse grid.
    """
    found = [equality(three[one], three[other]) for three in tensors]
    if not all(each.same for each in found):
        return None
    return min((each.bits for each in found if each.bits is not None), default=0)


def _state(total: Updates, space: Overlap | None) -> BeyondState:
    """The state that the limits give two updates."""
    cosine, numbers = total.cosine or 0.0, total.in_common or 0.0
    if abs(cosine) >= SAME_UPDATE:
        both = total.of_b_on_a or 0.0, total.of_a_on_b or 0.0
        same_scale = all(SAME_SCALE[0] <= one <= SAME_SCALE[1] for one in both)
        return BeyondState.NEAR if same_scale else BeyondState.SHARED
    if numbers >= IN_COMMON:
        return BeyondState.SHARED
    if space is not None and space.beyond >= SUBSPACE:
        return BeyondState.SUBSPACE
    return BeyondState.ALIKE if abs(cosine) >= ALIKE else BeyondState.APART


def _mean_overlap(spaces: Sequence[Overlap]) -> Overlap | None:
    """Several tensors together, each direction counted once."""
    counts = [min(one.ranks) for one in spaces]
    if not counts:
        return None
    share, chance = (
        float(np.average([getattr(one, name) for one in spaces], weights=counts))
        for name in ("share", "chance")
    )
    ranks = max(one.ranks[0] for one in spaces), max(one.ranks[1] for one in spaces)
    return Overlap(share, chance, ranks)


def _with_norms_beside(findings: Sequence[BeyondFinding]) -> Iterator[BeyondFinding]:
    """Gains are near one in every numbering: where all matrices of their layer are other ones, the
    gains are not those of the same channels."""
    layers: dict[tuple[str, int | None], list[BeyondFinding]] = {}
    for one in findings:
        if one.part.component is not Component.NORMS and one.updates is not None:
            layers.setdefault((one.part.tower, one.part.layer), []).append(one)
    for one in findings:
        beside = layers.get((one.part.tower, one.part.layer), [])
        far = [each.reason for each in beside if _is_far(each)]
        if one.part.component is Component.NORMS and far and len(far) == len(beside):
            one = replace(one, state=BeyondState.NOT_COMPARABLE, reason=far[0])
        yield one


def _is_far(finding: BeyondFinding) -> bool:
    return finding.updates is not None and max(finding.updates.sizes) > FARTHEST


def summed_up(findings: Sequence[BeyondFinding]) -> BeyondState:
    """What the parts say together.

    Parts that have more in common than one text explains decide, however few they are; the state
    with most weights is named, and all are equal only where no part is otherwise.
    """
    common = [one for one in findings if one.state.common]
    others = [one for one in findings if one.state in (BeyondState.ALIKE, BeyondState.APART)]
    if not common:
        for state in (BeyondState.ALIKE, BeyondState.APART, BeyondState.UNCHANGED):
            if any(one.state is state for one in findings):
                return state
        return BeyondState.NOT_COMPARABLE
    weights: dict[BeyondState, int] = {}
    for one in common:
        weights[one.state] = weights.get(one.state, 0) + one.weights
    state = max(weights, key=lambda state: weights[state])
    partly = state is BeyondState.EQUAL and (others or len(weights) > 1)
    return BeyondState.SHARED if partly else state
