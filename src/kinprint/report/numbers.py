"""Numbers as people read them; the data beside them keep every digit."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence


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
    text = f"{value:.{decimals}f}"
    return (text if float(text) else text.lstrip("-")).replace("-", "−")


def telling(value: float, digits: int = 3) -> str:
    """The same, but what is not zero never reads as zero."""
    size = abs(value)
    if not value or not math.isfinite(value) or size >= 0.5 * 10**-digits:
        return shown(value, digits)
    return shown(value, -math.floor(math.log10(size))) if size >= 1e-5 else _power(value)


def ends(values: Sequence[float]) -> list[str]:
    """Numbers of one scale, all with as many decimals as the one that needs most of them."""
    most = digits_for(values)
    for digits in range(most):
        if all(math.isclose(round(value, digits), value, abs_tol=1e-12) for value in values):
            most = digits
            break
    return [
        f"{value:,.{most}f}".replace("-", "−") if abs(value) < 1e7 else _power(value)
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
