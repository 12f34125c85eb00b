"""Whether a difference is a merge: one of the two models, made from the other and from models that
are given beside them."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from kinprint.diff.merge_family import Family, open_family, sampled_family
from kinprint.diff.merge_records import Unmerging
from kinprint.diff.merges import unmerge_models
from kinprint.diff.results import OperationFound
from kinprint.reader.fetch import Fetcher, Want, joined_wants
from kinprint.records import MergeOutcome, Operation
from kinprint.text import message

_NEARLY_ALL = 0.99  # of the numbers: what else there is would go unsaid


class Candidates(Struct, frozen=True):
    """Models beside the two that a merge may have been made from, and the base of its parents."""

    parents: tuple[str, ...] = ()
    base: str | None = None

    def __bool__(self) -> bool:
        return bool(self.parents) or self.base is not None

    def families(
        self, a: str, b: str, fetcher: Fetcher, allowance: int | None, seed: int
    ) -> list[Family]:
        """The second model as a merge of the first and others, then the other way round.

        With an allowance each reads some rows, of which both have most in common.
        """
        opened = (
            open_family(child, (other, *self.parents), self.base, fetcher)
            for child, other in ((b, a), (a, b))
        )
        if allowance is None:
            return list(opened)
        return [sampled_family(one, seed, allowance // 2) for one in opened]


def family_wants(families: Sequence[Family]) -> list[Want]:
    """All bytes that looking for a merge takes."""
    return joined_wants([want for one in families for want in one.wants()])


def find_merge(families: Sequence[Family]) -> Unmerging | None:
    """The first merge that is proved of nearly all numbers; None where none is."""
    for family in families:
        found = unmerge_models(family)
        if found.outcome is MergeOutcome.RECIPE and found.held >= _NEARLY_ALL:
            return found
    return None


def with_merge(
    operations: Sequence[OperationFound], merge: Unmerging
) -> tuple[OperationFound, ...]:
    """Operations with a merge in the place of what it explains."""
    kept = [one for one in operations if not one.kind.either_way]
    kept = [one for one in kept if one.kind is not Operation.CHANGED]
    key = "merged-sampled" if merge.sampled else "merged"
    evidence = message(f"diff.operation.{key}", equal=merge.equal, compared=merge.compared)
    return (*kept, OperationFound(Operation.MERGED, evidence))
