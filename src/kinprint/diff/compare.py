"""Two models, and what changed from the first to the second."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from kinprint.diff.changes import reading_cost, tensor_changes
from kinprint.diff.direction import Direction, direction_beside_weights, log_wants
from kinprint.diff.given import beyond_base
from kinprint.diff.mapping import find_correspondence, find_tokens, numbered_tokens
from kinprint.diff.merge_operation import Candidates, family_wants, find_merge, with_merge
from kinprint.diff.operations import find_operations, with_trace, without_trace
from kinprint.diff.pairing import Correspondence, pair_tensors, tied_head
from kinprint.diff.results import Diff, OperationFound, TensorChange
from kinprint.diff.sampled_parts import linked_layers
from kinprint.diff.sampling import ALLOWANCE, SamplePlan
from kinprint.diff.structure import Sizes
from kinprint.errors import naming
from kinprint.lineage.about.description import CommonTokens
from kinprint.lineage.compare import compare_models
from kinprint.lineage.opening import labels_of, note_about
from kinprint.lineage.planning import plan_comparison
from kinprint.lineage.results import Comparison, ComparisonPlan, Settings
from kinprint.model.model import Model
from kinprint.model.opening import need_adapter, open_model
from kinprint.reader.checkpoint import Checkpoint, open_checkpoint
from kinprint.reader.fetch import Fetcher, Want, side_by_side
from kinprint.records import TAKEN_OVER, Cost, Relation, Role
from kinprint.text import Message, message

_MOSTLY_EQUAL = 0.9  # of the numbers of matrices that are not zero in both; on a grid of three
# levels strangers have a quarter


def diff_models(
    a: str,
    b: str,
    fetcher: Fetcher,
    settings: Settings,
    sample: bool | None = None,
    given: str | None = None,
    parents: Sequence[str] = (),
) -> Diff:
    """Say what changed from one model to another, tensor by tensor.

    Parameters
    ----------
    a, b
        The models, the earlier one first.
    fetcher
        Reads, within its budget.
    settings
        The budget, the seed of samples, the base of an adapter.
    sample
        Whether to read some rows of each tensor; None for models that are not on this machine.
    given
        A base that both were made from: what they share beyond it is said too.
    parents
        Models that one of the two may be a merge of, with the other.
    """
    pair = _open(a, b, fetcher, settings)
    sampled = pair.remote if sample is None else sample
    candidates = Candidates(tuple(parents), given)
    shares = _Shares(settings, sampled, bool(candidates))
    limited = shares.comparing
    beyond = None if given is None else beyond_base(a, b, given, fetcher, limited)
    beside = 0 if given is None else 1
    compared = compare_models(a, b, fetcher, limited, hashes=False, details=sampled, beside=beside)
    relation = compared.verdict.relation
    if sampled:
        known = pair.sampled_map(compared)
    elif relation.linked and relation is not Relation.IDENTICAL:
        known = find_correspondence(*pair.models)
    else:
        tokens, spelt = find_tokens(*pair.models)
        known = Correspondence(tokens=tokens, spelt=spelt)
    tensors = pair.changes(known, shares.allowance, settings.seed)
    sizes = Sizes.of(pair.models[0]), Sizes.of(pair.models[1])
    gone = without_trace(compared.verdict.parts)
    operations: tuple[OperationFound, ...] = ()
    if _is_taken_over(relation, tensors):
        linked = with_trace(compared.verdict.parts)
        operations = find_operations(tensors, known, sizes, gone, linked, sampled=sampled)
    merge = None
    if operations and candidates:
        families = candidates.families(a, b, fetcher, shares.allowance, settings.seed)
        merge = find_merge(families)
        operations = operations if merge is None else with_merge(operations, merge)
    either_way = any(one.kind.either_way for one in operations)
    notes = [note_about(one.ref.name, note) for one in pair.checkpoints for note in one.notes]
    tied = tied_head(*pair.models)
    if tied is not None and any(one.role == Role.LM_HEAD and one.read for one in tensors):
        notes.append(note_about(tied.model.name, message("diff.note.tied-head")))
    if operations and parents and merge is None:
        notes.append(message("diff.merge.none"))
    elif operations and merge is None:
        notes += _declared_merges(compared)
    return Diff(
        pair.checkpoints[0].ref,
        pair.checkpoints[1].ref,
        tensors,
        relation,
        operations,
        known,
        sampled=sampled,
        cost=fetcher.spent,
        beyond=beyond,
        direction=pair.direction(compared.tokens) if either_way else None,
        merge=merge,
        candidates=candidates.parents,
        notes=tuple(dict.fromkeys(notes)),
        labels=labels_of(pair.checkpoints),
    )


def plan_diff(
    a: str,
    b: str,
    fetcher: Fetcher,
    settings: Settings,
    sample: bool | None = None,
    given: str | None = None,
    parents: Sequence[str] = (),
) -> ComparisonPlan:
    """What a diff would cost: that of a comparison, then that of reading tensors."""
    pair = _open(a, b, fetcher, settings)
    sampled = pair.remote if sample is None else sample
    models = (a, b) if given is None else (a, b, given)
    candidates = Candidates(tuple(parents), given)
    shares = _Shares(settings, sampled, bool(candidates))
    found = plan_comparison(models, fetcher, shares.comparing)
    tokens = numbered_tokens(*pair.models)
    pairs = pair_tensors(*pair.models, Correspondence(tokens=tokens))
    if shares.allowance is not None:
        cost = SamplePlan(*pair.models, pairs, shares.allowance, settings.seed).cost
    else:
        cost = reading_cost(*pair.models, pairs)
    cost += _cost(fetcher, log_wants(pair.checkpoints))
    costs = [cost]
    if candidates:
        families = candidates.families(a, b, fetcher, shares.allowance, settings.seed)
        costs.append(_cost(fetcher, family_wants(families)))
    limit = found.limit + sum(one.bytes for one in costs)
    if settings.budget is not None:
        limit = min(limit, settings.budget)
    return replace(found, stages=(*found.stages, *costs), limit=limit)


def _cost(fetcher: Fetcher, wants: Sequence[Want]) -> Cost:
    return sum((plan.cost for plan in fetcher.plan(wants)), Cost())


def _declared_merges(compared: Comparison) -> Iterator[Message]:
    """What models say they are merges of: claims, which are shown and never counted."""
    for ref, subject in zip((compared.a, compared.b), compared.subjects, strict=True):
        named = [one.model for one in subject.claims if one.relation == "merge"]
        if named:
            models = ", ".join(dict.fromkeys(named))
            yield message("diff.merge.declared", model=ref.name, models=models)


class _Pair(Struct, frozen=True):
    """Two models that were opened."""

    checkpoints: tuple[Checkpoint, Checkpoint]
    models: tuple[Model, Model]

    @property
    def remote(self) -> bool:
        """Whether one of them is not on this machine."""
        return any(one.ref.kind != "local" for one in self.checkpoints)

    def sampled_map(self, compared: Comparison) -> Correspondence:
        """Layers and tokens that correspond, as far as a comparison has found them."""
        layers = linked_layers(compared)
        sizes = [Sizes.of(model).tokens for model in self.models]
        if sizes[0] == sizes[1]:
            return Correspondence(layers)
        tokens, spelt = find_tokens(*self.models, sampled=True)
        return Correspondence(layers, tokens=tokens, spelt=spelt)

    def direction(self, tokens: CommonTokens | None) -> Direction:
        """Which came first; vocabularies are asked where a comparison has read them and they
        differ."""
        told = tokens is not None and tokens.a != tokens.b
        vocabularies = [one.vocabulary() if told else None for one in self.models]
        return direction_beside_weights(self.checkpoints, vocabularies)

    def changes(
        self, known: Correspondence, allowance: int | None, seed: int
    ) -> tuple[TensorChange, ...]:
        """What became of each tensor; with an allowance, from some rows."""
        pairs = pair_tensors(*self.models, known)
        if allowance is not None:
            plan = SamplePlan(*self.models, pairs, allowance, seed)
            return tuple(plan.changes())
        return tuple(tensor_changes(*self.models, pairs, turned=known.turned is not None))


def _open(a: str, b: str, fetcher: Fetcher, settings: Settings) -> _Pair:
    def opened(name: str) -> tuple[Checkpoint, Model]:
        with naming(name):
            checkpoint = open_checkpoint(name, fetcher)
            model = open_model(checkpoint, settings.base)
            model.locate(list(model.places))
            return checkpoint, model

    (first, one), (second, other) = side_by_side(opened, [a, b])
    need_adapter((one, other), settings.base, pair=True)
    return _Pair((first, second), (one, other))


class _Shares(Struct, frozen=True):
    """How a budget is shared out before anything is read: equal parts for the comparison, for rows
    of tensors, and for those of a merge where one is looked for. What reads all tensors has no
    parts."""

    settings: Settings
    sampled: bool
    merging: bool

    @property
    def comparing(self) -> Settings:
        """How a comparison is read."""
        if self.settings.budget is None or not self.sampled:
            return self.settings
        return replace(self.settings, budget=self._part)

    @property
    def allowance(self) -> int | None:
        """What samples of tensors may cost, and those of a merge; None where all is read."""
        if not self.sampled:
            return None
        return ALLOWANCE if self.settings.budget is None else min(ALLOWANCE, self._part)

    @property
    def _part(self) -> int:
        return (self.settings.budget or 0) // (3 if self.merging else 2)


def _is_taken_over(relation: Relation, tensors: Sequence[TensorChange]) -> bool:
    """Whether one model has weights of the other: a comparison says so, or most numbers are equal.

    A copy whose parts were all renumbered and flipped shows only when that is undone.
    """
    numbers = equal = 0.0
    for one in tensors:
        if one.changed is not None and len(one.shape) > 1:
            numbers += one.numbers * (1.0 - one.zeros)
            equal += one.numbers * (1.0 - one.zeros - one.changed.value)
    return relation in TAKEN_OVER or (numbers > 0 and equal >= _MOSTLY_EQUAL * numbers)
