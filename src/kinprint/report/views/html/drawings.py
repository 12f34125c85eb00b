"""Pictures of a comparison: chance and this pair, how rare, which layer answers to which.

A picture shows what the document holds; bins of a histogram and places on an axis are all that
is worked out here.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from markupsafe import Markup

from kinprint.report.numbers import finite, reading, rough
from kinprint.report.schema import LayerPair
from kinprint.report.statements import RULER
from kinprint.report.views.html import shapes
from kinprint.report.views.html.words import Say

_BINS = 24
_FEW = 30  # whole numbers up to so many get a bar each
_FAR = 0.75  # of the width of chance: a pair further off is drawn behind a break
_MOST_TIES = 240
_POOR = 0.2
_WIDTH, _LEFT, _RIGHT = 320, 8, 312
_TOP, _FLOOR = 30, 96
_CLEAR = 52  # pixels that two numbers under an axis need


def histogram(
    key: str,
    null: Sequence[float | None],
    statistic: float | None,
    say: Say,
) -> Markup | None:
    """What chance gives, and where this pair falls; None where there is no sample of chance.

    Where the pair is far off the axis breaks.
    """
    known = [value for value in null if value is not None and math.isfinite(value)]
    at = finite(statistic)
    if not known or at is None:
        return None
    bars, low, high = _bins(known)
    span = high - low
    reach_low, reach_high = low - _FAR * span, high + _FAR * span
    beyond = (at > reach_high) - (at < reach_low)
    begin, end = _axis(low, high, at, beyond)
    most = max(count for _, _, count in bars)

    def place(value: float) -> float:
        return begin + (end - begin) * (value - left) / ((right - left) or 1.0)

    left, right = (low, high) if beyond else (min(low, at), max(high, at))
    parts = [
        shapes.box(
            place(start) + 0.4,
            _FLOOR - (_FLOOR - _TOP - 6) * count / most,
            max(place(stop) - place(start) - 0.8, 1.2),
            (_FLOOR - _TOP - 6) * count / most,
            "bar-null",
        )
        for start, stop, count in bars
        if count
    ]
    parts.append(shapes.line(_LEFT, _FLOOR, _RIGHT, _FLOOR, "axis"))
    mark = place(at) if not beyond else (_RIGHT - 22 if beyond > 0 else _LEFT + 22)
    if beyond:
        parts += _break((end + mark) / 2 if beyond > 0 else (begin + mark) / 2)
    parts += _mark(mark, say)
    middle = (place(low) + place(high)) / 2
    chance = say("page.picture.chance", draws=len(known))
    parts.append(shapes.label(middle, 128, chance))
    ends = (place(low), min(known)), (place(high), max(known))
    parts += _ends(ends, mark, at)
    described = say(
        "page.picture.histogram",
        draws=len(known),
        low=rough(min(known)),
        high=rough(max(known)),
        at=rough(at),
    )
    return shapes.picture(
        key, (_WIDTH, 132), say("page.picture.histogram-title"), described, *parts
    )


def _bins(values: Sequence[float]) -> tuple[list[tuple[float, float, int]], float, float]:
    """Bars of a histogram, one for each whole number where there are few of them."""
    low, high = min(values), max(values)
    if all(value == round(value) for value in values) and high - low <= _FEW:
        counts = Counter(round(value) for value in values)
        bars = [(at - 0.5, at + 0.5, counts[at]) for at in range(round(low), round(high) + 1)]
        return bars, low - 0.5, high + 0.5
    width = (high - low) / _BINS
    if not (width > 0 and math.isfinite(width)):
        return [(low - 0.5, low + 0.5, len(values))], low - 1.0, low + 1.0
    found = [0] * _BINS
    for value in values:
        found[min(int((value - low) / width), _BINS - 1)] += 1
    return (
        [(low + at * width, low + (at + 1) * width, count) for at, count in enumerate(found)],
        low,
        high,
    )


def _axis(low: float, high: float, at: float, beyond: int) -> tuple[float, float]:
    """Where the axis begins and ends: room for the break is left on the side of the pair."""
    width = _RIGHT - _LEFT
    if beyond > 0:
        return _LEFT, _LEFT + 0.6 * width
    if beyond < 0:
        return _LEFT + 0.4 * width, _RIGHT
    return _LEFT + 4, _RIGHT - 4


def _break(x: float) -> list[Markup]:
    return [
        shapes.line(x - 3, _FLOOR, x + 4, _FLOOR, "gap"),
        shapes.line(x - 6, _FLOOR + 5, x, _FLOOR - 5, "axis"),
        shapes.line(x + 1, _FLOOR + 5, x + 7, _FLOOR - 5, "axis"),
    ]


def _mark(x: float, say: Say) -> list[Markup]:
    """The line of this pair with its name."""
    anchor = "end" if x > _WIDTH * 0.7 else "start" if x < _WIDTH * 0.3 else "middle"
    edge = {"end": min(x + 14, _RIGHT), "start": max(x - 14, _LEFT), "middle": x}[anchor]
    return [
        shapes.line(x, _TOP - 6, x, _FLOOR, "pair"),
        shapes.dot(x, _FLOOR, 4, "pair-dot"),
        shapes.label(edge, 16, say("page.picture.pair"), "strong", anchor),
    ]


def _ends(
    ends: tuple[tuple[float, float], tuple[float, float]], mark: float, at: float
) -> list[Markup]:
    """Numbers under the axis: the least and the most of chance, unless the pair covers them."""
    sides = zip(ends, ("start", "end"), strict=True)
    clear = [(x, value, side) for (x, value), side in sides if abs(x - mark) > _CLEAR]
    anchor = "end" if mark > _RIGHT - 20 else "start" if mark < _LEFT + 20 else "middle"
    told = [shapes.label(x, 112, rough(value), None, side) for x, value, side in clear]
    return [*told, shapes.label(mark, 112, rough(at), "strong", anchor)]


def likeness_ruler(key: str, likeness: float, told: Markup, say: Say) -> Markup:
    """Known pairs on a scale of likeness from strangers to casts, and this pair among them.

    Labels hang on lines from their ticks; those of the right end have rows of their own.
    """
    width, floor = 360, 36

    def place(known: float) -> float:
        return 8 + (width - 16) * max(0.0, min(known, 1.0))

    parts = [shapes.line(place(0.0), floor, place(1.0), floor, "axis")]
    for row, (name, known) in zip((2, 1, 0, 0), RULER, strict=True):
        x, low = place(known), floor + 20 + 16 * row
        anchor = "end" if known > 0.9 else "start" if known < 0.1 else "middle"
        edge = x - 4 if anchor == "end" else x
        label = say(f"page.likeness.{name}", likeness=f"{known:.2f}")
        parts.append(shapes.line(x, floor - 5, x, low - 2 if anchor == "end" else low - 12, "axis"))
        parts.append(shapes.label(edge, low, label, None, anchor))
    at = place(likeness)
    anchor = "end" if at > width * 0.8 else "start" if at < width * 0.2 else "middle"
    parts.append(shapes.dot(at, floor, 6, "pair-dot"))
    parts.append(shapes.label(at, 18, told, "strong", anchor))
    title = say("page.likeness.title", pair=told)
    return shapes.picture(key, (width, 92), title, title, *parts)


def ruler(key: str, log10_p: float | None, alpha: float, say: Say) -> Markup | None:
    """How rare this is by chance, on a scale of powers of ten with marks that people know."""
    value = finite(log10_p)
    if value is None or not 0 < alpha < 1:
        return None
    width, floor = 400, 62
    level = -math.log10(alpha)
    rare = max(-value, 0.0)
    top = max(level * 1.35, 9.0)
    far = rare > top
    end = 292 if far or rare > 0.8 * top else 384

    def place(power: float) -> float:
        return 16 + (end - 16) * power / top

    parts = [shapes.line(16, floor, 392, floor, "axis")]
    for power, words, drop in (
        (0.0, say("page.ruler.always"), 20),
        (-math.log10(0.05), say("page.ruler.twenty"), 34),
    ):
        x = place(power)
        parts += [
            shapes.line(x, floor - 5, x, floor + drop - 12, "axis"),
            shapes.label(x - 4, floor + drop, words, anchor="start"),
        ]
    x = place(level)
    parts += [
        shapes.line(x, floor - 22, x, floor + 5, "level"),
        shapes.label(x, floor + 20, shapes.level(alpha), "inked"),
        shapes.label(x, floor + 34, say("page.ruler.level")),
    ]
    mark = 368 if far else place(rare)
    if far:
        middle = (end + mark) / 2
        parts += [
            shapes.line(middle - 3, floor, middle + 4, floor, "gap"),
            shapes.line(middle - 6, floor + 5, middle, floor - 5, "axis"),
            shapes.line(middle + 1, floor + 5, middle + 7, floor - 5, "axis"),
        ]
    anchor = "end" if mark > 330 else "start" if mark < 70 else "middle"
    edge = {"end": min(mark + 18, 394), "start": max(mark - 8, 8), "middle": mark}[anchor]
    parts += [
        shapes.line(mark, 24, mark, floor, "pair"),
        shapes.dot(mark, floor, 5, "pair-dot"),
        shapes.label(edge, 16, say("page.ruler.pair", p=shapes.claim(value)), "strong", anchor),
    ]
    title, told = (
        say("page.ruler.title"),
        say("page.ruler.says", p=shapes.chance(value), level=shapes.level(alpha)),
    )
    return shapes.picture(key, (width, 100), title, told, *parts)


def layer_ties(
    key: str, pairs: Sequence[LayerPair], depths: tuple[int, int], names: tuple[str, str], say: Say
) -> Markup | None:
    """Which layer answers to which: two rows of layers, tied where they correspond.

    Of very deep models every so manieth tie is drawn.
    """
    deepest = max(depths)
    known = [one for one in pairs if 0 <= one.a < depths[0] and 0 <= one.b < depths[1]]
    if not known or deepest < 1:
        return None
    drawn = known[:: -(-len(known) // _MOST_TIES)]
    step = 372 / max(deepest - 1, 1)

    def place(layer: int) -> float:
        return 14 + step * layer

    parts = [
        shapes.line(
            place(one.a), 34, place(one.b), 88, "tie poor" if is_poor(one.quality) else "tie"
        )
        for one in drawn
    ]
    radius = max(min(step * 0.32, 4.0), 1.0)
    for y, depth, name, side in ((30, depths[0], names[0], 16), (92, depths[1], names[1], 114)):
        dots = range(0, depth, -(-depth // _MOST_TIES))
        parts += [shapes.dot(place(at), y, radius, "stop") for at in dots]
        parts.append(shapes.label(14, side, _short(name), "inked", "start"))
        last = say("page.picture.layers", count=depth)
        parts.append(shapes.label(390, side, last, anchor="end"))
    told = say("page.picture.ties", count=len(known), a=names[0], b=names[1])
    return shapes.picture(key, (400, 122), say("page.picture.ties-title"), told, *parts)


def is_poor(quality: float | None) -> bool:
    """Whether two layers that correspond hardly resemble each other."""
    return quality is not None and not quality >= _POOR


def _short(name: str, most: int = 34) -> str:
    return name if len(name) <= most else name[: most - 1] + "…"


def two_lines(
    key: str,
    rows: Sequence[tuple[int, float | None, float | None]],
    title: object,
    readout: str,
    say: Say,
) -> Markup | None:
    """Raw cosine and Pearson by layer on one scale, which begins below zero where values do."""
    known = [row for row in rows if any(finite(value) is not None for value in row[1:])]
    if not known:
        return None
    first, last = min(row[0] for row in known), max(row[0] for row in known)
    values = [value for row in known for value in row[1:] if value is not None]
    low = -1.0 if min(values) < -0.15 else -0.2
    step = 268 / max(last - first, 1)

    def place(layer: int, value: float) -> tuple[float, float]:
        bounded = max(min(value, 1.0), low)
        return 38 + step * (layer - first), 20 + 130 * (1.0 - bounded) / (1.0 - low)

    parts: list[Markup] = []
    for level in (1.0, 0.5, 0.0, *((-0.5, -1.0) if low < -0.5 else ())):
        y = place(first, level)[1]
        parts += [
            shapes.line(38, y, 308, y, "grid"),
            shapes.label(32, y + 4, rough(level), anchor="end"),
        ]
    thin = -(-len(known) // _MOST_TIES)
    for column, name in ((1, "a"), (2, "b")):
        told = say("page.dispute.cosine") if column == 1 else say("page.dispute.pearson")
        points = [(row[0], row[column]) for row in known[::thin]]
        drawn = [
            (layer, value) for layer, value in points if value is not None and math.isfinite(value)
        ]
        if len(drawn) > 1:
            parts.append(shapes.path([place(*point) for point in drawn], f"series-{name}"))
        radius = 3.2 if len(drawn) <= 24 else 1.2
        for layer, value in drawn:
            text = say("page.dispute.point", layer=layer, name=told, value=reading(value))
            parts.append(shapes.dot(*place(layer, value), radius, f"dot-{name}", data_value=text))
    ticks = sorted({first, (first + last) // 2, last})
    parts += [shapes.label(place(at, 0)[0], 168, at) for at in ticks]
    parts.append(shapes.label(173, 184, say("page.dispute.layer")))
    described = say(
        "page.dispute.described",
        count=len(known),
        low=reading(min(values)),
        high=reading(max(values)),
    )
    return shapes.picture(key, (_WIDTH, 190), title, described, *parts, data_told=readout)
