"""Forms as a registry: ours by their endings, and those of other packages beside them."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from kinprint.report import exports as registry
from kinprint.report.exports import ENTRY_POINTS, Export, export_for, exports
from kinprint.report.outputs import outputs, write_outputs
from kinprint.report.schema import ComparisonDocument, MatrixDocument
from tests.report.kin_documents import comparison


def card(document: ComparisonDocument | MatrixDocument, language: str) -> bytes:
    assert isinstance(document, ComparisonDocument)
    return f"{language}: {document.verdict.relation}".encode()


CARD = Export(".card.json", card)
TAKEN = Export(".html", card)
NO_EXPORT = "a text"


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A package that brings one good form and three that cannot be used."""
    named = {"card": "CARD", "taken": "TAKEN", "odd": "NO_EXPORT", "gone": "NOTHING_HERE"}
    entries = [
        EntryPoint(name, f"{__name__}:{value}", ENTRY_POINTS) for name, value in named.items()
    ]
    monkeypatch.setattr(registry, "entry_points", lambda group: entries)
    exports.cache_clear()
    yield
    exports.cache_clear()


def test_a_form_of_another_package_is_written_like_ours(installed: None, tmp_path: Path) -> None:
    with pytest.warns(UserWarning) as warned:
        assert list(exports()) == [".json", ".html", ".md", ".csv", ".png", ".svg", ".card.json"]
    said = " ".join(str(one.message) for one in warned)
    assert all(name in said for name in ("taken", "odd", "gone")) and "card of" not in said
    (file,) = write_outputs(comparison(), outputs([tmp_path / "x.card.json"]), "ko")
    assert file.read_bytes() == b"ko: derived"


def test_the_longest_ending_counts(installed: None) -> None:
    with pytest.warns(UserWarning):
        exports()
    assert export_for("a.CARD.json") is CARD
    assert export_for("a.json") is exports()[".json"]
    assert export_for("a.docx") is None
