"""Adapter repositories opened with their base, by name and as given, from real files."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from kinprint.errors import BadAdapter
from kinprint.mirror import MirrorServer
from kinprint.model.adapted import AdaptedModel
from kinprint.model.model import Model, read_all
from kinprint.model.opening import is_adapter, may_be_adapter, open_for_tokens, open_model
from kinprint.model.places import Address
from kinprint.reader.checkpoint import open_checkpoint
from kinprint.reader.fetch import Fetcher

DATA = Path(__file__).parent / "data"
LLAMA = {
    "model_type": "llama", "hidden_size": 8, "num_attention_heads": 2, "num_key_value_heads": 1,
}  # fmt: skip


@pytest.fixture
def fetcher() -> Iterator[Fetcher]:
    with Fetcher() as one:
        yield one


def write(folder: Path, tensors: dict[str, Any], file: str, name: str, said: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    save_file({key: np.ascontiguousarray(array) for key, array in tensors.items()}, folder / file)
    (folder / name).write_text(json.dumps(said))
    return folder


def write_gguf(path: Path, tensors: dict[str, Any], said: dict[str, str] | None = None) -> None:
    writer = gguf.GGUFWriter(path, "llama")
    for key, word in (said or {}).items():
        writer.add_string(key, word)
    for key, array in tensors.items():
        writer.add_tensor(key, np.ascontiguousarray(array))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def pair(case: str, tmp_path: Path) -> tuple[Path, Path, dict[str, Any]]:
    """The base, the adapter, and what PEFT made of them."""
    with np.load(DATA / f"{case}.npz") as file:
        arrays = {key: file[key] for key in file.files}
    said = json.loads(arrays.pop("meta").tobytes())
    parts: dict[str, dict[str, Any]] = {"a": {}, "b": {}, "m": {}}
    for key, array in arrays.items():
        parts[key[0]][key[2:]] = array
    base = write(tmp_path / "base", parts["b"], "model.safetensors", "config.json", LLAMA)
    config = {**said["config"], "base_model_name_or_path": str(base), "revision": None}
    adapter = write(
        tmp_path / "adapter", parts["a"], "adapter_model.safetensors", "adapter_config.json", config
    )
    return base, adapter, parts["m"]


def rows(model: Model, address: Address, which: tuple[int, ...] | None = None) -> Any:
    (place,) = model.locate([address])
    assert place is not None
    (found,) = read_all([model.reading(place, which)])
    return found


@pytest.mark.parametrize("case", ["llama", "rslora", "dora", "patterns"])
def test_rows_of_the_named_base_with_the_update(
    case: str, tmp_path: Path, fetcher: Fetcher
) -> None:
    _, adapter, merged = pair(case, tmp_path)
    model = open_model(open_checkpoint(str(adapter), fetcher))
    assert isinstance(model, AdaptedModel) and model.name == str(adapter)
    for layer in (0, 1):
        for role in ("q", "v"):
            truth = merged.get(f"model.layers.{layer}.self_attn.{role}_proj.weight")
            if truth is None:
                continue
            np.testing.assert_allclose(rows(model, Address(role, layer)), truth, rtol=2e-5)
            some = rows(model, Address(role, layer), (3, 0))
            np.testing.assert_allclose(some, truth[[3, 0]], rtol=2e-5)


def test_a_base_that_is_given_counts_more_than_the_named_one(
    tmp_path: Path, fetcher: Fetcher
) -> None:
    base, adapter, merged = pair("llama", tmp_path)
    config = json.loads((adapter / "adapter_config.json").read_text())
    config["base_model_name_or_path"] = str(tmp_path / "moved")
    (adapter / "adapter_config.json").write_text(json.dumps(config))
    checkpoint = open_checkpoint(str(adapter), fetcher)
    with pytest.raises(BadAdapter, match="give it with base"):
        open_model(checkpoint)
    model = open_model(checkpoint, base=str(base))
    truth = merged["model.layers.0.self_attn.q_proj.weight"]
    np.testing.assert_allclose(rows(model, Address("q", 0)), truth, rtol=2e-5)


@pytest.mark.parametrize("place", ["hub", "local"])
@pytest.mark.parametrize("scheme", ["http", "https", "s3", "memory", "file", ""])
def test_an_address_in_a_file_of_others_is_asked_by_nobody(
    place: str,
    scheme: str,
    tmp_path: Path,
    fetcher: Fetcher,
    make_mirror: Callable[[Path], MirrorServer],
) -> None:
    base, adapter, _ = pair("llama", tmp_path / "org")
    with socket.create_server(("127.0.0.1", 0)) as trap:
        trap.settimeout(0.2)
        port = trap.getsockname()[1]
        named = {"file": f"file://{base}", "": str(base)}
        config = json.loads((adapter / "adapter_config.json").read_text())
        config["base_model_name_or_path"] = named.get(scheme, f"{scheme}://127.0.0.1:{port}/m.bin")
        (adapter / "adapter_config.json").write_text(json.dumps(config))
        make_mirror(tmp_path)
        checkpoint = open_checkpoint("org/adapter" if place == "hub" else str(adapter), fetcher)
        if place == "local" and scheme in named:
            assert isinstance(open_model(checkpoint), AdaptedModel)
            return
        with pytest.raises(BadAdapter, match="no model of the Hub"):
            open_model(checkpoint)
        with pytest.raises(TimeoutError):
            trap.accept()


def test_an_adapter_that_names_no_base_says_so(tmp_path: Path, fetcher: Fetcher) -> None:
    _, adapter, _ = pair("llama", tmp_path)
    config = json.loads((adapter / "adapter_config.json").read_text())
    del config["base_model_name_or_path"]
    (adapter / "adapter_config.json").write_text(json.dumps(config))
    with pytest.raises(BadAdapter, match="does not name its base"):
        open_model(open_checkpoint(str(adapter), fetcher))


def test_a_base_that_does_not_fit_is_refused(tmp_path: Path, fetcher: Fetcher) -> None:
    _, adapter, _ = pair("llama", tmp_path)
    other = write(
        tmp_path / "other", {"transformer.wte.weight": np.ones((4, 8), np.float32)},
        "model.safetensors", "config.json", {"model_type": "gpt2"},
    )  # fmt: skip
    with pytest.raises(BadAdapter, match="no weight of"):
        open_model(open_checkpoint(str(adapter), fetcher), base=str(other))


def test_a_merged_model_with_a_left_over_configuration_is_a_model(
    tmp_path: Path, fetcher: Fetcher
) -> None:
    base, adapter, _ = pair("llama", tmp_path)
    (base / "adapter_config.json").write_bytes((adapter / "adapter_config.json").read_bytes())
    merged = open_checkpoint(str(base), fetcher)
    assert may_be_adapter(merged) and not is_adapter(merged)
    assert not isinstance(open_model(merged), AdaptedModel)


def test_a_file_of_another_name_with_factors_is_an_adapter(
    tmp_path: Path, fetcher: Fetcher
) -> None:
    _, adapter, _ = pair("llama", tmp_path)
    (adapter / "adapter_model.safetensors").rename(adapter / "weights.safetensors")
    assert is_adapter(open_checkpoint(str(adapter), fetcher))
    (adapter / "adapter_config.json").unlink()
    alone = open_checkpoint(str(adapter), fetcher)
    assert not may_be_adapter(alone) and not is_adapter(alone)


def test_an_adapter_in_gguf_is_opened_with_its_base_for_its_tokens_too(
    tmp_path: Path, fetcher: Fetcher
) -> None:
    base, adapter = tmp_path / "base.gguf", tmp_path / "adapter.gguf"
    name, some = "blk.0.attn_q.weight", np.ones((8, 8), np.float32)
    write_gguf(base, {name: some})
    factors = {f"{name}.lora_a": some[:2], f"{name}.lora_b": some[:, :2]}
    write_gguf(adapter, factors, {"general.type": "adapter", "adapter.type": "lora"})
    assert not is_adapter(open_checkpoint(str(base), fetcher))
    checkpoint = open_checkpoint(str(adapter), fetcher)
    assert is_adapter(checkpoint)
    for opening in (open_model, open_for_tokens):
        assert isinstance(opening(checkpoint, str(base)), AdaptedModel)


def test_only_what_the_rows_need_is_read_of_base_and_adapter(
    tmp_path: Path, fetcher: Fetcher
) -> None:
    _, adapter, _ = pair("llama", tmp_path)
    model = open_model(open_checkpoint(str(adapter), fetcher))
    (place,) = model.locate([Address("q", 0)])
    assert place is not None
    parts = list(model.reading(place, (1, 2)).parts())
    names = [[piece.tensor.name for piece in slices] for _, slices in parts]
    assert all("lora" in name for name in names[0]) and len(names) == 2
    assert names[1] == ["model.layers.0.self_attn.q_proj.weight"]


@pytest.mark.parametrize("name", ["embed_tokens.weight", "embed_tokens.modules_to_save.weight"])
def test_a_longer_embedding_of_an_adapter_keeps_its_length(
    name: str, tmp_path: Path, fetcher: Fetcher
) -> None:
    draw = np.random.default_rng(0)
    table = draw.normal(size=(16, 8)).astype(np.float32)
    tensors = {
        "model.embed_tokens.weight": table,
        "model.layers.0.self_attn.q_proj.weight": draw.normal(size=(8, 8)).astype(np.float32),
    }
    base = write(tmp_path / "base", tensors, "model.safetensors", "config.json", LLAMA)
    longer = np.concatenate([table + 1, np.full((3, 8), 7.0, np.float32)])
    said = {
        "peft_type": "LORA", "r": 2, "lora_alpha": 2, "target_modules": ["q_proj"],
        "modules_to_save": ["embed_tokens"], "base_model_name_or_path": str(base),
    }  # fmt: skip
    stem = "base_model.model.model."
    factors = {
        f"{stem}layers.0.self_attn.q_proj.lora_A.weight": np.ones((2, 8), np.float32),
        f"{stem}layers.0.self_attn.q_proj.lora_B.weight": np.ones((8, 2), np.float32),
        f"{stem}{name}": longer,
    }
    file = "adapter_model.safetensors"
    adapter = write(tmp_path / "adapter", factors, file, "adapter_config.json", said)
    model = open_model(open_checkpoint(str(adapter), fetcher))
    assert isinstance(model, AdaptedModel)
    (place,) = model.locate([Address("embed")])
    assert place is not None and place.shape == longer.shape
    np.testing.assert_array_equal(rows(model, Address("embed")), longer)
    np.testing.assert_array_equal(rows(model, Address("embed"), (18, 0)), longer[[18, 0]])
    assert rows(model.base, Address("embed")).shape == table.shape


def test_a_head_beside_a_tied_embedding_is_read_from_the_adapter(
    tmp_path: Path, fetcher: Fetcher
) -> None:
    base, adapter, _ = pair("llama", tmp_path)
    file, name = adapter / "adapter_model.safetensors", "base_model.model.lm_head.weight"
    head = np.random.default_rng(0).normal(size=(16, 8)).astype(np.float32)
    save_file({**load_file(file), name: head}, file)
    model = open_model(open_checkpoint(str(adapter), fetcher))
    assert Address("lm_head") not in open_model(open_checkpoint(str(base), fetcher)).places
    assert model.tensor_map.tied is False
    np.testing.assert_array_equal(rows(model, Address("lm_head")), head)
    np.testing.assert_array_equal(rows(model, Address("lm_head"), (9, 2)), head[[9, 2]])
    (place,) = model.locate([Address("lm_head")])
    assert place is not None
    ((checkpoint, slices),) = model.reading(place).parts()
    assert checkpoint.ref.name == str(adapter) and {one.tensor.name for one in slices} == {name}
