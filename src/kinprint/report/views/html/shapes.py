"""What pictures in pages are made of: SVG elements, numbers as labels, colours by class.

Everything is markup built from escaped parts. Colours are classes of the style sheet, so that
one picture serves light, dark and paper.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

from markupsafe import Markup, escape

from kinprint.errors import printable
from kinprint.records import Relation
from kinprint.report.numbers import NOTHING, SENTENCE, finite, rounded_p

_SENTENCE = 5000
_POWER_OF_TEN = re.compile(r"\b10\^(-?[0-9]{1,9})")
_CLAIM = re.compile(r"\bp [≤=] (?:10<sup>[^<]*</sup>|\d[\d.]*\d|\d)")
_LONGEST = 600
_RAISED = re.compile(r"<sup>([^<]*)</sup>")
_SMALL = str.maketrans("0123456789−-,.", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁻ ·")
_STEPS = 10
_LOUD = 0.35  # likeness below zero that is coloured as strongly as it gets


def tag(name: str, *inside: object, **attributes: object) -> Markup:
    """An element; `_` in names of attributes stands for `-`, `class_` for `class`."""
    told = "".join(
        f' {_attribute(key)}="{escape(flat(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    body = Markup("").join(one if isinstance(one, Markup) else flat(one) for one in inside)
    return Markup(f"<{name}{told}>{body}</{name}>" if inside else f"<{name}{told}/>")


def picture(
    key: str,
    size: tuple[int, int],
    title: object,
    description: object,
    *parts: Markup,
    class_: str = "picture",
    role: str = "img",
    **more: str,
) -> Markup:
    """A picture that says its title and what it shows to whoever cannot see it.

    `key` makes ids and must be its own on the page. One with links in it has another `role`.
    """
    width, height = size
    return tag(
        "svg",
        tag("title", flat(title), id=f"{key}-t"),
        tag("desc", flat(description), id=f"{key}-d"),
        *parts,
        class_=class_,
        viewBox=f"0 0 {width} {height}",
        role=role,
        aria_labelledby=f"{key}-t",
        aria_describedby=f"{key}-d",
        **more,
    )


def label(
    x: float, y: float, text: object, class_: str | None = None, anchor: str = "middle"
) -> Markup:
    """A text in a picture."""
    return tag("text", flat(text), x=num(x), y=num(y), class_=class_, text_anchor=anchor)


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> Markup:
    """A straight line."""
    return tag("line", x1=num(x1), y1=num(y1), x2=num(x2), y2=num(y2), class_=class_)


def box(x: float, y: float, width: float, height: float, class_: str) -> Markup:
    """A rectangle."""
    return tag("rect", x=num(x), y=num(y), width=num(width), height=num(height), class_=class_)


def dot(x: float, y: float, radius: float, class_: str, **more: object) -> Markup:
    """A circle."""
    return tag("circle", cx=num(x), cy=num(y), r=num(radius), class_=class_, **more)


def path(points: Iterable[tuple[float, float]], class_: str) -> Markup:
    """A line through points."""
    told = " ".join(f"{num(x)},{num(y)}" for x, y in points)
    return Markup('<polyline points="{}" class="{}"/>').format(told, class_)  # long, and ours


def num(value: float) -> str:
    """A coordinate: a tenth of a pixel is enough, and the same everywhere."""
    text = f"{value:.1f}"
    return text.removesuffix(".0") if text != "-0.0" else "0"


def chance(log10_p: float | None) -> Markup:
    """A p-value: 0.31, or a power of ten."""
    value = finite(log10_p)
    if value is None:
        return Markup(NOTHING)
    found = rounded_p(value, SENTENCE)
    return Markup(found.number) if found.number else ten_to(found.power)


def claim(log10_p: float | None) -> Markup:
    """A p-value with its sign: a power of ten is a bound."""
    value = finite(log10_p)
    sign = "≤" if value is not None and rounded_p(value, SENTENCE).power else "="
    return Markup("p {} {}").format(sign, chance(value))


def level(alpha: float) -> Markup:
    """A level of error: a power of ten where it is one."""
    power = math.log10(alpha)
    near = round(power)
    return ten_to(f"{near}") if near <= -3 and abs(power - near) < 1e-9 else Markup(f"{alpha:g}")


def ten_to(power: str) -> Markup:
    """A power of ten."""
    return Markup(f"10<sup>{power.replace('-', '−')}</sup>")


def heat(value: float | None) -> str:
    """The class of a likeness from −1 to 1: eleven steps up, three down."""
    known = finite(value)
    if known is None:
        return "empty"
    step = round(max(-1.0, min(known, 1.0)) * _STEPS)
    if step >= 0:
        return f"h{step}"
    return f"m{min(3, math.ceil(-known / _LOUD * 3))}"


_RINGS = {
    Relation.IDENTICAL: (("ring", 28, 20, 15), ("common", 28, 20, 10)),
    Relation.SAME_WEIGHTS: (("ring", 28, 20, 15), ("dashed", 32, 20, 15)),
    Relation.LAUNDERED: (("ring", 25, 20, 15), ("dashed", 39, 20, 15)),
    Relation.NO_EVIDENCE: (("ring", 15, 20, 11), ("ring", 49, 20, 11)),
    Relation.UNTESTABLE: (("dashed", 15, 20, 11), ("dashed", 49, 20, 11)),
    Relation.DEPENDENT: (("dashed", 24, 20, 14), ("dashed", 40, 20, 14)),
    Relation.PARTIAL: (("ring", 22, 20, 14), ("ring", 42, 20, 14)),
    Relation.DERIVED: (("ring", 25, 20, 15), ("ring", 39, 20, 15)),
    Relation.SAME_INIT: (("ring", 15, 13, 10), ("ring", 49, 13, 10)),
}
_COMMON = {
    Relation.LAUNDERED: "M32 6.7 A15 15 0 0 1 32 33.3 A15 15 0 0 1 32 6.7Z",
    Relation.DERIVED: "M32 6.7 A15 15 0 0 1 32 33.3 A15 15 0 0 1 32 6.7Z",
    Relation.PARTIAL: "M32 10.2 A14 14 0 0 1 32 29.8 A14 14 0 0 1 32 10.2Z",
    Relation.SAME_INIT: "M29 36 a3.4 3.4 0 1 0 6.8 0 a3.4 3.4 0 1 0 -6.8 0Z",
}


def glyph(relation: Relation, class_: str = "glyph") -> Markup:
    """Two circles that say a relation without colour: how far they overlap, and what is common.

    It stands beside the word for it, so it is hidden from whoever listens.
    """
    rings = [dot(x, y, r, class_=name) for name, x, y, r in _RINGS[relation]]
    common = _COMMON.get(relation)
    extra = [tag("path", d=common, class_="common")] if common else []
    if relation == Relation.SAME_INIT:
        extra += [line(30, 33, 19, 22, "ring"), line(34, 33, 45, 22, "ring")]
    if relation in (Relation.DEPENDENT, Relation.UNTESTABLE):
        extra.append(label(32, 25.5, "?", "sign"))
    return tag("svg", *rings, *extra, class_=class_, viewBox="0 0 64 40", aria_hidden="true")


def flat(value: object) -> str:
    """Text without markup, as pictures and attributes need it: powers become raised digits."""
    if not isinstance(value, Markup):
        return printable(str(value), _LONGEST)
    raised = _RAISED.sub(lambda found: found.group(1).translate(_SMALL), str(value))
    return printable(Markup(raised).striptags(), _LONGEST)


def _attribute(key: str) -> str:
    return key.rstrip("_").replace("_", "-")


def powers(text: str) -> Markup:
    """A sentence with powers of ten raised and p-values that no end of a line breaks."""
    shown = str(escape(printable(text, _SENTENCE)))
    raised = _POWER_OF_TEN.sub(r"10<sup>\1</sup>", shown).replace("<sup>-", "<sup>−")
    return Markup(_CLAIM.sub(r'<span class="claim">\g<0></span>', raised))
