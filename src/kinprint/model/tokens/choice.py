"""Which file of a repository is its tokenizer. Pure: file names in, a choice out.

A repository may ship the same vocabulary three times over, and tokenizers of other parts in
its folders. The choice is the same every time and names what completes the file.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping

from msgspec import Struct

from kinprint.model.tokens.added_tokens import ADDED, MERGES, SETTINGS
from kinprint.model.tokens.loading import LARGEST_FILE
from kinprint.records import FileEntry

GGUF = ".gguf"
GGUF_KEY = "tokenizer.ggml."
"""How keys begin under which the header of a GGUF file describes its tokenizer."""

# In order of preference: the more a file says by itself, the earlier. XLM-R's and Marian's
# sentencepiece files are left out: their numbering is not the model's.
_KINDS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (r"tokenizer\.json", (SETTINGS,)),
    (r"tekken\.json", ()),
    (r".+\.tiktoken|tiktoken\.model", (SETTINGS, ADDED)),
    (r"(tokenizer|spiece|sentencepiece)\.model(\.v\w+)?|ice_text\.model", (SETTINGS, ADDED)),
    (r"vocab\.json", (MERGES, SETTINGS, ADDED)),
    (r"vocab\.txt", (ADDED,)),
    (r"tekken_\w+\.json", ()),
    (r"(?!.*(source|target|\.bpe\.)).+\.model(\.v\w+)?", (SETTINGS, ADDED)),
)


class VocabularyChoice(Struct, frozen=True):
    """The file to read a vocabulary from, and the files beside it that complete it.

    For GGUF weights the file is the weight file itself: its header holds the vocabulary.
    """

    path: str
    companions: tuple[str, ...] = ()

    @property
    def in_header(self) -> bool:
        """Whether the vocabulary is to be taken from the weights' own header."""
        return self.path.lower().endswith(GGUF)


def has_vocabulary(metadata: Mapping[str, object]) -> bool:
    """Whether the header of a GGUF file holds a vocabulary."""
    return bool(metadata.get(GGUF_KEY + "tokens"))


def choose_vocabulary(files: Iterable[FileEntry], weights: str = "") -> VocabularyChoice | None:
    """The tokenizer that belongs to the weight file `weights`, or to the root without one.

    Looked for beside the weights, in the folder that pipelines keep for it, then in the
    folders above, then in Llama's `original`. None if there is nothing of the kind.
    """
    if weights.lower().endswith(GGUF):
        return VocabularyChoice(weights)
    folders: dict[str, dict[str, FileEntry]] = {}
    for entry in files:
        folder, base = posixpath.split(entry.path)
        if 0 < entry.size <= LARGEST_FILE:
            folders.setdefault(folder, {})[base] = entry
    for folder in _where(posixpath.dirname(weights)):
        found = _best(folder, folders.get(folder, {}))
        if found is not None:
            return found
    return None


def _where(home: str) -> list[str]:
    """Folders in which the tokenizer of weights in `home` may lie, nearest first."""
    order = []
    folder = home
    while True:
        above, base = posixpath.split(folder)
        order += [folder, posixpath.join(folder, "tokenizer")]
        if base.startswith("text_encoder"):  # text_encoder_2 goes with tokenizer_2
            order.append(posixpath.join(above, base.replace("text_encoder", "tokenizer", 1)))
        if not folder:
            break
        folder = above
    return list(dict.fromkeys([*order, posixpath.join(home, "original"), "original"]))


def _best(folder: str, names: Mapping[str, FileEntry]) -> VocabularyChoice | None:
    for pattern, companions in _KINDS:
        fitting = sorted(name for name in names if re.fullmatch(pattern, name, re.IGNORECASE))
        if fitting:
            beside = tuple(posixpath.join(folder, c) for c in companions if c in names)
            return VocabularyChoice(posixpath.join(folder, fitting[0]), beside)
    return None
