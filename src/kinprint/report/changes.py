"""What is said of a diff, and in which order its tensors are shown: decided once for all views."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from msgspec import Struct

from kinprint import text
from kinprint.records import TAKEN_OVER, Operation, Precedence, Relation, TensorStatus
from kinprint.report.beyond import traces_in
from kinprint.report.numbers import NOTHING
from kinprint.report.relations import words_for
from kinprint.report.schema import (
    ChangedTensor,
    ComparisonDocument,
    DiffDocument,
    EstimatePart,
    OperationPart,
    TensorChangePart,
)
from kinprint.report.translation import translated
from kinprint.titles import tensor_title

Changed = TypeVar("Changed", TensorChangePart, ChangedTensor)
_UNREADABLE = (TensorStatus.UNREADABLE, TensorStatus.ONLY_A, TensorStatus.ONLY_B)
_SAME = (Relation.IDENTICAL, Relation.SAME_WEIGHTS)


def summary(document: DiffDocument, language: str) -> str:
    """The headline: the operations in a row, or why none is named, and what could not be read."""
    return " ".join((_headline(document, language), *_unreadable(document, language)))


def _unreadable(document: DiffDocument, language: str) -> Iterator[str]:
    """That tensors are stored in a way that is not read, where others were compared."""
    count = document.totals.tensors if document.totals.compared else 0
    reasons = Counter(one.reason for one in document.tensors if one.status in _UNREADABLE)
    for reason, some in reasons.items():
        if reason and count:
            why = translated(document, reason, language)
            fields = {"count": some, "tensors": count, "reason": why}
            yield text.say("diff.summary.unreadable", language, **fields)


def _headline(document: DiffDocument, language: str) -> str:
    totals, (a, b) = document.totals, document.models

    def say(key: str, **fields: object) -> str:
        return text.say(f"diff.summary.{key}", language, a=a.title, b=b.title, **fields)

    if document.operations:
        named = (operation_words(document, one, language) for one in document.operations)
        done = "; ".join(dict.fromkeys(named))
        said = say("operations", operations=done)
        return f"{said} {origin}" if (origin := _origin(document, say)) else said
    moved = any(one.layer != one.source for one in document.map.layers)
    whole = not document.sampled and document.relation in _SAME and not document.map.axes
    if totals.compared == totals.tensors == totals.equal and not moved and whole:
        return say("same", count=totals.tensors)
    if document.sampled and totals.compared == totals.equal > 0 and not moved:
        return say("same-sampled", count=totals.compared)
    relation = words_for(document.relation)[language]
    if not totals.compared:
        return say("none", relation=relation)
    if document.relation in (*TAKEN_OVER, Relation.DEPENDENT):
        rest = totals.tensors - totals.compared
        return say("undecided", share=totals.changed, count=totals.compared, rest=rest)
    return say("unnamed", relation=relation, share=totals.changed)


def _origin(document: DiffDocument, say: Callable[..., str]) -> str:
    """Which was made from which, where operations look the same either way."""
    if not any(one.kind.either_way for one in document.operations):
        return ""
    if document.beyond is not None and document.beyond.refused is None:
        return say("origin.given", base=document.beyond.title)
    known = Precedence.UNDECIDED if document.direction is None else document.direction.answer
    return say(f"origin.{known}")


def operation_words(document: DiffDocument, one: OperationPart, language: str) -> str:
    """An operation in a few words, with its format, rank or recipe."""
    fields: dict[str, object] = {"format": one.format, "bits": one.bits, "rank": one.rank}
    fields["recipe"] = translated(document, one.recipe, language)
    key = f"diff.word.{one.kind}"
    if one.kind in ("quantized", "cast") and one.format is None:
        key += "-grid"
    if one.components:
        names = (text.say(f"verdict.part.{each}", language) for each in one.components)
        return text.say(key, language, components=", ".join(names), **fields)
    return text.say(key, language, **fields)


def totals_say(document: DiffDocument, language: str) -> str:
    """How much was compared, and how much of it is equal; why nothing was where that is so."""
    totals = document.totals
    if not totals.compared:
        return text.say("diff.none", language, count=totals.tensors, why=_why(document, language))
    said = text.say(
        "diff.totals-sampled" if document.sampled else "diff.totals",
        language,
        compared=totals.compared,
        tensors=totals.tensors,
        equal=totals.equal,
        share=totals.changed,
        numbers=totals.compared_numbers,
        read=totals.read,
    )
    if totals.relative:
        said = f"{said} {text.say('diff.size', language, relative=totals.relative)}"
    broken = sum(one.broken for one in document.tensors)
    if broken:
        said = f"{said} {text.say('diff.broken', language, count=broken)}"
    return f"{said} {text.say('diff.sampled', language)}" if document.sampled else said


def _why(document: DiffDocument, language: str) -> str:
    """Why no tensor was compared, each reason once."""
    said: Counter[str] = Counter()
    for one in document.tensors:
        alone = one.status not in _TOGETHER
        key = f"diff.status.{one.status}"
        said[text.say(key, language) if alone else status_says(document, one, language)] += 1
    if len(said) == 1:
        return next(iter(said))
    return "; ".join(f"{why} ({count:,})" for why, count in said.most_common())


def evidence_of(document: DiffDocument, language: str) -> list[tuple[str, str]]:
    """Every operation, and what shows it."""
    return [
        (operation_words(document, one, language), translated(document, one.evidence, language))
        for one in document.operations
    ]


def came_first(document: DiffDocument, language: str) -> list[str]:
    """Which way the operations go, and what tells who came first."""
    if not document.operations:
        return []
    part = document.direction
    if part is None:
        return [text.say("diff.direction", language)]
    return [translated(document, part.summary, language), *traces_in(document, part, language)]


def top_changes(tensors: Sequence[Changed]) -> list[Changed]:
    """Tensors that changed, those that changed most first."""
    changed = [one for one in tensors if _size(one) > 0]
    return sorted(changed, key=_size, reverse=True)


class SampledView(Struct, frozen=True):
    """What changed as far as a comparison read: sentences, and a row for each of the tensors that
    changed most."""

    sentences: tuple[str, ...]
    heads: tuple[str, ...]
    rows: tuple[tuple[str, str, str], ...]
    more: int


def sampled_view(document: ComparisonDocument, language: str) -> SampledView | None:
    """What the samples of a comparison tell of changes; None where they tell of none."""
    part = document.changes
    if part is None or len(document.models) != 2 or not any(map(_size, part.tensors)):
        return None
    a, b = (one.title for one in document.models)
    top = top_changes(part.tensors)
    evidence = (translated(document, one.evidence, language) for one in part.operations)
    columns = ("tensor", "relative", "changed")
    return SampledView(
        (text.say("report.diff.sampled", language, a=a, b=b), *evidence),
        tuple(text.say(f"diff.column.{name}", language) for name in columns),
        tuple(
            (tensor_name(one, language), share_says(one.relative), share_says(one.changed))
            for one in top[:_SHOWN]
        ),
        max(len(top) - _SHOWN, 0),
    )


_SHOWN = 8  # tensors of a comparison


def share_says(one: EstimatePart | None) -> str:
    """A share, with its bounds where some rows were read."""
    if one is None or one.value is None:
        return NOTHING
    if one.low is None or one.high is None:
        return text.in_percent(one.value, 2)
    value, low, high = (text.in_percent(share, 2) for share in (one.value, one.low, one.high))
    return f"{value} ({low} – {high})"


def not_compared(document: DiffDocument, language: str) -> list[tuple[str, str]]:
    """Tensors without a partner or that were not compared, and why; what is the same for many is
    said once: with the totals where nothing was compared."""
    found = []
    together: Counter[str] = Counter()
    for one in document.tensors:
        if one.status in _TOGETHER:
            together[status_says(document, one, language)] += 1
        elif one.status is not TensorStatus.COMPARED:
            found.append((tensor_name(one, language), status_says(document, one, language)))
    if document.totals.compared:
        found += [
            (text.say("diff.several", language, count=count), why)
            for why, count in together.items()
        ]
    return found


_TOGETHER = (TensorStatus.OTHER_BASIS, TensorStatus.NOT_READ)  # reasons that no tensor has alone


def _size(one: TensorChangePart | ChangedTensor) -> float:
    if one.relative is None:
        return 0.0
    return float("inf") if one.relative.value is None else one.relative.value


def tensor_name(one: TensorChangePart | ChangedTensor, language: str) -> str:
    """What a tensor is, for people, and the layer that it is from where that has another number."""
    name = tensor_title(one.role.partition(":")[0], one.layer, one.expert, one.tower)[language]
    if one.from_layer is None or one.from_layer == one.layer:
        return name
    return text.say("diff.from-layer", language, name=name, layer=one.from_layer)


def status_says(document: DiffDocument, one: TensorChangePart, language: str) -> str:
    """Why a tensor was not compared."""
    if one.reason:
        return translated(document, one.reason, language)
    return text.say(f"diff.status.{one.status}", language)


class ChangeGrid(Struct, frozen=True):
    """Relative changes of roles by layer; None where nothing was compared."""

    roles: tuple[str, ...]
    layers: tuple[int, ...]
    values: tuple[tuple[float | None, ...], ...]


def change_grid(tensors: Sequence[TensorChangePart]) -> ChangeGrid | None:
    """A row for each role of the main tower, a column for each layer; experts are averaged."""
    found: dict[tuple[str, int], list[float]] = {}
    for one in tensors:
        if one.layer is None or one.tower or one.relative is None or one.relative.value is None:
            continue
        found.setdefault((one.role.partition(":")[0], one.layer), []).append(one.relative.value)
    roles = tuple(dict.fromkeys(role for role, _ in sorted(found)))
    layers = tuple(sorted({layer for _, layer in found}))
    if not roles:
        return None
    return ChangeGrid(roles, layers, tuple(_row(found, role, layers) for role in roles))


def _row(
    found: dict[tuple[str, int], list[float]], role: str, layers: Sequence[int]
) -> tuple[float | None, ...]:
    cells = (found.get((role, layer)) for layer in layers)
    return tuple(None if some is None else sum(some) / len(some) for some in cells)


def map_lines(document: DiffDocument, language: str) -> Iterator[str]:
    """How parts correspond, a sentence for each kind of part that does not go by number."""
    known = document.map
    moved = [one for one in known.layers if one.layer != one.source]
    if moved:
        pairs = ", ".join(f"{one.source}→{one.layer}" for one in known.layers)
        yield text.say("diff.map.layers", language, pairs=pairs)
    if known.experts:
        dense = sum(one.source is None for one in known.experts)
        key = "diff.map.upcycled" if dense else "diff.map.experts"
        yield text.say(key, language, count=len(known.experts))
    for what in ("channels", "tokens", "rows", "units", "queries", "groups"):
        some = [one for one in known.axes if one.what == what]
        if not some:
            continue
        fields = {
            name: sum(getattr(one, name) for one in some)
            for name in ("before", "after", "kept", "moved", "flipped")
        }
        if what in ("queries", "groups") and not fields["moved"]:
            continue  # heads are gone, and the others kept their numbers
        yield text.say(f"diff.map.{what}", language, **fields)
    turn = known.turned
    if turn is not None and all(one.kind is not Operation.ROTATED for one in document.operations):
        yield text.say("diff.map.turned", language, alike=turn.alike, count=turn.units)
