"""Forms as a registry: ours by their endings, and those of other packages beside them."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from kinprint import extensions
from kinprint.report.exports import OWN, Export, export_for, exports
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
        EntryPoint(name, f"{__name__}:{value}", extensions.EXPORTS) for name, value in named.items()
    ]
    monkeypatch.setattr(extensions, "entry_points", lambda group: entries)
    monkeypatch.setattr(extensions, "_LOADED", {})
    yield


def test_a_form_of_another_package_is_written_like_ours(installed: None, tmp_path: Path) -> None:
    assert list(exports()) == [*(one.ending for one in OWN), ".card.json"]
    assert exports()[".html"] in OWN
    _, faults = extensions.usable(extensions.EXPORTS, Export, [one.ending for one in OWN])
    assert len(faults) == 3
    (file,) = write_outputs(comparison(), outputs([tmp_path / "x.card.json"]), "ko")
    assert file.read_bytes() == b"ko: derived"


def test_the_longest_ending_counts(installed: None) -> None:
    assert export_for("a.CARD.json") is CARD
    assert export_for("a.json") is OWN[0]
    assert export_for("a.docx") is None


def test_an_ending_has_a_dot_and_small_letters() -> None:
    for odd in ("html", ".HTML"):
        with pytest.raises(ValueError, match=odd):
            Export(odd, card)
