"""Which file of a repository is its tokenizer."""

from __future__ import annotations

import pytest

from kinprint.model.tokens import LARGEST_FILE, VocabularyChoice, choose_vocabulary
from kinprint.records import FileEntry


def choose(*paths: str, weights: str = "") -> VocabularyChoice | None:
    return choose_vocabulary([FileEntry(path, 10) for path in paths], weights)


@pytest.mark.parametrize(
    ("paths", "weights", "chosen"),
    [
        (["tokenizer.model", "tokenizer.json", "vocab.json"], "", "tokenizer.json"),
        (["tekken.json", "params.json"], "", "tekken.json"),
        (["qwen.tiktoken", "vocab.txt"], "", "qwen.tiktoken"),
        (["tiktoken.model"], "", "tiktoken.model"),
        (["spiece.model"], "", "spiece.model"),
        (["tokenizer.model.v3", "params.json"], "", "tokenizer.model.v3"),
        (["my_spm.model"], "", "my_spm.model"),
        (["vocab.txt", "vocab.json", "merges.txt"], "", "vocab.json"),
        (["a/tokenizer.json", "tokenizer.json"], "a/model.safetensors", "a/tokenizer.json"),
        (["tokenizer.json", "b/x"], "a/model.safetensors", "tokenizer.json"),
        (["tokenizer/vocab.json"], "model.safetensors", "tokenizer/vocab.json"),
        (
            ["tokenizer/vocab.json", "tokenizer_2/tokenizer.json"],
            "text_encoder_2/model.safetensors",
            "tokenizer_2/tokenizer.json",
        ),
        (["original/tokenizer.model"], "model.safetensors", "original/tokenizer.model"),
        (["tokenizer.json", "q8.gguf"], "q8.gguf", "q8.gguf"),
    ],
)
def test_preferences(paths: list[str], weights: str, chosen: str) -> None:
    found = choose(*paths, weights=weights)
    assert found is not None
    assert found.path == chosen
    assert found.in_header == chosen.endswith(".gguf")


@pytest.mark.parametrize(
    "paths",
    [[], ["config.json"], ["sentencepiece.bpe.model"], ["source.spm"], ["other/tokenizer.json"]],
)
def test_nothing_is_guessed(paths: list[str]) -> None:
    assert choose(*paths) is None


def test_companions_and_sizes() -> None:
    found = choose("x/vocab.json", "x/merges.txt", "merges.txt", weights="x/a.bin")
    assert found == VocabularyChoice("x/vocab.json", ("x/merges.txt",))
    large, empty = FileEntry("tokenizer.json", LARGEST_FILE + 1), FileEntry("tekken.json", 0)
    assert choose_vocabulary([large, empty]) is None
