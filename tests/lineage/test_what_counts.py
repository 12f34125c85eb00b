"""Which numbers of a model count as weights: names alone hide none, and lists link nobody."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import gguf
import ml_dtypes
import numpy as np
import pytest
from msgspec.structs import replace
from safetensors.numpy import save_file

from benchmarks.redteam.checkpoint import load, write_folder
from kinprint.lineage.compare import compare_models
from kinprint.lineage.results import Comparison, Settings
from kinprint.reader.fetch import Fetcher
from kinprint.records import Component, PartFinding, PartState, Reason, Relation
from tests.fewer_layers import short_zoo
from tests.lineage.stored_models import (
    GROUPS,
    HEADS,
    LAYERS,
    LLAMA,
    SIZE,
    VOCABULARY,
    WIDTH,
    Array,
    llama,
    stored,
)

HEAD = "lm_head.weight"
TABLE = "model.embed_tokens.weight"


def compared(folder: Path, one: Mapping[str, Array], other: Mapping[str, Array]) -> Comparison:
    untied = {**LLAMA, "tie_word_embeddings": False}
    a, b = (
        stored(folder / name, dict(tensors), untied if HEAD in tensors else LLAMA)
        for name, tensors in (("a", one), ("b", other))
    )
    with Fetcher() as fetcher:
        return compare_models(a, b, fetcher, Settings(), details=False)


def drawn(seed: int, *shape: int) -> Array:
    return np.asarray(np.exp(np.random.default_rng(seed).normal(size=shape)), np.float32)


def in_layers(name: str, seed: int, *shape: int) -> dict[str, Array]:
    return {f"model.layers.{at}.{name}": drawn(seed + at, *shape) for at in range(LAYERS)}


def tuned(tensors: Mapping[str, Array], seed: int = 9) -> dict[str, Array]:
    chance = np.random.default_rng(seed)
    return {
        name: (one + 0.2 * chance.normal(size=one.shape)).astype(np.float32)
        for name, one in tensors.items()
    }


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("self_attn.o_proj.pre_quant_scale", (WIDTH,)),
        pytest.param("mlp.norm_scale", (WIDTH,), marks=pytest.mark.slow),
        pytest.param("mlp.bn.running_mean", (WIDTH,), marks=pytest.mark.slow),
        pytest.param("mlp.codebooks", (WIDTH, WIDTH), marks=pytest.mark.slow),
        pytest.param("mlp.other.scales", (WIDTH, WIDTH), marks=pytest.mark.slow),
        ("mlp.extra.weight_v", (WIDTH, WIDTH)),
        ("layer_scalar", (1,)),
    ],
)
def test_models_that_differ_in_some_numbers_are_not_the_same_weights(
    tmp_path: Path, name: str, shape: tuple[int, ...]
) -> None:
    ours, theirs = (llama() | in_layers(name, seed, *shape) for seed in (1, 100))
    found = compared(tmp_path / "other", ours, theirs)
    assert found.verdict.relation is Relation.DERIVED
    others = [one for one in found.verdict.parts if one.part.component is Component.OTHER]
    assert others and all(one.state is PartState.NOT_COMPARABLE for one in others)
    alone = compared(tmp_path / "alone", llama(), theirs)
    assert alone.verdict.relation is Relation.DERIVED
    same = compared(tmp_path / "same", theirs, {name: one.copy() for name, one in theirs.items()})
    assert same.verdict.relation in (Relation.IDENTICAL, Relation.SAME_WEIGHTS)


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("self_attn.k_scale", ()),
        pytest.param("self_attn.k_scale", (1,), marks=pytest.mark.slow),
        pytest.param("mlp.down_proj.input_scale", (1,), marks=pytest.mark.slow),
        ("mlp.down_proj.input_scale", (2, 1, 1)),
    ],
)
def test_what_rounds_activations_is_no_weight_beside_codes(
    tmp_path: Path, name: str, shape: tuple[int, ...]
) -> None:
    base = {
        key: one.astype(ml_dtypes.float8_e4m3fn).astype(np.float32) if one.ndim > 1 else one
        for key, one in llama().items()
    }
    codes = {
        key: one.astype(ml_dtypes.float8_e4m3fn) if "proj" in key else one
        for key, one in base.items()
    }
    scales = {
        f"{key}_scale": np.ones((1,), np.float32) for key in base if "proj" in key
    } | in_layers(name, 1, *shape)
    found = compared(tmp_path, base, codes | scales)
    assert found.verdict.relation is Relation.SAME_WEIGHTS


@pytest.mark.parametrize(
    ("method", "kind"),
    [
        ("a-method-of-tomorrow", np.int8),
        (None, ml_dtypes.float8_e4m3fn),
        pytest.param(None, np.int8, marks=pytest.mark.slow),
        pytest.param("a-method-of-tomorrow", ml_dtypes.float8_e4m3fn, marks=pytest.mark.slow),
    ],
)
def test_equal_codes_with_other_scales_are_not_the_same_weights(
    tmp_path: Path, method: str | None, kind: type
) -> None:
    """The scales are those of a method that is not read, or have a name that no method gives."""
    codes = {
        name: np.asarray(100 * one / np.abs(one).max(), kind) if "_proj" in name else one
        for name, one in llama().items()
    }
    ending = "_zero_point" if method is None else "_scale"
    scales = [
        {
            f"{name}{ending}": drawn(seed, len(one), 1)
            for name, one in codes.items()
            if "_proj" in name
        }
        for seed in (1, 100)
    ]
    config = LLAMA if method is None else LLAMA | {"quantization_config": {"quant_method": method}}
    a, b = (stored(tmp_path / str(at), codes | one, config) for at, one in enumerate(scales))
    with Fetcher() as fetcher:
        found = compare_models(a, b, fetcher, Settings(), details=False).verdict
    layers = [one for one in found.parts if one.part.component is Component.FEED_FORWARD]
    assert found.relation in (Relation.PARTIAL, Relation.DERIVED)
    assert {one.state for one in layers} == {PartState.NOT_READ}


def test_numbers_of_positions_are_no_codes(tmp_path: Path) -> None:
    """Learnt scales beside a table of whole numbers are weights as without it."""
    positions = {"model.position_ids": np.arange(512)[None]}
    ours, theirs = (
        llama() | in_layers(name, seed, WIDTH) | positions
        for name, seed in (("mlp.act_scale", 1), ("mlp.act_scale", 100))
    )
    assert compared(tmp_path, ours, theirs).verdict.relation is Relation.DERIVED


def test_a_tensor_without_numbers_is_no_weight(tmp_path: Path) -> None:
    empty = {"model.foo.bar": np.zeros(0, np.float32)}
    assert compared(tmp_path, llama(), llama() | empty).verdict.relation is Relation.SAME_WEIGHTS


@pytest.mark.parametrize("name", ["cls_token", "model.image_newline"])
def test_lists_of_known_meaning_are_a_link(tmp_path: Path, name: str) -> None:
    extra = {name: drawn(1, WIDTH)}
    found = compared(tmp_path, llama(1) | extra, llama(2) | extra)
    assert found.verdict.relation is Relation.PARTIAL


def test_matrices_that_are_stored_in_two_are_not_read_as_none(tmp_path: Path) -> None:
    """Weight normalisation: strangers' matrices beside one embedding and one set of norms."""

    def normalised(seed: int) -> dict[str, Array]:
        found: dict[str, Array] = {}
        for name, one in llama(seed).items():
            if "proj" in name:
                found |= {f"{name}_v": one, f"{name}_g": np.linalg.norm(one, axis=1)[:, None]}
            else:
                found[name] = llama(0)[name]
        return found

    found = compared(tmp_path, normalised(1), normalised(2))
    assert found.verdict.relation is Relation.PARTIAL


@pytest.mark.parametrize(
    ("name", "numbers"),
    [
        ("encoder.global_cmvn.mean", 30 + 3 * drawn(1, 80)),
        ("normalize_inputs.observation.mean", drawn(2, 32)),
        ("synthesis.up_filter", np.sinc(np.arange(-11.5, 12) / 2) * np.kaiser(24, 6.0)),
        pytest.param("frontend.resample.kernel", drawn(3, 1, 1, 28), marks=pytest.mark.slow),
    ],
)
def test_lists_that_strangers_store_alike_do_not_link_them(
    tmp_path: Path, name: str, numbers: Array
) -> None:
    extra = {name: numbers.astype(np.float32)}
    found = compared(tmp_path, llama(1) | extra, llama(2) | extra)
    assert found.verdict.relation is Relation.NO_EVIDENCE


def headed(folder: Path, name: str, head: Array | None) -> str:
    """A trained model of the demo, with a head of its own or tied to its embedding."""
    like = load(short_zoo() / name)
    folder.mkdir(parents=True)
    own = {} if head is None else {HEAD: head}
    config = {**(like.config or {}), "tie_word_embeddings": head is None}
    write_folder(replace(like, tensors={**like.tensors, **own}, config=config), folder)
    return str(folder)


def heads_of(*models: str, relation: Relation = Relation.DERIVED) -> list[PartFinding]:
    """What is said of the head, which may be a tied embedding in one of the models."""
    with Fetcher() as fetcher:
        found = compare_models(models[0], models[1], fetcher, Settings(), details=False).verdict
    assert found.relation is relation
    return [
        one
        for one in found.parts
        if Component.HEAD in (one.part.component, one.partner and one.partner.component)
    ]


def table_of(name: str, noise: float = 0.0) -> Array:
    rows = np.asarray(load(short_zoo() / name).tensors[TABLE])
    drawn = np.random.default_rng(3).normal(size=rows.shape)
    return np.asarray(rows + noise * rows.std() * drawn, rows.dtype)


@pytest.mark.parametrize(
    "written",
    [(True, False), *(pytest.param((one, True), marks=pytest.mark.slow) for one in (True, False))],
)
def test_a_head_that_is_the_embedding_is_told_like_it(
    tmp_path: Path, written: tuple[bool, bool]
) -> None:
    a, b = (
        headed(tmp_path / name, name, table_of(name) if again else None)
        for name, again in zip(("base-a", "a-cpt"), written, strict=True)
    )
    (head,) = heads_of(a, b)
    assert head.state is PartState.SHARED and head.weights == table_of("base-a").size


def test_a_tied_table_may_be_stored_as_the_head_alone(tmp_path: Path) -> None:
    like = load(short_zoo() / "base-a")
    renamed = {HEAD if name == TABLE else name: one for name, one in like.tensors.items()}
    (tmp_path / "a").mkdir()
    write_folder(replace(like, tensors=renamed), tmp_path / "a")
    with Fetcher() as fetcher:
        models = str(short_zoo() / "base-a"), str(tmp_path / "a")
        found = compare_models(*models, fetcher, Settings(), details=False).verdict
    assert found.relation is Relation.IDENTICAL


@pytest.mark.parametrize("one", [True, False])
def test_the_bias_of_a_head_is_one_of_its_numbers(tmp_path: Path, one: bool) -> None:
    """It differs, or one of the models has none."""
    chance = np.random.default_rng(2)
    first, second = (chance.normal(size=(VOCABULARY,)).astype(np.float32) for _ in range(2))
    base = llama(1) | {HEAD: llama(4)[TABLE]}
    other = base | {"lm_head.bias": first}
    ours = base if one else base | {"lm_head.bias": second}
    for at, models in enumerate(((ours, other), (other, ours))):
        assert compared(tmp_path / str(at), *models).verdict.relation is Relation.DERIVED
    assert compared(tmp_path / "same", other, dict(other)).verdict.relation is Relation.IDENTICAL


def test_a_bias_of_a_head_that_is_the_embedding_written_again_counts_too(tmp_path: Path) -> None:
    base = llama(1)
    again = base | {HEAD: base[TABLE]}
    for at, (more, relation) in enumerate(
        (({}, Relation.SAME_WEIGHTS), ({"lm_head.bias": drawn(3, VOCABULARY)}, Relation.DERIVED))
    ):
        assert compared(tmp_path / str(at), base, again | more).verdict.relation is relation


@pytest.mark.parametrize(
    ("rows", "relation"),
    [
        (np.zeros((4, WIDTH)), Relation.SAME_WEIGHTS),
        (np.tile(drawn(1, WIDTH), (4, 1)), Relation.SAME_WEIGHTS),
        (drawn(2, 4, WIDTH), Relation.DERIVED),
    ],
    ids=["zeros", "one row", "learnt"],
)
def test_rows_that_only_one_table_has_count_unless_they_are_padding(
    tmp_path: Path, rows: Array, relation: Relation
) -> None:
    base = llama(1)
    longer = base | {TABLE: np.concatenate([base[TABLE], rows.astype(np.float32)])}
    for at, models in enumerate(((base, longer), (longer, base))):
        assert compared(tmp_path / str(at), *models).verdict.relation is relation


@pytest.mark.parametrize(
    ("kind", "size", "relation", "share"),
    [
        (np.float16, 1.0, Relation.DERIVED, 0.5),
        (np.float16, 1e-9, Relation.SAME_WEIGHTS, 1.0),
        (ml_dtypes.float8_e4m3fn, 2e-4, Relation.SAME_WEIGHTS, 1.0),
    ],
)
def test_rows_of_zeros_are_no_tokens_unless_tiny_ones_round_to_them(
    tmp_path: Path, kind: type, size: float, relation: Relation, share: float
) -> None:
    ours = llama()
    ours[TABLE][VOCABULARY // 2 :] *= size
    cast: dict[str, Array] = {name: one.astype(kind) for name, one in ours.items()}
    cast[TABLE][VOCABULARY // 2 :] = 0
    found = compared(tmp_path, ours, cast).verdict
    table = next(one for one in found.parts if one.part.component is Component.EMBEDDING)
    assert found.relation is relation
    assert table.sure == pytest.approx(share)


def test_tests_of_the_other_tokens_do_not_speak_for_rows_of_zeros(tmp_path: Path) -> None:
    ours = llama()
    ours[TABLE] = drawn(3, 10 * VOCABULARY, WIDTH)
    cut = ours | {TABLE: ours[TABLE].copy()}
    cut[TABLE][VOCABULARY:] = 0
    found = compared(tmp_path, ours, cut).verdict
    table = next(one for one in found.parts if one.part.component is Component.EMBEDDING)
    assert table.sure == pytest.approx(0.1)


@pytest.mark.parametrize("count", [pytest.param(50, marks=pytest.mark.slow), 750])
def test_tokens_that_were_replaced_are_not_taken_over(tmp_path: Path, count: int) -> None:
    """Others have their numbers, and rows of a stranger."""
    like = load(short_zoo() / "base-a")
    rows = like.tensors[TABLE].copy()
    rows[-count:] = table_of("base-b")[-count:]
    (tmp_path / "b").mkdir()
    write_folder(replace(like, tensors={**like.tensors, TABLE: rows}), tmp_path / "b")
    tokenizer = json.loads((tmp_path / "b" / "tokenizer.json").read_text())
    words = tokenizer["model"]["vocab"]
    for word, number in list(words.items()):
        if number >= len(rows) - count:
            words[f"<other {number}>"] = words.pop(word)
    (tmp_path / "b" / "tokenizer.json").write_text(json.dumps(tokenizer))
    with Fetcher() as fetcher:
        models = str(short_zoo() / "base-a"), str(tmp_path / "b")
        found = compare_models(*models, fetcher, Settings(), details=False).verdict
    (table,) = (one for one in found.parts if one.part.component is Component.EMBEDDING)
    assert found.relation is Relation.DERIVED and table.state is PartState.SHARED
    kept = 1.0 - count / len(rows)
    assert abs(table.share - kept) < 0.02 or (kept > 0.9 and table.share > 0.9)


def test_a_single_learnt_row_is_no_padding(tmp_path: Path) -> None:
    base = llama(1)
    longer = base | {TABLE: np.concatenate([base[TABLE], drawn(7, 1, WIDTH)])}
    for at, models in enumerate(((base, longer), (longer, base))):
        assert compared(tmp_path / str(at), *models).verdict.relation is Relation.DERIVED


def test_a_bias_of_zeros_is_none(tmp_path: Path) -> None:
    base = llama(1) | {HEAD: llama(4)[TABLE]}
    zeros = {
        "lm_head.bias": np.zeros(VOCABULARY, np.float32),
        "model.layers.0.self_attn.o_proj.bias": np.zeros(WIDTH, np.float32),
    }
    for at, models in enumerate(((base, base | zeros), (base | zeros, base))):
        assert compared(tmp_path / str(at), *models).verdict.relation is Relation.SAME_WEIGHTS


def test_a_head_that_training_anew_explains_is_not_linked(tmp_path: Path) -> None:
    """Its columns agree by 0.3, as they do where the layers were kept and the head was not."""
    base = headed(tmp_path / "base", "base-a", table_of("base-a", 0.1))
    child = headed(tmp_path / "child", "a-cpt", table_of("base-a", 3.0))
    for models in ((base, child), (child, base)):
        (head,) = heads_of(*models)
        assert 0.2 < (head.likeness or 0.0) < 0.45 and (head.log10_p or 0.0) < -9
        assert head.reason == Reason.PART_TRAINED_ANEW.message()


def test_rows_that_no_token_names_count_too(tmp_path: Path) -> None:
    like = load(short_zoo() / "base-a")
    rows = like.tensors[TABLE]
    for name, at in (("a", 0), ("b", 3), ("c", 3)):
        longer = np.concatenate([rows, rows[at : at + 3]])
        (tmp_path / name).mkdir()
        config = {**(like.config or {}), "vocab_size": len(longer)}
        changed = replace(like, tensors={**like.tensors, TABLE: longer}, config=config)
        write_folder(changed, tmp_path / name)
    with Fetcher() as fetcher:
        a, b, c = (str(tmp_path / name) for name in "abc")
        assert (
            compare_models(a, b, fetcher, Settings(), details=False).verdict.relation
            is Relation.DERIVED
        )
        assert (
            compare_models(c, b, fetcher, Settings(), details=False).verdict.relation
            is Relation.IDENTICAL
        )


@pytest.mark.parametrize("kept", ["mlp", "layers.2."], ids=["feed-forwards", "a layer"])
def test_parts_that_were_cut_to_zeros_end_no_comparison(tmp_path: Path, kept: str) -> None:
    base = llama(1)
    cut = {name: one * 0 if kept in name else one for name, one in base.items()}
    found = compared(tmp_path, base, cut).verdict
    assert found.relation in (Relation.DERIVED, Relation.PARTIAL)


@pytest.mark.parametrize("tied", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_head_that_was_trained_on_is_taken_over_and_a_strangers_is_not(
    tmp_path: Path, tied: bool
) -> None:
    """Where the base is tied to its embedding, the head began as that."""
    base = headed(tmp_path / "base", "base-a", None if tied else table_of("base-a", 0.1))
    child = headed(tmp_path / "child", "a-cpt", table_of("base-a", 0.3))
    other = headed(tmp_path / "other", "a-cpt", table_of("base-b"))
    for models in ((base, child), (child, base)):
        (head,) = heads_of(*models)
        assert head.learnt and head.share == 1.0 and 0.9 < (head.likeness or 0.0) < 1.0
    for models in ((base, other), (other, base)):
        (head,) = heads_of(*models)
        assert head.reason == Reason.PART_CHANNELS_RENAMED.message()


def test_of_a_head_with_some_other_rows_no_more_is_linked(tmp_path: Path) -> None:
    rows = table_of("base-a", 0.2)
    half = len(rows) // 2
    rows[:half] = table_of("base-b")[:half]
    base = headed(tmp_path / "base", "base-a", table_of("base-a", 0.1))
    child = headed(tmp_path / "child", "a-cpt", rows)
    for models in ((base, child), (child, base)):
        (head,) = heads_of(*models)
        assert head.state is PartState.SHARED and head.learnt and 0.4 < head.share < 0.55


def test_a_table_of_an_average_is_not_without_an_answer(tmp_path: Path) -> None:
    base = llama()
    average = {f"ema.{name}": one for name, one in tuned(base).items()}
    for at, models in enumerate(((base, base | average), (base | average, base))):
        said = [
            str(one.reason)
            for one in compared(tmp_path / str(at), *models).verdict.parts
            if one.part.component is Component.EMBEDDING and not one.state.linked
        ]
        assert len(said) == 1 and "there is no test here" in said[0]


def test_a_head_of_strangers_was_not_looked_at(tmp_path: Path) -> None:
    """Nothing links the models, so that tests of single parts are not made."""
    a = headed(tmp_path / "a", "base-a", table_of("base-a", 0.1))
    b = headed(tmp_path / "b", "base-b", table_of("base-a", 0.3))
    (head,) = heads_of(a, b, relation=Relation.NO_EVIDENCE)
    assert head.reason == Reason.PART_WITHOUT_TEST.message()


def adapters(folder: Path, *own: Mapping[str, Array]) -> Comparison:
    """Two adapters of one tied base that are alike but for some tensors."""
    base = stored(folder / "base", llama(), LLAMA)
    said = {"peft_type": "LORA", "r": 2, "lora_alpha": 4, "base_model_name_or_path": base}
    module = "model.layers.2.self_attn.q_proj"
    factors = {
        f"{module}.lora_A.weight": drawn(1, 2, WIDTH),
        f"{module}.lora_B.weight": drawn(2, WIDTH, 2),
    }
    a, b = (folder / f"adapter-{at}" for at in range(2))
    for place, tensors in zip((a, b), own, strict=True):
        place.mkdir()
        named = {f"base_model.model.{name}": one for name, one in (factors | {**tensors}).items()}
        save_file(named, place / "adapter_model.safetensors")
        (place / "adapter_config.json").write_text(json.dumps(said))
    with Fetcher() as fetcher:
        return compare_models(str(a), str(b), fetcher, Settings(), details=False)


@pytest.mark.parametrize(
    ("name", "shape", "component"),
    [
        pytest.param(HEAD, (VOCABULARY, WIDTH), Component.HEAD, marks=pytest.mark.slow),
        ("score.weight", (2, WIDTH), Component.OTHER),
        ("model.layers.2.self_attn.q_proj.bias", (WIDTH,), Component.ATTENTION),
        ("lm_head.lora_B.weight", (VOCABULARY, 2), Component.OTHER),
    ],
)
def test_what_only_an_adapted_model_has_is_compared(
    tmp_path: Path, name: str, shape: tuple[int, ...], component: Component
) -> None:
    factor = {"lm_head.lora_A.weight": drawn(5, 2, WIDTH)} if "lora" in name else {}
    one, other = ({**factor, name: drawn(seed, *shape)} for seed in (3, 4))
    apart, alone, same = (tmp_path / folder for folder in ("apart", "alone", "same"))
    for found in (adapters(apart, one, other), adapters(alone, one, {})):
        assert found.verdict.relation is Relation.DERIVED
        parts = [part for part in found.verdict.parts if part.part.component is component]
        assert any(part.state is not PartState.EQUAL and part.read == 1.0 for part in parts)
    assert adapters(same, one, one).verdict.relation is Relation.IDENTICAL


def test_what_an_adapter_replaces_is_not_missed(tmp_path: Path) -> None:
    found = adapters(tmp_path, *[{TABLE: drawn(3, VOCABULARY, WIDTH)}] * 2)
    assert found.verdict.relation is Relation.IDENTICAL
    assert not any("were not compared" in str(note) for note in found.notes)


GEMMA = {**LLAMA, "model_type": "gemma", "architectures": ["GemmaForCausalLM"]}
GAINS = "model.layers.2.input_layernorm.weight"


def compared_gemmas(folder: Path, one: Mapping[str, Array], other: Mapping[str, Array]) -> Relation:
    a, b = (
        stored(folder / name, dict(tensors), GEMMA) for name, tensors in (("a", one), ("b", other))
    )
    with Fetcher() as fetcher:
        return compare_models(a, b, fetcher, Settings(), details=False).verdict.relation


def small_gains() -> dict[str, Array]:
    """A model whose gains are near one, less by it as Gemma stores them."""
    return {name: one / 8 if "norm" in name else one for name, one in llama().items()}


@pytest.mark.parametrize(
    "kind", [ml_dtypes.bfloat16, pytest.param(np.float16, marks=pytest.mark.slow)]
)
def test_a_cast_rounds_gains_as_they_are_stored(tmp_path: Path, kind: type) -> None:
    model = small_gains()
    cast: dict[str, Array] = {name: one.astype(kind) for name, one in model.items()}
    assert compared_gemmas(tmp_path, model, cast) is Relation.SAME_WEIGHTS


def test_gains_are_not_identical_where_adding_one_hides_what_differs(tmp_path: Path) -> None:
    model = small_gains()
    moved = np.nextafter(model[GAINS] / 64, np.float32(1))
    same = model | {GAINS: model[GAINS] / 64}
    assert np.array_equal(moved + 1, same[GAINS] + 1)
    assert compared_gemmas(tmp_path, same, model | {GAINS: moved}) is Relation.DERIVED


def test_gains_of_a_file_that_stores_them_whole_are_the_same(tmp_path: Path) -> None:
    """llama.cpp adds the one."""
    model = small_gains()
    parts = {
        "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm",
        "q_proj": "attn_q", "k_proj": "attn_k", "v_proj": "attn_v", "o_proj": "attn_output",
        "gate_proj": "ffn_gate", "up_proj": "ffn_up", "down_proj": "ffn_down",
    }  # fmt: skip
    file = tmp_path / "model.gguf"
    writer = gguf.GGUFWriter(file, "gemma")
    writer.add_block_count(LAYERS)
    writer.add_embedding_length(WIDTH)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(GROUPS)
    writer.add_key_length(SIZE)
    for name, one in model.items():
        words = name.split(".")
        known = f"blk.{words[2]}.{parts[words[-2]]}" if "layers" in words else "output_norm"
        writer.add_tensor(
            "token_embd.weight" if name == TABLE else f"{known}.weight",
            one + np.float32(1) if "norm" in name else one,
        )
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    with Fetcher() as fetcher:
        other = stored(tmp_path / "other", model, GEMMA)
        found = compare_models(str(file), other, fetcher, Settings(), details=False)
    assert found.verdict.relation is Relation.IDENTICAL
