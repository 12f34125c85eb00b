"""Two configurations side by side: what is equal, changed, added and removed.

Read from the second model, the alleged origin, to the first. Sizes are compared by meaning
as well, because two libraries may name the same size differently.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from kinprint import text
from kinprint.studies.catalogue import Procedure, Study
from kinprint.studies.derivation.pairwise import A, B
from kinprint.studies.results import Cell, Fact, Result, Table
from kinprint.studies.scene import Item, Scene
from kinprint.text import Words

EQUAL, CHANGED, ADDED, REMOVED = "equal", "changed", "added", "removed"
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


@dataclass(frozen=True, slots=True)
class Difference:
    """One entry of either configuration."""

    key: str
    a: Fact
    b: Fact
    change: str


def differences(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[Difference]:
    """Entries of both, in the order of the second's and then the first's own."""
    found: list[Difference] = []
    for key in dict.fromkeys((*b, *a)):
        change = ADDED if key not in b else REMOVED if key not in a else CHANGED
        if change == CHANGED and _equal(a[key], b[key]):
            change = EQUAL
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


def sizes(scene: Scene, model: int) -> dict[str, Fact]:
    """A model's sizes by meaning; those that the configuration does not tell are left out."""
    told = asdict(scene.models[model].geometry)
    return {key: plain(value) for key, value in told.items() if value is not None}


def _needs(study: Study, scene: Scene) -> list[Item]:
    return []


def _run(study: Study, scene: Scene) -> Result:
    configs = [dict(scene.models[at].config) for at in (A, B)]
    entries = differences(configs[A], configs[B])
    meaning = differences(sizes(scene, A), sizes(scene, B))
    facts: dict[str, Fact] = {
        "A": _summary(scene, A, configs[A]),
        "B": _summary(scene, B, configs[B]),
    }
    for change in (EQUAL, CHANGED, ADDED, REMOVED):
        chosen = [one for one in entries if one.change == change]
        facts[change] = {one.key: _told(one) for one in chosen}
    facts["sizes"] = {one.key: {"A": one.a, "B": one.b, "change": one.change} for one in meaning}
    tables = (
        _table("configuration", text.words("study.configuration.table.entries"), entries),
        _table("sizes", text.words("study.configuration.table.sizes"), meaning),
    )
    return Result(
        study.name, scene.names, tables, facts, (), _findings(scene, entries), scene.labels
    )


def _summary(scene: Scene, model: int, config: Mapping[str, Any]) -> Fact:
    opened = scene.models[model]
    chosen = {key: plain(config[key]) for key in _SUMMARY if key in config}
    return {
        "repo": opened.name,
        "commit": opened.checkpoint.ref.commit,
        "config_summary": chosen or sizes(scene, model),
    }


def _told(one: Difference) -> Fact:
    if one.change == CHANGED:
        return {"A": one.a, "B": one.b}
    return one.b if one.change == REMOVED else one.a


def _table(name: str, title: Words, found: list[Difference]) -> Table:
    rows = tuple((one.key, _cell(one.b), _cell(one.a), one.change) for one in found)
    return Table(name, title, ("key", "B", "A", "change"), rows)


def _cell(value: Fact) -> Cell:
    return str(value) if isinstance(value, list | dict) else value


def _findings(scene: Scene, entries: list[Difference]) -> tuple[Words, ...]:
    silent = [scene.names[at] for at in (A, B) if not scene.models[at].config]
    if silent:
        names = ", ".join(silent)
        return (text.words("study.configuration.finding.unreadable", names=names),)
    counts = dict.fromkeys((EQUAL, CHANGED, ADDED, REMOVED), 0)
    for one in entries:
        counts[one.change] += 1
    return (
        text.words(
            "study.configuration.finding.counts", a=scene.names[A], b=scene.names[B], **counts
        ),
    )


CONFIGURATION = Procedure(_needs, _run)
