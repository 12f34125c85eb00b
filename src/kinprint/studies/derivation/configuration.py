"""Two configurations side by side: what is equal, changed, added and removed.

Read from the second model, the alleged origin, to the first. Sizes are compared by meaning
as well, because two libraries may name the same size differently.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from kinprint import text
from kinprint.studies.derivation.pairwise import A, B
from kinprint.studies.results import Cell, Fact, Output, Table
from kinprint.studies.study import Procedure, StudyInput
from kinprint.text import Words

# What the report's summary holds, where a configuration has it.
_SUMMARY = (
    "model_type", "architectures", "hidden_size", "num_hidden_layers", "num_attention_heads",
    "num_key_value_heads", "head_dim", "intermediate_size", "moe_intermediate_size",
    "n_routed_experts", "num_local_experts", "num_experts", "n_shared_experts",
    "num_experts_per_tok", "max_position_embeddings", "rope_theta", "rope_scaling",
    "partial_rotary_factor", "first_k_dense_replace", "vocab_size", "pad_token_id",
    "bos_token_id", "eos_token_id", "num_nextn_predict_layers", "tie_word_embeddings",
    "torch_dtype", "dtype", "transformers_version",
)  # fmt: skip


class Change(StrEnum):
    """What became of an entry on the way from the second configuration to the first."""

    EQUAL = "equal"
    CHANGED = "changed"
    ADDED = "added"
    REMOVED = "removed"


class Difference(Struct, frozen=True):
    """One entry of either configuration."""

    key: str
    a: Fact
    b: Fact
    change: Change


def differences(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[Difference]:
    """Entries of both, in the order of the second's and then the first's own."""
    found: list[Difference] = []
    for key in dict.fromkeys((*b, *a)):
        change = Change.CHANGED
        if key not in b:
            change = Change.ADDED
        elif key not in a:
            change = Change.REMOVED
        elif _equal(a[key], b[key]):
            change = Change.EQUAL
        found.append(Difference(key, plain(a.get(key)), plain(b.get(key)), change))
    return found


def _equal(a: Any, b: Any) -> bool:
    """Equal values; 1 and 1.0 are, 1 and true are not."""
    return bool(a == b) and isinstance(a, bool) == isinstance(b, bool)


def plain(value: Any) -> Fact:
    """A value of a configuration as data that can be written down."""
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)


def sizes(inputs: StudyInput, model: int) -> dict[str, Fact]:
    """A model's sizes by meaning; those that the configuration does not tell are left out."""
    known = asdict(inputs.models[model].geometry)
    return {key: plain(value) for key, value in known.items() if value is not None}


def _run(inputs: StudyInput) -> Output:
    configs = [dict(inputs.models[at].config) for at in (A, B)]
    entries = differences(configs[A], configs[B])
    meaning = differences(sizes(inputs, A), sizes(inputs, B))
    facts: dict[str, Fact] = {
        "A": _summary(inputs, A, configs[A]),
        "B": _summary(inputs, B, configs[B]),
    }
    for change in Change:
        facts[change] = {one.key: _fact(one) for one in entries if one.change is change}
    facts["sizes"] = {one.key: {"A": one.a, "B": one.b, "change": one.change} for one in meaning}
    tables = (
        _table("configuration", text.words("study.configuration.table.entries"), entries),
        _table("sizes", text.words("study.configuration.table.sizes"), meaning),
    )
    return Output(tables, facts, (), (_finding(inputs, entries),))


def _summary(inputs: StudyInput, model: int, config: Mapping[str, Any]) -> Fact:
    opened = inputs.models[model]
    chosen = {key: plain(config[key]) for key in _SUMMARY if key in config}
    return {
        "repo": opened.name,
        "commit": opened.checkpoint.ref.commit,
        "config_summary": chosen or sizes(inputs, model),
    }


def _fact(one: Difference) -> Fact:
    if one.change is Change.CHANGED:
        return {"A": one.a, "B": one.b}
    return one.b if one.change is Change.REMOVED else one.a


def _table(name: str, title: Words, found: list[Difference]) -> Table:
    rows = tuple((one.key, _cell(one.b), _cell(one.a), one.change) for one in found)
    return Table(name, title, ("key", "B", "A", "change"), rows)


def _cell(value: Fact) -> Cell:
    return str(value) if isinstance(value, list | dict) else value


def _finding(inputs: StudyInput, entries: list[Difference]) -> Words:
    silent = [inputs.names[at] for at in (A, B) if not inputs.models[at].config]
    if silent:
        return text.words("study.configuration.finding.unreadable", names=", ".join(silent))
    counts = {change: sum(one.change is change for one in entries) for change in Change}
    return text.words(
        "study.configuration.finding.counts", a=inputs.names[A], b=inputs.names[B], **counts
    )


CONFIGURATION = Procedure(lambda inputs: [], _run)
