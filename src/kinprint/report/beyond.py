"""What two models share beyond a base, one row a component, and what tells which came first."""

from __future__ import annotations

from collections import Counter

from kinprint import text
from kinprint.records import Component
from kinprint.report.numbers import finite
from kinprint.report.schema import BeyondPart, PrecedencePart
from kinprint.report.translation import Translatable, translated


def beyond_table(part: BeyondPart, language: str) -> list[tuple[str, str, str]]:
    """Each component with how many of its parts are in which state, and their cosines."""
    found = []
    for component in Component:
        rows = [one for one in part.parts if one.component is component]
        if not rows:
            continue
        states = Counter(one.state for one in rows).most_common()
        said = ", ".join(
            f"{text.say(f'report.beyond.state.{state}', language)} {count}"
            for state, count in states
        )
        cosines = [known for one in rows if (known := finite(one.cosine)) is not None]
        shown = "…".join(dict.fromkeys(f"{most(cosines):.2f}" for most in (min, max) if cosines))
        found.append((text.say(f"verdict.part.{component}", language), said, shown))
    return found


def traces_in(document: Translatable, part: PrecedencePart, language: str) -> list[str]:
    """What each trace says of who came first; those that do not count say so."""
    found = []
    for one in part.traces:
        said = translated(document, one.says, language)
        aside = text.say("report.direction.not-counted", language)
        found.append(said if one.counted else f"{said} ({aside})")
    return found
