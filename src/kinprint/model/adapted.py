"""A model as adapter files describe it: the base's rows with the update added.

What an adapter says its base is, is a claim; the merged rows are those of the base that was
opened, and both names are shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from kinprint.errors import BadAdapter
from kinprint.model.adapters import (
    Adapter,
    Matched,
    Update,
    match_updates,
    merged_rows,
    needed,
)
from kinprint.model.layout.parts import IN_OUT
from kinprint.model.model import Floats, Model, Reading, Rows, vocabulary_of
from kinprint.model.places import Place, Weight
from kinprint.model.tokens import Vocabulary
from kinprint.reader.checkpoint import Checkpoint
from kinprint.reader.decode import Array
from kinprint.records import TensorSpec
from kinprint.text import message
from kinprint.titles import full_titles


class AdaptedModel(Model):
    """A base, the updates that an adapter makes to some of its weights, and tensors of its own."""

    adapter_checkpoint: Checkpoint

    def __init__(self, base: Model, checkpoint: Checkpoint, adapter: Adapter) -> None:
        found = _matched(adapter, base)
        if found.own:  # what the base's tensors are may depend on these
            own = {name: replace(spec, name=name) for name, spec in found.own.items()}
            base = Model(base.checkpoint, {**base.checkpoint.tensors(), **own})
        self.base = base
        self.adapter = adapter
        self.adapter_checkpoint = checkpoint
        self.checkpoint = base.checkpoint
        self.config, self.metadata = base.config, base.metadata
        self.geometry, self.tensor_map = base.geometry, base.tensor_map
        self.quantised, self.refusal = base.quantised, base.refusal
        self.weights, self.places = base.weights, base.places
        self.components, self.cut_short = base.components, base.cut_short
        self.updates: Mapping[str, Update] = found.updates
        self.own: Mapping[str, TensorSpec] = found.own
        checkpoint.notes.extend(found.warnings)
        if not self.updates:
            cause = message("cause.adapter.no-names", base=base.name)
            raise BadAdapter(file=checkpoint.shards[0], cause=cause)
        under = full_titles([base.checkpoint.ref])[0]
        checkpoint.labels.append(message("note.adapter", base=under))
        if adapter.base not in (None, base.checkpoint.ref.given, base.name):
            checkpoint.notes.append(
                message("note.adapter-other-base", base=under, named=adapter.base)
            )
        self._resize()

    def _resize(self) -> None:
        """Give tables that stand in the base's place their own number of rows: new tokens."""
        longer = {
            name: _with_rows(self.base.weights[name], update.shape[0])
            for name, update in self.updates.items()
            if update.stored is not None and _rows(self.base.weights[name]) != update.shape[0]
        }
        if longer:
            self.weights = {**self.base.weights, **longer}
            self.places = {
                address: replace(place, weight=longer.get(place.weight.name, place.weight))
                for address, place in self.base.places.items()
            }

    @property
    def name(self) -> str:
        """The adapter's own name."""
        return self.adapter_checkpoint.ref.name

    @property
    def stored(self) -> frozenset[str]:
        """What is left of the base, and the adapter's tensors."""
        replaced = (name for name, update in self.updates.items() if not update.needs_base)
        gone = {spec.name for name in replaced for spec in self.base.weights[name].stored}
        pieces = (spec for piece in self.adapter.pieces for spec in piece.parts.values())
        return self.base.stored - gone | {spec.name for spec in pieces if spec.count}

    def reading(
        self, place: Place, rows: Rows | None = None, columns: range | None = None
    ) -> Reading:
        """Plan reading rows of the merged weight; the base alone where nothing is changed."""
        update = self.updates.get(place.weight.name)
        if update is None:
            reading = self.base.reading(place, rows, columns)
            return self._of_adapter(reading) if place.weight.name in self.own else reading
        layout = place.weight.layout
        assert layout is not None
        part = layout.part(place.part)
        assert part is not None
        first = (place.expert or 0) * layout.outputs
        logical = range(part.rows) if rows is None else rows
        stored = tuple(first + part.stored(row) for row in logical)

        def finish(arrays: Sequence[Array], under: Floats | None) -> Floats:
            merged = merged_rows(update, stored, under, arrays)
            return merged if columns is None else merged[:, columns]

        under = self.base.reading(place, rows) if update.needs_base else None
        slices, offset = needed(update, stored), layout.norm_offset
        return Reading(place, self.adapter_checkpoint, slices, finish, under=under, offset=offset)

    def _of_adapter(self, reading: Reading) -> Reading:
        """The same reading in the adapter's files, which hold what the base does not have."""
        spec = self.own[reading.place.weight.name]
        slices = tuple(replace(one, tensor=spec) for one in reading.slices)
        return replace(reading, checkpoint=self.adapter_checkpoint, slices=slices)

    def vocabulary(self, known: dict[bytes, Vocabulary] | None = None) -> Vocabulary | None:
        """The adapter's own tokenizer where it brings one, else the base's."""
        return vocabulary_of(self.adapter_checkpoint, known) or self.base.vocabulary(known)


def _matched(adapter: Adapter, base: Model) -> Matched:
    """What each piece of an adapter is to a base."""
    shapes = {name: _shape(weight) for name, weight in base.weights.items()}
    turned = [
        name
        for name, weight in base.weights.items()
        if weight.layout is not None and weight.layout.orient == IN_OUT
    ]
    return match_updates(adapter, {k: v for k, v in shapes.items() if v is not None}, turned)


def _rows(weight: Weight) -> int | None:
    return None if weight.layout is None else weight.layout.outputs


def _with_rows(weight: Weight, rows: int) -> Weight:
    """A weight of one part with another number of rows."""
    layout = weight.layout
    if layout is None or layout.fused or layout.experts or len(layout.shape) != 2:
        return weight
    shape = (rows, layout.shape[1]) if layout.axis == 0 else (layout.shape[0], rows)
    part = replace(layout.parts[0], length=rows, period=rows)
    return replace(weight, layout=replace(layout, shape=shape, parts=(part,)))


def _shape(weight: Weight) -> tuple[int, ...] | None:
    if weight.quantised is not None:
        return weight.quantised.shape
    return weight.spec.shape
