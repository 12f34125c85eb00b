"""A model whose tensors are asked for by meaning, and come as rows of floats.

Fused, transposed, stacked, permuted, offset, quantised or adapted: what lies on disk is
turned into the logical matrix here, and the planner is asked for no more bytes than the
rows need. A reading is planned first and carried out together with all others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from kinprint.errors import BadQuantisation, FormatError
from kinprint.model.consistency import consistent
from kinprint.model.geometry import Geometry, geometry_of
from kinprint.model.layout import Cut, cut, layout_of
from kinprint.model.layout.parts import IN_OUT, Layout
from kinprint.model.places import (
    Address,
    Place,
    Weight,
    is_companion,
    places_of,
    stored_rows,
    word_of,
)
from kinprint.model.quantised import (
    QuantisedWeight,
    described,
    describing,
    float_rows,
    logical_weights,
    needed,
    scheme_for,
)
from kinprint.model.roles import TensorRole
from kinprint.model.tensor_map import MappedTensor, TensorMap, map_tensors
from kinprint.model.tokens import (
    Vocabulary,
    choose_vocabulary,
    has_vocabulary,
    load_vocabulary,
)
from kinprint.reader.checkpoint import Checkpoint
from kinprint.reader.decode import Array, is_single
from kinprint.reader.fetch import Want
from kinprint.reader.formats.registry import GGUF
from kinprint.reader.jsonfile import parse_object
from kinprint.records import Role, Slice, TensorSpec
from kinprint.text import Message, message

Floats = NDArray[np.float32]
Rows = range | tuple[int, ...]
_CODED = ("I", "U", "F8", "F4", "F6")  # types of numbers that need others to be read
_COMPLEX = ("C64", "C128")
_WIDE = ("F64", "I32", "U32", "I64", "U64")  # types with numbers that single precision has not
_OF_INPUTS = "input_scale"
_NO_SCALES = ("running_statistic", "smoothing", "weight_norm")  # the model computes with these
SIDECARS = ("quantize_config.json", "quant_config.json", "hf_quant_config.json")
"""Where older tools wrote what newer ones keep in the configuration."""
ADAPTER_CONFIG = "adapter_config.json"
"""Where PEFT says what an adapter is."""


class Reading(Struct, frozen=True):
    """Rows of one logical tensor: the slices to read, and what to make of them.

    `finish` gets the arrays of the slices, then the result of `under`, if there is one: the
    rows of a base that an adapter changes. `piece` is how plain numbers are put together.
    `offset` is added to what `finish` gives: gains may be stored less one.
    """

    place: Place
    checkpoint: Checkpoint
    slices: tuple[Slice, ...]
    finish: Callable[[Sequence[Array], Floats | None], Floats]
    as_stored: bool = False
    under: Reading | None = None
    piece: Cut | None = None
    offset: float = 0.0

    def take(self) -> Floats:
        """The rows, whose bytes should be there: see `read_all`."""
        found = self.take_without_offset()
        return found + np.float32(self.offset) if self.offset else found

    def take_without_offset(self) -> Floats:
        """The same rows as the model stores them: a sum with one loses bits of small numbers."""
        base = None if self.under is None else self.under.take_without_offset()
        return self.finish(self.checkpoint.read_there(self.slices, as_stored=self.as_stored), base)

    def take_stored(self) -> Array:
        """The same rows in the type of number that they are stored in, if they have one.

        Packed and adapted weights, and gains that are stored less one, have none: floats.
        """
        if self.piece is None or self.offset:
            return self.take()
        return self.piece.assemble(self.checkpoint.read_there(self.slices, as_stored=True))

    def take_wide(self) -> Array | None:
        """The rows as they are stored, where `take` rounds some; None where it rounds nothing."""
        if self.piece is None or self.place.weight.spec.dtype not in _WIDE:
            return None
        stored = self.piece.assemble(self.checkpoint.read_there(self.slices, as_stored=True))
        return None if is_single(stored) else stored

    def parts(self) -> Iterator[tuple[Checkpoint, tuple[Slice, ...]]]:
        """Everything to read, checkpoint by checkpoint."""
        yield self.checkpoint, self.slices
        if self.under is not None:
            yield from self.under.parts()


class Model:
    """One checkpoint and what its tensors mean.

    `quantised` are the weights that are packed in stored tensors, by their logical names, and
    `refusal` is why those of a method that cannot be read are not among them. `components` are
    the other models of a pipeline, such as the text encoder beside the model that makes pictures.
    `cut_short` is whether a budget left headers unread that would have been looked at.
    `adapter_checkpoint` has the adapter that changes the weights, where there is one.
    """

    adapter_checkpoint: Checkpoint | None = None

    def __init__(self, checkpoint: Checkpoint, specs: Mapping[str, TensorSpec]) -> None:
        self.checkpoint = checkpoint
        self.config = _with_sidecar(checkpoint, specs)
        self.metadata = _metadata(checkpoint)
        self.geometry: Geometry = geometry_of(self.config, self.metadata)
        self.tensor_map: TensorMap = map_tensors(
            tuple(specs.values()), self.config, checkpoint.format, self.metadata,
            checkpoint.complete,
        )  # fmt: skip
        self.quantised: dict[str, QuantisedWeight] = {}
        self.refusal: Message | None = None
        try:
            kinds = [one.spec for one, _ in self.tensor_map.kinds]
            self.quantised = logical_weights(specs, self.config, kinds)
        except BadQuantisation as error:  # norms and embeddings can be read all the same
            self.refusal = error.cause
        self.components: tuple[Model, ...] = ()
        self.cut_short = False

    @property
    def name(self) -> str:
        """What the model is called."""
        return self.checkpoint.ref.name

    @property
    def stored(self) -> frozenset[str]:
        """Names of the tensors in files that it is made of."""
        return frozenset(self.checkpoint.tensors())

    def layers(self, tower: str = "") -> tuple[int, ...]:
        """Numbers of the layers that tensors speak of, in one stack."""
        return self._layers.get(tower, ())

    @cached_property
    def places(self) -> dict[Address, Place]:
        """Every address of the model, with what contradicts others."""
        return consistent(places_of(self.weights.values()), self.geometry)

    @cached_property
    def weights(self) -> dict[str, Weight]:
        """Every tensor as it would be without quantisation, by its name."""
        packed = {
            spec.name: weight
            for weight in self.quantised.values()
            for spec in weight.parts.values()
        }
        weights: dict[str, Weight] = {}
        # Tensors stored alike have one layout; so have the weights that are packed in them.
        alike: dict[tuple[object, ...], Layout | None] = {}
        for one in self.tensor_map.tensors:
            name = one.spec.name
            if name not in packed:
                weights[name] = self._plain(one)
            elif one.role.of is None and one.role.role is not Role.BIAS:
                whole = packed[name]
                key = (id(one.layout), whole.shape, "qweight" in whole.parts)
                if key not in alike:
                    alike[key] = self._unpacked_layout(one.spec, one.role, whole)
                weights[whole.name] = Weight(whole.name, one.spec, one.role, alike[key], whole)
        return weights

    @property
    def kinds(self) -> list[tuple[Weight, int]]:
        """Weights that differ by the expert alone, one of each kind, with how many there are.

        Those of a quantised model, which may differ by their packing, are told one by one.
        """
        if self.quantised:
            return [(weight, 1) for weight in self.weights.values()]
        return [(self._plain(one), times) for one, times in self.tensor_map.kinds]

    @cached_property
    def _layers(self) -> dict[str, tuple[int, ...]]:
        found: dict[str, set[int]] = {}
        for weight, _ in self.kinds:
            layer, tower, word = weight.role.layer, weight.role.tower or "", word_of(weight.role)
            if layer is not None and word is not None and not word.startswith(Role.OTHER):
                found.setdefault(tower, set()).add(layer)
        return {tower: tuple(sorted(layers)) for tower, layers in found.items()}

    @property
    def stacks(self) -> tuple[str, ...]:
        """Stacks of layers by name; "" is the text model's only one."""
        return tuple(sorted(self._layers))

    def locate(self, addresses: Sequence[Address]) -> list[Place | None]:
        """The places of logical tensors, None for those that the model has not.

        Some formats tell the shape of a weight in a tensor of its own; these are read, for
        all addresses in one sweep.
        """
        layers = {(address.layer, address.tower) for address in addresses}
        unknown = [
            weight
            for weight in self.weights.values()
            if weight.layout is None and (weight.role.layer, weight.role.tower or "") in layers
        ]
        if unknown:
            self._describe(unknown)
        return [self.places.get(address) for address in addresses]

    def reading(
        self, place: Place, rows: Rows | None = None, columns: range | None = None
    ) -> Reading:
        """Plan reading rows (all if None) of a place, outputs first whichever way it lies."""
        weight = self._readable(place)
        if weight.quantised is not None:
            return self._quantised(place, weight.quantised, rows, columns)
        assert weight.layout is not None
        whole = cut(
            weight.spec, weight.layout, place.part, rows, columns=columns, expert=place.expert
        )
        piece = replace(whole, offset=0.0)
        return Reading(
            place,
            self.checkpoint,
            piece.slices,
            lambda arrays, _: _single(piece.assemble(arrays)),
            piece=piece,
            offset=whole.offset,
        )

    def vocabulary(self, known: dict[bytes, Vocabulary] | None = None) -> Vocabulary | None:
        """The tokenizer's vocabulary, read now; None if the repository has none.

        `known` keeps vocabularies by content, for models that share a tokenizer.
        """
        if self.metadata is not None and has_vocabulary(self.metadata):
            from kinprint.model.tokens.gguf_vocabulary import vocabulary_of_gguf

            return vocabulary_of_gguf(self.checkpoint.shards[0], self.metadata)
        return vocabulary_of(self.checkpoint, known)

    def __repr__(self) -> str:
        return f"<Model {self.name}: {self.tensor_map.family}, {len(self.places)} tensors>"

    def _describe(self, weights: Sequence[Weight]) -> None:
        asked = [
            (one, one.quantised, describing(one.quantised))
            for one in weights
            if one.quantised is not None
        ]
        slices = [part for _, _, parts in asked for part in parts]
        arrays = iter(self.checkpoint.read(slices, as_stored=True))
        for one, quantised, parts in asked:
            known = described(quantised, [next(arrays) for _ in parts])
            layout = self._unpacked_layout(one.spec, one.role, known)
            self.weights[one.name] = Weight(one.name, one.spec, one.role, layout, known)
        self.places = consistent(places_of(self.weights.values()), self.geometry)

    def _readable(self, place: Place) -> Weight:
        weight = place.weight
        if weight.refusal:
            raise BadQuantisation(file=weight.spec.file, cause=weight.refusal)
        if weight.layout is None:
            cause = message("cause.quantised.shape-unread", weight=weight.name)
            raise BadQuantisation(file=weight.spec.file, cause=cause)
        return weight

    def _quantised(
        self, place: Place, weight: QuantisedWeight, rows: Rows | None, columns: range | None
    ) -> Reading:
        layout = place.weight.layout
        assert layout is not None and weight.shape is not None
        part = layout.part(place.part)
        assert part is not None
        logical: Rows = range(part.rows) if rows is None else rows
        if layout.orient == IN_OUT:  # outputs are columns: the rows of the stack are inputs
            height = prod(weight.shape[:-1]) // max(layout.experts, 1)
            first = (place.expert or 0) * height
            lines: Rows = range(first, first + height)
            picked = [part.stored(row) for row in logical]

            def finish(arrays: Sequence[Array], _: Floats | None) -> Floats:
                matrix = float_rows(weight, lines, arrays)[:, picked].T
                return matrix if columns is None else matrix[:, columns]

            return Reading(place, self.checkpoint, needed(weight, lines), finish, True)
        stored = stored_rows(place, logical)

        def assembled(arrays: Sequence[Array], _: Floats | None) -> Floats:
            matrix = float_rows(weight, stored, arrays)
            return matrix if columns is None else matrix[:, columns]

        return Reading(place, self.checkpoint, needed(weight, stored), assembled, True)

    def _plain(self, one: MappedTensor) -> Weight:
        """A tensor that is read as it is.

        Numbers beside no codes are a weight of their own, whatever they are called; a single one
        that is called a scale is one. Scales of codes that are read without them are weights, too:
        the same codes with others are not the same weights.
        """
        role, spec = one.role, one.spec
        counts = prod(spec.shape) > 1 or role.of in self._bare_codes
        if is_companion(role) and counts and not self._serves_codes(role):
            role = replace(role, detail=None, of=None)
        refusal = self._refused.get(spec.name) or _complex(spec)
        return Weight(spec.name, spec, role, one.layout, None, refusal)

    def _serves_codes(self, role: TensorRole) -> bool:
        """Whether a tensor tells how to read the codes of another, or to round what meets them."""
        if role.detail in _NO_SCALES:
            return False
        of_inputs = role.detail == _OF_INPUTS and bool(self._coded or self._bare_codes)
        return role.of in self._coded or of_inputs

    @cached_property
    def _coded(self) -> frozenset[str]:
        """Names of codes that are read with their scales, or not at all, and of what they hold."""
        names = [one.name for weight in self.quantised.values() for one in weight.parts.values()]
        return _with_stems((*names, *self.quantised, *self._refused))

    @cached_property
    def _bare_codes(self) -> frozenset[str]:
        """Names of codes that are read as if they were the numbers."""
        names = (one.spec.name for one in self.tensor_map.tensors if _is_code(one))
        return _with_stems(names) - self._coded

    @cached_property
    def _refused(self) -> dict[str, Message]:
        """Tensors whose codes cannot be read, and why."""
        if self.refusal is None:
            return dict(self._scaled_somehow())
        return {
            one.spec.name: self.refusal
            for one in self.tensor_map.tensors
            if one.role.detail == "packed" or _holds_codes(one.spec)
        }

    def _scaled_somehow(self) -> Iterator[tuple[str, Message]]:
        """Codes with a number for each row beside them, under a name that no method gives it."""
        parts = {one.name for weight in self.quantised.values() for one in weight.parts.values()}
        codes = [one.spec for one in self.tensor_map.tensors if _is_code(one)]
        alone = [one for one in codes if one.name not in parts]
        named = {name: one for one in alone for name in (one.name, one.name.rpartition(".")[0])}
        for one in self.tensor_map.tensors if named else ():
            code = named.get(one.role.of or "")
            scales = is_companion(one.role) and one.role.detail not in (*_NO_SCALES, _OF_INPUTS)
            if code is not None and scales and prod(one.spec.shape) == code.shape[0]:
                fault = message("cause.quantised.beside", tensor=one.spec.name)
                yield code.name, message("cause.quantised.tensor", tensor=code.name, fault=fault)

    def _unpacked_layout(
        self, spec: TensorSpec, role: TensorRole, quantised: QuantisedWeight
    ) -> Layout | None:
        if quantised.shape is None:
            return None
        # GPTQ and AWQ store inputs first, which shows in the name; their codec turns them.
        stored = quantised.name if "qweight" in quantised.parts else spec.name
        return layout_of(
            role.role, quantised.shape, self.config, name=stored, detail=role.detail,
            layer=role.layer, format=self.checkpoint.format, gguf=self.metadata,
        )  # fmt: skip


def read_all(readings: Sequence[Reading]) -> Iterator[Floats]:
    """Carry out readings of any models in one sweep, giving one result after the other.

    All bytes are there before the first result; each array lives only as long as the
    caller keeps it.
    """
    if readings:
        readings[0].checkpoint.fetcher.ensure(wants_of(readings))
    for reading in readings:
        yield reading.take()


def wants_of(readings: Iterable[Reading]) -> list[Want]:
    """The bytes that readings need, those of one model planned together."""
    slices: dict[int, list[Slice]] = {}
    checkpoints: dict[int, Checkpoint] = {}
    for reading in readings:
        for checkpoint, some in reading.parts():
            checkpoints[id(checkpoint)] = checkpoint
            slices.setdefault(id(checkpoint), []).extend(some)
    return [want for key, one in checkpoints.items() for want in one.wants(slices[key])]


def vocabulary_of(
    checkpoint: Checkpoint, known: dict[bytes, Vocabulary] | None = None
) -> Vocabulary | None:
    """The vocabulary in a repository's tokenizer files, read now; equal files are parsed once."""
    paths = vocabulary_files(checkpoint)
    if not paths:
        return None
    raw = checkpoint.read_files(paths)
    key = b"" if known is None else _content(raw)
    if known is not None and key in known:
        return known[key]
    found = load_vocabulary(paths[0], raw.pop(paths[0]), raw)
    if known is not None:
        known[key] = found
    return found


def _content(files: Mapping[str, bytes]) -> bytes:
    """One digest of some files, names included: their ending tells the format."""
    from hashlib import blake2b

    found = blake2b()
    for path, raw in files.items():
        found.update(f"{path} {len(raw)} ".encode())
        found.update(raw)
    return found.digest()


def vocabulary_files(checkpoint: Checkpoint) -> tuple[str, ...]:
    """The tokenizer file of a repository and those that complete it; none in GGUF's header."""
    choice = choose_vocabulary(checkpoint.files.values(), checkpoint.choice.weights.label)
    if choice is None or choice.in_header:
        return ()
    return choice.path, *choice.companions


def _with_stems(names: Iterable[str]) -> frozenset[str]:
    """Names of tensors, and what names of their scales begin with."""
    known = tuple(names)
    return frozenset((*known, *(name.rpartition(".")[0] for name in known)))


def _is_code(one: MappedTensor) -> bool:
    """Whether a tensor is a weight of codes; masks and numbers of positions are none."""
    return one.role.role not in (Role.OTHER, Role.BIAS) and _holds_codes(one.spec)


def _holds_codes(spec: TensorSpec) -> bool:
    """Whether a matrix is of a type of which single numbers mean little without others."""
    return len(spec.shape) > 1 and spec.dtype.startswith(_CODED)


def _complex(spec: TensorSpec) -> Message | None:
    """Why complex numbers are not read: nothing here tells what their two halves mean."""
    if spec.dtype not in _COMPLEX:
        return None
    return message("cause.tensor.complex", tensor=spec.name, dtype=spec.dtype)


def _single(array: NDArray[Any]) -> Floats:
    """Numbers in single precision; what is too large for it is no number."""
    if array.dtype != np.float64:
        return np.ascontiguousarray(array, dtype=np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        found = np.ascontiguousarray(array, dtype=np.float32)
    return np.where(np.isinf(found) & np.isfinite(array), np.float32(np.nan), found)


def _metadata(checkpoint: Checkpoint) -> Mapping[str, object] | None:
    if checkpoint.format != GGUF:
        return None
    return checkpoint.headers()[checkpoint.shards[0]].metadata


def _with_sidecar(checkpoint: Checkpoint, specs: Mapping[str, TensorSpec]) -> dict[str, Any]:
    """The configuration, completed by an older tool's own file about quantisation."""
    config = checkpoint.config
    folder = checkpoint.choice.weights.folder
    paths = {name: f"{folder}/{name}".lstrip("/") for name in SIDECARS}
    there = {name: path for name, path in paths.items() if path in checkpoint.files}
    if not there or scheme_for(config) is not None or scheme_for(config, specs.keys()) is None:
        return config
    for name, path in there.items():
        try:
            said = parse_object(path, checkpoint.read_file(path))
        except FormatError as error:
            checkpoint.notes.append(error.message)
            continue
        inner = said.get("quantization")
        method = {} if "quant_method" in said else {"quant_method": _METHOD_OF.get(name, "")}
        section = inner if isinstance(inner, dict) else {**said, **method}
        return {**config, "quantization_config": section}
    return config


_METHOD_OF = {"quantize_config.json": "gptq", "quant_config.json": "awq"}
