"""Properties that hold over many examples: over few of them in `make test`."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis.strategies import SearchStrategy

Check = Callable[..., None]


def few_and_many(few: int, many: int, *drawn: SearchStrategy[object]) -> Callable[[Check], Check]:
    """A test of so few examples, and one of so many more among the slow tests."""

    def decorated(check: Check) -> Check:
        @pytest.mark.parametrize("examples", [few, pytest.param(many, marks=pytest.mark.slow)])
        def test(examples: int) -> None:
            settings(max_examples=examples, deadline=None)(given(*drawn)(check))()

        return test

    return decorated
