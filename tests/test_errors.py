"""Every error has its sentence, in both languages, with the same fields."""

from __future__ import annotations

import pickle

import pytest

import kinprint.errors
from kinprint import text
from kinprint.errors import BadHeader, KinprintError

KINDS = sorted(
    (
        item
        for item in vars(kinprint.errors).values()
        if isinstance(item, type) and issubclass(item, KinprintError)
    ),
    key=lambda kind: kind.__name__,
)


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
    said = {key.removeprefix("error.") for key in text.known_keys() if key.startswith("error.")}
    assert said == {kind.__name__ for kind in KINDS}


def test_an_error_says_its_cause_in_the_language_that_is_asked_for() -> None:
    inner = text.message("error.BadConfig", file="config.json", cause="c")
    error = BadHeader(file="x", cause=inner)
    assert inner.say("ko") in error.sentence("ko")
    assert inner.say("en") in error.sentence("en")


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_the_tree_in_the_docstring_is_complete(kind: type[KinprintError]) -> None:
    assert kind.__name__ in (kinprint.errors.__doc__ or "")


def test_a_wrong_field_is_a_mistake_of_ours() -> None:
    with pytest.raises(TypeError, match="cause"):
        BadHeader(file="x")
