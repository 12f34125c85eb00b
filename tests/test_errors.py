"""Every error has its sentence, in both languages, with the same fields."""

from __future__ import annotations

import pickle
import string

import pytest

import kinprint.errors
from kinprint.errors import BadHeader, KinprintError
from kinprint.sentences import SENTENCES

KINDS = sorted(
    (
        item
        for item in vars(kinprint.errors).values()
        if isinstance(item, type) and issubclass(item, KinprintError)
    ),
    key=lambda kind: kind.__name__,
)


def fields(template: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(template) if name}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_both_languages_speak_of_the_same_fields(kind: type[KinprintError]) -> None:
    sentences = SENTENCES[kind.__name__]
    assert set(sentences) == {"en", "ko"}
    assert fields(sentences["en"]) == fields(sentences["ko"])


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_errors_can_be_said_and_carried_between_processes(kind: type[KinprintError]) -> None:
    error = kind(**{name: f"<{name}>" for name in kind.field_names()})
    for language in ("en", "ko", "unknown"):
        said = error.sentence(language)
        assert said
        assert "{" not in said
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is kind
    assert again.fields == error.fields
    assert error.exit_code == 2


def test_no_sentence_without_an_error() -> None:
    assert set(SENTENCES) == {kind.__name__ for kind in KINDS}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_the_tree_in_the_docstring_is_complete(kind: type[KinprintError]) -> None:
    assert kind.__name__ in (kinprint.errors.__doc__ or "")


def test_a_wrong_field_is_a_mistake_of_ours() -> None:
    with pytest.raises(TypeError, match="cause"):
        BadHeader(file="x")
