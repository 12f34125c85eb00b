"""The header of any weight file: what to read of it first, and how it is understood."""

from __future__ import annotations

from collections.abc import Sequence

from kinprint.reader.formats.gguf.header import parse_gguf
from kinprint.reader.formats.gguf.values import FIRST_READ
from kinprint.reader.formats.safetensors import guess_header_bytes, parse_safetensors
from kinprint.reader.formats.torch.archive import HEAD, parse_torch
from kinprint.reader.formats.torch.zip import TAIL
from kinprint.reader.formats.view import FileView
from kinprint.reader.plan import ReadPolicy
from kinprint.reader.weights import GGUF, SAFETENSORS
from kinprint.records import ByteRange, Header


def first_ranges(
    kind: str, size: int, names: Sequence[str] | None, policy: ReadPolicy
) -> tuple[ByteRange, ...]:
    """What to read of a file of `size` bytes before anything is known of it.

    An index promises `names`, which tell how long a safetensors header is: one read then
    brings it whole, and often the tensors next to it. The directory of a PyTorch archive
    is at its end.
    """
    if kind == SAFETENSORS:
        reach = policy.first_read
        if names is not None:
            reach = guess_header_bytes(names, size) + policy.first_slack
        return (ByteRange(0, min(reach, size)),)
    if kind == GGUF:
        return (ByteRange(0, min(FIRST_READ, size)),)
    if size <= HEAD + TAIL:
        return (ByteRange(0, size),)
    return (ByteRange(0, HEAD), ByteRange(size - TAIL, size))


def parse_header(kind: str, view: FileView) -> Header:
    """Read and check the header of a weight file of the given kind."""
    if kind == SAFETENSORS:
        return parse_safetensors(view)
    return parse_gguf(view) if kind == GGUF else parse_torch(view)
