"""What changed from one model to another, as a document."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from kinprint.lineage.results import Settings
from kinprint.records import Cost, Operation, TensorStatus
from kinprint.report import schema
from kinprint.report.build.beyond import beyond_part
from kinprint.report.build.common import made_with, titled
from kinprint.report.build.direction import direction_part
from kinprint.report.translation import Translator
from kinprint.titles import full_titles, public_name

if TYPE_CHECKING:  # most comparisons need nothing of that room
    from kinprint.diff.merge_records import Unmerging
    from kinprint.diff.pairing import Correspondence, Match, UnitsKey
    from kinprint.diff.results import Diff, Estimate, OperationFound, TensorChange
    from kinprint.diff.sampled_parts import SampledChanges


def diff_document(found: Diff, cost: Cost, settings: Settings) -> schema.DiffDocument:
    """A diff as a document; `cost` is what the run took as a whole."""
    refs = found.a, found.b
    titles = full_titles(refs)
    translator = Translator()
    names = [public_name(ref.given, title) for ref, title in zip(refs, titles, strict=True)]
    return schema.DiffDocument(
        a=found.a.given,
        b=found.b.given,
        models=[schema.DiffModel.of(ref, title) for ref, title in zip(refs, titles, strict=True)],
        relation=found.relation,
        operations=[operation_part(one, translator, found.merge) for one in found.operations],
        totals=_totals(found.tensors),
        map=_map(found.map),
        tensors=[_tensor(one, translator) for one in found.tensors],
        beyond=None if found.beyond is None else beyond_part(found.beyond, titles, translator),
        direction=None
        if found.direction is None
        else direction_part(found.direction, titles, translator),
        sampled=found.sampled,
        notes=translator.all_said(titled(found.notes, refs, titles)),
        labels=translator.all_said(titled(found.labels, refs, titles)),
        translations=translator.kept,
        made=made_with(_command(found, settings, names)),
        read=schema.ReadPart.of(cost),
    )


def _command(found: Diff, settings: Settings, names: Sequence[str]) -> str:
    """The command that asks for the same again; defaults are left out."""
    remote = any(ref.kind != "local" for ref in (found.a, found.b))
    words = ["kinprint", "diff"]
    if found.sampled != remote:
        words.append("--sample" if found.sampled else "--full")
    if settings.budget is not None:
        words += ["--budget", str(settings.budget)]
    if settings.seed:
        words += ["--seed", str(settings.seed)]
    if settings.base is not None:
        words += ["--base", public_name(settings.base)]
    if found.beyond is not None:
        words += ["--given", public_name(found.beyond.base.given)]
    for one in found.candidates:
        words += ["--parent", public_name(one)]
    return shlex.join([*words, *(["--"] if any(n.startswith("-") for n in names) else []), *names])


def changes_part(found: SampledChanges, translator: Translator) -> schema.ChangesPart:
    """What the samples of a comparison tell, as a part of its document."""
    return schema.ChangesPart(
        operations=[operation_part(one, translator) for one in found.operations],
        tensors=[
            schema.ChangedTensor(
                role=one.role,
                tower=one.tower,
                layer=one.layer,
                expert=one.expert,
                from_layer=one.from_layer,
                numbers=one.numbers,
                read=one.read,
                changed=changed,
                relative=relative,
            )
            for one in found.tensors
            if (changed := _estimate(one.changed)) and (relative := _estimate(one.relative))
        ],
    )


def operation_part(
    one: OperationFound, translator: Translator, merge: Unmerging | None = None
) -> schema.OperationPart:
    """An operation as a document has it; of a merge, with its recipe."""
    recipe = yaml = ""
    if one.kind is Operation.MERGED and merge is not None:
        from kinprint.report.build.unmerge import unmerge_document
        from kinprint.report.merging import recipe_words

        told = unmerge_document(merge, Cost())
        recipe = translator.kept_in_all(lambda language: recipe_words(told, language))
        yaml = merge.yaml
    return schema.OperationPart(
        kind=one.kind,
        evidence=translator.said(one.evidence),
        components=one.components,
        format=one.format,
        bits=one.bits,
        rank=one.rank,
        recipe=recipe,
        yaml=yaml,
        hub=one.kind.hub,
    )


def _totals(tensors: Sequence[TensorChange]) -> schema.DiffTotals:
    """What became of all tensors; of shares and sizes a tensor counts by its numbers, however many
    of them were read."""
    compared = [one for one in tensors if one.status is TensorStatus.COMPARED]
    statuses = [one.status for one in tensors]
    only = [statuses.count(each) for each in (TensorStatus.ONLY_A, TensorStatus.ONLY_B)]
    changed = [(one.changed.value, one.numbers) for one in compared if one.changed is not None]
    squares = [
        (one.relative.value**2, one.numbers)
        for one in compared
        if one.relative is not None and math.isfinite(one.relative.value)
    ]
    relative = _mean(squares)
    return schema.DiffTotals(
        tensors=len(tensors),
        compared=len(compared),
        equal=sum(one.equal for one in compared),
        only_a=only[0],
        only_b=only[1],
        other=len(tensors) - len(compared) - sum(only),
        numbers=sum(one.numbers for one in tensors),
        compared_numbers=sum(one.numbers for one in compared),
        read=sum(one.read for one in compared),
        changed=min(1.0, _mean(changed) or 0.0),
        relative=None if relative is None else _short(math.sqrt(relative)),
    )


def _mean(values: Sequence[tuple[float, int]]) -> float | None:
    """The mean of values, each with its weight; None where nothing has any."""
    weights = sum(weight for _, weight in values)
    return sum(value * weight for value, weight in values) / weights if weights else None


def _tensor(one: TensorChange, translator: Translator) -> schema.TensorChangePart:
    return schema.TensorChangePart(
        role=one.role,
        tower=one.tower,
        layer=one.layer,
        expert=one.expert,
        from_layer=one.from_layer,
        from_expert=one.from_expert,
        component=one.component,
        a=one.a,
        b=one.b,
        a_format=one.a_format,
        b_format=one.b_format,
        shape=one.shape,
        status=one.status,
        reason=translator.said(one.reason),
        numbers=one.numbers,
        read=one.read,
        changed=_estimate(one.changed),
        relative=_estimate(one.relative),
        largest=_number(one.largest),
        scale=_number(one.scale),
        cosine=_number(one.cosine),
        broken=one.broken,
        zeroed=one.zeroed,
        zeros=one.zeros,
        rounding=None
        if one.rounding is None
        else schema.RoundingPart(
            bits=one.rounding.bits, coarser=one.rounding.coarser, exact=one.rounding.exact
        ),
        directions=None
        if one.directions is None
        else schema.DirectionsPart(
            effective=_short(one.directions.effective),
            rank=one.directions.rank,
            low=one.directions.low,
            high=one.directions.high,
            whiteness=_short(one.directions.whiteness),
        ),
        rounding_errors=_number(one.rounding_errors),
    )


def _estimate(one: Estimate | None) -> schema.EstimatePart | None:
    if one is None:
        return None
    return schema.EstimatePart(
        value=_number(one.value), low=_number(one.low), high=_number(one.high)
    )


def _map(known: Correspondence) -> schema.MapPart:
    turn = known.turned
    return schema.MapPart(
        layers=[
            schema.LayerSource(tower=tower, layer=layer, source=source)
            for (tower, layer), source in sorted(known.layers.items())
        ],
        experts=[
            schema.ExpertSource(layer=layer, expert=expert, source=source)
            for (layer, expert), source in sorted(known.experts.items())
        ],
        axes=list(_axes(known)),
        turned=None
        if turn is None
        else schema.TurnPart(units=turn.units, alike=turn.alike, cosine=_short(turn.cosine)),
    )


def _axes(known: Correspondence) -> Iterator[schema.AxisPart]:
    of_vocabulary = "tokens" if known.spelt else "rows"
    for what, match in (("channels", known.channels), (of_vocabulary, known.tokens)):
        if match is not None:
            yield _axis(what, match)
    for (_, layer, expert), match in sorted(known.units.items(), key=lambda one: _place(one[0])):
        yield _axis("units", match, layer, expert)
    for what, heads in (("queries", known.queries), ("groups", known.groups)):
        for layer, match in sorted(heads.items()):
            yield _axis(what, match, layer)


def _place(key: UnitsKey) -> tuple[int, int, str]:
    prefix, layer, expert = key
    return layer, -1 if expert is None else expert, prefix


def _axis(
    what: str, match: Match, layer: int | None = None, expert: int | None = None
) -> schema.AxisPart:
    flipped = 0 if match.signs is None else int(np.count_nonzero(match.signs < 0))
    return schema.AxisPart(
        what=what,
        layer=layer,
        expert=expert,
        before=match.before,
        after=match.after,
        kept=len(match.a),
        moved=int(np.count_nonzero(match.a != match.b)),
        flipped=flipped,
    )


def _number(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else _short(value)


def _short(value: float) -> float:
    """Seven digits, which is what single precision knows."""
    return float(f"{value:.7g}")
