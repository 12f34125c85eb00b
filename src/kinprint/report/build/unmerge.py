"""Which merge made a child, as a document."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from kinprint.diff.merge_records import GroupFinding, TensorFinding, Unmerging
from kinprint.measure.mixtures import Weight
from kinprint.measure.recipes import Settings
from kinprint.records import Cost, MergeMethod
from kinprint.report import schema
from kinprint.report.build.common import made_with, titled
from kinprint.report.translation import Translator
from kinprint.titles import full_titles, public_name


def unmerge_document(found: Unmerging, cost: Cost, seed: int = 0) -> schema.UnmergeDocument:
    """An unmerging as a document; `cost` is what the run took as a whole."""
    refs = (found.child, *found.sources, *found.aside)
    titles = full_titles(refs)
    names = [public_name(ref.given, title) for ref, title in zip(refs, titles, strict=True)]
    translator = Translator()
    models = [schema.DiffModel.of(ref, title) for ref, title in zip(refs, titles, strict=True)]
    sample = ["--sample", *(["--seed", str(seed)] if seed else [])] if found.sampled else []
    command = ["kinprint", "unmerge", *sample, names[0]]
    given = found.typed_base
    command += [name for at, name in enumerate(names[1:]) if at != given]
    command += [] if given is None else ["--base", names[1 + given]]
    return schema.UnmergeDocument(
        child=models[0],
        sources=models[1 : 1 + len(found.sources)],
        aside=models[1 + len(found.sources) :],
        base=found.base,
        base_given=found.typed_base is not None and found.typed_base == found.base,
        outcome=found.outcome,
        doubt=found.doubt,
        methods=found.methods,
        recipe=_recipe(found),
        copied=found.copied,
        weights=_weights(found.weights),
        residual=_short(found.residual),
        equal=found.equal,
        compared=found.compared,
        tensors=[_tensor(one, translator) for one in found.tensors],
        roles=[_group(one) for one in found.roles],
        layers=[_group(one) for one in found.layers],
        sampled=found.sampled,
        rounded=found.rounded,
        dependent=found.dependent,
        labels=translator.all_said(titled(found.labels, refs, titles)),
        translations=translator.kept,
        made=made_with(shlex.join(command)),
        read=schema.ReadPart.of(cost),
    )


def _recipe(found: Unmerging) -> schema.RecipePart | None:
    if not found.yaml:
        return None
    recipe = found.recipe
    if recipe is None:
        return schema.RecipePart(method=MergeMethod.PASSTHROUGH, yaml=found.yaml)
    alike = len(set(recipe.settings)) == 1
    return schema.RecipePart(
        method=recipe.method,
        parents=recipe.parents,
        base=recipe.base,
        settings=_settings(recipe.settings[0]) if alike else None,
        dtype=recipe.precision.value,
        normalize=recipe.normalize,
        scale=recipe.scale,
        rescale=recipe.rescale,
        yaml=found.yaml,
    )


def _settings(given: Settings | None) -> schema.MergeSettings | None:
    if given is None:
        return None
    return schema.MergeSettings(weights=given.weights, densities=given.densities, t=given.t)


def _tensor(one: TensorFinding, translator: Translator) -> schema.MergedTensor:
    return schema.MergedTensor(
        name=one.name,
        role=one.address.role,
        tower=one.address.tower,
        layer=one.address.layer,
        numbers=one.numbers,
        status=one.status,
        reason=translator.said(one.reason),
        weights=_weights(one.weights),
        residual=_short(one.residual),
        equal=one.equal,
        settings=_settings(one.settings),
        source=None if one.origin is None else one.origin[0],
        source_layer=None if one.origin is None else one.origin[1],
        read=one.read,
    )


def _group(one: GroupFinding) -> schema.MergeGroup:
    return schema.MergeGroup(
        role=one.role,
        layer=one.layer,
        weights=_weights(one.weights),
        residual=_short(one.residual),
    )


def _weights(given: Sequence[Weight]) -> tuple[schema.MergeWeight, ...]:
    return tuple(
        schema.MergeWeight(
            sources=one.columns,
            value=float(f"{one.value:.7g}"),
            low=float(f"{one.low:.7g}"),
            high=float(f"{one.high:.7g}"),
        )
        for one in given
    )


def _short(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.7g}")
