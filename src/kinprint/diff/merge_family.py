"""A child and the models it may be merged from, opened: which tensors each of them has."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from kinprint.diff.merge_sampling import sampled_tensors
from kinprint.diff.merge_tensors import Tensor, tensors_of, wants
from kinprint.diff.sampling import ALLOWANCE
from kinprint.errors import BadAdapter, naming
from kinprint.model.model import Model
from kinprint.model.opening import open_model
from kinprint.reader.checkpoint import Checkpoint, open_checkpoint
from kinprint.reader.fetch import Fetcher, Want, side_by_side
from kinprint.records import ModelRef
from kinprint.titles import full_titles

_FITTING = 0.99  # of what the source that has most of the child's tensors has of them


class Family(Struct, frozen=True):
    """A child and its sources, opened, and what each was asked for as, the child first; `base` is
    among the sources, `sampled` if some rows of tensors are read."""

    child: Model
    sources: tuple[Model, ...]
    refs: tuple[ModelRef, ...]
    base: int | None
    tensors: tuple[Tensor, ...]
    sampled: bool = False

    def wants(self) -> list[Want]:
        """All bytes that are read."""
        return wants(self.child, self.sources, self.tensors)

    @property
    def fitting(self) -> tuple[int, ...]:
        """Sources that have the tensors of the child that some source has, or nearly all."""
        held = [
            sum(tensor.numbers for tensor in self.tensors if at in tensor.available)
            for at in range(len(self.sources))
        ]
        return tuple(at for at, one in enumerate(held) if one >= _FITTING * max(held))

    def only(self, kept: Sequence[int]) -> Family:
        """The same with some of the sources, the base among them if there is one."""
        return replace(
            self,
            sources=tuple(self.sources[at] for at in kept),
            refs=(self.refs[0], *(self.refs[1 + at] for at in kept)),
            base=None if self.base is None else kept.index(self.base),
            tensors=tuple(tensor.only(kept) for tensor in self.tensors),
        )


def open_family(child: str, parents: Sequence[str], base: str | None, fetcher: Fetcher) -> Family:
    """Open all models and see which tensors correspond; headers are read, and no weight."""
    given = list(dict.fromkeys((*parents, *(() if base is None else (base,)))))

    def opened(name: str) -> tuple[ModelRef, Model]:
        with naming(name):
            checkpoint = open_checkpoint(name, fetcher)
            return checkpoint.ref, _open_source(checkpoint, base)

    refs, models = zip(*side_by_side(opened, [child, *given]), strict=True)
    own, *sources = models
    tensors = tuple(tensors_of(own, sources, full_titles(refs)[1:]))
    at = None if base is None else given.index(base)
    return Family(own, tuple(sources), refs, at, tensors)


def _open_source(checkpoint: Checkpoint, base: str | None) -> Model:
    """A model of a merge; an adapter without a base that can be had stands on that of the merge."""
    try:
        return open_model(checkpoint)
    except BadAdapter:
        if base is None:
            raise
        return open_model(checkpoint, base)


def sampled_family(family: Family, seed: int, allowance: int = ALLOWANCE) -> Family:
    """The same with some rows of tensors, as many bytes as are allowed for all models."""
    tensors = sampled_tensors(family.child, family.sources, family.tensors, allowance, seed)
    return replace(family, tensors=tensors, sampled=True)
