"""What tests of sampler share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kinprint.reader.fetch import Fetcher


@pytest.fixture
def fetcher() -> Iterator[Fetcher]:
    """A reader with no budget and nothing kept."""
    with Fetcher() as one:
        yield one
