from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest
from safetensors import safe_open

from kinprint.errors import BadOption
from kinprint.replica import build_replicas, replica_names
from kinprint.replica.__main__ import main
from kinprint.replica.build import INDEX
from kinprint.replica.layout import layout_of
from kinprint.replica.manifest import GENERATOR, LABEL, MANIFEST
from kinprint.replica.vectors import written

SMALL = "internlm/internlm2-chat-7b"
GLM = "zai-org/GLM-4.5-Air"


def fingerprint(place: Path, name: str) -> str:
    """Hash of everything but the holes."""
    digest = hashlib.sha256()
    for path in sorted(place.iterdir()):
        digest.update(path.name.encode() + path.stat().st_size.to_bytes(8, "little"))
        if path.suffix != ".safetensors":
            digest.update(path.read_bytes())
    for path_name, slot in written(layout_of(name)):
        with safe_open(place / path_name, "np") as file:
            digest.update(file.get_tensor(slot.name).tobytes())
    return digest.hexdigest()


@pytest.mark.parametrize("name", replica_names())
def test_manifest_labels_every_written_tensor(built: Path, name: str) -> None:
    told = json.loads((built / name / MANIFEST).read_text("utf-8"))
    assert told["notice"].startswith(f"This is NOT {name}.")
    assert "zeros" in told["holes"]
    assert told["layout"]["certainty"] == layout_of(name).certainty
    expected = {slot.name: path for path, slot in written(layout_of(name))}
    assert {tensor: entry["file"] for tensor, entry in told["written"].items()} == expected
    for tensor, entry in told["written"].items():
        assert entry["values"] in ("reconstructed", "fitted"), tensor
        assert entry["from"], tensor


def test_what_nothing_supports_is_not_there(built: Path) -> None:
    def listed(name: str) -> dict[str, dict[str, object]]:
        found = json.loads((built / name / MANIFEST).read_text("utf-8"))["written"]
        assert isinstance(found, dict)
        return found

    solar = listed("upstage/Solar-Open-100B")
    first = solar["model.layers.0.input_layernorm.weight"]
    assert first["values"] == "reconstructed"
    assert "layernorm_sanity.csv: layer 0 norm_pre A_mean A_std" in str(first["from"])
    assert "model.layers.45.input_layernorm.weight" in solar
    assert not {"model.layers.47.input_layernorm.weight", "model.norm.weight"} & set(solar)
    mistral = listed("mistralai/Mistral-7B-Instruct-v0.3")
    tenth = mistral["layers.10.attention_norm.weight"]
    assert tenth["values"] == "fitted" and "exp5_full_heatmap.png" in str(tenth["from"])
    assert set(mistral) == {
        "layers.10.attention_norm.weight", "model.layers.10.input_layernorm.weight",
    }  # fmt: skip
    phi = listed("microsoft/Phi-3.5-MoE-instruct")
    assert "screenshot" in str(phi["model.layers.0.input_layernorm.weight"]["from"])
    assert listed("internlm/internlm2-chat-7b") == {}
    assert listed("mistralai/Mixtral-8x22B") == {}


@pytest.mark.parametrize("name", replica_names())
def test_every_weight_file_lists_what_is_in_it(built: Path, name: str) -> None:
    known = {(path, slot.name) for path, slot in written(layout_of(name))}
    found = set()
    for path in sorted((built / name).glob("*.safetensors")):
        with safe_open(path, "np") as file:
            told = json.loads(file.metadata()["replica.written"])
            assert file.metadata()["replica"] == LABEL
        found |= {(path.name, tensor) for tensor in told}
    assert found == known


@pytest.mark.parametrize("name", replica_names())
def test_card_is_loud(built: Path, name: str) -> None:
    text = (built / name / "README.md").read_text("utf-8")
    assert "# ⚠️ NOT the real model ⚠️" in text
    assert name in text
    assert "base_model" not in text


@pytest.mark.parametrize("name", replica_names())
def test_index_and_configuration(built: Path, name: str) -> None:
    index = json.loads((built / name / INDEX).read_text("utf-8"))
    files = layout_of(name).copies[0].files
    assert index["weight_map"] == {s.name: p for p, slots in files.items() for s in slots}
    lengths = sum((built / name / path).stat().st_size for path in files)
    assert 0 < lengths - index["metadata"]["total_size"] < 5e6
    config = json.loads((built / name / "config.json").read_text("utf-8"))
    assert config["hidden_size"] == layout_of(name).dims["hidden"]
    assert config["num_hidden_layers"] == layout_of(name).dims["layers"]
    assert config["vocab_size"] == layout_of(name).dims["vocab"]


def test_same_bytes_in_another_process(built: Path, tmp_path: Path) -> None:
    """Alone and in a fresh process, a model gets the bytes it gets among the others."""
    code = "import sys; from kinprint.replica.__main__ import main; sys.exit(main(sys.argv[1:]))"
    subprocess.run([sys.executable, "-c", code, tmp_path, GLM], check=True, capture_output=True)
    assert fingerprint(tmp_path / GLM, GLM) == fingerprint(built / GLM, GLM)


def test_a_finished_replica_is_left_alone(tmp_path: Path) -> None:
    (place,) = build_replicas(tmp_path, [SMALL])
    before = {path: path.stat().st_mtime_ns for path in place.iterdir()}
    assert build_replicas(tmp_path, [SMALL]) == [place]
    assert {path: path.stat().st_mtime_ns for path in place.iterdir()} == before


@pytest.mark.parametrize(
    "mark",
    [
        json.dumps({"generator": GENERATOR, "complete": False}),
        json.dumps({"generator": "kinprint.replica 0", "complete": True}),
        "{",
        "[]",
    ],
)
def test_an_unfinished_or_old_replica_is_built_anew(tmp_path: Path, mark: str) -> None:
    (place,) = build_replicas(tmp_path, [SMALL])
    finished = fingerprint(place, SMALL)
    (place / MANIFEST).write_text(mark)
    shard = place / "model-00001-of-00008.safetensors"
    shard.write_bytes(b"cut short")
    build_replicas(tmp_path, [SMALL])
    assert fingerprint(place, SMALL) == finished


def test_a_folder_with_other_files_is_refused(tmp_path: Path) -> None:
    place = tmp_path / SMALL
    place.mkdir(parents=True)
    weights = place / "model-00001-of-00008.safetensors"
    weights.write_bytes(b"precious")
    with pytest.raises(BadOption, match="real model"):
        build_replicas(tmp_path, [SMALL])
    assert weights.read_bytes() == b"precious"


def test_command_prints_lengths(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path), SMALL]) == 0
    out = capsys.readouterr().out
    assert SMALL in out
    assert "15.5 GB long" in out
    assert main([str(tmp_path), "nobody/nothing"]) == 2
    assert "nobody/nothing" in capsys.readouterr().err
