"""Many small language models of one shape trained at once, each with its own seeds and data.

Parameters of all models lie side by side in one tensor (models first), so that one product
trains all of them; nothing else is shared. Needs PyTorch, and an accelerator to be quick.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

Parameters = dict[str, Any]
BATCH, SPAN = 12, 160
_BETAS, _TINY, _DECAY, _CLIP = (0.9, 0.95), 1e-8, 0.1, 1.0
_STD, _WARM = 0.02, 0.08


@dataclass(frozen=True, slots=True)
class Shape:
    """What all models of a run have in common."""

    width: int
    depth: int
    heads: int
    units: int
    tokens: int
    gated: bool = True

    @property
    def name(self) -> str:
        """A short name for tables."""
        return f"{'gated' if self.gated else 'plain'} {self.width}x{self.depth}"


@dataclass(frozen=True, slots=True)
class Course:
    """How one model is trained: on which text, in which order, how fast and how long."""

    mix: str
    order: int
    rate: float = 2e-3
    steps: int = 1000


def initial(shape: Shape, seeds: Sequence[int], device: str) -> Parameters:
    """Initial weights, one model for each seed."""
    found: dict[str, list[Any]] = {}
    for seed in seeds:
        chance = torch.Generator().manual_seed(seed)
        for name, size in _sizes(shape).items():
            if name.startswith("norm"):
                value = torch.ones(size)
            else:
                scale = _STD / (2 * shape.depth) ** 0.5 if name in ("o", "down") else _STD
                value = torch.randn(size, generator=chance) * scale
            found.setdefault(name, []).append(value)
    return {name: torch.stack(values).to(device) for name, values in found.items()}


def train(
    shape: Shape,
    start: Parameters,
    courses: Sequence[Course],
    texts: Mapping[str, Any],
    teachers: Parameters | None = None,
) -> Parameters:
    """Train all models, those with courses of one length at once."""
    found = {name: value.clone() for name, value in start.items()}
    for steps in sorted({course.steps for course in courses}):
        some = [at for at, course in enumerate(courses) if course.steps == steps]
        grown = _train(
            shape, pick(start, some), [courses[at] for at in some], texts,
            None if teachers is None else pick(teachers, some),
        )  # fmt: skip
        for name, value in grown.items():
            found[name][some] = value
    return found


def pick(weights: Parameters, places: Sequence[int]) -> Parameters:
    """Some of the models, copied."""
    return {name: value[list(places)].clone() for name, value in weights.items()}


def _train(
    shape: Shape,
    start: Parameters,
    courses: Sequence[Course],
    texts: Mapping[str, Any],
    teachers: Parameters | None,
) -> Parameters:
    weights = {name: value.clone().requires_grad_(True) for name, value in start.items()}
    first = {name: torch.zeros_like(value) for name, value in start.items()}
    second = {name: torch.zeros_like(value) for name, value in start.items()}
    device = start["embed"].device
    draws = [np.random.default_rng(1000 + course.order) for course in courses]
    for step in range(courses[0].steps):
        batch = _batch(courses, texts, draws, device)
        inside, target = batch[:, :, :-1], batch[:, :, 1:]
        with torch.autocast("cuda", torch.bfloat16, enabled=device.type == "cuda"):
            told = logits(shape, weights, inside)
        if teachers is None:
            loss = _cross_entropy(told, target)
        else:
            with torch.no_grad(), torch.autocast("cuda", torch.bfloat16):
                goal = logits(shape, teachers, inside).float().softmax(-1)
            loss = -(goal * told.float().log_softmax(-1)).sum(-1).mean((1, 2))
        for value in weights.values():
            value.grad = None
        loss.sum().backward()
        rates = [_rate(course, step) for course in courses]
        _update(weights, first, second, torch.tensor(rates, device=device), step + 1)
    return {name: value.detach() for name, value in weights.items()}


def logits(shape: Shape, weights: Mapping[str, Any], tokens: Any) -> Any:
    """What each model expects next: models × texts × places × tokens."""
    models, texts, span = tokens.shape
    offset = torch.arange(models, device=tokens.device)[:, None, None] * shape.tokens
    x = weights["embed"].reshape(-1, shape.width)[tokens + offset]
    turns = _turns(span, shape.width // shape.heads, tokens.device)
    for layer in range(shape.depth):
        h = _normed(x, weights["norm_in"][:, layer])
        q, k, v = (_times(h, weights[name][:, layer]) for name in ("q", "k", "v"))
        q, k, v = (
            one.view(models * texts, span, shape.heads, -1).transpose(1, 2) for one in (q, k, v)
        )
        q, k = _turned(q, turns), _turned(k, turns)
        mixed = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        mixed = mixed.transpose(1, 2).reshape(models, texts, span, shape.width)
        x = x + _times(mixed, weights["o"][:, layer])
        h = _normed(x, weights["norm_post_attn"][:, layer])
        up = _times(h, weights["up"][:, layer])
        if shape.gated:
            up = up * torch.nn.functional.silu(_times(h, weights["gate"][:, layer]))
        else:
            up = torch.nn.functional.gelu(up)
        x = x + _times(up, weights["down"][:, layer])
    return _times(_normed(x, weights["norm_final"]), weights["head"])


def _sizes(shape: Shape) -> dict[str, tuple[int, ...]]:
    width, depth, units = shape.width, shape.depth, shape.units
    sizes: dict[str, tuple[int, ...]] = {
        "embed": (shape.tokens, width),
        "head": (shape.tokens, width),
        "norm_in": (depth, width),
        "norm_post_attn": (depth, width),
        "norm_final": (width,),
        "up": (depth, units, width),
        "down": (depth, width, units),
    }
    sizes |= dict.fromkeys(("q", "k", "v", "o"), (depth, width, width))
    return sizes | ({"gate": (depth, units, width)} if shape.gated else {})


def _batch(
    courses: Sequence[Course],
    texts: Mapping[str, Any],
    draws: Sequence[np.random.Generator],
    device: Any,
) -> Any:
    """Random windows of each model's text."""
    found: list[NDArray[np.int64]] = []
    for course, chance in zip(courses, draws, strict=True):
        text = texts[course.mix]
        starts = chance.integers(0, len(text) - SPAN - 1, BATCH)
        found.append(np.stack([text[at : at + SPAN + 1] for at in starts]).astype(np.int64))
    return torch.from_numpy(np.stack(found)).to(device, non_blocking=True)


def _cross_entropy(told: Any, target: Any) -> Any:
    """The mean loss of each model."""
    flat = torch.nn.functional.cross_entropy(
        told.float().flatten(0, 2), target.flatten(), reduction="none"
    )
    return flat.view(len(told), -1).mean(1)


def _update(
    weights: Parameters, first: Parameters, second: Parameters, rates: Any, step: int
) -> None:
    """One step of AdamW for every model, each with its own rate; gradients clipped by model."""
    with torch.no_grad():
        squares = sum((one.grad.flatten(1) ** 2).sum(1) for one in weights.values())
        scale = (_CLIP / (squares.sqrt() + 1e-6)).clamp(max=1.0)
        for name, value in weights.items():
            wide = (len(value), *([1] * (value.dim() - 1)))
            grad = value.grad * scale.view(wide)
            first[name].lerp_(grad, 1 - _BETAS[0])
            second[name].lerp_(grad * grad, 1 - _BETAS[1])
            size = (second[name] / (1 - _BETAS[1] ** step)).sqrt_().add_(_TINY)
            change = first[name] / (1 - _BETAS[0] ** step) / size
            if not name.startswith("norm"):
                change = change + _DECAY * value
            value.sub_(rates.view(wide) * change)


def _rate(course: Course, step: int) -> float:
    """Warm-up, then a cosine down to a tenth."""
    done = step / course.steps
    if done < _WARM:
        return course.rate * (done / _WARM + 1 / course.steps)
    rest = (done - _WARM) / (1 - _WARM)
    return float(course.rate * (0.1 + 0.45 * (1 + np.cos(np.pi * rest))))


def _times(x: Any, matrix: Any) -> Any:
    models = len(matrix)
    found = torch.bmm(x.reshape(models, -1, x.shape[-1]), matrix.transpose(1, 2))
    return found.view(*x.shape[:-1], -1)


def _normed(x: Any, gains: Any) -> Any:
    size = x.float().pow(2).mean(-1, keepdim=True).add(1e-6).rsqrt()
    return (x.float() * size * gains[:, None, None, :]).to(x.dtype)


def _turns(span: int, size: int, device: Any) -> tuple[Any, Any]:
    rates = 10000.0 ** (-torch.arange(0, size, 2, device=device) / size)
    angles = torch.outer(torch.arange(span, device=device), rates).repeat(1, 2)
    return angles.cos(), angles.sin()


def _turned(x: Any, turns: tuple[Any, Any]) -> Any:
    left, right = x.chunk(2, -1)
    return (x * turns[0] + torch.cat((-right, left), -1) * turns[1]).to(x.dtype)
