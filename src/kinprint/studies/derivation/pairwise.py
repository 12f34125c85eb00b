"""The same role at the same layer in two models: what is read, and how the two compare.

Several studies differ only in what they make of these pairs; the rule for which tensors are
asked for, and which gaps are worth a row, is here once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from kinprint.model.places import Address
from kinprint.records import Mark
from kinprint.studies.charts import Bar
from kinprint.studies.comparing import SHUFFLED, TensorComparison, compare
from kinprint.studies.marks import worst
from kinprint.studies.pairs import ONCE
from kinprint.studies.results import Cell, Fact, RowStatus
from kinprint.studies.study import ReadTensor, StudyInput, TensorRows
from kinprint.studies.summary import Spread, spread
from kinprint.text import Words
from kinprint.titles import role_title

A, B = 0, 1  # the first model, which may be the derived one, and the second
NORMS = ("norm_in", "norm_post_attn")


class TensorPair(Struct, frozen=True):
    """Two tensors that were asked for, what was read of each, and how they compare."""

    first: TensorRows
    second: TensorRows
    a: ReadTensor
    b: ReadTensor
    comparison: TensorComparison

    @property
    def role(self) -> str:
        """What both are."""
        return self.first.address.role

    @property
    def layer(self) -> int | None:
        """The layer of the first."""
        return self.first.address.layer

    @property
    def status(self) -> RowStatus:
        """Whether the two could be compared."""
        return self.comparison.status

    @property
    def raw_equal(self) -> bool | None:
        """Whether all that was read of both is stored alike, bit by bit."""
        if not self.comparison.ok or self.a.values is None or self.b.values is None:
            return None
        return self.a.dtype == self.b.dtype and self.a.values.tobytes() == self.b.values.tobytes()

    @property
    def both_missing(self) -> bool:
        """Whether neither model has such a tensor, so that there is nothing to say."""
        return self.a.status is self.b.status is RowStatus.MISSING

    def value(self, name: str) -> float | None:
        """One measure; None where it has no value."""
        return self.comparison.value(name)

    def values(self, names: Iterable[str]) -> tuple[Cell, ...]:
        """Several measures, in order."""
        return tuple(map(self.value, names))


def addresses(inputs: StudyInput, roles: Iterable[str], layers: Iterable[int]) -> Iterator[Address]:
    """Every address that roles and layers span; of experts, the first and the middle one.

    Roles outside the layers (embedding, head, last norm) have one address each.
    """
    roles = tuple(roles)
    experts = sampled_experts(inputs)
    yield from (Address(role) for role in roles if role in ONCE)
    for layer in layers:
        for role in roles:
            if role.startswith("expert_"):
                yield from (Address(role, layer, expert) for expert in experts)
            elif role not in ONCE:
                yield Address(role, layer)


def sampled_experts(inputs: StudyInput) -> tuple[int, ...]:
    """Two experts that stand for all: the first, and the middle one of the smaller model."""
    counts = [
        model.geometry.experts
        or 1 + max((one.expert for one in model.places if one.expert is not None), default=-1)
        for model in inputs.models
    ]
    least = min(filter(None, counts), default=1)
    return tuple(dict.fromkeys((0, least // 2)))


def tensors_at(inputs: StudyInput, found: Iterable[Address]) -> list[TensorRows]:
    """Both models' tensors at each address."""
    return [rows for address in found for rows in both_tensors(inputs, address)]


def both_tensors(inputs: StudyInput, address: Address) -> tuple[TensorRows, TensorRows]:
    """One tensor of both models; of shapes that differ nothing is read but that."""
    first, second = (inputs.models[model].places.get(address) for model in (A, B))
    apart = first is not None and second is not None and first.shape != second.shape
    rows = () if apart else None
    return TensorRows(A, address, rows), TensorRows(B, address, rows)


def compare_at(
    inputs: StudyInput, found: Iterable[Address], names: Sequence[str]
) -> list[TensorPair]:
    """One pair for each address that at least one of the models has.

    A role that was asked for and that neither has anywhere keeps one pair, as an answer.
    """
    pairs = [compare_tensors(inputs, *both_tensors(inputs, one), names) for one in found]
    answered = {pair.role for pair in pairs if not pair.both_missing}
    asked = inputs.request.roles is not None
    kept: list[TensorPair] = []
    for pair in pairs:
        if not pair.both_missing or (asked and pair.role not in answered):
            answered.add(pair.role)
            kept.append(pair)
    return kept


def compare_tensors(
    inputs: StudyInput,
    first: TensorRows,
    second: TensorRows,
    names: Sequence[str],
    *,
    any_rows: bool = False,
) -> TensorPair:
    """Compare two tensors that were read."""
    a, b = inputs.get_own(first), inputs.get_own(second)
    return TensorPair(first, second, a, b, compare(a, b, names, any_rows=any_rows))


def by_role(pairs: Iterable[TensorPair]) -> dict[str, list[TensorPair]]:
    """Pairs grouped by role, in their order."""
    groups: dict[str, list[TensorPair]] = {}
    for pair in pairs:
        groups.setdefault(pair.role, []).append(pair)
    return groups


def spread_of(pairs: Iterable[TensorPair], name: str) -> Spread:
    """Sum up one measure over pairs."""
    return spread(pair.value(name) for pair in pairs)


def mark_among(pairs: Iterable[TensorPair], name: str) -> Mark:
    """Where a mean of a measure comes from; what is absent from a replica tells, too."""
    found = [pair.comparison for pair in pairs]
    known = [mark for one in found if (mark := one.mark(name)) is not None]
    return worst([*known, Mark.RECONSTRUCTED] if any(one.absent for one in found) else known)


def cosine_facts(pairs: Sequence[TensorPair]) -> Fact:
    """Moments of the cosine, and beside them what is left when means or places do not count."""
    found = spread_of(pairs, "cosine")
    return {
        "mean": found.mean,
        "std": found.std,
        "min": found.least,
        "max": found.greatest,
        "count": found.count,
        "mark": mark_among(pairs, "cosine"),
        "pearson_mean": spread_of(pairs, "pearson").mean,
        "shuffled_cosine_mean": spread_of(pairs, SHUFFLED).mean,
    }


def bar_beside_chance(
    role: str, found: Spread, chance_label: Words, chance: Spread, mark: Mark = Mark.MEASURED
) -> tuple[Bar, Bar]:
    """A role's mean, and beside it what needs no relation."""
    return (
        Bar(role_title(role), found.mean, found.deviation, "pair", mark=mark),
        Bar(chance_label, chance.mean, chance.deviation, "random", mark=mark),
    )


def extra_measures(asked: Sequence[str], own: Sequence[str]) -> tuple[str, ...]:
    """Measures that were asked for beyond the columns a table has anyway."""
    return tuple(name for name in asked if name not in own)
