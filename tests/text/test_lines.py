"""Lines of a terminal: Hangul takes two columns, and no line is too long."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from kinprint import text
from kinprint.text.catalogue import template
from kinprint.text.lines import columns_of, padded, wrapped


@pytest.mark.parametrize("language", text.languages())
def test_widths_are_those_that_a_terminal_library_knows(language: str) -> None:
    for key in text.known_keys(language):
        sentence = template(key, language).replace("\n", " ")
        assert columns_of(sentence) == cell_len(sentence), key


def test_lines_hold_all_words_and_are_short_enough() -> None:
    sentence = "모델 A와 B가 가중치를 공유하는지, how often chance would do that " * 9
    for width in (20, 40, 80):
        lines = wrapped(sentence, "  ", width)
        assert max(map(columns_of, lines)) <= width
        assert " ".join(" ".join(lines).split()) == " ".join(sentence.split())
    assert wrapped("x" * 50, width=20) == ["x" * 20, "x" * 20, "x" * 10]
    assert padded("가", 4) == "가  "


def test_numbers_stay_with_their_signs() -> None:
    said = "of all < 0.1 % changed, p ≤ 10^-6"
    assert wrapped(said, width=8) == ["of all", "< 0.1 %", "changed,", "p", "≤ 10^-6"]
