"""Which files of a repository are its weights."""

from __future__ import annotations

import pytest

from kinprint.errors import FileMissing, NoWeights
from kinprint.reader.weights import Choice, choose_weights
from kinprint.records import FileEntry


def choose(*paths: str, focus: str = "", sizes: dict[str, int] | None = None) -> Choice:
    files = [FileEntry(path, (sizes or {}).get(path, 100)) for path in paths]
    return choose_weights("org/name", files, focus)


def shards(stem: str, count: int, suffix: str = "safetensors") -> list[str]:
    return [f"{stem}-{n:05}-of-{count:05}.{suffix}" for n in range(1, count + 1)]


def test_a_single_file() -> None:
    found = choose("config.json", "model.safetensors", "tokenizer.json")
    assert found.weights.shards == ("model.safetensors",)
    assert found.weights.index is None
    assert found.others == ()


def test_shards_and_their_index_come_before_a_consolidated_copy() -> None:
    parts = shards("model", 3)
    found = choose(*parts, "model.safetensors.index.json", "consolidated.safetensors")
    assert found.weights.index == "model.safetensors.index.json"
    assert found.weights.shards == tuple(parts)
    assert [item.label for item in found.others] == ["consolidated.safetensors"]


def test_safetensors_come_before_archives_and_archives_before_nothing() -> None:
    found = choose("pytorch_model.bin", "model.safetensors", "optimizer.pt", "training_args.bin")
    assert found.weights.format == "safetensors"
    assert [item.label for item in found.others] == ["pytorch_model.bin"]
    assert choose("pytorch_model.bin", "optimizer.pt").weights.format == "torch"


def test_sharded_archives() -> None:
    parts = shards("pytorch_model", 2, "bin")
    found = choose(*parts, "pytorch_model.bin.index.json")
    assert found.weights.index == "pytorch_model.bin.index.json"
    assert found.weights.shards == tuple(parts)


def test_variants_have_their_own_index() -> None:
    plain, half = shards("model", 2), shards("model.fp16", 2)
    found = choose(
        *plain, *half, "model.safetensors.index.json", "model.safetensors.index.fp16.json"
    )
    assert found.weights.shards == tuple(plain)
    assert [item.index for item in found.others] == ["model.safetensors.index.fp16.json"]


def test_a_whole_file_beside_shards_does_not_take_their_index() -> None:
    found = choose("model.safetensors", *shards("model", 2), "model.safetensors.index.json")
    by_count = {len(item.shards): item.index for item in (found.weights, *found.others)}
    assert by_count == {1: None, 2: "model.safetensors.index.json"}


def test_the_largest_quantisation_is_read_and_the_others_named() -> None:
    sizes = {"m.Q4_K_M.gguf": 400, "m.Q8_0.gguf": 800, "m.Q2_K.gguf": 200, "mmproj-m.gguf": 900}
    found = choose(*sizes, sizes=sizes)
    assert found.weights.shards == ("m.Q8_0.gguf",)
    assert [item.label for item in found.others] == ["m.Q4_K_M.gguf", "m.Q2_K.gguf"]
    assert choose(*sizes, focus="m.Q2_K.gguf").weights.shards == ("m.Q2_K.gguf",)


def test_pointing_at_a_gguf_part_means_all_parts() -> None:
    parts = shards("Q8_0/big", 3, "gguf")
    assert choose(*parts, focus=parts[0]).weights.shards == tuple(parts)


def test_pointing_at_a_shard_means_it_alone() -> None:
    parts = shards("model", 3)
    found = choose(*parts, "model.safetensors.index.json", focus=parts[1])
    assert found.weights.shards == (parts[1],)
    assert found.weights.index is None


def test_pointing_at_a_folder() -> None:
    found = choose("unet/model.safetensors", "vae/model.safetensors", focus="vae")
    assert found.weights.shards == ("vae/model.safetensors",)
    with pytest.raises(FileMissing):
        choose("unet/model.safetensors", focus="nothing")


def test_models_in_several_folders_must_be_chosen() -> None:
    with pytest.raises(NoWeights, match="unet, vae"):
        choose("unet/model.safetensors", "vae/model.safetensors")
    assert choose("only/model.safetensors").weights.folder == "only"


def test_the_root_comes_before_folders() -> None:
    found = choose("checkpoint-100/model.safetensors", "pytorch_model.bin")
    assert found.weights.label == "pytorch_model.bin"


def test_an_index_without_its_shards_is_still_chosen() -> None:
    assert choose("model.safetensors.index.json", "config.json").weights.index is not None


@pytest.mark.parametrize(
    "paths", [(), ("README.md", "config.json"), ("training_args.bin",), ("tf_model.h5",)]
)
def test_no_weights_is_said_with_what_is_there(paths: tuple[str, ...]) -> None:
    with pytest.raises(NoWeights):
        choose(*paths)


def test_pointing_at_something_else_is_said() -> None:
    with pytest.raises(NoWeights, match=r"README\.md"):
        choose("README.md", "model.safetensors", focus="README.md")


def test_slices_for_several_devices_are_refused_and_one_alone_is_read() -> None:
    def entry(path: str) -> FileEntry:
        return FileEntry(path, 100)

    with pytest.raises(NoWeights, match="2 devices"):
        choose_weights("m", [entry("consolidated.00.pth"), entry("consolidated.01.pth")])
    alone = choose_weights("m", [entry("consolidated.00.pth"), entry("params.json")])
    assert alone.weights.shards == ("consolidated.00.pth",)


def test_a_single_file_comes_before_shards_of_its_name() -> None:
    parts = shards("model", 3)
    found = choose(*parts, "model.safetensors.index.json", "model.safetensors")
    assert found.weights.shards == ("model.safetensors",)
    assert [item.label for item in found.others] == ["model.safetensors.index.json"]


@pytest.mark.parametrize(
    ("paths", "counted"),
    [
        (shards("model", 3), True),
        (shards("model", 1), True),
        ([*shards("model", 3), *shards("pytorch_model", 2, "bin"), "original/w.pth"], True),
        ([*shards("model", 3), "mtp.safetensors.index.json", "training_args.bin"], True),
        (shards("model", 3)[:2], False),
        (shards("model", 3)[1:], False),
        (["model.safetensors"], False),
        ([*shards("model", 3), "mtp.safetensors"], False),
        ([*shards("model", 3), "consolidated.safetensors"], False),
        ([*shards("model", 3), "original/w.safetensors"], False),
        ([*shards("model", 3), *shards("mtp", 1), "mtp.safetensors.index.json"], False),
        ([*shards("model", 3), *shards("model", 2)], False),
        ([], False),
    ],
)
def test_names_tell_which_files_are_the_model(paths: list[str], counted: bool) -> None:
    assert choose(*paths, "model.safetensors.index.json").counted == counted


def test_an_index_names_nothing_outside_its_folder() -> None:
    parts = [f"transformer/{path}" for path in shards("model", 3)]
    index, pipeline = "transformer/model.safetensors.index.json", "model_index.json"
    found = choose(*parts, index, "vae/model.safetensors", pipeline)
    assert found.weights.index == index and found.components == ("vae",) and found.counted
    found = choose(*parts, index, "transformer/extra/model.safetensors", pipeline)
    assert not found.counted
