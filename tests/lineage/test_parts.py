"""Crafted pairs with a known truth: what is said about each part, and of which kind that is."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import scipy.linalg
from msgspec.structs import replace
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from benchmarks.redteam import surgery
from kinprint.lineage.compare import compare_models
from kinprint.lineage.pair import Pair
from kinprint.lineage.parts.scores import _linked_heads, linked_rows, part_scores
from kinprint.lineage.results import Settings
from kinprint.reader.fetch import Fetcher
from kinprint.records import Component, PartState, Reason, Relation, Verdict
from tests.fewer_layers import LAYERS, fewer_layers, short_zoo
from tests.lineage.made import made as made_sample
from tests.lineage.stored_models import LLAMA, llama, stored

Tensors = dict[str, NDArray[Any]]
LAYER = 1


@pytest.fixture(scope="module")
def parent() -> Tensors:
    return load_file(short_zoo() / "base-a" / "model.safetensors")


@pytest.fixture(scope="module")
def stranger() -> Tensors:
    shards = sorted((short_zoo() / "base-b").glob("model-*.safetensors"))
    return {name: tensor for shard in shards for name, tensor in load_file(shard).items()}


@pytest.fixture(scope="module")
def tune() -> Verdict:
    """What is said of a model and a tune of it, all of whose numbers moved."""
    return verdict(str(short_zoo() / "base-a"), str(short_zoo() / "a-cpt"))


def made(folder: Path, tensors: Tensors) -> str:
    """A model with the configuration and the tokenizer of the zoo's and other tensors."""
    folder.mkdir(exist_ok=True)
    for name in ("config.json", "tokenizer.json"):
        shutil.copy(short_zoo() / "base-a" / name, folder / name)
    save_file(tensors, folder / "model.safetensors")
    return str(folder)


def verdict(a: str, b: str, **settings: Any) -> Verdict:
    with Fetcher() as fetcher:
        return compare_models(a, b, fetcher, Settings(**settings), details=False).verdict


def noisy(tensor: NDArray[Any], share: float, seed: int) -> NDArray[Any]:
    """A tensor with noise of a share of its spread."""
    wide = tensor.astype(np.float32)
    noise = np.random.default_rng(seed).standard_normal(wide.shape) * wide.std() * share
    return np.asarray((wide + noise).astype(tensor.dtype))


def states(found: Verdict) -> dict[tuple[Component, int | None], PartState]:
    return {(one.part.component, one.part.layer): one.state for one in found.parts}


def in_layer(layer: int) -> Callable[[str], bool]:
    return lambda name: f".layers.{layer}." in name and "norm" not in name


def attention(name: str) -> bool:
    return ".self_attn." in name


@pytest.mark.parametrize("share", [0.0, 0.1])
def test_a_layer_in_a_stranger_was_taken_over(
    tmp_path: Path, parent: Tensors, stranger: Tensors, share: float
) -> None:
    """It is no common initialisation, and the rest is not called without a trace for nothing."""
    chosen = in_layer(LAYER)
    thief = {
        name: (noisy(parent[name], share, 1) if share else parent[name]) if chosen(name) else own
        for name, own in stranger.items()
    }
    found = verdict(str(short_zoo() / "base-a"), made(tmp_path / "thief", thief))
    assert found.relation is Relation.PARTIAL
    known = states(found)
    expected = PartState.EQUAL if share == 0 else PartState.SHARED
    assert known[Component.FEED_FORWARD, LAYER] is known[Component.ATTENTION, LAYER] is expected
    linked = {part for part, state in known.items() if state.linked}
    assert linked == {(Component.FEED_FORWARD, LAYER), (Component.ATTENTION, LAYER)}


def test_layers_that_are_there_twice_bring_their_norms(tmp_path: Path, parent: Tensors) -> None:
    """Trained on after stacking, so that no row is equal; seen alike from either model."""
    order = (0, 1, 0, 1)
    deeper = {name: own for name, own in parent.items() if ".layers." not in name}
    for to, at in enumerate(order):
        start = f"model.layers.{at}."
        deeper |= {
            name.replace(start, f"model.layers.{to}."): own
            for name, own in parent.items()
            if name.startswith(start)
        }
    deeper = {name: noisy(own, 0.1, to) for to, (name, own) in enumerate(deeper.items())}
    other = made(tmp_path / "deeper", deeper)
    config = json.loads((tmp_path / "deeper/config.json").read_text())
    config["num_hidden_layers"] = len(order)
    (tmp_path / "deeper/config.json").write_text(json.dumps(config))
    there = verdict(str(short_zoo() / "base-a"), other).parts
    back = verdict(other, str(short_zoo() / "base-a")).parts
    assert all(one.state.linked for one in (*there, *back))
    met = {(one.part, one.partner) for one in there}
    assert met == {(one.partner, one.part) for one in back}
    norms = {(one.layer, to.layer) for one, to in met if to and one.component is Component.NORMS}
    assert norms == {(None, None), *((at, to) for to, at in enumerate(order))}


def test_attention_in_a_stranger_was_taken_over(
    tmp_path: Path, parent: Tensors, stranger: Tensors
) -> None:
    thief = {name: parent[name] if attention(name) else own for name, own in stranger.items()}
    found = verdict(made(tmp_path / "thief", thief), str(short_zoo() / "base-a"))
    assert found.relation is Relation.PARTIAL and found.linked == (Component.ATTENTION,)
    assert all(one.learnt for one in found.parts if one.state.linked)


@pytest.mark.parametrize(
    ("kind", "bits"),
    [
        pytest.param(np.float16, 16, marks=pytest.mark.slow),
        (ml_dtypes.float8_e4m3fn, 8),
        (np.float32, None),
    ],
)
def test_a_cast_holds_the_same_weights(
    tmp_path: Path, parent: Tensors, kind: Any, bits: int | None
) -> None:
    cast = {  # gains stay as they are, as in all files of eight bits
        name: tensor.astype(np.float32).astype(kind if tensor.ndim > 1 else np.float32)
        for name, tensor in parent.items()
    }
    other = made(tmp_path / "cast", {n: t.astype(np.float32) for n, t in cast.items()})
    found = verdict(str(short_zoo() / "base-a"), other)
    if bits is None:
        assert found.relation in (Relation.IDENTICAL, Relation.SAME_WEIGHTS)
    else:
        assert found.relation is Relation.SAME_WEIGHTS
        assert bits in {one.bits for one in found.parts}


def test_a_fine_tune_of_the_same_numbers_is_no_cast(tmp_path: Path, parent: Tensors) -> None:
    tuned = {name: noisy(tensor, 0.01, 2) for name, tensor in parent.items()}
    found = verdict(str(short_zoo() / "base-a"), made(tmp_path / "tuned", tuned))
    assert found.relation is Relation.DERIVED


def test_an_average_with_a_stranger_holds_weights_of_both(tmp_path: Path) -> None:
    names = "base-a", "base-b"
    mixed = surgery.mixed([(fewer_layers(name, 3), 0.5) for name in names])
    other = mixed.write(tmp_path / "mixed")
    for name in names:
        assert verdict(str(short_zoo(3) / name), str(other)).relation is Relation.DERIVED


def test_gains_written_in_are_norms_taken_over(
    tmp_path: Path, parent: Tensors, stranger: Tensors
) -> None:
    framed = {name: parent[name] if "norm" in name else own for name, own in stranger.items()}
    other = made(tmp_path / "framed", framed)
    for level in ("quick", "standard"):
        found = verdict(str(short_zoo() / "base-a"), other, level=level)
        assert found.relation is Relation.PARTIAL and found.linked == (Component.NORMS,)


def test_gains_overwritten_with_a_strangers_do_not_hide_a_descendant(
    tmp_path: Path, stranger: Tensors
) -> None:
    """The function is kept: what a gain loses, the columns that read it win."""
    child = load_file(short_zoo() / "a-cpt" / "model.safetensors")
    hidden = dict(child)
    readers = {
        "input_layernorm": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
        "post_attention_layernorm": ("mlp.gate_proj", "mlp.up_proj"),
    }
    for layer in range(LAYERS):
        root = f"model.layers.{layer}"
        for norm, matrices in readers.items():
            name = f"{root}.{norm}.weight"
            before, after = (one[name].astype(np.float32) for one in (child, stranger))
            hidden[name] = stranger[name]
            for matrix in matrices:
                key = f"{root}.{matrix}.weight"
                scaled = child[key].astype(np.float32) * (before / after)
                hidden[key] = scaled.astype(child[key].dtype)
    other = made(tmp_path / "hidden", hidden)
    for budget in (None, 2_500_000):
        found = verdict(str(short_zoo() / "base-a"), other, budget=budget)
        assert found.relation in (Relation.DERIVED, Relation.DEPENDENT)
        assert found.relation is Relation.DERIVED or budget is not None


def test_a_numbering_after_another_model_is_no_common_initialisation(
    tmp_path: Path, parent: Tensors, stranger: Tensors
) -> None:
    """Units of a stranger, numbered and flipped so as to be most like another model's."""
    from scipy.optimize import linear_sum_assignment

    framed = dict(stranger)
    for layer in range(LAYERS):
        keys = {
            role: f"model.layers.{layer}.mlp.{role}_proj.weight" for role in ("gate", "up", "down")
        }
        ours, theirs = (
            {
                role: _unit_rows(model[key].astype(np.float32).T if role == "down" else model[key])
                for role, key in keys.items()
            }
            for model in (parent, stranger)
        )
        gate = ours["gate"] @ theirs["gate"].T
        both = ours["up"] @ theirs["up"].T + ours["down"] @ theirs["down"].T
        at, to = linear_sum_assignment(-(gate + np.abs(both)))
        signs = np.sign(both[at, to]).astype(np.float32)
        framed[keys["gate"]] = stranger[keys["gate"]][to]
        up = stranger[keys["up"]][to].astype(np.float32) * signs[:, None]
        down = stranger[keys["down"]][:, to].astype(np.float32) * signs
        framed[keys["up"]] = up.astype(stranger[keys["up"]].dtype)
        framed[keys["down"]] = down.astype(stranger[keys["down"]].dtype)
    found = verdict(str(short_zoo() / "base-a"), made(tmp_path / "framed", framed))
    assert found.relation is Relation.DEPENDENT and "arranged" in found.reasons


def test_tensors_of_unknown_names_are_compared_by_content(
    tmp_path: Path, parent: Tensors, stranger: Tensors
) -> None:
    def numbered(tensors: Tensors, kind: Any = None) -> Tensors:
        named = sorted(tensors.items(), reverse=True)
        return {
            f"t{at}": one if kind is None else one.astype(np.float32).astype(kind)
            for at, (_, one) in enumerate(named)
        }

    def unnamed(name: str, tensors: Tensors) -> str:
        folder = tmp_path / name
        folder.mkdir()
        save_file(tensors, folder / "model.safetensors")
        return str(folder)

    plain = str(short_zoo() / "base-a")
    copies = {
        "renamed": numbered(parent),
        "cast": numbered(parent, np.float32),
    }
    for name, tensors in copies.items():
        found = verdict(plain, unnamed(name, tensors))
        assert found.relation is Relation.SAME_WEIGHTS and found.log10_p < -100
    some = {**numbered(stranger), "t3": numbered(parent)["t3"]}
    found = verdict(plain, unnamed("some", some))
    assert found.relation is Relation.PARTIAL and 0 < found.amount.linked < 0.5
    nothing = verdict(plain, unnamed("stranger", numbered(stranger)))
    assert nothing.relation is Relation.UNTESTABLE
    tables: Tensors = {
        "frequencies": (1e4 ** -np.linspace(0, 1, 32)).astype(np.float32),
        "positions": np.arange(512)[None],
        "signs": scipy.linalg.hadamard(128)[:, np.random.default_rng(1).permutation(128)] / 8.0,
    }
    computed = (
        unnamed("one-table", {**numbered(parent), **tables}),
        unnamed("other-table", {**numbered(stranger), **tables}),
    )
    assert verdict(*computed).relation is Relation.UNTESTABLE


def test_one_equal_part_is_a_link_by_itself(
    tmp_path: Path, parent: Tensors, stranger: Tensors
) -> None:
    """No test of the menu looks at a single norm; equal numbers need none."""
    name = f"model.layers.{LAYER}.input_layernorm.weight"
    thief = {**stranger, name: parent[name]}
    found = verdict(str(short_zoo() / "base-a"), made(tmp_path / "thief", thief))
    assert found.relation is Relation.PARTIAL and found.linked == (Component.NORMS,)
    assert states(found)[Component.NORMS, LAYER] is PartState.SHARED


def test_the_likeness_of_an_embedding_is_a_correlation(parent: Tensors, tune: Verdict) -> None:
    """Not the share of channels that are each other's nearest, which is one here."""
    name = "model.embed_tokens.weight"
    child = load_file(short_zoo() / "a-cpt" / "model.safetensors")[name].astype(np.float64)
    own = parent[name].astype(np.float64)
    own, child = own - own.mean(axis=0), child - child.mean(axis=0)
    lengths = np.sqrt(np.square(own).sum(axis=0) * np.square(child).sum(axis=0))
    expected = float(((own * child).sum(axis=0) / lengths).mean())
    embedding = next(one for one in tune.parts if one.part.component is Component.EMBEDDING)
    assert embedding.likeness == pytest.approx(expected, abs=0.02) and expected < 0.8


def test_a_copy_with_more_units_holds_other_weights(parent: Tensors, tmp_path: Path) -> None:
    rng = np.random.default_rng(8)

    def grown(name: str, tensor: NDArray[Any]) -> NDArray[Any]:
        if "mlp." not in name:
            return tensor
        axis = 1 if "down_proj" in name else 0
        shape = (64, tensor.shape[1]) if axis == 0 else (tensor.shape[0], 64)
        fresh = rng.standard_normal(shape) * tensor.astype(np.float32).std()
        return np.ascontiguousarray(np.concatenate([tensor, fresh.astype(tensor.dtype)], axis=axis))

    child = made(tmp_path / "grown", {name: grown(name, one) for name, one in parent.items()})
    config = Path(child, "config.json")
    settings = json.loads(config.read_text())
    more = {**settings, "intermediate_size": settings["intermediate_size"] + 64}
    config.write_text(json.dumps(more))
    found = verdict(str(short_zoo() / "base-a"), child)
    assert found.relation is Relation.DERIVED
    assert states(found)[Component.FEED_FORWARD, 0] is PartState.SHARED


def test_models_are_identical_only_if_every_tensor_was_read(
    parent: Tensors, tmp_path: Path
) -> None:
    """Of weights it is known that they differ; at a computed table nobody looked."""
    for name, relation in (
        ("self_attn.o_proj.bias", Relation.DERIVED),
        ("self_attn.sinks", Relation.DERIVED),
        ("self_attn.rotary_emb.inv_freq", Relation.SAME_WEIGHTS),
    ):
        extra = {f"model.layers.0.{name}": np.arange(128, dtype=np.float32)}
        one = made(tmp_path / f"one {name}", {**parent, **extra})
        changed = {name: -values for name, values in extra.items()}
        other = made(tmp_path / f"other {name}", {**parent, **changed})
        assert verdict(one, other).relation is relation


def test_swapping_the_models_changes_nothing_but_their_places(tune: Verdict) -> None:
    one, other = tune, verdict(str(short_zoo() / "a-cpt"), str(short_zoo() / "base-a"))
    assert (one.relation, one.log10_p, one.reasons) == (
        other.relation,
        other.log10_p,
        other.reasons,
    )
    assert states(one) == states(other)
    turned = {(part.partner, part.part, part.likeness) for part in other.parts}
    assert {(part.part, part.partner, part.likeness) for part in one.parts} == turned


def test_swapping_a_deeper_model_changes_nothing_either(parent: Tensors, tmp_path: Path) -> None:
    """Layers stand in a deeper stranger at other places, and one of them twice."""
    shards = (short_zoo(6) / "base-b").glob("model-*.safetensors")
    deeper = {name: tensor for shard in shards for name, tensor in load_file(shard).items()}
    for layer, source in ((2, 0), (4, 1), (6, 0)):
        for name, tensor in parent.items():
            if f".layers.{source}." in name:
                deeper[name.replace(f".layers.{source}.", f".layers.{layer}.")] = tensor
    ours, theirs = str(short_zoo() / "base-a"), made(tmp_path / "deeper", deeper)
    config = Path(theirs, "config.json")
    config.write_text(json.dumps({**json.loads(config.read_text()), "num_hidden_layers": 7}))
    one, other = verdict(ours, theirs), verdict(theirs, ours)
    assert one.relation is other.relation is Relation.PARTIAL
    assert (one.log10_p, one.reasons, one.amount) == (other.log10_p, other.reasons, other.amount)
    turned = {(part.partner, part.part) for part in other.parts if part.state.linked}
    assert turned == {(part.part, part.partner) for part in one.parts if part.state.linked}
    layers = {(x.layer, y.layer) for x, y in turned if x is not None}
    assert layers == {(0, 2), (0, 6), (1, 4)}
    components = {x.component for x, _ in turned if x is not None}
    assert components == {Component.NORMS, Component.ATTENTION, Component.FEED_FORWARD}


def _unit_rows(rows: NDArray[Any]) -> NDArray[np.float32]:
    wide = np.asarray(rows, np.float32)
    return np.asarray(wide / np.linalg.norm(wide, axis=1, keepdims=True), np.float32)


@pytest.mark.parametrize(
    ("share", "relation"), [(0.2, Relation.DEPENDENT), (0.7, Relation.PARTIAL)]
)
def test_rows_of_an_embedding_in_a_stranger_are_a_link(
    tmp_path: Path, parent: Tensors, stranger: Tensors, share: float, relation: Relation
) -> None:
    """A few may be rows that no text has changed since one initialisation; most are not."""
    name = "model.embed_tokens.weight"
    rows = int(share * len(parent[name]))
    mixed = np.concatenate([parent[name][:rows], stranger[name][rows:]])
    found = verdict(
        str(short_zoo() / "base-a"), made(tmp_path / "thief", {**stranger, name: mixed})
    )
    assert found.relation is relation
    assert found.linked == (Component.EMBEDDING,)
    (part,) = (one for one in found.parts if one.state.linked)
    assert part.state is PartState.SHARED


def test_some_units_in_a_stranger_were_taken_over(
    tmp_path: Path, parent: Tensors, stranger: Tensors
) -> None:
    thief = {name: tensor.copy() for name, tensor in stranger.items()}
    for role in ("gate", "up", "down"):
        name = f"model.layers.{LAYER}.mlp.{role}_proj.weight"
        rows = np.s_[:, ::2] if role == "down" else np.s_[::2]
        thief[name][rows] = parent[name][rows]
    found = verdict(made(tmp_path / "thief", thief), str(short_zoo() / "base-a"))
    assert found.relation is Relation.PARTIAL
    (part,) = (one for one in found.parts if one.state.linked)
    assert part.state is PartState.SHARED and part.learnt
    assert part.share == pytest.approx(0.5, abs=0.01)


def test_why_nothing_is_known_of_a_part_is_true(
    tmp_path: Path, parent: Tensors, stranger: Tensors
) -> None:
    """Only where a test could have seen a plain copy is a disguise the reason to miss one."""

    def prepared(tensors: Tensors) -> Tensors:
        new = dict(tensors) | {"lm_head.weight": tensors["model.embed_tokens.weight"][::-1].copy()}
        for name, one in tensors.items():
            if f".layers.{LAYER}." in name:
                new[name] = np.ones_like(one)
        return new

    found = verdict(
        made(tmp_path / "a", prepared(parent)), made(tmp_path / "b", prepared(stranger))
    )
    reasons = {(one.part.component, one.part.layer): one.reason for one in found.parts}
    assert reasons[Component.HEAD, None] == Reason.PART_WITHOUT_TEST.message()
    assert reasons[Component.EMBEDDING, None] == Reason.PART_CHANNELS_RENAMED.message()
    assert reasons[Component.NORMS, 0] == Reason.PART_CHANNELS_RENAMED.message()
    assert reasons[Component.NORMS, LAYER] == Reason.PART_FLAT.message()
    for component in (Component.ATTENTION, Component.FEED_FORWARD):
        assert reasons[component, 0] == Reason.PART_BLIND.message()
        assert reasons[component, LAYER] == Reason.PART_SILENT.message()


def test_equal_numbers_that_are_too_few_are_called_equal_all_the_same(tmp_path: Path) -> None:
    """Gains of few channels have too few orders to be a link; nobody says nothing was found."""
    config = LLAMA | {"hidden_size": 12}
    ours, theirs = (llama(seed, width=12) for seed in (1, 2))
    copied = theirs | {name: ours[name] for name in ours if ".layers.1." in name}
    found = verdict(stored(tmp_path / "a", ours, config), stored(tmp_path / "b", copied, config))
    reasons = {(one.part.component, one.part.layer): one.reason for one in found.parts}
    assert reasons[Component.NORMS, 1] == Reason.PART_TOO_PLAIN.message()
    assert reasons[Component.NORMS, 0] != Reason.PART_TOO_PLAIN.message()


# What is said to be linked at least is, in either model.

_OF_ATTENTION = {"q_proj": 1 / 3, "k_proj": 1 / 6, "v_proj": 1 / 6, "o_proj": 1 / 3}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow if name in ("k_proj", "gate_proj") else ())
        for name in (*_OF_ATTENTION, "up_proj", "gate_proj", "down_proj")
    ],
)
def test_of_a_matrix_in_a_stranger_no_more_is_told(
    tmp_path: Path, parent: Tensors, stranger: Tensors, name: str
) -> None:
    """Trained on, so that no number is equal."""
    tuned = load_file(short_zoo() / "a-cpt" / "model.safetensors")
    thief = {one: tuned[one] if name in one else own for one, own in stranger.items()}
    found = verdict(str(short_zoo() / "base-a"), made(tmp_path / "thief", thief))
    share = _OF_ATTENTION.get(name, 1 / 3)
    for one in found.parts:
        matrices = one.part.component in (Component.ATTENTION, Component.FEED_FORWARD)
        assert not (matrices and one.state.linked) or one.sure <= share + 1e-9
    numbers = sum(own.size for one, own in thief.items() if name in one)
    layers = sum(own.size for one, own in thief.items() if ".layers." in one and own.ndim > 1)
    assert found.amount.layers is not None and found.amount.layers <= numbers / layers + 1e-9


def test_equal_queries_alone_are_a_third_of_attention(
    tmp_path: Path, parent: Tensors, stranger: Tensors
) -> None:
    name = f"model.layers.{LAYER}.self_attn.q_proj.weight"
    found = verdict(
        str(short_zoo() / "base-a"), made(tmp_path / "q", {**stranger, name: parent[name]})
    )
    linked = [one for one in found.parts if one.state.linked]
    assert [one.part.layer for one in linked] == [LAYER]
    assert linked[0].sure == pytest.approx(1 / 3)


def _with_units_of(tensors: Tensors, other: Tensors) -> Tensors:
    """A model whose feed-forwards have the units of another beside its own."""
    return {
        name: np.concatenate([own, other[name]], axis=1 if "down_proj" in name else 0)
        if ".mlp." in name
        else own
        for name, own in tensors.items()
    }


def test_units_beside_others_are_counted_in_the_larger_model(
    tmp_path: Path, parent: Tensors, stranger: Tensors
) -> None:
    both = _with_units_of(stranger, parent)
    folder = Path(made(tmp_path / "both", both))
    config = json.loads((folder / "config.json").read_text())
    config["intermediate_size"] *= 2
    (folder / "config.json").write_text(json.dumps(config))
    numbers = sum(parent[name].size for name in parent if ".mlp." in name)
    layers = sum(own.size for name, own in both.items() if ".layers." in name and own.ndim > 1)
    for pair in (
        (str(short_zoo() / "base-a"), str(folder)),
        (str(folder), str(short_zoo() / "base-a")),
    ):
        found = verdict(*pair)
        assert found.amount.layers == pytest.approx(numbers / layers, abs=0.01)
        assert (found.amount.layers or 0.0) <= numbers / layers + 1e-9


def test_a_tune_is_linked_in_all_of_its_matrices(tune: Verdict) -> None:
    assert tune.amount.layers == 1.0 and all(one.sure == 1.0 for one in tune.parts)


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("model.random_projection", (64, 128)),
        ("score.weight", (2, 128)),
        ("multi_modal_projector.linear_1.weight", (128, 64)),
    ],
)
def test_random_numbers_of_one_seed_are_not_shared_as_trained(
    name: str, shape: tuple[int, ...], parent: Tensors, stranger: Tensors, tmp_path: Path
) -> None:
    drawn = np.random.default_rng(0).normal(0, 0.02, shape).astype(np.float32)
    models = (made(tmp_path / at, {**one, name: drawn}) for at, one in
              (("a", parent), ("b", stranger)))  # fmt: skip
    assert verdict(*models).relation is Relation.DEPENDENT


def test_biases_may_be_random_too(parent: Tensors, stranger: Tensors, tmp_path: Path) -> None:
    """Matrices and biases of one layer as a library draws them, frozen in two strangers."""
    rng, drawn = np.random.default_rng(0), Tensors()
    for role, shape in (("gate", (352, 128)), ("up", (352, 128)), ("down", (128, 352))):
        limit, at = shape[1] ** -0.5, f"model.layers.{LAYER}.mlp.{role}_proj"
        drawn[f"{at}.weight"] = rng.uniform(-limit, limit, shape).astype(np.float32)
        drawn[f"{at}.bias"] = rng.uniform(-limit, limit, shape[0]).astype(np.float32)
    models = (made(tmp_path / at, {**one, **drawn}) for at, one in
              (("a", parent), ("b", stranger)))  # fmt: skip
    assert verdict(*models).relation is Relation.DEPENDENT


def test_a_trained_tensor_of_no_role_is_shared_as_trained(
    parent: Tensors, stranger: Tensors, tmp_path: Path
) -> None:
    trained = parent[f"model.layers.{LAYER}.mlp.up_proj.weight"]
    models = (made(tmp_path / at, {**one, "model.adaptor.weight": trained}) for at, one in
              (("a", parent), ("b", stranger)))  # fmt: skip
    assert verdict(*models).relation is Relation.PARTIAL


@pytest.mark.parametrize("units", [20, pytest.param(60, marks=pytest.mark.slow), 176])
def test_no_more_is_said_to_be_linked_than_the_units_that_are(
    units: int, stranger: Tensors, tmp_path: Path
) -> None:
    """Units of a tune that has moved far, in the feed-forwards of a stranger."""
    planted = load_file(short_zoo() / "a-cpt" / "model.safetensors")
    tensors = {name: tensor.copy() for name, tensor in stranger.items()}
    for name in (name for name in tensors if ".mlp." in name):
        some = np.s_[:, :units] if "down" in name else np.s_[:units]
        tensors[name][some] = planted[name][some]
    found = verdict(str(short_zoo() / "base-a"), made(tmp_path / "child", tensors))
    shares = [one.sure for one in found.parts if one.part.component is Component.FEED_FORWARD]
    assert shares == pytest.approx(LAYERS * [units / 352], abs=0.01)


def test_no_more_is_said_to_be_linked_than_the_tokens_that_are(
    parent: Tensors, stranger: Tensors, tmp_path: Path
) -> None:
    name = "model.embed_tokens.weight"
    table = stranger[name].copy()
    table[:100] = parent[name][:100]
    found = verdict(
        str(short_zoo() / "base-a"), made(tmp_path / "child", {**stranger, name: table})
    )
    shares = [one.sure for one in found.parts if one.part.component is Component.EMBEDDING]
    assert shares == pytest.approx([100 / 1024], abs=0.01)


def test_no_more_is_said_to_be_linked_than_the_heads_that_are(
    stranger: Tensors, tmp_path: Path
) -> None:
    planted = load_file(short_zoo() / "a-cpt" / "model.safetensors")
    tensors = {name: tensor.copy() for name, tensor in stranger.items()}
    for name in (name for name in tensors if ".self_attn." in name):
        half = tensors[name].shape[1 if "o_proj" in name else 0] // 2
        some = np.s_[:, :half] if "o_proj" in name else np.s_[:half]
        tensors[name][some] = planted[name][some]
    found = verdict(str(short_zoo() / "base-a"), made(tmp_path / "child", tensors))
    shares = [one.sure for one in found.parts if one.part.component is Component.ATTENTION]
    assert shares == pytest.approx(LAYERS * [0.5], abs=0.03)


def test_heads_with_few_planes_are_linked_too() -> None:
    alike, strange = np.full(8, 0.99), np.tile([0.1, -0.1], 4)
    assert _linked_heads([{"k": alike, "q": alike}] * 2) == {"k": 1.0, "q": 1.0}
    assert _linked_heads([{"k": alike}, {"k": strange}]) == {"k": 0.5}
    assert linked_rows({"up": alike, "down": strange}, {"up": 1.0, "down": 0.0}) == {"up": 1.0}


def test_a_matrix_that_is_hardly_alike_is_linked_where_it_is_so_by_itself() -> None:
    """Beside a copied gate, up rows of a fifth of the likeness would count as strangers."""
    sizes = {"width": 64, "depth": 2, "units": 96, "tokens": 40}
    ours, others = made_sample(1, **sizes), made_sample(2, **sizes)
    units = {
        layer: replace(part, gate=ours.units[layer].gate, up=0.2 * ours.units[layer].up + part.up)
        for layer, part in others.units.items()
    }
    scores = part_scores(Pair(ours, replace(others, units=units, key="other")), ())
    by_number = [score for score in scores if score.test == "U1.blocks"]
    assert [set(score.roles or ()) for score in by_number] == 2 * [{"gate", "up"}]
