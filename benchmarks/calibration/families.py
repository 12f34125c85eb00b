"""Families of small models: strangers, pupils, twins of one initialisation, and descendants.

Each shape has roots of its own seeds. Some are paired as strangers, no root twice; some teach
a pupil with a seed of its own; some have twins (their initial weights, trained apart) and
children (their final weights, trained on).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from benchmarks.calibration.training import Course, Parameters, Shape, initial, pick, train
from kinprint.lineage.reading.sample import Attention, Embedding, Sample, Units
from kinprint.model.symmetries import Facts

MIXES = ("python", "headers", "prose")
_KIN, _TEACHERS = 8, 8
_RATES, _LENGTHS, _GRID = (2e-3, 1e-3, 4e-4, 1.5e-4), (150, 400, 1000), 3
_TWINS: dict[str, dict[str, Any]] = {
    "other data": {"mix": 1},
    "other order": {"mix": 0},
    "other data, short": {"mix": 1, "steps": 0.25},
    "other data, gentle": {"mix": 1, "rate": 0.25},
    "other order, long": {"mix": 0, "steps": 2.0},
}
_CHILDREN: dict[str, dict[str, Any]] = {
    "tuned": {"mix": 0, "steps": 0.15, "rate": 0.15},
    "continued": {"mix": 1},
    "continued, long": {"mix": 1, "steps": 2.0},
    "continued, hot": {"mix": 2, "rate": 1.5},
}


@dataclass(frozen=True, slots=True)
class Known:
    """Two models of which it is known how they are related."""

    truth: str
    how: str
    one: Sample
    other: Sample
    roots: tuple[str, str]


def families(
    shape: Shape, strangers: int, texts: Mapping[str, Any], steps: int, device: str, first: int
) -> list[Known]:
    """Train one shape's families and pair them; `first` is the first seed."""
    count = _KIN + _TEACHERS + 2 * strangers
    seeds = list(range(first, first + count))
    usual = [Course(MIXES[at % 3], order=seed, steps=steps) for at, seed in enumerate(seeds)]
    twins = [(root, how) for root in range(_KIN) for how in _TWINS]
    courses = usual + [_course(usual[root], 50_000 + at, **_TWINS[how]) for at, (root, how) in
                       enumerate(twins)]  # fmt: skip
    start = initial(shape, seeds + [seeds[root] for root, _ in twins], device)
    grown = train(shape, start, courses, texts)
    children = [(root, how) for root in range(_KIN) for how in _CHILDREN]
    again = [_course(usual[root], 60_000 + at, **_CHILDREN[how])
             for at, (root, how) in enumerate(children)]  # fmt: skip
    raised = train(shape, pick(grown, [root for root, _ in children]), again, texts)
    teachers = list(range(_KIN, _KIN + _TEACHERS))
    lessons = [replace(usual[at], order=70_000 + at) for at in teachers]
    pupils = train(
        shape,
        initial(shape, [seed + 100_000 for seed in seeds[_KIN : _KIN + _TEACHERS]], device),
        lessons, texts, pick(grown, teachers),
    )  # fmt: skip
    old, young, taught = (samples(shape, one) for one in (grown, raised, pupils))

    def known(truth: str, how: str, one: Sample, other: Sample, *names: str) -> Known:
        return Known(truth, how, one, other, (names[0], names[-1]))

    roots = [f"{shape.name} {seed}" for seed in seeds]
    found = [
        known("same-init", how, old[root], old[count + at], roots[root])
        for at, (root, how) in enumerate(twins)
    ]
    found += [
        known("related", how, old[root], young[at], roots[root])
        for at, (root, how) in enumerate(children)
    ]
    found += [
        known("related", "siblings", young[at + 1], young[at + 3], roots[root])
        for at, (root, how) in enumerate(children)
        if how == "tuned"
    ]
    found += [
        known("stranger", "pupil", old[at], taught[place], roots[at], f"{roots[at]} pupil")
        for place, at in enumerate(teachers)
    ]
    rest = range(_KIN + _TEACHERS, count, 2)
    found += [
        known("stranger", "apart", old[at], old[at + 1], roots[at], roots[at + 1]) for at in rest
    ]
    return found


def gentle_families(shape: Shape, texts: Mapping[str, Any], device: str, first: int) -> list[Known]:
    """Twins on the same data in another order, and descendants, over rates and lengths.

    Same-init pairs are hardest to tell where training changed little: these have both models
    trained alike, from a little to a lot.
    """
    found: list[Known] = []
    plan = [(rate, steps, seed) for steps in _LENGTHS for rate in _RATES for seed in range(_GRID)]
    seeds = [first + at for at in range(len(plan))]
    for order in (0, 1):
        mixes = [MIXES[seed % 3] for _, _, seed in plan]
        start = initial(shape, seeds * 2, device)
        courses = [
            Course(mixes[at] if turn == 0 or order == 0 else MIXES[(seed + 1) % 3],
                   order=seeds[at] + 80_000 * turn, rate=rate, steps=steps)
            for turn in (0, 1) for at, (rate, steps, seed) in enumerate(plan)
        ]  # fmt: skip
        grown = train(shape, start, courses, texts)
        again = [replace(course, order=course.order + 7) for course in courses[len(plan) :]]
        young = train(shape, pick(grown, range(len(plan))), again, texts)
        old, children = samples(shape, grown), samples(shape, young)
        for at, (rate, steps, _) in enumerate(plan):
            how = f"{'other order' if order == 0 else 'other data'}, rate {rate:g}, {steps} steps"
            root = f"{shape.name} {seeds[at]}"
            names = (root, root)
            found.append(Known("same-init", how, old[at], old[len(plan) + at], names))
            found.append(Known("related", how, old[at], children[at], names))
    return found


def samples(shape: Shape, weights: Parameters) -> list[Sample]:
    """What the tests see of each model: everything, rounded to 16 bits as models are published."""
    plain = {
        name: value.to(torch.bfloat16).float().cpu().numpy() for name, value in weights.items()
    }
    return [
        _sample(shape, {name: value[at] for name, value in plain.items()}, at)
        for at in range(len(plain["embed"]))
    ]


def _sample(shape: Shape, one: Mapping[str, Any], at: int) -> Sample:
    size = shape.width // shape.heads
    layers = range(shape.depth)
    norms = {(role, layer): one[role][layer] for role in ("norm_in", "norm_post_attn")
             for layer in layers}  # fmt: skip
    norms["norm_final", -1] = one["norm_final"]
    index = np.arange(shape.units)
    units = {
        layer: Units(
            index, shape.units, one["up"][layer], np.ascontiguousarray(one["down"][layer].T),
            one["gate"][layer] if shape.gated else None,
        )
        for layer in layers
    }  # fmt: skip
    heads = (shape.heads, size, shape.width)
    attention = {
        layer: Attention(
            q=one["q"][layer].reshape(heads),
            k=one["k"][layer].reshape(heads),
            v=one["v"][layer].reshape(heads),
            o=np.ascontiguousarray(one["o"][layer].T).reshape(heads),
            rotated=size,
        )
        for layer in layers
    }
    ids = np.arange(shape.tokens)
    tokens = tuple(f"token {number}".encode() for number in ids)
    facts = Facts(
        norm="rms", gated=shape.gated, odd_up=shape.gated, rope="half", rotary=size, head_dim=size,
        qk_norm="none", head_bias=False, fixed_positions=False, plain_values=True,
        free_experts=True, one_width=True,
    )  # fmt: skip
    key = f"{shape.name} {at} {float(np.abs(one['embed']).sum())!r}"
    return Sample(
        key, key, shape.width, shape.depth, facts, norms=norms, units=units, attention=attention,
        embedding=Embedding(tokens, ids, one["embed"]),
    )  # fmt: skip


def _course(usual: Course, order: int, mix: int, steps: float = 1.0, rate: float = 1.0) -> Course:
    mixes = MIXES[(MIXES.index(usual.mix) + mix) % len(MIXES)]
    return Course(mixes, order, usual.rate * rate, max(round(usual.steps * steps), 1))
