"""Whether linked parts were taken over, or only started alike: measured limits, and no p-value.

One initialisation leaves models alike, the more so the narrower they are and the less they were
trained; whatever starts at a constant, as gains do, can only have been learnt together. Twins are
models of one initialisation that were trained apart. The limits lie above what twins reach that saw
the same data in another order, so that a descendant may fall below them: then nobody can tell.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from kinprint.lineage.parts.findings import order
from kinprint.lineage.reading.parts import TABLES
from kinprint.records import Component, PartFinding, PartState

MATRICES = (Component.ATTENTION, Component.FEED_FORWARD, Component.EXPERT, Component.MIXER)
"""Components that are matrices of the layers."""
UNITS = (Component.FEED_FORWARD, Component.EXPERT)
"""Those whose units have partners, and cannot be mixed."""


class Limits(Struct, frozen=True):
    """Correlations from which on a linked part was taken over.

    Attributes
    ----------
    gains : of the effective gains that feed linked matrices, on average, where these are more alike
        than strangers' can be made.
    matrices : of a matrix, or of all on average, where these cannot be compared, if gains have
        moved by `TRAINED` and either norms agree as those taken over do, or none can be compared
        and training has left its mark on the matrix.
    norms : of gains as stored, on average.
    """

    gains: float
    matrices: float
    norms: float


LIMITS = Limits(gains=0.66, matrices=0.85, norms=0.75)
"""From width 128 on. Of 25 pairs of twins that saw the same data, in another order, the most alike
have gains of 0.61; a matrix of one pair reaches 0.83."""
NARROW = Limits(gains=0.75, matrices=0.95, norms=0.80)
"""In narrower models. Of 7 such pairs of width 64 the most alike have gains of 0.73; a matrix of
theirs reaches 0.92, and their norms 0.75 on average."""
OTHER_WIDTH = Limits(gains=0.66, matrices=0.50, norms=0.75)
"""In models of different width. One initialisation does not make their matrices alike, unless that
of one was cut from that of the other: then they are as alike as trained twins, which keep 0.43."""
NARROWER = 128
"""The width below which models are narrow."""
APART_GAINS = 0.25
"""Mean correlation of effective gains, and of norms, up to which matrices only started alike. Twins
on other data stay at 0.12 or below from width 128 on where they were trained for long; norms of a
merge that has three parts in ten of a model agree by 0.35 with it."""
TRAINED = 0.03
"""How far gains of trained models have moved from their start, as a share of it."""
SAME_INIT_MATRICES = 0.45
"""Correlation of matrices up to which one initialisation explains them: pairs of the zoo that
started alike and were trained apart keep 0.04 to 0.43. Above it training was short, or gains were
made anew."""
COLUMNS = 0.50
"""Correlation of the columns alone, less what chance gave them, from which on gains that agree may
be a model's own. Averages of a model and a stranger keep 0.57 or more of half of it, descendants
after long training 0.70; first weights, which learnt no columns, have none."""
LEARNT_EMBEDDING = 0.85
"""Correlation of embedding columns that are taken over beside other parts that are, or beside
matrices that have nothing in common. Rows of tokens that no text had keep their first weights, so
that twins reach any likeness: their matrices are linked too."""


TURNABLE = 8.0
"""Rows of a table, as a multiple of the width, below which whoever turns the residual stream of a
stranger towards the other model makes them as alike as a copy: 0.75 were reached with 32 times the
width of them, 0.87 with few."""
ADDED_ROWS = 0.25
"""Share of the rows of a table up to which equal ones may have been added from one public seed, and
never been trained."""


def limits_of(first: int, second: int) -> Limits:
    """The limits for models of two widths."""
    if first != second:
        return OTHER_WIDTH
    return NARROW if first < NARROWER else LIMITS


class Circumstances(Struct, frozen=True):
    """What else is known of two models, beside what was found of their parts.

    Attributes
    ----------
    limits : those of the models' width.
    moved : how far gains have moved from their start.
    arranged : how alike strangers' feed-forwards can be made on average, if they have so many
        weights.
    mixed : how alike their attention can be made.
    arranged_norms : what numbering channels anew gives so many of strangers' gains.
    carried_gains : the likeness of the gains of a part in the basis that was found, for parts that
        are not linked in the basis as stored.
    columns : the likeness of the columns of a part alone, where its gains may have been written in.
    as_stored : whether a part is linked in the basis as stored.
    marked : whether training has left a mark on the matrices of a part, in both models.
    turnable : whether so few rows of a table were read that a stranger's can be turned to them.
    """

    limits: Limits
    moved: float
    arranged: Callable[[float], float]
    mixed: float
    arranged_norms: Callable[[float], float]
    carried_gains: Callable[[PartFinding], float | None]
    columns: Callable[[PartFinding], float | None]
    as_stored: Callable[[PartFinding], bool]
    marked: Callable[[PartFinding], bool]
    turnable: Callable[[PartFinding], bool]


def judged(findings: Sequence[PartFinding], known: Circumstances) -> list[PartFinding]:
    """Findings that say of each linked part whether it was taken over.

    Gains of single layers scatter, so that the mean decides for those that do not tell themselves.
    They alone decide nothing: whoever numbers a stranger's channels anew, or scales its columns,
    makes them agree, but not its matrices. Gains that are linked alone have no first weights in
    common: they were taken over if numbering channels anew does not make strangers' as alike.
    `learnt` of the findings is true where numbers are equal.
    """
    limits = known.limits
    linked = [one for one in findings if one.state.linked]
    matrices = [one for one in linked if one.part.component in MATRICES]
    norms = [one for one in linked if one.part.component is Component.NORMS]
    units = _not_arranged([one for one in matrices if one.part.component in UNITS], known.arranged)
    alike_layers = {one.part.layer for one in units}

    def not_arranged(one: PartFinding) -> bool:
        """Whether a matrix is more alike than a stranger's, or that of a trained twin, can be made.

        Values can be mixed, so that a layer's feed-forward speaks for its attention.
        """
        if one.learnt or one.part.component in UNITS:
            return bool(one.learnt) or one in units
        vouched = one.part.layer in alike_layers
        return (one.likeness or 0.0) > (SAME_INIT_MATRICES if vouched else known.mixed)

    # A stranger's attention beside them says nothing of feed-forwards that were taken over; but of
    # parts less alike than copies no few may tell, since twins' gains reach any limit in some.
    unequal = [one for one in matrices if not one.learnt]
    copies = [one for one in unequal if (one.likeness or 0.0) >= limits.matrices]
    telling = [one for one in copies if one.gains is not None and not_arranged(one)] or unequal
    gains = _mean([one.gains for one in telling])
    columns = _mean([known.columns(one) for one in telling])
    carried = _mean([known.carried_gains(one) for one in matrices]) if gains is None else None
    norm = _mean([one.likeness for one in norms])
    gains_linked = math.fsum(one.weights * one.share for one in norms)
    # Equal gains were written in, and say nothing of matrices.
    every_norm = _mean(
        [
            one.likeness
            for one in findings
            if one.part.component is Component.NORMS and not one.learnt
        ]
    )
    most = max(gains or 0.0, every_norm or 0.0)

    all_alike = _mean([one.likeness for one in unequal]) or 0.0

    def alike_without_gains(one: PartFinding) -> bool:
        """Whether a matrix, or all on average, is as alike as a copy, and not for want of training.

        Models that started alike and were hardly trained have matrices as alike as that.
        """
        as_stored = known.as_stored(one)
        told, least = (every_norm, limits.norms) if as_stored else (carried, limits.gains)
        likeness = one.likeness or 0.0
        with_others = all_alike >= limits.matrices and likeness > SAME_INIT_MATRICES
        alike = known.moved >= TRAINED and (likeness >= limits.matrices or with_others)
        return alike and (known.marked(one) if told is None else told >= least)

    def of_matrix(one: PartFinding) -> bool | None:
        if gains is None:
            told = (carried or 0.0) >= limits.gains and not_arranged(one)
            return True if told or alike_without_gains(one) else None
        if gains >= limits.gains:
            told = not_arranged(one) and (columns is None or columns >= COLUMNS)
            return True if told and (one.gains is None or one.gains > APART_GAINS) else None
        started_alike = most <= APART_GAINS and (one.likeness or 0.0) <= SAME_INIT_MATRICES
        return False if started_alike else None

    own = any(map(not_arranged, matrices))

    def learnt(one: PartFinding) -> bool | None:
        if one.learnt or one not in linked:
            return one.learnt
        match one.part.component:
            case Component.NORMS:
                least = limits.norms if own else known.arranged_norms(gains_linked)
                return True if (norm or 0.0) >= least else None
            case Component.ATTENTION | Component.FEED_FORWARD | Component.EXPERT:
                return of_matrix(one)
        return None

    told = [replace(one, learnt=learnt(one)) for one in findings]
    return _with_tables(told, known.turnable)


def as_a_whole(finding: PartFinding) -> float:
    """The likeness of a part, all of its tensors counted: one alone is easier to arrange."""
    return (finding.likeness or 0.0) * finding.share


def _not_arranged(
    units: Sequence[PartFinding], arranged: Callable[[float], float]
) -> list[PartFinding]:
    """Feed-forwards that are more alike than a stranger's, or a trained twin's, can be made.

    A stranger can be turned towards few of them more than towards many, so that they are judged
    together with those that are more alike: the mean of any of a stranger's is bounded.
    """
    ranked = sorted(units, key=lambda one: (-as_a_whole(one), order(one.part)))
    alike = weights = 0.0
    beyond = 0
    for count, one in enumerate(ranked, 1):
        alike += as_a_whole(one) * one.weights
        weights += one.weights
        if alike > arranged(weights) * weights:
            beyond = count
    return [one for one in ranked[:beyond] if as_a_whole(one) > SAME_INIT_MATRICES]


def _with_tables(
    findings: Sequence[PartFinding], turnable: Callable[[PartFinding], bool]
) -> list[PartFinding]:
    """Findings that say the same of embeddings and heads, which follow what the others say.

    Gains can be written into a stranger that was turned: beside them alone many rows must speak.
    """
    others = [one for one in findings if one.part.component in (*MATRICES, Component.NORMS)]
    read = [one for one in others if one.state is not PartState.NOT_READ]
    layers = [one for one in read if one.part.component in MATRICES]
    apart = bool(layers) and not any(one.state.linked for one in layers)
    if not (apart or any(one.learnt for one in read)):
        return list(findings)
    matrices = any(one.learnt for one in layers)
    return [
        replace(one, learnt=True)
        if one.state is PartState.SHARED
        and one.part.component in TABLES
        and (one.likeness or 0.0) >= LEARNT_EMBEDDING
        and one.share > ADDED_ROWS
        and (matrices or not turnable(one))
        else one
        for one in findings
    ]


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else None
