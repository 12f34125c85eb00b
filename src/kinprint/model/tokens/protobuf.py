"""Protocol Buffers on the wire: the fields of one message, with every length distrusted.

Only what sentencepiece models need; the encoding is described at protobuf.dev.
"""

from __future__ import annotations

from collections.abc import Iterator

from kinprint.errors import Malformed

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_LONGEST_VARINT = 10


class WireError(Malformed):
    """The bytes are no message; the cause says why."""


def fields(data: bytes) -> Iterator[tuple[int, int, int | bytes]]:
    """Number, wire type and value of each field, in the order they stand.

    Numbers of fixed width are given as their bytes: what they mean, the wire does not say.
    """
    at, stop = 0, len(data)
    while at < stop:
        # One byte holds nearly every key and length: the loop runs a million times.
        key = data[at]
        if key < 0x80:
            at += 1
        else:
            key, at = varint(data, at)
        number, wire = key >> 3, key & 7
        if not 0 < number < 1 << 29:
            raise WireError("cause.tokenizer.wire.field", number=number)
        if wire == BYTES:
            if at < stop and data[at] < 0x80:
                end = at + 1 + data[at]
                at += 1
            else:
                size, at = varint(data, at)
                end = at + size
        elif wire == VARINT:
            value, at = varint(data, at)
            yield number, wire, value
            continue
        elif wire in (FIXED32, FIXED64):
            end = at + (4 if wire == FIXED32 else 8)
        else:
            raise WireError("cause.tokenizer.wire.type", type=wire)
        if end > stop:
            raise WireError("cause.tokenizer.wire.cut-field")
        yield number, wire, data[at:end]
        at = end


def varint(data: bytes, at: int) -> tuple[int, int]:
    """The number that starts at `at`, seven bits a byte, and where it ends."""
    value = 0
    for count in range(_LONGEST_VARINT):
        if at + count >= len(data):
            raise WireError("cause.tokenizer.wire.cut-number")
        byte = data[at + count]
        value |= (byte & 0x7F) << 7 * count
        if byte < 0x80:
            if value >> 64:
                raise WireError("cause.tokenizer.wire.large-number")
            return value, at + count + 1
    raise WireError("cause.tokenizer.wire.large-number")
