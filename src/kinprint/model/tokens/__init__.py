"""Tokens: a model's vocabulary as bytes, and what two vocabularies share."""

from kinprint.model.tokens.alignment import Alignment, align
from kinprint.model.tokens.choice import VocabularyChoice, choose_vocabulary
from kinprint.model.tokens.gguf_vocabulary import has_vocabulary, vocabulary_of_gguf
from kinprint.model.tokens.likeness import (
    Fingerprint,
    Likeness,
    Overlap,
    Run,
    compare_tokenizers,
    fingerprint,
)
from kinprint.model.tokens.loading import LARGEST_FILE, load_vocabulary
from kinprint.model.tokens.vocabulary import Vocabulary

__all__ = [
    "LARGEST_FILE",
    "Alignment",
    "Fingerprint",
    "Likeness",
    "Overlap",
    "Run",
    "Vocabulary",
    "VocabularyChoice",
    "align",
    "choose_vocabulary",
    "compare_tokenizers",
    "fingerprint",
    "has_vocabulary",
    "load_vocabulary",
    "vocabulary_of_gguf",
]
