"""Each file format gives the bytes its tokens stand for."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer

from kinprint.errors import BadTokenizer
from kinprint.model.tokens import load_vocabulary
from kinprint.model.tokens.gguf_vocabulary import vocabulary_of_gguf
from kinprint.model.tokens.likeness import compare_tokenizers, fingerprint
from kinprint.model.tokens.vocabulary import LARGEST_SIZE
from tests.conftest import DEMO, ZOO
from tests.model.tokens.builders import (
    byte_level,
    byte_level_json,
    field,
    sentencepiece,
    tekken,
    tiktoken,
    tokenizer_json,
)

TOKENS = [b"<unk-free>", b"a", b" a", b" hello", b"\n", "é".encode(), b"\xc3", b" \xed\x95\x9c"]


@pytest.mark.parametrize("zoo", [DEMO / "zoo", pytest.param(ZOO, marks=pytest.mark.zoo)])
def test_token_bytes_are_what_the_tokenizers_library_decodes(zoo: Path) -> None:
    different = {path.read_bytes(): path for path in zoo.glob("*/tokenizer.json")}
    assert different
    for content, path in different.items():
        _decodes(path, content)


def _decodes(path: Path, content: bytes) -> None:
    found = load_vocabulary(str(path), content)
    judge = Tokenizer.from_file(str(path))
    assert found.used == judge.get_vocab_size(with_added_tokens=True)
    for at, token in enumerate(found.tokens):
        assert token is not None
        shown = judge.decode([at], skip_special_tokens=False)
        assert token.decode("utf-8", "replace") == shown
    special = {at for at, token in judge.get_added_tokens_decoder().items() if token.special}
    assert found.special == special
    assert found.merges is not None
    for left, right in found.merges[:200].tolist():
        joined = (found.tokens[left] or b"") + (found.tokens[right] or b"")
        assert joined in found.tokens


def test_one_vocabulary_in_five_spellings() -> None:
    """The same tokens at the same ids have one fingerprint whatever file they come in."""
    special = ["<unk>", "<s>", "</s>"]
    plain = [b"a", b" ", b" a", b" hello", b"\n", "é".encode(), b"<", b"br>", b"<br>"]
    raw = [bytes([byte]) for byte in (0xC3, 0x00)]
    first = len(special)
    tekken_found = load_vocabulary("tekken.json", tekken([*plain, *raw], special))
    names = {text: at for at, text in enumerate(special)}
    vocab = names | {byte_level(t): first + at for at, t in enumerate([*plain, *raw])}
    json_found = load_vocabulary(
        "tokenizer.json",
        tokenizer_json(
            {"type": "BPE", "vocab": vocab, "merges": ["a a", "< br>"]},
            decoder={"type": "ByteLevel"},
            added_tokens=[{"id": i, "content": t, "special": True} for t, i in names.items()],
        ),
    )
    kinds = [2, 3, 3]
    pieces = list(zip(special, kinds, strict=True))
    pieces += [(token.decode().replace(" ", "▁"), 1) for token in plain]
    pieces += [(f"<0x{token[0]:02X}>", 6) for token in raw]
    model_found = load_vocabulary("tokenizer.model", sentencepiece(pieces))
    gguf_found = vocabulary_of_gguf(
        "model.gguf",
        {
            "tokenizer.ggml.model": "llama",
            "tokenizer.ggml.tokens": [text for text, _ in pieces],
            "tokenizer.ggml.token_type": np.array([kind for _, kind in pieces], np.int32),
        },
    )
    lines = b"".join(
        line.split()[0] + b" %d\n" % (at + first)
        for at, line in enumerate(tiktoken([*plain, *raw]).splitlines())
    )
    settings = {"added_tokens_decoder": {str(i): {"content": t} for t, i in names.items()}}
    tiktoken_found = load_vocabulary(
        "x.tiktoken", lines, {"tokenizer_config.json": json.dumps(settings).encode()}
    )
    everyone = [tekken_found, json_found, model_found, gguf_found, tiktoken_found]
    assert len({fingerprint(found).vocabulary_sha256 for found in everyone}) == 1
    for found in everyone:
        assert found.tokens == (*(t.encode() for t in special), *plain, *raw)
        assert found.special == {0, 1, 2}
        likeness = compare_tokenizers(found, tekken_found)
        assert likeness.overlap.shared == found.used == likeness.same_id
    assert model_found.fallback == gguf_found.fallback == {12, 13}


def test_wordpiece_starts_and_continuations_differ() -> None:
    lines = "[PAD]\n[unused0]\n[CLS]\nhello\n##hello\n[\n##\n안\n"
    found = load_vocabulary("vocab.txt", lines.encode())
    assert found.tokens[3:6] == (b" hello", b"hello", b" [")
    assert found.special == {0, 1, 2}
    assert found.kind == "wordpiece"
    texts = lines.split("\n")[:-1]
    again = load_vocabulary(
        "tokenizer.json",
        tokenizer_json(
            {"type": "WordPiece", "vocab": {text: at for at, text in enumerate(texts)}},
            added_tokens=[{"id": 0, "content": "[PAD]", "special": True}],
        ),
    )
    assert (again.tokens, again.special) == (found.tokens, found.special)
    phantom = ["[PAD]", "▁[unused0]", "[CLS]", "▁hello", "hello", "▁[", "▁##", "▁안"]
    types = np.array([3, 1, 3, 1, 1, 1, 1, 1], np.int32)
    gguf = vocabulary_of_gguf(
        "m.gguf",
        {
            "tokenizer.ggml.model": "bert",
            "tokenizer.ggml.tokens": phantom,
            "tokenizer.ggml.token_type": types,
        },
    )
    assert (gguf.tokens, gguf.special) == (found.tokens, found.special)


def test_vocab_json_with_merges() -> None:
    texts = [byte_level(bytes([byte])) for byte in range(256)] + ["Ġa", "<b", "<b>", "<|end|>"]
    vocab = json.dumps({text: at for at, text in enumerate(texts)}).encode()
    merges = "#version: 0.2\nĠ a\n< b\n<b >\n".encode()
    found = load_vocabulary("vocab.json", vocab, {"merges.txt": merges})
    assert found.kind == "byte-level"
    assert found.tokens[:256] == tuple(bytes([byte]) for byte in range(256))
    assert found.tokens[256] == b" a"
    assert found.special == {259}  # <b> was learnt, <|end|> was not
    assert found.merges is not None
    assert found.merges.tolist()[0] == [0x20, ord("a")]
    pairs = [["Ġ", "a"], ["<", "b"], ["<b", ">"]]
    same = load_vocabulary(
        "tokenizer.json",
        tokenizer_json({"vocab": json.loads(vocab), "merges": pairs}),
    )
    assert fingerprint(same).merges_sha256 == fingerprint(found).merges_sha256
    assert fingerprint(same).vocabulary_sha256 == fingerprint(found).vocabulary_sha256


def test_unigram_and_metaspace() -> None:
    pieces = [["<pad>", 0], ["</s>", 0], ["<unk>", 0], ["▁the", -1.5], ["s", -2], ["<0x0A>", -9]]
    found = load_vocabulary(
        "tokenizer.json",
        tokenizer_json(
            {"type": "Unigram", "vocab": pieces, "unk_id": 2},
            decoder={"type": "Metaspace", "replacement": "▁"},
            added_tokens=[{"id": 6, "content": "  ", "special": False}],
        ),
    )
    assert found.tokens[3:] == (b" the", b"s", b"\n", b"  ")
    assert found.special == {0, 1, 2}
    assert (found.kind, found.algorithm) == ("sentencepiece", "unigram")
    assert found.merges is None


def test_words_that_end_in_a_mark() -> None:
    vocab = {byte_level(bytes([byte])): byte for byte in range(256)} | {"cat</w>": 256}
    found = load_vocabulary(
        "tokenizer.json",
        tokenizer_json(
            {"type": "BPE", "vocab": vocab, "merges": [], "end_of_word_suffix": "</w>"},
            pre_tokenizer={"type": "ByteLevel"},
        ),
    )
    assert found.tokens[256] == b"cat "


def test_added_tokens_beside_the_file() -> None:
    raw = tiktoken([b"a", b" b"])
    settings = {
        "added_tokens_decoder": {
            "2": {"content": "<|end|>", "special": True},
            "0": {"content": "contradicts", "special": True},
            "huge": {"content": "x"},
            "4": {"content": "  ", "special": False},
        },
        "eos_token": {"content": "<|end|>"},
    }
    files = {"tokenizer_config.json": json.dumps(settings).encode()}
    found = load_vocabulary("tiktoken.model", raw, files)
    assert found.tokens == (b"a", b" b", b"<|end|>", None, b"  ")
    assert found.special == {2}
    assert (found.kind, found.used) == ("tiktoken", 4)


def test_gguf_spellings() -> None:
    metadata: dict[str, object] = {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.tokens": ["Ġ", "a", "Ġa", "<|im_end|>", "[PAD4]", "  "],
        "tokenizer.ggml.token_type": np.array([1, 1, 1, 3, 5, 4], np.int32),
        "tokenizer.ggml.merges": ["Ġ a"],
    }
    found = vocabulary_of_gguf("m.gguf", metadata)
    assert found.tokens == (b" ", b"a", b" a", b"<|im_end|>", None, b"  ")
    assert found.special == {3}
    assert found.merges is not None
    assert found.merges.tolist() == [[0, 1]]
    rwkv = {"tokenizer.ggml.model": "rwkv", "tokenizer.ggml.tokens": ["<s>", "\\x00", "\\n", "'"]}
    assert vocabulary_of_gguf("m.gguf", rwkv).tokens[1:] == (b"\0", b"\n", b"'")


BPE = {"type": "BPE", "merges": []}
HOSTILE: list[tuple[str, bytes, str]] = [
    ("tokenizer.json", b"", "truncated"),
    ("tokenizer.json", b"\xff\xfe", "malformed"),
    ("tokenizer.json", b"[]", "object"),
    ("tokenizer.json", b"[" * 100_000, ""),
    ("tokenizer.json", b'{"model": {"vocab": {"a": "b"}}}', "int"),
    ("tokenizer.json", tokenizer_json(BPE | {"vocab": {}}), "no tokens"),
    ("tokenizer.json", tokenizer_json(BPE | {"vocab": {"a": 2**62}}), "id 4611686018427387904"),
    ("tokenizer.json", tokenizer_json(BPE | {"vocab": {"a": 2**80}}), ""),
    ("tokenizer.json", tokenizer_json(BPE | {"vocab": {"a": -1}}), "id -1"),
    ("tokenizer.json", tokenizer_json(BPE | {"vocab": {"a": 1, "b": 1}}), "two tokens"),
    ("tokenizer.json", tokenizer_json(BPE | {"vocab": {"a": LARGEST_SIZE - 1}}), "holes"),
    ("tokenizer.json", tokenizer_json(BPE | {"vocab": {"a": 0}, "merges": ["a"]}), "two parts"),
    (
        "tokenizer.json",
        tokenizer_json(
            BPE | {"vocab": {"a": 0}},
            added_tokens=[{"id": 1, "content": "<x>"}, {"id": 1, "content": "<y>"}],
        ),
        "two added tokens",
    ),
    ("vocab.json", b'{"a": 0.5}', "int"),
    ("vocab.json", b"{}", "no tokens"),
    ("vocab.txt", b"", "no tokens"),
    ("vocab.txt", b"\xff", "utf-8"),
    ("x.tiktoken", b"YQ== 0\nYQ= 1\n", "line 2 is not base64"),
    ("x.tiktoken", b"YQ== 0\nYQ== 0\n", "two tokens"),
    ("x.tiktoken", b"YQ== 0\nYg==\n", "line 2"),
    ("x.tiktoken", b"YQ== 99999999999999999999\n", "line 1"),
    ("x.tiktoken", b"", "no tokens"),
    ("tokenizer.model", b"", "no tokens"),
    ("tokenizer.model", sentencepiece([("a", 1)])[:4], "ends inside"),
    ("tokenizer.model", b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f", "64 bits"),
    ("tokenizer.model", field(1, b"\x0a\x7f"), "ends inside"),
    ("tokenizer.model", b"\x0b", "wire type 3"),
    ("tokenizer.model", b"version https://git-lfs.github.com/spec/v1\n", "pointer"),
    ("tekken.json", b"{}", "config"),
    ("tekken.json", tekken([b"a"], ["<s>"]).replace(b"YQ==", b"Y~=="), "not base64"),
    ("tekken.json", tekken([b"a"], ["<s>"]).replace(b": 0, ", b": -1, ", 1), "negative"),
    ("weights.bin", b"", "no tokenizer"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "raw", "cause"), HOSTILE)
def test_what_is_no_tokenizer_is_refused(name: str, raw: bytes, cause: str) -> None:
    with pytest.raises(BadTokenizer) as caught:
        load_vocabulary(name, raw)
    assert cause in str(caught.value)


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m.update({"tokenizer.ggml.tokens": "a"}),
        lambda m: m.update({"tokenizer.ggml.tokens": []}),
        lambda m: m.update({"tokenizer.ggml.token_type": np.array([1], np.int32)}),
        lambda m: m.update({"tokenizer.ggml.token_type": np.array([1.0, 1.0])}),
        lambda m: m.update({"tokenizer.ggml.merges": [1]}),
        lambda m: m.update({"tokenizer.ggml.merges": ["a"]}),
        lambda m: m.update({"tokenizer.ggml.token_type": np.array([5, 5], np.int32)}),
    ],
)
def test_a_gguf_header_with_a_wrong_vocabulary(change: Callable[[dict[str, object]], None]) -> None:
    metadata: dict[str, object] = {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.tokens": ["a", "b"],
    }
    change(metadata)
    with pytest.raises(BadTokenizer):
        vocabulary_of_gguf("m.gguf", metadata)


def test_a_byte_level_file_keeps_foreign_letters() -> None:
    found = load_vocabulary("tokenizer.json", byte_level_json(TOKENS, {"<|x|>": 9}))
    assert found.tokens == (*TOKENS, None, b"<|x|>")
