"""Fingerprints stand for models: the same verdict without the files."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kinprint.atlas.encoding import decoded, encoded
from kinprint.atlas.fingerprint import Fingerprint, fingerprint, replay
from kinprint.errors import NotRecorded
from kinprint.lineage.compare import compare_models
from kinprint.lineage.results import Settings
from kinprint.reader.fetch import Fetcher
from kinprint.records import ByteRange
from kinprint.report.build.comparison import comparison_document
from kinprint.report.schema import encode
from kinprint.source.recorded import RecordedSource
from tests.conftest import DEMO, ZOO
from tests.fewer_layers import short_zoo
from tests.lineage.stored_models import llama, stored
from tests.lineage.towered_models import LLAVA, llava

DERIVED, LAUNDERED, STRANGER = ("base-a", "a-cpt"), ("base-a", "a-rotated"), ("base-a", "base-b")


def taken(model: Path | str, **asked: Any) -> Fingerprint:
    """A fingerprint that has been a file."""
    with Fetcher() as fetcher:
        name, raw = encoded(fingerprint(str(model), fetcher, **asked))
    return decoded(raw, name, "here")


def document(names: Sequence[str], fetcher: Fetcher, seed: int = 0) -> dict[str, Any]:
    """All that a comparison says but what reading cost."""
    found = compare_models(names[0], names[1], fetcher, Settings(seed=seed))
    told: dict[str, Any] = json.loads(encode(comparison_document(found, found.cost)))
    del told["read"]
    return told


def by_files(a: Path | str, b: Path | str, seed: int = 0) -> dict[str, Any]:
    with Fetcher() as fetcher:
        return document([str(a), str(b)], fetcher, seed)


def by_fingerprints(a: Fingerprint, b: Fingerprint, seed: int = 0) -> dict[str, Any]:
    with Fetcher() as fetcher:
        replay(fetcher, [("first", a), ("second", b)])
        return document(["first", "second"], fetcher, seed)


@pytest.mark.parametrize(
    "pair",
    [LAUNDERED, *(pytest.param(pair, marks=pytest.mark.slow) for pair in (DERIVED, STRANGER))],
    ids="-".join,
)
def test_two_fingerprints_say_what_the_files_say(pair: tuple[str, str]) -> None:
    a, b = (short_zoo() / name for name in pair)
    assert by_fingerprints(taken(a), taken(b)) == by_files(a, b)


def test_so_do_those_of_towers(tmp_path: Path) -> None:
    a, b = (stored(tmp_path / str(at), llava(at, 9), LLAVA) for at in (1, 2))
    found = by_fingerprints(taken(a), taken(b))
    assert found == by_files(a, b)
    assert found["verdict"]["relation"] == "partial"


def test_so_do_those_of_models_of_which_a_part_is_read(tmp_path: Path) -> None:
    """Twenty megabytes are more than a level reads of a model, so that seeds matter."""
    sizes = {"layers": 12, "width": 256, "units": 768}
    first = llama(1, **sizes)
    chance = np.random.default_rng(2)
    second = {
        name: (array + 0.1 * chance.normal(size=array.shape)).astype(np.float32)
        for name, array in first.items()
    }
    config = json.loads((DEMO / "zoo" / "base-a" / "config.json").read_text())
    config |= {"hidden_size": 256, "num_hidden_layers": 12, "intermediate_size": 768}
    config |= {"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16}
    a, b = (stored(tmp_path / str(at), one, config) for at, one in enumerate((first, second)))
    prints = taken(a, seed=3), taken(b, seed=3)
    assert prints[0].bytes < (tmp_path / "0" / "model.safetensors").stat().st_size / 2
    assert by_fingerprints(*prints, seed=3) == by_files(a, b, seed=3)


def test_an_adapter_takes_its_base_along(tmp_path: Path) -> None:
    tensors = llama(1)
    base = stored(tmp_path / "base", tensors)
    chance = np.random.default_rng(5)
    name = "base_model.model.model.layers.1.mlp.up_proj"
    update = {
        f"{name}.lora_A.weight": chance.normal(size=(2, 64)).astype(np.float32),
        f"{name}.lora_B.weight": chance.normal(size=(48, 2)).astype(np.float32),
    }
    adapter = Path(stored(tmp_path / "adapter", update, {}))
    (adapter / "model.safetensors").rename(adapter / "adapter_model.safetensors")
    (adapter / "config.json").unlink()
    config = {"peft_type": "LORA", "r": 2, "lora_alpha": 2, "base_model_name_or_path": base}
    (adapter / "adapter_config.json").write_text(json.dumps(config))
    other = stored(tmp_path / "other", llama(2))
    expected = by_files(adapter, other)
    prints = taken(adapter), taken(other)
    assert [claim.model for claim in prints[0].claims] == [base]
    for folder in (base, adapter, other):
        shutil.rmtree(folder)
    assert by_fingerprints(*prints) == expected


def test_it_knows_which_files_it_is_of() -> None:
    one = taken(DEMO / "zoo" / "base-a")
    same = taken(DEMO / "zoo" / "base-a")
    other = taken(DEMO / "zoo" / "base-b")
    assert encoded(one)[0] == encoded(same)[0] != encoded(other)[0]
    assert one.config == other.config != ""
    weights = {file.path: file.sha256 for file in one.sources[0].files}["model.safetensors"]
    assert weights and len(weights) == 64
    assert one.bytes < 12_000_000


def test_what_was_not_read_is_not_made_up(tmp_path: Path) -> None:
    model = Path(stored(tmp_path, llama()))
    (model / "notes.txt").write_text("nobody reads this")
    source = RecordedSource(taken(model).sources[0])
    with pytest.raises(NotRecorded, match="notes"):
        source.read("notes.txt", ByteRange(0, 1))
    whole = (model / "config.json").read_bytes()
    assert source.read("config.json", ByteRange(2, 9)) == whole[2:9]
    with pytest.raises(NotRecorded):
        source.read("config.json", ByteRange(2, len(whole) + 1))


@pytest.mark.zoo
@pytest.mark.parametrize(
    "pair",
    [("a-permuted", "a-upcycled"), ("base-a", "neox-j"), ("base-a", "a-normsonly"),
     ("tie-a", "base-a"), ("a-hidprune", "a-depthup"), ("qwen-i", "moe-k")],
    ids="-".join,
)  # fmt: skip
def test_pairs_of_the_zoo_have_the_verdict_of_their_files(pair: tuple[str, str]) -> None:
    a, b = (ZOO / name for name in pair)
    assert by_fingerprints(taken(a), taken(b)) == by_files(a, b)
