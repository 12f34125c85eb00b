"""Every symmetry the table claims, tried on a small transformer in double precision.

The group's own members and the axes' own words say what is moved, so a wrong entry in the
table changes the function and fails here; what the table denies is shown to change it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from kinprint.model.symmetries import Facts, SymmetryGroup, axes_of, group_named, planes_of, refusal

Array = NDArray[np.float64]
Key = tuple[str, int]
KV, REP, WIDTH, VALUE, UNITS, HIDDEN, VOCAB, EXPERTS, LAYERS = 2, 2, 6, 5, 7, 8, 11, 3, 2
LEVELS = {
    "kv_head": KV, "head": REP, "head_position": WIDTH, "value_dim": VALUE, "unit": UNITS,
    "residual": HIDDEN, "expert": EXPERTS, "vocabulary": VOCAB, "position": 16,
}  # fmt: skip


class Kind(Struct, frozen=True):
    """A model of some family."""

    norm: str = "rms"
    rope: str = "half"
    rotary: int = WIDTH
    gated: bool = True
    odd: bool = True
    qk_norm: str = "none"
    wide: bool = False
    tied: bool = False
    positions: str = "none"
    alibi: bool = False
    experts: bool = False
    output_gate: bool = False
    sandwich: bool = False

    @property
    def facts(self) -> Facts:
        return Facts(
            norm=self.norm, gated=self.gated, odd_up=self.gated and self.odd, rope=self.rope,
            rotary=self.rotary, head_dim=WIDTH, qk_norm=self.qk_norm, head_bias=self.alibi,
            fixed_positions=self.positions == "computed", plain_values=True, free_experts=True,
            one_width=True,
        )  # fmt: skip


def weights(kind: Kind, seed: int = 0) -> dict[Key, Array]:
    rng = np.random.default_rng(seed)

    def make(*shape: int) -> Array:
        return rng.normal(size=shape)

    heads = KV * REP
    found: dict[Key, Array] = {("embed", -1): make(VOCAB, HIDDEN), ("norm_final", -1): make(HIDDEN)}
    if not kind.tied:
        found["lm_head", -1] = make(VOCAB, HIDDEN)
    if kind.positions == "learnt":
        found["pos_embed", -1] = make(16, HIDDEN)
    for layer in range(LAYERS):
        shapes: dict[str, tuple[int, ...]] = {
            "norm_in": (HIDDEN,), "norm_post_attn": (HIDDEN,), "q": (heads * WIDTH, HIDDEN),
            "k": (KV * WIDTH, HIDDEN), "v": (KV * VALUE, HIDDEN), "o": (HIDDEN, heads * VALUE),
            "q.bias": (heads * WIDTH,), "k.bias": (KV * WIDTH,), "v.bias": (KV * VALUE,),
            "o.bias": (HIDDEN,),
        }  # fmt: skip
        if kind.qk_norm != "none":
            shapes["norm_q"] = (heads * WIDTH,) if kind.wide else (WIDTH,)
            shapes["norm_k"] = (KV * WIDTH,) if kind.wide else (WIDTH,)
        if kind.output_gate:
            shapes["output_gate"] = (heads * VALUE, HIDDEN)
        if kind.norm == "layer":
            shapes["norm_in.bias"] = (HIDDEN,)
        if kind.sandwich:
            shapes["norm_post_ffn"] = (HIDDEN,)
        if kind.experts:
            shapes["router"] = (EXPERTS, HIDDEN)
            shapes["expert_gate"] = shapes["expert_up"] = (EXPERTS, UNITS, HIDDEN)
            shapes["expert_down"] = (EXPERTS, HIDDEN, UNITS)
        else:
            shapes |= {"up": (UNITS, HIDDEN), "down": (HIDDEN, UNITS), "up.bias": (UNITS,)}
            if kind.gated:
                shapes["gate"] = (UNITS, HIDDEN)
        found |= {(role, layer): make(*shape) for role, shape in shapes.items()}
    return found


def run(kind: Kind, w: dict[Key, Array]) -> Array:
    """Logits of a fixed sequence."""
    tokens = np.array([3, 1, 4, 1, 5, 9, 2, 6])
    x = w["embed", -1][tokens]
    if kind.positions == "learnt":
        x = x + w["pos_embed", -1][: len(tokens)]
    elif kind.positions == "computed":
        angle = np.arange(len(tokens))[:, None] / 10 ** (np.arange(HIDDEN // 2) / 2)
        x = x + np.concatenate([np.sin(angle), np.cos(angle)], axis=1)
    for i in range(LAYERS):
        x = x + _attention(kind, w, i, _norm(kind.norm, x, w, "norm_in", i))
        y = _feed_forward(kind, w, i, _norm(kind.norm, x, w, "norm_post_attn", i))
        x = x + (_norm(kind.norm, y, w, "norm_post_ffn", i) if kind.sandwich else y)
    head = w["embed" if kind.tied else "lm_head", -1]
    return _norm(kind.norm, x, w, "norm_final", -1) @ head.T


def _norm(kind: str, x: Array, w: dict[Key, Array], role: str, layer: int) -> Array:
    x = x - x.mean(-1, keepdims=True) if kind == "layer" else x
    scaled = x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * w[role, layer]
    return np.asarray(scaled + w.get((f"{role}.bias", layer), 0.0))


def _rotate(kind: Kind, x: Array) -> Array:
    out = x.copy()
    for plane, (a, b) in enumerate(planes_of(kind.facts)):
        angle = np.arange(len(x)) * 0.7 / (plane + 1)
        cos, sin = np.cos(angle)[:, None, None], np.sin(angle)[:, None, None]
        out[..., a : a + 1] = cos * x[..., a : a + 1] - sin * x[..., b : b + 1]
        out[..., b : b + 1] = sin * x[..., a : a + 1] + cos * x[..., b : b + 1]
    return out


def _attention(kind: Kind, w: dict[Key, Array], i: int, x: Array) -> Array:
    def project(role: str) -> Array:
        flat = x @ w[role, i].T + w[f"{role}.bias", i]
        wide = kind.wide and kind.qk_norm != "none" and role != "v"
        flat = _norm(kind.qk_norm, flat, w, f"norm_{role}", i) if wide else flat
        heads = flat.reshape(len(x), KV * (REP if role == "q" else 1), -1)
        if kind.qk_norm != "none" and not wide and role != "v":
            heads = _norm(kind.qk_norm, heads, w, f"norm_{role}", i)
        return heads if role == "v" else _rotate(kind, heads)

    q, k, v = project("q"), project("k"), project("v")
    k, v = k.repeat(REP, axis=1), v.repeat(REP, axis=1)
    scores = np.einsum("thd,shd->hts", q, k) / 4
    distance = np.arange(len(x))[:, None] - np.arange(len(x))[None, :]
    if kind.alibi:
        scores = scores - distance * (0.5 ** np.arange(1, KV * REP + 1))[:, None, None]
    scores = np.where(distance >= 0, scores, -np.inf)
    share = np.exp(scores - scores.max(-1, keepdims=True))
    share /= share.sum(-1, keepdims=True)
    mixed = np.einsum("hts,shd->thd", share, v).reshape(len(x), -1)
    if kind.output_gate:
        mixed = mixed / (1 + np.exp(-x @ w["output_gate", i].T))
    return np.asarray(mixed @ w["o", i].T + w["o.bias", i])


def _feed_forward(kind: Kind, w: dict[Key, Array], i: int, x: Array) -> Array:
    def silu(z: Array) -> Array:
        return np.asarray(z / (1 + np.exp(-z)))

    if kind.experts:
        share = 1 / (1 + np.exp(-x @ w["router", i].T))
        share = np.where(share >= np.sort(share, axis=1)[:, -2:-1], share, 0)
        gate = silu(np.einsum("th,euh->teu", x, w["expert_gate", i]))
        up = np.einsum("th,euh->teu", x, w["expert_up", i])
        mixed = np.einsum("te,teu,ehu->th", share, gate * up, w["expert_down", i])
        return np.asarray(mixed)
    up = x @ w["up", i].T + w["up.bias", i]
    if not kind.gated:
        return silu(up) @ w["down", i].T
    return (silu(x @ w["gate", i].T) * (up if kind.odd else up + 1)) @ w["down", i].T


def act(group: SymmetryGroup, kind: Kind, w: dict[Key, Array], seed: int = 1) -> dict[Key, Array]:
    """The model with one random element of the group applied, as its members say."""
    done: dict[Key, Array] = {}
    for (name, layer), tensor in w.items():
        role = name.removesuffix(".bias")
        bias = name.endswith(".bias")
        wide = kind.wide and role in ("norm_q", "norm_k")
        words = axes_of(
            "bias" if bias else role, tensor.ndim, detail=name if bias else "", wide=wide
        )
        member = f"{role}.wide" if wide else role
        axes = {m.axis for m in group.members if m.role == member}
        moved = tensor
        for axis in range(tensor.ndim):
            if axis in axes and group.level in words[axis].split("."):
                moved = _move(group, kind, moved, words, axis, layer, seed)
        done[name, layer] = moved
    return done


def _move(
    group: SymmetryGroup,
    kind: Kind,
    x: Array,
    words: tuple[str, ...],
    axis: int,
    layer: int,
    seed: int,
) -> Array:
    """Apply the group's element to one level of one axis."""
    levels = [level for word in words for level in word.split(".")]
    shaped = x.reshape([LEVELS[level] for level in levels])
    before = [level for word in words[:axis] for level in word.split(".")]
    place = len(before) + words[axis].split(".").index(group.level)
    outer = [levels.index(level) for level in group.per if level in levels]
    lines = np.moveaxis(shaped, [*outer, place], range(len(outer) + 1)).copy()
    for cell in np.ndindex(*lines.shape[: len(outer)]):
        stage = 0 if group.per == ("model",) else layer + 1
        rng = np.random.default_rng([seed, stage, *cell])
        lines[cell] = _element(group, kind, lines[cell], rng)
    return np.moveaxis(lines, range(len(outer) + 1), [*outer, place]).reshape(x.shape)


def _element(group: SymmetryGroup, kind: Kind, x: Array, rng: np.random.Generator) -> Array:
    if group.kind == "permutation":
        while len(x) > 1:
            order = rng.permutation(len(x))
            if (order != np.arange(len(x))).any():
                return x[order]
    signs = np.ones(len(x))
    planes = planes_of(kind.facts)
    if group.kind == "quarter":
        out = x.copy()
        a, b = planes[rng.integers(len(planes))]
        out[a], out[b] = -x[b], x[a]
        return out
    if group.pairs:
        for a, b in planes[:1] + tuple(p for p in planes[1:] if rng.integers(2)):
            signs[a] = signs[b] = -1
    else:
        rest = {i for plane in planes for i in plane} if group.unrotated else set()
        free = [i for i in range(len(x)) if i not in rest]
        for i in free[:1] + [i for i in free[1:-1] if rng.integers(2)]:
            signs[i] = -1
    return x * signs.reshape(-1, *[1] * (x.ndim - 1))


KINDS = {
    "llama": Kind(),
    "tied": Kind(tied=True),
    "moe": Kind(experts=True),
    "qwen3": Kind(qk_norm="rms"),
    "olmo2": Kind(qk_norm="rms", wide=True),
    "gemma2": Kind(sandwich=True, tied=True),
    "gptj": Kind(norm="layer", rope="interleaved", rotary=4, gated=False),
    "neox": Kind(norm="layer", rotary=2, gated=False),
    "qwen3_next": Kind(rotary=2, qk_norm="rms", output_gate=True),
    "gpt2": Kind(norm="layer", rope="none", positions="learnt", gated=False, tied=True),
    "marian": Kind(norm="layer", rope="none", positions="computed", gated=False),
    "bloom": Kind(norm="layer", rope="none", alibi=True, gated=False),
    "gpt_oss": Kind(odd=False),
    "qk_layernorm": Kind(qk_norm="layer"),
}
NAMES = [
    "residual", "residual_sign", "unit", "unit_sign", "value_dim", "value_sign", "kv_head", "head",
    "plane_sign", "plane_quarter", "unrotated_sign", "expert",
]  # fmt: skip


CASES = [(f, n) for f in KINDS for n in NAMES if n != "expert" or KINDS[f].experts]


@pytest.mark.parametrize(("family", "name"), CASES)
def test_a_group_holds_exactly_where_the_table_says(family: str, name: str) -> None:
    kind, group = KINDS[family], group_named(name)
    w = weights(kind)
    if (group.pairs or group.unrotated) and kind.rope == "none":
        assert refusal(group, kind.facts) is not None
        return
    moved = act(group, kind, w)
    truth = run(kind, w)
    change = np.abs(run(kind, moved) - truth).max() / np.abs(truth).max()
    why = refusal(group, kind.facts)
    if why is None:
        assert any((moved[key] != w[key]).any() for key in w), "the element moved nothing"
        assert change < 1e-10, f"{name} changes {family}"
    elif name != "unrotated_sign" or kind.rotary < WIDTH:
        assert change > 1e-4, f"{name} leaves {family} as it is, though: {why}"


@pytest.mark.parametrize(
    ("what", "roles", "size"),
    [
        ("positions in a head", ["q", "k", "q.bias", "k.bias"], WIDTH),
        ("tokens", ["embed", "lm_head"], VOCAB),
        ("units of gate alone", ["gate"], UNITS),
        ("units without down", ["gate", "up", "up.bias"], UNITS),
        ("value dims without o", ["v", "v.bias"], VALUE),
    ],
)
def test_what_is_not_exchangeable_changes_the_function(
    what: str, roles: list[str], size: int
) -> None:
    kind = KINDS["llama"]
    w = weights(kind)
    keys = [key for key in w if key[0] in roles]
    cycle = np.roll(np.arange(size), 1)
    for key in keys:
        rows = len(w[key])
        order = (np.arange(0, rows, size)[:, None] + cycle).reshape(-1)
        w = w | {key: w[key][order]}
    truth = run(kind, weights(kind))
    assert np.abs(run(kind, w) - truth).max() / np.abs(truth).max() > 1e-4, what


def test_layers_are_not_exchangeable() -> None:
    kind = KINDS["llama"]
    w = weights(kind)
    turned = {(role, 1 - i if i >= 0 else i): x for (role, i), x in w.items()}
    assert np.abs(run(kind, turned) - run(kind, w)).max() > 1e-3


def test_planes_of_the_wrong_habit_change_the_function() -> None:
    kind = KINDS["llama"]
    wrong = replace(kind, rope="interleaved")
    w = weights(kind)
    moved = act(group_named("plane_sign"), wrong, w)
    assert np.abs(run(kind, moved) - run(kind, w)).max() > 1e-3


@pytest.mark.parametrize("level", ["latent", "query_latent"])
@pytest.mark.parametrize("sign", [False, True])
def test_latent_dimensions(level: str, sign: bool) -> None:
    """Down, a gain under RMS norm, up: the middle may be relabelled, and flipped but for gains."""
    rng = np.random.default_rng(0)
    down, gain, up = rng.normal(size=(6, 8)), rng.normal(size=6), rng.normal(size=(5, 6))
    x = rng.normal(size=(4, 8))

    def compute(a: Any, g: Any, b: Any) -> Array:
        z = x @ a.T
        return np.asarray((z / np.sqrt((z * z).mean(-1, keepdims=True)) * g) @ b.T)

    group = group_named(level + "_sign" if sign else level)
    roles = {member.role for member in group.members}
    norm = "norm_kv_a" if level == "latent" else "norm_q_a"
    assert (norm in roles) is not sign
    assert roles >= ({"mla_kv_a.k/v", "mla_kv_b.k"} if level == "latent" else {"mla_q_a"})
    order, flip = rng.permutation(6), np.array([1, -1, 1, -1, -1, 1.0])
    moved = (
        (down * flip[:, None], gain, up * flip)
        if sign
        else (down[order], gain[order], up[:, order])
    )
    np.testing.assert_allclose(compute(*moved), compute(down, gain, up), atol=1e-12)
