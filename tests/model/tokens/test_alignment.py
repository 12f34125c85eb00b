"""Pairs of tokens, and the figures that two tokenizers are compared by."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kinprint.model.tokens import Vocabulary, align
from kinprint.model.tokens.likeness import (
    Overlap,
    Run,
    compare_tokenizers,
    merges_sha256,
    vocabulary_sha256,
)


def vocabulary(
    *tokens: bytes | None,
    special: tuple[int, ...] = (),
    fallback: tuple[int, ...] = (),
    merges: list[list[int]] | None = None,
) -> Vocabulary:
    made = None if merges is None else np.array(merges, np.int64).reshape(-1, 2)
    return Vocabulary(
        "words", "bpe", "x", tokens, frozenset(special), frozenset(fallback), merges=made
    )


def pairs(a: Vocabulary, b: Vocabulary) -> list[tuple[int, int]]:
    found = align(a, b)
    return list(zip(found.a.tolist(), found.b.tolist(), strict=True))


def test_shared_tokens_are_paired_by_bytes() -> None:
    a = vocabulary(b"x", None, b"y", b"z")
    b = vocabulary(b"z", b"w", b"x")
    found = align(a, b)
    assert pairs(a, b) == [(0, 2), (3, 0)]
    assert (found.shared, found.only_a, found.only_b) == (2, 1, 1)
    assert found.lookup(4).tolist() == [2, -1, -1, 0]


def test_special_tokens_are_kept_apart() -> None:
    a = vocabulary(b"<s>", b"<s>", b"<e>", special=(0, 2))
    b = vocabulary(b"<e>", b"<s>", special=(1,))
    assert pairs(a, b) == [(0, 1)]
    assert align(a, b).special.tolist() == [True]


def test_a_spelling_that_occurs_twice_is_paired_in_order() -> None:
    a, b = vocabulary(b"x", b"x", b"x"), vocabulary(b"y", b"x", b"x")
    assert pairs(a, b) == [(0, 1), (1, 2)]


def test_fallback_bytes_go_with_their_like_then_across() -> None:
    a = vocabulary(b"A", b"\xc3", b"A", b"B", fallback=(0, 1, 3))
    b = vocabulary(b"A", b"A", b"\xc3", b"B", fallback=(1,))
    assert pairs(a, b) == [(0, 1), (1, 2), (2, 0), (3, 3)]
    plain = vocabulary(b"A", b"\xc3")
    assert pairs(a, plain) == [(1, 1), (2, 0)]
    assert pairs(plain, a) == [(0, 2), (1, 1)]


tokens = st.lists(st.one_of(st.none(), st.binary(max_size=2)), min_size=1, max_size=12)


@given(tokens, tokens, st.sets(st.integers(0, 11)), st.sets(st.integers(0, 11)))
def test_pairs_are_one_to_one_and_symmetric(
    left: list[bytes | None], right: list[bytes | None], marked: set[int], bytes_: set[int]
) -> None:
    def make(listed: list[bytes | None]) -> Vocabulary:
        used = {at for at, token in enumerate(listed) if token is not None}
        single = {at for at in used if len(listed[at] or b"") == 1}
        special = used & marked
        return vocabulary(*listed, special=(*special,), fallback=(*(single & bytes_ - special),))

    a, b = make(left), make(right)
    found = pairs(a, b)
    assert len({at for at, _ in found}) == len({at for _, at in found}) == len(found)
    assert all(a.tokens[i] == b.tokens[j] is not None for i, j in found)
    assert all((i in a.special) == (j in b.special) for i, j in found)
    assert sorted((i, j) for j, i in pairs(b, a)) == found
    for apart in (False, True):  # nothing that could be paired is left over
        rest_a = {t for i, t in enumerate(a.tokens) if (i in a.special) == apart} - {None}
        rest_a -= {a.tokens[i] for i, _ in found}
        rest_b = {t for i, t in enumerate(b.tokens) if (i in b.special) == apart} - {None}
        rest_b -= {b.tokens[j] for _, j in found}
        assert not rest_a & rest_b
    assert pairs(a, a) == [(i, i) for i, token in enumerate(a.tokens) if token is not None]


def test_the_figures_of_a_shifted_vocabulary() -> None:
    a = vocabulary(b"<s>", b"a", b"b", b"c", b"\xff", b"ab", special=(0,), merges=[[1, 2]])
    b = vocabulary(b"<s>", b"!", b"a", b"b", b"c", b"bc", b"ab", special=(0,),
                   merges=[[2, 3], [3, 4], [2, -1]])  # fmt: skip
    found = compare_tokenizers(a, b)
    assert found.overlap == Overlap(5, 1, 2)
    assert found.overlap.jaccard == 5 / 8
    assert found.overlap.of_smaller == 5 / 6
    assert (found.special_shared, found.same_id) == (1, 1)
    assert found.offsets == ((1, 4),)
    assert found.best_run == found.longest_run == Run(3, 1, 2)
    assert found.merges == Overlap(1, 0, 2)
    assert found.first_merges_equal == 1


def test_nothing_in_common() -> None:
    found = compare_tokenizers(vocabulary(b"x"), vocabulary(b"y", merges=[]))
    assert (found.offsets, found.best_run, found.longest_run, found.merges) == (
        (),
        None,
        None,
        None,
    )
    assert found.overlap.jaccard == found.overlap.of_smaller == 0.0
    both = compare_tokenizers(vocabulary(b"x", merges=[]), vocabulary(b"x", merges=[]))
    assert both.merges == Overlap(0, 0, 0)
    assert both.first_merges_equal == 0


def test_fingerprints_see_order_class_and_holes() -> None:
    base = vocabulary(b"x", b"y", b"xy", merges=[[0, 1], [1, 0]])
    others = [
        vocabulary(b"y", b"x", b"xy"),
        vocabulary(b"x", b"y", b"xy", special=(2,)),
        vocabulary(b"x", b"y", None, b"xy"),
        vocabulary(b"x", b"y", b"xy", None),
        vocabulary(b"x", b"yx", b"y"),
        vocabulary(b"x", b"y", b"xy", b""),
    ]
    assert len({vocabulary_sha256(item) for item in [base, *others]}) == 1 + len(others)
    assert merges_sha256(others[0]) is None
    turned = replace(base, merges=np.array([[1, 0], [0, 1]], np.int64))
    missing = replace(base, merges=np.array([[0, 1], [1, -1]], np.int64))
    assert len({merges_sha256(item) for item in (base, turned, missing)}) == 3
    assert merges_sha256(base, 1) == merges_sha256(missing, 1) != merges_sha256(base)
