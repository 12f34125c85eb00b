"""Embeddings of the same tokens in two models, beside pairs of different tokens.

The numbers of the derivation report, and one it did not have: a token of one model against
another token of the other, which is what no relation looks like between two models.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from kinprint import text
from kinprint.measure.rows import row_cosines, row_pearsons
from kinprint.studies.charts import Band, Bar, Bars, Lines, Series
from kinprint.studies.comparing import compare
from kinprint.studies.derivation.pairwise import A, B
from kinprint.studies.derivation.shared_tokens import EMBED, TokenRule, shared_tokens
from kinprint.studies.results import Cell, Fact, Output, RowStatus, Table
from kinprint.studies.study import Floats, Procedure, StudyInput, TensorRows
from kinprint.studies.summary import Spread, rounded, spread
from kinprint.text import Words

HIGH, LOW = 0.9, 0.1
SHOWN = 50  # tokens that the facts list one by one; the table has all
BASELINE_PAIRS = 1000
PUBLISHED_PAIRS, PUBLISHED_IDS = 50, range(1000, 10_000)
"""How many random pairs the report took inside the second model, and of which tokens."""
_COLUMNS = ("token", "a_id", "b_id", "same_id", "status", "cosine", "pearson", "reason")


class _Token(Struct, frozen=True):
    """A token that both models have, and how alike its two rows are."""

    text: str | None
    a: int | None
    b: int | None
    status: RowStatus
    cosine: float | None = None
    pearson: float | None = None
    reason: str = ""

    @property
    def cells(self) -> tuple[Cell, ...]:
        """The row of the table."""
        same = None if self.a is None else self.a == self.b
        return (
            self.text, self.a, self.b, same, self.status, self.cosine, self.pearson, self.reason,
        )  # fmt: skip


class _Comparison(Struct, frozen=True):
    """Every token, and cosines of different tokens inside each model and across the two."""

    tokens: tuple[_Token, ...]
    inside: tuple[Spread, Spread]
    rule: TokenRule = TokenRule.WORDS
    across: tuple[float, ...] = ()
    reason: str = ""  # why there is nothing to compare

    @property
    def cosines(self) -> list[float]:
        """Those of the tokens that have one."""
        return [token.cosine for token in self.tokens if token.cosine is not None]


def _procedure(rule: TokenRule) -> Procedure:
    def needs(inputs: StudyInput) -> list[TensorRows]:
        tokens = shared_tokens(inputs, rule=rule)
        return [*tokens.tensors, *_baseline(inputs, rule)] if tokens.texts else []

    def run(inputs: StudyInput) -> Output:
        found = _compare(inputs, rule)
        rows = tuple(token.cells for token in found.tokens)
        table = Table("embedding_comparison", text.words("study.embeddings.table"), _COLUMNS, rows)
        facts = _facts(found)
        chart = _chart(inputs, found) if found.cosines else _empty_chart(found)
        findings = (text.words(f"study.embeddings.rule.{rule}"), _finding(inputs, found, facts))
        return Output((table,), facts, (chart,), (*findings, *table.gaps))

    return Procedure(needs, run)


def _baseline(inputs: StudyInput, rule: TokenRule) -> list[TensorRows]:
    """Rows of the random pairs that the report took inside the second model."""
    place = inputs.models[B].places.get(EMBED)
    rows = place.shape[0] if place is not None and place.shape is not None else 0
    ids = PUBLISHED_IDS[: max(rows - PUBLISHED_IDS.start, 0)]
    if rule is TokenRule.WORDS or len(ids) < 2 * PUBLISHED_PAIRS:
        return []
    rng = np.random.default_rng(inputs.request.seed)
    chosen = rng.choice(np.array(ids), 2 * PUBLISHED_PAIRS, replace=False)
    return [TensorRows(B, EMBED, tuple(map(int, chosen)))]


def _compare(inputs: StudyInput, rule: TokenRule) -> _Comparison:
    shared = shared_tokens(inputs, rule=rule)
    if not shared.texts:
        nothing = _Token(None, None, None, RowStatus.MISSING, reason=shared.reason)
        return _Comparison((nothing,), (Spread(0), Spread(0)), rule, reason=shared.reason)
    first, second = map(inputs.get, shared.tensors)
    x, y = first.values, second.values
    inside = _inside(inputs, x), _inside(inputs, y)
    for rows in _baseline(inputs, rule):
        pairs = inputs.get(rows).values
        if pairs is not None:
            inside = inside[A], spread(_known_cosines(pairs[::2], pairs[1::2]))
    if x is None or y is None or x.shape != y.shape:
        whole = compare(first, second, ("cosine",), any_rows=True)
        tokens = [_Token(*token, whole.status, reason=whole.reason) for token in shared.each()]
        return _Comparison(tuple(tokens), inside, rule, reason=whole.reason)
    measured = zip(row_cosines(x, y), row_pearsons(x, y), strict=True)
    tokens = [
        _token(token, float(cosine), float(pearson))
        for token, (cosine, pearson) in zip(shared.each(), measured, strict=True)
    ]
    shift = np.random.default_rng(inputs.request.seed).permutation(len(x))
    across = _known_cosines(x, y[np.roll(shift, 1)][np.argsort(shift)])
    return _Comparison(tuple(tokens), inside, rule, tuple(across))


def _token(token: tuple[str, int, int], cosine: float, pearson: float) -> _Token:
    if math.isnan(cosine):
        reason = text.sentence("study.reason.no-direction")
        return _Token(*token, RowStatus.UNDEFINED, reason=reason)
    return _Token(*token, RowStatus.OK, cosine, None if math.isnan(pearson) else pearson)


def _inside(inputs: StudyInput, rows: Floats | None) -> Spread:
    """Cosines of random pairs of different tokens inside one model."""
    if rows is None or len(rows) < 2:
        return Spread(0)
    rng = np.random.default_rng(inputs.request.seed)
    left = rng.integers(0, len(rows), BASELINE_PAIRS)
    right = (left + rng.integers(1, len(rows), BASELINE_PAIRS)) % len(rows)
    return spread(_known_cosines(rows[left], rows[right]))


def _known_cosines(x: Floats, y: Floats) -> list[float]:
    return [float(cosine) for cosine in row_cosines(x, y) if np.isfinite(cosine)]


def _facts(found: _Comparison) -> dict[str, Fact]:
    known, across = spread(found.cosines), spread(found.across)
    high = sum(cosine > HIGH for cosine in found.cosines)
    low = sum(cosine < LOW for cosine in found.cosines)
    samples: list[Fact] = [
        {"token": token.text, "a_id": token.a, "b_id": token.b, "cosine": token.cosine}
        for token in found.tokens[:SHOWN]
        if token.text is not None
    ]
    return {
        "tokens": str(found.rule),
        "baseline_pairs": found.inside[B].count,
        "num_tokens": known.count or None,
        "mean_cosine": known.mean,
        "std_cosine": known.std,
        "min_cosine": known.least,
        "max_cosine": known.greatest,
        "mean_pearson": spread(token.pearson for token in found.tokens).mean,
        "baseline_mean": found.inside[B].mean,
        "baseline_std": found.inside[B].std,
        "baseline_mean_a": found.inside[A].mean,
        "mismatched_mean": across.mean,
        "mismatched_std": across.std,
        "high_similarity_count": high if known.count else None,
        "low_similarity_count": low if known.count else None,
        "high_similarity_share": high / known.count if known.count else None,
        "low_similarity_share": low / known.count if known.count else None,
        "sample_results": samples,
    }


def _chart(inputs: StudyInput, found: _Comparison) -> Lines:
    """The cosines of equal and of different tokens, each in rising order."""
    base = found.inside[B]
    bands: tuple[Band, ...] = ()
    if base.mean is not None and base.std is not None:
        label = text.words("study.embeddings.band", name=inputs.names[B])
        bands = (Band(label, base.mean, base.mean - 2 * base.std, base.mean + 2 * base.std),)
    return Lines(
        "embedding_comparison",
        text.words("study.embeddings.chart"),
        text.words("study.embeddings.axis"),
        text.words("study.common.cosine"),
        (
            _ranked(text.words("study.embeddings.same-token"), found.cosines, "pair"),
            _ranked(text.words("study.embeddings.another-token"), found.across, "random"),
        ),
        bands,
        points=True,
    )


def _ranked(label: Words, values: Sequence[float], kind: str) -> Series:
    ranks = tuple(float(at + 1) for at in range(len(values)))
    return Series(label, ranks, tuple(sorted(values)), kind)


def _empty_chart(found: _Comparison) -> Bars:
    """The picture where no token could be compared: the gap, and why."""
    reason = found.reason or found.tokens[0].reason
    return Bars(
        "embedding_comparison",
        text.words("study.embeddings.chart"),
        text.words("measure.cosine.title"),
        (Bar(text.words("study.embeddings.shared-tokens"), None),),
        y_range=(-1.0, 1.0),
        note=text.words("study.embeddings.chart.empty", reason=reason),
    )


def _finding(inputs: StudyInput, found: _Comparison, facts: dict[str, Fact]) -> Words:
    if not found.cosines:
        return text.words("study.embeddings.finding.nothing")
    return text.words(
        "study.embeddings.finding.tokens",
        count=facts["num_tokens"],
        mean=rounded(facts["mean_cosine"]),
        std=rounded(facts["std_cosine"]),
        high=facts["high_similarity_count"],
        low=facts["low_similarity_count"],
        b=inputs.names[B],
        base=rounded(found.inside[B].mean),
        across=rounded(facts["mismatched_mean"]),
    )


EMBEDDINGS = _procedure(TokenRule.WORDS)
AS_PUBLISHED = _procedure(TokenRule.PRINTABLE)
