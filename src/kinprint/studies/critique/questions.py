"""Questions that readers of the critique ask, with answers, for documents to print.

They explain choices that its studies make: why not layer 0, why equal distances, why other
models beside the two in question, why no large machine.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from kinprint.text import Words


@dataclass(frozen=True, slots=True)
class Question:
    """One question and its answer; `name` is short and for links."""

    name: str
    question: Words
    answer: Words


@cache
def questions() -> tuple[Question, ...]:
    """All of them, in the order in which a reader meets them."""
    text = (files("kinprint.studies.critique") / "questions.toml").read_text("utf-8")
    return tuple(
        Question(one["name"], Words(one["question"]), Words(one["answer"]))
        for one in tomllib.loads(text)["question"]
    )
