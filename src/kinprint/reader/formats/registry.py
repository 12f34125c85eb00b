"""The formats of weight files, one line each: endings, what to read first, how to parse.

Another package adds one through an entry point of the group `kinprint.formats` that names a
`Format`. Such formats are asked for only where ours find no weights. Nearly all models come as
safetensors: the parsers of other formats are loaded when a file of theirs is there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from kinprint.extensions import FORMATS, Registry
from kinprint.reader.formats.safetensors import guess_header_bytes, parse_safetensors
from kinprint.reader.formats.view import FileView
from kinprint.reader.plan import ReadPolicy
from kinprint.records import ByteRange, Header

SAFETENSORS, GGUF, TORCH = "safetensors", "gguf", "torch"


def first_bytes(
    size: int, names: Sequence[str] | None, policy: ReadPolicy
) -> tuple[ByteRange, ...]:
    """The start of a file, where most formats have their header."""
    return (ByteRange(0, min(policy.first_read, size)),)


class Format(Struct, frozen=True):
    """A kind of weight file.

    Attributes
    ----------
    name : what it is called in documents.
    suffixes : endings of its files, with the dot and in small letters.
    parse : reads and checks the header of a file; raises a `FormatError` for one that breaks
        the format's rules.
    first_ranges : what to read of a file before anything is known of it, given its size, the
        names of tensors that an index promises (None without one) and the policy. A hint: what
        `parse` reads beyond it is fetched then.
    index : the word before `.index.json` in the name of an index of several files, if there
        are such.
    check_parts : raises unless the headers of several files, by path, are those of one model.
    whole : whether the files of a model are one file cut up, none of which is read alone.
    variants : whether repositories hold the same model several times in this format.
    """

    name: str
    suffixes: tuple[str, ...]
    parse: Callable[[FileView], Header]
    first_ranges: Callable[[int, Sequence[str] | None, ReadPolicy], tuple[ByteRange, ...]] = (
        first_bytes
    )
    index: str = ""
    check_parts: Callable[[Mapping[str, Header]], None] | None = None
    whole: bool = False
    variants: bool = False


def _first_of_safetensors(
    size: int, names: Sequence[str] | None, policy: ReadPolicy
) -> tuple[ByteRange, ...]:
    """Promised names tell how long a header is: one read brings it, and often what is next."""
    reach = policy.first_read
    if names is not None:
        reach = guess_header_bytes(names, size) + policy.first_slack
    return (ByteRange(0, min(reach, size)),)


def _first_of_gguf(
    size: int, names: Sequence[str] | None, policy: ReadPolicy
) -> tuple[ByteRange, ...]:
    from kinprint.reader.formats.gguf.values import FIRST_READ

    return (ByteRange(0, min(FIRST_READ, size)),)


def _parse_gguf(view: FileView) -> Header:
    from kinprint.reader.formats.gguf.header import parse_gguf

    return parse_gguf(view)


def _check_splits(headers: Mapping[str, Header]) -> None:
    from kinprint.reader.formats.gguf.splits import check_splits

    check_splits(headers)


def _first_of_torch(
    size: int, names: Sequence[str] | None, policy: ReadPolicy
) -> tuple[ByteRange, ...]:
    """The directory of an archive is at its end."""
    from kinprint.reader.formats.torch.archive import HEAD
    from kinprint.reader.formats.torch.zip import TAIL

    if size <= HEAD + TAIL:
        return (ByteRange(0, size),)
    return (ByteRange(0, HEAD), ByteRange(size - TAIL, size))


def _parse_torch(view: FileView) -> Header:
    from kinprint.reader.formats.torch.archive import parse_torch

    return parse_torch(view)


_OWN = (
    Format(SAFETENSORS, (".safetensors",), parse_safetensors, _first_of_safetensors, "safetensors"),
    Format(GGUF, (".gguf",), _parse_gguf, _first_of_gguf, "", _check_splits, True, True),
    Format(TORCH, (".bin", ".pt", ".pth", ".ckpt"), _parse_torch, _first_of_torch, "bin"),
)


_FORMATS = Registry(FORMATS, Format, lambda: {one.name: one for one in _OWN})


def formats() -> Registry[Format]:
    """All formats by name, ours first and of ours the preferred first."""
    return _FORMATS
