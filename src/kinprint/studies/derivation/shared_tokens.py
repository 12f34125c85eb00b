"""Which tokens two models share, and which of them studies of embeddings look at.

Early ids of a vocabulary are frequent tokens that both models trained well; English ones,
because nearly every tokenizer has them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum
from functools import lru_cache

from msgspec import Struct

from kinprint import text
from kinprint.model.places import Address
from kinprint.model.tokens import Vocabulary, align
from kinprint.studies.derivation.pairwise import A, B
from kinprint.studies.study import StudyInput, TensorRows

TOKENS = 200
EMBED = Address("embed")


class TokenRule(StrEnum):
    """Which shared tokens are taken.

    Words: two or more ASCII letters, with or without a blank before. Printable: two or more
    printable ASCII characters, blanks and signs among them, as in the published sample of fifty.
    """

    WORDS = "words"
    PRINTABLE = "printable"


_PATTERNS = {
    TokenRule.WORDS: re.compile(rb" ?[A-Za-z]{2,}"),
    TokenRule.PRINTABLE: re.compile(rb"[ -~]{2,}"),
}


class SharedTokens(Struct, frozen=True):
    """Tokens that both vocabularies have, with their ids; or why there are none."""

    texts: tuple[str, ...] = ()
    a: tuple[int, ...] = ()
    b: tuple[int, ...] = ()
    reason: str = ""

    @property
    def tensors(self) -> tuple[TensorRows, TensorRows]:
        """The rows of both embeddings, token by token in the same order."""
        return TensorRows(A, EMBED, self.a), TensorRows(B, EMBED, self.b)

    def each(self) -> Iterator[tuple[str, int, int]]:
        """Every token with its id in the first model and in the second."""
        return zip(self.texts, self.a, self.b, strict=True)


def shared_tokens(
    inputs: StudyInput, limit: int = TOKENS, rule: TokenRule = TokenRule.WORDS
) -> SharedTokens:
    """The first `limit` shared tokens that a rule takes, by their id in the second model.

    Ids beyond an embedding's rows are left out: some tokenizers have more tokens than the model
    has rows.
    """
    absent = [
        name for name, known in zip(inputs.names, inputs.vocabularies, strict=True) if known is None
    ]
    if absent:
        names = ", ".join(absent)
        return SharedTokens(reason=text.sentence("study.reason.no-tokenizers", names=names))
    one, other = inputs.vocabularies[A], inputs.vocabularies[B]
    assert one is not None and other is not None
    rows = [_height(inputs, model) for model in (A, B)]
    return _chosen(one, other, rows[A], rows[B], limit, rule)


@lru_cache(maxsize=4)
def _chosen(
    one: Vocabulary, other: Vocabulary, rows_a: float, rows_b: float, limit: int, rule: TokenRule
) -> SharedTokens:
    pairs = align(one, other)
    chosen: list[tuple[int, int, str]] = []
    for at_a, at_b, special in zip(
        pairs.a.tolist(), pairs.b.tolist(), pairs.special.tolist(), strict=True
    ):
        token = one.tokens[at_a]
        fits = at_a < rows_a and at_b < rows_b and not special
        if fits and token is not None and _PATTERNS[rule].fullmatch(token):
            chosen.append((at_b, at_a, token.decode("ascii")))
    chosen = sorted(chosen)[:limit]
    if not chosen:
        return SharedTokens(reason=text.sentence("study.reason.no-shared-token"))
    b, a, texts = zip(*chosen, strict=True)
    return SharedTokens(texts, a, b)


def _height(inputs: StudyInput, model: int) -> float:
    place = inputs.models[model].places.get(EMBED)
    return float("inf") if place is None or place.shape is None else place.shape[0]
