"""Which relabellings and sign flips of a model's tensors leave its function unchanged.

Every test of dependence takes its permutation groups from here and nowhere else: a group
that does not hold would turn similarity of features into false evidence, so a group is
offered only where all it needs is known, and otherwise says why not.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from kinprint.model.architectures import with_added
from kinprint.model.layout.parts import IN_OUT, OUT_IN
from kinprint.model.layout.sizes import Sizes
from kinprint.records import Reason, Role, weight_of
from kinprint.tables import read_table
from kinprint.text import Message, message
from kinprint.workers import Once

_GATES = {
    Role.GATE,
    Role.GATE_UP,
    Role.EXPERT_GATE,
    Role.EXPERT_GATE_UP,
    Role.SHARED_GATE,
    Role.SHARED_GATE_UP,
}


class Member(Struct, frozen=True):
    """One axis that a group acts on: a role and the axis of its logical tensor."""

    role: str
    axis: int


class SymmetryGroup(Struct, frozen=True):
    """Relabellings of one level of the axes, applied to all members together.

    `kind` is "permutation", "sign" or "quarter" (a quarter turn of a rotary plane). `per`
    names what has an element of its own: one for the model, one a layer, one a key-value
    head. With `pairs` the elements are rotary planes (see `planes_of`), with `unrotated`
    the positions that belong to no plane.
    """

    name: str
    kind: str
    level: str
    per: tuple[str, ...]
    members: tuple[Member, ...]
    needs: tuple[str, ...]
    pairs: bool = False
    unrotated: bool = False


class Facts(Struct, frozen=True):
    """What decides which groups a model has; None where it is not known.

    `rope` is "half" (j with j + width/2), "interleaved" (2j with 2j + 1) or "none";
    `rotary` is how many positions of a head are rotated; `qk_norm` is "none", "rms" or
    "layer".
    """

    norm: str | None = None
    gated: bool | None = None
    odd_up: bool | None = None
    rope: str | None = None
    rotary: int | None = None
    head_dim: int | None = None
    qk_norm: str | None = None
    head_bias: bool | None = None
    fixed_positions: bool | None = None
    latent: bool = False
    plain_values: bool | None = None
    free_experts: bool | None = None
    free_units: bool = True
    one_width: bool | None = None


# need → does it hold (None where it is not known), and why not if it does not
_NEEDS: dict[str, tuple[Callable[[Facts], bool | None], Reason]] = {
    "no_fixed_positions": (lambda f: _not(f.fixed_positions), Reason.FIXED_POSITIONS),
    "rms_norm": (lambda f: None if f.norm is None else f.norm == "rms", Reason.LAYER_NORM),
    "gated": (lambda f: f.gated, Reason.NO_GATE),
    "odd_up": (lambda f: f.odd_up, Reason.NOT_ODD_IN_UP),
    "plain_values": (lambda f: f.plain_values, Reason.VALUES_MIXED),
    "no_head_bias": (lambda f: _not(f.head_bias), Reason.HEAD_BIAS),
    "planes_known": (
        lambda f: False if f.rope == "none" else True if planes_of(f) else None,
        Reason.NO_ROTARY_EMBEDDING,
    ),
    "one_width": (lambda f: f.one_width, Reason.TWO_WIDTHS),
    "own_keys": (lambda f: not f.latent, Reason.SHARED_ROTARY_KEY),
    "no_qk_layernorm": (
        lambda f: None if f.qk_norm is None else f.qk_norm != "layer",
        Reason.QK_LAYER_NORM,
    ),
    "no_qk_norm": (
        lambda f: None if f.qk_norm is None else f.qk_norm == "none",
        Reason.QK_NORM,
    ),
    "free_units": (lambda f: f.free_units, Reason.GROUPED_UNITS),
    "free_experts": (lambda f: f.free_experts, Reason.ROUTED_IN_GROUPS),
    "latent_attention": (lambda f: f.latent, Reason.NO_LATENT_ATTENTION),
}


def _not(fact: bool | None) -> bool | None:
    return None if fact is None else not fact


@Once
def _table() -> Mapping[str, Any]:
    tables = read_table(Path(__file__).with_name("symmetries.toml"))
    return {**tables, "facts": with_added(tables["facts"], "symmetries")}


@functools.cache
def groups() -> tuple[SymmetryGroup, ...]:
    """All groups; members follow from the axes, so the two cannot disagree."""
    tables = _table()
    axes: dict[str, list[str]] = {**tables["axes"], **tables["details"]}
    found: list[SymmetryGroup] = []
    for row in tables["group"]:
        members = tuple(
            Member(role, axis)
            for role, words in axes.items()
            for axis, word in enumerate(words)
            if row["level"] in word.split(".")
            and role not in row.get("without", ())
            and role in row.get("only", axes)
        )
        found.append(
            SymmetryGroup(
                row["name"], row["kind"], row["level"], tuple(row["per"]), members,
                tuple(row["needs"]), row.get("pairs", False), row.get("unrotated", False),
            )
        )  # fmt: skip
    return tuple(found)


def group_named(name: str) -> SymmetryGroup:
    """One group by its name."""
    return next(group for group in groups() if group.name == name)


def refusal(group: SymmetryGroup, facts: Facts) -> Message | None:
    """Why a group is not known to leave the function unchanged; None where it is."""
    for need in group.needs:
        holds, otherwise = _NEEDS[need]
        answer = holds(facts)
        if answer is None:
            fact = message(f"reason.fact.{need.replace('_', '-')}")
            return Reason.NOT_KNOWN.message(fact=fact)
        if not answer:
            return otherwise.message()
    if group.unrotated and facts.rotary == facts.head_dim:
        return Reason.ALL_POSITIONS_ROTATED.message()
    return None


def axes_of(
    role: str,
    ndim: int = 2,
    orient: str = OUT_IN,
    *,
    detail: str | None = None,
    wide: bool = False,
) -> tuple[str, ...]:
    """Words for the axes of a tensor as it is stored, outermost level first in each.

    `orient` "out_in" gives the logical tensor. A bias has the first axis of the tensor it
    belongs to (`detail` "q.bias"); `wide` is for norms inside attention over all heads at once.
    Axes that nothing is known about are "none".
    """
    tables = _table()
    if role == Role.BIAS:
        owner = weight_of(detail or "")
        words = tables["details"].get(detail) or tables["axes"].get(owner, ["none"])
        words = tables["details"].get(f"{owner}.wide", words) if wide else words
        stacked = owner.startswith("expert_")
        short = words[: 2 if stacked and ndim == 2 else 1]
        return tuple(words[1:2] if stacked and ndim == 1 else short)
    details = tables["details"]
    closest = details.get(f"{detail}.{role}") or details.get(detail)
    words = closest or tables["axes"].get(role, ["none"])
    if wide:
        words = details.get(f"{detail}.wide") or details.get(f"{role}.wide", words)
    if role.startswith("expert_") and ndim == 2:  # one expert by itself
        words = words[1:]
    if len(words) != ndim:
        return ("none",) * ndim
    if orient == IN_OUT and ndim >= 2:
        words = [*words[:-2], words[-1], words[-2]]
    return tuple(words)


def planes_of(facts: Facts) -> tuple[tuple[int, int], ...]:
    """Pairs of positions in a head that rotary embedding turns together."""
    if facts.rope not in ("half", "interleaved") or not facts.rotary or not facts.head_dim:
        return ()
    half = facts.rotary // 2
    if facts.rope == "half":
        return tuple((j, j + half) for j in range(half))
    return tuple((2 * j, 2 * j + 1) for j in range(half))


def facts_of(
    config: Mapping[str, Any],
    roles: Collection[str],
    gguf: Mapping[str, object] | None = None,
    norm_bias: bool = False,
) -> Facts:
    """What a configuration and the roles present say about a model.

    `norm_bias` says that the norms of its residual stream have biases, which only layer
    norms do.
    """
    sizes, table = Sizes(config, gguf), _table()["facts"]

    def among(key: str) -> bool:
        return any(family in table[key] for family in sizes.families)

    def stated(key: str) -> bool:
        return any(sizes.value(word) not in (None, False) for word in table[key])

    lists = (
        "half", "interleaved", "latent", "plain", "learnt_positions", "head_bias",
        "fixed_positions",
    )  # fmt: skip
    known = True if any(map(among, lists)) else None
    mixed = among("mixed_values") or stated("mixed_value_keys")
    norm = _norm_of(among, stated, norm_bias, sizes) or _gguf_norm(gguf or {})
    alibi = among("alibi") or stated("alibi_keys")
    alibi = alibi or sizes.value("position_embedding_type") == "alibi"
    rope = "none" if alibi else _rope_of(among, stated, sizes)
    fixed = among("fixed_positions") or stated("fixed_position_keys")
    shifted = alibi or among("head_bias")
    placed = False if rope is not None else None
    gated = not _GATES.isdisjoint(roles)
    odd = gated and not among("not_odd_up") and not stated("not_odd_up_keys")
    qk_layer = among("qk_layernorm") or norm == "layer"
    qk_norm = (
        ("layer" if qk_layer else "rms") if {Role.NORM_Q, Role.NORM_K} & set(roles) else "none"
    )
    head_dim = sizes.get("head_dim")
    grouped = any((sizes.value(key) or 1) != 1 for key in ("n_group", "num_expert_group"))
    widths = {sizes.value(key) for key in ("word_embed_proj_dim", "embedding_size")}
    return Facts(
        norm=norm,
        gated=gated,
        odd_up=odd if known or not odd else None,
        rope=rope,
        rotary=_rotary_of(among, sizes, head_dim),
        head_dim=head_dim,
        qk_norm=qk_norm,
        head_bias=True if shifted else placed,
        fixed_positions=True if fixed else placed,
        latent=sizes.get("latent") is not None,
        plain_values=False if mixed else known,
        free_experts=not grouped and not sizes.value("num_hash_layers"),
        free_units=not among("grouped_units"),
        one_width=widths <= {None, sizes.get("hidden")} and not among("two_streams"),
    )


_Asks = Callable[[str], bool]


def _norm_of(among: _Asks, stated: _Asks, biased: bool, sizes: Sizes) -> str | None:
    if biased or among("layer_families"):
        return "layer"
    if among("rms_families") or stated("rms_keys") or sizes.value("rmsnorm") is True:
        return "rms"
    return "layer" if stated("layer_keys") else None


def _gguf_norm(metadata: Mapping[str, object]) -> str | None:
    if any(key.endswith("layer_norm_rms_epsilon") for key in metadata):
        return "rms"
    return "layer" if any(key.endswith("layer_norm_epsilon") for key in metadata) else None


def _rope_of(among: _Asks, stated: _Asks, sizes: Sizes) -> str | None:
    lists = ("learnt_positions", "head_bias", "fixed_positions", "no_positions")
    if any(map(among, lists)):
        return "none"
    if sizes.value("rope_interleave") is True or among("interleaved"):
        return "interleaved"
    if among("half"):
        return "half"
    return "unknown" if stated("rope_keys") else None


def _rotary_of(among: _Asks, sizes: Sizes, head_dim: int | None) -> int | None:
    """How many positions of a head are rotated; None where layers or families differ."""
    if head_dim is None or among("whole_planes"):
        return head_dim
    by_layer = sizes.value("rope_parameters")
    inner = by_layer.values() if isinstance(by_layer, Mapping) else ()
    if any(isinstance(rope, Mapping) and "partial_rotary_factor" in rope for rope in inner):
        return None
    stated = sizes.value("rotary_dim") or sizes.rotated
    if isinstance(stated, int) and stated > 0:
        return min(stated, head_dim)
    for key in _table()["facts"]["rotary_fraction_keys"]:
        share = sizes.value(key)
        if isinstance(share, int | float) and not isinstance(share, bool) and 0 < share <= 1:
            return int(head_dim * share)
    return None if among("partial") else head_dim
