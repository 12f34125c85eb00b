"""Pairs of one role at chosen layers of chosen models: planned, compared, tabulated.

Confusion matrices, baselines and group means are all lists of such pairs; what differs is
which pairs, and what is done with the numbers.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from kinprint import text
from kinprint.measure.measures import measures
from kinprint.model.places import Address
from kinprint.records import Mark
from kinprint.studies.charts import Band, Bar, Bars
from kinprint.studies.comparing import SHUFFLED, TensorComparison, compare
from kinprint.studies.kin import kin_of, kin_words
from kinprint.studies.marks import worst
from kinprint.studies.results import Cell, Fact, Table
from kinprint.studies.study import StudyInput, TensorRows
from kinprint.studies.summary import Spread, rounded, spread
from kinprint.text import Message, Words
from kinprint.titles import role_title

ONCE = ("embed", "lm_head", "norm_final", "pos_embed")
"""Roles that a model has once, not once a layer."""
_COLUMNS = (
    "group", "role", "model_a", "layer_a", "model_b", "layer_b", "kin", "status", "mark", "note",
    "sample",
)  # fmt: skip


class ModelLayer(Struct, frozen=True):
    """A layer of one of the models, by their numbers."""

    model: int
    layer: int

    def tensor(self, role: str) -> TensorRows:
        """What to read there; of experts, which have no order of their own, the first."""
        expert = 0 if role.startswith("expert_") else None
        return TensorRows(self.model, Address(role, None if role in ONCE else self.layer, expert))


class LayerPair(Struct, frozen=True):
    """Two layers whose tensors of one role are to be compared; `group` says to what end."""

    a: ModelLayer
    b: ModelLayer
    role: str
    group: str = ""

    @property
    def tensors(self) -> tuple[TensorRows, TensorRows]:
        """What to read of both."""
        return self.a.tensor(self.role), self.b.tensor(self.role)


class ComparedPair(Struct, frozen=True):
    """A pair of layers and what came of comparing it.

    `name` is as `solar[10]/glm[10]`; `kin` whether the two models are said to be related.
    """

    pair: LayerPair
    comparison: TensorComparison
    name: str = ""
    kin: bool = False

    def value(self, name: str) -> float | None:
        """One measure, None where there is no value."""
        return self.comparison.value(name)


class ComparedPairs(Struct, frozen=True):
    """Pairs that were compared, to be chosen from and summed up."""

    pairs: tuple[ComparedPair, ...]

    def __iter__(self) -> Iterator[ComparedPair]:
        return iter(self.pairs)

    def __len__(self) -> int:
        return len(self.pairs)

    def only(
        self,
        *,
        role: str | None = None,
        group: str | None = None,
        layer: int | None = None,
        model: int | None = None,
    ) -> ComparedPairs:
        """Those of a role, of a group, whose first layer has a number, or of whose model."""
        wanted = ((one, one.pair) for one in self.pairs)
        return ComparedPairs(
            tuple(
                one
                for one, pair in wanted
                if role in (None, pair.role)
                and group in (None, pair.group)
                and layer in (None, pair.a.layer)
                and model in (None, pair.a.model)
            )
        )

    @property
    def apart(self) -> ComparedPairs:
        """Those of two different layers or models."""
        return ComparedPairs(tuple(one for one in self.pairs if one.pair.a != one.pair.b))

    @property
    def unrelated(self) -> ComparedPairs:
        """Those of models that nobody says are kin."""
        return ComparedPairs(tuple(one for one in self.pairs if not one.kin))

    @property
    def related(self) -> ComparedPairs:
        """Those of models that are said to be kin."""
        return ComparedPairs(tuple(one for one in self.pairs if one.kin))

    @property
    def layers(self) -> tuple[int, ...]:
        """Layers that the pairs speak of, in their order."""
        return tuple(dict.fromkeys(one.pair.a.layer for one in self.pairs))

    def spread(self, name: str) -> Spread:
        """Mean, deviation and range of one measure over the pairs that have it."""
        return spread(one.value(name) for one in self.pairs)

    def written_mean(self, name: str) -> str:
        """The mean of one measure for a sentence."""
        return rounded(self.spread(name).mean, 4)

    def facts(self, names: Sequence[str]) -> dict[str, Fact]:
        """By measure: how many pairs there are, which have a value, and their moments."""
        facts: dict[str, Fact] = {}
        for name in names:
            found = self.spread(name)
            facts[name] = {
                "pairs": len(self), "count": found.count, "mean": found.mean, "std": found.std,
                "min": found.least, "max": found.greatest, "mark": self.mark(name),
                "set": [one.name for one in self.known(name)],
            }  # fmt: skip
        return facts

    def known(self, name: str) -> ComparedPairs:
        """Those that have a value of a measure."""
        return ComparedPairs(tuple(one for one in self.pairs if one.value(name) is not None))

    def mark(self, name: str) -> Mark:
        """Where a mean of a measure comes from; what is absent from a replica tells, too."""
        marks = [one.comparison.mark(name) for one in self.pairs]
        absent = any(one.comparison.absent for one in self.pairs)
        known = [mark for mark in marks if mark is not None]
        return worst([*known, Mark.RECONSTRUCTED] if absent else known)

    def bar(self, label: Words, name: str, kind: str) -> Bar:
        """The mean of a measure, with its deviation if there are several values."""
        found = self.spread(name)
        return Bar(label, found.mean, found.deviation, kind, mark=self.mark(name))

    def bands(self, measure: str) -> tuple[Band, ...]:
        """For cosines: what the values alone give, their places shuffled; none if unknown."""
        if measure != "cosine":
            return ()
        return shuffled_band(
            (one.comparison for one in self.pairs), text.message("study.common.places-shuffled")
        )

    def note(self, measure: str) -> Words | None:
        """The same in words, for charts that have no room for a band."""
        for band in self.bands(measure):
            middle, low, high = (rounded(one, 4) for one in (band.middle, band.low, band.high))
            key = "study.common.places-shuffled-note"
            return text.words(key, middle=middle, low=low, high=high)
        return None


def shuffled_band(found: Iterable[TensorComparison], label: Message) -> tuple[Band, ...]:
    """What cosine is left on average when one vector of each pair is shuffled, and its range."""
    left = spread(one.value(SHUFFLED) for one in found)
    if left.mean is None or left.least is None or left.greatest is None:
        return ()
    return (Band(label.words(), left.mean, left.least, left.greatest),)


def measure_bars(
    name: str,
    title: Words,
    measure: str,
    bars: Iterable[Bar],
    bands: tuple[Band, ...] = (),
    note: Words | None = None,
) -> Bars:
    """Bars of a measure, written with as many digits as tell cosines near one apart."""
    label, most = measures()[measure].title, largest(measure)
    return Bars(name, title, label, tuple(bars), bands, digits=4, note=note, most=most)


def largest(measure: str) -> float | None:
    """The largest value of a measure, if it has one."""
    high = measures()[measure].range[1]
    return high if math.isfinite(high) else None


def counted(spread: Spread, digits: int = 4) -> Words:
    """A mean in words: with its deviation over how many pairs, or the value of a single one."""
    mean = rounded(spread.mean, digits)
    if spread.count == 1:
        return text.words("study.common.one-pair", mean=mean)
    key = "study.common.several-pairs"
    return text.words(key, mean=mean, std=rounded(spread.std, digits), count=spread.count)


def kin_findings(inputs: StudyInput, pairs: ComparedPairs) -> list[Words]:
    """For each role with kin among its pairs, the mean cosine without them, and who says so."""
    found = []
    for role in inputs.roles:
        mine = pairs.only(role=role)
        kin = mine.related.known("cosine")
        rest = mine.unrelated.spread("cosine")
        if len(kin) and rest.count:
            listed = ", ".join(dict.fromkeys(one.name.replace("/", " – ") for one in kin))
            key = "study.common.without-kin"
            found.append(text.words(key, role=role_title(role), kin=listed, mean=counted(rest)))
    return [*found, *kin_words(inputs)] if found else []


def layers_for(inputs: StudyInput, *models: int) -> tuple[int, ...]:
    """Layers to look at in these models, or in all, each once.

    Where a model has no layer but its first, the study's own layers stand: rows that say
    that they are missing are better than none.
    """
    return tuple(dict.fromkeys(inputs.fitted_layers(*models) or inputs.study.layers))


def tensors_of(pairs: Iterable[LayerPair]) -> list[TensorRows]:
    """Everything to be read for the pairs, each once."""
    return list(dict.fromkeys(rows for pair in pairs for rows in pair.tensors))


def compare_pairs(inputs: StudyInput, pairs: Iterable[LayerPair]) -> ComparedPairs:
    """Compare each pair, and beside every cosine what shuffling the entries leaves of it.

    A pair that came before the other way round costs only what its order changes.
    """
    wanted = _with_shuffled(inputs.measures)
    ordered = tuple(name for name in wanted if not measures()[name].symmetric)
    done: dict[LayerPair, TensorComparison] = {}
    for pair in pairs:
        a, b = map(inputs.get, pair.tensors)
        before = done.get(replace(pair, a=pair.b, b=pair.a))
        if before is None or not before.ok or before.reason:
            done[pair] = compare(a, b, wanted)
            continue
        again = compare(a, b, ordered)
        done[pair] = replace(
            before,
            values={**before.values, **again.values},
            intervals={**before.intervals, **again.intervals},
            marks={**before.marks, **again.marks},
        )
    return ComparedPairs(
        tuple(
            ComparedPair(
                pair,
                found,
                _name(inputs, pair),
                kin_of(inputs, pair.a.model, pair.b.model) is not None,
            )
            for pair, found in done.items()
        )
    )


def _name(inputs: StudyInput, pair: LayerPair) -> str:
    return "/".join(f"{inputs.names[one.model]}[{one.layer}]" for one in (pair.a, pair.b))


def pair_table(
    inputs: StudyInput, title: Words, pairs: ComparedPairs, name: str | None = None
) -> Table:
    """One row a pair: its status, how much was read, and every measure with its interval.

    Columns for intervals are there only if something was sampled. Unless it has a name of its
    own, the table is called as the study is.
    """
    shown = _with_shuffled(inputs.measures)
    bounded = [one for one in shown if any(one in each.comparison.intervals for each in pairs)]
    columns = (*_COLUMNS, *shown)
    columns += tuple(f"{one}_{side}" for one in bounded for side in ("low", "high"))
    rows: list[tuple[Cell, ...]] = []
    for each in pairs:
        pair, found = each.pair, each.comparison
        bounds = [side for one in bounded for side in found.bounds(one)]
        layers = [tensor.address.layer for tensor in pair.tensors]
        rows.append(
            (
                pair.group, pair.role, inputs.names[pair.a.model], layers[0],
                inputs.names[pair.b.model], layers[1], each.kin, found.status, found.marked,
                found.reason, found.sample,
                *(found.value(one) for one in shown), *bounds,
            )
        )  # fmt: skip
    return Table(name or inputs.study.name, title, columns, tuple(rows))


def _with_shuffled(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*names, SHUFFLED) if "cosine" in names else names))


def published_name(measure: str) -> str:
    """What the published tables call a measure; its own name if they do not have it."""
    return next(iter(measures()[measure].published), measure)


def leading(names: Sequence[str]) -> str:
    """The measure that pictures show: cosine, since that is what was argued about, if asked."""
    return "cosine" if "cosine" in names else names[0]


def chart_name(base: str, role: str, roles: Sequence[str]) -> str:
    """The name that a picture always had for the first role; others say theirs."""
    return base if role == roles[0] else f"{base}_{stem(role)}"


def stem(name: str) -> str:
    """A name as part of a file's: small letters, digits and hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "model"
