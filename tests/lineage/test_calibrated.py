"""The calibrated tier: ranks among strangers, looks at gains, silent where nothing speaks."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from kinprint.lineage.pair import Pair
from kinprint.lineage.reading.sample import Sample, Units
from kinprint.lineage.tests.calibrated import (
    LOOKS,
    excess,
    known_pairs,
    neighbour_correlation,
    stratum,
)
from kinprint.model.symmetries import Facts
from kinprint.records import Evidence, Group, Reason, Status, Tier

RANDOM = np.random.default_rng(7)


def sample(name: str, width: int = 64, units: int = 32, smooth: float = 0.6) -> Sample:
    common = RANDOM.standard_normal(width)
    rows = RANDOM.standard_normal((3, units, width)).astype(np.float32)
    gains = {
        ("norm_in", layer): (
            1 + 0.2 * (smooth * common + math.sqrt(1 - smooth**2) * RANDOM.standard_normal(width))
        ).astype(np.float32)
        for layer in range(6)
    }
    part = Units(np.arange(units), units, rows[0], rows[1], rows[2])
    return Sample(name, name, width, 6, Facts(gated=True), norms=gains, units={0: part})


def matched(quality: float) -> list[Evidence]:
    return [Evidence("S1", Tier.EXACT, Group.UNIT_SIGN, Status.OK, alignment_quality=quality)]


def calibrate(a: Sample, b: Sample, evidence: list[Evidence]) -> dict[str, Evidence]:
    pair = Pair(a, b)
    return {look.name: look.run(pair, evidence) for look in LOOKS}


def test_shipped_pairs_share_no_root() -> None:
    roots = [root for pair in known_pairs() for root in pair.roots]
    assert len(roots) == len(set(roots))
    assert len(known_pairs()) >= 60
    assert all(abs(pair.excess) < 0.2 for pair in known_pairs())
    assert sum(pair.gram is not None for pair in known_pairs()) >= 40


def test_a_laundered_match_is_extreme_and_strangers_are_not() -> None:
    a, b = sample("a"), sample("b")
    high = calibrate(a, b, matched(2.5))["Q.known"]
    assert high.tier == "calibrated" and high.status == "ok"
    assert high.log10_p == pytest.approx(high.floor) == pytest.approx(-math.log10(high.n + 1))
    low = calibrate(a, b, matched(0.6))["Q.known"]
    assert low.log10_p > math.log10(0.5)


def test_gram_matrices_are_ranked_among_strangers() -> None:
    a, b = sample("a"), sample("b")
    most = max(pair.gram for pair in known_pairs() if pair.gram is not None)

    def found(gram: float) -> Evidence:
        told = Evidence("S1", Tier.EXACT, Group.UNIT_SIGN, Status.OK, gram_likeness=gram)
        return calibrate(a, b, [told])["G.known"]

    high, low = found(0.95), found(0.2)
    assert high.log10_p == pytest.approx(high.floor) == pytest.approx(-math.log10(high.n + 1))
    assert high.effect == high.statistic == 0.95 > most
    assert low.log10_p > math.log10(0.5)
    assert calibrate(a, b, [])["G.known"].status == "needs"


def test_gram_likeness_sees_through_labels_signs_and_turns() -> None:
    from kinprint.lineage.alignment.gram import gram_likeness
    from kinprint.lineage.alignment.residual import MapSource, ResidualMap
    from kinprint.lineage.alignment.units import Matching
    from kinprint.lineage.preparation import Prepared

    one = sample("one", units=96)
    rows = one.units[0]
    assert rows.gate is not None
    turn = np.asarray(np.linalg.qr(RANDOM.standard_normal((64, 64)))[0], np.float32)
    order = RANDOM.permutation(96)
    signs = RANDOM.choice(np.array([-1, 1], np.float32), (96, 1))
    moved = replace(
        one, units={0: Units(rows.index, 96, (signs * rows.up)[order] @ turn,
                             (signs * rows.down)[order] @ turn, rows.gate[order] @ turn)},
        norms={key: np.ones_like(gains) for key, gains in one.norms.items()},
    )  # fmt: skip
    plain = replace(one, norms=moved.norms)
    matching = Matching(ResidualMap(MapSource.GRAM, turn), (0,), 1.0)
    assert gram_likeness(Prepared(plain), Prepared(moved), matching) > 0.9
    other = Prepared(sample("other", units=96))
    assert abs(gram_likeness(Prepared(plain), other, matching)) < 0.2


def test_it_says_what_it_lacks() -> None:
    a, b = sample("a"), sample("b")
    assert calibrate(a, b, [])["Q.known"].reason == Reason.MATCHED_UNITS.message()
    wide = sample("wide", width=512)
    assert stratum(a, wide) == ""
    assert calibrate(a, wide, matched(2.5))["Q.known"].status == "needs"
    part = replace(a, units={0: replace(a.units[0], total=99)})
    assert calibrate(part, b, matched(2.5))["Q.known"].status == "needs"


def test_gains_drawn_anew_do_not_look_learnt() -> None:
    assert neighbour_correlation(sample("learnt")) > 0.2
    assert abs(neighbour_correlation(sample("drawn", smooth=0.0))) < 0.15
    look = calibrate(sample("a"), sample("b", smooth=0.0), [])["gains.look"]
    assert look.learnt and (look.effect or 0) < 0.15
    constant = replace(
        sample("c"), norms={("norm_in", layer): np.ones(64, np.float32) for layer in (0, 1)}
    )
    silent = calibrate(sample("a"), constant, [])["gains.look"]
    assert silent.status == "undefined"


def test_swapping_changes_nothing() -> None:
    a, b = sample("a"), sample("b", units=48)
    assert calibrate(a, b, matched(1.1)) == calibrate(b, a, matched(1.1))


def test_excess_is_about_zero_for_random_rows_and_one_for_copies() -> None:
    rows = RANDOM.standard_normal((2, 3, 352, 128))
    rows /= np.linalg.norm(rows, axis=-1, keepdims=True)
    gate, up, down = (x @ y.T for x, y in zip(rows[0], rows[1], strict=True))
    quality = float((gate + np.abs(up + down)).max(axis=1).mean())
    assert abs(excess(quality, 128, 352)) < 0.05
    assert excess(3.0, 128, 352) == 1.0
    assert math.isnan(excess(1.0, 4, 10_000))
