"""What was found between the two models and those that were given as unrelated to them."""

from __future__ import annotations

import math
from collections.abc import Mapping

from msgspec import Struct

from kinprint import text
from kinprint.records import Status, Tier
from kinprint.report.numbers import finite, p_claim
from kinprint.report.schema import ComparisonDocument, ControlPart, EvidencePart
from kinprint.titles import public_name


class ControlFinding(Struct, frozen=True):
    """One control beside the two models.

    Attributes
    ----------
    control
        What it is called, without the folders of whoever compared.
    log10_p
        By the name of each model, the log10 p of all tests together, after paying for their
        number; None where no test could be made.
    linked
        Models with which it is linked, so that it is no control.
    """

    control: str
    log10_p: Mapping[str, float | None]
    linked: tuple[str, ...]


def findings(document: ComparisonDocument) -> list[ControlFinding]:
    """What was found for each control, at the level of the verdict and paid for each test; not for
    the number of controls, so that one among many may be called linked by chance."""
    exact = [one for one in document.evidence if one.tier is Tier.EXACT]
    shares = {one.test: _share(one, len(exact)) for one in exact}
    level = math.log10(document.verdict.link.alpha)
    found: dict[str, dict[str, float | None]] = {}
    for part in document.controls:
        of_control = found.setdefault(part.control, {})
        of_control[model_of(document, part)] = _together(part, shares)
    return [
        ControlFinding(
            public_name(control),
            ps,
            tuple(model for model, p in ps.items() if p is not None and p <= level),
        )
        for control, ps in found.items()
    ]


def model_of(document: ComparisonDocument, part: ControlPart) -> str:
    """What the one of the two models is called that a control was held against."""
    return next((one.title or one.name for one in document.models if one.name == part.model), "")


def says(one: ControlFinding, language: str) -> str:
    """A control in one line: what was found between it and each of the two."""

    def with_model(model: str, log10_p: float | None) -> str:
        if log10_p is None:
            return text.say("report.controls.untested", language, model=model)
        key = "linked" if model in one.linked else "none"
        fields = {"p": p_claim(log10_p)} if model in one.linked else {}
        return text.say(f"report.controls.{key}", language, model=model, **fields)

    said = ", ".join(with_model(model, p) for model, p in one.log10_p.items())
    key = "report.controls.no-control" if one.linked else "report.controls.line"
    return text.say(key, language, control=one.control, said=said)


def warnings(document: ComparisonDocument, language: str) -> list[str]:
    """A sentence for each control that is linked with one of the two models."""
    return [
        text.say(
            "report.controls.warning", language, control=one.control, models=", ".join(one.linked)
        )
        for one in findings(document)
        if one.linked
    ]


def _share(one: EvidencePart, tests: int) -> float:
    """A test's part of the error; an equal one where a document does not say."""
    return one.share if one.share is not None and 0 < one.share <= 1 else 1 / tests


def _together(part: ControlPart, shares: Mapping[str, float]) -> float | None:
    """The smallest log10 p after paying for each test's share; None where there is none."""
    paid = [
        min(0.0, p - math.log10(shares[one.test]))
        for one in part.evidence
        if one.status is Status.OK and one.test in shares and (p := finite(one.log10_p)) is not None
    ]
    return min(paid, default=None)
