"""Rows of tensors that tell a merge from a few megabytes, chosen before the first is read.

The same rows are read of the child and of every source. Vectors come first, then matrices, evenly
over the layers, until the allowance is spent; what is left out says so.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from kinprint.diff.blocks import matrix_shape
from kinprint.diff.merge_tensors import Tensor, wants
from kinprint.diff.sampling import bridged, drawn_rows, spread
from kinprint.model.model import Model
from kinprint.records import MergeStatus
from kinprint.text import message

_LEFT_OUT = (MergeStatus.UNREADABLE, MergeStatus.NOT_READ)


def sampled_tensors(
    child: Model, sources: Sequence[Model], tensors: Sequence[Tensor], allowance: int, seed: int
) -> tuple[Tensor, ...]:
    """The tensors, each with the rows that are read of it, or not read at all."""
    gap = child.checkpoint.fetcher.policy.gap
    chosen = {at: _with_rows(tensors[at], seed) for at in _order(tensors)}
    while chosen and bridged(wants(child, sources, list(chosen.values())), gap) > allowance:
        for at in list(chosen)[-max(1, len(chosen) // 8) :]:
            del chosen[at]
    return tuple(chosen.get(at) or _not_read(one) for at, one in enumerate(tensors))


def _order(tensors: Sequence[Tensor]) -> list[int]:
    """Places of tensors that can be read: vectors first, then matrices evenly over the layers."""
    able = [at for at, one in enumerate(tensors) if _is_readable(one)]
    layers = sorted({tensors[at].address.layer or 0 for at in able})
    turn = {layers[at]: place for place, at in enumerate(spread(len(layers)))}

    def key(at: int) -> tuple[bool, int, int, int]:
        address = tensors[at].address
        matrix = len(tensors[at].parts[0].shape or ()) > 1
        return matrix, address.expert or 0, turn[address.layer or 0], at

    return sorted(able, key=key)


def _is_readable(tensor: Tensor) -> bool:
    return tensor.status is not MergeStatus.UNREADABLE and bool(tensor.available)


def _with_rows(tensor: Tensor, seed: int) -> Tensor:
    shapes = (matrix_shape(part.shape or ()) for part in tensor.parts)
    return replace(tensor, rows=tuple(drawn_rows(*shape, seed).rows for shape in shapes))


def _not_read(tensor: Tensor) -> Tensor:
    if tensor.status in _LEFT_OUT or not tensor.available:
        return tensor
    return replace(tensor, status=MergeStatus.NOT_READ, reason=message("diff.reason.not-read"))
