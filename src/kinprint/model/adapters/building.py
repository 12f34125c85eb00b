"""One piece of an adapter and the weight it changes, made into an update.

Shapes decide which way round the factors are. What does not fit is refused: a wrong sum
would look like a comparison.
"""

from __future__ import annotations

from math import prod

from msgspec.structs import replace

from kinprint.errors import KinprintError
from kinprint.model.adapters.factors import RANK_FIRST, RANK_LAST, RANK_MIXED, Factor
from kinprint.model.adapters.naming import GGUF, MLX
from kinprint.model.adapters.parsing import Adapter, Piece, refused
from kinprint.model.adapters.update import Update
from kinprint.records import TensorSpec

Shape = tuple[int, ...]

# From this version on PEFT knows which way round stacked experts are stored.
_KNOWS_EXPERTS = (0, 19)


def build_update(
    piece: Piece, name: str, shape: Shape, transposed: bool, adapter: Adapter
) -> Update:
    """What a piece does to the weight `name`, which is stored in that shape."""
    parts = piece.parts
    if "stored" in parts:
        return _stored(piece, name, shape, transposed, adapter)
    if "added" in parts:
        return _added(piece, name, shape, adapter)
    if "tokens" in parts:
        return _tokens(piece, name, shape, adapter)
    if "factor" in parts:
        return _factor(piece, name, shape, transposed)
    return low_rank(piece, name, shape, transposed, adapter)


def _added(piece: Piece, name: str, shape: Shape, adapter: Adapter) -> Update:
    """A number for each output, scaled like the factors beside it and added to a bias."""
    spec = piece.parts["added"]
    module = piece.target.removesuffix(".bias")
    beside = (other for other in adapter.pieces if other.target == module and "b" in other.parts)
    factors = next(beside, None)
    if len(shape) != 1 or spec.shape != shape or factors is None:
        raise _misfit(piece, name, shape)
    scale = factors.scaling.of(prod(factors.parts["b"].shape[1:]))
    return Update(name, "bias", shape, scale, vectors={"added": spec})


def _stored(piece: Piece, name: str, shape: Shape, transposed: bool, adapter: Adapter) -> Update:
    """A tensor in the base's place; more rows than the base are new tokens."""
    spec = piece.parts["stored"]
    same = spec.shape[1:] == shape[1:] if len(shape) == 2 else spec.shape == shape
    if not shape or not same:
        raise _misfit(piece, name, shape)
    if len(shape) == 1:
        update = Update(name, "replaced", shape, stored=Factor(spec, RANK_LAST, 1, shape[0]))
        if "added" not in piece.parts:
            return update
        bias = _added(piece, name, shape, adapter)
        return replace(update, scale=bias.scale, vectors=bias.vectors)
    logical = _logical(spec.shape, transposed)
    order = RANK_FIRST if transposed else RANK_LAST
    stored = Factor(spec, order, logical[-1], logical[-2], prod(logical[:-2]))
    return Update(name, "replaced", logical, stored=stored)


def _tokens(piece: Piece, name: str, shape: Shape, adapter: Adapter) -> Update:
    """Rows of an embedding that were trained; the numbers replace those of the base."""
    spec = piece.parts["tokens"]
    stated = adapter.tokens or {}
    tokens = next(
        (found for module, found in stated.items() if f".{piece.target}".endswith(f".{module}")),
        stated.get("", ()),
    )
    if (
        len(shape) != 2
        or spec.shape != (len(tokens), shape[1])
        or any(t >= shape[0] for t in tokens)
    ):
        raise _misfit(piece, name, shape)
    return Update(name, "tokens", shape, vectors={"tokens": spec}, tokens=tokens)


def _factor(piece: Piece, name: str, shape: Shape, transposed: bool) -> Update:
    """IA3: one number for each output, or for each input of a feed-forward layer."""
    spec = piece.parts["factor"]
    if len(shape) == 1 and spec.count == shape[0]:
        return Update(name, "ia3", shape, vectors={"by_output": spec})
    for turned in (transposed, not transposed) if len(shape) == 2 else ():
        outputs, inputs = _logical(shape, turned)
        parts: dict[Shape, str] = {(outputs, 1): "by_output", (1, inputs): "by_input"}
        part = parts.get(spec.shape)
        if part:
            return Update(name, "ia3", (outputs, inputs), vectors={part: spec})
    raise _misfit(piece, name, shape)


def low_rank(piece: Piece, name: str, shape: Shape, transposed: bool, adapter: Adapter) -> Update:
    """A product of two factors, or of two such products."""
    found = both_factors(piece, shape)
    if found is None or not found[0].rank or found[0].rank != found[1].rank:
        raise _misfit(piece, name, shape)
    down, up = found
    embedding = "embedding_a" in piece.parts
    logical, transposed = _turned(piece, shape, transposed, (up.size, down.size))
    straight = logical[-2:] == (up.size, down.size)
    turned = logical[-2:] == (down.size, up.size)
    if not straight and not turned:
        raise _misfit(piece, name, shape)
    # A square stack says nothing about its order: it is that of the version that wrote it.
    old = len(shape) == 3 and piece.style not in (GGUF, MLX) and adapter.version < _KNOWS_EXPERTS
    flip = turned and (not straight or embedding or (old and not transposed))
    pairs = [(down, up) if flip else (up, down)]
    if "second_a" in piece.parts:
        second = both_factors(replace(piece, parts=_second(piece)), shape)
        if second is None or (second[0].size, second[1].size) != (down.size, up.size):
            raise _misfit(piece, name, shape)
        pairs.append((second[1], second[0]))
    lengths = {"magnitude": prod(logical[:-1]), "diagonal": up.rank, "alpha": 1}
    vectors = {part: piece.parts[part] for part in lengths if part in piece.parts}
    if any(vectors[part].count != lengths[part] for part in vectors):
        raise _misfit(piece, name, shape)
    kind = "loha" if len(pairs) > 1 else "adalora" if "diagonal" in vectors else "lora"
    kind = "embedding" if flip and len(shape) == 2 else kind
    if "magnitude" in vectors:
        if embedding:  # PEFT's norms run over all tokens, MLX's over the numbers of one
            raise refused(vectors["magnitude"].file, "cause.adapter.dora-embedding", weight=name)
        kind = "dora"
    scale = piece.scaling.of(up.rank)
    return Update(name, kind, logical, scale, tuple(pairs), vectors)


def _turned(
    piece: Piece, shape: Shape, transposed: bool, sizes: tuple[int, int]
) -> tuple[Shape, bool]:
    """The logical shape; of one matrix the factors themselves tell which way it is stored."""
    own = piece.style in (GGUF, MLX)
    if "embedding_a" in piece.parts or (own and len(shape) == 2):
        return shape, False
    if not own and len(piece.parts["a"].shape) > 2:  # a convolution
        return (shape[0], prod(shape[1:])), False
    if len(shape) == 2 and sizes[0] != sizes[1]:
        transposed = shape == sizes[::-1]
    return _logical(shape, transposed), transposed


def both_factors(piece: Piece, shape: Shape) -> tuple[Factor, Factor] | None:
    """Both factors, input side first, if they can belong to a weight of that shape."""
    parts = piece.parts
    down = parts.get("a") or parts.get("embedding_a")
    up = parts.get("b") or parts.get("embedding_b")
    if down is None or up is None:
        spec = first_spec(piece)
        raise refused(spec.file, "cause.adapter.half", tensor=spec.name)
    if min(len(down.shape), len(up.shape), len(shape)) < 2:
        return None
    own = piece.style in (GGUF, MLX)
    if len(shape) == 3 and len(up.shape) == (3 if own else 2):
        return _experts(piece, down, up, shape)
    if own and (len(down.shape), len(up.shape), len(shape)) != (2, 2, 2):
        return None
    if piece.style == MLX:
        return _last(down), _first(up)
    if piece.style == GGUF and piece.target.startswith("token_embd"):
        return _last(down), _last(up)
    return _first(down), _last(up)


def _experts(
    piece: Piece, down: TensorSpec, up: TensorSpec, shape: Shape
) -> tuple[Factor, Factor] | None:
    """Factors of stacked experts: one after another, or mixed into the rank."""
    count = shape[0]
    own = piece.style in (GGUF, MLX)
    total = up.shape[-1] * (count if own else 1)
    if not count or not total or total % count or down.count % total:
        return None
    rank, width = total // count, down.shape[-1]
    height = up.shape[1] if own else up.shape[0]
    if down.count != total * width or sorted((height, width)) != sorted(shape[1:]):
        return None
    order = RANK_LAST if own else RANK_MIXED
    return Factor(down, RANK_FIRST, rank, width, count), Factor(up, order, rank, height, count)


def _first(spec: TensorSpec) -> Factor:
    return Factor(spec, RANK_FIRST, spec.shape[0], prod(spec.shape[1:]))


def _last(spec: TensorSpec) -> Factor:
    return Factor(spec, RANK_LAST, prod(spec.shape[1:]), spec.shape[0])


def _second(piece: Piece) -> dict[str, TensorSpec]:
    return {part: piece.parts[f"second_{part}"] for part in "ab" if f"second_{part}" in piece.parts}


def _logical(shape: Shape, transposed: bool) -> Shape:
    return (*shape[:-2], shape[-1], shape[-2]) if transposed and len(shape) > 1 else shape


def first_spec(piece: Piece) -> TensorSpec:
    """The tensor by which a piece is named in messages."""
    return next(iter(piece.parts.values()))


def _misfit(piece: Piece, name: str, shape: Shape) -> KinprintError:
    shown = ", ".join(f"'{spec.name}' {list(spec.shape)}" for spec in piece.parts.values())
    return refused(
        first_spec(piece).file,
        "cause.adapter.misfit",
        tensors=shown,
        weight=name,
        shape=list(shape),
    )
