"""The byte alphabet and the wire reader, against everything hypothesis thinks of."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models
from tokenizers.decoders import ByteLevel
from tokenizers.pre_tokenizers import ByteLevel as Letters

from kinprint.errors import BadTokenizer
from kinprint.model.tokens import load_vocabulary
from kinprint.model.tokens.protobuf import WireError, fields, varint
from kinprint.model.tokens.spelling import BYTE_ALPHABET, byte_level_bytes, guess_spelling
from tests.model.tokens import builders


def test_the_alphabet_is_that_of_the_tokenizers_library() -> None:
    assert sorted(BYTE_ALPHABET) == sorted(Letters.alphabet())
    judge = Tokenizer(models.WordLevel({c: ord(c) for c in BYTE_ALPHABET}, unk_token="!"))
    judge.decoder = ByteLevel()
    for byte in range(128):
        assert judge.decode([ord(BYTE_ALPHABET[byte])]) == chr(byte)


@given(st.lists(st.binary(max_size=12), max_size=8))
def test_bytes_survive_the_alphabet(tokens: list[bytes]) -> None:
    assert byte_level_bytes([builders.byte_level(token) for token in tokens]) == tokens


@given(st.lists(st.text(max_size=6), max_size=6))
def test_any_text_becomes_some_bytes(texts: list[str]) -> None:
    found = byte_level_bytes(texts)
    for text, token in zip(texts, found, strict=True):
        if set(text) <= set(BYTE_ALPHABET):
            assert builders.byte_level(token) == text
        else:
            assert token == text.encode("utf-8", "surrogatepass")
    guess_spelling(texts).decode(texts)


@given(
    st.lists(
        st.tuples(
            st.integers(1, (1 << 29) - 1),
            st.one_of(st.integers(0, (1 << 64) - 1), st.binary(max_size=300)),
        )
    )
)
def test_fields_come_back_as_written(written: list[tuple[int, int | bytes]]) -> None:
    raw = b"".join(builders.field(number, value) for number, value in written)
    assert [(number, value) for number, _, value in fields(raw)] == written
    for cut in range(1, min(len(raw), 12)):
        with contextlib.suppress(WireError):
            list(fields(raw[:-cut]))


@given(st.binary(max_size=64))
def test_any_bytes_are_a_message_or_refused(raw: bytes) -> None:
    with contextlib.suppress(WireError):
        for number, _, value in fields(raw):
            assert number > 0
            assert isinstance(value, int) or len(value) <= len(raw)
    with contextlib.suppress(BadTokenizer):
        assert load_vocabulary("tokenizer.model", raw).used > 0


@settings(max_examples=50)
@given(st.data())
def test_a_truncated_model_is_refused_or_shorter(data: st.DataObject) -> None:
    texts = data.draw(st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=1))
    raw = builders.sentencepiece([(text, 1) for text in texts])
    whole = load_vocabulary("tokenizer.model", raw)
    assert whole.size == len(texts)
    with contextlib.suppress(BadTokenizer):
        part = load_vocabulary("tokenizer.model", raw[: data.draw(st.integers(0, len(raw)))])
        assert part.tokens == whole.tokens[: part.size]


@pytest.mark.parametrize("raw", [b"", b"\x80", b"\xff" * 9, b"\xff" * 10, b"\x80" * 9 + b"\x02"])
def test_numbers_that_do_not_end_or_fit(raw: bytes) -> None:
    with pytest.raises(WireError):
        varint(raw, 0)
