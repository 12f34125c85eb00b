"""Relations as signs: a letter, a few words and a colour for each, one table for all forms.

Letters are those of the terminal; colours are of Okabe and Ito and never stand alone.
"""

from __future__ import annotations

from dataclasses import dataclass

from kinprint.studies.words import Words


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


def p_value(log10_p: float | None) -> str:
    """A p-value in one short word: 0.31, 10^-7.2, 10^-5074."""
    if log10_p is None:
        return "–"
    if log10_p > -2:
        return f"{10**log10_p:.2f}"
    return f"10^{log10_p:.1f}" if log10_p > -100 else f"10^{log10_p:.0f}"
