"""Which tensor of one model meets which of the other: by meaning, not by name.

Fused, split, transposed, stacked and renamed tensors meet at the same address. Where layers, units,
channels or tokens changed places or number, a `Match` says which rows and columns belong together.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace
from numpy.typing import NDArray

from kinprint.diff.blocks import matrix_shape
from kinprint.model.model import Model
from kinprint.model.places import Address, Place
from kinprint.model.symmetries import axes_of
from kinprint.records import SHARED_PREFIX, Role, feed_forward_of, is_bias, plain_role, weight_of

Indices = NDArray[np.int64]
UnitsKey = tuple[str, int, int | None]
# Of norms inside attention, the matrix whose outputs (0) or inputs (1) they scale.
_SCALED = {Role.NORM_Q: (Role.Q, 0), Role.NORM_K: (Role.K, 0), "norm_attn_inner": (Role.O, 1)}
_EMBEDDING, _HEAD = Address(Role.EMBED), Address(Role.LM_HEAD)


class Match(Struct, frozen=True, eq=False):
    """Places of the first model along an axis, and those of the second that they belong to.

    `before` and `after` are how many places either has; `signs` are what the first is multiplied
    by, where some were flipped. Of rows of a vocabulary, `padding` are as many of each model as
    stand for no token and hold no numbers of their own.
    """

    a: Indices
    b: Indices
    before: int
    after: int
    signs: NDArray[np.float32] | None = None
    padding: tuple[int, int] = (0, 0)

    def of_a(self, values: NDArray[Any], axis: int) -> NDArray[Any]:
        """What the first model has at these places, with the signs of the second."""
        found = np.take(values, self.a, axis=axis)
        if self.signs is None:
            return found
        signs = np.expand_dims(self.signs, tuple(one for one in range(values.ndim) if one != axis))
        return (found.astype(np.float32) * signs).astype(found.dtype)

    def of_b(self, values: NDArray[Any], axis: int) -> NDArray[Any]:
        """What the second model has at these places."""
        return np.take(values, self.b, axis=axis)


class TensorPair(Struct, frozen=True, eq=False):
    """A tensor of each model that belong together; None where one model has no such tensor.

    `rows` and `columns` are matched where they are not the same all along. `missing` says that one
    model is a replica that has the tensor by its name alone.
    """

    a: Place | None
    b: Place | None
    rows: Match | None = None
    columns: Match | None = None
    missing: bool = False

    @property
    def address(self) -> Address:
        """What the tensor is, in the second model where it has it."""
        place = self.b or self.a
        assert place is not None
        return place.address

    @property
    def size(self) -> int:
        """Bytes of both tensors in the types that they are compared in, about."""
        if self.matched is None or self.missing:
            return 0
        rows, columns = self.matched
        places = [place for place in (self.a, self.b) if place is not None]
        widths = (2 if place.weight.format.bits == 16 else 4 for place in places)
        return rows * columns * sum(widths)

    @property
    def matched(self) -> tuple[int, int] | None:
        """Rows and columns that have partners; None where shapes differ and nothing is matched."""
        if self.a is None or self.b is None or self.a.shape is None or self.b.shape is None:
            return None
        sizes = []
        for match, ours, theirs in zip(
            (self.rows, self.columns),
            matrix_shape(self.a.shape),
            matrix_shape(self.b.shape),
            strict=True,
        ):
            if match is None and ours != theirs:
                return None
            sizes.append(ours if match is None else len(match.a))
        return sizes[0], sizes[1]


class Turn(Struct, frozen=True):
    """What is alike after the basis of one model was turned into that of the other.

    `units` were compared, gains of norms multiplied in; `alike` is the share of them whose rows
    agree (a cosine of 0.99 or more), `cosine` the mean.
    """

    units: int
    alike: float
    cosine: float


class Correspondence(Struct, frozen=True, eq=False):
    """How the parts of two models correspond, where that is not by equal number.

    Attributes
    ----------
    layers : for layers of the second model, by tower, the layer of the first that each is from.
    experts : for experts of the second, by layer, the expert of the first; None for a dense
        feed-forward that it was made from.
    channels, tokens : of the residual stream, and of the vocabulary. `spelt` says that tokens were
        matched by what they spell; otherwise rows of equal number are taken to belong together.
    units : by feed-forward (see `feed_forward_of`), layer of the second model, and expert.
    queries, groups : query heads and key-value heads, by layer of the second model.
    turned : where the second model is written in a basis that no renaming of channels gives.
    """

    layers: Mapping[tuple[str, int], int] = field(default_factory=dict)
    experts: Mapping[tuple[int, int], int | None] = field(default_factory=dict)
    channels: Match | None = None
    tokens: Match | None = None
    spelt: bool = True
    units: Mapping[UnitsKey, Match] = field(default_factory=dict)
    queries: Mapping[int, Match] = field(default_factory=dict)
    groups: Mapping[int, Match] = field(default_factory=dict)
    turned: Turn | None = None


AS_NUMBERED = Correspondence()
"""Everything corresponds to what has its number."""


def pair_tensors(a: Model, b: Model, known: Correspondence = AS_NUMBERED) -> list[TensorPair]:
    """Tensors of the second model, in its order, each with that of the first that it is from; then
    those of the first that nothing is from.

    Where one model stores an output head and that of the other is its embedding, the head meets
    this: see `tied_head`.
    """
    ours, theirs = a.places, b.places
    tied = tied_head(a, b)
    if tied is not None and tied.model is a:
        ours = {**ours, tied.head.address: tied.head}
    elif tied is not None:
        theirs = {**theirs, tied.head.address: tied.head}
    used: set[Address] = set()
    found: list[TensorPair] = []
    for address, place in theirs.items():
        source = source_of(address, known)
        partner = ours.get(source)
        if partner is not None:
            used.add(source)
        pair = _matched(partner, place, _axes(place, theirs), known)
        missing = b.checkpoint.lacks(place.weight.spec) or (
            partner is not None and a.checkpoint.lacks(partner.weight.spec)
        )
        found.append(replace(pair, missing=True) if missing else pair)
    return found + [
        TensorPair(place, None) for address, place in ours.items() if address not in used
    ]


class TiedHead(Struct, frozen=True, eq=False):
    """The output head of a model that stores none: its embedding."""

    model: Model
    head: Place


def tied_head(a: Model, b: Model) -> TiedHead | None:
    """The head of that model which stores none and is said to use its embedding, where the other
    stores one; None where both or neither do."""
    for model, other in ((a, b), (b, a)):
        embedding = model.places.get(_EMBEDDING)
        stored = _HEAD in other.places and _HEAD not in model.places
        if stored and embedding is not None and model.tensor_map.tied:
            return TiedHead(model, replace(embedding, address=_HEAD))
    return None


def _matched(a: Place | None, b: Place, axes: tuple[str, ...], known: Correspondence) -> TensorPair:
    """Two tensors with what corresponds along their axes."""
    if a is None or a.shape is None or b.shape is None or len(a.shape) != len(b.shape):
        return TensorPair(a, b)
    ours, theirs = matrix_shape(a.shape), matrix_shape(b.shape)
    matches = [
        _along(word, b.address, known, (ours[axis], theirs[axis])) for axis, word in enumerate(axes)
    ]
    flipped = [
        _as_flipped(match, b.address.role, word) for match, word in zip(matches, axes, strict=True)
    ]
    rows, columns = (*flipped, None)[:2]
    return TensorPair(a, b, rows, columns)


def _as_flipped(match: Match | None, role: str, word: str) -> Match | None:
    """The same places without signs, for what keeps its sign when a channel or unit is flipped:
    gains, and the gate of a unit that is odd in what it goes up by."""
    gate = word == "unit" and plain_role(weight_of(role)) == Role.GATE
    kept = gate or role.startswith("norm_")
    if match is None or match.signs is None or not kept:
        return match
    return replace(match, signs=None)


def _axes(place: Place, places: Mapping[Address, Place]) -> tuple[str, ...]:
    """Words for the outputs and inputs of a tensor, which is one of `places`."""
    role, ndim = place.address.role.partition(":")[0], len(place.shape or ())
    wide = _is_over_all_heads(place, places)
    if is_bias(role):
        return axes_of(Role.BIAS, 1, detail=role, wide=wide)[:1]
    return axes_of(role, ndim, detail=place.weight.role.detail, wide=wide)[:2]


def _is_over_all_heads(place: Place, places: Mapping[Address, Place]) -> bool:
    """Whether it scales all heads at once: it is as long as what it scales, not as one head."""
    words = (weight_of(place.address.role), place.weight.role.detail)
    beside = next((_SCALED[word] for word in words if word in _SCALED), None)
    if beside is None or place.shape is None:
        return False
    matrix = places.get(replace(place.address, role=beside[0]))
    if matrix is None or matrix.shape is None or len(matrix.shape) != 2:
        return False
    return place.shape == (matrix.shape[beside[1]],)


def _along(
    word: str, address: Address, known: Correspondence, sizes: tuple[int, int]
) -> Match | None:
    """What corresponds along an axis; None where all do that have the same number."""
    layer = -1 if address.layer is None else address.layer
    match word.split("."):
        case ["residual"]:
            return known.channels
        case ["vocabulary"]:
            return known.tokens
        case ["unit"]:
            return known.units.get((feed_forward_of(address.role), layer, address.expert))
        case ["expert"]:
            return _expert_rows(known, layer, sizes)
        case ["kv_head", "head", *_]:
            return _widened(known.queries.get(layer), sizes)
        case ["kv_head", *_]:
            return _widened(known.groups.get(layer), sizes)
    return None


def _expert_rows(known: Correspondence, layer: int, sizes: tuple[int, int]) -> Match | None:
    """Rows of a router whose experts changed places."""
    sources = {at: to for (where, at), to in known.experts.items() if where == layer}
    moved = any(to != at for at, to in sources.items())
    if not moved or None in sources.values() or len(set(sources.values())) < len(sources):
        return None
    theirs = np.array(sorted(sources), np.int64)
    ours = np.array([sources[at] for at in theirs.tolist()], np.int64)
    return Match(ours, theirs, sizes[0], sizes[1])


def _widened(heads: Match | None, sizes: tuple[int, int]) -> Match | None:
    """Rows of heads that correspond; those inside a head keep their order."""
    if heads is None:
        return None
    count = int(max(heads.b)) + 1
    inside, rest = divmod(sizes[1], count)
    if rest or sizes[0] % inside:
        return None
    rows = np.arange(inside)
    a, b = ((one[:, None] * inside + rows).reshape(-1) for one in (heads.a, heads.b))
    return Match(a, b, sizes[0], sizes[1])


def source_of(address: Address, known: Correspondence) -> Address:
    """Where in the first model a tensor of the second would be from."""
    if address.layer is None:
        return address
    layer = known.layers.get((address.tower, address.layer), address.layer)
    if address.expert is None or feed_forward_of(address.role) == SHARED_PREFIX:
        return msgspec.structs.replace(address, layer=layer)
    key = (address.layer, address.expert)
    expert = known.experts.get(key, address.expert)
    role = plain_role(address.role) if expert is None else address.role
    return msgspec.structs.replace(address, role=role, layer=layer, expert=expert)
