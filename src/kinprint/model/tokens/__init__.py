"""Tokens: a model's vocabulary as bytes, and what two vocabularies share."""

from kinprint.model.tokens.alignment import Alignment, align
from kinprint.model.tokens.choice import VocabularyChoice, choose_vocabulary, has_vocabulary
from kinprint.model.tokens.loading import LARGEST_FILE, load_vocabulary
from kinprint.model.tokens.vocabulary import Vocabulary

__all__ = [
    "LARGEST_FILE",
    "Alignment",
    "Vocabulary",
    "VocabularyChoice",
    "align",
    "choose_vocabulary",
    "has_vocabulary",
    "load_vocabulary",
]
