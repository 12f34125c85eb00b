"""Verdicts in words: the answer, how sure, why, what it does not show, how it could be wrong.

The words are a table in two languages. Nothing is computed here, and no sentence says more
than the relation does.
"""

from __future__ import annotations

import functools
import math
import tomllib
from collections.abc import Mapping
from pathlib import Path

from kinprint.records import Verdict

LANGUAGES = ("en", "ko")
_RELATED = ("derived", "partial", "same-init", "dependent")
_LIMITS = {
    "identical": ("direction", "intent"),
    "derived": ("direction", "intent", "unread"),
    "partial": ("direction", "intent", "unread"),
    "same-init": ("direction", "distillation", "unread"),
    "dependent": ("direction", "intent", "unread"),
    "no-evidence": ("distillation", "laundering", "unread"),
    "untestable": ("unread",),
}
_WRONG = {
    "derived": ("doctored", "indexwise", "undertrained", "structure"),
    "partial": ("doctored", "indexwise", "structure"),
    "same-init": ("doctored", "indexwise", "structure"),
    "dependent": ("doctored", "indexwise", "structure"),
}

_OFTEN = math.log10(0.5)
_KINDS = {"derived": "kind", "same-init": "kind-same-init"}


@functools.cache
def _table() -> Mapping[str, Mapping[str, Mapping[str, str]]]:
    path = Path(__file__).with_name("verdict_words.toml")
    return tomllib.loads(path.read_text(encoding="utf-8"))


def sentence(verdict: Verdict, a: str, b: str, language: str = "en") -> str:
    """The answer in one sentence or two."""
    parts = ", ".join(part_name(part, language) for part in verdict.roles)
    p = _p_value(verdict.log10_p)
    norms = verdict.relation == "derived" and "layers-not-read" in verdict.reasons
    key = "derived-norms" if norms else verdict.relation
    return _say("answer", key, language, a=a, b=b, parts=parts, p=p)


def sureness(verdict: Verdict, language: str = "en") -> str:
    """How often chance does this, in words."""
    if verdict.relation == "identical":
        return _say("sure", "equal", language)
    if verdict.relation == "untestable":
        return _say("sure", "none", language)
    if verdict.relation in _RELATED:
        digits = max(math.floor(-verdict.log10_p), 0)
        told = _say("sure", "certain", language, digits=digits)
        kind = _KINDS.get(verdict.relation)
        return f"{told} {_say('sure', kind, language)}" if kind else told
    if verdict.log10_p > _OFTEN:
        return _say("sure", "often", language)
    return _say("sure", "chance", language, percent=_percent(verdict.log10_p))


def reasons(verdict: Verdict, language: str = "en") -> tuple[str, ...]:
    """The steps that led to the relation, one sentence each."""
    found: list[str] = []
    for key in verdict.reasons:
        name, _, part = key.partition(":")
        if name not in _table()["reason"]:
            continue  # of a later version
        found.append(_say("reason", name, language, part=part_name(part, language)))
    return tuple(found)


def power(verdict: Verdict, language: str = "en") -> str:
    """The smallest relation that would have been seen: by the most sensitive test."""
    if not verdict.power:
        return _say("power", "none", language)
    test, effect = min(verdict.power, key=lambda one: one[1])
    return _say("power", "some", language, test=test, effect=f"{effect:.2g}")


def not_shown(verdict: Verdict, language: str = "en") -> tuple[str, ...]:
    """What the relation does not show."""
    return tuple(_say("limit", key, language) for key in _LIMITS[verdict.relation])


def ways_to_be_wrong(verdict: Verdict, language: str = "en") -> tuple[str, ...]:
    """What could make the relation false although every number is right."""
    return tuple(_say("wrong", key, language) for key in _WRONG.get(verdict.relation, ()))


def part_name(part: str, language: str = "en") -> str:
    """What a part of a model is called; other words stay as they are."""
    return _table()["part"].get(part, {}).get(language, part)


def _say(kind: str, key: str, language: str, **values: object) -> str:
    return _table()[kind][key][language].format(**values)


def _p_value(log10_p: float) -> str:
    if log10_p <= -3:
        return f"p ≤ 10^{math.ceil(log10_p)}"
    return f"p = {_rounded_up(10**log10_p)}"


def _rounded_up(p: float) -> str:
    """Two digits, towards the weaker claim."""
    if p >= 1:
        return "1"
    scale = 10.0 ** (1 - math.floor(math.log10(p)))
    return f"{min(math.ceil(p * scale - 1e-9) / scale, 1.0):.2g}"


def _percent(log10_p: float) -> str:
    share = 100 * 10**log10_p
    return f"{share:.0f} %" if share >= 10 else f"{share:.2g} %"
