"""Equal matrices that may never have been trained: random numbers of one public seed.

Two strangers may hold the same random numbers, frozen from the start. Training leaves its mark on a
matrix: a few directions grow beyond what independent numbers reach. Where all that is equal has no
such mark while the other matrices of both models have it, nothing shows that trained weights are
shared; nor where so few equal rows were read that they cannot tell; nor where the others have no
such mark either and no gain of either model varies, as before training. Where the others have none
and gains vary, the models tell nothing about it. Gains start at one and biases at zero, so that
equal ones were learnt, but for biases that are spread evenly about zero, as some are drawn.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from msgspec.structs import replace

from kinprint.lineage.parts.equality import INFORMATION
from kinprint.lineage.parts.tensors import at_equal_numbers, compared, tensor_sizes, tensors_of
from kinprint.lineage.reading.sample import Floats, Sample
from kinprint.measure.equal_rows import arrangements
from kinprint.records import Component, Part, PartFinding, PartState, VerdictReason

TRAINED = 1.05
"""The largest singular value of trained matrices as a share of what independent numbers have, on
average over some. Matrices of the zoo have 1.04 or more, all but values 1.17; of 300 draws of
64 × 128 random numbers the largest is 1.03."""
_ROWS, _COLUMNS = 8, 32  # fewer do not tell
_EVENLY = 1.9  # deviations: even numbers end at √3, of a hundred normal ones some reach 2.5
_MOST = 512  # rows and columns that do


def without_untrained(
    findings: Sequence[PartFinding], a: Sample, b: Sample
) -> Sequence[PartFinding]:
    """Findings in which equal numbers that may be as drawn are not said to be taken over."""
    taken = [one for one in findings if one.learnt]
    if not taken or any(one.part.component is Component.NORMS for one in taken):
        return findings
    equal = [list(_equal(one, a, b)) for one in taken]
    if not all(equal) or any(_has_equal_bias(one, a, b) for one in taken):
        return findings
    trained = _trained([rows for some in equal for rows in some])
    if trained:
        return findings
    open_ = [one for one in findings if not one.state.linked]
    ours = [rows for one in open_ for rows in _matrices(a, one.part)]
    theirs = [rows for one in open_ if one.partner for rows in _matrices(b, one.partner)]
    marked = _trained(ours), _trained(theirs)
    if all(marked):
        why = VerdictReason.FEW_EQUAL if trained is None else VerdictReason.AS_DRAWN
    elif trained is False and not any(marked) and _at_start(a) and _at_start(b):
        why = VerdictReason.NEVER_TRAINED
    else:
        return findings
    return [replace(one, learnt=None, untrained=why) if one in taken else one for one in findings]


def marked(finding: PartFinding, a: Sample, b: Sample) -> bool:
    """Whether the matrices of a part bear a mark of training in both models."""
    parts = (a, finding.part), (b, finding.partner)
    return all(part is not None and _trained(list(_matrices(one, part))) for one, part in parts)


def _at_start(sample: Sample) -> bool:
    """Whether a model has gains, and none of them varies."""
    gains = [one for one in sample.norms.values() if one.size]
    return bool(gains) and all(np.ptp(one) == 0 for one in gains)


def _equal(finding: PartFinding, a: Sample, b: Sample) -> Iterator[Floats]:
    """The matrices of a part, as far as they were read, that are the same in its partner."""
    if finding.partner is None:
        return
    table = a.embedding if finding.part.component is Component.EMBEDDING else None
    if table is not None and finding.state is PartState.EQUAL:
        yield table.rows
    for _, (ours, theirs) in compared(a, b, finding.part, finding.partner):
        if np.array_equal(*at_equal_numbers(ours, theirs)):
            yield ours[1]


def _has_equal_bias(finding: PartFinding, a: Sample, b: Sample) -> bool:
    """Whether what was read of a tensor with one axis is the same in the partner of a part."""
    if finding.partner is None:
        return False
    sizes = tensor_sizes(a, finding.part)
    both = compared(a, b, finding.part, finding.partner)
    return any(
        (ours.shape[1] == 1 or (len(ours) == 1 and sizes[name] == ours.size))
        and np.array_equal(ours, theirs)
        for name, ((_, ours), (_, theirs)) in both
        if arrangements(ours.reshape(1, -1)) >= INFORMATION and not _spread_evenly(ours)
    )


def _spread_evenly(values: Floats) -> bool:
    """Whether numbers end as those that are drawn evenly between two limits do."""
    size = float(np.sqrt(np.square(values, dtype=np.float64).mean()))
    return float(np.abs(values).max()) <= _EVENLY * size


def _matrices(sample: Sample, part: Part) -> Iterator[Floats]:
    return (rows for _, rows in tensors_of(sample, part).values())


def _trained(matrices: Sequence[Floats]) -> bool | None:
    """Whether matrices have a mark of training, on average; None where all are too small."""
    from kinprint.measure.spectra import noise_ratio  # few parts may be untrained

    telling = (one for one in matrices if len(one) >= _ROWS and one.shape[1] >= _COLUMNS)
    ratios = [noise_ratio(_some(one)) for one in telling if np.isfinite(one).all() and one.any()]
    return float(np.mean(ratios)) > TRAINED if ratios else None


def _some(rows: Floats) -> Floats:
    """Rows and columns, evenly spaced."""
    height, width = (max(1, size // _MOST) for size in rows.shape)
    return rows[::height, ::width][:_MOST, :_MOST]
