"""What people call roles and measures, in both languages."""

from __future__ import annotations

from kinprint.measure.measures import measures
from kinprint.text import Words

_ROLES = {
    "norm_in": Words("input norm", "입력 norm"),
    "norm_post_attn": Words("post-attention norm", "어텐션 뒤 norm"),
    "norm_pre_ffn": Words("pre-MLP norm", "MLP 앞 norm"),
    "norm_post_ffn": Words("post-MLP norm", "MLP 뒤 norm"),
    "norm_mlp": Words("MLP norm", "MLP norm"),
    "norm_final": Words("final norm", "마지막 norm"),
    "q": Words("query", "쿼리"),
    "k": Words("key", "키"),
    "v": Words("value", "밸류"),
    "o": Words("attention output", "어텐션 출력"),
    "gate": Words("MLP gate", "MLP gate"),
    "up": Words("MLP up", "MLP up"),
    "down": Words("MLP down", "MLP down"),
    "router": Words("router", "라우터"),
    "expert_gate": Words("expert gate", "전문가 gate"),
    "expert_up": Words("expert up", "전문가 up"),
    "expert_down": Words("expert down", "전문가 down"),
    "shared_gate": Words("shared expert gate", "공유 전문가 gate"),
    "shared_up": Words("shared expert up", "공유 전문가 up"),
    "shared_down": Words("shared expert down", "공유 전문가 down"),
    "embed": Words("embedding", "임베딩"),
    "lm_head": Words("output head", "출력 헤드"),
}


def role_title(role: str) -> Words:
    """A role's name for people; its own where there is no better one."""
    return _ROLES.get(role) or Words(role, role)


def measure_title(measure: str) -> Words:
    """A measure's name for people."""
    title = measures()[measure].title
    return Words(title["en"], title["ko"])
