"""From arrays that were read to a sample: heads first, halves first, outputs as rows. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import TypeVar

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kinprint.lineage.reading.plan import PieceKey
from kinprint.lineage.reading.sample import (
    OUTSIDE,
    Attention,
    Embedding,
    Extent,
    Floats,
    Indices,
    ReadTensor,
    Sample,
    Units,
)
from kinprint.lineage.reading.tower import Piece, Tower, in_halves
from kinprint.model.places import Address
from kinprint.reader.decode import Array
from kinprint.reader.extents import union
from kinprint.reader.plan import slice_bytes
from kinprint.records import ByteRange, Component, Part

NumberedRows = tuple[Indices, Floats]
_K = TypeVar("_K")
_V = TypeVar("_V")


class ReadPiece(Struct, frozen=True):
    """Rows of one logical tensor: which they are (None for all), and what was read for them.

    `stored` are the same numbers as they are stored, where these are less by one; `rounded` is the
    digest of what is stored where single precision has not all of it.
    """

    rows: tuple[int, ...] | None
    values: Floats
    read: tuple[ReadTensor, ...]
    stored: Floats | None = None
    rounded: str = ""

    @classmethod
    def of(
        cls, tower: Tower, piece: Piece, values: Floats, digest: str, stored: Floats | None
    ) -> ReadPiece:
        """A piece with its numbers and their digest, and where they were."""
        ranges: dict[tuple[str, str], list[ByteRange]] = {}
        for reading in tower.readings(piece):
            for _, slices in reading.parts():
                for one in slices:
                    place = one.tensor.file, one.tensor.name
                    ranges.setdefault(place, []).extend(slice_bytes(one))
        read = (ReadTensor(*place, union(spans), digest) for place, spans in ranges.items())
        wide = (reading.take_wide() for reading in tower.readings(piece))
        rounded = " ".join(sha256_of(one) for one in wide if one is not None)
        return cls(piece.rows, values, tuple(read), stored, rounded)


ReadPieces = Mapping[PieceKey, ReadPiece]


def sha256_of(values: Array) -> str:
    """The digest of numbers, row by row."""
    return hashlib.sha256(np.ascontiguousarray(values).data).hexdigest()


def assemble(
    tower: Tower,
    sizes: Mapping[Part, Extent],
    pieces: ReadPieces,
    embedding: Embedding | None,
    head: Embedding | None = None,
) -> Sample:
    """The sample of a tower from what was read of it; `sizes` are those of its parts."""
    norms: dict[tuple[str, int], Floats] = {}
    biases: dict[tuple[str, int], Floats] = {}
    stored: dict[tuple[str, int], Floats] = {}
    routers: dict[int, Floats] = {}
    for (address, _), piece in pieces.items():
        layer = OUTSIDE if address.layer is None else address.layer
        if address in tower.norms:
            vectors = biases if address.role.endswith(".bias") else norms
            vectors[address.role.removesuffix(".bias"), layer] = piece.values.reshape(-1)
            if piece.stored is not None:
                stored[address.role, layer] = piece.stored.reshape(-1)
        elif address.role == "router" and piece.rows is None and tower.owns(address):
            routers[layer] = piece.values
    layers = _Layers(tower, pieces)
    attention = _present({layer: layers.attention(layer) for layer in tower.layers})
    tables = [table for table in (embedding, head) if table is not None]
    experts = [(layer, expert) for layer, all_of in tower.experts.items() for expert in all_of]
    return Sample(
        name=tower.name,
        tower=tower.label,
        key=_digest(pieces, tables),
        width=tower.width,
        depth=tower.depth,
        facts=in_halves(tower.facts),
        norms=norms,
        norm_biases=biases,
        stored_gains=stored,
        units=_present({layer: layers.units(layer, None) for layer in tower.layers}),
        attention=attention,
        experts=_present({place: layers.units(*place) for place in sorted(experts)}),
        routers=routers,
        embedding=embedding,
        head=head,
        headless=tower.main and tower.model.tensor_map.tied is None,
        few=_few(tower, pieces),
        parts=_extents(
            tower, sizes, pieces, {Component.EMBEDDING: embedding, Component.HEAD: head}
        ),
        partial=tower.partial,
        hidden=_hidden(tower, sizes),
        rounded=_rounded(tower, pieces),
        dtypes={address.role: tower.places[address].weight.spec.dtype for address, _ in pieces},
        notes=tuple(tower.notes),
        read=_all_read(pieces, tables),
    )


def _few(tower: Tower, pieces: ReadPieces) -> dict[tuple[Address, bool], NumberedRows]:
    """Rows of all that is no norm, by their numbers; a vector is one row.

    What is stored as a stack of matrices with one member is that matrix.
    """
    few: dict[tuple[Address, bool], NumberedRows] = {}
    for (address, inputs), piece in pieces.items():
        if address in tower.norms:
            continue
        values, numbers = piece.values, piece.rows
        stored = tower.places[address].weight.spec.shape
        stacked = values.ndim > 1 and len(values) == 1 and len(stored) > 2
        if values.ndim == 1 or stacked:
            values, numbers = values.reshape(-1, stored[-1] if stacked else values.size), None
        place = (address.layer, address.expert) if tower.owns(address) else (None, None)
        own = Address(tower.tensor_name(address), *place)
        rows = range(len(values)) if numbers is None else numbers
        few[own, inputs] = _numbers(rows), values
    return few


def _rounded(tower: Tower, pieces: ReadPieces) -> dict[tuple[Part, str], str]:
    """Digests of tensors whose numbers were rounded when they were read, by part and name."""
    found: dict[tuple[Part, str], str] = {}
    for (address, _), piece in pieces.items():
        part = tower.weights.get(address)
        if piece.rounded and part is not None:
            key = replace(part, tower=""), tower.tensor_name(address)
            found[key] = f"{found.get(key, '')} {piece.rounded}"
    return found


def _extents(
    tower: Tower,
    sizes: Mapping[Part, Extent],
    pieces: ReadPieces,
    tables: Mapping[Component, Embedding | None],
) -> dict[Part, Extent]:
    """The parts of a tower with their sizes, and how much of each was read."""
    read: dict[Part, int] = {}
    for (address, _), piece in pieces.items():
        part = tower.weights.get(address)
        if part is not None:
            read[part] = read.get(part, 0) + piece.values.size
    for component, table in tables.items():
        if table is not None:
            part = Part(component, tower=tower.label)
            read[part] = max(read.get(part, 0), table.rows.size)
    some = {part: replace(sizes[part], read=min(read[part], sizes[part].weights)) for part in read}
    return _without_repeated(tower, pieces, {**sizes, **some})


def _without_repeated(
    tower: Tower, pieces: ReadPieces, parts: dict[Part, Extent]
) -> dict[Part, Extent]:
    """The parts without tables that are written again outside the stack."""
    for (address, inputs), piece in pieces.items():
        part = tower.weights.get(address) if tower.is_outside(address) else None
        if part is None:
            continue
        inside = pieces.get((replace(address, tower=tower.stack), inputs))
        if inside is None or not np.array_equal(piece.values, inside.values):
            continue
        known, name, size = parts.pop(part), tower.tensor_name(address), piece.values.size
        tensors = {key: count for key, count in known.tensors.items() if key != name}
        if tensors:
            weights, read = known.weights - size, known.read - size
            parts[part] = replace(known, weights=weights, read=read, tensors=tensors)
    return parts


def _hidden(tower: Tower, sizes: Mapping[Part, Extent]) -> int:
    """About how many weights of a model are in no part, as some headers were not read."""
    if not (tower.main and tower.partial):
        return 0
    return max(tower.model_weights - sum(extent.weights for extent in sizes.values()), 0)


class _Layers:
    """Feed-forwards and heads of single layers, put together from the pieces that were read."""

    def __init__(self, tower: Tower, pieces: ReadPieces) -> None:
        self._tower, self._pieces = tower, pieces

    def units(self, layer: int, expert: int | None) -> Units | None:
        """A feed-forward as far as it was read; None where nothing of it was."""
        prefix = self._tower.feed_forward(layer, expert)
        up = self._piece(f"{prefix}up", layer, expert) if prefix is not None else None
        if up is None or not self._in_stream(up.values):
            return None
        total = self._tower.length(self._tower.address(f"{prefix}up", layer, expert))
        index = _numbers(range(total) if up.rows is None else up.rows)
        down = self._same_rows(up, f"{prefix}down", layer, expert, inputs=True)
        gate = self._same_rows(up, f"{prefix}gate", layer, expert)
        bias = self._same_rows(up, f"{prefix}up.bias", layer, expert)
        return Units(
            index=index,
            total=total,
            up=up.values,
            # Zeros where it was not read: rows of zeros are no evidence in any test, and as long
            # as nobody looks at them they take no memory.
            down=down if down is not None and self._in_stream(down) else _zeros(up.values),
            gate=gate if gate is not None and self._in_stream(gate) else None,
            bias=None if bias is None else bias.reshape(-1),
        )

    def attention(self, layer: int) -> Attention | None:
        """The heads of a layer as far as they were read; None without keys and queries."""
        shape = self._tower.heads(layer)
        q, k = self._piece("q", layer), self._piece("k", layer)
        if shape is None or q is None or k is None:
            return None
        if not (self._in_stream(q.values) and self._in_stream(k.values)):
            return None
        facts = self._tower.facts
        rotated = facts.rotary or 0 if facts.rope in ("half", "interleaved") else 0
        order = _halves(shape.size, rotated) if facts.rope == "interleaved" else None
        v, o = self._piece("v", layer), self._piece("o", layer, inputs=True)
        fits = shape.values > 0
        return Attention(
            q=_heads(q.values, shape.size, order),
            k=_heads(k.values, shape.size, order),
            v=_heads(v.values, shape.values) if fits and v and self._in_stream(v.values) else None,
            o=_heads(o.values, shape.values) if fits and o and self._in_stream(o.values) else None,
            q_bias=self._bias("q.bias", layer, shape.size, order),
            k_bias=self._bias("k.bias", layer, shape.size, order),
            v_bias=self._bias("v.bias", layer, shape.values, None) if fits else None,
            rotated=rotated,
            query_heads=_head_numbers(q, shape.size),
            groups=_head_numbers(k, shape.size),
        )

    def _in_stream(self, rows: Floats) -> bool:
        """Whether rows lie in the residual stream: some models work in a narrower one inside."""
        return bool(rows.shape[-1] == self._tower.width)

    def _bias(self, role: str, layer: int, size: int, order: Indices | None) -> Floats | None:
        piece = self._piece(role, layer)
        return None if piece is None else _heads(piece.values.reshape(-1), size, order)

    def _piece(
        self, role: str, layer: int, expert: int | None = None, *, inputs: bool = False
    ) -> ReadPiece | None:
        return self._pieces.get((self._tower.address(role, layer, expert), inputs))

    def _same_rows(
        self, up: ReadPiece, role: str, layer: int, expert: int | None, *, inputs: bool = False
    ) -> Floats | None:
        """Rows of another matrix for the same units."""
        piece = self._piece(role, layer, expert, inputs=inputs)
        return piece.values if piece is not None and piece.rows == up.rows else None


def _numbers(rows: Sequence[int]) -> Indices:
    return np.arange(len(rows)) if rows == range(len(rows)) else np.array(rows, np.int64)


def _zeros(like: Floats) -> Floats:
    return np.zeros(like.shape, like.dtype)


def _present(parts: Mapping[_K, _V | None]) -> dict[_K, _V]:
    return {key: part for key, part in parts.items() if part is not None}


def _heads(rows: Floats, size: int, order: Indices | None = None) -> Floats | None:
    """Rows by heads, those of a head in halves if an order says how; None where none fit."""
    if len(rows) % size:
        return None
    heads: Floats = rows.reshape(len(rows) // size, size, *rows.shape[1:])
    return heads if order is None else heads[:, order]


def _head_numbers(piece: ReadPiece, size: int) -> Indices | None:
    """Numbers of the heads that rows belong to; None where all were read."""
    return None if piece.rows is None else np.array(piece.rows[::size], np.int64) // size


def _halves(size: int, rotated: int) -> Indices:
    """Positions of pairs (2j, 2j + 1) in the order of halves, then those that do not rotate."""
    pairs = np.arange(rotated)
    return np.concatenate([pairs[::2], pairs[1::2], np.arange(rotated, size)])


def _all_read(pieces: ReadPieces, tables: Sequence[Embedding]) -> tuple[ReadTensor, ...]:
    parts = [part for piece in pieces.values() for part in piece.read]
    parts += [part for table in tables for part in table.read]
    return tuple(
        sorted(dict.fromkeys(parts), key=lambda part: (part.file, part.ranges, part.tensor))
    )


def _digest(pieces: ReadPieces, tables: Sequence[Embedding]) -> str:
    """A name for the contents; it breaks ties between models, so its order never changes."""

    def order(key: PieceKey) -> str:
        address, inputs = key
        return f"{str(address.role)!r}, layer={address.layer}, expert={address.expert}, {inputs}"

    digest = hashlib.sha256()
    for key in sorted(pieces, key=order):
        piece = pieces[key]
        digest.update(f"{key[0]} {key[1]} {piece.values.shape} {piece.rounded}".encode())
        digest.update(" ".join(part.sha256 for part in piece.read).encode())
    for table in tables:
        digest.update(np.ascontiguousarray(table.rows).data)
    return digest.hexdigest()
