"""What a pattern's words mean, before shapes and neighbours have their say.

The order is from the particular to the general: the family's own words, parts that
decide alone, the words of the zone a name is in, and the words of a block.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set

from kinprint.model.names.patterns import Pattern, is_number, plain_parts
from kinprint.model.names.tables import Ending, Family, Tables, Word
from kinprint.records import Role

FEED_FORWARD = frozenset({Role.GATE, Role.UP, Role.DOWN, Role.GATE_UP})
FINAL_NORM = Word(Role.NORM_FINAL)
SIDE_NORM = Word(Role.NORM_OTHER, "norm_embed_or_other")
GATE_OR_ROUTER = Word(Role.ROUTER, "gate")
_SSM = Word(Role.SSM)
_SSM_NORM = Word(Role.NORM_OTHER, "ssm_norm")


class WordFinder:
    """Looks words up for one model, whose family and conditions are known."""

    def __init__(self, tables: Tables, family: Family) -> None:
        self.tables = tables
        self.family = family

    @property
    def stacks(self) -> tuple[str, ...]:
        """Where models of the family keep their layers, the usual place first."""
        return self.family.stacks or self.tables.stacks

    def find(
        self, pattern: Pattern, context: Mapping[str, Word] | None = None
    ) -> tuple[Word | None, Ending | None]:
        """The word of a pattern and its ending, None where the tables know none.

        `context` holds the words that the pattern's neighbours give another meaning.
        """
        ending = pattern.ending
        word = self._word(pattern, pattern.parts, context or {})
        if ending is not None and ending.role is Role.BIAS and self._is_module(pattern):
            # A part called bias right under a zone (attn.bias) is a parameter or a buffer.
            return self._word(pattern, (*pattern.parts, "bias"), context or {}), None
        if word == _SSM and ending is None and pattern.parts[-1].endswith("_proj_bias"):
            return word, Ending(Role.BIAS)
        if word is not None or ending is not None:
            return word, ending
        parts = pattern.parts
        if parts and parts[-1] == "scale":
            return self._word(pattern, parts[:-1], context or {}), Ending(detail="scale")
        for text, meaning in self.tables.endings:
            last = parts[-1] if parts else ""
            if last.endswith(text) and len(last) > len(text):
                cut = (*parts[:-1], last[: -len(text)])
                found = self._word(pattern, cut, context or {})
                if found is not None:
                    return found, meaning
        return None, None

    def is_misplaced(self, pattern: Pattern, above: Set[tuple[str, ...]]) -> bool:
        """Say whether a final norm by name alone stands where no stack of layers ends.

        `above` are the places above the model's stacks. Names that say more than "norm" are
        believed: the last norm may be part of the head.
        """
        parts = tuple(plain_parts(pattern.parts))
        told = any(".".join(parts[-size:]) in self.tables.top for size in (2, 3))
        return not (told or parts[:-1] in above or len(above) <= 1)

    def _is_module(self, pattern: Pattern) -> bool:
        zone, rest = self._zone(plain_parts(pattern.parts))
        return pattern.layered and zone in ("attention", "mixer") and not rest

    def _word(
        self, pattern: Pattern, parts: Sequence[str], context: Mapping[str, Word]
    ) -> Word | None:
        plain = plain_parts(parts)
        if not pattern.layered:
            return self._top_word(parts, plain)
        if context and (word := context.get(".".join(parts)) or context.get(".".join(plain))):
            return word
        if word := self._family_word(parts, plain):
            return word
        joined = ".".join((*pattern.stack[-1:], *plain))
        for text, word in self.tables.inside:
            if text in joined:
                return word
        zone, rest = self._zone(plain)
        if zone == "ssm" or (pattern.marked and zone in ("attention", "mixer")):
            return _SSM_NORM if plain and "norm" in plain[-1] else _SSM
        if zone is None:
            return self._first(self.tables.block, parts, plain)
        return self._zone_word(zone, rest, parts, plain)

    def _zone(self, plain: Sequence[str]) -> tuple[str | None, list[str]]:
        zones = self.tables.zones
        for index in range(len(plain) - 1, -1, -1):
            zone = zones.get(plain[index])
            if zone is not None:
                return zone, list(plain[index + 1 :])
        return None, list(plain)

    def _zone_word(
        self, zone: str, rest: Sequence[str], parts: Sequence[str], plain: Sequence[str]
    ) -> Word | None:
        words = self.tables.zone_words["ffn" if zone == "moe" else zone]
        if zone == "router":
            return words.get(".".join(rest), Word(Role.OTHER, "router_parameter"))
        word = None
        if not rest:
            numbered = parts[len(parts) - 1] if parts else ""
            word = words.get(numbered) if is_number(numbered) else None
            word = word or self.tables.block.get(".".join(plain))
            word = word or self.tables.block.get(plain[-1])
        else:
            tail = list(parts[len(parts) - len(rest) :])
            word = self._first(words, rest if "@" in tail else tail, rest)
            word = word or self.tables.block.get(".".join(plain))
        experts = [part for part in plain if "expert" in part or part.startswith("share")]
        if word == GATE_OR_ROUTER:
            # The shapes decide, except where the module leaves no doubt.
            word = Word(Role.GATE) if experts else Word(Role.ROUTER) if zone == "moe" else word
        if word is None or word.role not in FEED_FORWARD:
            return word
        if any(part.startswith("share") for part in experts):
            return Word(Role(f"shared_{word.role}"))
        if experts or zone == "moe":
            return Word(Role(f"expert_{word.role}"))
        return word

    def _family_word(self, parts: Sequence[str], plain: Sequence[str]) -> Word | None:
        words = self.family.words
        if words:
            starred = ["*" if is_number(part) else part for part in parts]
            for form in (parts, starred, plain):
                for tail in _tails(form):
                    if tail in words:
                        return words[tail]
            for head in (".".join(parts[:1]), ".".join(plain[:1])):
                if len(parts) > 1 and (word := words.get(f"{head}.*")):
                    return word
        for start, word in self.family.starts.items():
            if plain and plain[0].startswith(start):
                return word
        return None

    def _top_word(self, parts: Sequence[str], plain: Sequence[str]) -> Word | None:
        for tail in _tails(plain):
            if tail in self.family.top:
                return self.family.top[tail]
            if tail in self.tables.top:
                break
        whole = ".".join(part for part in plain if part not in ("model", "module", "_orig_mod"))
        if word := self.tables.top.get(f"^{whole}"):
            return word
        if word := self._first(self.tables.top, parts, plain):
            return word
        joined = ".".join(plain)
        return next((word for text, word in self.tables.inside if text in joined), None)

    def _first(
        self, words: Mapping[str, Word], parts: Sequence[str], plain: Sequence[str]
    ) -> Word | None:
        """The longest tail that is a word; numbers count first, wrapping never."""
        forms = [list(parts), list(plain)]
        for form in (parts, plain):
            cut = list(form)
            while len(cut) > 1 and cut[-1] in self.tables.wrapping:
                cut.pop()
            forms.append(cut)
        for form in forms:
            if (word := words.get(".".join(form))) is not None:
                return word
        for form in reversed(forms):
            for tail in _tails(form):
                if (word := words.get(tail)) is not None:
                    return word
        return None


def _tails(parts: Sequence[str]) -> Iterator[str]:
    for start in range(len(parts)):
        yield ".".join(parts[start:])
