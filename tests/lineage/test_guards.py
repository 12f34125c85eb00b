"""Things that two strangers may have in common: none of them may look like descent.

Models are written to disk from the demo's tensors, changed as the case needs, and compared
through the real pipeline: opening, sampler, battery, verdict.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
import scipy.stats
from safetensors.numpy import load_file, save_file

from kinprint.lineage.compare import compare_models
from kinprint.lineage.results import Comparison, Settings
from kinprint.lineage.side import alone, copied_channels
from kinprint.reader.fetch import Fetcher
from kinprint.records import Component, VerdictReason
from tests.conftest import ZOO
from tests.fewer_layers import short_zoo
from tests.lineage.stored_models import LLAMA, llama, stored

Tensors = dict[str, np.ndarray]
Change = Callable[[Tensors], None]
LAYERS = 3
SILENT = ("no-evidence", "untestable")
ACCUSED = ("identical", "derived", "partial")
# Signs that a tool fixed by a rule are dependent indeed; no test can tell that from a common
# origin as long as the lean of a single model is too small to see.
RULED = ("canonical signs",)


def read(name: str) -> Tensors:
    found: Tensors = {}
    for file in sorted((short_zoo(LAYERS) / name).glob("*.safetensors")):
        found |= {key: value.astype(np.float32) for key, value in load_file(file).items()}
    return found


def write(folder: Path, name: str, source: str, change: Change | None = None) -> Path:
    """A copy of a demo model with changed tensors, its tokenizer and configuration kept."""
    place = folder / name
    place.mkdir()
    for file in ("config.json", "tokenizer.json"):
        shutil.copy(short_zoo(LAYERS) / source / file, place / file)
    tensors = read(source)
    if change is not None:
        change(tensors)
    stored = {
        key: np.ascontiguousarray(value).astype(ml_dtypes.bfloat16)
        for key, value in tensors.items()
    }
    save_file(stored, place / "model.safetensors", metadata={"format": "pt"})
    return place


def compare(a: Path, b: Path) -> Comparison:
    with Fetcher() as fetcher:
        return compare_models(str(a), str(b), fetcher, Settings(), details=False)


def strangers(folder: Path, change: Change) -> Comparison:
    """Two independent models, both changed in the same way."""
    a, b = (write(folder, name, name, change) for name in ("base-a", "base-b"))
    return compare(a, b)


def mlp(tensors: Tensors, layer: int) -> tuple[str, str, str]:
    base = f"model.layers.{layer}.mlp"
    names = f"{base}.gate_proj.weight", f"{base}.up_proj.weight", f"{base}.down_proj.weight"
    assert all(name in tensors for name in names)
    return names


def reorder_units(tensors: Tensors, layer: int, order: np.ndarray) -> None:
    gate, up, down = mlp(tensors, layer)
    tensors[gate], tensors[up] = tensors[gate][order], tensors[up][order]
    tensors[down] = tensors[down][:, order]


def sort_units(tensors: Tensors) -> None:
    for layer in range(LAYERS):
        reorder_units(
            tensors, layer, np.argsort(np.linalg.norm(tensors[mlp(tensors, layer)[1]], axis=1))
        )


def sort_by_gate_and_blocks(tensors: Tensors) -> None:
    """Units sorted inside blocks of 32, as quantisers and shards leave them."""
    for layer in range(LAYERS):
        size = np.linalg.norm(tensors[mlp(tensors, layer)[0]], axis=1)
        order = np.arange(len(size))
        for start in range(0, len(size), 32):
            part = order[start : start + 32]
            order[start : start + 32] = part[np.argsort(size[part])]
        reorder_units(tensors, layer, order)


def orient_units(tensors: Tensors) -> None:
    """Up rows flipped to have a positive sum: canonical signs for every unit."""
    for layer in range(LAYERS):
        _, up, down = mlp(tensors, layer)
        signs = np.where(tensors[up].sum(axis=1) < 0, -1.0, 1.0).astype(np.float32)
        tensors[up] *= signs[:, None]
        tensors[down] *= signs


def clone_units(tensors: Tensors) -> None:
    """Every unit of the first half again in the second: coins that count twice."""
    for layer in range(LAYERS):
        gate, up, down = mlp(tensors, layer)
        half = len(tensors[gate]) // 2
        for name in (gate, up):
            tensors[name][half : 2 * half] = tensors[name][:half]
        tensors[down][:, half : 2 * half] = tensors[down][:, :half]


def copy_layers(tensors: Tensors) -> None:
    """All layers are the first one."""
    for name in list(tensors):
        if name.startswith("model.layers."):
            parts = name.split(".")
            tensors[name] = tensors[".".join([*parts[:2], "0", *parts[3:]])].copy()


def copy_heads(tensors: Tensors) -> None:
    """Key-value heads replicated, as some converters do."""
    for layer in range(LAYERS):
        for role in ("k", "v"):
            rows = tensors[f"model.layers.{layer}.self_attn.{role}_proj.weight"]
            rows[len(rows) // 2 :] = rows[: len(rows) // 2]


def constant_norms(tensors: Tensors) -> None:
    for name, values in tensors.items():
        if "norm" in name:
            values[:] = 1.0


def zero_matrices(tensors: Tensors) -> None:
    for name, values in tensors.items():
        if values.ndim == 2 and "layers" in name:
            values[:] = 0.0


def constant_everything(tensors: Tensors, number: float = 0.5) -> None:
    for values in tensors.values():
        values[:] = number


def blank_half(tensors: Tensors) -> None:
    """Half of all rows are padding."""
    for values in tensors.values():
        if values.ndim == 2:
            values[len(values) // 2 :] = 0.0


def broken(tensors: Tensors) -> None:
    for name, values in tensors.items():
        if "layers.1" in name:
            values[:] = np.nan
        if "layers.2" in name:
            values.reshape(-1)[0] = np.inf


def computed_tables(tensors: Tensors) -> None:
    """Position table and inverse frequencies stored beside the weights, equal in all models."""
    positions, width = np.arange(256), 128
    angle = positions[:, None] / 10_000 ** (np.arange(width) // 2 * 2 / width)
    even = np.arange(width) % 2 == 0
    tensors["model.embed_positions.weight"] = np.where(even, np.sin(angle), np.cos(angle))
    for layer in range(LAYERS):
        name = f"model.layers.{layer}.self_attn.rotary_emb.inv_freq"
        tensors[name] = 10_000.0 ** (-np.arange(16) / 16)


def partly_moved(tensors: Tensors, name: str, start: np.ndarray) -> None:
    """Every layer has a start that all models have, of which this one moves some numbers."""
    rng = np.random.default_rng(int(1e6 * np.abs(tensors["model.norm.weight"]).sum()))
    for layer in range(LAYERS):
        moved = start * (1 + 0.05 * rng.normal(size=start.shape))
        stays = rng.random(start.shape) < 0.7
        tensors[f"model.layers.{layer}.{name}"] = np.where(stays, start, moved)


def decays_partly_moved(tensors: Tensors) -> None:
    start = -6 + 5 * (np.arange(128) / 127) ** 0.85
    partly_moved(tensors, "attention.time_decay", start)


def mixes_partly_moved(tensors: Tensors) -> None:
    partly_moved(tensors, "attention.time_mix_key", ((np.arange(128) / 128) ** 0.8)[None, None])


def rates_partly_moved(tensors: Tensors) -> None:
    partly_moved(tensors, "mamba.A_log", np.tile(np.log(np.arange(1, 33)), (256, 1)))


def rates_of_half_the_rows_moved(tensors: Tensors) -> None:
    partly_moved(tensors, "mamba.A_log", np.tile(np.log(np.arange(1, 25)), (256, 1)))
    start = np.log(np.arange(1, 25))
    for layer in range(LAYERS):
        tensors[f"model.layers.{layer}.mamba.A_log"][layer % 2 :: 2] = start


def signs_at_right_angles(tensors: Tensors) -> None:
    """A matrix of signs for activations beside the weights that take them."""
    squares = np.arange(1, 107) ** 2 % 107
    turns = (np.arange(107) - np.arange(107)[:, None]) % 107
    signs = np.ones((108, 108))
    signs[1:, 1:] = np.where(np.isin(turns, squares) | (turns == 0), 1, -1)
    signs[1:, 0] = -1
    for layer in range(LAYERS):
        tensors[f"model.layers.{layer}.mlp.down_proj.had_K"] = signs
    tensors["model.rotation"] = signs / np.sqrt(108)


def codes_of_few_bits(tensors: Tensors) -> None:
    tensors["model.codebook"] = scipy.stats.qmc.Sobol(64, scramble=False).random(256)


def principal_axes(tensors: Tensors) -> None:
    """Norms folded, the residual stream turned to the embedding's sorted principal axes."""
    for layer in range(LAYERS):
        base = f"model.layers.{layer}"
        for norm, roles in (
            ("input_layernorm", ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj")),
            ("post_attention_layernorm", ("mlp.gate_proj", "mlp.up_proj")),
        ):
            gains = tensors[f"{base}.{norm}.weight"]
            for role in roles:
                tensors[f"{base}.{role}.weight"] *= gains
            gains[:] = 1.0
    tensors["model.norm.weight"][:] = 1.0
    embedding = tensors["model.embed_tokens.weight"]
    axes = np.linalg.svd(embedding, full_matrices=False)[2].T
    axes *= np.where((embedding @ axes).sum(axis=0) < 0, -1, 1)
    for name, values in tensors.items():
        if name.endswith(("o_proj.weight", "down_proj.weight")):
            tensors[name] = axes.T @ values
        elif values.ndim == 2:
            tensors[name] = values @ axes


def one_mask(tensors: Tensors) -> None:
    """Half of every matrix zero, at places that a public mask gives."""
    mask = np.random.default_rng(11)
    for name in sorted(tensors):
        if tensors[name].ndim == 2:
            tensors[name][mask.random(tensors[name].shape) < 0.5] = 0.0


def two_of_four(tensors: Tensors) -> None:
    """The first two of every four inputs, in the layers."""
    for name, values in tensors.items():
        if values.ndim == 2 and "layers" in name:
            values[:, 2::4] = values[:, 3::4] = 0.0


def few_zeros(tensors: Tensors) -> None:
    """A few places that are zero in both: no mask to speak of, and no equal weights."""
    mask = np.random.default_rng(12)
    for name in sorted(tensors):
        if tensors[name].ndim == 2:
            tensors[name][mask.random(tensors[name].shape) < 0.003] = 0.0


def padding(tensors: Tensors) -> None:
    """A number that stands at the same places in both."""
    mask = np.random.default_rng(13)
    for name in sorted(tensors):
        if tensors[name].ndim == 2:
            tensors[name][mask.random(tensors[name].shape) < 0.3] = 0.01


def closed_channels(tensors: Tensors) -> None:
    """Gains of zero at the same channels in both."""
    mask = np.random.default_rng(14)
    for name in sorted(tensors):
        if "norm" in name:
            tensors[name][mask.random(tensors[name].shape) < 0.03] = 0.0


def matrices(tensors: Tensors, roles: tuple[str, ...] = ("attn", "mlp")) -> list[str]:
    return [name for name in tensors if any(role in name for role in roles) and "norm" not in name]


def began_as_identity(tensors: Tensors, size: float = 4.0) -> None:
    """A padded identity, four deviations above what was learnt, as ZerO and IDInit leave it."""
    for name in matrices(tensors):
        values = tensors[name]
        values += size * values.std() * np.eye(*values.shape, dtype=np.float32)


def began_as_repeated_identities(tensors: Tensors) -> None:
    """The same written again until a matrix is full, from the last column on."""
    for name in matrices(tensors):
        values = tensors[name]
        rows, columns = (np.arange(size) % min(values.shape) for size in values.shape)
        values += 4 * values.std() * np.equal.outer(rows, columns)[:, ::-1]


def one_identity(tensors: Tensors) -> None:
    """In the outputs of one layer's attention only."""
    values = tensors["model.layers.1.self_attn.o_proj.weight"]
    values += 8 * values.std() * np.eye(*values.shape, dtype=np.float32)


def add_positions(tensors: Tensors) -> None:
    """A table of sines over numbers of tokens, added to the embedding."""
    values = tensors["model.embed_tokens.weight"]
    tokens, width = values.shape
    angles = np.arange(tokens)[:, None] / 10_000 ** (np.arange(width // 2) * 2 / width)
    values += values.std() * np.concatenate([np.sin(angles), np.cos(angles)], axis=1)


def add_wave(tensors: Tensors) -> None:
    """A wave over the channels, at a strength that a public vector gives every token."""
    values = tensors["model.embed_tokens.weight"]
    strength = np.random.default_rng(15).normal(size=(len(values), 1))
    values += 0.7 * values.std() * strength * np.sin(0.37 * np.arange(values.shape[1]))


def reorder_channels(tensors: Tensors, order: np.ndarray) -> None:
    for name, values in tensors.items():
        along = values.ndim == 1 or name.endswith(("o_proj.weight", "down_proj.weight"))
        tensors[name] = values[order] if along else values[:, order]


def sort_channels_by_mean(tensors: Tensors) -> None:
    """By the signed mean of embedding columns."""
    reorder_channels(tensors, np.argsort(tensors["model.embed_tokens.weight"].mean(axis=0)))


def sort_channels_by_axis(tensors: Tensors) -> None:
    """By the first principal axis of the embedding, with a sign that one token gives it."""
    table = tensors["model.embed_tokens.weight"]
    tokens, _, axes = np.linalg.svd(table - table.mean(axis=0), full_matrices=False)
    reorder_channels(tensors, np.argsort(axes[0] * np.sign(tokens[300, 0])))


CASES: dict[str, Change] = {
    "as they are": lambda tensors: None,
    "sorted units": sort_units,
    "units sorted in blocks": sort_by_gate_and_blocks,
    "canonical signs": orient_units,
    "cloned units": clone_units,
    "copied layers": copy_layers,
    "copied heads": copy_heads,
    "constant norms": constant_norms,
    "zero matrices": zero_matrices,
    "half padding": blank_half,
    "no numbers": broken,
    "computed tables": computed_tables,
    "decays partly moved": decays_partly_moved,
    "mixes partly moved": mixes_partly_moved,
    "rates partly moved": rates_partly_moved,
    "rates of half the rows moved": rates_of_half_the_rows_moved,
    "signs at right angles": signs_at_right_angles,
    "codes of few bits": codes_of_few_bits,
    "principal axes": principal_axes,
    "one mask": one_mask,
    "two of four": two_of_four,
    "few zeros": few_zeros,
    "padding": padding,
    "closed channels": closed_channels,
    "began as the identity": began_as_identity,
    "began as little of the identity": lambda tensors: began_as_identity(tensors, 1.5),
    "began as identities": began_as_repeated_identities,
    "one identity": one_identity,
    "positions added": add_positions,
    "wave added": add_wave,
    "channels sorted by mean": sort_channels_by_mean,
    "channels sorted along an axis": sort_channels_by_axis,
}


SIBLINGS = {
    "began as identities",
    "began as little of the identity",
    "channels sorted along an axis",
    "copied heads",
    "decays partly moved",
    "few zeros",
    "half padding",
    "mixes partly moved",
    "one identity",
    "rates of half the rows moved",
    "rates partly moved",
    "signs at right angles",
    "two of four",
    "units sorted in blocks",
    "wave added",
}


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=pytest.mark.slow) if case in SIBLINGS else case for case in CASES],
)
def test_strangers_stay_strangers(case: str, tmp_path: Path) -> None:
    """Same data, same tokenizer, same configuration, same surgery: still no evidence."""
    found = strangers(tmp_path, CASES[case])
    telling = [(one.test, one.log10_p) for one in found.evidence if one.log10_p < -3]
    assert found.verdict.relation not in ACCUSED, telling
    assert case in RULED or found.verdict.relation in SILENT, telling


def test_constant_models_are_no_evidence(tmp_path: Path) -> None:
    """One number everywhere, with small differences so that files are not equal."""
    a = write(tmp_path, "a", "base-a", constant_everything)
    b = write(tmp_path, "b", "base-a", lambda tensors: constant_everything(tensors, 0.25))
    assert compare(a, b).verdict.relation not in ACCUSED


def test_equal_tokenizer_and_configuration_are_no_evidence(tmp_path: Path) -> None:
    """Weights drawn anew beside a copied tokenizer and configuration."""
    random = np.random.default_rng(3)

    def drawn(tensors: Tensors) -> None:
        for name, values in tensors.items():
            scale = 0.1 if values.ndim == 1 else 0.02
            tensors[name] = random.normal(float(values.ndim == 1), scale, values.shape)

    found = compare(short_zoo(LAYERS) / "base-a", write(tmp_path, "drawn", "base-a", drawn))
    assert found.verdict.relation == "no-evidence"
    assert found.verdict.power, "an honest negative says what it would have seen"


@pytest.mark.parametrize(
    "change",
    [
        began_as_identity,
        pytest.param(sort_channels_by_mean, marks=pytest.mark.slow),
        add_positions,
    ],
)
def test_a_descendant_with_the_same_start_is_found(change: Change, tmp_path: Path) -> None:
    """What strangers share says nothing, and the rest of the weights still does."""
    parent, child = (write(tmp_path, name, name, change) for name in ("base-a", "a-cpt"))
    assert compare(parent, child).verdict.relation in ("derived", "dependent", "partial")


@pytest.mark.parametrize("change", [sort_units, orient_units, constant_norms])
def test_a_guard_does_not_blind(change: Change, tmp_path: Path) -> None:
    """The same surgery on a child still leaves it related to its parent."""
    child = write(tmp_path, "child", "a-cpt", change)
    found = compare(short_zoo(LAYERS) / "base-a", child)
    assert found.verdict.relation == "derived"


def test_learnt_numbers_that_a_change_spared_are_found_among_other_tensors(tmp_path: Path) -> None:
    """As for decays that all models start from, but learnt before the one was made of the other."""

    def learnt(tensors: Tensors) -> None:
        start = -6 + 5 * (np.arange(256).reshape(2, 128) / 255) ** 0.85
        start += 0.2 * np.random.default_rng(9).normal(size=start.shape)
        partly_moved(tensors, "attention.time_decay", start)

    found = strangers(tmp_path, learnt).verdict
    assert found.relation == "partial" and found.linked == (Component.OTHER,)


@pytest.mark.parametrize("mask", [one_mask, pytest.param(two_of_four, marks=pytest.mark.slow)])
def test_a_descendant_of_a_pruned_model_is_found(mask: Change, tmp_path: Path) -> None:
    """Coins are left where labels are not: both pruned alike, gains made constant as well."""

    def bare(tensors: Tensors) -> None:
        mask(tensors)
        constant_norms(tensors)

    parent = write(tmp_path, "parent", "base-a", bare)
    found = compare(parent, write(tmp_path, "child", "a-cpt", bare))
    logs = {one.test: one.log10_p for one in found.evidence}
    assert min(logs["S1"], logs["U1.blocks"]) < -50 and logs["S2"] < -20 and logs["S4"] < -6
    assert found.verdict.log10_p < -50


@pytest.mark.zoo
def test_shared_initialisation_is_not_descent() -> None:
    for name in ("base-a", "a-sft", "a-cpt", "a-reattn", "a-newvocab", "a-permuted"):
        found = compare(ZOO / "tie-a", ZOO / name).verdict
        assert found.relation in ("same-init", "dependent", "no-evidence"), name


@pytest.mark.zoo
def test_only_norms_is_partial_and_a_student_is_a_stranger() -> None:
    found = compare(ZOO / "base-a", ZOO / "a-normsonly").verdict
    assert found.relation in ("partial", "dependent")  # gains could have been arranged
    assert {one.part.component for one in found.parts if one.state.linked} == {Component.NORMS}
    assert json.loads((ZOO / "zoo.json").read_text())["a-distilled"]["teacher"] == "base-a"
    assert compare(ZOO / "base-a", ZOO / "a-distilled").verdict.relation == "no-evidence"


def test_channels_that_were_repeated_are_tied_and_others_are_not() -> None:
    """Two models that were widened alike have alike channels at the same places."""
    rng = np.random.default_rng(21)
    columns = rng.normal(size=(64, 200))
    noise = 0.48 * rng.normal(size=columns.shape)
    copies = 0.88 * columns + noise
    beside = np.stack([columns, copies], axis=1).reshape(128, 200)
    again = np.concatenate([columns, copies])
    for rows in (beside, again):
        assert not alone(copied_channels(rows)).any()
    # As alike, at places that chance has dealt: labels are as free as before.
    assert alone(copied_channels(again[rng.permutation(128)])).all()


def test_untrained_models_of_one_seed_share_no_trained_weights(tmp_path: Path) -> None:
    names = []
    for layers in (6, 8):
        tensors = llama(3, layers=8)
        gone = [one for one in tensors if any(f".{at}." in one for at in range(layers, 8))]
        start = {
            name: np.ones_like(one) if one.ndim == 1 else one
            for name, one in tensors.items()
            if name not in gone
        }
        config = {**LLAMA, "num_hidden_layers": layers}
        names.append(stored(tmp_path / str(layers), start, config))
    found = compare(*map(Path, names)).verdict
    assert found.relation == "dependent"
    assert found.reasons == (VerdictReason.NEVER_TRAINED,)
