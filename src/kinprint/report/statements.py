"""A verdict in words: a headline, and five statements that each have a basis of their own.

Link: is anything shared, with its p-value. What: part by part. Kind: read from the parts, without a
p-value. Amount: how much, and how alike. Coverage: what was read, and what a silent test would have
missed. No statement borrows from another: the p-value stands in the first alone, and "no evidence"
is nowhere said as if it were independence.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import groupby

from msgspec import Struct
from msgspec.structs import replace

from kinprint import text
from kinprint.lineage.power import seen_from
from kinprint.reader.sizes import in_words
from kinprint.records import (
    CLEAR_ANSWERS,
    SINGLE,
    Component,
    Level,
    PartFinding,
    PartState,
    Reason,
    Relation,
    Verdict,
    VerdictReason,
)
from kinprint.report.numbers import (
    are_equal,
    level,
    likeness_in_words,
    p_claim,
    share_in_words,
    share_said,
)
from kinprint.report.parts import (
    Standing,
    groups_of_parts,
    in_tower,
    is_lone,
    needed_bytes,
    parts_by_name,
    parts_in_words,
    standing_of,
    standing_words,
)
from kinprint.report.relations import SIGNS, words_for
from kinprint.text import Message, Words

RULER: tuple[tuple[str, float], ...] = (
    ("cast", 1.0),
    ("fine-tune", 0.99),
    ("continued", 0.75),
    ("stranger", 0.0),
)
"""Likeness of known pairs: keys of their names, and the correlation of their weights."""

_RULED = (Relation.DERIVED, Relation.PARTIAL, Relation.SAME_INIT, Relation.DEPENDENT)
_OFTEN = math.log10(0.5)
_SHORT = 80  # letters of parts in a headline
_UNREAD = "verdict.coverage.unread"
_EARLY = "verdict.coverage.unread-early"
_BUDGET = "verdict.coverage.unread-budget"
_LEVEL = "verdict.coverage.unread-level"
_OPEN_SHARE = "verdict.amount.share-open"
_NOT_READ = (Reason.PART_NOT_READ, Reason.PART_UNREAD_HERE)


class Reading(Struct, frozen=True):
    """How far reading went, for the statement of coverage.

    Attributes
    ----------
    level : how much was to be read; None where it is not known.
    stages : how many stages were read, of how many.
    left_out : what the budget did not allow to read.
    earlier : whether the document is of an earlier version, which told no parts apart.
    seed : which rows were read where not all were.
    limited : whether a budget was given, without which the level may have read more.
    """

    level: Level | None = None
    stages: tuple[int, int] = (0, 0)
    left_out: tuple[Message | str, ...] = ()
    earlier: bool = False
    seed: int = 0
    limited: bool = False


class Spoken(Struct, frozen=True):
    """A verdict in words, in all languages."""

    summary: Words
    link: Words
    what: Words
    kind: Words
    amount: Words
    coverage: Words


def spoken(verdict: Verdict, titles: Sequence[str], reading: Reading) -> Spoken:
    """The headline and the five statements.

    Parameters
    ----------
    verdict
        What was found.
    titles
        What the two models are called in sentences.
    reading
        How far reading went.
    """
    return Spoken(
        summary=headline(verdict, titles),
        link=_joined(_link(verdict)),
        what=_joined(_what(verdict, reading)),
        kind=_joined(_kind(verdict, titles, reading)),
        amount=_joined(_amount(verdict, reading)),
        coverage=_joined(_coverage(verdict, reading)),
    )


def headline(verdict: Verdict, titles: Sequence[str]) -> Words:
    """The kind of relation in a sentence, without any probability."""
    a, b = titles
    key = f"verdict.headline.{verdict.relation}"
    linked = [one for one in verdict.parts if one.state.linked]
    taken = [one for one in linked if one.state is not PartState.SHARED or one.learnt]
    if verdict.relation is Relation.PARTIAL and not taken:
        key += "-unknown"
    if _open_to_disguise(verdict):
        key += "-open"
    if verdict.relation is Relation.SAME_WEIGHTS:
        if _rounded(linked):
            coarser = any(one.bits != SINGLE for one in linked if one.state is PartState.ROUNDED)
            key += "-rounded" if coarser else "-single"
        elif VerdictReason.SAME_AFTER_ROUNDING in verdict.reasons:  # of tensors of unknown names
            key += "-coarser"
    return text.words(key, a=a, b=b, parts=_linked_in_words(taken, verdict.parts))


def _linked_in_words(linked: Sequence[PartFinding], findings: Sequence[PartFinding]) -> Words:
    """Linked parts by name, with their layers where that is short; else that these are not all."""
    exact = parts_by_name(linked, findings)
    if len(str(exact)) <= _SHORT:
        return exact
    every = {(one.part.tower, one.part.component) for one in linked}
    same = [one for one in findings if (one.part.tower, one.part.component) in every]
    named = components_in_words(linked, findings)
    if len(same) == len(linked):
        return named
    places = ({replace(one.part, expert=None) for one in some} for some in (linked, same))
    all_layers = next(places) == next(places)
    key = "verdict.where.not-all" if all_layers else "verdict.where.some-layers"
    return text.words(key, part=named)


def components_in_words(some: Sequence[PartFinding], findings: Sequence[PartFinding]) -> Words:
    """Components with their towers and no layers, for a headline; `findings` are all there are."""
    known: dict[str, dict[Component, Words]] = {}
    for one in some:
        known.setdefault(one.part.tower, {})[one.part.component] = _component(one.part.component)
    return text.joined(
        (
            in_tower(text.joined(names.values(), ", "), tower, findings)
            for tower, names in known.items()
        ),
        ", ",
    )


def _link(verdict: Verdict) -> Iterator[Words]:
    alpha, p = level(verdict.alpha), p_claim(verdict.log10_p)
    if VerdictReason.SAME_FILES in verdict.reasons:
        yield text.words("verdict.link.files")
        return
    match verdict.relation:
        case Relation.UNTESTABLE:
            yield text.words("verdict.link.untestable", alpha=alpha)
        case Relation.NO_EVIDENCE:
            often = verdict.log10_p > _OFTEN
            key = "verdict.link.nothing-often" if often else "verdict.link.nothing"
            yield text.words(key, p=p, alpha=alpha)
        case Relation.LAUNDERED:
            yield text.words("verdict.link.laundered", p=p)
        case _:
            yield text.words("verdict.link.linked", p=p, alpha=alpha)


def _what(verdict: Verdict, reading: Reading) -> Iterator[Words]:
    if VerdictReason.SAME_FILES in verdict.reasons:
        yield text.words("verdict.what.files")
        return
    if not verdict.relation.linked and (reading.earlier or not verdict.parts):
        known = verdict.relation is Relation.NO_EVIDENCE
        yield text.words("verdict.what.nothing" if known else "verdict.what.unknown")
        return
    if not verdict.parts:
        yield text.words("verdict.what.earlier")
        return
    if reading.earlier:
        linked = [one for one in verdict.parts if one.state.linked]
        named = components_in_words(linked, verdict.parts)
        yield text.words("verdict.what.components", parts=named)
        return
    if not any(one.state.linked for one in verdict.parts):
        unlinked = {
            Relation.LAUNDERED: "laundered",
            Relation.UNTESTABLE: "unknown",
            Relation.NO_EVIDENCE: "nothing",
        }
        yield text.words(f"verdict.what.{unlinked.get(verdict.relation, 'together')}")
    for (standing, _, _), groups in groupby(
        groups_of_parts(verdict.parts), lambda one: (one.standing, one.bits, one.whole)
    ):
        if standing is not Standing.NOT_READ:
            yield standing_words(list(groups), verdict.parts)


def _kind(verdict: Verdict, titles: Sequence[str], reading: Reading) -> Iterator[Words]:
    a, b = titles
    if reading.earlier:
        yield text.words("verdict.kind.earlier", word=words_for(verdict.relation))
        return
    if verdict.relation is Relation.DERIVED and _sampled(verdict):
        yield text.words("verdict.kind.derived-sampled", seed=reading.seed)
    else:
        key = f"verdict.kind.{verdict.relation}"
        yield text.words(f"{key}-open" if _open_to_disguise(verdict) else key, a=a, b=b)
    for reason in verdict.reasons:
        if text.knows(f"verdict.reason.{reason}"):
            yield text.words(f"verdict.reason.{reason}")
    if verdict.missing:
        needed = text.joined((one.words() for one in verdict.missing), "; ")
        yield text.words("verdict.kind.missing", reasons=needed)
    if verdict.relation in _RULED:
        yield text.words("verdict.kind.basis")


def _open_to_disguise(verdict: Verdict) -> bool:
    """Whether a copy that no exact test shows may be a plain one: none could have shown it."""
    laundered = verdict.relation is Relation.LAUNDERED
    return laundered and VerdictReason.NOTHING_TESTABLE in verdict.reasons


def _amount(verdict: Verdict, reading: Reading) -> Iterator[Words]:
    amount, linked = verdict.amount, [one for one in verdict.parts if one.state.linked]
    if VerdictReason.SAME_FILES in verdict.reasons:
        yield text.words("verdict.amount.all")
        return
    if not linked or reading.earlier:
        unknown = verdict.relation.linked
        yield text.words("verdict.amount.unknown" if unknown else "verdict.amount.nothing")
        return
    copied = all(one.learnt or one.state is not PartState.SHARED for one in linked)
    told = copied and SIGNS[verdict.relation].shares_training
    key = "verdict.amount.share" if told else _OPEN_SHARE
    # What equal rows alone say of a part is no more than a lower limit.
    low = [one.part.layer for one in linked if one.sure < 1]
    yield text.words(key, share=_share(amount.linked, bool(low)))
    if amount.layers is not None and share_in_words(amount.layers) != share_in_words(amount.linked):
        inside = any(layer is not None for layer in low)
        yield text.words("verdict.amount.layers", share=_share(amount.layers, inside))
    if amount.likeness is None:
        yield text.words("verdict.amount.no-likeness")
        return
    equal = are_equal((one.state, one.likeness) for one in linked)
    marks = {name.replace("-", "_"): f"{value:.2f}" for name, value in RULER}
    likeness: Words | str = likeness_in_words(amount.likeness, equal)
    if not equal and any(map(_is_low, linked)):
        likeness = text.words("verdict.amount.at-least", share=likeness)
    yield text.words("verdict.amount.likeness", likeness=likeness, **marks)


def _is_low(finding: PartFinding) -> bool:
    """Whether the likeness of a linked part is a lower limit.

    Of renumbered units that were read some have a partner that was not. Rows of a wider model are
    alike in the channels that both have.
    """
    unread = standing_of(finding) is Standing.MATCHED and finding.read < 1
    return unread or (finding.state is PartState.SHARED and finding.fewest < finding.counted)


def _share(share: float, low: bool) -> Words | str:
    known = share_said(share)
    told = low and share >= 0.001  # less than that is no lower limit
    return text.words("verdict.amount.at-least", share=known) if told else known


def _coverage(verdict: Verdict, reading: Reading) -> Iterator[Words]:
    if VerdictReason.SAME_FILES in verdict.reasons:
        yield text.words("verdict.coverage.files")
        return
    if reading.earlier:
        yield text.words("verdict.coverage.earlier")
    elif verdict.parts:
        share = share_said(verdict.amount.read)
        key = "verdict.coverage.whole" if verdict.amount.read >= 1 else "verdict.coverage.share"
        yield text.words(key, share=share)
        if verdict.amount.read < 1 and not _all_readable_read(verdict):
            yield text.words("verdict.coverage.rule", seed=reading.seed)
    yield from _not_read(verdict, reading)
    yield from _silence(verdict)


def _all_readable_read(verdict: Verdict) -> bool:
    """Whether nothing is left unread but what is stored in a way that cannot be read."""
    left = [one for one in verdict.parts if one.read < 1]
    keys = {None if one.reason is None else one.reason.key for one in left}
    return keys <= {Reason.PART_PACKED, Reason.TOWER_UNTESTED}


def _not_read(verdict: Verdict, reading: Reading) -> Iterator[Words]:
    """What was not read and why, each part once."""
    read, stages = reading.stages
    early = read < stages and verdict.relation in CLEAR_ANSWERS
    found: dict[tuple[str, Message | None], list[PartFinding]] = {}
    for one in verdict.parts:
        if one.state is PartState.NOT_READ:
            key = _why_not_read(one, reading)
            found.setdefault((key, one.reason if key == _UNREAD else None), []).append(one)
    level = "" if reading.level is None else text.words(f"page.level.{reading.level}")
    for (key, reason), parts in found.items():
        named = text.joined(_with_needs(parts, verdict.parts), "; ")
        if reason is not None:
            named = text.words("verdict.where.reason", parts=named, reason=reason)
        yield text.words(key, parts=named, level=level, read=read, stages=stages)
    said = {key for key, _ in found}
    if early and _EARLY not in said:
        yield text.words("verdict.coverage.early", read=read, stages=stages)
    if reading.left_out and _BUDGET not in said:
        left = text.joined((_said(one) for one in reading.left_out), ", ")
        yield text.words("verdict.coverage.left-out", parts=left)


def _with_needs(parts: Sequence[PartFinding], findings: Sequence[PartFinding]) -> Iterator[Words]:
    """Parts that were not read, those with the bytes first that more reading would take."""
    known = [one for one in parts if one.needs]
    others = [one for one in parts if not one.needs]
    if known:
        needs = in_words(needed_bytes(known) or 0)
        named = parts_in_words(known, findings)
        yield text.words("verdict.where.unread", parts=named, bytes=needs)
    if others:
        yield parts_in_words(others, findings)


def _why_not_read(finding: PartFinding, reading: Reading) -> str:
    key = None if finding.reason is None else finding.reason.key
    if key == Reason.STOPPED_EARLY:
        return _EARLY
    if key not in _NOT_READ or reading.level is None:
        return _UNREAD
    limited = reading.limited and reading.level is not Level.QUICK
    return _BUDGET if reading.left_out or limited else _LEVEL


def _silence(verdict: Verdict) -> Iterator[Words]:
    """What would have been seen where nothing was, and what would not."""
    if verdict.relation is Relation.NO_EVIDENCE:
        yield from _power(verdict)
    yield from _uncompared(verdict)
    if not verdict.relation.linked:
        yield text.words("verdict.coverage.blind")


def _uncompared(verdict: Verdict) -> Iterator[Words]:
    """Towers that met none of the other model, of which no test says anything."""
    towers = dict.fromkeys(one.part.tower for one in verdict.parts if is_lone(one))
    if towers:
        yield text.words("verdict.coverage.uncompared", towers=", ".join(towers))


def _power(verdict: Verdict) -> Iterator[Words]:
    """From which size on a likeness would have been seen, for each component that has a test."""
    least = seen_from(verdict)
    if least:
        sizes = (
            text.words("verdict.where.size", part=_component(component), size=f"{size:.2g}")
            for component, (size, _) in least.items()
        )
        yield text.words("verdict.coverage.power", sizes=text.joined(sizes, ", "))


def _sampled(verdict: Verdict) -> bool:
    """Whether some rows speak for a whole linked part of the layers."""
    return any(
        one.read < 1 and one.state.linked and one.part.layer is not None for one in verdict.parts
    )


def _rounded(linked: Sequence[PartFinding]) -> bool:
    return any(one.state is PartState.ROUNDED for one in linked)


def _component(component: Component) -> Words:
    return text.words(f"verdict.part.{component}")


def _said(given: Message | str) -> Words:
    return given.words() if isinstance(given, Message) else text.plain(given)


def _joined(sentences: Iterator[Words]) -> Words:
    return text.joined(sentences, " ")
