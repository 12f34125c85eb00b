"""From evidence to a relation: one rule for all comparisons, pure, and it never says who copied.

A small p-value says that labels or signs of two models depend on each other: common origin,
direction unknown. Which kind of origin that is, `origin.py` reads from sizes of effects; what
would have been seen where nothing was, `power.py` tells.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from kinprint.lineage.origin import PARTS, Case, relation_of
from kinprint.lineage.power import detectable_effects
from kinprint.records import Evidence, Verdict

__all__ = ["ALPHA", "FLAG", "FLAG_EFFECT", "PARTS", "Share", "decide"]

ALPHA = 1e-6
FLAG, FLAG_EFFECT, FLAG_GRAM = 0.05, 0.25, 0.75
"""A calibrated p-value at most this large is worth a remark, if the likeness is twice what any
known strangers have: models trained for longer match better, whoever trained them."""
_GRAM = "G."


class Share(Protocol):
    """An entry of a menu: a test and its share of the error, fixed in advance."""

    @property
    def name(self) -> str:
        """Which test."""

    @property
    def share(self) -> float:
        """Its part of the level of error."""


def decide(
    evidence: Sequence[Evidence],
    menu: Mapping[str, float] | Iterable[Share],
    alpha: float = ALPHA,
    *,
    identical: bool = False,
) -> Verdict:
    """The relation that evidence supports at the level alpha, over a menu fixed in advance.

    Every exact test must stand on the menu, once; the shares add up to at most one. Calibrated
    evidence never rejects. `identical` says that all numbers that were read are equal: it is
    believed only together with a rejection, since constant tensors are equal everywhere.
    """
    shares = _shares(menu)
    exact = _checked(evidence, shares)
    level = math.log10(alpha)
    adjusted = {one.test: _adjusted(one, shares) for one in exact}
    combined = min([0.0, *adjusted.values()])
    found = [one for one in exact if adjusted[one.test] <= level]
    if not found:
        return _silent(evidence, exact, shares, alpha, combined)
    case = Case(evidence, exact, found)
    relation, reasons = ("identical", ["same-numbers"]) if identical else relation_of(case)
    power = detectable_effects(exact, shares, alpha)
    return Verdict(relation, combined, alpha, case.parts, power, tuple(reasons))


def _silent(
    evidence: Sequence[Evidence],
    exact: Sequence[Evidence],
    shares: Mapping[str, float],
    alpha: float,
    combined: float,
) -> Verdict:
    able = [one for one in exact if one.floor + _spent(one, shares) <= math.log10(alpha)]
    if not able:
        missing = [one.reason for one in evidence if one.tier == "exact" and one.reason]
        reasons = ["nothing-testable", *(f"missing:{why}" for why in dict.fromkeys(missing))]
        return Verdict("untestable", combined, alpha, reasons=tuple(reasons))
    reasons = ["nothing-found"]
    if any(_is_flag(one) for one in evidence):
        reasons.append("laundering-flag")
    power = detectable_effects(able, shares, alpha)
    return Verdict("no-evidence", combined, alpha, power=power, reasons=tuple(reasons))


def _is_flag(one: Evidence) -> bool:
    """Whether calibrated evidence is extreme: rare among strangers, and large if a size is told."""
    rare = one.tier == "calibrated" and one.status == "ok" and one.log10_p <= math.log10(FLAG)
    limit = FLAG_GRAM if one.test.startswith(_GRAM) else FLAG_EFFECT
    return rare and (one.effect is None or one.effect >= limit)


def _shares(menu: Mapping[str, float] | Iterable[Share]) -> dict[str, float]:
    if isinstance(menu, Mapping):
        shares = dict(menu)
    else:
        entries = list(menu)
        shares = {one.name: one.share for one in entries}
        if len(shares) < len(entries):
            raise ValueError("a test stands on the menu once")
    if any(not share > 0 for share in shares.values()) or math.fsum(shares.values()) > 1 + 1e-9:
        raise ValueError("shares of the error are positive and add up to at most one")
    return shares


def _checked(evidence: Sequence[Evidence], shares: Mapping[str, float]) -> list[Evidence]:
    """Exact tests that have a p-value; each on the menu and given once."""
    seen: set[str] = set()
    kept: list[Evidence] = []
    for one in evidence:
        if one.tier != "exact":
            continue
        if one.test not in shares:
            raise ValueError(f"{one.test} is not on the menu, so nothing pays for it")
        if one.test in seen:
            raise ValueError(f"{one.test} was given twice")
        seen.add(one.test)
        if one.status == "ok" and not math.isnan(one.log10_p):
            kept.append(one)
    return kept


def _spent(one: Evidence, shares: Mapping[str, float]) -> float:
    return -math.log10(shares[one.test])


def _adjusted(one: Evidence, shares: Mapping[str, float]) -> float:
    return min(0.0, min(0.0, one.log10_p) + _spent(one, shares))
