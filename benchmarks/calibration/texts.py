"""Text that is found on this machine, as tokens of one small vocabulary."""

from __future__ import annotations

import os
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

_LARGEST = 400_000  # bytes of a file that is read
_FEWEST = 0.25  # of the length asked for; a kind with less is filled up with Python

KINDS = {
    "python": (".py",),
    "prose": (".md", ".rst", ".txt", "copyright", "METADATA", "LICENSE"),
    "headers": (".h", ".hpp", ".cuh", ".hxx", ".inl"),
    "settings": (".pyi", ".json", ".yaml", ".yml", ".toml", ".cmake", ".js", ".cfg"),
}


def read_texts(tokens: int, length: int) -> tuple[dict[str, Any], Any]:
    """Token arrays by the kind of text, and the tokenizer that was trained on all of them."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    raw = {name: _text(ends, length) for name, ends in KINDS.items()}
    spare = _text(KINDS["python"], 4 * length)[length:]
    for at, (name, text) in enumerate(raw.items()):
        if len(text) < _FEWEST * length and spare:
            share = len(spare) // len(raw)
            raw[name] = text + spare[at * share : (at + 1) * share][:length]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=tokens, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    tokenizer.train_from_iterator((text[:1_500_000] for text in raw.values()), trainer)
    found = {}
    for name, text in raw.items():
        pieces = [text[at : at + 20_000] for at in range(0, len(text), 20_000)]
        ids = [one.ids for one in tokenizer.encode_batch(pieces)]
        found[name] = np.concatenate([np.asarray(one, np.int64) for one in ids])
        print(f"{name}: {len(text):,} characters, {len(found[name]):,} tokens", flush=True)
    return found, tokenizer


def _text(ends: tuple[str, ...], length: int) -> str:
    """Files of a kind, in the order of their names, up to a length."""
    found: list[str] = []
    left = length
    for path in _files(ends):
        if left <= 0:
            break
        text = path.read_text(encoding="utf-8", errors="ignore")
        found.append(text)
        left -= len(text)
    return "\n".join(found)[:length]


def _files(ends: tuple[str, ...]) -> Iterator[Path]:
    library, packages = (Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib"))
    seen: set[str] = set()
    folders = (library, packages, Path("/usr/share"), Path("/usr/include"), Path("/usr/local"))
    for folder in folders:
        for place, inside, files in os.walk(folder):
            inside.sort()
            for name in sorted(files):
                path = Path(place, name)
                if not name.endswith(ends) or str(path) in seen or path.is_symlink():
                    continue
                seen.add(str(path))
                if path.stat().st_size < _LARGEST:
                    yield path
