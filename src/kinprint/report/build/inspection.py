"""What a model holds, as a document."""

from __future__ import annotations

import msgspec

from kinprint.model.inspection import Inspection, TensorGroup, group_tensors
from kinprint.model.tensor_map import MappedTensor, TensorMap
from kinprint.records import Cost
from kinprint.report import schema
from kinprint.report.translation import Translator
from kinprint.text import Message


def inspection_document(found: Inspection, spent: Cost) -> schema.InspectionDocument:
    """An inspection as a document; `spent` is what it took to read the headers."""
    checkpoint = found.model.checkpoint
    translator = Translator()
    return schema.InspectionDocument(
        model=found.ref.given,
        name=found.ref.name,
        kind=found.ref.kind,
        commit=found.ref.commit or None,
        format=found.format,
        geometry=msgspec.convert(found.geometry, schema.GeometryPart, from_attributes=True),
        parameters=found.parameters,
        codes=found.codes,
        bytes=found.nbytes,
        dtypes=found.dtypes,
        files=tuple(
            schema.FilePart(path=entry.path, size=entry.size, sha256=entry.sha256)
            for entry in found.shards
        ),
        family=found.tensor_map.family,
        quantisation=_quantisation(found, translator),
        adapter=_adapter(found, translator),
        fused=found.fused,
        tokenizer=found.tokenizer.path if found.tokenizer else None,
        tokenizer_bytes=_tokenizer_bytes(found),
        layers=len(found.model.layers()),
        tied=found.tensor_map.tied,
        unknown=found.tensor_map.unknown,
        tensors=_tensors(found.tensor_map),
        groups=tuple(_group(one, translator) for one in group_tensors(found.tensor_map)),
        warnings=tuple(translator.all_said(found.tensor_map.warnings)),
        labels=tuple(translator.all_said(checkpoint.labels)),
        others=tuple(other.label for other in checkpoint.choice.others),
        notes=tuple(translator.all_said(checkpoint.notes)),
        translations=translator.kept,
        read=schema.ReadPart.of(spent),
    )


def _group(one: TensorGroup, translator: Translator) -> schema.TensorGroupPart:
    return schema.TensorGroupPart(
        pattern=one.pattern,
        role=translator.said(one.role) if isinstance(one.role, Message) else one.role,
        shape=one.shape,
        dtype=one.dtype,
        count=one.count,
    )


def _tokenizer_bytes(found: Inspection) -> int | None:
    choice = found.tokenizer
    if choice is None or choice.in_header:
        return None
    return found.model.checkpoint.files[choice.path].size


def _quantisation(found: Inspection, translator: Translator) -> schema.QuantisationPart | None:
    scheme = found.quantisation
    if scheme is None:
        return None
    return schema.QuantisationPart(
        method=scheme.method,
        bits=scheme.bits,
        group=scheme.group,
        formats={translator.said(one): count for one, count in found.quantised.items()},
        refusal=translator.said(scheme.refusal) or None,
    )


def _adapter(found: Inspection, translator: Translator) -> schema.AdapterPart | None:
    adapter = found.adapter
    if adapter is None:
        return schema.AdapterPart(refusal=translator.said(found.refusal)) if found.refusal else None
    return schema.AdapterPart(
        method=adapter.method,
        words=translator.said(adapter.summary),
        base=adapter.base,
        revision=adapter.revision,
        ranks=adapter.ranks,
        updates=tuple(piece.target for piece in adapter.pieces),
        refusal=None,
    )


def _tensors(found: TensorMap) -> tuple[schema.TensorPart, ...]:
    parts: dict[int, schema.TensorPart] = {}
    for places in found.series:
        first = found.tensors[places[0]]
        spec, role, splits = first.spec, first.role, _splits(first)
        stacked = None if role.stacked is None else f"stacked:{role.stacked}"
        for place in places:
            one = found.tensors[place]
            parts[place] = schema.TensorPart(
                name=one.spec.name,
                shape=spec.shape,
                dtype=spec.dtype,
                file=one.spec.file,
                offset=one.spec.offset,
                nbytes=one.spec.nbytes,
                role=role.role,
                detail=role.detail,
                tower=role.tower,
                layer=role.layer,
                expert=stacked or one.role.expert,
                axes=first.axes,
                splits=splits,
            )
    return tuple(parts[place] for place in range(len(parts)))


def _splits(one: MappedTensor) -> schema.SplitsPart | None:
    pattern, layout = one.splits, one.layout
    if not pattern:
        return None
    return schema.SplitsPart(dim=0 if layout.flat else layout.axis, pattern=pattern)
