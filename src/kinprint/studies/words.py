"""Text in two languages, as one value: a study's words travel with its numbers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Words:
    """The same sentence in English and in Korean."""

    en: str
    ko: str

    def format(self, **values: object) -> Words:
        """Both sentences with the same values filled in."""
        return Words(self.en.format(**values), self.ko.format(**values))
