"""Evidence as a page shows it: strongest first, each test with its question and its picture."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from markupsafe import Markup

from kinprint.lineage.tests.menu import LEVELS, menu
from kinprint.report.documents import ComparisonDocument, EvidencePart
from kinprint.report.numbers import shown
from kinprint.report.web import drawings, shapes
from kinprint.report.web.words import Say, knows, told
from kinprint.studies.titles import role_title

ASIDE = ("context", "rule")
"""States of what is no test of a link."""
_LAYERS = 12  # runs of layers that are listed
_DETAILS = 16  # numbers about a test that are listed
_MOST = 60  # tests of a document; ours have less than thirty


@dataclass(frozen=True, slots=True)
class TestView:
    """A test that gave a number. `state` is found, weak, nothing, context or rule."""

    test: str
    title: Markup | str
    asks: Markup | str
    state: str
    outcome: Markup
    reading: Markup | str
    picture: Markup | None
    p: Markup
    claim: Markup | None
    p_sort: str
    adjusted: Markup
    adjusted_sort: str
    effect: str
    effect_sort: str
    marks: tuple[Markup, ...]
    facts: tuple[tuple[Markup | str, object], ...]


@dataclass(frozen=True, slots=True)
class SilentView:
    """A test that gave none, and why."""

    test: str
    title: Markup | str
    why: Markup


def spoken(document: ComparisonDocument, language: str, say: Say) -> list[TestView]:
    """Tests that gave a number: exact ones first, the strongest before all."""
    found = [one for one in document.evidence if one.status == "ok"]
    ranked = sorted(found, key=_strength)[:_MOST]
    level = math.log10(document.verdict.alpha) if 0 < document.verdict.alpha < 1 else -math.inf
    return [_view(one, f"{language}-e{at}", level, language, say) for at, one in enumerate(ranked)]


def leading(tests: Sequence[TestView], most: int) -> tuple[list[TestView], list[TestView]]:
    """The strongest test of each family, and all the others, both strongest first."""
    best: dict[str, TestView] = {}
    for one in tests:
        if one.state not in ASIDE:
            best.setdefault(one.test.partition(".")[0], one)
    first = list(best.values())[:most] or list(tests[:most])
    return first, [one for one in tests if one not in first]


def silent(document: ComparisonDocument, say: Say) -> list[SilentView]:
    """Tests that gave no number."""
    return [
        SilentView(one.test, title(one.test, say), _why(one, say))
        for one in document.evidence
        if one.status != "ok"
    ][:_MOST]


def title(test: str, say: Say) -> Markup | str:
    """What a test is called on pages; its own name where nobody gave it another."""
    return told(say, "test", test)


def roles_in_words(roles: Iterable[str], language: str) -> str:
    """Kinds of tensors by their names for people."""
    words = (role_title(role) for role in roles)
    return ", ".join(one[language] for one in words)


def layers_in_words(layers: Iterable[int], say: Say) -> Markup | str:
    """Layers as runs: 0–5, 8; those outside the layers by their word."""
    known = sorted(set(layers))
    inside = [layer for layer in known if layer >= 0]
    runs = []
    for _, group in groupby(enumerate(inside), key=lambda pair: pair[1] - pair[0]):
        run = [layer for _, layer in group]
        runs.append(str(run[0]) if len(run) == 1 else f"{run[0]}–{run[-1]}")
    if len(inside) < len(known):
        runs.append(str(say("evidence.outside-layers")))
    listed = ", ".join(runs[:_LAYERS])
    more = len(runs) - _LAYERS
    return say("evidence.more-layers", shown=listed, count=more) if more > 0 else listed


def _strength(one: EvidencePart) -> tuple[bool, bool, float, float]:
    p = shapes.finite(one.adjusted if one.adjusted is not None else one.log10_p)
    raw = shapes.finite(one.log10_p)
    return one.tier != "exact", p is None, p or 0.0, raw or 0.0


def _view(one: EvidencePart, key: str, level: float, language: str, say: Say) -> TestView:
    state = _state(one, level)
    tells = one.bound != "none"  # a look at gains has no probability
    deviations = one.deviations
    marks = [say("evidence.learnt")] if one.learnt else []
    marks += [say(f"evidence.{one.tier}-mark")] if one.tier != "exact" else []
    family = f"asks.{one.test.partition('.')[0]}"
    return TestView(
        test=one.test,
        title=title(one.test, say),
        asks=say(family) if knows(family) else "",
        state=state,
        outcome=say(f"evidence.{state}"),
        reading=_reading(one, state, deviations, say),
        picture=drawings.histogram(key, one.null, one.statistic, deviations, say),
        p=shapes.chance(one.log10_p) if tells else Markup("–"),
        claim=shapes.claim(one.log10_p) if tells else None,
        p_sort=_sortable(one.log10_p if tells else None),
        adjusted=shapes.chance(one.adjusted) if tells else Markup("–"),
        adjusted_sort=_sortable(one.adjusted if tells else None),
        effect=shapes.reading(one.effect),
        effect_sort=_sortable(one.effect),
        marks=tuple(marks),
        facts=tuple(_facts(one, language, say)),
    )


def _state(one: EvidencePart, level: float) -> str:
    if one.tier == "rule":
        return "rule"
    if one.tier != "exact":
        return "context"
    raw = shapes.finite(one.log10_p)
    paid = shapes.finite(one.adjusted) if one.adjusted is not None else raw
    if paid is not None and paid <= level:
        return "found"
    return "weak" if raw is not None and raw <= math.log10(0.001) else "nothing"


def _reading(one: EvidencePart, state: str, deviations: float | None, say: Say) -> Markup | str:
    """Where this pair falls among what chance gives, in a sentence."""
    known = [value for value in one.null if value is not None and math.isfinite(value)]
    at = shapes.finite(one.statistic)
    if not known or at is None:
        return ""
    if one.bound == "conformal":
        low, high = (shapes.reading(value) for value in (min(known), max(known)))
        return say("evidence.known", low=low, high=high, at=shapes.reading(at))
    pairs = shapes.finite(one.details.get("pairs"))
    if pairs is not None and "fixed points" in one.bound:
        counts = {"count": at, "pairs": pairs, "draws": len(known), "most": max(known)}
        return say("evidence.counts", **{name: shown(value, 0) for name, value in counts.items()})
    if at > max(known):
        outside = say("evidence.outside", draws=len(known))
        if deviations is None or state == "nothing":
            return outside
        return outside + " " + say("evidence.far", deviations=shapes.rough(deviations))
    return say("evidence.inside") if state == "nothing" else ""


def _facts(one: EvidencePart, language: str, say: Say) -> Iterable[tuple[Markup | str, object]]:
    """What experts ask next."""
    entry = _menu_words(one.test, language)
    if entry:
        yield say("evidence.menu"), entry
    yield say("evidence.group"), told(say, "group", one.group)
    if one.bound:
        yield say("evidence.bound"), told(say, "bound", one.bound)
    yield say("evidence.log"), shapes.reading(one.log10_p, 2)
    if one.adjusted is not None:
        yield say("evidence.adjusted"), shapes.chance(one.adjusted)
    if one.share is not None:
        yield say("evidence.share"), f"{100 * one.share:.1f} %"
    if one.floor is not None and one.floor < 0:
        yield say("evidence.floor"), shapes.chance(one.floor)
    if one.statistic is not None:
        yield say("evidence.statistic"), shapes.reading(one.statistic)
    if one.n:
        yield say("evidence.n"), f"{one.n:,}"
    if one.roles:
        yield say("evidence.roles"), roles_in_words(one.roles, language)
    if one.layers:
        yield say("evidence.layers"), layers_in_words(one.layers, say)
    for name, value in list(one.details.items())[:_DETAILS]:
        yield name, shapes.reading(value)


def _menu_words(test: str, language: str) -> str:
    found: Sequence[str] = [
        entry.words[language] for entry in menu(LEVELS[-1]) if entry.name == test
    ]
    return found[0] if found else ""


def _why(one: EvidencePart, say: Say) -> Markup:
    reason = told(say, "reason", one.reason)
    if one.status in ("needs", "guarded", "undefined"):
        return say(f"silent.{one.status}", reason=reason)
    return say("silent.other", status=one.status, reason=reason)


def _sortable(value: float | None) -> str:
    return "" if shapes.finite(value) is None else f"{value:.6g}"
