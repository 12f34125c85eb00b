"""Families of small models: strangers, pupils, twins of one initialisation, and descendants.

Each shape has roots of its own seeds. Half of the roots see the same text in the same order and
differ by their first weights alone, others see it in another order, others another text. Some roots
teach a pupil with first weights of its own; some have twins (their first weights, trained apart)
and children (their final weights, trained on), and all of these are merged, rounded, pruned,
laundered and attacked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any

import numpy as np
import torch
from msgspec import Struct, field
from msgspec.structs import replace

from benchmarks.calibration import surgery
from benchmarks.calibration.judging import Known
from benchmarks.calibration.surgery import Model
from benchmarks.calibration.training import Course, Parameters, Recipe, Shape, initial, pick, train

USUAL = Recipe()
OTHER = Recipe(
    rate=1.5e-3, muon=True, betas=(0.9, 0.99), decay=0.02, decline=0.3, spread=0.0, batch=12
)
"""For the collection that is set aside: Muon, a constant rate that falls at the end, other first
weights; it also has other texts and seeds."""
TOKENS = 2048


class Plan(Struct, frozen=True):
    """One shape's families: how many roots, of which the first have twins, pupils and children."""

    shape: Shape
    roots: int
    twins: int
    pupils: int
    children: int
    steps: int
    first: int
    recipe: Recipe = USUAL
    mixes: tuple[str, str] = ("python", "prose")
    hot: int = 2  # children that are trained on three times as long
    pairs: int = 200  # of strangers, at most
    aside: bool = False

    @property
    def name(self) -> str:
        """What models of the plan are called by."""
        return f"{'aside' if self.aside else 'set'} {self.shape.name}"


def _shape(width: int, depth: int, heads: int, groups: int, units: int, **other: Any) -> Shape:
    return Shape(width, depth, heads, groups, units, TOKENS, **other)


_64 = _shape(64, 4, 4, 2, 176)
_128 = _shape(128, 6, 4, 2, 352)
_256 = _shape(256, 6, 8, 4, 704)
_512 = _shape(512, 6, 8, 4, 1408)
_PLAIN_128 = _shape(128, 6, 4, 2, 512, gated=False)
_ASIDE: dict[str, Any] = {"recipe": OTHER, "mixes": ("headers", "settings"), "aside": True}
PLANS = {
    "64": Plan(_64, 16, 4, 4, 4, 3000, 1000),
    "128": Plan(_128, 14, 4, 4, 4, 3000, 2000),
    "256": Plan(_256, 12, 4, 4, 3, 1500, 3000, hot=1),
    "512": Plan(_512, 6, 3, 2, 2, 1000, 4000, hot=1),
    "768": Plan(_shape(768, 6, 12, 4, 2048), 4, 2, 2, 2, 800, 5000, hot=1),
    "1024": Plan(_shape(1024, 6, 16, 4, 2816), 4, 2, 1, 1, 700, 6000, hot=1),
    "plain-128": Plan(_PLAIN_128, 10, 2, 2, 2, 1200, 7000, hot=1),
    "plain-256": Plan(_shape(256, 4, 8, 4, 1024, gated=False), 10, 2, 2, 2, 800, 7500, hot=1),
    "aside-64": Plan(_64, 10, 3, 3, 3, 1500, 11000, hot=1, **_ASIDE),
    "aside-128": Plan(_128, 8, 3, 3, 3, 1200, 12000, hot=1, **_ASIDE),
    "aside-256": Plan(_256, 6, 2, 2, 2, 1000, 13000, hot=1, **_ASIDE),
    "aside-512": Plan(_512, 4, 1, 1, 1, 700, 14000, hot=1, **_ASIDE),
    "aside-plain-128": Plan(_PLAIN_128, 8, 2, 2, 2, 1000, 15000, hot=1, **_ASIDE),
    "toy": Plan(_shape(32, 3, 4, 2, 64), 4, 1, 1, 1, 8, 90, Recipe(batch=2), hot=1),
    "plain-toy": Plan(
        _shape(32, 3, 4, 2, 64, gated=False), 4, 1, 1, 1, 8, 290, Recipe(batch=2), hot=1
    ),
}  # fmt: skip


class Collection(Struct):
    """Models of a plan by name, the pairs among them, and how each came about."""

    plan: Plan
    models: dict[str, Model] = field(default_factory=dict)
    pairs: list[Known] = field(default_factory=list)
    tree: dict[str, dict[str, Any]] = field(default_factory=dict)

    def add(self, name: str, model: Model, how: str, parents: tuple[str, ...] = (),
            **facts: Any) -> str:  # fmt: skip
        """Keep a model, rounded to 16 bits as models are published."""
        self.models[name] = {
            part: torch.from_numpy(np.ascontiguousarray(value, np.float32))
            .to(torch.bfloat16).float().numpy()
            for part, value in model.items()
        }  # fmt: skip
        self.tree[name] = {"how": how, "parents": list(parents), **facts}
        return name


def grown(plan: Plan, texts: Mapping[str, Any], device: str) -> Collection:
    """Train one shape's families, make what is made of them, and pair them."""
    found = Collection(plan)
    shape, recipe = plan.shape, plan.recipe
    seeds = list(range(plan.first, plan.first + plan.roots))
    courses = [_course(plan, at) for at in range(plan.roots)]
    apart = {
        "other data": [Course(plan.mixes[1], plan.first + 300 + at) for at in range(plan.twins)],
        "other order": [Course(plan.mixes[0], plan.first + 400 + at) for at in range(plan.twins)],
    }
    twins = [(how, at, course) for how, each in apart.items() for at, course in enumerate(each)]
    start = initial(shape, seeds + [seeds[at] for _, at, _ in twins], recipe, device)
    every = courses + [course for _, _, course in twins]
    old, loss = train(shape, start, every, texts, recipe, plan.steps)
    roots = [f"{plan.name} root {seed}" for seed in seeds]
    for at, name in enumerate(roots):
        found.add(name, _model(old, at), "root", mix=every[at].mix, loss=loss[at])
    for at, (how, root, course) in enumerate(twins, plan.roots):
        name = found.add(
            f"{roots[root]} twin {how}", _model(old, at), f"twin, {how}", twin=roots[root],
            mix=course.mix, loss=loss[at],
        )  # fmt: skip
        found.pairs.append(Known("twin", how, roots[root], name, (roots[root],) * 2))
    for one, other in _strangers(plan):
        names = roots[one], roots[other]
        how = "other data"
        if courses[one].mix == courses[other].mix:
            how = "same order" if courses[one] == courses[other] else "other order"
        found.pairs.append(Known("stranger", how, *names, names))
    _pupils(found, texts, device, old, roots)
    for child in range(plan.children):
        _descendants(found, roots[child], roots[-1 - child])
    _children(found, texts, old, roots)
    return found


def _course(plan: Plan, at: int) -> Course:
    """Half of the roots see one text in one order, a quarter in another, the rest another text."""
    if at < (plan.roots + 1) // 2:
        return Course(plan.mixes[0], plan.first)
    mix = plan.mixes[0] if at < 3 * plan.roots // 4 else plan.mixes[1]
    return Course(mix, plan.first + 200 + at)


def _strangers(plan: Plan) -> Iterator[tuple[int, int]]:
    pairs = list(combinations(range(plan.roots), 2))
    chosen = np.random.default_rng(plan.first).permutation(len(pairs))[: plan.pairs]
    yield from (pairs[at] for at in sorted(chosen))


def _pupils(
    found: Collection, texts: Mapping[str, Any], device: str, old: Parameters, roots: list[str]
) -> None:
    plan = found.plan
    places = list(range(plan.pupils))
    start = initial(plan.shape, [plan.first + 50_000 + at for at in places], plan.recipe, device)
    lessons = [Course(plan.mixes[0], plan.first + 500 + at) for at in places]
    grown_up, loss = train(
        plan.shape, start, lessons, texts, plan.recipe, plan.steps, pick(old, places)
    )
    for at in places:
        name = found.add(
            f"{roots[at]} pupil", _model(grown_up, at), "pupil", teacher=roots[at], loss=loss[at]
        )
        found.pairs.append(Known("pupil", "taught", roots[at], name, (roots[at], name)))


def _children(
    found: Collection, texts: Mapping[str, Any], old: Parameters, roots: list[str]
) -> None:
    """Continued training, and what is made of its results."""
    plan = found.plan
    lengths = {"tuned": (0.1, 0.3, plan.children), "continued": (1.0, 1.0, plan.children),
               "hot": (3.0, 1.5, plan.hot)}  # fmt: skip
    for how, (length, rate, count) in lengths.items():
        places = list(range(count))
        courses = [Course(plan.mixes[1], plan.first + 600 + at) for at in places]
        recipe = replace(plan.recipe, rate=plan.recipe.rate * rate)
        steps = max(round(plan.steps * length), 4)
        young, loss = train(plan.shape, pick(old, places), courses, texts, recipe, steps)
        for at in places:
            found.add(
                f"{roots[at]} {how}", _model(young, at), how, (roots[at],),
                mix=courses[at].mix, loss=loss[at],
            )  # fmt: skip
    for at in range(plan.children):
        _relatives(found, roots[at], roots[-1 - at], hot=at < plan.hot)


def _relatives(found: Collection, root: str, stranger: str, hot: bool) -> None:
    """Pairs of a root with its children, as they are and laundered."""
    shape, models = found.plan.shape, found.models
    draws = np.random.default_rng(found.plan.first + 7)
    names = {how: f"{root} {how}" for how in ("tuned", "continued", *(["hot"] if hot else []))}

    def related(how: str, one: str, other: str) -> None:
        found.pairs.append(Known("descendant", how, one, other, (root, root)))

    def washed(how: str, model: Model, *parents: str) -> str:
        return found.add(
            f"{root} {how} laundered", surgery.laundered(shape, model, draws),
            f"{how}, laundered", parents or (root,),
        )  # fmt: skip

    for how, name in names.items():
        related(how, root, name)
        related(f"{how}, laundered", root, washed(how, models[name]))
    related("siblings", names["continued"], f"{root} tuned laundered")
    young = models[names["continued"]]
    four = washed("rounded", surgery.rounded(young))
    related("rounded to 4 bits, laundered", root, four)
    few = surgery.fewer_units(shape, young, 2 / 3)
    related("two thirds of units, laundered", washed("fewer units", few), root)
    shorter = surgery.fewer_layers(shape, young, shape.depth // 2)
    thin = replace(shape, depth=shape.depth - 1)
    name = found.add(f"{root} fewer layers laundered", surgery.laundered(thin, shorter, draws),
                     "one layer less, laundered", (root,))  # fmt: skip
    related("one layer less, laundered", name, root)
    narrow = surgery.fewer_channels(shape, young, 0.75, draws)
    name = found.add(f"{root} fewer channels", narrow, "three quarters of channels", (root,))
    related("three quarters of channels", name, root)
    for share in (0.5, 0.7):
        both = surgery.merged(young, models[stranger], share)
        name = washed(f"merge {share:.0%}", both, names["continued"], stranger)
        related(f"merge, {share:.0%} of it, laundered", root, name)
        rest = f"merge, {1 - share:.0%} of it, laundered"
        found.pairs.append(Known("descendant", rest, stranger, name, (stranger, stranger)))


def _descendants(found: Collection, root: str, stranger: str) -> None:
    """Copies of a root with every symmetry redrawn, attacked, or of one layer."""
    shape, models = found.plan.shape, found.models
    draws = np.random.default_rng(found.plan.first + 9)
    name = found.add(f"{root} laundered", surgery.laundered(shape, models[root], draws),
                     "laundered", (root,))  # fmt: skip
    found.pairs.append(Known("descendant", "laundered", root, name, (root, root)))
    taken = surgery.one_layer_taken(models[stranger], models[root], shape.depth // 2)
    name = found.add(f"{stranger} with a layer of {root}", taken, "one layer taken",
                     (stranger, root))  # fmt: skip
    found.pairs.append(Known("part", "one layer taken", name, root, (root, root)))
    for how, attack in surgery.ATTACKS.items():
        if "gate" not in models[root] and how != "rewritten gains":
            continue
        changed = attack(shape, models[root], draws)
        name = found.add(
            f"{root} {how}", changed if how == "rewritten gains" else
            surgery.laundered(shape, changed, draws), how, (root,),
        )  # fmt: skip
        found.pairs.append(Known("attack", how, root, name, (root, root)))
        found.pairs.append(Known("attack", f"{how}, from it", name, root, (root, root)))


def _model(weights: Parameters, at: int) -> Model:
    return {name: value[at].float().cpu().numpy() for name, value in weights.items()}
