"""Models split over several GGUF files: their names, and whether the parts fit together.

llama.cpp's `llama-gguf-split` writes `NAME-00001-of-00005.gguf` and, into each part,
`split.no` (from 0), `split.count` and `split.tensors.count` (of the whole model).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from kinprint import text
from kinprint.errors import BadGguf
from kinprint.records import Header

NO, COUNT, TENSORS = "split.no", "split.count", "split.tensors.count"
_NAME = re.compile(r"(?P<stem>.+)-(?P<number>[0-9]{5})-of-(?P<count>[0-9]{5})\.gguf", re.DOTALL)


def split_siblings(path: str) -> tuple[int, int, str] | None:
    """Number (from 1), count and stem that a part's name tells, or None for a whole file.

    Names that only look so (part 6 of 5, part 0) are those of whole files.
    """
    match = _NAME.fullmatch(path)
    if match is None:
        return None
    number, count = int(match["number"]), int(match["count"])
    return (number, count, match["stem"]) if 1 <= number <= count else None


def check_splits(headers: Mapping[str, Header]) -> None:
    """Check that the files, by path, are all the parts of one model and each of them once.

    A missing or foreign part would otherwise show up much later, as a tensor that is not
    there or as one that belongs to another model.
    """
    if not headers:
        return
    first = next(iter(headers))
    if len(headers) == 1 and COUNT not in headers[first].metadata:
        return
    count, total = _number(headers[first], COUNT, first), _number(headers[first], TENSORS, first)
    # A whole file may say "one part" or, from early versions of the tool, "no parts".
    if max(count, 1) != len(headers):
        raise _bad(first, "cause.gguf.split.other-count", said=count, parts=len(headers))
    seen: dict[int, str] = {}
    owners: dict[str, str] = {}
    for path, header in headers.items():
        if (_number(header, COUNT, path), _number(header, TENSORS, path)) != (count, total):
            raise _bad(path, "cause.gguf.split.disagree", first=first)
        _check_number(path, header, len(headers), seen)
        for tensor in header.tensors:
            if tensor.name in owners:
                other = owners[tensor.name]
                raise _bad(path, "cause.gguf.split.tensor-twice", tensor=tensor.name, file=other)
            owners[tensor.name] = path
    if len(owners) != total:
        raise _bad(first, "cause.gguf.split.tensors", total=total, tensors=len(owners))


def _check_number(path: str, header: Header, count: int, seen: dict[int, str]) -> None:
    number = _number(header, NO, path)
    if number >= count:
        raise _bad(path, "cause.gguf.split.beyond", number=number + 1, parts=count)
    if number in seen:
        raise _bad(path, "cause.gguf.split.same", number=number + 1, file=seen[number])
    seen[number] = path
    named = split_siblings(path)
    if named is not None and named[:2] != (number + 1, count):
        raise _bad(path, "cause.gguf.split.name", number=number + 1)


def _bad(file: str, key: str, /, **fields: object) -> BadGguf:
    return BadGguf(file=file, cause=text.message(key, **fields))


def _number(header: Header, key: str, path: str) -> int:
    value = header.metadata.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise _bad(path, "cause.gguf.split.key-missing", key=key)
    return value
