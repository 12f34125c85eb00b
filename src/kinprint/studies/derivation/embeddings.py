"""Embeddings of the same tokens in two models, beside pairs of different tokens.

The numbers of the derivation report, and one it did not have: a token of one model against
another token of the other, which is what no relation looks like between two models.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kinprint import text
from kinprint.measure.rows import row_cosines, row_pearsons
from kinprint.studies.catalogue import Procedure, Study
from kinprint.studies.charts import Band, Bar, Bars, Lines, Series
from kinprint.studies.derivation.pairwise import A, B, rounded
from kinprint.studies.derivation.shared_tokens import SharedTokens, shared_tokens
from kinprint.studies.pairing import UNDEFINED, Spread, compare, spread, tell_gaps
from kinprint.studies.results import Cell, Fact, Result, Table
from kinprint.studies.scene import MISSING, OK, Floats, Item, Scene
from kinprint.text import Words

HIGH, LOW = 0.9, 0.1
SHOWN = 50  # tokens that the facts list one by one; the table has all
BASELINE_PAIRS = 1000


@dataclass(frozen=True, slots=True)
class _Found:
    """Every token's status and numbers, and the baselines."""

    tokens: SharedTokens
    rows: tuple[tuple[Cell, ...], ...]
    inside: tuple[Spread, Spread]
    across: Spread
    across_values: tuple[float, ...] = ()

    def values(self, column: int) -> list[float | None]:
        """Numbers of one column."""
        return [v if isinstance(v := row[column], float) else None for row in self.rows]


_COLUMNS = ("token", "a_id", "b_id", "same_id", "status", "cosine", "pearson", "reason")
_STATUS, _COSINE, _PEARSON = 4, 5, 6


def _needs(study: Study, scene: Scene) -> list[Item]:
    tokens = shared_tokens(scene)
    return list(tokens.items) if tokens.texts else []


def _run(study: Study, scene: Scene) -> Result:
    found = _measure(scene)
    table = Table(
        "embedding_comparison",
        text.words("study.embeddings.table"),
        _COLUMNS,
        found.rows,
    )
    facts = _facts(found)
    return Result(
        study.name,
        scene.names,
        (table,),
        facts,
        (_chart(scene, found) if spread(found.values(_COSINE)).count else _empty(found),),
        (*_findings(scene, found), *tell_gaps(table.column("status"))),
        scene.labels,
    )


def _measure(scene: Scene) -> _Found:
    tokens = shared_tokens(scene)
    nothing = Spread(0)
    if not tokens.texts:
        row = (None, None, None, None, MISSING, None, None, tokens.reason)
        return _Found(tokens, (row,), (nothing, nothing), nothing)
    first, second = (scene.get(item) for item in tokens.items)
    whole_pair = compare(first, second, ("cosine",), any_rows=True)
    x, y = first.values, second.values
    if x is None or y is None or x.shape != y.shape:
        rows = tuple(
            (token, a, b, a == b, whole_pair.status, None, None, whole_pair.reason)
            for token, a, b in zip(tokens.texts, tokens.a, tokens.b, strict=True)
        )
        sides = tuple(_inside(scene, side) for side in (x, y))
        return _Found(tokens, rows, (sides[A], sides[B]), nothing)
    cosines, pearsons = row_cosines(x, y), row_pearsons(x, y)
    lines = [
        (token, a, b, a == b, *_cells(float(c), float(p)))
        for token, a, b, c, p in zip(
            tokens.texts, tokens.a, tokens.b, cosines, pearsons, strict=True
        )
    ]
    shift = np.random.default_rng(scene.request.seed).permutation(len(x))
    mismatched = _others(x, y[np.roll(shift, 1)][np.argsort(shift)])
    across = spread(mismatched)
    inside = _inside(scene, x), _inside(scene, y)
    return _Found(tokens, tuple(lines), inside, across, tuple(sorted(mismatched)))


def _cells(cosine: float, pearson: float) -> tuple[Cell, ...]:
    if np.isnan(cosine):
        return UNDEFINED, None, None, "a row is zero or holds what is no number"
    return OK, cosine, None if np.isnan(pearson) else pearson, ""


def _inside(scene: Scene, rows: Floats | None) -> Spread:
    """Cosines of random pairs of different tokens inside one model."""
    if rows is None or len(rows) < 2:
        return Spread(0)
    rng = np.random.default_rng(scene.request.seed)
    left = rng.integers(0, len(rows), BASELINE_PAIRS)
    right = (left + rng.integers(1, len(rows), BASELINE_PAIRS)) % len(rows)
    return spread(_others(rows[left], rows[right]))


def _others(x: NDArray[np.float32], y: NDArray[np.float32]) -> list[float]:
    return [float(one) for one in row_cosines(x, y) if np.isfinite(one)]


def _facts(found: _Found) -> dict[str, Fact]:
    values = found.values(_COSINE)
    known = [one for one in values if one is not None]
    s = spread(values)
    high, low = sum(one > HIGH for one in known), sum(one < LOW for one in known)
    samples: list[Fact] = [
        {"token": token, "a_id": a, "b_id": b, "cosine": value}
        for token, a, b, value in zip(
            found.tokens.texts, found.tokens.a, found.tokens.b, values, strict=False
        )
    ]
    return {
        "num_tokens": s.count,
        "mean_cosine": s.mean,
        "std_cosine": s.std,
        "min_cosine": s.least,
        "max_cosine": s.greatest,
        "mean_pearson": spread(found.values(_PEARSON)).mean,
        "baseline_mean": found.inside[B].mean,
        "baseline_std": found.inside[B].std,
        "baseline_mean_a": found.inside[A].mean,
        "mismatched_mean": found.across.mean,
        "mismatched_std": found.across.std,
        "high_similarity_count": high,
        "low_similarity_count": low,
        "high_similarity_share": high / len(known) if known else None,
        "low_similarity_share": low / len(known) if known else None,
        "sample_results": samples[:SHOWN],
    }


def _chart(scene: Scene, found: _Found) -> Lines:
    known = sorted(one for one in found.values(_COSINE) if one is not None)
    series = [
        Series(text.words("study.embeddings.same-token"), _ranks(known), tuple(known), "pair"),
        Series(
            text.words("study.embeddings.another-token"),
            _ranks(found.across_values),
            found.across_values,
            "random",
        ),
    ]
    base = found.inside[B]
    bands: tuple[Band, ...] = ()
    if base.mean is not None and base.std is not None:
        name = scene.names[B]
        label = text.words("study.embeddings.band", name=name)
        bands = (Band(label, base.mean, base.mean - 2 * base.std, base.mean + 2 * base.std),)
    return Lines(
        "embedding_comparison",
        text.words("study.embeddings.chart"),
        text.words("study.embeddings.axis"),
        text.words("study.common.cosine"),
        tuple(series),
        bands,
        points=True,
    )


def _empty(found: _Found) -> Bars:
    """The picture where no token could be compared: the gap, and why."""
    reason = str(found.rows[0][-1])
    return Bars(
        "embedding_comparison",
        text.words("study.embeddings.chart"),
        text.words("measure.cosine.title"),
        (Bar(text.words("study.embeddings.shared-tokens"), None),),
        y_range=(-1.0, 1.0),
        note=text.words("study.embeddings.chart.empty", reason=reason),
    )


def _ranks(values: Sequence[float]) -> tuple[float, ...]:
    return tuple(float(at + 1) for at in range(len(values)))


def _findings(scene: Scene, found: _Found) -> tuple[Words, ...]:
    facts = _facts(found)
    if not facts["num_tokens"]:
        return (text.words("study.embeddings.finding.nothing"),)
    s = spread(found.values(_COSINE))
    return (
        text.words(
            "study.embeddings.finding.tokens",
            count=s.count,
            mean=rounded(s.mean),
            std=rounded(s.std),
            high=facts["high_similarity_count"],
            low=facts["low_similarity_count"],
            b=scene.names[B],
            base=rounded(found.inside[B].mean),
            across=rounded(found.across.mean),
        ),
    )


EMBEDDINGS = Procedure(_needs, _run)
