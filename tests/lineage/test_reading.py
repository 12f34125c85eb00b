"""From models to samples: what is read is what lies there, within what was planned."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file

import kinprint
from kinprint.errors import BadAdapter
from kinprint.lineage.identity import same_files, same_numbers
from kinprint.lineage.reading.levels import (
    RUN,
    choose_layers,
    level_plan,
    sample_units,
    spread_layers,
)
from kinprint.lineage.reading.sampler import Sampler
from kinprint.lineage.reading.tower import main_stack, runs_of
from kinprint.mirror import MirrorServer
from kinprint.model.model import Model
from kinprint.reader.checkpoint import open_checkpoint
from kinprint.reader.fetch import Fetcher
from kinprint.records import Level
from tests.lineage.stored_models import (
    GROUPS,
    HEADS,
    LAYERS,
    LLAMA,
    SIZE,
    WIDTH,
    Array,
    final,
    llama,
    mixture,
    sampled,
    stored,
)

PAIR = ("zai-org/GLM-4.5-Air", "upstage/Solar-Open-100B")


def test_a_small_model_is_read_whole(demo: Path, fetcher: Fetcher) -> None:
    sampler = sampled([str(demo / "zoo" / name) for name in ("base-a", "a-cpt")], fetcher)
    assert all(sampler.whole) and sampler.stages == 1
    one = final(sampler)[0]
    raw = {
        name: values.astype(np.float32)
        for name, values in load_file(demo / "zoo" / "base-a" / "model.safetensors").items()
    }
    root = "model.layers.2"
    assert one.depth == 6 and one.width == 128 and len(one.norms) == 13
    assert np.array_equal(one.norms["norm_final", -1], raw["model.norm.weight"])
    assert np.array_equal(one.norms["norm_in", 2], raw[f"{root}.input_layernorm.weight"])
    units = one.units[2]
    assert units.total == len(units.index) == 352
    assert units.gate is not None
    assert np.array_equal(units.gate, raw[f"{root}.mlp.gate_proj.weight"])
    assert np.array_equal(units.up, raw[f"{root}.mlp.up_proj.weight"])
    assert np.array_equal(units.down, raw[f"{root}.mlp.down_proj.weight"].T)
    heads = one.attention[2]
    assert heads.q is not None and heads.v is not None and heads.o is not None
    assert heads.q.shape == (4, 32, 128) and heads.v.shape == (2, 32, 128)
    assert np.array_equal(heads.q.reshape(128, 128), raw[f"{root}.self_attn.q_proj.weight"])
    assert np.array_equal(heads.o.reshape(128, 128), raw[f"{root}.self_attn.o_proj.weight"].T)
    assert heads.rotated == 32
    assert one.embedding is not None and len(set(one.embedding.tokens)) > 4000
    table = raw["model.embed_tokens.weight"]
    assert np.array_equal(one.embedding.rows, table[one.embedding.ids])
    assert one.dtypes["up"] == "BF16"


def test_a_sample_holds_the_rows_it_names(tmp_path: Path, fetcher: Fetcher) -> None:
    wide = {"width": 1024, "units": 512}
    config = LLAMA | {"hidden_size": 1024, "intermediate_size": 512}
    raw = [llama(seed, **wide) for seed in (1, 2)]
    names = [stored(tmp_path / str(at), one, config) for at, one in enumerate(raw)]
    sampler = sampled(names, fetcher, budget=9_000_000)
    assert sampler.whole == (False, False) and sampler.stages == 2
    assert sampler.bytes <= 9_000_000
    early, late = sampler.samples(0), sampler.samples(1)
    for sample, tensors in zip(late, raw, strict=True):
        assert sample.units and sample.attention
        for layer, units in sample.units.items():
            assert 0 < len(units.index) < units.total == 512
            up = tensors[f"model.layers.{layer}.mlp.up_proj.weight"]
            assert np.array_equal(units.up, up[units.index])
            assert not units.down.any()  # a column costs a matrix here, so it is not read
        for layer, heads in sample.attention.items():
            k = tensors[f"model.layers.{layer}.self_attn.k_proj.weight"]
            assert heads.k is not None and heads.k.shape == (1, SIZE, 1024)
            assert np.array_equal(heads.k[0], k[:SIZE])
    assert set(early[0].norms) == set(late[0].norms) and not early[0].attention
    for layer, units in late[0].units.items():
        assert np.array_equal(units.index, late[1].units[layer].index)
        assert set(early[0].units[layer].index) <= set(units.index)


@pytest.mark.parametrize("spelled", [True, False])
def test_tokens_that_both_models_have(
    copy_of: Callable[[str], Path], fetcher: Fetcher, spelled: bool
) -> None:
    """Of a tokenizer that is too long to be read, tokens are known by number and digest."""
    first, second = (copy_of(f"zoo/{name}") / "zoo" / name for name in ("base-a", "a-cpt"))
    text = json.loads((second / "tokenizer.json").read_text())
    if spelled:
        vocabulary = text["model"]["vocab"]
        words = sorted(vocabulary, key=vocabulary.__getitem__)
        vocabulary[words[100]], vocabulary[words[101]] = 101, 100
        (second / "tokenizer.json").write_text(json.dumps(text))
    else:
        for folder in (first, second):
            (folder / "tokenizer.json").write_text(json.dumps(text) + " " * 1_000_000)
    sampler = sampled([str(first), str(second)], fetcher, budget=5_000_000)
    assert not any(sampler.whole)
    a, b = (one.embedding for one in final(sampler))
    assert a is not None and b is not None
    assert set(a.tokens) == set(b.tokens) and len(a.tokens) == len(set(a.tokens)) >= 256
    assert (a.tokens != b.tokens) == spelled
    for folder, found in ((first, a), (second, b)):
        table = load_file(folder / "model.safetensors")["model.embed_tokens.weight"]
        assert np.array_equal(found.rows, table.astype(np.float32)[found.ids])
    if not spelled:
        (second / "tokenizer.json").write_text(json.dumps(text) + "\n" * 1_000_000)
        b = final(sampled([str(second)], fetcher, budget=2_500_000))[0].embedding
        assert b is not None and not set(a.tokens) & set(b.tokens)


def test_equal_tokenizers_are_parsed_once(copy_of: Callable[[str], Path], fetcher: Fetcher) -> None:
    first, second = (copy_of(f"zoo/{name}") / "zoo" / name for name in ("base-a", "a-cpt"))
    same = sampled([str(first), str(second)], fetcher)
    final(same)
    assert same.vocabularies[0] is not None and same.vocabularies[0] is same.vocabularies[1]
    text = (second / "tokenizer.json").read_text()
    (second / "tokenizer.json").write_text(text + "\n")
    apart = sampled([str(first), str(second)], fetcher)
    final(apart)
    assert apart.vocabularies[0] is not apart.vocabularies[1]


def test_vocabularies_that_were_numbered_anew_meet(
    copy_of: Callable[[str], Path], fetcher: Fetcher
) -> None:
    """Some tokens are chosen by their spelling, so that two samples have them in common."""
    first, second = (copy_of(f"zoo/{name}") / "zoo" / name for name in ("base-a", "a-cpt"))
    text = json.loads((second / "tokenizer.json").read_text())
    words = list(text["model"]["vocab"])
    mixed = np.random.default_rng(0).permutation(len(words)).tolist()
    text["model"]["vocab"] = dict(zip(words, mixed, strict=True))
    (second / "tokenizer.json").write_text(json.dumps(text))
    found = final(sampled([str(first), str(second)], fetcher, budget=5_000_000))
    tokens = [set(one.embedding.tokens) for one in found if one.embedding is not None]
    assert len(tokens[0] & tokens[1]) >= 32


@pytest.mark.parametrize(
    "level", ["quick", "standard", pytest.param("deep", marks=pytest.mark.slow)]
)
def test_what_is_read_of_a_model_does_not_depend_on_its_partner(
    tmp_path: Path, fetcher: Fetcher, level: str
) -> None:
    """Neither a shallower, a narrower nor a wholly read partner changes a sample."""
    config = LLAMA | {"hidden_size": 512, "intermediate_size": 640, "num_hidden_layers": 9}
    sizes = {"width": 512, "units": 640, "layers": 9}
    one = stored(tmp_path / "one", llama(1, **sizes), config)
    partners = {
        "shallow": (sizes | {"layers": 5}, config | {"num_hidden_layers": 5}),
        "narrow": (sizes | {"units": 96}, config | {"intermediate_size": 96}),
        "small": ({}, LLAMA),
    }
    each = {"quick": 400_000, "standard": 3_000_000, "deep": 9_000_000}[level]
    alone = final(sampled([one], fetcher, level, each))[0]
    assert alone.norms and (level == "quick" or alone.units)
    for name, (shape, stated) in partners.items():
        other = stored(tmp_path / name, llama(2, **shape), stated)
        for names, at in (([one, other], 0), ([other, one], 1)):
            found = final(sampled(names, fetcher, level, 2 * each))[at]
            assert found.key == alone.key and found.read == alone.read


def test_a_sample_names_what_was_read(tmp_path: Path, fetcher: Fetcher) -> None:
    """Files, byte ranges and digests: enough to check a result against the files."""
    raw = llama(1, width=512, units=384)
    config = LLAMA | {"hidden_size": 512, "intermediate_size": 384}
    folder = stored(tmp_path / "a", raw, config)
    sample = final(sampled([folder], fetcher, budget=3_000_000))[0]
    norm = next(one for one in sample.read if one.tensor == "model.norm.weight")
    (span,) = norm.ranges
    stored_bytes = (tmp_path / "a" / "model.safetensors").read_bytes()[span.start : span.stop]
    assert stored_bytes == raw["model.norm.weight"].tobytes()
    assert norm.sha256 == hashlib.sha256(stored_bytes).hexdigest()
    up = next(one for one in sample.read if one.tensor.endswith("up_proj.weight"))
    layer = int(up.tensor.split(".")[2])
    assert sum(span.size for span in up.ranges) == sample.units[layer].up.nbytes
    assert up.sha256 == hashlib.sha256(sample.units[layer].up.tobytes()).hexdigest()


def test_an_output_head_of_its_own_is_read_for_the_same_tokens(
    copy_of: Callable[[str], Path], fetcher: Fetcher
) -> None:
    folder = copy_of("zoo/base-a") / "zoo" / "base-a"
    assert final(sampled([str(folder)], fetcher))[0].head is None
    tensors = load_file(folder / "model.safetensors")
    head = tensors["model.embed_tokens.weight"][::-1].copy()
    (folder / "model.safetensors").unlink()
    save_file(tensors | {"lm_head.weight": head}, folder / "model.safetensors")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"tie_word_embeddings": False}))
    for budget in (None, 4_200_000):
        found = final(sampled([str(folder)], fetcher, budget=budget))[0]
        assert found.head is not None and found.embedding is not None
        assert found.head.tokens == found.embedding.tokens
        assert np.array_equal(found.head.rows, head.astype(np.float32)[found.head.ids])


def test_what_lies_outside_the_residual_stream_is_left_out(
    tmp_path: Path, fetcher: Fetcher
) -> None:
    """Some models work in a narrower stream inside a layer."""
    raw = llama()
    for layer in range(LAYERS):
        for name in ("gate_proj", "up_proj"):
            key = f"model.layers.{layer}.mlp.{name}.weight"
            raw[key] = np.ascontiguousarray(raw[key][:, : WIDTH // 2])
    one, other = final(
        sampled([stored(tmp_path / "a", raw), stored(tmp_path / "b", llama(1))], fetcher)
    )
    assert not one.units and other.units and one.attention


def test_interleaved_rows_are_put_in_halves(tmp_path: Path, fetcher: Fetcher) -> None:
    raw = llama()
    config = LLAMA | {"rope_interleave": True}
    one, other = final(
        sampled([stored(tmp_path / "a", raw, config), stored(tmp_path / "b", raw)], fetcher)
    )
    k, plain = one.attention[1].k, other.attention[1].k
    assert k is not None and plain is not None
    for j in range(SIZE // 2):
        assert np.array_equal(k[:, j], plain[:, 2 * j])
        assert np.array_equal(k[:, j + SIZE // 2], plain[:, 2 * j + 1])
    assert one.facts.rope == "half"


def test_partial_rotary_and_biases(tmp_path: Path, fetcher: Fetcher) -> None:
    raw = llama()
    bias = np.arange(GROUPS * SIZE, dtype=np.float32)
    for layer in range(LAYERS):
        raw[f"model.layers.{layer}.self_attn.k_proj.bias"] = bias
    config = LLAMA | {"partial_rotary_factor": 0.5}
    sample = final(sampled([stored(tmp_path / "a", raw, config)], fetcher))[0]
    heads = sample.attention[0]
    assert heads.rotated == SIZE // 2
    assert heads.k_bias is not None
    assert np.array_equal(heads.k_bias, bias.reshape(GROUPS, SIZE))


def test_experts_and_routers(tmp_path: Path, fetcher: Fetcher) -> None:
    raw, config = mixture()
    sample = final(sampled([stored(tmp_path / "a", raw, config)], fetcher))[0]
    assert not sample.units
    assert set(sample.experts) == {(layer, e) for layer in range(LAYERS) for e in range(4)}
    root = "model.layers.2.block_sparse_moe"
    one = sample.experts[2, 2]
    assert one.gate is not None
    assert np.array_equal(one.gate, raw[f"{root}.experts.2.w1.weight"])
    assert np.array_equal(one.up, raw[f"{root}.experts.2.w3.weight"])
    assert np.array_equal(one.down, raw[f"{root}.experts.2.w2.weight"].T)
    assert np.array_equal(sample.routers[2], raw[f"{root}.gate.weight"])


def test_units_that_are_stored_as_rows_come_with_what_they_send_out(
    tmp_path: Path, fetcher: Fetcher
) -> None:
    """GPT-2 stores inputs first: units of the second matrix are rows, and cost no more."""
    width, units = 512, 2048
    chance = np.random.default_rng(0)
    raw: dict[str, Array] = {"wte.weight": chance.normal(size=(64, width)).astype(np.float32)}
    for layer in range(8):
        for name, shape in (
            ("ln_1.weight", (width,)), ("ln_1.bias", (width,)), ("ln_2.weight", (width,)),
            ("ln_2.bias", (width,)), ("mlp.c_fc.weight", (width, units)),
            ("mlp.c_fc.bias", (units,)), ("mlp.c_proj.weight", (units, width)),
            ("attn.c_attn.weight", (width, 3 * width)), ("attn.c_proj.weight", (width, width)),
        ):  # fmt: skip
            raw[f"h.{layer}.{name}"] = chance.normal(size=shape).astype(np.float32)
    config = {
        "model_type": "gpt2", "n_embd": width, "n_layer": 8, "n_head": 8, "vocab_size": 64,
        "n_inner": units,
    }  # fmt: skip
    name = stored(tmp_path / "a", raw, config)
    (sample,) = final(sampled([name], fetcher))
    assert not sample.units or sample.depth == 8
    for layer, one in sample.units.items():
        assert one.gate is None
        assert np.array_equal(one.up, raw[f"h.{layer}.mlp.c_fc.weight"].T[one.index])
        assert np.array_equal(one.down, raw[f"h.{layer}.mlp.c_proj.weight"][one.index])


def test_layers_beyond_the_stack_are_layers(tmp_path: Path, fetcher: Fetcher) -> None:
    raw = llama(layers=LAYERS + 1)
    sample = final(sampled([stored(tmp_path / "a", raw)], fetcher))[0]
    assert sample.depth == LAYERS + 1
    assert set(sample.units) == set(range(LAYERS + 1))


def test_the_stack_that_is_compared() -> None:
    assert main_stack(("",)) == ""
    assert main_stack(("decoder", "encoder")) == "decoder"
    assert main_stack(("", "vision")) == ""
    assert main_stack(("encoder",)) == "encoder"
    assert main_stack(()) == ""


@given(
    total=st.integers(1, 20_000),
    rows=st.integers(1, 128),
    more=st.integers(0, 64),
    seed=st.integers(0, 99),
)
def test_units_come_in_runs_and_fewer_are_among_more(
    total: int, rows: int, more: int, seed: int
) -> None:
    shift = level_plan(Level.STANDARD, seed).shift
    found = sample_units(total, rows, shift)
    assert found and len(set(found)) == len(found) and max(found) < total
    assert set(found) <= set(sample_units(total, rows + more, shift))
    if rows < total and total > RUN:
        assert len(found) <= max(rows, RUN)
        assert all(len(run) % RUN == 0 for run in runs_of(found))


@given(
    total=st.integers(4096, 30_000), other=st.integers(4096, 30_000), shift=st.integers(0, 1 << 64)
)
def test_units_of_models_of_different_totals_are_the_same(
    total: int, other: int, shift: int
) -> None:
    assert sample_units(total, 64, shift) == sample_units(other, 64, shift)


@given(depth=st.integers(1, 300), other=st.integers(1, 300), most=st.integers(2, 64))
def test_layers_of_models_of_different_depth_meet(depth: int, other: int, most: int) -> None:
    one = spread_layers(depth, most)
    assert 0 < len(one) <= most and max(one) < depth
    shared = set(one) & set(spread_layers(other, most))
    assert 0 in shared


@given(depth=st.integers(8, 300), shift=st.integers(0, 1 << 64))
def test_shifted_layers_of_models_of_different_depth_meet(depth: int, shift: int) -> None:
    ours, theirs = spread_layers(depth, 12, shift), spread_layers(2 * depth, 12, shift)
    assert 0 < len(ours) <= 12 and set(theirs) & set(range(depth)) <= set(ours)


@given(
    depth=st.integers(1, 300),
    most=st.integers(1, 64),
    first=st.integers(0, 3),
    shift=st.integers(0, 1 << 64),
)
def test_layers_are_chosen_among_those_that_fit(
    depth: int, most: int, first: int, shift: int
) -> None:
    fitting = range(min(first, depth - 1), depth)
    chosen = choose_layers(fitting, depth, most, shift)
    assert 0 < len(chosen) <= most and set(chosen) <= set(fitting)
    assert list(chosen) == sorted(set(chosen))


def test_one_layer_is_the_same_in_models_of_any_depth() -> None:
    depths = (9, 12, 28, 46, 61, 96)
    assert {choose_layers(spread_layers(depth, 12), depth, 1) for depth in depths} == {(8,)}
    assert choose_layers(range(6), 6, 1) == (4,)
    assert choose_layers([3, 7, 11, 15], 16, 2) == (3, 7)


@pytest.mark.parametrize("level", ["quick", "standard", "deep"])
def test_another_seed_reads_other_places_within_the_same_limit(
    replica_models: dict[str, Model], level: Level
) -> None:
    limit = 12_000_000
    places = []
    for seed in range(4):
        (reader,) = Sampler([replica_models["mistral"]], level, limit, seed).models[0]
        assert reader.plan.bytes <= limit
        pieces = [piece for stage in reader.plan.stages for piece in stage.pieces]
        places.append({(piece.address, piece.rows) for piece in pieces})
    assert all(one != other for one, other in combinations(places, 2))


def test_a_seed_reads_rows_of_equal_numbers_in_both_models(demo: Path, fetcher: Fetcher) -> None:
    names = [str(demo / "zoo" / name) for name in ("base-a", "a-cpt")]
    seen = []
    for seed in (0, 7):
        one, other = final(sampled(names, fetcher, budget=4_000_000, seed=seed))
        assert one.norms.keys() == other.norms.keys()
        assert {at: units.index.tolist() for at, units in one.units.items()} == {
            at: units.index.tolist() for at, units in other.units.items()
        }
        assert one.embedding is not None and other.embedding is not None
        assert one.embedding.tokens == other.embedding.tokens
        seen.append([part.ranges for part in one.read])
    assert seen[0] != seen[1]


def test_who_spares_the_rows_of_one_seed_is_seen_by_another(tmp_path: Path) -> None:
    config = LLAMA | {"hidden_size": 256, "intermediate_size": 1024}
    sizes = {"width": 256, "units": 1024}
    root, thief = llama(1, **sizes), llama(2, **sizes)
    spared = list(sample_units(1024, 64))
    for name, own in thief.items():
        if name.endswith(("gate_proj.weight", "up_proj.weight")):
            own_rows = own[spared]
            thief[name] = root[name].copy()
            thief[name][spared] = own_rows
    names = [stored(tmp_path / "a", root, config), stored(tmp_path / "b", thief, config)]
    told = [kinprint.compare(*names, budget=2_500_000, seed=seed) for seed in (0, 1, 2)]
    assert [one.relation in ("derived", "partial", "dependent") for one in told] == [
        False, True, True,
    ]  # fmt: skip
    for seed, one in enumerate(told):
        assert f"seed {seed}" in one.statements["coverage"]


def test_the_same_sample_from_a_folder_and_from_a_server(
    demo: Path, mirror: MirrorServer, fetcher: Fetcher
) -> None:
    names = ("base-a", "a-cpt")
    near = final(sampled([str(demo / "zoo" / name) for name in names], fetcher, budget=4_000_000))
    with Fetcher() as other:
        far = final(sampled([f"zoo/{name}" for name in names], other, budget=4_000_000))
    assert [one.key for one in near] == [one.key for one in far]
    assert near[0].key != near[1].key


def test_the_same_files_are_known_without_reading(
    demo: Path, mirror: MirrorServer, copy_of: Callable[[str], Path], fetcher: Fetcher
) -> None:
    folder = copy_of("zoo/base-a")
    again = [
        open_checkpoint(name, fetcher)
        for name in ("zoo/base-a", str(demo / "zoo" / "base-a"), str(folder / "zoo" / "base-a"))
    ]
    other = open_checkpoint("zoo/a-cpt", fetcher)
    before = fetcher.spent.bytes
    assert all(same_files(again[0], one) for one in again)
    assert not any(same_files(one, other) for one in again)
    assert fetcher.spent.bytes == before


def test_equal_files_of_a_merged_model_are_known_whatever_it_kept(
    tmp_path: Path, fetcher: Fetcher
) -> None:
    """A configuration of what was merged into a model makes no adapter of it."""
    names = [stored(tmp_path / name, llama()) for name in ("one", "two")]
    config = {"peft_type": "LORA", "r": 2, "lora_alpha": 4, "target_modules": ["q_proj"]}
    for name in names:
        (Path(name) / "adapter_config.json").write_text(json.dumps(config))
    assert same_files(*(open_checkpoint(name, fetcher) for name in names))
    for name in names:
        (Path(name) / "model.safetensors").rename(Path(name) / "adapter_model.safetensors")
    assert not same_files(*(open_checkpoint(name, fetcher) for name in names))


def test_files_without_any_number_are_no_copies(tmp_path: Path, fetcher: Fetcher) -> None:
    """A run in parts may leave names alone: two of one architecture are equal, byte for byte."""
    empty = {name: one[:0] for name, one in llama().items()}
    names = [stored(tmp_path / name, empty) for name in ("one", "two")]
    assert not same_files(*(open_checkpoint(name, fetcher) for name in names))
    found = kinprint.compare(*names).to_dict()
    assert found["verdict"]["relation"] == "untestable"
    assert any("hold no numbers" in note for note in found["notes"])


def test_a_file_that_differs_where_nobody_glances_is_another(
    demo: Path, copy_of: Callable[[str], Path], fetcher: Fetcher
) -> None:
    """All but one byte are equal; files are glanced at in a few places before they are hashed."""
    folders = [root / "zoo" / "base-a" for root in (demo, copy_of("zoo/base-a"))]
    changed = folders[1] / "model.safetensors"
    raw = bytearray(changed.read_bytes())
    for at in (len(raw) - 1, len(raw) // 2 + 5000):
        raw[at] ^= 1
        changed.write_bytes(raw)
        models = [open_checkpoint(str(folder), fetcher) for folder in folders]
        assert same_files(models[0], models[0]) and not same_files(*models)
        raw[at] ^= 1
    changed.write_bytes(raw)
    assert same_files(*(open_checkpoint(str(folder), fetcher) for folder in folders))


def test_the_same_numbers_in_other_shards(tmp_path: Path, fetcher: Fetcher) -> None:
    raw = llama()
    whole = stored(tmp_path / "whole", raw)
    split = tmp_path / "split"
    split.mkdir()
    (split / "config.json").write_text(json.dumps(LLAMA))
    for number in (0, 1):
        part = {name: one for at, (name, one) in enumerate(sorted(raw.items())) if at % 2 == number}
        save_file(part, split / f"model-{number + 1:05}-of-00002.safetensors")
    a, b = final(sampled([whole, str(split)], fetcher))
    assert same_numbers(a, b)
    assert not same_files(*(open_checkpoint(name, fetcher) for name in (whole, str(split))))
    raw["model.layers.2.mlp.up_proj.weight"][3, 3] += 1
    changed = stored(tmp_path / "changed", raw)
    assert not same_numbers(a, final(sampled([changed], fetcher))[0])


def with_biases() -> dict[str, Array]:
    """A model in which every matrix has a bias, with a table of positions that was learnt."""
    chance = np.random.default_rng(8)
    biases = {
        name.replace(".weight", ".bias"): chance.normal(size=len(matrix)).astype(np.float32)
        for name, matrix in llama().items()
        if "proj" in name
    }
    table = chance.normal(size=(32, WIDTH)).astype(np.float32)
    return llama() | biases | {"model.embed_positions.weight": table}


@pytest.mark.parametrize(
    "part",
    [
        "o_proj.bias",
        pytest.param("down_proj.bias", marks=pytest.mark.slow),
        "gate_proj.bias",
        "positions",
    ],
)
def test_biases_that_no_test_needs_and_positions_are_read_and_count(
    tmp_path: Path, part: str
) -> None:
    raw = with_biases()
    name = next(name for name in raw if part in name)
    first = stored(tmp_path / "first", raw)
    changed = stored(tmp_path / "changed", raw | {name: raw[name] + np.float32(0.25)})
    same = stored(tmp_path / "same", raw)
    save_file(raw, tmp_path / "same" / "model.safetensors", {"written": "again"})
    assert kinprint.compare(first, same).relation == "identical"
    assert kinprint.compare(first, changed).relation == "derived"


def test_an_adapter_without_a_base_is_refused(tmp_path: Path, fetcher: Fetcher) -> None:
    save_file(
        {
            "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight": np.ones(
                (2, WIDTH), np.float32
            ),
            "base_model.model.model.layers.0.self_attn.q_proj.lora_B.weight": np.ones(
                (HEADS * SIZE, 2), np.float32
            ),
        },
        tmp_path / "adapter_model.safetensors",
    )
    config = {"peft_type": "LORA", "r": 2, "lora_alpha": 4, "target_modules": ["q_proj"]}
    (tmp_path / "adapter_config.json").write_text(json.dumps(config))
    with pytest.raises(BadAdapter):
        sampled([str(tmp_path)], fetcher)
    base = stored(tmp_path / "base", llama())
    (sample,) = final(sampled([str(tmp_path)], fetcher, base=base))
    plain = final(sampled([base], fetcher))[0]
    q, untouched = sample.attention[0].q, plain.attention[0].q
    assert q is not None and untouched is not None
    assert np.allclose(q, untouched + 4.0)  # two ranks of ones, scaled by alpha / r


def test_threads_that_ask_for_a_level_decode_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two threads in which msgspec describes one struct end the process with signal 11."""

    def refuse(*given: object, **named: object) -> None:
        raise AssertionError("decoded in a thread")

    monkeypatch.setattr(msgspec.toml, "decode", refuse)
    with ThreadPoolExecutor(4) as pool:
        plans = list(pool.map(level_plan, Level))
    assert [plan.stages > 0 for plan in plans] == [True] * len(Level)
