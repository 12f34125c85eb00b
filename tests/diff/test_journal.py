"""A full diff that was interrupted goes on where it was."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from benchmarks.redteam.zoo import DEMO
from kinprint.diff import changes, journal
from kinprint.diff.pairing import pair_tensors
from kinprint.diff.results import TensorChange
from kinprint.model.model import Model
from kinprint.model.opening import open_model
from kinprint.reader.checkpoint import open_checkpoint
from kinprint.reader.fetch import Fetcher


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[tuple[Model, Model]]:
    monkeypatch.setattr(journal, "_LEAST", 0)
    monkeypatch.setattr(journal, "assets_folder", lambda: tmp_path)
    with Fetcher() as fetcher:
        a, b = (
            open_model(open_checkpoint(str(DEMO / name), fetcher)) for name in ("base-a", "a-cpt")
        )
        yield a, b


def _changes(models: tuple[Model, Model]) -> Iterator[TensorChange]:
    return changes.tensor_changes(*models, pair_tensors(*models))


def test_what_was_done_is_not_done_again(
    models: tuple[Model, Model], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    whole = list(_changes(models))
    assert list(tmp_path.rglob("*/v1/*")) == []
    interrupted = _changes(models)
    begun = list(islice(interrupted, 20))
    interrupted.close()  # type: ignore[attr-defined]
    assert begun == whole[:20]
    done = []
    block = changes._block

    def counted(*given: Any) -> Any:
        done.append(given)
        return block(*given)

    monkeypatch.setattr(changes, "_block", counted)
    assert list(_changes(models)) == whole
    assert len(done) == len(whole) - 20
    assert list(tmp_path.rglob("*/v1/*")) == []


def test_a_torn_line_and_a_changed_file_are_done_again(
    models: tuple[Model, Model], tmp_path: Path
) -> None:
    whole = list(_changes(models))
    interrupted = _changes(models)
    list(islice(interrupted, 9))
    interrupted.close()  # type: ignore[attr-defined]
    (file,) = tmp_path.rglob("*/v1/*")
    file.write_bytes(file.read_bytes()[:-40] + b'\n{"role": 3}')
    assert list(_changes(models)) == whole
