"""What was done to a model is told from two checkpoints, and nothing is said that was not done."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

import kinprint
from benchmarks.operations import MADE, made, with_adapter
from benchmarks.redteam import relabelling, storage, surgery
from benchmarks.redteam.cases import CASES
from benchmarks.redteam.checkpoint import Array, Checkpoint
from benchmarks.redteam.zoo import DEMO, Zoo
from kinprint import Operation, TensorStatus
from kinprint.diff.sampling import drawn_rows
from tests.fewer_layers import fewer_layers, short_zoo

_NORMAL = (  # the levels of NF4
    -1.0, -0.6961928, -0.5250731, -0.3949175, -0.2844414, -0.1847734, -0.0910500, 0.0,
    0.0795803, 0.1609302, 0.2461123, 0.3379152, 0.4407098, 0.5626170, 0.7229568, 1.0,
)  # fmt: skip
_SIBLINGS = (  # of what others are made like, or stored like
    *(f"GGUF {kind}" for kind in ("Q4_1", "Q5_0", "Q5_1", "F16", "BF16", "MXFP4")),
    *(f"adapter of rank {rank}" for rank in (1, 2, 4, 16, 32, 64)),
    "cast to float32", "fp8, a scale for a block", "noise of a tenth", "AWQ", "GGUF Q8_0",
    "int8", "MXFP4", "renamed", "fp8, a scale for a tensor",
)  # fmt: skip
_BELOW = ("cast to float16", "layers repeated", "heads removed", "permuted")  # with more to say


def one_layer() -> Checkpoint:
    """The first layer alone, for what each matrix tells by itself."""
    return fewer_layers("base-a", 1)


@pytest.fixture(scope="module")
def continued() -> kinprint.Diff:
    """A model and what became of it when it was trained on."""
    return kinprint.diff(short_zoo() / "base-a", short_zoo() / "a-cpt")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(one, marks=pytest.mark.slow if one in _SIBLINGS else ())
        for one in MADE
        if one not in _BELOW
    ],
)
def test_what_was_done_is_told(name: str, tmp_path: Path) -> None:
    make, wanted = MADE[name]
    parent = one_layer() if wanted.format is not None else fewer_layers("base-a")
    if "layers" in name:
        parent = fewer_layers("base-a", 6)
    found, faults = made(make, wanted, parent, len(name), tmp_path)
    assert faults == [], found.summary


def test_training_that_went_on_is_told(continued: kinprint.Diff) -> None:
    assert [one.kind for one in continued.operations] == [Operation.CONTINUED]


@pytest.mark.parametrize(
    ("parent", "child", "kinds"),
    [("base-a", "a-rotated", {Operation.ROTATED}), ("base-a", "base-b", set())],
)
def test_models_of_the_demo(parent: str, child: str, kinds: set[Operation]) -> None:
    found = kinprint.diff(short_zoo() / parent, short_zoo() / child)
    assert {one.kind for one in found.operations} == kinds


@pytest.mark.parametrize(
    "edit",
    [pytest.param(lambda one: surgery.masked(one, None), marks=pytest.mark.slow), storage.ternary],
)
def test_zeros_and_coarse_grids_of_strangers_are_no_operation(
    edit: Callable[[Checkpoint], Checkpoint], tmp_path: Path
) -> None:
    for name in ("base-a", "base-b"):
        model = edit(fewer_layers(name))
        (tmp_path / name).mkdir()
        model.save(model, tmp_path / name)
    found = kinprint.diff(tmp_path / "base-a", tmp_path / "base-b")
    assert found.operations == ()


def test_a_sample_says_the_same_of_equal_numbers(tmp_path: Path) -> None:
    make, wanted = MADE["cast to float16"]
    whole, faults = made(make, wanted, fewer_layers("base-a"), 0, tmp_path)
    assert faults == [], whole.summary
    some = kinprint.diff(tmp_path / "parent", tmp_path / "child", sample=True)
    assert [one.kind for one in some.operations] == [one.kind for one in whole.operations]


def test_intervals_of_a_sample_hold_the_whole(continued: kinprint.Diff) -> None:
    held = total = 0
    for seed in range(3):
        some = kinprint.diff(short_zoo() / "base-a", short_zoo() / "a-cpt", sample=True, seed=seed)
        for one, all_of_it in zip(some.tensors, continued.tensors, strict=True):
            known, estimate = all_of_it.relative, one.relative
            assert known is not None and estimate is not None and known.value is not None
            if estimate.low is not None and estimate.high is not None:
                held += estimate.low <= known.value <= estimate.high
                total += 1
    assert total > 40
    assert held >= 0.9 * total


@pytest.mark.parametrize("longer", ["b", pytest.param("a", marks=pytest.mark.slow)])
def test_a_sample_reads_tokens_of_a_table_with_more_rows(tmp_path: Path, longer: str) -> None:
    """They are matched first, and rows of equal tokens are read."""
    parent = one_layer()
    name = "model.embed_tokens.weight"
    more = np.vstack([parent.tensors[name], parent.tensors[name][:512] / 2])
    longer_model = parent.changed({name: more}, vocab_size=len(more))
    paths = {
        "a": _saved(longer_model if longer == "a" else parent, tmp_path / "a"),
        "b": _saved(longer_model if longer == "b" else parent, tmp_path / "b"),
    }
    found = kinprint.diff(paths["a"], paths["b"], sample=True)
    (table,) = [one for one in found.tensors if one.role == "embed"]
    assert table.status is TensorStatus.COMPARED and table.changed is not None
    assert table.changed.value == 0 and table.changed.high
    assert table.numbers == parent.tensors[name].size > table.read > 0
    assert found.totals.compared == found.totals.tensors


def test_a_sample_of_matched_tokens_holds_the_whole(tmp_path: Path) -> None:
    parent = one_layer()
    name = "model.embed_tokens.weight"
    table = parent.tensors[name].astype(np.float32)
    draws = np.random.default_rng(1)
    noise = draws.normal(0, draws.uniform(0, 0.02, (len(table), 1)), table.shape)
    more = np.vstack([table + noise, noise[:512]]).astype(np.float32)
    a = _saved(parent, tmp_path / "a")
    b = _saved(parent.changed({name: more}, vocab_size=len(more)), tmp_path / "b")
    (whole,) = [one.relative for one in kinprint.diff(a, b).tensors if one.role == "embed"]
    assert whole is not None and whole.value is not None
    for seed in range(3):
        sampled = kinprint.diff(a, b, sample=True, seed=seed).tensors
        (some,) = [one.relative for one in sampled if one.role == "embed"]
        assert some is not None and some.low is not None and some.high is not None
        assert some.low <= whole.value <= some.high


def test_runs_of_a_very_long_vector_are_read() -> None:
    drawn = drawn_rows(1_000_000, 1, 0)
    assert len(drawn.rows) == 8 * drawn.run < 1_000_000
    assert drawn_rows(100_000, 1, 0).rows == range(100_000)


def test_a_sample_finds_layers_that_changed_places(tmp_path: Path) -> None:
    parent = fewer_layers("base-a", 4)
    a = _saved(parent, tmp_path / "a")
    b = _saved(surgery.with_layers(parent, (0, 2, 1, 3)), tmp_path / "b")
    found = kinprint.diff(a, b, sample=True)
    assert [one.kind for one in found.operations] == [Operation.REORDERED]
    assert found.totals.equal == found.totals.compared
    c = _saved(surgery.with_layers(parent, (0, 1, 2, 1, 2, 3)), tmp_path / "c")
    deeper = kinprint.diff(a, c, sample=True)
    assert [one.kind for one in deeper.operations] == [Operation.EXPANDED_DEPTH]
    assert deeper.totals.equal == deeper.totals.compared


def _saved(model: Checkpoint, folder: Path) -> Path:
    folder.mkdir()
    model.save(model, folder)
    return folder


def test_layers_in_another_order_are_not_the_same_model(tmp_path: Path) -> None:
    parent = fewer_layers("base-a")
    a = _saved(parent, tmp_path / "a")
    b = _saved(surgery.with_layers(parent, (1, 0)), tmp_path / "b")
    found = kinprint.diff(a, b)
    assert [one.kind for one in found.operations] == [Operation.REORDERED]
    assert "same numbers" not in found.summary


def test_a_small_change_is_no_factor(tmp_path: Path) -> None:
    parent = fewer_layers("base-a")
    wide = storage.cast(parent, np.float32)
    a = _saved(wide, tmp_path / "a")
    b = _saved(with_adapter(wide, np.random.default_rng(1), 8, 0.003), tmp_path / "b")
    assert {one.kind for one in kinprint.diff(a, b).operations} >= {Operation.ADAPTER}
    halved = wide.changed({name: values * 2 for name, values in wide.tensors.items()})
    c = _saved(halved, tmp_path / "c")
    assert [one.kind for one in kinprint.diff(a, c).operations] == [Operation.SCALED]


def test_what_was_coarser_before_is_no_noise(tmp_path: Path) -> None:
    parent = one_layer()
    a = _saved(storage.as_gguf(parent, "Q4_0"), tmp_path / "a")
    found = kinprint.diff(a, _saved(parent, tmp_path / "b"))
    assert {one.kind for one in found.operations} == {Operation.ROUNDED_BEFORE, Operation.CAST}
    assert all(one.bits != 4 for one in found.operations)


def test_a_renumbered_copy_is_not_replaced_in_a_sample(tmp_path: Path) -> None:
    make, _ = MADE["permuted"]
    parent = fewer_layers("base-a")
    a = _saved(parent, tmp_path / "a")
    b = _saved(make(parent, np.random.default_rng(2)), tmp_path / "b")
    found = kinprint.diff(a, b, sample=True)
    assert Operation.REPLACED not in {one.kind for one in found.operations}


def test_numbers_that_are_none_are_counted_and_end_nothing(tmp_path: Path) -> None:
    parent = storage.cast(one_layer(), np.float32)
    name = "model.layers.0.mlp.up_proj.weight"
    huge = np.full_like(parent.tensors[name], 3e38)
    broken = parent.tensors[name].copy()
    broken[0, 0] = np.nan
    for at, (before, after) in enumerate(((huge, -huge), (parent.tensors[name], broken))):
        a = _saved(parent.changed({name: before}), tmp_path / f"a{at}")
        b = _saved(parent.changed({name: after}), tmp_path / f"b{at}")
        found = kinprint.diff(a, b)
        assert sum(one.broken for one in found.tensors) == (huge.size, 1)[at]
        assert Operation.SCALED not in {one.kind for one in found.operations}


def test_the_same_model_has_no_operation() -> None:
    found = kinprint.diff(DEMO / "base-a", DEMO / "base-a")
    assert found.operations == ()
    assert found.totals.equal == found.totals.tensors


def test_a_sample_of_the_same_model_has_no_change() -> None:
    found = kinprint.diff(DEMO / "base-a", DEMO / "base-a", sample=True)
    assert found.operations == ()
    assert found.summary.startswith("All numbers that were read of the 56 tensors")


def test_a_recovered_permutation_is_exact(tmp_path: Path) -> None:
    make, wanted = MADE["permuted"]
    found, faults = made(make, wanted, fewer_layers("base-a"), 5, tmp_path)
    assert faults == [], found.summary
    assert found.totals.equal == found.totals.tensors
    moved = {one.what: one.moved for one in found.map.axes}
    assert moved["channels"] > 100 and moved["units"] > 300


def test_layers_that_were_repeated_have_two_diagonals(tmp_path: Path) -> None:
    make, wanted = MADE["layers repeated"]
    found, faults = made(make, wanted, fewer_layers("base-a", 6), 5, tmp_path)
    assert faults == [], found.summary
    assert [one.source for one in found.map.layers] == [0, 1, 2, 3, 2, 3, 4, 5]
    assert found.totals.equal == found.totals.tensors


@pytest.mark.parametrize("stored_first", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_head_that_only_one_model_stores_meets_the_embedding(
    stored_first: bool, tmp_path: Path
) -> None:
    parent = one_layer()
    table = parent.tensors["model.embed_tokens.weight"]
    stored = parent.changed({"lm_head.weight": table})
    pair = [_saved(parent, tmp_path / "left-out"), _saved(stored, tmp_path / "stored")]
    found = kinprint.diff(*(pair[::-1] if stored_first else pair))
    assert found.operations == ()
    assert found.totals.equal == found.totals.tensors == len(stored.tensors)
    assert "same numbers" in found.summary
    (note,) = found.document.notes
    assert note.startswith("left-out: stores no output head")


def test_a_head_that_became_its_own_is_compared_with_the_embedding(tmp_path: Path) -> None:
    parent, trained = fewer_layers("base-a"), fewer_layers("a-cpt")
    head = {"lm_head.weight": trained.tensors["model.embed_tokens.weight"]}
    child = parent.changed(head, tie_word_embeddings=False)
    found = kinprint.diff(_saved(parent, tmp_path / "a"), _saved(child, tmp_path / "b"))
    (changed,) = (one for one in found.tensors if not one.changed or one.changed.value)
    assert (changed.a, changed.b) == ("model.embed_tokens.weight", "lm_head.weight")
    assert Operation.CHANGED in {one.kind for one in found.operations}
    assert "undecided" not in found.summary


def _edited(parent: Checkpoint, layer: int, edit: Callable[[str], Array]) -> Checkpoint:
    """A model with the matrices of a layer replaced."""
    place = f"model.layers.{layer}."
    names = [one for one, values in parent.tensors.items() if values.ndim > 1]
    return parent.changed({name: edit(name) for name in names if name.startswith(place)})


def test_what_became_of_one_layer_is_said(tmp_path: Path) -> None:
    parent, stranger = fewer_layers("base-a", 3), fewer_layers("base-b")
    a = _saved(parent, tmp_path / "a")
    emptied = _edited(parent, 1, lambda name: np.zeros_like(parent.tensors[name]))
    other = _edited(parent, 1, lambda name: stranger.tensors[name])
    copied = surgery.with_layers(parent, (0, 1, 1))
    for name, model, kind, said in (
        ("emptied", emptied, Operation.LAYERS_ZEROED, "became zero: 1"),
        ("other", other, Operation.CHANGED, "no matrix is alike at equal places: 1"),
        ("copied", copied, Operation.CHANGED, "in the place of others: 1→2"),
    ):
        (found,) = kinprint.diff(a, _saved(model, tmp_path / name)).operations
        assert found.kind is kind and said in found.evidence


def test_a_layer_that_was_zero_is_not_called_replaced(tmp_path: Path) -> None:
    parent = fewer_layers("base-a")
    emptied = _edited(parent, 1, lambda name: np.zeros_like(parent.tensors[name]))
    before, after = _saved(emptied, tmp_path / "a"), _saved(parent, tmp_path / "b")
    for sample in (False, True):
        (found,) = kinprint.diff(before, after, sample=sample).operations
        assert found.kind is Operation.CHANGED
        assert "were zero, and are not any more: 1" in found.evidence
    zeroed = kinprint.diff(after, before)
    assert "layers set to zero" in zeroed.summary and "single numbers" not in zeroed.summary


def test_all_vectors_that_changed_are_counted(tmp_path: Path) -> None:
    """Gains that all became one are no rounding, though some of them could be."""
    parent = one_layer()
    vectors = {name: one for name, one in parent.tensors.items() if one.ndim == 1}
    child = parent.changed({name: np.ones_like(one) for name, one in vectors.items()})
    found = kinprint.diff(_saved(parent, tmp_path / "a"), _saved(child, tmp_path / "b"))
    evidence = " ".join(one.evidence for one in found.operations)
    assert f"{len(vectors)} vectors did" in evidence
    changed = [one for one in found.tensors if one.changed and one.changed.value]
    assert len(changed) == len(vectors)


def test_a_head_is_said_to_be_compared_only_where_it_was(tmp_path: Path) -> None:
    turned = kinprint.diff(short_zoo() / "base-a", short_zoo() / "a-rotated")
    assert turned.totals.compared == 0 and turned.document.notes == []
    parent = fewer_layers("base-a")
    head = {"lm_head.weight": parent.tensors["model.embed_tokens.weight"]}
    untied = _saved(parent.changed(head, tie_word_embeddings=False), tmp_path / "b")
    (note,) = kinprint.diff(short_zoo() / "base-a", untied).document.notes
    assert "was compared with this embedding" in note


def test_one_matrix_of_low_rank_is_no_adapter(tmp_path: Path) -> None:
    parent = fewer_layers("base-a")
    name = "model.layers.1.mlp.down_proj.weight"
    draw = np.random.default_rng(3)
    before = parent.tensors[name]
    update = np.outer(draw.normal(size=len(before)), draw.normal(size=before.shape[1]))
    update *= 0.2 * np.linalg.norm(before) / np.linalg.norm(update)
    b = _saved(parent.changed({name: (before + update).astype(np.float32)}), tmp_path / "b")
    kinds = [one.kind for one in kinprint.diff(_saved(parent, tmp_path / "a"), b).operations]
    assert Operation.CHANGED in kinds and Operation.ADAPTER not in kinds


def test_tokens_that_were_renumbered_with_their_rows(tmp_path: Path) -> None:
    parent = one_layer()
    name = "model.embed_tokens.weight"
    order = np.random.default_rng(4).permutation(len(parent.tensors[name]))
    places = np.argsort(order)
    tokenizer = json.loads(parent.files["tokenizer.json"])
    words = tokenizer["model"]["vocab"]
    tokenizer["model"]["vocab"] = {word: int(places[at]) for word, at in words.items()}
    for one in tokenizer["added_tokens"]:
        one["id"] = int(places[one["id"]])
    files = {"tokenizer.json": json.dumps(tokenizer).encode()}
    child = replace(parent.changed({name: parent.tensors[name][order]}), files=files)
    found = kinprint.diff(_saved(parent, tmp_path / "a"), _saved(child, tmp_path / "b"))
    (operation,) = found.operations
    assert operation.kind is Operation.PERMUTED and operation.evidence.startswith("tokens")
    assert found.totals.equal == found.totals.tensors


def test_experts_that_come_from_elsewhere_are_not_counted(tmp_path: Path) -> None:
    parent = fewer_layers("base-a")
    whole = MADE["upcycled"][0](parent, np.random.default_rng(0))
    draw = np.random.default_rng(5)
    new = {
        name: draw.normal(size=values.shape).astype(np.float32) * values.std()
        for name, values in whole.tensors.items()
        if re.search(r"experts\.[12]\.", name)
    }
    a = _saved(parent, tmp_path / "a")
    b = _saved(whole.changed(new), tmp_path / "b")
    (found,) = (one for one in kinprint.diff(a, b).operations if one.kind is Operation.UPCYCLED)
    experts = {name.split("experts.")[1][0] for name in whole.tensors if "experts." in name}
    assert found.evidence.startswith(f"{2 * (len(experts) - 2)} of {2 * len(experts)} experts")


def test_an_adapter_beside_what_was_trained_whole(tmp_path: Path) -> None:
    parent, trained = fewer_layers("base-a"), fewer_layers("a-cpt")
    adapted = with_adapter(parent, np.random.default_rng(6), 8)
    new = {
        name: trained.tensors[name]
        for name in parent.tensors
        if not any(part in name for part in ("q_proj", "v_proj"))
    }
    a = _saved(parent, tmp_path / "a")
    both = kinprint.diff(a, _saved(adapted.changed(new), tmp_path / "b"))
    adapter, whole, vectors = both.operations
    assert (adapter.kind, adapter.rank) == (Operation.ADAPTER, 8)
    assert whole.kind is Operation.CONTINUED and vectors.kind is Operation.CHANGED
    count = len([name for name in new if parent.tensors[name].ndim > 1])
    assert f" {count} changed" in whole.evidence and "of rank 8" in both.summary
    embedding = {name: value for name, value in new.items() if "embed" in name}
    some = kinprint.diff(a, _saved(adapted.changed(embedding), tmp_path / "c"))
    assert [one.kind for one in some.operations] == [Operation.ADAPTER, Operation.CONTINUED]


@pytest.mark.parametrize("permute", [pytest.param(False, marks=pytest.mark.slow), True])
def test_units_that_were_rescaled_are_not_trained(permute: bool, tmp_path: Path) -> None:
    parent = fewer_layers("base-a")
    child = relabelling.shuffle_units(parent, np.random.default_rng(7), permute=permute, flip=False)
    a = _saved(parent, tmp_path / "a")
    found = kinprint.diff(a, _saved(child, tmp_path / "b"))
    kinds = [one.kind for one in found.operations if one.kind is not Operation.FROZEN]
    assert kinds == [Operation.PERMUTED] * permute + [Operation.RESCALED]
    assert found.operations[-1].evidence.startswith("in 2 feed-forwards")
    up = "model.layers.1.mlp.up_proj.weight"
    one_sided = parent.changed({up: child.tensors[up]})
    alone = kinprint.diff(a, _saved(one_sided, tmp_path / "c"))
    assert Operation.RESCALED not in {one.kind for one in alone.operations}


def _kept(found: kinprint.Diff) -> set[str]:
    """Components of which it is said that they are as they were."""
    frozen = (one for one in found.operations if one.kind is Operation.FROZEN)
    return {str(part) for one in frozen for part in one.components}


def _with_biases(model: Checkpoint, size: float) -> Checkpoint:
    """A model with biases of queries and keys, of which some part is drawn anew."""
    biases = {}
    for name, values in model.tensors.items():
        if name.endswith(("q_proj.weight", "k_proj.weight")):
            bias = np.random.default_rng(1).normal(size=len(values))
            bias += size * np.random.default_rng(2).normal(size=len(values))
            biases[name.replace("weight", "bias")] = bias.astype(np.float32)
    return model.changed(biases, model_type="qwen2", architectures=["Qwen2ForCausalLM"])


def test_a_component_whose_vectors_changed_was_not_kept(tmp_path: Path) -> None:
    parent = one_layer()
    a, b = (_saved(_with_biases(parent, size), tmp_path / str(size)) for size in (0.0, 0.1))
    assert _kept(kinprint.diff(a, b)) == {"embedding", "feed-forward"}


def test_a_component_with_tensors_of_its_own_was_not_kept(tmp_path: Path) -> None:
    whole = surgery.upcycled(fewer_layers("base-a"), np.random.default_rng(0), 4, 0.0, False)
    words = {"w1": "gate_proj", "w2": "down_proj", "w3": "up_proj"}
    taken = {}
    for name in whole.tensors:
        place = re.fullmatch(r"(.*layers\.\d+)\..*experts\.3\.(w\d)\.weight", name)
        if place is not None:
            source = f"{place[1]}.mlp.{words[place[2]]}.weight"
            taken[name] = fewer_layers("base-b").tensors[source]
    assert taken
    b = _saved(whole.changed(taken), tmp_path / "b")
    found = kinprint.diff(short_zoo() / "base-b", b)
    assert Operation.UPCYCLED in {one.kind for one in found.operations}
    assert "expert" not in _kept(found)


def _drawn(parent: Checkpoint, layers: int) -> Checkpoint:
    """A model of random numbers, whose first layers do not depend on how many follow."""
    draw = np.random.default_rng(0)
    table = "model.embed_tokens.weight"
    tensors = {table: draw.normal(0, 0.02, parent.tensors[table].shape).astype(np.float32)}
    first = [name for name in parent.tensors if ".layers.0." in name]
    for layer in range(layers):
        for name in first:
            shape = parent.tensors[name].shape
            values = draw.normal(float(len(shape) == 1), 0.02, shape)
            tensors[name.replace(".0.", f".{layer}.")] = values.astype(np.float32)
    tensors["model.norm.weight"] = np.ones(tensors[table].shape[1], np.float32)
    return replace(
        parent, tensors=tensors, config={**(parent.config or {}), "num_hidden_layers": layers}
    )


def test_units_of_a_fresh_layer_are_not_matched(tmp_path: Path) -> None:
    parent = fewer_layers("base-a")
    a, b = (_saved(_drawn(parent, count), tmp_path / str(count)) for count in (2, 3))
    found = kinprint.diff(a, b)
    kinds = {one.kind for one in found.operations}
    assert Operation.EXPANDED_DEPTH in kinds and Operation.PERMUTED not in kinds
    assert "units" not in {one.what for one in found.map.axes}


def _with_numbers(model: Checkpoint, numbers: Callable[[int], int], layers: int) -> Checkpoint:
    """A model whose layers have other numbers in their names."""

    def renamed(name: str) -> str:
        return re.sub(r"layers\.(\d+)\.", lambda it: f"layers.{numbers(int(it[1]))}.", name)

    tensors = {renamed(name): values for name, values in model.tensors.items()}
    return replace(
        model, tensors=tensors, config={**(model.config or {}), "num_hidden_layers": layers}
    )


def test_layers_with_gaps_in_their_numbers_are_not_reordered(tmp_path: Path) -> None:
    parent = fewer_layers("base-a")
    a = _saved(_with_numbers(parent, lambda at: 10 * at + 7, 58), tmp_path / "a")
    b = _saved(_with_numbers(parent, lambda at: at + 1, 6), tmp_path / "b")
    kinds = {one.kind for one in kinprint.diff(a, b).operations}
    assert Operation.REORDERED not in kinds


def test_what_was_coarser_and_was_trained_is_not_said_to_be_rounded_alone(tmp_path: Path) -> None:
    parent = one_layer()
    draw = np.random.default_rng(8)
    a = _saved(storage.as_gguf(parent, "Q4_0"), tmp_path / "a")
    b = _saved(with_adapter(parent, draw, 8, 0.1), tmp_path / "b")
    first = kinprint.diff(a, b).operations[0]
    assert first.kind is Operation.CHANGED
    assert "besides is not told" in first.evidence and "no more than" not in first.evidence


@pytest.mark.parametrize(
    ("value", "kind", "said"),
    [
        pytest.param(
            np.nan,
            Operation.NOT_FINITE,
            "numbers that are not finite",
            marks=pytest.mark.slow,
        ),
        (np.inf, Operation.NOT_FINITE, "numbers that are not finite"),
        (-0.0, Operation.CHANGED, "a change of unknown kind"),
    ],
)
def test_a_change_that_has_no_size_is_said(
    value: float, kind: Operation, said: str, tmp_path: Path
) -> None:
    parent = storage.cast(one_layer(), np.float32)
    name = "model.layers.0.mlp.up_proj.weight"
    before, after = parent.tensors[name].copy(), parent.tensors[name].copy()
    before[1, 2] = 0.0
    after[1, 2] = value
    a = _saved(parent.changed({name: before}), tmp_path / "a")
    found = kinprint.diff(a, _saved(parent.changed({name: after}), tmp_path / "b"))
    assert {one.kind for one in found.operations} == {kind, Operation.FROZEN}
    assert said in found.summary


@pytest.mark.parametrize("sample", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "lost",
    [
        pytest.param("layers.1.self_attn.q_proj", marks=pytest.mark.slow),
        "layers.1.",
        "layers.1.input_layernorm",
    ],
)
def test_tensors_without_a_finite_number_are_said_beside_a_cast(
    lost: str, sample: bool, tmp_path: Path
) -> None:
    parent = fewer_layers("base-a")
    child = storage.cast(parent, np.float32)
    broken = {
        name: np.full_like(values, np.nan) for name, values in child.tensors.items() if lost in name
    }
    a = _saved(parent, tmp_path / "a")
    b = _saved(child.changed(broken), tmp_path / "b")
    found = kinprint.diff(a, b, sample=sample)
    said = [one for one in found.operations if one.kind is not Operation.FROZEN]
    assert [one.kind for one in said] == [Operation.NOT_FINITE, Operation.CAST]
    count = sum(one.broken for one in found.tensors)
    assert f"{count:,} numbers are not finite in one of the two" in said[0].evidence
    assert len(broken) == sum(one.broken > 0 for one in found.tensors)
    assert "numbers that are not finite" in found.summary


def test_more_or_fewer_rows_of_keys_are_said(tmp_path: Path) -> None:
    parent = one_layer()
    names = [name for name in parent.tensors if "k_proj" in name or "v_proj" in name]
    twice = {name: np.concatenate([parent.tensors[name]] * 2) for name in names}
    heads = 2 * parent.geometry["num_key_value_heads"]
    a = _saved(parent, tmp_path / "a")
    b = _saved(parent.changed(twice, num_key_value_heads=heads), tmp_path / "b")
    for pair, rows in (
        ((a, b), "64 rows of keys became 128"),
        ((b, a), "128 rows of keys became 64"),
    ):
        assert rows in {one.evidence for one in kinprint.diff(*pair).operations}


def test_gains_of_a_stranger_are_not_alike(tmp_path: Path) -> None:
    parent, stranger = one_layer(), fewer_layers("base-b")
    gains = {name: stranger.tensors[name] for name in parent.tensors if "norm" in name}
    a = _saved(parent, tmp_path / "a")
    for sample in (False, True):
        b = _saved(parent.changed(gains), tmp_path / f"b{sample}")
        last = kinprint.diff(a, b, sample=sample).operations[-1]
        assert last.kind is Operation.CHANGED
        assert f"not alike at equal places, though all matrices are: {len(gains)}" in last.evidence


@pytest.mark.parametrize("shorter", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_table_with_more_rows_for_the_same_tokens_is_not_renumbered(
    shorter: bool, tmp_path: Path
) -> None:
    parent = one_layer()
    name = "model.embed_tokens.weight"
    padded = np.pad(parent.tensors[name], ((0, 64), (0, 0)))
    child = parent.changed({name: padded}, vocab_size=len(padded))
    pair = [_saved(parent, tmp_path / "a"), _saved(child, tmp_path / "b")]
    (found,) = kinprint.diff(*(pair[::-1] if shorter else pair)).operations
    assert found.kind is Operation.CHANGED
    sizes = ("1,088", "1,024") if shorter else ("1,024", "1,088")
    assert found.evidence.startswith("{} rows of the embedding became {};".format(*sizes))


def _on_a_grid(model: Checkpoint, levels: int = 7) -> Checkpoint:
    """Layer matrices rounded to so many levels of each sign, a step for 32 numbers, in float32."""
    new = {}
    for name, values in storage.cast(model, np.float32).tensors.items():
        if values.ndim > 1 and ".layers." in name:
            blocks = values.reshape(-1, 32)
            steps = np.abs(blocks).max(axis=1, keepdims=True) / levels
            new[name] = (np.round(blocks / steps) * steps).reshape(values.shape)
    return storage.cast(model, np.float32).changed(new)


def test_who_is_coarser_is_told_by_numbers_and_not_by_their_type(tmp_path: Path) -> None:
    parent = one_layer()
    fine = _saved(parent, tmp_path / "fine")
    coarse = _saved(_on_a_grid(parent), tmp_path / "coarse")
    there, back = kinprint.diff(fine, coarse), kinprint.diff(coarse, fine)
    assert {one.kind for one in there.operations} == {Operation.FROZEN, Operation.QUANTIZED}
    assert there.operations[-1].bits == 4
    assert Operation.QUANTIZED not in {one.kind for one in back.operations}
    (coarser,) = (one for one in back.operations if one.kind is Operation.ROUNDED_BEFORE)
    assert coarser.evidence.endswith("more coarsely, rounded to 4 bits")


_UNITS = ("mlp.gate_proj", "mlp.up_proj", "mlp.down_proj")


def _with_units(parent: Checkpoint, count: int, source: Checkpoint | None = None) -> Checkpoint:
    """A model whose feed-forwards have so many units: drawn anew, or the first of another model."""
    draw = np.random.default_rng(3)
    new = {}
    for name, values in parent.tensors.items():
        if not name.removesuffix(".weight").endswith(_UNITS):
            continue
        down = "down_proj" in name
        if source is not None:
            new[name] = source.tensors[name][(slice(None), slice(count)) if down else slice(count)]
        else:
            shape = (len(values), count) if down else (count, values.shape[1])
            new[name] = draw.normal(0, 0.03, shape).astype(np.float32)
    return parent.changed(new, intermediate_size=count)


@pytest.mark.parametrize("count", [256, pytest.param(512, marks=pytest.mark.slow)])
def test_layers_keep_their_numbers_where_feed_forwards_were_drawn_anew(
    count: int, tmp_path: Path
) -> None:
    parent = fewer_layers("base-a")
    a = _saved(parent, tmp_path / "a")
    found = kinprint.diff(a, _saved(_with_units(parent, count), tmp_path / "b"))
    assert all(one.layer == one.source for one in found.map.layers)
    assert found.totals.equal == found.totals.compared == 14
    changed, frozen = found.operations
    assert changed.kind is Operation.CHANGED and "none was found" in changed.evidence
    assert (frozen.kind, _kept(found)) == (Operation.FROZEN, {"embedding", "attention"})


@pytest.mark.parametrize(("count", "permuted"), [(256, False), (352, True)])
def test_channels_are_renamed_only_where_the_embedding_is(
    count: int, permuted: bool, tmp_path: Path
) -> None:
    parent = fewer_layers("base-a")
    drawn = _with_units(parent, count)
    attention = {
        name: np.random.default_rng(at).normal(0, 0.03, values.shape).astype(np.float32)
        for at, (name, values) in enumerate(parent.tensors.items())
        if "layers.0.self_attn" in name
    }
    child = drawn.changed(attention)
    if permuted:
        order = np.random.default_rng(5).permutation(parent.width)
        child = relabelling.permute_channels(child, order, np.ones(parent.width))
    a = _saved(parent, tmp_path / "a")
    found = kinprint.diff(a, _saved(child, tmp_path / "b"))
    assert all(one.layer == one.source for one in found.map.layers)
    assert {one.kind for one in found.operations} <= {Operation.CHANGED, Operation.FROZEN}
    assert [one.what for one in found.map.axes] == ["channels"] * permuted


@pytest.mark.parametrize("sample", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_feed_forwards_of_a_stranger_are_not_pruned(sample: bool, tmp_path: Path) -> None:
    child = _with_units(fewer_layers("base-a"), 256, fewer_layers("base-b"))
    a = _saved(fewer_layers("base-a"), tmp_path / "a")
    found = kinprint.diff(a, _saved(child, tmp_path / "b"), sample=sample)
    kinds = {one.kind for one in found.operations}
    assert Operation.CHANGED in kinds and not kinds & {Operation.PRUNED_WIDTH, Operation.PERMUTED}


@pytest.mark.parametrize("sample", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_heads_that_were_drawn_anew_are_neither_pruned_nor_renumbered(
    sample: bool, tmp_path: Path
) -> None:
    parent = fewer_layers("base-a")
    fewer = surgery.without_heads(parent, (0,))
    draw = np.random.default_rng(3)
    new = {
        name: draw.normal(0, 0.03, values.shape).astype(np.float32)
        for name, values in fewer.tensors.items()
        if "self_attn" in name
    }
    a = _saved(parent, tmp_path / "a")
    found = kinprint.diff(a, _saved(fewer.changed(new), tmp_path / "b"), sample=sample)
    kinds = {one.kind for one in found.operations}
    assert not kinds & {Operation.PRUNED_HEADS, Operation.PERMUTED}
    assert {Operation.CHANGED, Operation.REPLACED} <= kinds
    assert not found.map.axes


@pytest.mark.parametrize("group", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_heads_that_are_left_have_partners(group: int, tmp_path: Path) -> None:
    parent = fewer_layers("base-a")
    a = _saved(parent, tmp_path / "a")
    found = kinprint.diff(a, _saved(surgery.without_heads(parent, (group,)), tmp_path / "b"))
    assert [one.kind for one in found.operations] == [Operation.PRUNED_HEADS]
    assert found.totals.equal == found.totals.tensors


@pytest.mark.parametrize("sample", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("size", "layers"),
    [
        (None, (0, 1)),
        (24, (0,)),
        pytest.param(None, (0,), marks=pytest.mark.slow),
        pytest.param(24, (0, 1), marks=pytest.mark.slow),
    ],
)
def test_rows_that_are_no_whole_heads_are_not_called_heads(
    size: int | None, layers: tuple[int, ...], sample: bool, tmp_path: Path
) -> None:
    """Fewer rows that make no head, or as many of each head fewer."""
    parent = fewer_layers("base-a")
    kept = np.arange(100) if size is None else np.arange(128).reshape(4, 32)[:, :size].ravel()
    new: dict[str, Array] = {}
    for at in layers:
        q, o = (f"model.layers.{at}.self_attn.{name}_proj.weight" for name in "qo")
        new |= {q: parent.tensors[q][kept], o: parent.tensors[o][:, kept]}
    settings = {} if size is None else {"head_dim": size}
    child = _saved(parent.changed(new, **settings), tmp_path / "b")
    found = kinprint.diff(_saved(parent, tmp_path / "a"), child, sample=sample)
    (rows,) = (one for one in found.operations if "rows of queries" in one.evidence)
    assert rows.kind is Operation.CHANGED


def test_key_value_heads_that_were_pooled_are_not_renumbered(tmp_path: Path) -> None:
    parent = fewer_layers("base-a")
    new = {
        name: values.reshape(2, -1, values.shape[1]).mean(axis=0)
        for name, values in parent.tensors.items()
        if "k_proj" in name or "v_proj" in name
    }
    a = _saved(parent, tmp_path / "a")
    b = _saved(parent.changed(new, num_key_value_heads=1), tmp_path / "b")
    found = kinprint.diff(a, b)
    assert [one.kind for one in found.operations] == [Operation.CHANGED, Operation.FROZEN]
    assert "64 rows of keys became 32" in found.operations[0].evidence
    assert not found.map.axes


def test_layers_that_were_pruned_beside_a_trained_embedding(tmp_path: Path) -> None:
    parent, trained = fewer_layers("base-a"), fewer_layers("a-cpt")
    pruned = {}
    for name, values in trained.tensors.items():
        if values.ndim > 1 and ".layers." in name:
            sizes = np.abs(values)
            pruned[name] = np.where(sizes < np.median(sizes), 0, values).astype(np.float32)
    a = _saved(parent, tmp_path / "a")
    found = kinprint.diff(a, _saved(trained.changed(pruned), tmp_path / "b"))
    layers, table = found.operations
    assert {layers.kind, table.kind} == {Operation.CHANGED}
    assert "50 % of the numbers became zero and others changed in 14 of 15" in layers.evidence
    assert table.evidence.startswith("tables outside the layers changed too: 1,")


def _pruned(parent: Checkpoint, noise: float) -> dict[str, Array]:
    """Layer matrices with half of their numbers zero, the others with some noise."""
    draw, new = np.random.default_rng(3), {}
    for name, values in parent.tensors.items():
        if values.ndim > 1 and ".layers." in name:
            moved = values + noise * float(np.std(values)) * draw.normal(size=values.shape)
            sizes = np.abs(np.asarray(values, np.float32))
            new[name] = np.where(sizes < np.median(sizes), 0, moved).astype(np.float32)
    return new


@pytest.mark.parametrize("noise", [pytest.param(0.0, marks=pytest.mark.slow), 0.02])
@pytest.mark.parametrize("sample", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_numbers_that_were_zero_before_are_told(sample: bool, noise: float, tmp_path: Path) -> None:
    parent, trained = fewer_layers("base-a"), fewer_layers("a-cpt")
    table = {"model.embed_tokens.weight": trained.tensors["model.embed_tokens.weight"]}
    a = _saved(parent.changed(_pruned(parent, noise)), tmp_path / "a")
    b = _saved(parent.changed(table), tmp_path / "b")
    found = kinprint.diff(a, b, sample=sample).operations
    assert {one.kind for one in found} == {Operation.CHANGED}
    share = "49 %" if sample else "50 %"
    told = f"{share} of the numbers were zero and are not any more in 14 of 15"
    assert told in found[0].evidence
    assert found[1].evidence.startswith("tables outside the layers changed too: 1,")


def test_an_adapter_fills_what_was_pruned(tmp_path: Path) -> None:
    parent = one_layer()
    pruned = parent.changed(_pruned(parent, 0.0))
    a = _saved(pruned, tmp_path / "a")
    b = _saved(with_adapter(pruned, np.random.default_rng(1), 8), tmp_path / "b")
    kinds = {one.kind for one in kinprint.diff(a, b).operations}
    assert kinds == {Operation.FROZEN, Operation.ADAPTER}


def test_noise_may_be_rounding_to_a_fine_grid(tmp_path: Path) -> None:
    parent = one_layer()
    new = {}
    for name, values in parent.tensors.items():
        if values.ndim > 1 and ".layers." in name:
            steps = np.abs(values).max(axis=1, keepdims=True) / 127
            new[name] = (np.round(values / steps) * steps).astype(np.float32)
    b = _saved(parent.changed(new), tmp_path / "b")
    last = kinprint.diff(_saved(parent, tmp_path / "a"), b).operations[-1]
    assert last.kind is Operation.NOISE
    assert last.evidence.endswith("rounding to a fine grid would look the same")


def _normal_quantiles(model: Checkpoint) -> Checkpoint:
    """Layer matrices on the sixteen levels of NF4, a scale for 32 numbers, as floats."""
    table = np.array(_NORMAL, np.float32)
    new = {}
    for name, values in model.tensors.items():
        if values.ndim > 1 and ".layers." in name:
            blocks = values.reshape(-1, 32)
            scales = np.abs(blocks).max(axis=1, keepdims=True)
            nearest = np.abs((blocks / scales)[..., None] - table).argmin(axis=-1)
            new[name] = (table[nearest] * scales).reshape(values.shape)
    return model.changed(new)


@pytest.mark.parametrize(
    "rounded", [pytest.param(_on_a_grid, marks=pytest.mark.slow), _normal_quantiles]
)
def test_rounding_after_training_is_told_beside_it(
    rounded: Callable[[Checkpoint], Checkpoint], tmp_path: Path
) -> None:
    a = _saved(fewer_layers("base-a"), tmp_path / "a")
    found = kinprint.diff(a, _saved(rounded(fewer_layers("a-cpt")), tmp_path / "b"))
    trained, grid = (one for one in found.operations if one.kind is not Operation.CAST)
    assert trained.kind is Operation.CONTINUED
    assert (grid.kind, grid.bits) == (Operation.QUANTIZED, 4)
    assert re.search(r"; (\d+) of \1 matrices on it changed by more than that", grid.evidence)


def test_training_that_rounding_hides_is_not_told(tmp_path: Path) -> None:
    parent, trained = fewer_layers("base-a"), fewer_layers("a-cpt")
    new = {
        name: (values + 0.06 * (trained.tensors[name] - values)).astype(np.float32)
        for name, values in parent.tensors.items()
        if ".layers." in name
    }
    a = _saved(parent, tmp_path / "a")
    found = kinprint.diff(a, _saved(_normal_quantiles(parent.changed(new)), tmp_path / "b"))
    kinds = {one.kind for one in found.operations}
    assert not kinds & {Operation.FINETUNE, Operation.CONTINUED, Operation.TRAINED}
    assert found.operations[-1].evidence.endswith("whether they were changed before is not told")


def _average(one: Checkpoint, other: Checkpoint, weight: float) -> Checkpoint:
    return one.changed(
        {
            name: (weight * values + (1 - weight) * other.tensors[name]).astype(np.float32)
            for name, values in one.tensors.items()
        }
    )


@pytest.mark.parametrize("weight", [0.5, pytest.param(0.7, marks=pytest.mark.slow)])
def test_an_average_with_a_stranger_is_no_training(weight: float, tmp_path: Path) -> None:
    parent, stranger = (fewer_layers(name, 3) for name in ("base-a", "base-b"))
    a = _saved(parent, tmp_path / "a")
    b = _saved(_average(parent, stranger, weight), tmp_path / "b")
    (found,) = (one for one in kinprint.diff(a, b).operations if one.kind is not Operation.FROZEN)
    assert found.kind is Operation.CHANGED
    assert f"hold one share of the first model, {100 * weight:.0f} %" in found.evidence
    trained = {Operation.FINETUNE, Operation.CONTINUED, Operation.TRAINED}
    assert not trained & {one.kind for one in kinprint.diff(b, a).operations}


_FILLED: dict[str, Callable[[Array], Array]] = {
    "zero": lambda table: np.zeros_like(table[:512]),
    "constant": lambda table: np.full_like(table[:512], 0.01),
    "mean": lambda table: np.tile(table.mean(axis=0), (512, 1)),
}


@pytest.mark.parametrize("sample", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", ["zero", pytest.param("constant", marks=pytest.mark.slow), "mean"])
def test_a_padded_vocabulary_is_not_extended(kind: str, sample: bool, tmp_path: Path) -> None:
    parent = one_layer()
    name = "model.embed_tokens.weight"
    table = parent.tensors[name]
    longer = np.concatenate([table, _FILLED[kind](table)])
    child = parent.changed({name: longer}, vocab_size=len(longer))
    pair = _saved(parent, tmp_path / "a"), _saved(child, tmp_path / "b")
    (found,) = kinprint.diff(*pair, sample=sample).operations
    assert found.kind is Operation.CHANGED
    assert found.evidence.startswith("1,024 rows of the embedding became 1,536; 1,024 tokens are")
    (back,) = kinprint.diff(*pair[::-1], sample=sample).operations
    assert back.kind is Operation.CHANGED


def test_rows_with_numbers_of_their_own_extend_a_vocabulary(tmp_path: Path) -> None:
    parent = one_layer()
    name = "model.embed_tokens.weight"
    table = parent.tensors[name]
    drawn = np.random.default_rng(0).normal(0, table.std(), (512, table.shape[1]))
    longer = np.concatenate([table, drawn]).astype(np.float32)
    child = parent.changed({name: longer}, vocab_size=len(longer))
    found = kinprint.diff(_saved(parent, tmp_path / "a"), _saved(child, tmp_path / "b"))
    assert [one.kind for one in found.operations] == [Operation.EXPANDED_VOCABULARY]


def test_a_basis_is_held_against_all_feed_forwards_and_not_a_few(tmp_path: Path) -> None:
    pair = CASES["framed-with-a-narrow-feed-forward"].pair(Zoo(DEMO), 0)  # one of four is alike
    folders = [one.write(tmp_path / name) for one, name in zip(pair, "ab", strict=True)]
    found = kinprint.diff(*folders)
    assert Operation.PERMUTED not in {one.kind for one in found.operations}
    assert len([one for one in found.tensors if one.cosine is not None and one.cosine > 0.5]) >= 3
