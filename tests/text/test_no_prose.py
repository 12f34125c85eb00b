"""Sentences stand in the catalogues: errors and notes hold keys, not prose."""

from __future__ import annotations

import ast
import pickle
import re
from collections.abc import Iterator

import pytest

from kinprint import text
from kinprint.errors import BadArchive, BadHeader, BadPickle, KinprintError
from tests.syntax import source_nodes

KEY = re.compile(r"(cause|note)(\.[A-Za-z0-9_-]+)+")
START = re.compile(r"(cause|note)\.[A-Za-z0-9._-]*")
HANGUL = re.compile(r"[가-힣]")


def constants() -> Iterator[tuple[str, str]]:
    """Texts in the code that have the form of a key, with where."""
    for path, node in source_nodes():
        match node:
            case ast.Constant(value=str(value)) if KEY.fullmatch(value):
                yield value, f"{path}:{node.lineno}"


def starts() -> set[str]:
    """Beginnings of keys that the code completes as it runs."""
    found = set()
    for _, node in source_nodes():
        match node:
            case ast.JoinedStr(values=[ast.Constant(value=str(start)), *_]):
                if START.fullmatch(start):
                    found.add(start)
    return found


def test_whatever_looks_like_a_key_is_one() -> None:
    known = set(text.known_keys())
    assert [place for key, place in constants() if key not in known] == []


def test_no_cause_or_note_is_left_over() -> None:
    used, begun = {key for key, _ in constants()}, tuple(starts())
    kept = [key for key in text.known_keys() if KEY.fullmatch(key)]
    assert [key for key in kept if key not in used and not key.startswith(begun)] == []


def test_errors_hold_no_prose() -> None:
    prose = []
    for path, node in source_nodes():
        match node:
            case ast.keyword(
                arg="cause" | "what" | "feature" | "missing" | "near" | "wait",
                value=ast.Constant(value=str()) | ast.JoinedStr(),
            ):
                prose.append(f"{path}:{node.lineno}")
    assert prose == []


def test_korean_sentences_are_korean() -> None:
    """A sentence with words of its own has Hangul; a few names alone need none."""
    foreign = []
    for key in text.known_keys("ko"):
        template = re.sub(r"\{[^}]*\}", "", text.catalogue.template(key, "ko"))
        if not HANGUL.search(template) and len(re.findall(r"[A-Za-z]+", template)) > 3:
            foreign.append((key, template))
    assert foreign == []


@pytest.mark.parametrize(
    "error",
    [
        BadHeader(file="a", cause=text.message("cause.safetensors.gap", start=1, stop=20_000)),
        BadPickle(file="a", cause=text.message("cause.pickle.global", name="os.system")),
        BadArchive(
            file="a",
            cause=text.message("cause.gguf.ends-early", part=text.message("cause.gguf.part.mark")),
        ),
    ],
)
def test_a_cause_is_carried_between_processes(error: KinprintError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert again.fields == error.fields
    assert [again.sentence(one) for one in text.languages()] == [
        error.sentence(one) for one in text.languages()
    ]
    assert error.sentence("ko") != error.sentence("en")


def test_a_noted_error_says_what_the_error_says() -> None:
    odd = "a\x1b[31mb"
    error = BadHeader(file=odd, cause=text.message("cause.safetensors.gap", start=1, stop=2))
    for language in text.languages():
        assert error.message.say(language) == error.sentence(language)
        assert "\x1b" not in error.message.say(language)
    hidden = BadHeader(
        file="a", cause=text.message("cause.safetensors.overlap", tensor=odd, other="")
    )
    assert "\x1b" not in str(hidden.message)
    assert "\x1b" not in str(hidden.cause)
