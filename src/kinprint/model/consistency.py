"""Which tensors of a model contradict each other: told by shapes alone, said, and left out.

A configuration is a claim, and shapes are facts: here tensors of one layer are held against one
another. Gate, up and down of a feed-forward have as many units, matrices read and write one
residual stream, heads have whole rows, a bias is as long as its weight is high. Only what every
architecture keeps is asked for. The minority is named; nothing is cut to fit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from math import prod

from msgspec.structs import replace

from kinprint.model.geometry import Geometry
from kinprint.model.places import Address, Place
from kinprint.model.symmetries import axes_of
from kinprint.records import FEED_FORWARDS, bias_of
from kinprint.text import Message, message

Places = Mapping[Address, Place]
_ATTENTION = ("q", "k", "v", "o")
_UNITS = ("gate", "up", "down")
_UPS = {f"{prefix}up": prefix for prefix in FEED_FORWARDS}
_READERS = ("q", "k", "gate", "up")
_GATE = "note.wanted.gate"
_FILLED = "note.wanted.filled"
_FEED_FORWARDS = frozenset(prefix + role for prefix in FEED_FORWARDS for role in _UNITS)
_MATRICES = _FEED_FORWARDS | {"embed", "router", *_ATTENTION}


def consistent(places: Places, geometry: Geometry) -> dict[Address, Place]:
    """The same places; those that contradict others carry why."""
    wrong: dict[Address, Message] = {}
    for address, wanted in _contradictions(places, geometry):
        wrong.setdefault(address, wanted)
    if not wrong:
        return dict(places)
    return {
        address: replace(place, contradiction=wrong[address]) if address in wrong else place
        for address, place in places.items()
    }


def stream_width(places: Places, geometry: Geometry, tower: str = "") -> int:
    """The length of a tower's residual stream: what is configured, where some tensor has it.

    Otherwise what most norms have, or what most matrices take in; 0 where there is none.
    """
    lengths = Counter(_norm_lengths(places, tower)) or Counter(_inputs(places, tower))
    if geometry.hidden is not None and (not lengths or lengths[geometry.hidden]):
        return geometry.hidden
    return lengths.most_common(1)[0][0] if lengths else 0


def _inputs(places: Places, tower: str) -> Iterator[int]:
    """Lengths of what matrices that read the residual stream take in."""
    for address, place in places.items():
        shape = place.shape
        if address.tower != tower or address.role not in _READERS or not shape:
            continue
        if len(shape) == 2 and all(shape):
            yield shape[1]


def contradiction_notes(places: Iterable[Place], complete: bool) -> Iterator[Message]:
    """A sentence for every kind of contradiction: the first tensor, and how many are like it.

    Unless tensors are `complete`, a gate may lie in a file that is not known. Empty tensors have
    one sentence together.
    """
    kinds: dict[tuple[str, Message], list[Place]] = {}
    empty: list[Place] = []
    for place in places:
        wanted = place.contradiction
        if wanted is not None and wanted.key == _FILLED:
            empty.append(place)
        elif wanted is not None:
            kinds.setdefault((place.address.role, wanted), []).append(place)
    if empty:
        yield message("note.empty", count=len(empty), tensor=empty[0].weight.name)
    for (_, wanted), alike in kinds.items():
        if wanted.key == _GATE and not complete:
            continue
        weight = alike[0].weight
        fields = {"shape": list(weight.spec.shape), "name": weight.name, "wanted": wanted}
        if len(alike) == 1:
            yield message("note.contradiction", **fields)
        else:
            yield message("note.contradictions", others=len(alike) - 1, **fields)


def _norm_lengths(places: Places, tower: str) -> Iterator[int]:
    for address, place in places.items():
        shape = place.shape
        if address.tower == tower and _of_stream(address.role) and shape and all(shape):
            yield prod(shape)


def _of_stream(role: str) -> bool:
    """Whether a role is a norm over the residual stream, or its bias."""
    return role.startswith("norm") and axes_of(role.removesuffix(".bias"), 1) == ("residual",)


def _contradictions(places: Places, geometry: Geometry) -> Iterator[tuple[Address, Message]]:
    shapes = _shapes(places)
    for address, shape in shapes.items():
        if not all(shape):
            yield address, message(_FILLED)
        elif address.role in _MATRICES and len(shape) != 2:
            yield address, message("note.wanted.matrix")
    matrices = {
        at: (shape[0], shape[1])
        for at, shape in shapes.items()
        # Parts of latent attention have widths of their own, and a detail.
        if len(shape) == 2
        and all(shape)
        and (at.role in _FEED_FORWARDS or places[at].weight.role.detail is None)
    }
    widths = {tower: stream_width(places, geometry, tower) for tower in {at.tower for at in shapes}}
    for address, shape in shapes.items():
        width = widths[address.tower]
        if _of_stream(address.role) and prod(shape) != width:
            yield address, message("note.wanted.numbers", size=width)
    layers = {(at.layer, at.tower) for at in matrices if at.layer is not None}
    experts = Counter((at.layer, at.tower) for at in matrices if at.role == "expert_up")
    for layer, tower in sorted(layers):
        width = widths[tower]
        yield from _attention(shapes, matrices, layer, tower, width, geometry)
        yield from _router(matrices, layer, tower, experts[layer, tower])
    yield from _feed_forwards(shapes, matrices, widths)


def _shapes(places: Places) -> dict[Address, tuple[int, ...]]:
    """Shapes of all places where they are known; those of unreadable codes are not the weights'."""
    return {
        address: shape
        for address, place in places.items()
        if place.weight.refusal is None and (shape := place.shape) is not None
    }


def _feed_forwards(
    shapes: Mapping[Address, tuple[int, ...]],
    matrices: Mapping[Address, tuple[int, int]],
    widths: Mapping[str, int],
) -> Iterator[tuple[Address, Message]]:
    gated = {(at.role.removesuffix("gate"), at.tower) for at in shapes if at.role.endswith("gate")}
    sound = set()  # sizes of feed-forwards without a contradiction: experts are alike
    for address in shapes:
        if address.role not in _UPS:
            continue
        prefix, tower = _UPS[address.role], address.tower
        parts = {
            role: Address(prefix + role, address.layer, address.expert, tower) for role in _UNITS
        }
        bias = Address(bias_of(address.role), address.layer, address.expert, tower)
        gateless = (prefix, tower) in gated and parts["gate"] not in shapes
        known = {role: at for role, at in parts.items() if at in matrices}
        sizes = (tower, gateless, shapes.get(bias), *map(matrices.get, parts.values()))
        if sizes in sound:
            continue
        found = list(_feed_forward(known, matrices, widths[tower]))
        if gateless:
            found.insert(0, (address, message(_GATE)))
        if bias in shapes and address in matrices and prod(shapes[bias]) != matrices[address][0]:
            found.append((bias, message("note.wanted.numbers", size=matrices[address][0])))
        if not found:
            sound.add(sizes)
        yield from found


def _feed_forward(
    known: Mapping[str, Address], matrices: Mapping[Address, tuple[int, int]], width: int
) -> Iterator[tuple[Address, Message]]:
    """Gate, up and down of one feed-forward: as many units, and the stream on the other side."""
    units = {
        role: matrices[at][1] if role == "down" else matrices[at][0] for role, at in known.items()
    }
    usual = _usual(units.values())
    for role, size in units.items():
        if size != usual:
            key = "note.wanted.inputs" if role == "down" else "note.wanted.rows"
            yield known[role], message(key, size=usual)
    stream = {
        role: matrices[at][0] if role == "down" else matrices[at][1] for role, at in known.items()
    }
    yield from _in_stream(known, stream, width)


def _attention(
    shapes: Mapping[Address, tuple[int, ...]],
    matrices: Mapping[Address, tuple[int, int]],
    layer: int | None,
    tower: str,
    width: int,
    geometry: Geometry,
) -> Iterator[tuple[Address, Message]]:
    known = {role: Address(role, layer, None, tower) for role in _ATTENTION}
    known = {role: at for role, at in known.items() if at in matrices}
    stream = {role: matrices[at][role != "o"] for role, at in known.items()}
    yield from _in_stream(known, stream, width)
    for role in ("q", "k", "v"):
        bias = Address(bias_of(role), layer, None, tower)
        if role in known and bias in shapes and prod(shapes[bias]) != matrices[known[role]][0]:
            yield bias, message("note.wanted.numbers", size=matrices[known[role]][0])
    size = geometry.head_dim if tower == "" else None
    if size is None or not {"q", "k"} <= known.keys():
        return
    rows = {role: matrices[at][role == "o"] for role, at in known.items()}
    odd = [role for role in ("q", "k") if rows[role] % size]
    if odd:
        # Where neither fits, the layer has heads of another size.
        if len(odd) == 1:
            yield known[odd[0]], message("note.wanted.rows-of-heads", size=size)
        return
    heads, groups = rows["q"] // size, rows["k"] // size
    if heads % groups:
        yield known["k"], message("note.wanted.groups", heads=heads)
    elif "v" in rows and rows["v"] % groups:
        yield known["v"], message("note.wanted.rows-of-groups", groups=groups)
    elif "v" in rows and "o" in rows and rows["o"] != heads * (rows["v"] // groups):
        yield known["o"], message("note.wanted.inputs", size=heads * (rows["v"] // groups))


def _router(
    matrices: Mapping[Address, tuple[int, int]],
    layer: int | None,
    tower: str,
    experts: int,
) -> Iterator[tuple[Address, Message]]:
    router = Address("router", layer, None, tower)
    if router in matrices and matrices[router][0] < experts:
        yield router, message("note.wanted.experts", size=experts)


def _in_stream(
    known: Mapping[str, Address], sizes: Mapping[str, int], width: int
) -> Iterator[tuple[Address, Message]]:
    """Matrices that read or write another width than the stream, which most of them have.

    Where most have not, the layer works in a narrower stream of its own, as latent attention does.
    """
    if 2 * sum(size == width for size in sizes.values()) > len(sizes):
        for role, size in sizes.items():
            if size != width:
                yield known[role], message("note.wanted.axis", size=width)


def _usual(sizes: Iterable[int]) -> int:
    """The most frequent size; of equally frequent ones the first."""
    counted = Counter(sizes).most_common(1)
    return counted[0][0] if counted else 0
