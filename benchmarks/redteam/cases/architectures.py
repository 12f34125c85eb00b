"""Parts of other architectures than LLaMA's: cross-attention, latent attention, state spaces."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.redteam.architectures import (
    encoder_model,
    latent_model,
    speech_model,
    state_space_model,
)
from benchmarks.redteam.cases.registry import UNTOLD, Pair, attention, case, other, true
from benchmarks.redteam.checkpoint import Checkpoint
from benchmarks.redteam.relabelling import Rng
from benchmarks.redteam.truth import Fact, Where
from benchmarks.redteam.zoo import Zoo

_PARTLY = f"partial {UNTOLD}"
_MIXER = Where(frozenset({"mixer"}))


def _with(make: Callable[[int], Checkpoint], seed: int, *marks: str) -> Pair:
    """A model and a stranger that holds those tensors of it whose names have one of the marks."""
    first, second = make(seed), make(seed + 100)
    taken = {name: one for name, one in first.tensors.items() if any(m in name for m in marks)}
    return first, second.changed(taken)


@case(
    "cross-attention-copied",
    true(_PARTLY, _PARTLY, "partial", {attention(tower="decoder"): Fact.KIN}),
)
def cross_attention(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A speech model, and a stranger with all of its cross-attention."""
    return _with(speech_model, seed, "encoder_attn.")


@case(
    "convolutions-copied",
    true(
        _PARTLY,
        _PARTLY,
        "partial",
        {other(tower="encoder"): Fact.EQUAL},
    ),
)
def convolutions(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A speech model, and a stranger with the convolutions before its encoder."""
    return _with(speech_model, seed, ".conv")


@case("strangers-speech", true(UNTOLD, UNTOLD, "no-evidence"))
def strangers_speech(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Two speech models of random weights with the same computed positions."""
    return speech_model(seed), speech_model(seed + 100)


@case(
    "latent-keys-copied",
    true(_PARTLY, _PARTLY, "partial", {attention(): Fact.KIN}),
)
def latent_keys(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A model with latent attention, and a stranger with what makes its keys and values."""
    return _with(latent_model, seed, "kv_a_proj", "kv_b_proj")


@case(
    "mixer-projections-copied",
    true(f"derived {_PARTLY}", f"derived {_PARTLY}", "partial derived", {_MIXER: Fact.KIN}),
)
def mixer_projections(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """A state-space model, and a stranger with all of its input projections."""
    return _with(state_space_model, seed, "mixer.in_proj")


@case("strangers-state-space-heads", true(UNTOLD, UNTOLD, "no-evidence"))
def strangers_heads(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """Two state-space models of random weights whose heads decay at the rates they start with."""
    return state_space_model(seed), state_space_model(seed + 100)


@case("positions-copied", true(_PARTLY, _PARTLY, "partial", {other(): Fact.EQUAL}))
def positions(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """An encoder, and a stranger with its tables of positions and segments."""
    return _with(encoder_model, seed, "position_embeddings", "token_type_embeddings")


@case(
    "attention-outputs-copied",
    true(_PARTLY, _PARTLY, "partial", {attention(): Fact.KIN}, layers=0.125),
)
def attention_outputs(zoo: Zoo, seed: int, rng: Rng) -> Pair:
    """An encoder, and a stranger with the output matrices of its attention."""
    return _with(encoder_model, seed, "attention.output.dense")
