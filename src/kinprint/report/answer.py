"""The answer in words: what it says, how sure, why, what it does not show, how it could be wrong.

Nothing is computed here, and no sentence says more than the relation does.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from kinprint import text
from kinprint.records import Relation, Verdict
from kinprint.report.numbers import p_claim, percent
from kinprint.report.relations import SIGNS
from kinprint.report.schema import ComparisonDocument, FailedPair, PairPart, Unread, VerdictPart
from kinprint.report.translation import Translatable, translated

_OFTEN = math.log10(0.5)


def summary_of(verdict: Verdict, a: str, b: str, language: str) -> str:
    """The answer to be put down in a document: one sentence or two."""
    return text.say(
        f"verdict.answer.{verdict.relation}",
        language,
        a=a,
        b=b,
        parts=part_names(verdict.linked, language),
        p=p_claim(verdict.log10_p),
    )


def sureness_of(verdict: Verdict, language: str) -> str:
    """How often chance does this, to be put down in a document."""
    relation = Relation(verdict.relation)
    if relation is Relation.IDENTICAL:
        return text.say("verdict.sure.equal", language)
    if relation is Relation.UNTESTABLE:
        return text.say("verdict.sure.none", language)
    if SIGNS[relation].linked:
        digits = max(math.floor(-verdict.log10_p), 0)
        said = text.say("verdict.sure.certain", language, digits=digits)
        if relation in (Relation.DERIVED, Relation.SAME_INIT):
            said += " " + text.say(f"verdict.kind.{relation}", language)
        return said
    if verdict.log10_p > _OFTEN:
        return text.say("verdict.sure.often", language)
    return text.say("verdict.sure.chance", language, percent=percent(verdict.log10_p))


def summary(document: Translatable, part: VerdictPart | PairPart, language: str) -> str:
    """The answer, as a document has it."""
    return _put_down(document, part.summary, {"ko": part.summary_ko}, language)


def sureness(document: ComparisonDocument, language: str) -> str:
    """How sure it is, as a document has it."""
    part = document.verdict
    return _put_down(document, part.sureness, {"ko": part.sureness_ko}, language)


def reasons(document: ComparisonDocument, language: str) -> list[str]:
    """The steps that led to the relation, one sentence each; those of later versions are left out.

    A step may name a part of the models, or what a test missed in its own words.
    """
    found = []
    for reason in document.verdict.reasons:
        step, _, detail = reason.partition(":")
        key = f"verdict.reason.{step}"
        if text.knows(key):
            named = part_name(detail, language)
            shown = translated(document, detail, language) if named == detail else named
            found.append(text.say(key, language, part=shown))
    return found


def power(part: VerdictPart, language: str) -> str:
    """The smallest relation that would have been seen: by the most sensitive test."""
    known = {test: effect for test, effect in part.power.items() if math.isfinite(effect)}
    if not known:
        return text.say("verdict.power.none", language)
    test, effect = min(known.items(), key=lambda one: one[1])
    return text.say("verdict.power.some", language, test=test, effect=f"{effect:.2g}")


def explanation(document: ComparisonDocument, language: str) -> list[str]:
    """How sure, why, and what would have been seen where nothing was."""
    part = document.verdict
    seen = [power(part, language)] if part.relation == Relation.NO_EVIDENCE else []
    return [sureness(document, language), *reasons(document, language), *seen]


def not_shown(part: VerdictPart, language: str) -> list[str]:
    """What the relation does not show."""
    return [
        text.say(f"verdict.limit.{key}", language) for key in SIGNS[part.relation].does_not_show
    ]


def ways_to_be_wrong(part: VerdictPart, language: str) -> list[str]:
    """What could make the relation false although every number is right."""
    doubts = SIGNS[part.relation].could_be_wrong
    return [text.say(f"verdict.wrong.{key}", language) for key in doubts]


def part_name(part: str, language: str) -> str:
    """What a part of a model is called; other words stay as they are."""
    key = f"verdict.part.{part}"
    return text.say(key, language) if text.knows(key) else part


def part_names(parts: Iterable[str], language: str) -> str:
    """Parts of a model in a row."""
    return ", ".join(part_name(part, language) for part in parts)


def error(document: Translatable, lost: Unread | FailedPair, language: str) -> str:
    """Why a model could not be read or a pair not be compared, as a document has it."""
    return _put_down(document, lost.error, {"ko": lost.error_ko}, language)


def _put_down(
    document: Translatable, english: str, fields: Mapping[str, str], language: str
) -> str:
    """A sentence in a language: from the field that it has there, else from the translations."""
    return fields[language] if language in fields else translated(document, english, language)
