"""Claims of a dispute as Markdown: what was written, where, and what the numbers say of it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby

from kinprint import text
from kinprint.studies.reproduction.claims import Claim, ClaimSource, JudgedClaim, Outcome

_MINUS = re.compile(r"(?<![\w^.])-(?=\d)")
_SPECIAL = re.compile(r"[&<>*_\[\]|~$`\\]")
_SHOWN = 7  # letters of a commit


def claims_page(judged: Sequence[JudgedClaim], language: str, level: int = 2) -> Iterator[str]:
    """One table a source, after a count of how its claims came out."""
    for source, group in groupby(judged, key=lambda one: one.claim.source):
        found = list(group)
        yield f"{'#' * level} {text.say(f'report.claims.source.{source.name}', language)}"
        yield ""
        yield f"{_reference(source, language)} {_counts(found, language)}"
        yield ""
        yield text.say("report.claims.heads", language)
        yield "| --- | --- |"
        yield from (_row(one, language) for one in found)
        yield ""


def origin_of_numbers(measured: bool, language: str) -> str:
    """Whether the numbers were published or measured on the real models, in a sentence."""
    if measured:
        return text.say("report.claims.origin.measured", language)
    return text.say("report.claims.origin.published", language)


def _reference(source: ClaimSource, language: str) -> str:
    address = f"https://github.com/{source.repository}/tree/{source.commit}"
    fields = {
        "place": f"[{source.repository}@{source.commit[:_SHOWN]}]({address})",
        "author": _plain(source.author),
        "date": source.date,
    }
    if source.written is None:
        return text.say("report.claims.reference", language, **fields)
    return text.say("report.claims.reference-written", language, written=source.written, **fields)


def _counts(found: Sequence[JudgedClaim], language: str) -> str:
    counts = [(outcome, sum(one.outcome is outcome for one in found)) for outcome in Outcome]
    listed = ", ".join(f"{_outcome(each, language)} {count}" for each, count in counts if count)
    return text.say("report.claims.counts", language, listed=listed)


def _row(one: JudgedClaim, language: str) -> str:
    finds = _MINUS.sub("\N{MINUS SIGN}", _plain(one.finds[language]))
    cells = (
        f"{_plain(one.says[language])} {_place(one.claim)}",
        f"**{_outcome(one.outcome, language)}.** {finds}<br>`{one.claim.command}`",
    )
    return f"| {' | '.join(cells)} |"


def _place(claim: Claim) -> str:
    """The quotation, if there is one, and the line as a link."""
    quote = "" if claim.quote is None else f"“{_plain(claim.quote)}” "
    return f"{quote}([{_plain(claim.file)}, {claim.line}]({claim.address}))"


def _outcome(outcome: Outcome, language: str) -> str:
    return text.say(f"report.claims.outcome.{outcome}", language)


def _plain(given: str) -> str:
    """Text that means nothing but itself to GitHub and to the site, which escape differently."""
    return _SPECIAL.sub(lambda match: f"&#{ord(match[0])};", given)
