"""Numbers as people read them; the data beside them keep every digit.

A p-value is rounded here and nowhere else, and always up: what is shown never claims more than
what was found. As all views ask for it, there is one rule (`rounded_p`) and a style for each place.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from msgspec import Struct

from kinprint import text
from kinprint.records import PartState, Relation
from kinprint.studies.results import Cell

NOTHING = "–"
_GROUPED = 100_000  # whole numbers from which on thousands are set apart
_EQUAL = (Relation.IDENTICAL, Relation.SAME_WEIGHTS)


class PStyle(Struct, frozen=True):
    """How p-values are written in some place.

    Attributes
    ----------
    powers : log10 p from which on downwards a power of ten is written.
    decimals : of larger ones; None for two digits that count.
    tenths : log10 p above which the exponent has a decimal.
    """

    powers: float
    decimals: int | None = None
    tenths: float = 0.0


SENTENCE = PStyle(powers=-3)
"""For sentences and pages: 0.31, 10^-7."""
SHORT = PStyle(powers=-2, decimals=2, tenths=-100)
"""For tables and pictures: 0.31, 10^-7.2, 10^-5074."""


class RoundedP(Struct, frozen=True):
    """A p-value rounded up: a `number`, or a `power` of ten that bounds it."""

    number: str = ""
    power: str = ""

    def __str__(self) -> str:
        return self.number or f"10^{self.power}"


def rounded_p(log10_p: float, style: PStyle) -> RoundedP:
    """A p-value as it is written in some place, rounded towards the weaker claim."""
    if log10_p > style.powers:
        p = min(10**log10_p, 1.0)
        if style.decimals is None:
            return RoundedP(_two_digits(p))
        return RoundedP(f"{rounded_up(p, style.decimals):.{style.decimals}f}")
    if log10_p > style.tenths:
        return RoundedP(power=f"{math.ceil(10 * log10_p) / 10:.1f}")
    return RoundedP(power=f"{math.ceil(log10_p)}")


def rounded_up(value: float, decimals: int) -> float:
    """The least number with so many decimals that is not smaller."""
    scale = 10.0**decimals
    return math.ceil(value * scale - 1e-9) / scale


def p_value(log10_p: float | None) -> str:
    """A p-value in one short word: 0.31, 10^-7.2, 10^-5074."""
    return NOTHING if log10_p is None else str(rounded_p(log10_p, SHORT))


def p_claim(log10_p: float) -> str:
    """A p-value as a claim: p = 0.31, or p ≤ 10^-12, since a power of ten is a bound."""
    found = rounded_p(log10_p, SENTENCE)
    return f"p {'=' if found.number else '≤'} {found}"


def level(alpha: float) -> str:
    """A level of error: a power of ten where it is one."""
    power = math.log10(alpha)
    near = round(power)
    return f"10^{near}" if near <= -3 and abs(power - near) < 1e-9 else f"{alpha:g}"


def percent(log10_p: float) -> str:
    """A p-value in per cent: 62 %, 4.7 %."""
    share = 100 * 10**log10_p
    return f"{math.ceil(share - 1e-9)} %" if share >= 10 else f"{_two_digits(share)} %"


def log10_reading(log10_p: float | None) -> str:
    """A log10 p for a table of details, rounded up."""
    value = finite(log10_p)
    if value is None:
        return NOTHING
    decimals = 2 if abs(value) < 10 else 1 if abs(value) < 100 else 0
    return telling(rounded_up(value, decimals), 2)


def likeness_in_words(likeness: float, equal: bool) -> str:
    """A likeness with two decimals; 1.00 is kept for what is equal, rounding aside.

    What is nearly equal has up to four, which are cut off and not rounded.
    """
    if equal:
        return "1.00"
    if not likeness >= 0.995:  # nor what is no number
        return fixed(min(likeness, 0.99), 2)
    decimals = 3 if likeness < 0.9995 else 4
    return fixed(min(math.floor(likeness * 10**decimals) / 10**decimals, 0.9999), decimals)


def likeness_of_models(likeness: float, relation: Relation) -> str:
    """The likeness of two whole models, which are equal where their relation says so."""
    return likeness_in_words(likeness, relation in _EQUAL)


def are_equal(linked: Iterable[tuple[PartState, float | None]]) -> bool:
    """Whether linked parts are equal, as far as they are linked, by their states and likenesses."""
    return all(state is not PartState.SHARED or likeness == 1 for state, likeness in linked)


def finite(value: float | None) -> float | None:
    """A number, or None for whatever is none."""
    return value if value is not None and math.isfinite(value) else None


def reading(value: float | None, digits: int = 3) -> str:
    """A number as people read it; a dash where there is none."""
    known = finite(value)
    return NOTHING if known is None else telling(known, digits)


def fixed(value: float, decimals: int) -> str:
    """A number with so many decimals and a plain minus, which a zero never has."""
    return f"{value:z.{decimals}f}"


def rough(value: float) -> str:
    """A number for an axis."""
    return shown(value, 2 if abs(value) < 10 else 0)


def shown(value: float, digits: int = 3) -> str:
    """A number with so many decimals, fewer where it is large."""
    if not math.isfinite(value):
        return "–"
    size = abs(value)
    if size >= 1e7:
        return _power(value)
    if size >= 1000:
        return f"{value:,.0f}".replace("-", "−")
    decimals = digits if size < 10 else max(digits - (1 if size < 100 else 2), 0)
    return fixed(value, decimals).replace("-", "−")


def telling(value: float, digits: int = 3) -> str:
    """The same, but what is not zero never reads as zero."""
    size = abs(value)
    if not value or not math.isfinite(value) or size >= 0.5 * 10**-digits:
        return shown(value, digits)
    return shown(value, -math.floor(math.log10(size))) if size >= 1e-5 else _power(value)


def cell_words(value: Cell, language: str) -> str:
    """A value in a table as people read it: numbers rounded, since the files keep every digit.

    Text comes as it is: the view that shows it makes it harmless.
    """
    match value:
        case None:
            return NOTHING
        case bool():
            return text.say("report.yes" if value else "report.no", language)
        case float():
            return telling(value, 4)
        case int():
            return f"{value:,}" if abs(value) >= _GROUPED else str(value)
    return value


def ends(values: Sequence[float]) -> list[str]:
    """Numbers of one scale, all with as many decimals as the one that needs most of them."""
    most = digits_for(values)
    for digits in range(most):
        if all(math.isclose(round(value, digits), value, abs_tol=1e-12) for value in values):
            most = digits
            break
    return [
        f"{value:z,.{most}f}".replace("-", "−") if abs(value) < 1e7 else _power(value)
        for value in values
    ]


def digits_for(values: Iterable[float]) -> int:
    """How many decimals tell values between these apart."""
    known = list(values)
    span = max(known) - min(known) if known else 0.0
    if span <= 0:
        return 3
    return min(max(2 - math.floor(math.log10(span) + 0.3), 2), 6)


def _power(value: float) -> str:
    mantissa, _, power = f"{value:.1e}".partition("e")
    return f"{mantissa}e{int(power)}".replace("-", "−")


def _two_digits(value: float) -> str:
    """Two digits that count, rounded up."""
    if value <= 0:
        return "0"
    scale = 10.0 ** (1 - math.floor(math.log10(value)))
    return f"{math.ceil(value * scale - 1e-9) / scale:.2g}"


def share_in_words(share: float) -> str:
    """A share in per cent, rounded down, so that "at least" is true of it, and not to nothing."""
    if share >= 1:
        return "100 %"
    if share >= 0.001:
        digits = 0 if 0.1 <= share <= 0.99 else 1
        scale = 10**digits
        return f"{math.floor(share * 100 * scale + 1e-9) / scale:.{digits}f} %"
    return "< 0.1 %" if share > 0 else "0 %"


def share_said(share: float) -> text.Words | str:
    """The same for a sentence, where a language may have a word for below."""
    shown = share_in_words(share)
    if not shown.startswith("< "):
        return shown
    return text.words("report.share.below", limit=shown.removeprefix("< "))
