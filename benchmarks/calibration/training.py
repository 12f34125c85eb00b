"""Many small language models of one shape trained at once, each with its own seeds and data.

Parameters of all models lie side by side in one tensor (models first), so that one product trains
all of them; nothing else is shared. A step is captured once as a graph and replayed, with batches
and rates of all steps laid out on the device beforehand. Needs PyTorch, and an accelerator to be
quick.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from msgspec import Struct
from torch.nn import functional

Parameters = dict[str, Any]
SPAN = 256
_TINY, _CLIP, _WARM = 1e-8, 1.0, 0.06
_MATRICES = ("q", "k", "v", "o", "gate", "up", "down")


class Shape(Struct, frozen=True):
    """What all models of a run have in common."""

    width: int
    depth: int
    heads: int
    groups: int
    units: int
    tokens: int
    gated: bool = True

    @property
    def name(self) -> str:
        """A short name for tables."""
        return f"{'gated' if self.gated else 'plain'} {self.width}x{self.depth}"

    @property
    def size(self) -> int:
        """Rows of a head."""
        return self.width // self.heads

    def sizes(self) -> dict[str, tuple[int, ...]]:
        """The shape of every parameter of one model."""
        width, depth, units, shared = self.width, self.depth, self.units, self.groups * self.size
        sizes: dict[str, tuple[int, ...]] = {
            "embed": (self.tokens, width),
            "head": (self.tokens, width),
            "norm_in": (depth, width),
            "norm_post_attn": (depth, width),
            "norm_final": (width,),
            "q": (depth, width, width),
            "k": (depth, shared, width),
            "v": (depth, shared, width),
            "o": (depth, width, width),
            "up": (depth, units, width),
            "down": (depth, width, units),
        }
        return sizes | ({"gate": (depth, units, width)} if self.gated else {})


class Recipe(Struct, frozen=True):
    """How models of a collection are trained: the optimiser, its schedule and the first weights.

    `muon` trains matrices of the layers by orthogonalised momentum (Jordan et al. 2024), the rest
    by Adam. `decline` is the share of the steps over which the rate falls, to a tenth: along a
    cosine if it is one, else in a line after a constant rate. `spread` is the deviation of first
    weights; 0 takes one over the root of the width. `rank` is that of adapters (LoRA, arXiv
    2106.09685) which are trained in place of all weights; 0 for none.
    """

    rate: float = 2e-3
    muon: bool = False
    betas: tuple[float, float] = (0.9, 0.95)
    decay: float = 0.1
    decline: float = 1.0
    spread: float = 0.02
    batch: int = 16
    rank: int = 0


class Course(Struct, frozen=True):
    """On which text one model is trained, in which order, and the seed of its adapter."""

    mix: str
    order: int
    seed: int = 0


def initial(shape: Shape, seeds: Sequence[int], recipe: Recipe, device: str) -> Parameters:
    """Initial weights, one model for each seed."""
    found: dict[str, list[Any]] = {}
    spread = recipe.spread or shape.width**-0.5
    for seed in seeds:
        chance = torch.Generator().manual_seed(seed)
        for name, size in shape.sizes().items():
            if name.startswith("norm"):
                value = torch.ones(size)
            else:
                scale = spread / (2 * shape.depth) ** 0.5 if name in ("o", "down") else spread
                value = torch.randn(size, generator=chance) * scale
            found.setdefault(name, []).append(value)
    return {name: torch.stack(values).to(device) for name, values in found.items()}


def pick(weights: Parameters, places: Sequence[int]) -> Parameters:
    """Some of the models, copied."""
    return {name: value[list(places)].clone() for name, value in weights.items()}


def train(
    shape: Shape,
    start: Parameters,
    courses: Sequence[Course],
    texts: Mapping[str, Any],
    recipe: Recipe,
    steps: int,
    teachers: Parameters | None = None,
) -> tuple[Parameters, list[float]]:
    """Train all models together; their weights, and the loss of each at the end.

    `texts` are token arrays on the device by the name of the mix. With `teachers`, each model
    learns what the teacher at its place says, and not the text.
    """
    step = _Step(shape, start, courses, texts, recipe, steps, teachers)
    device = start["embed"].device
    if device.type != "cuda":
        for _ in range(steps):
            step()
    else:
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                step()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            step()
        for _ in range(steps - 3):  # capturing ran nothing
            graph.replay()
        torch.cuda.synchronize()
    return {name: value.detach() for name, value in step.whole().items()}, step.loss.tolist()


class _Step:
    """One step of training; everything that changes between steps lies on the device."""

    def __init__(
        self,
        shape: Shape,
        start: Parameters,
        courses: Sequence[Course],
        texts: Mapping[str, Any],
        recipe: Recipe,
        steps: int,
        teachers: Parameters | None,
    ) -> None:
        device = start["embed"].device
        self.shape, self.recipe = shape, recipe
        self.kind = torch.bfloat16 if device.type == "cuda" else torch.float32
        self.start = start
        trained = _adapters(start, courses, recipe.rank) if recipe.rank else start
        self.weights = {name: value.clone().requires_grad_() for name, value in trained.items()}
        self.first = {name: torch.zeros_like(value) for name, value in trained.items()}
        self.second = {name: torch.zeros_like(value) for name, value in trained.items()}
        self.teachers = None
        if teachers is not None:
            self.teachers = _cast(teachers, self.kind)
        names = sorted(texts)
        lengths = [len(texts[name]) for name in names]
        self.text = torch.cat([texts[name] for name in names])
        begins = np.cumsum([0, *lengths])
        starts = np.empty((steps, len(courses), recipe.batch), np.int64)
        for at, course in enumerate(courses):
            which = names.index(course.mix)
            draws = np.random.default_rng(1000 + course.order)
            starts[:, at] = begins[which] + draws.integers(
                0, lengths[which] - SPAN - 1, (steps, recipe.batch)
            )
        self.starts = torch.from_numpy(starts).to(device)
        self.window = torch.arange(SPAN + 1, device=device)
        numbers = np.arange(steps)
        rates = [_rate(recipe, steps, number) for number in range(steps)]
        self.rates = torch.tensor(rates, device=device, dtype=torch.float32)
        self.unbiased = torch.tensor(
            np.stack([1 - beta ** (numbers + 1.0) for beta in recipe.betas], 1),
            device=device, dtype=torch.float32,
        )  # fmt: skip
        self.number = torch.zeros(1, dtype=torch.long, device=device)
        self.loss = torch.zeros(len(courses), device=device)
        self.turns = _turns(SPAN, shape.size, device)

    def __call__(self) -> None:
        starts = self.starts.index_select(0, self.number)[0]
        batch = self.text[starts[..., None] + self.window]
        inside, target = batch[..., :-1], batch[..., 1:]
        told = logits(self.shape, _cast(self.whole(), self.kind), inside, self.turns)
        if self.teachers is None:
            flat = functional.cross_entropy(
                told.float().flatten(0, 2), target.flatten(), reduction="none"
            )
            loss = flat.view(len(told), -1).mean(1)
        else:
            with torch.no_grad():
                goal = logits(self.shape, self.teachers, inside, self.turns).float().softmax(-1)
            loss = -(goal * told.float().log_softmax(-1)).sum(-1).mean((1, 2))
        grads = torch.autograd.grad(loss.sum(), list(self.weights.values()))
        with torch.no_grad():
            self._update(dict(zip(self.weights, grads, strict=True)))
            self.loss.copy_(loss)
            self.number += 1

    def whole(self) -> Parameters:
        """All weights, adapters merged."""
        if not self.recipe.rank:
            return self.weights
        changed = {
            name: self.start[name] + self.weights[f"{name}.out"] @ self.weights[f"{name}.in"]
            for name in _MATRICES
            if name in self.start
        }
        return {**self.start, **changed}

    def _update(self, grads: Parameters) -> None:
        """Gradients clipped by model, then a step of the optimiser."""
        recipe = self.recipe
        squares = sum(grad.flatten(1).square().sum(1) for grad in grads.values())
        scale = (_CLIP / (squares.sqrt() + 1e-6)).clamp(max=1.0)
        rate = self.rates.index_select(0, self.number)
        unbiased = self.unbiased.index_select(0, self.number)[0]
        for name, value in self.weights.items():
            grad = grads[name] * scale.view(-1, *([1] * (value.dim() - 1)))
            matrix = recipe.muon and name in _MATRICES
            if matrix:
                self.first[name].mul_(0.95).add_(grad)
                change = _orthogonal(grad + 0.95 * self.first[name])
                change = change * (0.2 * max(value.shape[-2:]) ** 0.5)
            else:
                self.first[name].lerp_(grad, 1 - recipe.betas[0])
                self.second[name].lerp_(grad.square(), 1 - recipe.betas[1])
                size = (self.second[name] / unbiased[1]).sqrt_().add_(_TINY)
                change = self.first[name].div(unbiased[0]).div_(size)
            if not name.startswith("norm"):
                change = change + recipe.decay * value
            value.sub_(rate * change)


def _adapters(start: Parameters, courses: Sequence[Course], rank: int) -> Parameters:
    """First weights of adapters: those at the input at random, those at the output zero."""
    found = {}
    for name in _MATRICES:
        if name not in start:
            continue
        _, depth, height, width = start[name].shape
        draws = [
            torch.randn(
                (depth, rank, width), generator=torch.Generator().manual_seed(course.seed)
            ) * width**-0.5
            for course in courses
        ]  # fmt: skip
        device = start[name].device
        found[f"{name}.in"] = torch.stack(draws).to(device)
        found[f"{name}.out"] = torch.zeros((len(courses), depth, height, rank), device=device)
    return found


def logits(shape: Shape, weights: Mapping[str, Any], tokens: Any, turns: tuple[Any, Any]) -> Any:
    """What each model expects next: models × texts × places × tokens."""
    models, texts, span = tokens.shape
    kind = weights["q"].dtype
    offset = torch.arange(models, device=tokens.device)[:, None, None] * shape.tokens
    x = weights["embed"].reshape(-1, shape.width)[tokens + offset].float()
    for layer in range(shape.depth):
        h = _normed(x, weights["norm_in"][:, layer], kind)
        q, k, v = (
            _times(h, weights[name][:, layer])
            .view(models * texts, span, -1, shape.size)
            .transpose(1, 2)
            for name in ("q", "k", "v")
        )
        q, k = _turned(q, turns), _turned(k, turns)
        k, v = (one.repeat_interleave(shape.heads // shape.groups, 1) for one in (k, v))
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        mixed = mixed.transpose(1, 2).reshape(models, texts, span, shape.width)
        x = x + _times(mixed, weights["o"][:, layer])
        h = _normed(x, weights["norm_post_attn"][:, layer], kind)
        up = _times(h, weights["up"][:, layer])
        if shape.gated:
            up = up * functional.silu(_times(h, weights["gate"][:, layer]))
        else:
            up = functional.gelu(up)
        x = x + _times(up, weights["down"][:, layer])
    return _times(_normed(x, weights["norm_final"], kind), weights["head"])


def _cast(weights: Mapping[str, Any], kind: Any) -> Parameters:
    """Matrices in the precision of products; gains stay as they are."""
    return {
        name: value if name.startswith("norm") else value.to(kind)
        for name, value in weights.items()
    }


def _orthogonal(matrix: Any) -> Any:
    """The polar factor of each matrix, roughly, by five steps of a quintic iteration."""
    x = matrix.flatten(0, -3).to(torch.bfloat16 if matrix.is_cuda else torch.float32)
    tall = x.shape[-2] > x.shape[-1]
    x = x.transpose(1, 2) if tall else x
    x = x / (x.flatten(1).norm(dim=1)[:, None, None] + 1e-7)
    for _ in range(5):
        gram = x @ x.transpose(1, 2)
        x = 3.4445 * x + (-4.7750 * gram + 2.0315 * gram @ gram) @ x
    x = x.transpose(1, 2) if tall else x
    return x.reshape(matrix.shape).float()


def _rate(recipe: Recipe, steps: int, number: int) -> float:
    """Warm-up, then down to a tenth."""
    done = (number + 1) / steps
    if done < _WARM:
        return float(recipe.rate * done / _WARM)
    if recipe.decline < 1:
        rest = max(0.0, (done - 1 + recipe.decline) / recipe.decline)
        return float(recipe.rate * (1 - 0.9 * rest))
    rest = (done - _WARM) / (1 - _WARM)
    return float(recipe.rate * (0.1 + 0.45 * (1 + np.cos(np.pi * rest))))


def _times(x: Any, matrix: Any) -> Any:
    models = len(matrix)
    found = torch.bmm(x.reshape(models, -1, x.shape[-1]), matrix.transpose(1, 2))
    return found.view(*x.shape[:-1], -1)


def _normed(x: Any, gains: Any, kind: Any) -> Any:
    size = x.square().mean(-1, keepdim=True).add(1e-6).rsqrt()
    return (x * size * gains[:, None, None, :]).to(kind)


def _turns(span: int, size: int, device: Any) -> tuple[Any, Any]:
    rates = 10000.0 ** (-torch.arange(0, size, 2, device=device) / size)
    angles = torch.outer(torch.arange(span, device=device), rates).repeat(1, 2)
    return angles.cos(), angles.sin()


def _turned(x: Any, turns: tuple[Any, Any]) -> Any:
    left, right = x.chunk(2, -1)
    return (x * turns[0] + torch.cat((-right, left), -1) * turns[1]).to(x.dtype)
