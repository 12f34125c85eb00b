"""Every language says everything, with the same fields, and code asks for nothing else."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from kinprint import text

SOURCE = Path(text.__file__).parents[1]
PREFIXES = (
    "diff", "identify", "tree", "unmerge",
    "cause", "cli", "demo", "error", "help", "label", "measure", "note", "page", "reason", "report",
    "role", "study", "test", "verdict",
)  # fmt: skip
KEY = re.compile(rf"(?:{'|'.join(PREFIXES)})(?:\.[\w+-]+)+")
PREFIX = re.compile(rf"(?:{'|'.join(PREFIXES)})\.(?:[\w-]+\.)*")
FILE = re.compile(r"\.(?:css|html|js|j2)$")  # page.css is no sentence


def spoken_keys() -> Iterator[tuple[str, str]]:
    """Keys that stand in code and templates as they are, with where."""
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            match node:
                case ast.Constant(value=str(key)) if KEY.fullmatch(key) and not FILE.search(key):
                    yield key, f"{path.relative_to(SOURCE)}:{node.lineno}"
    for path in sorted(SOURCE.rglob("*.j2")):
        for key in re.findall(r'say\("([^"]+)"', path.read_text("utf-8")):
            yield key, str(path.relative_to(SOURCE))


def built_keys() -> Iterator[re.Pattern[str]]:
    """What keys look like that code puts together: f"verdict.part.{part}", "role." + role."""
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Constant) and PREFIX.fullmatch(str(node.value)):
                yield re.compile(re.escape(str(node.value)) + r"[\w.+-]+")
            if isinstance(node, ast.JoinedStr) and node.values:
                parts = [
                    re.escape(str(part.value)) if isinstance(part, ast.Constant) else r"[\w.+-]+"
                    for part in node.values
                ]
                if re.match(rf"(?:{'|'.join(PREFIXES)})\\\.", parts[0]):
                    yield re.compile("".join(parts))


@pytest.mark.parametrize("language", text.languages())
def test_a_language_is_complete(language: str) -> None:
    assert set(text.known_keys(language)) == set(text.known_keys("en"))


@pytest.mark.parametrize("language", text.languages())
def test_languages_speak_of_the_same_fields(language: str) -> None:
    differing = [
        key
        for key in text.known_keys()
        if text.field_names(key, language) != text.field_names(key, "en")
    ]
    assert differing == []


def test_code_asks_for_keys_that_there_are() -> None:
    known = set(text.known_keys())
    assert [place for key, place in spoken_keys() if key not in known] == []


def test_every_key_is_asked_for() -> None:
    spoken = {key for key, _ in spoken_keys()}
    built = list(built_keys())
    assert [
        key
        for key in text.known_keys()
        if key not in spoken and not any(pattern.fullmatch(key) for pattern in built)
    ] == []


def test_an_unknown_key_is_a_mistake_of_ours() -> None:
    with pytest.raises(KeyError, match=r"no\.such"):
        text.say("no.such", "en")


def test_an_unknown_language_gets_english() -> None:
    assert text.say("error.BadConfig", "xx", file="config.json", cause="c") == text.say(
        "error.BadConfig", "en", file="config.json", cause="c"
    )


def test_pieces_make_the_sentence_and_name_their_fields() -> None:
    pieces = text.spans("error.BadConfig", "ko", file="here", cause="c")
    assert "".join(piece.text for piece in pieces) == text.say(
        "error.BadConfig", "ko", file="here", cause="c"
    )
    assert [piece.text for piece in pieces if piece.field == "file"] == ["here"]


def test_a_message_inside_a_message_is_said_in_its_language() -> None:
    inner = text.message("error.BadConfig", file="config.json", cause="c")
    outer = text.words("cause.other", cause=inner)
    assert outer["ko"] == inner.say("ko")
    assert outer["en"] == inner.say("en")
