"""Small tokenizer files, written as their formats are, right or wrong as a test needs them."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any

from kinprint.model.tokens.spelling import BYTE_ALPHABET


def byte_level(token: bytes) -> str:
    return "".join(BYTE_ALPHABET[byte] for byte in token)


def tokenizer_json(model: Mapping[str, Any], **parts: Any) -> bytes:
    return json.dumps({"version": "1.0", "model": dict(model), **parts}).encode()


def byte_level_json(tokens: Sequence[bytes], special: Mapping[str, int], merges: Any = ()) -> bytes:
    vocab = {byte_level(token): at for at, token in enumerate(tokens)}
    return tokenizer_json(
        {"type": "BPE", "vocab": vocab, "merges": list(merges)},
        pre_tokenizer={"type": "ByteLevel"},
        decoder={"type": "ByteLevel"},
        added_tokens=[{"id": i, "content": t, "special": True} for t, i in special.items()],
    )


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def field(number: int, value: int | bytes) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def sentencepiece(pieces: Sequence[tuple[str, int]], algorithm: int = 2) -> bytes:
    made = b""
    for text, kind in pieces:
        inner = field(1, text.encode()) + varint(2 << 3 | 5) + b"\0\0\x80\xbf"
        made += field(1, inner + (field(3, kind) if kind != 1 else b""))
    return made + field(2, field(3, algorithm)) + field(3, b"")


def tiktoken(tokens: Sequence[bytes]) -> bytes:
    lines = (base64.b64encode(token) + b" %d" % at for at, token in enumerate(tokens))
    return b"\n".join(lines) + b"\n"


def tekken(tokens: Sequence[bytes], special: Sequence[str]) -> bytes:
    return json.dumps(
        {
            "config": {
                "default_vocab_size": len(tokens) + len(special),
                "default_num_special_tokens": len(special),
            },
            "vocab": [
                {"rank": at, "token_bytes": base64.b64encode(token).decode(), "token_str": None}
                for at, token in enumerate(tokens)
            ],
            "special_tokens": [
                {"rank": at, "token_str": text, "is_control": True}
                for at, text in enumerate(special)
            ],
        }
    ).encode()
