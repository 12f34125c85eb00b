"""What shapes decide where names lie.

They do so in a few known ways: a fused matrix called up, a router called gate. Element
counts tell.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from kinprint.model.geometry import Geometry
from kinprint.model.names.patterns import Pattern
from kinprint.model.names.tables import PACKED, Word
from kinprint.model.names.words import FEED_FORWARD, GATE_OR_ROUTER
from kinprint.records import FEED_FORWARDS, Role, plain_role

_EXPERTS = ("moe_num_experts", "num_experts", "num_local_experts", "n_routed_experts", "n_experts")
_NORMS = (Role.NORM_IN, Role.NORM_POST_ATTN, Role.NORM_PRE_FFN, Role.NORM_POST_FFN)
_MODULATION = Word(Role.OTHER, "modulation")

Found = dict[int, Word | None]


def expert_count(config: Mapping[str, Any], geometry: Geometry) -> int | None:
    """Number of experts, also from the nested settings that geometry does not read."""
    if geometry.experts is not None:
        return geometry.experts
    for name in ("ffn_config", "moe_config", "text_config"):
        inner = config.get(name)
        for key in _EXPERTS if isinstance(inner, Mapping) else ():
            if isinstance(inner, Mapping) and isinstance(value := inner.get(key), int):
                return value
    return None


def settle(patterns: Sequence[Pattern], found: Found, experts: int | None) -> int | None:
    """Correct the words of one stack by what its shapes and neighbours say.

    Returns the number of experts, which the router's shape tells where nothing else does.
    A matrix that is called a norm gives a norm what it scales by.
    """
    members = [p for p in patterns if found.get(id(p)) is not None and p.is_weight]
    modulated = {p.parts for p in members if _word(found, p).role in _NORMS and _is_matrix(p)}
    found.update({id(p): _MODULATION for p in patterns if p.parts in modulated})
    for pattern in members:
        word = _word(found, pattern)
        if word.role in FEED_FORWARD and _stacked(pattern):
            found[id(pattern)] = Word(Role(f"expert_{word.role}"))
    roles = {_word(found, pattern).role for pattern in members}
    sparse = any(role.of_experts for role in roles)
    for pattern in members:
        word = _word(found, pattern)
        if word == GATE_OR_ROUTER:
            routing = sparse or (experts is not None and experts in pattern.shape)
            found[id(pattern)] = Word(Role.ROUTER if routing else Role.GATE)
        elif word.role.shared and not sparse and Role.ROUTER not in roles:
            found[id(pattern)] = replace(word, role=Role(plain_role(word.role)))
    for wrap in FEED_FORWARDS:
        _fuse(members, found, wrap)
    roles = {_word(found, pattern).role for pattern in members}
    if Role.NORM_POST_ATTN not in roles:
        for pattern in members:
            if _word(found, pattern) == Word(Role.NORM_PRE_FFN):
                found[id(pattern)] = Word(Role.NORM_POST_ATTN)
    for pattern in members:
        if _word(found, pattern).role is Role.ROUTER and len(pattern.shape) == 2:
            return experts or min(pattern.shape)
    return experts


def _fuse(members: Iterable[Pattern], found: Found, wrap: str) -> None:
    """Call a matrix gate_up if it has twice the elements of its down projection.

    On average: files with some of either may be missing.
    """
    own = [p for p in members if _word(found, p).role.startswith(wrap)]
    alike = {
        role: [p for p in own if _word(found, p).role == f"{wrap}{role}"] for role in FEED_FORWARD
    }
    if alike[Role.GATE] or alike[Role.GATE_UP] or not (alike[Role.UP] and alike[Role.DOWN]):
        return
    (up, ups), (down, downs) = (
        (sum(p.numbers for p in alike[role]), sum(p.tensors for p in alike[role]))
        for role in (Role.UP, Role.DOWN)
    )
    if up * downs == 2 * down * ups > 0:
        for pattern in own:
            if _word(found, pattern).role == f"{wrap}up":
                found[id(pattern)] = Word(Role(f"{wrap}gate_up"))


def _stacked(pattern: Pattern) -> bool:
    shape = pattern.shape
    return len(shape) >= 3 and shape[-1] > 1 and pattern.ending != PACKED


def _is_matrix(pattern: Pattern) -> bool:
    return len(pattern.shape) == 2 and min(pattern.shape) > 1 and len({*pattern.shape}) > 1


def _word(found: Found, pattern: Pattern) -> Word:
    word = found[id(pattern)]
    assert word is not None
    return word
