"""Names as data: the words of tensor names and what they mean, in tables beside this file.

A new architecture is a new entry in a table, so that code never learns a model's name.
"""

from kinprint.model.names.patterns import Pattern, Patterns, read_patterns
from kinprint.model.names.tables import Ending, Family, Tables, Word, load_tables
from kinprint.model.names.words import WordFinder

__all__ = [
    "Ending",
    "Family",
    "Pattern",
    "Patterns",
    "Tables",
    "Word",
    "WordFinder",
    "load_tables",
    "read_patterns",
]
