"""Mean similarity by type of tensor, over all layers.

The table the derivation report argued from: norms alike, everything else not. Beside every
cosine stands what shuffling leaves of it, because that is where norms get theirs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kinprint import text
from kinprint.studies.charts import Bars
from kinprint.studies.comparing import SHUFFLED, shape_text
from kinprint.studies.derivation.pairwise import (
    A,
    B,
    TensorPair,
    addresses,
    bar_beside_chance,
    by_role,
    compare_at,
    compare_tensors,
    cosine_facts,
    extra_measures,
    mark_among,
    spread_of,
    tensors_at,
)
from kinprint.studies.derivation.shared_tokens import EMBED, SharedTokens, shared_tokens
from kinprint.studies.results import Cell, Output, Table
from kinprint.studies.study import Procedure, StudyInput, TensorRows
from kinprint.studies.summary import rounded
from kinprint.text import Words
from kinprint.titles import role_title

EMBED_TOKENS = 64
_MEASURES = ("cosine", "relative_rmse", "pearson", SHUFFLED)
_COLUMNS = (
    "layer", "key", "status", "cosine", "rel_rmse", "raw_hash_equal", "a_shape", "b_shape", "note",
    "role", "expert", "key_b", "pearson", "shuffled_cosine", "cosine_low", "cosine_high", "sample",
    "mark",
)  # fmt: skip


def needed(inputs: StudyInput) -> list[TensorRows]:
    """Both models' tensors of all types; of embeddings, the rows of shared tokens."""
    wanted = tensors_at(inputs, addresses(inputs, _other_roles(inputs), inputs.own_layers()))
    if EMBED.role in inputs.roles:
        wanted += _embeddings(shared_tokens(inputs, EMBED_TOKENS))
    return wanted


def compare_types(inputs: StudyInput) -> tuple[list[TensorPair], SharedTokens | None]:
    """One pair a tensor, and the tokens that stand for the embedding."""
    names = (*_MEASURES, *extra_measures(inputs.measures, _MEASURES))
    found = addresses(inputs, _other_roles(inputs), inputs.own_layers())
    pairs = compare_at(inputs, found, names)
    if EMBED.role not in inputs.roles:
        return pairs, None
    tokens = shared_tokens(inputs, EMBED_TOKENS)
    by_meaning = bool(tokens.texts)
    pairs.append(compare_tensors(inputs, *_embeddings(tokens), names, any_rows=by_meaning))
    return pairs, tokens


def _other_roles(inputs: StudyInput) -> list[str]:
    return [role for role in inputs.roles if role != EMBED.role]


def _embeddings(tokens: SharedTokens) -> tuple[TensorRows, TensorRows]:
    """Rows of shared tokens; where there are none, rows by their number."""
    return tokens.tensors if tokens.texts else (TensorRows(A, EMBED), TensorRows(B, EMBED))


def _run(inputs: StudyInput) -> Output:
    pairs, tokens = compare_types(inputs)
    extra = extra_measures(inputs.measures, _MEASURES)
    rows = tuple((*_row(pair, tokens), *pair.values(extra)) for pair in pairs)
    title = text.words("study.tensor-types.table.tensors")
    details = Table("tensor_types_detailed", title, (*_COLUMNS, *extra), rows)
    facts = {role: cosine_facts(group) for role, group in by_role(pairs).items()}
    findings = (*_findings(pairs), *details.gaps)
    return Output((details, _mean_table(pairs)), facts, (_chart(pairs),), findings)


def _row(pair: TensorPair, tokens: SharedTokens | None) -> tuple[Cell, ...]:
    note = pair.comparison.reason
    if pair.role == EMBED.role and tokens is not None:
        how = _how_paired(tokens)
        note = text.joined_sentences((note, how)) if note else how
    return (
        pair.layer,
        pair.a.name or pair.b.name,
        pair.status,
        pair.value("cosine"),
        pair.value("relative_rmse"),
        pair.raw_equal,
        shape_text(pair.a.shape),
        shape_text(pair.b.shape),
        note,
        pair.role,
        pair.first.address.expert,
        pair.b.name,
        pair.value("pearson"),
        pair.value(SHUFFLED),
        *pair.comparison.bounds("cosine"),
        pair.comparison.sample,
        pair.comparison.marked,
    )


def _how_paired(tokens: SharedTokens) -> str:
    """By which rows embeddings were compared."""
    if tokens.texts:
        return text.sentence("study.reason.shared-tokens", number=len(tokens.texts))
    return text.sentence("study.reason.by-row", reason=tokens.reason)


def _mean_table(pairs: Iterable[TensorPair]) -> Table:
    columns = (
        "type", "tensors", "failed", "mean_cosine", "std", "min", "max", "mean_pearson",
        "mean_shuffled_cosine", "mark",
    )  # fmt: skip
    rows: list[tuple[Cell, ...]] = []
    for role, group in by_role(pairs).items():
        cosine = spread_of(group, "cosine")
        rows.append(
            (
                role,
                cosine.count,
                len(group) - cosine.count,
                cosine.mean,
                cosine.std,
                cosine.least,
                cosine.greatest,
                spread_of(group, "pearson").mean,
                spread_of(group, SHUFFLED).mean,
                mark_among(group, "cosine") if cosine.count else "",
            )
        )
    title = text.words("study.tensor-types.table.means")
    return Table("tensor_types", title, columns, tuple(rows))


def _chart(pairs: Iterable[TensorPair]) -> Bars:
    bars = [
        bar
        for role, group in by_role(pairs).items()
        for bar in bar_beside_chance(
            role,
            spread_of(group, "cosine"),
            text.words("study.common.shuffled", role=role_title(role)),
            spread_of(group, SHUFFLED),
            mark_among(group, "cosine"),
        )
    ]
    return Bars(
        "summary_comparison",
        text.words("study.tensor-types.chart"),
        text.words("study.tensor-types.axis"),
        tuple(bars),
        note=text.words("study.tensor-types.chart.note"),
        most=1.0,
    )


def _findings(pairs: Sequence[TensorPair]) -> list[Words]:
    found: list[Words] = []
    for role, group in by_role(pairs).items():
        cosine = spread_of(group, "cosine")
        if cosine.mean is None:
            continue
        found.append(
            text.words(
                "study.tensor-types.finding",
                role=role_title(role),
                cosine=rounded(cosine.mean),
                left=rounded(spread_of(group, SHUFFLED).mean),
                pearson=rounded(spread_of(group, "pearson").mean),
                count=cosine.count,
            )
        )
    return found


TYPES = Procedure(needed, _run)
