"""Relations as signs: a letter, a few words and a colour for each, one table for all forms.

Letters are those of the terminal; colours are of Okabe and Ito and never stand alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from kinprint.report.documents import EvidencePart
from kinprint.text import Words


@dataclass(frozen=True, slots=True)
class Sign:
    """How a relation is shown where there is room for a letter only, and what it is called.

    `terminal` is a colour that every terminal has.
    """

    mark: str
    words: Words
    colour: str
    terminal: str


SIGNS = {
    "identical": Sign("=", Words("same model", "같은 모델"), "#5b2a86", "magenta"),
    "derived": Sign("D", Words("share trained weights", "학습된 가중치 공유"), "#0b4f86", "blue"),
    "partial": Sign("P", Words("share some parts", "일부만 공유"), "#2b83ba", "cyan"),
    "same-init": Sign("S", Words("same initial weights", "초기 가중치 공유"), "#8a6d00", "yellow"),
    "dependent": Sign("?", Words("not independent", "독립이 아님"), "#a63c00", "yellow"),
    "no-evidence": Sign("·", Words("no evidence", "증거 없음"), "#6b7280", "default"),
    "untestable": Sign("x", Words("cannot be tested", "검정할 수 없음"), "#6b7280", "yellow"),
}
RELATED = ("identical", "derived", "partial")
CLOSE = (*RELATED, "same-init", "dependent")


def own_p(one: EvidencePart) -> float | None:
    """A test's log10 p to be shown; none for what has none, a rule."""
    return None if one.tier == "rule" else one.log10_p


def p_value(log10_p: float | None) -> str:
    """A p-value in one short word, rounded towards the weaker claim: 0.31, 10^-7.2, 10^-5074."""
    if log10_p is None:
        return "–"
    if log10_p > -2:
        return f"{math.ceil(100 * 10**log10_p - 1e-9) / 100:.2f}"
    if log10_p > -100:
        return f"10^{math.ceil(10 * log10_p) / 10:.1f}"
    return f"10^{math.ceil(log10_p)}"
