"""What parts a model was given, lost or kept: layers, widths, heads, experts, tokens."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise

import numpy as np
from msgspec import Struct

from kinprint.diff.findings import MOST, found, is_alike, matrices_of, share_of
from kinprint.diff.pairing import Correspondence, Match
from kinprint.diff.results import OperationFound, TensorChange
from kinprint.model.model import Model
from kinprint.model.places import Address
from kinprint.records import Component, Operation, Role, TensorStatus
from kinprint.text import joined, message, words

_KEPT_TOKENS = 0.98  # of a vocabulary that was extended or cut
_ALL = 1 - 1e-9  # of the numbers, where two shares are added
_IN_BOTH = (TensorStatus.COMPARED, TensorStatus.OTHER_SHAPE)
_WIDTHS = {  # with the component that has such parts; channels are those of all
    "channels": None,
    "units": Component.FEED_FORWARD,
    "expert_units": Component.EXPERT,
    "experts": Component.EXPERT,
}


class Sizes(Struct, frozen=True):
    """How large a model is, where it has such parts: units are those of a feed-forward, queries
    and keys rows of these matrices, `head` the rows of one head as its configuration says."""

    layers: int
    channels: int | None
    units: int | None
    expert_units: int | None
    experts: int | None
    queries: int | None
    keys: int | None
    head: int | None
    tokens: int | None

    @classmethod
    def of(cls, model: Model) -> Sizes:
        """How large a model is, by its tensors."""
        layer = next(iter(model.layers()), None)

        def size(
            role: Role, axis: int, at: int | None = None, expert: int | None = None
        ) -> int | None:
            place = model.places.get(Address(role, at, expert))
            shape = None if place is None or place.weight.refusal else place.shape
            return None if shape is None or len(shape) <= axis else shape[axis]

        numbers = [
            one.expert for one in model.places if one.role == Role.EXPERT_UP and not one.tower
        ]
        units = (size(Role.EXPERT_UP, 0, at, 0) for at in model.layers())
        said = model.geometry
        return cls(
            len(model.layers()),
            size(Role.EMBED, 1) or size(Role.UP, 1, layer),
            size(Role.UP, 0, layer),
            next(filter(None, units), None),
            max((one for one in numbers if one is not None), default=-1) + 1 or None,
            size(Role.Q, 0, layer),
            size(Role.K, 0, layer),
            said.head_dim or (said.hidden or 0) // (said.heads or 1) or None,
            size(Role.EMBED, 0),
        )


class Linked(Struct, frozen=True):
    """What says that parts of which there are more or fewer come from one another: tensors that
    were compared, and `components` that a comparison has found in both models.

    `sampled` says that parts of another number were not matched with each other.
    """

    compared: Sequence[TensorChange]
    components: Collection[Component] = ()
    sampled: bool = False

    @property
    def heads(self) -> bool:
        """Whether queries are alike; in a sample, whether anything of attention is."""
        if self.sampled:
            return Component.ATTENTION in self.components
        return any(map(is_alike, self._queries))

    def has_heads(self, rows: int) -> bool:
        """Whether so many rows of queries were matched, and are alike; in a sample, none are."""
        return self.sampled or any(one.shape[0] == rows and is_alike(one) for one in self._queries)

    @property
    def _queries(self) -> list[TensorChange]:
        return [one for one in self._matrices if one.role == Role.Q]

    def has(self, component: Component) -> bool:
        """Whether anything of a component is in both models."""
        alike = (is_alike(one) for one in self._matrices if one.component is component)
        return component in self.components or any(alike)

    @property
    def _matrices(self) -> list[TensorChange]:
        return [one for one in matrices_of(self.compared) if not one.tower]


def resized(
    known: Correspondence, sizes: tuple[Sizes, Sizes], linked: Linked
) -> Iterator[OperationFound]:
    """Layers, widths, heads and tokens of which there are more or fewer, or in another order."""
    a, b = sizes
    compared = linked.compared
    if b.layers != a.layers:
        kind = Operation.EXPANDED_DEPTH if b.layers > a.layers else Operation.PRUNED_DEPTH
        if a.layers and b.layers:
            yield found(kind, "depth", before=a.layers, after=b.layers)
        else:  # a model of towers alone has no layers of text
            yield found(kind, "stack-new" if b.layers else "stack-gone", count=a.layers + b.layers)
    else:
        moved = [one for one in compared if one.layer != one.from_layer and len(one.shape) > 1]
        each_once = len(set(known.layers.values())) == len(known.layers)
        if moved and share_of(moved, is_alike) >= MOST:
            if each_once and not _in_order(matrices_of(compared)):
                yield found(Operation.REORDERED, "reordered")
            elif not each_once:
                pairs = sorted({(one.layer, one.from_layer) for one in moved if is_alike(one)})
                copies = ", ".join(f"{of}→{to}" for to, of in pairs)
                yield found(Operation.CHANGED, "layers-copied", layers=copies)
    for what, component in _WIDTHS.items():
        before, after = getattr(a, what), getattr(b, what)
        if before and after and before != after:
            kind = Operation.EXPANDED_WIDTH if after > before else Operation.PRUNED_WIDTH
            kept = component is None or linked.has(component)
            yield _resized(kind, what.removeprefix("expert_"), before, after, kept)
    if a.queries and b.queries and b.queries < a.queries:
        size = a.head if a.head == b.head else None
        whole = size and not (a.queries % size or b.queries % size) and linked.has_heads(b.queries)
        kind = Operation.PRUNED_HEADS if whole else Operation.CHANGED
        yield _resized(kind, "heads", a.queries, b.queries, linked.heads)
    each = [one.queries / one.keys for one in sizes if one.queries and one.keys]
    if a.keys != b.keys and len(set(each)) == 2:  # no head was removed with its keys
        yield found(Operation.CHANGED, "keys", before=a.keys, after=b.keys)
    yield from _vocabulary(known, a, b)
    yield from _renamed(known, a, b)


def _resized(kind: Operation, key: str, before: int, after: int, kept: bool) -> OperationFound:
    """Parts of another number; where none was kept they may be new ones."""
    if not kept:
        kind, key = Operation.CHANGED, f"{key}-new"
    return found(kind, key, before=before, after=after)


def _in_order(tensors: Sequence[TensorChange]) -> bool:
    """Whether layers stand in the order that they had, whatever numbers they have now."""
    pairs = {
        (one.tower, one.layer, one.from_layer)
        for one in tensors
        if one.layer is not None and one.from_layer is not None and is_alike(one)
    }
    following = pairwise(sorted(pairs))
    return all(one[0] != other[0] or one[2] < other[2] for one, other in following)


def upcycled(tensors: Sequence[TensorChange]) -> Iterator[OperationFound]:
    """Experts that come from feed-forwards, of all that the second model has."""
    experts = [one for one in tensors if one.expert is not None and one.b is not None]
    made = {(one.layer, one.expert) for one in experts if one.from_expert is None and one.a}
    alike = {(one.layer, one.expert) for one in experts if one.a and is_alike(one)}
    if made and len(made & alike) >= MOST * len(made):
        of = len({(one.layer, one.expert) for one in experts})
        yield found(Operation.UPCYCLED, "upcycled", count=len(made & alike), of=of)


class UnlikeLayers(Struct, frozen=True):
    """Layers of the text model of which no matrix is alike: those whose matrices all became zero
    (`emptied`), or all were zero (`filled`), and the `others`."""

    emptied: frozenset[int] = frozenset()
    filled: frozenset[int] = frozenset()
    others: frozenset[int] = frozenset()

    def __contains__(self, layer: int | None) -> bool:
        return layer in self.emptied | self.filled | self.others


def unlike_layers(compared: Sequence[TensorChange]) -> UnlikeLayers:
    """Layers that are not alike; none where that is so of all."""
    groups: dict[int, list[TensorChange]] = {}
    for one in compared:
        if one.layer is not None and not one.tower and len(one.shape) > 1:
            groups.setdefault(one.layer, []).append(one)
    emptied = {at for at, some in groups.items() if all(map(_is_emptied, some))}
    filled = {at for at, some in groups.items() if all(map(_is_filled, some))}
    unlike = {at for at, some in groups.items() if not any(map(is_alike, some))}
    if len(emptied | filled | unlike) == len(groups):
        return UnlikeLayers()
    others = unlike - emptied - filled
    return UnlikeLayers(frozenset(emptied), frozenset(filled), frozenset(others))


def _is_emptied(one: TensorChange) -> bool:
    """Whether all numbers of a tensor are zero now, and some were not."""
    return one.zeroed > 0 and one.zeroed + one.zeros >= _ALL


def _is_filled(one: TensorChange) -> bool:
    """Whether all numbers of a tensor were zero, and some are not any more."""
    return one.filled > 0 and one.filled + one.zeros >= _ALL


def lost_layers(unlike: UnlikeLayers) -> Iterator[OperationFound]:
    """Layers that became zero, that were zero, and others that are not alike."""
    for kind, key, layers in (
        (Operation.LAYERS_ZEROED, "layers-zero", unlike.emptied),
        (Operation.CHANGED, "layers-filled", unlike.filled),
        (Operation.CHANGED, "layers-unlike", unlike.others),
    ):
        if layers:
            yield found(kind, key, layers=_numbered(layers))


def _numbered(layers: Collection[int]) -> str:
    return ", ".join(map(str, sorted(layers)))


def _renamed(known: Correspondence, a: Sizes, b: Sizes) -> Iterator[OperationFound]:
    """Channels, units, heads and experts of equal number that changed places or signs."""
    moved = []
    if known.channels is not None and a.channels == b.channels:
        moved.append("channels")
    if known.units and a.units == b.units:
        moved.append("units")
    if (known.queries or known.groups) and (a.queries, a.keys) == (b.queries, b.keys):
        moved.append("heads")
    if any(source not in (None, expert) for (_, expert), source in known.experts.items()):
        moved.append("experts")
    if _have_moved(known.tokens if known.spelt else None):
        moved.append("tokens")
    if moved:
        what = joined((words(f"diff.permuted.{one}") for one in moved), ", ")
        yield OperationFound(Operation.PERMUTED, message("diff.operation.permuted", what=what))


def _have_moved(tokens: Match | None) -> bool:
    """Whether nearly all tokens of either model are in the other, and some have another number."""
    if tokens is None or len(tokens.a) < _KEPT_TOKENS * max(tokens.before, tokens.after):
        return False
    return not np.array_equal(tokens.a, tokens.b)


def _vocabulary(known: Correspondence, a: Sizes, b: Sizes) -> Iterator[OperationFound]:
    """Tokens that were added, removed or replaced, or a table with more or fewer rows for the same
    ones."""
    if known.tokens is None or not known.spelt or not a.tokens or not b.tokens:
        return
    shared = len(known.tokens.a)
    before, after = a.tokens - known.tokens.padding[0], b.tokens - known.tokens.padding[1]
    if shared >= _KEPT_TOKENS * max(before, after):  # the same tokens, in whatever order
        if a.tokens != b.tokens:
            kind = Operation.CHANGED
            yield found(kind, "table", before=a.tokens, after=b.tokens, shared=shared)
        return
    kind = Operation.TRANSPLANTED_VOCABULARY
    if shared >= _KEPT_TOKENS * before and after > before:
        kind = Operation.EXPANDED_VOCABULARY
    elif shared >= _KEPT_TOKENS * after and after < before:
        kind = Operation.REDUCED_VOCABULARY
    yield found(kind, "vocabulary", before=a.tokens, after=b.tokens, shared=shared)


def _by_component(tensors: Sequence[TensorChange]) -> dict[Component, list[TensorChange]]:
    groups: dict[Component, list[TensorChange]] = {}
    for one in tensors:
        if one.component is not None:
            groups.setdefault(one.component, []).append(one)
    return groups


def replaced(
    tensors: Sequence[TensorChange], gone: Collection[Component]
) -> Iterator[OperationFound]:
    """Components that both models have and of which nothing is left, of whatever shape.

    Numbers at equal places do not tell that: a copy may have been renumbered in a way that was not
    undone here. So a comparison must say it too.
    """
    known = [one for one in tensors if one.status in _IN_BOTH]
    replaced = tuple(
        component
        for component, some in _by_component(matrices_of(known)).items()
        if component in gone and not any(is_alike(one) for one in some)
    )
    if replaced:
        yield found(Operation.REPLACED, "replaced", replaced)


def kept_as_it_was(
    tensors: Sequence[TensorChange], told: Sequence[TensorChange]
) -> Iterator[OperationFound]:
    """Components with matrices that nothing happened to, where something happened to others: not
    to one of their vectors either, and every tensor has a partner whose numbers were read."""
    frozen = tuple(
        each
        for each, some in _by_component(tensors).items()
        if all(one.equal for one in some) and matrices_of(some)
    )
    resized = any(one.status is TensorStatus.OTHER_SHAPE for one in tensors)
    if frozen and (resized or not all(one.equal for one in told)):
        yield found(Operation.FROZEN, "frozen", frozen)
