"""What a model holds, for people: a line for each trait, and tensors folded by layer."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import UNSET, Struct

from kinprint import text
from kinprint.reader.sizes import in_words
from kinprint.report.schema import AdapterPart, InspectionDocument
from kinprint.report.translation import translated

_WARNINGS = 5
_PREDICTS = ("LM", "Generation", "PreTraining")  # parts of names of models that predict tokens


class InspectionView(Struct, frozen=True):
    """An inspection in words: what stands above, two tables, what stands below."""

    title: str
    labels: tuple[str, ...]
    traits: tuple[tuple[str, str], ...]
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    remarks: tuple[str, ...]
    cost: str


def inspection_view(document: InspectionDocument, language: str) -> InspectionView:
    """Everything that is shown of a document."""

    def say(key: str, **fields: object) -> str:
        return text.say(f"report.inspect.{key}", language, **fields)

    title = document.name
    if document.commit:
        title = say("at", name=document.name, commit=document.commit[:12])
    columns = tuple(say(f"column.{name}") for name in ("tensor", "role", "shape", "dtype", "count"))
    rows = tuple(
        (
            group.pattern,
            translated(document, group.role, language),
            " × ".join(map(str, group.shape)) or say("scalar"),
            group.dtype,
            f"{group.count:,}",
        )
        for group in document.groups
    )
    return InspectionView(
        title,
        tuple(translated(document, label, language) for label in document.labels),
        tuple(_traits(document, language)),
        columns,
        rows,
        tuple(_remarks(document, language)),
        "" if document.kind == "local" else _cost(document, language),
    )


def _cost(document: InspectionDocument, language: str) -> str:
    read = document.read
    return text.say(
        "report.inspect.read",
        language,
        size=in_words(read.bytes),
        whole=in_words(document.bytes),
        count=read.requests,
        seconds=read.seconds,
    )


def _remarks(document: InspectionDocument, language: str) -> Iterator[str]:
    for warning in document.warnings[:_WARNINGS]:
        said = translated(document, warning, language)
        yield text.say("report.inspect.warning", language, warning=said)
    more = len(document.warnings) - _WARNINGS
    if more > 0:
        yield text.say("report.inspect.more-warnings", language, count=more)
    for label in document.others:
        yield text.say("report.inspect.other", language, label=label)
    for note in document.notes:
        yield text.say("report.inspect.note", language, note=translated(document, note, language))


def _traits(document: InspectionDocument, language: str) -> Iterator[tuple[str, str]]:
    """What a model is, a line each: family, sizes, and what is unusual about its storage."""

    def say(key: str, **fields: object) -> str:
        return text.say(f"report.inspect.{key}", language, **fields)

    shape = document.geometry
    family = " ".join(filter(None, (shape.architecture, f"({shape.family})" * bool(shape.family))))
    widths = [
        say("hidden", width=shape.hidden) if shape.hidden else "",
        say("feed-forward", width=shape.feed_forward) if shape.feed_forward else "",
        say("vocabulary", width=shape.vocabulary) if shape.vocabulary else "",
        say("tied") if document.tied and _has_head(document) else "",
    ]
    heads = [
        str(shape.heads or ""),
        say("kv-heads", number=shape.kv_heads) if shape.kv_heads else "",
        say("head-dim", number=shape.head_dim) if shape.head_dim else "",
    ]
    experts = [
        str(shape.experts or ""),
        say("active", number=shape.experts_active) if shape.experts_active else "",
    ]
    size = in_words(document.bytes)
    lines = [
        ("family", say("family-names", family=family or say("no-family"), names=document.family)),
        ("weights", say("files", format=document.format, count=len(document.files), size=size)),
        ("", parameters_say(document, language)),
        ("numbers", _shares(document)),
        ("layers", str(shape.layers or document.layers or "")),
        ("widths", ", ".join(filter(None, widths))),
        ("heads", ", ".join(filter(None, heads))),
        ("experts", ", ".join(filter(None, experts))),
        ("fused", "; ".join(f"{what} ({number})" for what, number in document.fused.items())),
        ("quantised", _quantised(document, language)),
        ("adapter", _adapter(document, language)),
        ("tokenizer", _tokenizer(document, language)),
        ("unknown", _unknown(document, language)),
    ]
    for name, said in lines:
        if said:
            yield say(name) if name else "", said


def parameters_say(document: InspectionDocument, language: str) -> str:
    """How many numbers a model has, and how many codes that nobody can read for it."""
    key = "parameters-and-codes" if document.codes else "parameters"
    fields = {"parameters": document.parameters, "count": len(document.tensors)}
    if document.codes:
        fields["codes"] = document.codes
    return text.say(f"report.inspect.{key}", language, **fields)


def _has_head(document: InspectionDocument) -> bool:
    """Whether the architecture predicts tokens at all; unknown ones are taken to."""
    name = document.geometry.architecture
    return name is None or any(word in name for word in _PREDICTS)


def _quantised(document: InspectionDocument, language: str) -> str:
    scheme = document.quantisation
    if scheme is None:
        return ""
    if scheme.refusal:
        refusal = translated(document, scheme.refusal, language)
        return text.say("report.inspect.not-read", language, scheme=refusal)
    parts = [
        text.say(
            "report.inspect.weights-of",
            language,
            format=translated(document, words, language),
            count=count,
        )
        for words, count in scheme.formats.items()
    ]
    return f"{scheme.method}: {'; '.join(parts)}" if parts else scheme.method


def _adapter(document: InspectionDocument, language: str) -> str:
    adapter = document.adapter
    if adapter is None:
        return ""
    if adapter.refusal:
        cause = translated(document, adapter.refusal, language)
        return text.say("report.inspect.refused", language, cause=cause)
    words = "" if adapter.words is UNSET else translated(document, adapter.words, language)
    updates = 0 if adapter.updates is UNSET else len(adapter.updates)
    return text.say(
        "report.inspect.updates",
        language,
        adapter=words,
        count=updates,
        base=_base(adapter) or text.say("report.inspect.no-base", language),
    )


def _base(adapter: AdapterPart) -> str:
    if adapter.base is UNSET or not adapter.base:
        return ""
    named = adapter.revision is not UNSET and adapter.revision
    return f"{adapter.base}@{adapter.revision}" if named else adapter.base


def _tokenizer(document: InspectionDocument, language: str) -> str:
    if document.tokenizer is None:
        return ""
    if document.tokenizer_bytes is None:
        return text.say("report.inspect.in-header", language)
    size = in_words(document.tokenizer_bytes)
    return text.say("report.inspect.tokenizer-file", language, path=document.tokenizer, size=size)


def _unknown(document: InspectionDocument, language: str) -> str:
    names = document.unknown
    if not names:
        return ""
    return text.say("report.inspect.unknown-tensors", language, count=len(names), name=names[0])


def _shares(document: InspectionDocument) -> str:
    whole = max(sum(document.dtypes.values()), 1)
    parts = [(name, 100 * count / whole) for name, count in document.dtypes.items()]
    return ", ".join(
        f"{name} {share:.3g} %" if share >= 0.01 else f"{name} < 0.01 %" for name, share in parts
    )
