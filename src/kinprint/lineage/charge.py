"""What a p-value costs: the one rule that pays for the menu of tests and for reading in stages.

A comparison may run every test of a menu, and may look at the evidence after every stage of
reading. Each of those looks is a chance to be wrong, so each gets a share of the error alpha
before the first weight is read: a test the share w of the menu, a stage the share v of the
stages. With sums of w and of v of at most one, the union bound holds whatever is found and
whenever reading stops: at most alpha of all pairs of strangers have a test with p ≤ alpha·w·v.

The same rule reads in two ways, and everybody who needs it asks here:

- a test is significant where its adjusted p-value p / (w·v) is at most alpha (`adjusted`,
  `significant`, `combined`: the verdict, the layer map, families, documents and their views);
- a test must reach p ≤ alpha·w·v (`level`: what could have been found at all).

Many pairs are each judged at alpha; what that comes to for all of them, `false_links` tells.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from kinprint.lineage.parts.equality import INFORMATION
from kinprint.records import ALPHA, Evidence, Status, Tier

_TENSORS = 10  # of a part, at most: each might hold equal numbers by accident


class MenuShare(Protocol):
    """An entry of a menu: a test and its share of the error, fixed in advance."""

    @property
    def name(self) -> str:
        """Which test."""

    @property
    def share(self) -> float:
        """Its part of the error."""


class Charge(Struct, frozen=True):
    """The price of every test in one comparison, at one stage of its reading.

    Attributes
    ----------
    shares
        Each test's share of the error by its name, from a menu fixed in advance; positive, and
        at most one together.
    alpha
        The error of the whole comparison: the chance of calling strangers related.
    stage
        The share of the error that this stage may spend; one where everything is read at once.

    Raises
    ------
    ValueError
        If shares or stage are not positive or add up to more than one.

    Examples
    --------
    >>> charge = Charge({"E1.blocks": 0.5, "U1.blocks": 0.5}, alpha=1e-6, stage=0.5)
    >>> found = Evidence("U1.blocks", Tier.EXACT, Group.UNIT, Status.OK, log10_p=-6.5)
    >>> round(charge.adjusted(found), 3), charge.significant(found)
    (-5.898, False)
    """

    shares: Mapping[str, float]
    alpha: float = ALPHA
    stage: float = 1.0

    def __post_init__(self) -> None:
        shares = self.shares.values()
        if any(not share > 0 for share in shares) or math.fsum(shares) > 1 + 1e-9:
            raise ValueError("shares of the error are positive and add up to at most one")
        if not 0 < self.stage <= 1:
            raise ValueError("a stage has a positive share of the error, and at most all of it")

    @classmethod
    def for_menu(
        cls, entries: Iterable[MenuShare], alpha: float = ALPHA, stage: float = 1.0
    ) -> Charge:
        """The charge of a menu, on which each test stands once."""
        listed = list(entries)
        shares = {entry.name: entry.share for entry in listed}
        if len(shares) < len(listed):
            raise ValueError("a test stands on the menu once")
        return cls(shares, alpha, stage)

    def share(self, test: str) -> float | None:
        """A test's share of the menu; None where the menu does not have it."""
        return self.shares.get(test)

    def adjusted(self, evidence: Evidence) -> float | None:
        """The log10 p of a test after paying for menu and stage, at most 0.

        None for what cannot reject: no exact test, no p-value, or not on the menu.
        """
        if not self._counts(evidence):
            return None
        return self._after_paying(evidence.test, evidence.log10_p)

    def significant(self, evidence: Evidence) -> bool:
        """Whether a test rejects that chance alone made the two models alike."""
        adjusted = self.adjusted(evidence)
        return adjusted is not None and adjusted <= math.log10(self.alpha)

    def significant_part(self, log10_p: float, count: int) -> bool:
        """Whether a test of one part rejects, where so many tests of parts were made.

        Parts have an error of their own, as large as that of the link: what is said about which
        parts are shared is wrong in at most alpha of all pairs.
        """
        return log10_p + math.log10(max(count, 1)) - math.log10(self.stage) <= math.log10(
            self.alpha
        )

    def could_reject(self, evidence: Evidence) -> bool:
        """Whether the least p-value that a test could have given would have been enough."""
        if not self._counts(evidence):
            return False
        return self._after_paying(evidence.test, evidence.floor) <= math.log10(self.alpha)

    def combined(self, evidence: Iterable[Evidence]) -> float:
        """The log10 p of all tests together: the smallest of the adjusted ones, at most 0."""
        adjusted = (self.adjusted(one) for one in evidence)
        return min((p for p in adjusted if p is not None), default=0.0)

    def level(self, test: str) -> float:
        """The log10 p that a test must reach to be significant."""
        return math.log10(self.alpha * self.stage * self.shares[test])

    def paid_for(self, evidence: Iterable[Evidence]) -> list[Evidence]:
        """Exact tests that have a p-value.

        Raises
        ------
        ValueError
            If an exact test is not on the menu or was given twice, so that nothing pays for it.
        """
        seen: set[str] = set()
        kept: list[Evidence] = []
        for one in evidence:
            if one.tier != Tier.EXACT:
                continue
            if one.test not in self.shares:
                raise ValueError(f"{one.test} is not on the menu, so nothing pays for it")
            if one.test in seen:
                raise ValueError(f"{one.test} was given twice")
            seen.add(one.test)
            if self._counts(one):
                kept.append(one)
        return kept

    def _counts(self, evidence: Evidence) -> bool:
        exact = evidence.tier == Tier.EXACT and evidence.status == Status.OK
        return exact and evidence.test in self.shares and not math.isnan(evidence.log10_p)

    def _after_paying(self, test: str, log10_p: float) -> float:
        paid = min(0.0, log10_p) - math.log10(self.shares[test]) - math.log10(self.stage)
        return min(0.0, paid)


def false_links(alpha: float, parts: Sequence[int]) -> float:
    """How many of several pairs of strangers are called linked on average, at most.

    A pair pays alpha for all of its tests, and equal numbers are a link of their own: a tensor
    counts as equal only if it has 10^`INFORMATION` arrangements. The sum bounds the chance of any
    false link too, however the pairs depend on each other.

    Parameters
    ----------
    alpha : the error of a pair.
    parts : for each pair, how many parts were compared.
    """
    by_equality = _TENSORS * 10.0**-INFORMATION
    return math.fsum(alpha + count * by_equality for count in parts)
