"""Mean similarity by type of tensor, over all layers.

The table the derivation report argued from: norms alike, everything else not. Beside every
cosine stands what shuffling leaves of it, because that is where norms get theirs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kinprint import text
from kinprint.studies.catalogue import Procedure, Study
from kinprint.studies.charts import Bar, Bars
from kinprint.studies.derivation.pairwise import (
    A,
    B,
    Row,
    addresses,
    by_role,
    cells,
    extra_columns,
    items_for,
    rounded,
    row_of,
    rows_for,
    spread_of,
)
from kinprint.studies.derivation.shared_tokens import EMBED, SharedTokens, shared_tokens
from kinprint.studies.pairing import (
    all_layers,
    shape_text,
    tell_gaps,
    wanted_measures,
    wanted_roles,
)
from kinprint.studies.results import Cell, Fact, Result, Table
from kinprint.studies.scene import Item, Scene
from kinprint.studies.titles import role_title
from kinprint.text import Words

EMBED_TOKENS = 64
_MEASURES = ("cosine", "relative_rmse", "pearson", "shuffled_cosine")
_COLUMNS = (
    "layer", "key", "status", "cosine", "rel_rmse", "raw_hash_equal", "a_shape", "b_shape", "note",
    "role", "expert", "key_b", "pearson", "shuffled_cosine", "cosine_low", "cosine_high", "sample",
)  # fmt: skip


def needed(study: Study, scene: Scene) -> list[Item]:
    """Both models' tensors of all types; of embeddings, the rows of shared tokens."""
    roles = wanted_roles(scene, study.roles)
    inside = [role for role in roles if role != EMBED.role]
    items = items_for(scene, addresses(scene, inside, all_layers(scene)))
    if EMBED.role in roles:
        tokens = shared_tokens(scene, EMBED_TOKENS)
        items += tokens.items if tokens.texts else [Item(A, EMBED), Item(B, EMBED)]
    return items


def type_rows(study: Study, scene: Scene) -> tuple[list[Row], SharedTokens | None]:
    """One row a tensor, and the tokens that stand for the embedding."""
    roles = wanted_roles(scene, study.roles)
    names = (*_MEASURES, *extra_columns(wanted_measures(scene, study.measures), _MEASURES))
    inside = [role for role in roles if role != EMBED.role]
    rows = rows_for(scene, addresses(scene, inside, all_layers(scene)), names)
    if EMBED.role not in roles:
        return rows, None
    tokens = shared_tokens(scene, EMBED_TOKENS)
    items = tokens.items if tokens.texts else (Item(A, EMBED), Item(B, EMBED))
    rows.append(row_of(scene, *items, names, any_rows=bool(tokens.texts)))
    return rows, tokens


def _run(study: Study, scene: Scene) -> Result:
    rows, tokens = type_rows(study, scene)
    extra = extra_columns(wanted_measures(scene, study.measures), _MEASURES)
    title = text.words("study.tensor-types.table.tensors")
    lines = tuple((*_line(row, tokens), *cells(row, extra)) for row in rows)
    details = Table("tensor_types_detailed", title, (*_COLUMNS, *extra), lines)
    means = _means(rows)
    return Result(
        study.name,
        scene.names,
        (details, means),
        _facts(rows),
        (_chart(rows),),
        (*_findings(rows), *tell_gaps(details.column("status"))),
        scene.labels,
    )


def _line(row: Row, tokens: SharedTokens | None) -> tuple[Cell, ...]:
    found, (key_a, key_b) = row.found, row.keys
    note = found.reason
    if row.role == EMBED.role and tokens is not None:
        how = f"{len(tokens.texts)} shared tokens" if tokens.texts else f"by row: {tokens.reason}"
        note = f"{note}; {how}" if note else how
    return (
        row.layer,
        key_a or key_b,
        found.status,
        found.value("cosine"),
        found.value("relative_rmse"),
        row.raw_equal,
        shape_text(row.a.shape),
        shape_text(row.b.shape),
        note,
        row.role,
        row.first.address.expert,
        key_b,
        found.value("pearson"),
        found.value("shuffled_cosine"),
        *found.bounds("cosine"),
        found.sample,
    )


def _means(rows: Iterable[Row]) -> Table:
    columns = (
        "type", "tensors", "failed", "mean_cosine", "std", "min", "max", "mean_pearson",
        "mean_shuffled_cosine",
    )  # fmt: skip
    lines: list[tuple[Cell, ...]] = []
    for role, group in by_role(rows).items():
        s = spread_of(group, "cosine")
        rest = spread_of(group, "pearson").mean, spread_of(group, "shuffled_cosine").mean
        failed = len(group) - s.count
        lines.append((role, s.count, failed, s.mean, s.std, s.least, s.greatest, *rest))
    title = text.words("study.tensor-types.table.means")
    return Table("tensor_types", title, columns, tuple(lines))


def _facts(rows: Iterable[Row]) -> dict[str, Fact]:
    facts: dict[str, Fact] = {}
    for role, group in by_role(rows).items():
        s = spread_of(group, "cosine")
        facts[role] = {
            "mean": s.mean,
            "std": s.std,
            "min": s.least,
            "max": s.greatest,
            "count": s.count,
            "pearson_mean": spread_of(group, "pearson").mean,
            "shuffled_cosine_mean": spread_of(group, "shuffled_cosine").mean,
        }
    return facts


def _chart(rows: Iterable[Row]) -> Bars:
    bars: list[Bar] = []
    for role, group in by_role(rows).items():
        seen, left = spread_of(group, "cosine"), spread_of(group, "shuffled_cosine")
        title = role_title(role)
        bars.append(Bar(title, seen.mean, seen.deviation, "pair"))
        shuffled = text.words("study.common.shuffled", role=title)
        bars.append(Bar(shuffled, left.mean, left.deviation, "random"))
    return Bars(
        "summary_comparison",
        text.words("study.tensor-types.chart"),
        text.words("study.tensor-types.axis"),
        tuple(bars),
        note=text.words("study.tensor-types.chart.note"),
    )


def _findings(rows: Sequence[Row]) -> tuple[Words, ...]:
    told: list[Words] = []
    for role, group in by_role(rows).items():
        seen = spread_of(group, "cosine")
        if seen.mean is None:
            continue
        title = role_title(role)
        told.append(
            text.words(
                "study.tensor-types.finding",
                role=title,
                cosine=rounded(seen.mean),
                left=rounded(spread_of(group, "shuffled_cosine").mean),
                pearson=rounded(spread_of(group, "pearson").mean),
                count=seen.count,
            )
        )
    return tuple(told)


TYPES = Procedure(needed, _run)
