"""Models with one thing wrong: never a crash, the tensor is named, and the rest is compared.

A few mutations of each kind; `python -m tests.lineage.test_bad_input` takes all of them.
"""

from __future__ import annotations

import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from kinprint.errors import KinprintError
from kinprint.lineage.compare import compare_models
from kinprint.lineage.results import Comparison, Settings
from kinprint.reader.fetch import Fetcher
from tests.lineage.mutations import CHANGES, Config, Mutation, Tensors, mutations
from tests.lineage.stored_models import LLAMA, stored

LAYERS, WIDTH, UNITS, HEADS, GROUPS, SIZE, TOKENS, EXPERTS = 3, 32, 24, 4, 2, 8, 48, 4
RELATED = ("derived", "partial", "dependent", "same-weights", "identical")
STRANGERS = ("no-evidence", "untestable")
# Changes of a tensor that contradict no other tensor: numbers, or a shape that says as much.
SILENT = ("transposed", "zero", "huge", "int8", "int64", "bool", "float8", "float64")
NAMED = [change for change in CHANGES if change not in SILENT]


def dense(seed: int) -> tuple[Tensors, Config]:
    """A small model with one feed-forward a layer."""
    chance = np.random.default_rng(seed)

    def some(*shape: int) -> np.ndarray:
        return chance.normal(size=shape).astype(np.float32)

    tensors = {
        "model.embed_tokens.weight": some(TOKENS, WIDTH),
        "model.norm.weight": 1 + 0.2 * some(WIDTH),
    }
    for layer in range(LAYERS):
        root = f"model.layers.{layer}"
        tensors |= {
            f"{root}.input_layernorm.weight": 1 + 0.2 * some(WIDTH),
            f"{root}.post_attention_layernorm.weight": 1 + 0.2 * some(WIDTH),
            f"{root}.self_attn.q_proj.weight": some(HEADS * SIZE, WIDTH),
            f"{root}.self_attn.q_proj.bias": some(HEADS * SIZE),
            f"{root}.self_attn.k_proj.weight": some(GROUPS * SIZE, WIDTH),
            f"{root}.self_attn.k_proj.bias": some(GROUPS * SIZE),
            f"{root}.self_attn.v_proj.weight": some(GROUPS * SIZE, WIDTH),
            f"{root}.self_attn.o_proj.weight": some(WIDTH, HEADS * SIZE),
            f"{root}.mlp.gate_proj.weight": some(UNITS, WIDTH),
            f"{root}.mlp.up_proj.weight": some(UNITS, WIDTH),
            f"{root}.mlp.down_proj.weight": some(WIDTH, UNITS),
        }
    sizes = {
        "hidden_size": WIDTH, "head_dim": SIZE, "num_hidden_layers": LAYERS,
        "intermediate_size": UNITS, "vocab_size": TOKENS, "num_attention_heads": HEADS,
        "num_key_value_heads": GROUPS, "model_type": "qwen2",
        "architectures": ["Qwen2ForCausalLM"],
    }  # fmt: skip
    return tensors, LLAMA | sizes


def sparse(seed: int) -> tuple[Tensors, Config]:
    """The same with experts."""
    tensors, config = dense(seed)
    tensors = {
        name: values
        for name, values in tensors.items()
        if ".mlp." not in name and not name.endswith(".bias")
    }
    chance = np.random.default_rng([seed, 1])
    for layer in range(LAYERS):
        root = f"model.layers.{layer}.block_sparse_moe"
        tensors[f"{root}.gate.weight"] = chance.normal(size=(EXPERTS, WIDTH)).astype(np.float32)
        for expert in range(EXPERTS):
            for name, rows in (("w1", UNITS), ("w2", WIDTH), ("w3", UNITS)):
                values = chance.normal(size=(rows, UNITS + WIDTH - rows)).astype(np.float32)
                tensors[f"{root}.experts.{expert}.{name}.weight"] = values
    kind = {"model_type": "mixtral", "architectures": ["MixtralForCausalLM"]}
    return tensors, config | kind | {"num_local_experts": EXPERTS, "num_experts_per_tok": 2}


def trained(tensors: Tensors) -> Tensors:
    chance = np.random.default_rng(3)
    return {
        name: (values + 0.05 * chance.normal(size=values.shape)).astype(np.float32)
        for name, values in tensors.items()
    }


KINDS = {"dense": dense, "sparse": sparse}


@pytest.fixture(scope="module", params=KINDS)
def family(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, list[Mutation]]:
    """A parent and a stranger on disk, and all mutations of a child."""
    folder = tmp_path_factory.mktemp(request.param)
    return folder, made(folder, request.param)


def made(folder: Path, kind: str) -> list[Mutation]:
    tensors, config = KINDS[kind](0)
    stored(folder / "parent", tensors, config)
    stored(folder / "stranger", *KINDS[kind](9))
    return list(mutations(trained(tensors), config))


def compared(folder: Path, mutation: Mutation, other: str) -> Comparison | KinprintError:
    """What is said of a mutated child and another model; an error of ours is a sentence too."""
    child = stored(folder / "child", mutation.tensors, mutation.config)
    with Fetcher() as fetcher:
        try:
            return compare_models(child, str(folder / other), fetcher, Settings())
        except KinprintError as error:
            return error


def some_of(all_of: Sequence[Mutation], count: int) -> list[Mutation]:
    """Evenly spaced ones, by a step that meets every kind of change."""
    step = max(1, len(all_of) // count) | 1
    return list(islice(all_of, 0, None, step))


@pytest.mark.parametrize("count", [10, pytest.param(20, marks=pytest.mark.slow)])
def test_no_mutation_crashes_and_the_rest_is_compared(
    family: tuple[Path, list[Mutation]], count: int
) -> None:
    folder, all_of = family
    for mutation in some_of(all_of, count):
        found = compared(folder, mutation, "parent")
        assert not isinstance(found, KinprintError), (mutation.name, str(found))
        assert found.verdict.relation in RELATED, mutation.name


@pytest.mark.parametrize("count", [5, pytest.param(10, marks=pytest.mark.slow)])
def test_a_mutated_model_is_no_relative_of_a_stranger(
    family: tuple[Path, list[Mutation]], count: int
) -> None:
    folder, all_of = family
    for mutation in some_of(all_of[7:], count):
        found = compared(folder, mutation, "stranger")
        assert not isinstance(found, KinprintError), (mutation.name, str(found))
        assert found.verdict.relation in STRANGERS, mutation.name


@pytest.mark.parametrize("change", NAMED)
def test_a_warning_names_the_tensor(change: str, tmp_path: Path) -> None:
    name = "model.layers.1.mlp.up_proj.weight"
    mutation = next(one for one in made(tmp_path, "dense") if one.name == f"{name} {change}")
    found = compared(tmp_path, mutation, "parent")
    assert isinstance(found, Comparison)
    assert any(name in note.say("en") for note in found.notes), found.notes


@pytest.mark.parametrize("lost", [True, False])
def test_contradictions_in_a_tower_for_pictures_are_told(tmp_path: Path, lost: bool) -> None:
    """Rows of one matrix are not read for units that another one has."""
    tensors, config = dense(1)
    gate = f"model.layers.{LAYERS - 1}.mlp.gate_proj.weight"
    odd = tensors | {gate: np.concatenate([tensors[gate]] * 2)}
    if lost:
        del odd[gate.replace("gate", "down")]
    first, second = (
        stored(
            tmp_path / name, tensors | {f"visual.{key}": one for key, one in own.items()}, config
        )
        for name, own in (("a", tensors), ("b", odd))
    )
    with Fetcher() as fetcher:
        found = compare_models(first, second, fetcher, Settings())
    assert found.verdict.relation in RELATED
    assert "contradicts the other tensors" in _notes(found)


def test_other_weights_beside_equal_ones_are_named(tmp_path: Path) -> None:
    tensors, config = dense(1)
    first = stored(tmp_path / "a", tensors, config)
    second = stored(tmp_path / "b", tensors, config)
    other = stored(tmp_path / "other", dense(2)[0])
    Path(other, "model.safetensors").rename(Path(second, "consolidated.safetensors"))
    with Fetcher() as fetcher:
        found = compare_models(first, second, fetcher, Settings())
    assert found.verdict.relation == "identical"
    assert "consolidated.safetensors" in _notes(found)


def _notes(found: Comparison) -> str:
    return " ".join(note.words()["en"] for note in found.notes)


def _said(found: Comparison | KinprintError) -> str:
    return str(found) if isinstance(found, KinprintError) else str(found.verdict.relation)


def main() -> int:
    """All mutations against parent and stranger; the exit code counts crashes."""
    crashes: Counter[str] = Counter()
    relations: Counter[str] = Counter()
    for kind in KINDS:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            for mutation in made(folder, kind):
                for other in ("parent", "stranger"):
                    try:
                        found = compared(folder, mutation, other)
                    except Exception:
                        crashes[traceback.format_exc().splitlines()[-2]] += 1
                        print(f"CRASH {kind}: {mutation.name}\n{traceback.format_exc()}")
                        continue
                    said = _said(found)
                    relations[f"{kind} {other}: {said}"] += 1
                    if said not in (RELATED if other == "parent" else STRANGERS):
                        print(f"{kind} {other}: {mutation.name}: {said}", flush=True)
    for said, count in relations.most_common():
        print(f"{count:6} {said}")
    return sum(crashes.values())


if __name__ == "__main__":
    sys.exit(main())
