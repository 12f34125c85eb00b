"""What is said of a merge: decided once for all views."""

from __future__ import annotations

from collections.abc import Iterator

from kinprint import text
from kinprint.diff.merge_records import left_out
from kinprint.records import MergeDoubt, MergeMethod, MergeOutcome, MergeStatus
from kinprint.report.numbers import fixed, share_in_words, share_said
from kinprint.report.schema import MergedTensor, MergeWeight, UnmergeDocument
from kinprint.report.translation import translated
from kinprint.studies.results import Cell, Table

_FOLLOWS = 0.9  # of the numbers of a tensor that a recipe gives
_NAMED = 3  # tensors


def summary(document: UnmergeDocument, language: str) -> str:
    """The headline."""

    def say(key: str, **fields: object) -> str:
        return text.say(f"unmerge.summary.{key}", language, child=document.child.title, **fields)

    match document.outcome:
        case MergeOutcome.RECIPE:
            methods, held = method_words(document, language), _held(document)
            key = "recipe" if held >= 1 else "recipe-part"
            key += "-sampled" if document.sampled else ""
            share = share_in_words(held)
            return say(key, methods=methods, models=_merged(document, language), share=share)
        case MergeOutcome.COPY:
            assert document.copied is not None
            key = "copy-rounded" if document.rounded else "copy"
            key += "-sampled" if document.sampled else ""
            return say(key, model=document.sources[document.copied].title)
        case MergeOutcome.OTHER:
            return say("other")
    return say("undecided")


def _held(document: UnmergeDocument) -> float:
    """The share of the child's numbers in tensors that the recipe was held against."""
    left = sum(one.numbers for one in left_out(document.tensors))
    return 1 - left / max(_numbers(document), 1)


def _numbers(document: UnmergeDocument) -> int:
    return sum(one.numbers for one in document.tensors)


def recipe_words(document: UnmergeDocument, language: str) -> str:
    """The child of a recipe, its method, and its models with their weights."""
    methods, models = method_words(document, language), _merged(document, language)
    title = document.child.title
    return text.say("diff.merge.recipe", language, child=title, methods=methods, models=models)


def method_words(document: UnmergeDocument, language: str) -> str:
    """The methods that fit, as a sentence names them."""
    words = [text.say(f"unmerge.method.{one}", language) for one in document.methods]
    return text.say("unmerge.or", language).join(words)


def sentences(document: UnmergeDocument, language: str) -> Iterator[str]:
    """What there is to know beside the headline: the proof, and what is open."""

    def say(key: str, **fields: object) -> str:
        return text.say(f"unmerge.{key}", language, **fields)

    recipe = document.recipe
    if recipe is not None:
        share = text.in_percent(document.equal / max(document.compared, 1), 3)
        key = "proof-random" if recipe.method.random else "proof"
        key = "proof-sampled" if document.sampled else key
        yield say(key, equal=document.equal, compared=document.compared, share=share)
        if left := left_out(document.tensors):
            numbers = sum(one.numbers for one in left)
            yield say("part", numbers=numbers, count=len(left))
        yield from _exceptions(document, language)
        yield say("no-direction", child=document.child.title)
    if document.aside:
        models = ", ".join(one.title for one in document.aside)
        yield say("aside", models=models, child=document.child.title)
    if document.dependent:
        yield say("dependent")
    if len(document.methods) > 1:
        yield say("untold", methods=method_words(document, language))
    if recipe is not None and recipe.normalize and recipe.method is not MergeMethod.LINEAR:
        yield say("ratio")
    if recipe is not None and recipe.method.random:
        yield say("rescaled" if recipe.rescale else "not-rescaled")
    over = None if recipe is None or recipe.method is MergeMethod.SLERP else recipe.base
    if recipe is not None and over is not None and not document.base_given:
        sums = recipe.method is MergeMethod.TASK_ARITHMETIC
        yield say("base-open" if sums else "base-found", model=document.sources[over].title)
    if document.doubt is not None:
        yield _doubt(document, document.doubt, language)
    if document.sampled:
        read = sum(one.read for one in document.tensors)
        yield say("sampled", read=read, numbers=_numbers(document))
    if document.outcome in (MergeOutcome.UNDECIDED, MergeOutcome.OTHER) and document.weights:
        yield from _nearest(document, language)


def _doubt(document: UnmergeDocument, doubt: MergeDoubt, language: str) -> str:
    """Why no recipe is given."""
    if doubt is MergeDoubt.FROM_SEVERAL:
        share = text.in_percent(document.equal / document.compared, 3)
        counts = {"equal": document.equal, "compared": document.compared, "share": share}
        return text.say("unmerge.doubt.from-several", language, **counts)
    if doubt is not MergeDoubt.COPIED_PART:
        return text.say(f"unmerge.doubt.{doubt}", language)
    source = next(one.source for one in document.tensors if one.source is not None)
    key = "unmerge.doubt.copied-part-rounded" if document.rounded else "unmerge.doubt.copied-part"
    return text.say(key, language, model=document.sources[source].title)


def _nearest(document: UnmergeDocument, language: str) -> Iterator[str]:
    """How near the child is to a mixture, and of how much of it that is said."""
    copied = document.doubt is MergeDoubt.COPIED_PART
    compared = [
        one
        for one in document.tensors
        if (one.equal is not None if copied else one.status is MergeStatus.MEASURED)
    ]
    part = sum(one.numbers for one in compared) / max(_numbers(document), 1)
    if part < 1:
        yield text.say("unmerge.compared", language, share=share_said(part))
    if document.residual is not None and not copied:
        key = "unmerge.nearest-part" if part < 1 else "unmerge.nearest"
        yield text.say(key, language, share=share_said(1 - document.residual))


def _exceptions(document: UnmergeDocument, language: str) -> Iterator[str]:
    """Tensors of which the recipe gives little, in a child that it gives as a whole."""
    others = [
        one
        for one in document.tensors
        if one.equal is not None and one.read and one.equal < _FOLLOWS * one.read
    ]
    if others:
        named = ", ".join(one.name for one in others[:_NAMED])
        more = len(others) - _NAMED
        key = "unmerge.except-more" if more > 0 else "unmerge.except"
        yield text.say(key, language, names=named, count=max(more, 0))


def _merged(document: UnmergeDocument, language: str) -> str:
    """The models of a recipe, each with its weight where tensors have the same."""
    recipe = document.recipe
    assert recipe is not None
    titles = [one.title for one in document.sources]
    if not recipe.parents:
        used = dict.fromkeys(one.source for one in document.tensors if one.source is not None)
        return ", ".join(titles[at] for at in sorted(used))
    settings = recipe.settings
    if settings is not None and settings.t is not None:
        first, second = (titles[at] for at in recipe.parents)
        return text.say("unmerge.way", language, first=first, second=second, t=settings.t)
    shown = []
    for number, at in enumerate(recipe.parents):
        if settings is None:
            shown.append(titles[at])
            continue
        key = "unmerge.parent-density" if settings.densities else "unmerge.parent"
        fields = {"model": titles[at], "weight": settings.weights[number]}
        if settings.densities:
            fields["density"] = settings.densities[number]
        shown.append(text.say(key, language, **fields))
    merged = ", ".join(shown)
    if recipe.scale != 1:
        merged = text.say("unmerge.scaled", language, models=merged, scale=recipe.scale)
    if recipe.base is None:
        return merged
    return text.say("unmerge.over", language, models=merged, base=titles[recipe.base])


def weight_rows(document: UnmergeDocument) -> list[tuple[str, MergeWeight]]:
    """Weights of the whole child, each with the models it is for."""
    titles = [one.title for one in document.sources]
    return [(" + ".join(titles[at] for at in one.sources), one) for one in document.weights]


def weight_words(one: MergeWeight) -> tuple[str, str]:
    """A weight and its interval as they are shown."""
    value, low, high = (fixed(number, 4) for number in (one.value, one.low, one.high))
    return value, f"{low} – {high}"


def unmeasured(document: UnmergeDocument, language: str) -> list[tuple[str, str]]:
    """Tensors that could not be held against all sources, and why; those that were not read in one
    line."""
    named = [
        (one.name, translated(document, one.reason, language) or one.status.value)
        for one in document.tensors
        if one.status not in (MergeStatus.MEASURED, MergeStatus.NOT_READ)
    ]
    unread = [one for one in document.tensors if one.status is MergeStatus.NOT_READ]
    if unread:
        count = text.say("diff.several", language, count=len(unread))
        named.append((count, translated(document, unread[0].reason, language)))
    return named


def tables_of(document: UnmergeDocument) -> tuple[Table, ...]:
    """Tensors, roles and layers, a row each."""
    titles = [one.title for one in document.sources]
    weights = [f"{name} {title}" for title in titles for name in ("weight", "low", "high")]
    tensors = tuple(
        (
            one.name, one.tower, one.role, one.layer, one.numbers, one.read, one.status, one.equal,
            one.residual, *_cells(one.weights, len(titles)), *_settings(one),
            None if one.source is None else titles[one.source], one.source_layer, one.reason,
        )
        for one in document.tensors
    )  # fmt: skip
    columns = (
        "tensor", "tower", "role", "layer", "numbers", "read", "status", "equal", "residual",
        *weights, "together", "recipe_weights", "recipe_densities", "recipe_t", "source",
        "source_layer", "reason",
    )  # fmt: skip
    groups = {
        name: tuple(
            (one.role or one.layer, one.residual, *_cells(one.weights, len(titles))) for one in rows
        )
        for name, rows in (("role", document.roles), ("layer", document.layers))
    }
    return (
        Table("tensors", text.words("unmerge.table.tensors"), columns, tensors),
        *(
            Table(
                f"{name}s", text.words(f"unmerge.table.{name}s"),
                (name, "residual", *weights, "together"), rows,
            )
            for name, rows in groups.items()
        ),
    )  # fmt: skip


def _cells(weights: tuple[MergeWeight, ...], count: int) -> tuple[Cell, ...]:
    """Three columns a source; sources that cannot be told apart have their sum, and a mark."""
    cells: list[Cell] = [None] * (3 * count)
    together = []
    for one in weights:
        for at in one.sources:
            cells[3 * at : 3 * at + 3] = one.value, one.low, one.high
        if len(one.sources) > 1:
            together.append("+".join(str(at + 1) for at in one.sources))
    return (*cells, " ".join(together))


def _settings(one: MergedTensor) -> tuple[Cell, Cell, Cell]:
    if one.settings is None:
        return None, None, None
    return (
        " ".join(map(str, one.settings.weights)),
        " ".join(map(str, one.settings.densities)),
        one.settings.t,
    )
