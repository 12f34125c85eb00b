"""Two tensors side by side: whether they can be compared, their measures, and how sure.

Every study that compares goes through here, so that a shape mismatch, a missing layer or a
value that is no number becomes the same kind of row everywhere, and a number from a sample
of rows never stands without its interval.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from kinprint import text
from kinprint.measure.measures import measure, measures
from kinprint.studies.results import Cell
from kinprint.studies.sampling import RUN
from kinprint.studies.scene import MISMATCH, MISSING, OK, Floats, Item, Scene, Taken
from kinprint.text import Words

UNDEFINED = "undefined"
REFERENCE_DEPTH = 46
"""Layers of the shallower of the two models for which the published studies chose layers."""
_LEVEL = 0.95
# A sample bounds these from one side at best: leaving out rows says nothing about the rest.
_WITHOUT_INTERVAL = frozenset({"max_abs_diff", "p99_abs_diff", "p99_gap", "raw_hash_equal"})
# These grow with the number of values, so a sample is no estimate of the whole.
_OF_THE_SAMPLE = frozenset({"l2"})


@dataclass(frozen=True, slots=True)
class Compared:
    """One pair of tensors: measures by name, or the status and reason why there are none.

    The first measure decides the status: where it has no value, the pair is "undefined". A
    measure without a value is None, and `reason` says why even where others have one.
    `intervals` has 95 % bounds for measures taken from a sample of rows, and nothing for
    tensors that were read whole. `read` of `height` rows were compared.
    """

    status: str
    reason: str = ""
    values: Mapping[str, float | None] = field(default_factory=dict)
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    read: int | None = None
    height: int | None = None

    @property
    def ok(self) -> bool:
        """Whether anything could be measured."""
        return self.status == OK

    @property
    def sample(self) -> str:
        """Rows compared of all rows, as `16/1024`; empty for vectors and failures."""
        return "" if self.read is None else f"{self.read}/{self.height}"

    def value(self, name: str) -> float | None:
        """One measure; None where it has no value or was not asked for."""
        return self.values.get(name)

    def bounds(self, name: str) -> tuple[float | None, float | None]:
        """Its interval; two Nones where the tensors were read whole."""
        return self.intervals.get(name, (None, None))


@dataclass(frozen=True, slots=True)
class Spread:
    """Mean, population deviation and range of the values that are there."""

    count: int
    mean: float | None = None
    std: float | None = None
    least: float | None = None
    greatest: float | None = None

    @property
    def deviation(self) -> float | None:
        """The deviation where there is one to speak of: a single value has none."""
        return self.std if self.count > 1 else None


def compare(a: Taken, b: Taken, names: Iterable[str], *, any_rows: bool = False) -> Compared:
    """Measure two tensors by the named measures.

    Shapes must agree as a whole, for the same rows were then read of both; `any_rows` is
    for rows that were paired by meaning, such as tokens, and asks for equal widths only.
    """
    failed = [one for one in (a, b) if one.status != OK]
    if failed:
        reasons = dict.fromkeys(one.reason for one in failed)
        return Compared(failed[0].status, "; ".join(reasons))
    assert a.values is not None and b.values is not None
    x, y = a.values, b.values
    if x.shape != y.shape or (a.shape != b.shape and not any_rows):
        return Compared(MISMATCH, f"{shape_text(a.shape)} against {shape_text(b.shape)}")
    read, height = (None, None) if a.rows is None or a.shape is None else (len(a.rows), a.shape[0])
    return _measured(x, y, tuple(names), read, height, a.sampled)


def default_layers(scene: Scene, wanted: Sequence[int], *models: int) -> tuple[int, ...]:
    """Layers to look at: those asked for, else a study's own, fitted to the models' depth.

    A study's own layers are taken as they are if each of the models (all, if none are named)
    is deep enough for the last of them. If not, all of them are scaled by the least depth
    over the depth of the published models (46), rounded; a layer other than 0 stays other
    than 0, because the first layer is unlike the rest. Two that fall together count once.
    """
    if scene.request.layers is not None:
        return scene.request.layers
    which = models or range(len(scene.models))
    depth = min((depth_of(scene, at) for at in which), default=0)
    if not wanted or depth > max(wanted):
        return tuple(wanted)
    scaled = (min(max(round(one * depth / REFERENCE_DEPTH), 1), depth - 1) for one in wanted if one)
    first = (0,) if 0 in wanted else ()
    return tuple(dict.fromkeys((*first, *(one for one in scaled if one > 0))))


def all_layers(scene: Scene, *models: int) -> tuple[int, ...]:
    """Layers to look at: those asked for, else all that any of these models counts as its own.

    Layers that a checkpoint has beyond its configured depth predict further tokens; they
    are no part of the stack that is compared.
    """
    if scene.request.layers is not None:
        return scene.request.layers
    which = models or range(len(scene.models))
    found = {
        layer
        for at in which
        for layer in scene.models[at].layers()
        if layer < (scene.models[at].geometry.layers or layer + 1)
    }
    return tuple(sorted(found))


def own(scene: Scene, item: Item) -> Taken:
    """What was read for an item, unless it lies beyond the layers that count as the model's."""
    layer, depth = item.address.layer, scene.models[item.model].geometry.layers
    if scene.request.layers is None and layer is not None and depth and layer >= depth:
        name = scene.models[item.model].name
        return Taken(MISSING, f"{name} has {depth} layers; layer {layer} is beyond them")
    return scene.get(item)


def depth_of(scene: Scene, model: int) -> int:
    """How many layers a model's text stack has: the configuration's word, else its tensors'."""
    opened = scene.models[model]
    return opened.geometry.layers or len(opened.layers())


def wanted_roles(scene: Scene, own: Sequence[str]) -> tuple[str, ...]:
    """Roles to look at: those asked for, else the study's own."""
    return tuple(own) if scene.request.roles is None else scene.request.roles


def wanted_measures(scene: Scene, own: Sequence[str]) -> tuple[str, ...]:
    """Measures to take: those asked for, else the study's own."""
    return tuple(own) if scene.request.measures is None else scene.request.measures


def spread(values: Iterable[float | None]) -> Spread:
    """Sum up what is there; deviations divide by n, as the published ones do."""
    known = np.array([one for one in values if one is not None and math.isfinite(one)])
    if not len(known):
        return Spread(0)
    parts = known.mean(), known.std(), known.min(), known.max()
    return Spread(len(known), *map(float, parts))


def shape_text(shape: Sequence[int] | None) -> str:
    """A shape as published tables write it, `(1024, 4096)`."""
    return "" if shape is None else str(tuple(shape))


def tell_gaps(statuses: Iterable[Cell] | Mapping[str, int]) -> tuple[Words, ...]:
    """A sentence about rows that could not be compared, or nothing if all could."""
    counted = Counter(statuses if isinstance(statuses, Mapping) else map(str, statuses))
    total = counted.total()
    rest = {status: count for status, count in counted.items() if status != OK and count}
    if not rest:
        return ()
    listed = ", ".join(f"{status} {count}" for status, count in sorted(rest.items()))
    count = sum(rest.values())
    return (text.words("study.common.gaps", count=count, total=total, listed=listed),)


def _measured(
    x: Floats, y: Floats, names: tuple[str, ...], read: int | None, height: int | None, part: bool
) -> Compared:
    values: dict[str, float | None] = {}
    intervals: dict[str, tuple[float, float]] = {}
    reasons: dict[str, str] = {}
    for name in names:
        found = measure(name, x, y)
        values[name] = found.value if found.ok else None
        if not found.ok:
            reasons[name] = _why(found.status, found.detail)
        elif part and read is not None and height is not None:
            bounds = _interval(name, x, y, found.value, read / height)
            if bounds is not None:
                intervals[name] = bounds
    status = UNDEFINED if names and names[0] in reasons else OK
    same = len(set(reasons.values())) == 1 and len(reasons) == len(names)
    told = [next(iter(reasons.values()))] if same else [f"{k}: {v}" for k, v in reasons.items()]
    return Compared(status, "; ".join(told), values, intervals, read, height)


def _why(status: str, detail: str) -> str:
    if status == UNDEFINED:
        return text.say(f"measure.reason.{detail}", "en")
    return f"{status} {detail}".strip()


def _interval(
    name: str, x: Floats, y: Floats, value: float, share: float
) -> tuple[float, float] | None:
    """Bounds for the whole tensor, from leaving out each run of sampled rows in turn.

    The jackknife (Efron and Stein 1981) over runs, since neighbouring rows were drawn
    together, with Student's t and the correction for a finite whole.
    """
    from scipy.special import stdtrit

    if name in _WITHOUT_INTERVAL or name in _OF_THE_SAMPLE:
        return None
    starts = range(0, len(x), RUN)
    if len(starts) < 3:
        return None
    left_out = []
    for start in starts:
        kept = np.r_[0:start, min(start + RUN, len(x)) : len(x)]
        found = measure(name, x[kept], y[kept])
        if not found.ok:
            return None
        left_out.append(found.value)
    runs = len(left_out)
    error = math.sqrt((runs - 1) * float(np.var(left_out)) * (1 - share))
    reach = float(stdtrit(runs - 1, 0.5 + _LEVEL / 2)) * error
    low, high = measures()[name].range
    return max(low, value - reach), min(high, value + reach)
