"""What headers tell of a model without reading its numbers."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

import kinprint
from tests.reader.formats.gguf.builder import ARRAY, STRING, array, gguf, pair, tensor, text


def header(*pairs: bytes) -> bytes:
    """A file with one small table and some metadata."""
    own = pair("general.architecture", STRING, text("llama"))
    rows = struct.pack("<128f", *range(128))
    return gguf((own, *pairs), [tensor("token_embd.weight", (32, 4))], rows)


@pytest.mark.parametrize("spelt", [True, False])
def test_a_header_without_a_vocabulary_is_no_tokenizer(spelt: bool, tmp_path: Path) -> None:
    words = array(STRING, 4, b"".join(map(text, "abcd")))
    pairs = [pair("tokenizer.ggml.tokens", ARRAY, words)] if spelt else []
    path = tmp_path / "model.gguf"
    path.write_bytes(header(*pairs))
    found = kinprint.inspect(str(path), cache=False).to_dict()
    assert (found["tokenizer"] is not None) == spelt
